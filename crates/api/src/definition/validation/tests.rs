use serde_json::json;

use super::*;

fn definition() -> Value {
    json!({
        "metadata": {"name": "foos.example.com"},
        "spec": {
            "group": "example.com", "scope": "Namespaced",
            "names": {"plural": "foos", "singular": "foo", "kind": "Foo", "listKind": "FooList"},
            "conversion": {"strategy": "None"},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {
                "openAPIV3Schema": {"type": "object", "properties": {
                    "spec": {"type": "object", "properties": {"n": {"type": "integer"}}}}}}}],
        },
        "status": {"storedVersions": ["v1"], "acceptedNames": {"plural": "", "kind": ""}},
    })
}

/// What is wrong with the definition when something in it is something else.
fn faults(pointer: &str, value: Value) -> Vec<String> {
    let mut given = definition();
    let (parent, key) = pointer.rsplit_once('/').unwrap();
    given.pointer_mut(parent).unwrap()[key] = value;
    of_new(given.as_object().unwrap()).iter().map(ToString::to_string).collect()
}

#[test]
fn a_plain_definition_is_taken() {
    assert_eq!(faults("/spec/scope", json!("Cluster")), Vec::<String>::new());
}

#[test]
fn names_versions_and_paths_are_checked_in_upstreams_words() {
    for (pointer, value, want) in cases() {
        let found = faults(pointer, value);
        assert!(found.contains(&want), "{pointer}: {found:#?}");
    }
}

fn cases() -> Vec<(&'static str, Value, String)> {
    let dns = "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
               with an alphabetic character, and end with an alphanumeric character (e.g. \
               'my-name',  or 'abc-123', regex used for validation is \
               '[a-z]([-a-z0-9]*[a-z0-9])?')";
    vec![
        (
            "/metadata/name",
            json!("bars.example.com"),
            "metadata.name: Invalid value: \"bars.example.com\": must be \
             spec.names.plural+\".\"+spec.group"
                .to_owned(),
        ),
        ("/spec/scope", json!(""), "spec.scope: Required value".to_owned()),
        (
            "/spec/names/shortNames",
            json!(["F"]),
            format!("spec.names.shortNames[0]: Invalid value: \"F\": {dns}"),
        ),
        (
            "/spec/names/listKind",
            json!("Foo"),
            "spec.names.listKind: Invalid value: \"Foo\": kind and listKind may not be the same"
                .to_owned(),
        ),
        (
            "/spec/versions/0/deprecationWarning",
            json!("old"),
            "spec.versions[0].deprecationWarning: Invalid value: \"old\": can only be set for \
             deprecated versions"
                .to_owned(),
        ),
        (
            "/spec/versions/0/additionalPrinterColumns",
            json!([{"name": "N", "type": "text", "jsonPath": "spec.n"}]),
            "spec.additionalPrinterColumns[0].type: Invalid value: \"text\": must be one of \
             boolean,date,integer,number,string"
                .to_owned(),
        ),
        (
            "/spec/versions/0/subresources",
            json!({"scale": {"specReplicasPath": ".n", "statusReplicasPath": ".status.n"}}),
            "spec.subresources.scale.specReplicasPath: Invalid value: \".n\": should be a json \
             path under .spec"
                .to_owned(),
        ),
        (
            "/spec/versions/0/selectableFields",
            json!([{"jsonPath": ".spec"}]),
            "spec.selectableFields[0].jsonPath: Invalid value: \".spec\": must point to a field of \
             type string, boolean or integer. Enum string fields and strings with formats are \
             allowed."
                .to_owned(),
        ),
        (
            "/spec/conversion",
            json!({"strategy": "Webhook"}),
            "spec.conversion.webhookClientConfig: Required value: required when strategy is set to \
             Webhook"
                .to_owned(),
        ),
        (
            "/spec/preserveUnknownFields",
            json!(true),
            "spec.preserveUnknownFields: Invalid value: true: cannot set to true, set \
             x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead"
                .to_owned(),
        ),
    ]
}

#[test]
#[expect(clippy::too_many_lines, reason = "a table")]
fn schemas_are_structural() {
    let root = "/spec/versions/0/schema/openAPIV3Schema";
    let spec = format!("{root}/properties/spec");
    let path = "spec.validation.openAPIV3Schema";
    let cases = [
        (
            root.to_owned(),
            json!({"type": "string"}),
            ".type: Invalid value: \"string\": must be object at the root",
        ),
        (
            root.to_owned(),
            json!({"properties": {}}),
            ".type: Required value: must not be empty at the root",
        ),
        (
            spec.clone(),
            json!({"type": "array"}),
            ".properties[spec].items: Required value: must be specified",
        ),
        (
            spec.clone(),
            json!({"type": "object", "anyOf": [{"type": "object"}]}),
            ".properties[spec].anyOf[0].type: Forbidden: must be empty to be structural",
        ),
        (
            root.to_owned(),
            json!({"type": "object", "anyOf": [{"properties": {"x": {"minimum": 1}}}]}),
            ".properties[x]: Required value: because it is defined in \
             spec.validation.openAPIV3Schema.anyOf[0].properties[x]",
        ),
        (
            format!("{root}/properties/metadata"),
            json!({"type": "object", "properties": {"labels": {"type": "object"}}}),
            ".properties[metadata]: Forbidden: must not specify anything other than name and \
             generateName, but metadata is implicitly specified",
        ),
        (
            spec.clone(),
            json!({"type": "object", "additionalProperties": {"type": "string"},
                   "properties": {"n": {"type": "string"}}}),
            ".properties[spec].additionalProperties: Forbidden: additionalProperties and \
             properties are mutual exclusive",
        ),
        (
            spec.clone(),
            json!({"type": "object", "$ref": "#/x"}),
            ".properties[spec].$ref: Forbidden: $ref is not supported",
        ),
        (
            spec.clone(),
            json!({"type": "array", "uniqueItems": true, "items": {"type": "string"}}),
            ".properties[spec].uniqueItems: Forbidden: uniqueItems cannot be set to true since the \
             runtime complexity becomes quadratic",
        ),
        (
            spec.clone(),
            json!({"type": "array", "x-kubernetes-list-type": "map",
                   "x-kubernetes-list-map-keys": ["k"],
                   "items": {"type": "object", "properties": {"k": {"type": "string"}}}}),
            ".properties[spec].items.properties[k].default: Required value: this property is in \
             x-kubernetes-list-map-keys, so it must have a default or be a required property",
        ),
        (
            spec.clone(),
            json!({"type": "integer", "default": "x"}),
            ".properties[spec].default: Invalid value: \"string\":  in body must be of type \
             integer: \"string\"",
        ),
        (
            spec.clone(),
            json!({"type": "object", "default": {"x": 1}}),
            ".properties[spec].default: Invalid value: {\"x\":1}: must not have unknown fields",
        ),
        (
            spec.clone(),
            json!({"type": "string", "pattern": "("}),
            ".properties[spec].pattern: Invalid value: \"(\": must be a valid regular expression, \
             but isn't: error parsing regexp: missing closing ): `(`",
        ),
        (
            spec.clone(),
            json!({"type": "object", "x-kubernetes-validations": [{"rule": " "}]}),
            ".properties[spec].x-kubernetes-validations[0].rule: Required value: rule is not \
             specified",
        ),
        (
            spec,
            json!({"type": "array", "items": {"type": "object", "x-kubernetes-validations":
                [{"rule": "self == oldSelf"}]}}),
            ".properties[spec].items.x-kubernetes-validations[0].rule: Invalid value: \"self == \
             oldSelf\": oldSelf cannot be used on the uncorrelatable portion of the schema within \
             spec.validation.openAPIV3Schema.properties[spec]",
        ),
    ];
    for (pointer, value, want) in cases {
        let found = faults(&pointer, value);
        assert!(found.contains(&format!("{path}{want}")), "{want}: {found:#?}");
    }
}

#[test]
fn some_things_never_change() {
    let old = definition();
    let mut new = definition();
    new["spec"]["group"] = "example.org".into();
    let found = of_changed(new.as_object().unwrap(), old.as_object().unwrap());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    assert_eq!(found, ["spec.group: Invalid value: \"example.org\": field is immutable"]);
    let mut new = definition();
    new["spec"]["versions"][0]["name"] = "v2".into();
    let found = of_changed(new.as_object().unwrap(), old.as_object().unwrap());
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    let want = "status.storedVersions[0]: Invalid value: \"v1\": missing from spec.versions; v1 was \
                previously a storage version";
    assert!(found[1].starts_with(want), "{found:?}");
}

/// What is wrong with a schema of `spec`, beside its place.
fn faults_of_spec(spec: Value) -> Vec<String> {
    let place = "spec.validation.openAPIV3Schema.properties[spec]";
    let found = faults(
        "/spec/versions/0/schema/openAPIV3Schema",
        json!({"type": "object", "properties": {"spec": spec}}),
    );
    found.iter().map(|it| it.strip_prefix(place).unwrap_or(it).to_owned()).collect()
}

#[test]
fn rules_are_looked_at_where_nothing_else_is_wrong() {
    let broken = || json!([{"rule": "self ="}]);
    let is_about_rules = |found: &String| found.contains("compilation failed");
    let field = |more: &[(&str, Value)]| {
        let mut field = json!({"type": "integer", "x-kubernetes-validations": broken()});
        more.iter().for_each(|(key, value)| field[*key] = value.clone());
        json!({"type": "object", "properties": {"n": field}})
    };
    assert!(faults_of_spec(field(&[])).iter().all(is_about_rules));
    // Something is wrong here, with a default, or with another schema.
    let unique = faults_of_spec(field(&[("uniqueItems", json!(true))]));
    assert!(unique.len() == 1 && !unique.iter().any(is_about_rules), "{unique:?}");
    let default = faults_of_spec(field(&[("default", json!("x"))]));
    assert!(default.len() == 1 && !default.iter().any(is_about_rules), "{default:?}");
    let mut outside = field(&[]);
    outside["properties"]["m"] = json!({"type": "integer", "uniqueItems": true});
    outside["x-kubernetes-validations"] = broken();
    let outside = faults_of_spec(outside);
    assert_eq!(outside.len(), 2, "{outside:?}");
    assert!(outside[0].starts_with(".properties[m].uniqueItems"), "rules come last: {outside:?}");
    assert!(outside[1].starts_with(".properties[n].x-kubernetes-validations[0].rule"));
    let nested = json!({"type": "object", "allOf": [{"x-kubernetes-validations": broken()}]});
    assert!(!faults_of_spec(nested).iter().any(is_about_rules));
}

#[test]
fn a_message_is_looked_at_only_if_its_rule_can_be() {
    let with = |rule: &str| {
        faults_of_spec(json!({"type": "object", "x-kubernetes-validations": [
            {"rule": rule, "messageExpression": "'a"}]}))
    };
    assert_eq!(with("self =").len(), 1);
    let found = with("true");
    assert!(found[0].starts_with(".x-kubernetes-validations[0].messageExpression"), "{found:?}");
}

#[test]
fn columns_have_formats_of_upstream() {
    let with = |format: &str| {
        let column = json!([{"name": "a", "type": "string", "jsonPath": ".a", "format": format}]);
        faults("/spec/versions/0/additionalPrinterColumns", column)
    };
    assert!(with("password").is_empty());
    assert!(
        with("name")[0]
            .ends_with("must be one of byte,date,date-time,double,float,int32,int64,password")
    );
}
