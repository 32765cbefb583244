//! Role, ClusterRole and their bindings: what may be done, and by whom. [`crate::rbac`] evaluates
//! them.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::{
    duration::age,
    field::{ErrorKind, ErrorList, FieldError, Path},
    json::{at, list, text},
    kinds::each,
    meta::validate_label_selector,
    names,
    rbac::GROUP,
    resource::Scope,
    strategy::{Column, Json, MetadataCheck, Strategy},
    table::{self, AGE, NAME, column},
};

const ROLE_COLUMNS: &[Column] =
    &[NAME, Column { kind: "date", ..column("Created At", "When it was made.") }];

const BINDING_COLUMNS: &[Column] = &[
    NAME,
    column("Role", "The role that is given."),
    AGE,
    Column { priority: 1, ..column("Users", "The users it is given to.") },
    Column { priority: 1, ..column("Groups", "The groups it is given to.") },
    Column { priority: 1, ..column("ServiceAccounts", "The accounts it is given to.") },
];

/// Role and ClusterRole.
#[derive(Debug)]
pub struct RoleStrategy(pub Scope);

/// RoleBinding and ClusterRoleBinding.
#[derive(Debug)]
pub struct RoleBindingStrategy(pub Scope);

impl Strategy for RoleStrategy {
    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        for (at, rule) in list(object, &["rules"]).iter().enumerate() {
            validate_rule(rule, self.0, &Path::new("rules").index(at), &mut errors);
        }
        if let Some(Value::Object(aggregation)) = object.get("aggregationRule") {
            let path = Path::new("aggregationRule").child("clusterRoleSelectors");
            let selectors = list(aggregation, &["clusterRoleSelectors"]);
            if selectors.is_empty() {
                let why = "at least one clusterRoleSelector required if aggregationRule is non-nil";
                errors.push(FieldError::required(&path, why));
            }
            for (at, selector) in selectors.iter().enumerate() {
                let selector = LabelSelector::deserialize(selector).unwrap_or_default();
                errors.extend(validate_label_selector(&selector, &path.index(at)));
            }
        }
        errors
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        ROLE_COLUMNS
    }

    fn row(&self, object: &Json, _now: Timestamp) -> Vec<Value> {
        vec![table::name(object), text(object, &["metadata", "creationTimestamp"]).into()]
    }
}

fn validate_rule(rule: &Value, scope: Scope, path: &Path, errors: &mut ErrorList) {
    let has = |key: &str| rule.get(key).and_then(Value::as_array).is_some_and(|l| !l.is_empty());
    if !has("verbs") {
        let why = "verbs must contain at least one value";
        errors.push(FieldError::required(&path.child("verbs"), why));
    }
    if has("nonResourceURLs") {
        let (at, urls) = (path.child("nonResourceURLs"), &rule["nonResourceURLs"]);
        if scope == Scope::Namespaced {
            let why = "namespaced rules cannot apply to non-resource URLs";
            errors.push(FieldError::invalid(&at, urls, why));
        }
        if ["apiGroups", "resources", "resourceNames"].into_iter().any(has) {
            let why = "rules cannot apply to both regular resources and non-resource URLs";
            errors.push(FieldError::invalid(&at, urls, why));
        }
        return;
    }
    for (key, what) in [("apiGroups", "api group"), ("resources", "resource")] {
        if !has(key) {
            let why = format!("resource rules must supply at least one {what}");
            errors.push(FieldError::required(&path.child(key), &why));
        }
    }
}

impl Strategy for RoleBindingStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        if let Some(Value::Object(role)) = object.get_mut("roleRef")
            && text(role, &["apiGroup"]).is_empty()
        {
            role.insert("apiGroup".to_owned(), GROUP.into());
        }
        let subjects = object.get_mut("subjects").and_then(Value::as_array_mut);
        for subject in subjects.into_iter().flatten().filter_map(Value::as_object_mut) {
            let is_named = matches!(text(subject, &["kind"]), "User" | "Group");
            if is_named && text(subject, &["apiGroup"]).is_empty() {
                subject.insert("apiGroup".to_owned(), GROUP.into());
            }
        }
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = ErrorList::new();
        let path = Path::new("roleRef");
        let role = |key: &str| text(object, &["roleRef", key]);
        if role("apiGroup") != GROUP {
            let at = path.child("apiGroup");
            errors.push(FieldError::not_supported(&at, role("apiGroup"), &[GROUP]));
        }
        let kinds: &[&str] = match self.0 {
            Scope::Namespaced => &["Role", "ClusterRole"],
            Scope::Cluster => &["ClusterRole"],
        };
        if !kinds.contains(&role("kind")) {
            errors.push(FieldError::not_supported(&path.child("kind"), role("kind"), kinds));
        }
        match role("name") {
            "" => errors.push(FieldError::required(&path.child("name"), "")),
            name => {
                errors.extend(each(&path.child("name"), name, names::path_segment(name, false)));
            }
        }
        for (at, subject) in list(object, &["subjects"]).iter().enumerate() {
            if let Value::Object(subject) = subject {
                validate_subject(subject, self.0, &Path::new("subjects").index(at), &mut errors);
            }
        }
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        let mut errors = self.validate_create(object);
        let role = |of: &Json| at(of, &["roleRef"]).cloned().unwrap_or_default();
        if role(object) != role(old) {
            let path = Path::new("roleRef");
            // Upstream shows its own fields, which have other names.
            let field = |name: &str| text(object, &["roleRef", name]).to_owned();
            let shown = format!(
                "{{\"APIGroup\":{:?},\"Kind\":{:?},\"Name\":{:?}}}",
                field("apiGroup"),
                field("kind"),
                field("name")
            );
            errors.push(FieldError {
                kind: ErrorKind::Invalid,
                path,
                body: format!("Invalid value: {shown}: cannot change roleRef"),
            });
        }
        errors
    }

    fn metadata_check(&self) -> MetadataCheck {
        MetadataCheck::Both
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::path_segment(name, is_prefix)
    }

    fn allows_create_on_update(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        BINDING_COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let named = |kind: &str| -> Value {
            let subjects = list(object, &["subjects"]).iter().filter_map(Value::as_object);
            let names = subjects.filter(|of| text(of, &["kind"]) == kind).map(|of| {
                let name = text(of, &["name"]);
                match kind {
                    "ServiceAccount" => format!("{}/{name}", text(of, &["namespace"])),
                    _ => name.to_owned(),
                }
            });
            json!(names.collect::<Vec<_>>().join(", "))
        };
        let role = |key: &str| text(object, &["roleRef", key]);
        vec![
            table::name(object),
            json!(format!("{}/{}", role("kind"), role("name"))),
            age(object, now).into(),
            named("User"),
            named("Group"),
            named("ServiceAccount"),
        ]
    }
}

fn validate_subject(subject: &Json, scope: Scope, path: &Path, errors: &mut ErrorList) {
    let (name, group) = (text(subject, &["name"]), text(subject, &["apiGroup"]));
    if name.is_empty() {
        errors.push(FieldError::required(&path.child("name"), ""));
    }
    match text(subject, &["kind"]) {
        "ServiceAccount" => {
            if !name.is_empty() {
                let faults = names::name_is_dns_subdomain(name, false);
                errors.extend(each(&path.child("name"), name, faults));
            }
            if !group.is_empty() {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[""]));
            }
            if scope == Scope::Cluster && text(subject, &["namespace"]).is_empty() {
                errors.push(FieldError::required(&path.child("namespace"), ""));
            }
        }
        "User" | "Group" => {
            if group != GROUP {
                errors.push(FieldError::not_supported(&path.child("apiGroup"), group, &[GROUP]));
            }
        }
        other => {
            let known = ["ServiceAccount", "User", "Group"];
            errors.push(FieldError::not_supported(&path.child("kind"), other, &known));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn messages(strategy: &dyn Strategy, mut object: Value) -> Vec<String> {
        let object = object.as_object_mut().unwrap();
        strategy.fill_defaults(object);
        strategy.validate_create(object).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn rules_are_of_one_sort_and_whole() {
        let cases: [(Scope, Value, &[&str]); 5] = [
            (
                Scope::Namespaced,
                json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}),
                &[],
            ),
            (
                Scope::Namespaced,
                json!({}),
                &[
                    "rules[0].verbs: Required value: verbs must contain at least one value",
                    "rules[0].apiGroups: Required value: resource rules must supply at least one \
                     api group",
                    "rules[0].resources: Required value: resource rules must supply at least one \
                     resource",
                ],
            ),
            (
                Scope::Namespaced,
                json!({"verbs": ["get"], "nonResourceURLs": ["/x"]}),
                &["rules[0].nonResourceURLs: Invalid value: [\"/x\"]: namespaced rules cannot \
                   apply to non-resource URLs"],
            ),
            (Scope::Cluster, json!({"verbs": ["get"], "nonResourceURLs": ["/x"]}), &[]),
            (
                Scope::Cluster,
                json!({"verbs": ["get"], "nonResourceURLs": ["/x"], "resources": ["pods"]}),
                &["rules[0].nonResourceURLs: Invalid value: [\"/x\"]: rules cannot apply to both \
                   regular resources and non-resource URLs"],
            ),
        ];
        for (scope, rule, want) in cases {
            let got = messages(&RoleStrategy(scope), json!({"rules": [rule]}));
            assert_eq!(got, want, "{rule}");
        }
    }

    #[test]
    fn bindings_name_a_role_and_those_who_get_it() {
        let role = json!({"kind": "ClusterRole", "name": "view"});
        let cases: [(Scope, Value, &[&str]); 5] = [
            (
                Scope::Cluster,
                json!({"roleRef": role, "subjects": [{"kind": "User", "name": "u"}]}),
                &[],
            ),
            (
                Scope::Cluster,
                json!({"roleRef": {"kind": "Role", "name": "r"}}),
                &["roleRef.kind: Unsupported value: \"Role\": supported values: \"ClusterRole\""],
            ),
            (
                Scope::Cluster,
                json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
                &["subjects[0].namespace: Required value"],
            ),
            (
                Scope::Namespaced,
                json!({"roleRef": role, "subjects": [{"kind": "ServiceAccount", "name": "s"}]}),
                &[],
            ),
            (
                Scope::Namespaced,
                json!({"roleRef": {"kind": "Role"}, "subjects": [{"kind": "Robot"}]}),
                &[
                    "roleRef.name: Required value",
                    "subjects[0].name: Required value",
                    "subjects[0].kind: Unsupported value: \"Robot\": supported values: \
                     \"ServiceAccount\", \"User\", \"Group\"",
                ],
            ),
        ];
        for (scope, binding, want) in cases {
            assert_eq!(messages(&RoleBindingStrategy(scope), binding.clone()), want, "{binding}");
        }
    }

    #[test]
    fn the_role_of_a_binding_never_changes() {
        let binding = |name: &str| {
            let role = json!({"apiGroup": GROUP, "kind": "Role", "name": name});
            json!({ "roleRef": role }).as_object().cloned().unwrap()
        };
        let strategy = RoleBindingStrategy(Scope::Namespaced);
        assert!(strategy.validate_update(&binding("a"), &binding("a")).is_empty());
        let errors = strategy.validate_update(&binding("b"), &binding("a"));
        assert!(errors.iter().any(|error| error.to_string().ends_with("cannot change roleRef")));
    }
}
