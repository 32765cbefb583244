//! Who converts between versions.

use base64::{Engine, engine::general_purpose::STANDARD};
use serde_json::Value;

use super::url::{self, Url};
use crate::{
    definition::is_true,
    field::{ErrorList, FieldError, Path},
    json::at,
    names::{dns1035_label, dns1123_subdomain},
    strategy::Json,
};

/// The versions of the review that upstream knows.
const REVIEWS: [&str; 2] = ["v1", "v1beta1"];

/// What is wrong with who converts between versions, beside what was wrong in an `old` definition
/// and may stay so.
pub(super) fn faults(spec: &Json, old: Option<&Json>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let Some(conversion) = spec.get("conversion").filter(|it| it.is_object()) else {
        return errors;
    };
    let known = ["None", "Webhook"];
    let strategy = conversion["strategy"].as_str().unwrap_or_default();
    match strategy {
        "" => errors.push(FieldError::required(&path.child("strategy"), "")),
        strategy if known.contains(&strategy) => {}
        other => errors.push(FieldError::not_supported(&path.child("strategy"), other, &known)),
    }
    let webhook = &conversion["webhook"];
    let client = &webhook["clientConfig"];
    let versions = list(&webhook["conversionReviewVersions"]);
    let [client_path, versions_path] =
        ["webhookClientConfig", "conversionReviewVersions"].map(|name| path.child(name));
    if strategy != "Webhook" {
        let why = "should not be set when strategy is not set to Webhook";
        if client.is_object() {
            errors.push(FieldError::forbidden(&client_path, why));
        }
        if !versions.is_empty() {
            errors.push(FieldError::forbidden(&versions_path, why));
        }
        return errors;
    }
    if client.is_object() {
        errors.extend(of_client(client, old, &client_path));
    } else {
        let why = "required when strategy is set to Webhook";
        errors.push(FieldError::required(&client_path, why));
    }
    errors.extend(of_reviews(versions, old, &versions_path));
    errors
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

fn of_client(client: &Value, old: Option<&Json>, path: &Path) -> ErrorList {
    let mut errors = match (client["url"].as_str(), client["service"].is_object()) {
        (Some(url), false) => of_url(url, &path.child("url")),
        (None, true) => of_service(&client["service"], &path.child("service")),
        (Some(_), true) | (None, false) => {
            vec![FieldError::required(path, "exactly one of url or service is required")]
        }
    };
    let bundle = client["caBundle"].as_str().unwrap_or_default();
    // Charts bring placeholders, which somebody else replaces when the definition is there.
    let may_be_wrong = old.is_none_or(|old| {
        let keys = ["spec", "conversion", "webhook", "clientConfig", "caBundle"];
        let bundle = at(old, &keys).and_then(Value::as_str).unwrap_or_default();
        !is_true(old, "Established") || bundle_fault(bundle).is_some()
    });
    if let Some(why) = bundle_fault(bundle).filter(|_| !may_be_wrong) {
        errors.push(FieldError::invalid(&path.child("caBundle"), bundle, why));
    }
    errors
}

/// What is wrong with certificates of authorities, if there are any.
fn bundle_fault(bundle: &str) -> Option<&'static str> {
    if bundle.is_empty() {
        return None;
    }
    let text = String::from_utf8(STANDARD.decode(bundle).unwrap_or_default()).unwrap_or_default();
    let mut blocks = text.split("-----BEGIN CERTIFICATE-----").skip(1).peekable();
    if blocks.peek().is_none() {
        return Some("unable to load root certificates: unable to parse bytes as PEM block");
    }
    // A certificate is a sequence, whatever else is in it: nobody is trusted for it here.
    let is_certificate = |block: &str| {
        let body = block.split_once("-----END CERTIFICATE-----").map(|(body, _)| body);
        let body: String = body.unwrap_or_default().split_whitespace().collect();
        STANDARD.decode(body).is_ok_and(|bytes| bytes.first() == Some(&0x30))
    };
    let why = "unable to load root certificates: failed to parse certificate: x509: malformed \
               certificate";
    (!blocks.any(is_certificate)).then_some(why)
}

fn of_url(url: &str, path: &Path) -> ErrorList {
    let form = "; desired format: https://host[/path]";
    let Url { scheme, user, host, query, fragment } = match url::parse(url) {
        Ok(url) => url,
        Err(why) => {
            let why = format!("url must be a valid URL: {why}{form}");
            return vec![FieldError::required(path, &why)];
        }
    };
    let mut errors = ErrorList::new();
    let mut fault = |value: &str, why: &str| errors.push(FieldError::invalid(path, value, why));
    if scheme != "https" {
        fault(&scheme, &format!("'https' is the only allowed URL scheme{form}"));
    }
    if host.is_empty() {
        fault(host, &format!("host must be specified{form}"));
    }
    if let Some(user) = user {
        fault(user, "user information is not permitted in the URL");
    }
    if !fragment.is_empty() {
        fault(fragment, "fragments are not permitted in the URL");
    }
    if !query.is_empty() {
        fault(query, "query parameters are not permitted in the URL");
    }
    errors
}

fn of_service(service: &Value, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    // Upstream takes the one for the other where it says which of them is missing.
    for (given, told) in [("namespace", "name"), ("name", "namespace")] {
        if service[given].as_str().unwrap_or_default().is_empty() {
            errors.push(FieldError::required(&path.child(told), ""));
        }
    }
    let port = service["port"].as_i64().unwrap_or_default();
    if !(1..=65_535).contains(&port) {
        let why = "port is not valid: must be between 1 and 65535, inclusive";
        errors.push(FieldError::invalid(&path.child("port"), port, why));
    }
    let Some(given) = service["path"].as_str() else { return errors };
    let path = path.child("path");
    let mut fault = |why: &str| errors.push(FieldError::invalid(&path, given, why));
    match given {
        "" | "/" => {}
        "//" => fault("segment[0] may not be empty"),
        _ => {
            if !given.starts_with('/') {
                fault("must start with a '/'");
            }
            // What is first is taken for a slash, whatever it is.
            let rest: String = given.chars().skip(1).collect();
            for (at, step) in rest.strip_suffix('/').unwrap_or(&rest).split('/').enumerate() {
                if step.is_empty() {
                    fault(&format!("segment[{at}] may not be empty"));
                    continue;
                }
                for why in dns1123_subdomain(step) {
                    fault(&format!("segment[{at}]: {why}"));
                }
            }
        }
    }
    errors
}

fn of_reviews(versions: &[Value], old: Option<&Json>, path: &Path) -> ErrorList {
    if versions.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let is_known =
        |version: &Value| version.as_str().is_some_and(|version| REVIEWS.contains(&version));
    let mut errors = ErrorList::new();
    for (at, version) in versions.iter().enumerate() {
        let path = path.index(at);
        if versions[..at].contains(version) {
            errors.push(FieldError::invalid(&path, version, "duplicate version"));
            continue;
        }
        let faults = dns1035_label(version.as_str().unwrap_or_default());
        errors.extend(faults.iter().map(|why| FieldError::invalid(&path, version, why)));
    }
    let may_be_unknown = old.is_some_and(|old| {
        let keys = ["spec", "conversion", "webhook", "conversionReviewVersions"];
        let old = at(old, &keys).map(list).unwrap_or_default();
        !old.is_empty() && !old.iter().any(is_known)
    });
    if !may_be_unknown && !versions.iter().any(is_known) {
        let why = format!("must include at least one of {}", REVIEWS.join(", "));
        errors.push(FieldError::invalid(path, versions, &why));
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The end of a definition that is converted by a webhook, and whether it is established.
    fn definition(client: &Value, versions: &Value, is_established: bool) -> Json {
        let status = if is_established { "True" } else { "False" };
        let value = json!({
            "spec": {"conversion": {"strategy": "Webhook", "webhook": {
                "clientConfig": client, "conversionReviewVersions": versions}}},
            "status": {"conditions": [{"type": "Established", "status": status}]},
        });
        let Value::Object(object) = value else { unreachable!("it is one") };
        object
    }

    fn found(new: &Json, old: Option<&Json>) -> Vec<String> {
        let spec = new["spec"].as_object().unwrap();
        faults(spec, old, &Path::new("c")).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn webhooks_are_where_they_can_be() {
        let form = "; desired format: https://host[/path]";
        let service = |path: &str| {
            let service = json!({"name": "n", "namespace": "s", "port": 443, "path": path});
            json!({"service": service})
        };
        let cases = [
            (json!({"url": "https://example.com/x"}), vec![]),
            (service("/a/b/"), vec![]),
            (
                json!({"url": "http://u@example.com/x?q#f"}),
                vec![
                    format!(
                        "url: Invalid value: \"http\": 'https' is the only allowed URL scheme{form}"
                    ),
                    "url: Invalid value: \"u\": user information is not permitted in the URL"
                        .into(),
                    "url: Invalid value: \"f\": fragments are not permitted in the URL".into(),
                    "url: Invalid value: \"q\": query parameters are not permitted in the URL"
                        .into(),
                ],
            ),
            (
                json!({"url": "https://[::1"}),
                vec![format!(
                    "url: Required value: url must be a valid URL: parse \"https://[::1\": missing \
                     ']' in host{form}"
                )],
            ),
            (
                json!({"url": "https:///x"}),
                vec![format!("url: Invalid value: \"\": host must be specified{form}")],
            ),
            (
                json!({"service": {"name": "n", "port": 0}}),
                vec![
                    "service.name: Required value".into(),
                    "service.port: Invalid value: 0: port is not valid: must be between 1 and \
                     65535, inclusive"
                        .into(),
                ],
            ),
            (
                service("a//b"),
                vec![
                    "service.path: Invalid value: \"a//b\": must start with a '/'".into(),
                    "service.path: Invalid value: \"a//b\": segment[0] may not be empty".into(),
                    "service.path: Invalid value: \"a//b\": segment[1] may not be empty".into(),
                ],
            ),
        ];
        for (client, want) in cases {
            let want: Vec<String> =
                want.iter().map(|why| format!("c.webhookClientConfig.{why}")).collect();
            assert_eq!(found(&definition(&client, &json!(["v1"]), false), None), want, "{client}");
        }
    }

    #[test]
    fn reviews_have_versions_that_are_known() {
        let client = json!({"url": "https://example.com"});
        let with = |versions: Value| definition(&client, &versions, true);
        let path = "c.conversionReviewVersions";
        assert_eq!(found(&with(json!([])), None), [format!("{path}: Required value")]);
        assert_eq!(
            found(&with(json!(["v1", "v1"])), None),
            [format!("{path}[1]: Invalid value: \"v1\": duplicate version")]
        );
        let odd = with(json!(["v2"]));
        let why = "must include at least one of v1, v1beta1";
        assert_eq!(found(&odd, None), [format!("{path}: Invalid value: [\"v2\"]: {why}")]);
        assert!(found(&odd, Some(&odd)).is_empty());
    }

    #[test]
    fn placeholders_for_certificates_may_stay() {
        let with = |bundle: &str, is_established: bool| {
            let client = json!({"url": "https://example.com", "caBundle": bundle});
            definition(&client, &json!(["v1"]), is_established)
        };
        let pem = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n";
        let good = STANDARD.encode(pem);
        let wrong = |new: &Json, old: Option<&Json>| !found(new, old).is_empty();
        assert!(!wrong(&with("Cg==", false), None));
        assert!(!wrong(&with("Cg==", true), Some(&with("Cg==", true))));
        assert!(!wrong(&with(&good, true), Some(&with("Cg==", true))));
        assert!(!wrong(&with("Cg==", true), Some(&with("", false))));
        assert!(wrong(&with("Cg==", true), Some(&with("", true))));
        assert_eq!(
            found(&with("Cg==", true), Some(&with(&good, true))),
            ["c.webhookClientConfig.caBundle: Invalid value: \"Cg==\": unable to load root \
              certificates: unable to parse bytes as PEM block"]
        );
    }
}
