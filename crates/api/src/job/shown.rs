//! Parts of a Job as error messages show them.
//!
//! Kubernetes prints the value it refuses in the shape it has inside the API server: Go's names, in
//! Go's order, and nothing left out. Clients have come to expect these texts.

use k8s_openapi::api::batch::v1::{PodFailurePolicy, SuccessPolicy, UncountedTerminatedPods};
use serde::Serialize;

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Rules<R> {
    rules: Vec<R>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct SuccessRule<'a> {
    succeeded_indexes: Option<&'a str>,
    succeeded_count: Option<i32>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct FailureRule<'a> {
    action: &'a str,
    on_exit_codes: Option<ExitCodes<'a>>,
    on_pod_conditions: Option<Vec<Pattern<'a>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct ExitCodes<'a> {
    container_name: Option<&'a str>,
    operator: &'a str,
    values: &'a [i32],
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Pattern<'a> {
    r#type: &'a str,
    status: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "PascalCase")]
struct Uncounted<'a> {
    succeeded: Option<&'a [String]>,
    failed: Option<&'a [String]>,
}

/// `spec.successPolicy`.
pub(super) fn success(policy: &SuccessPolicy) -> impl Serialize {
    let rules = policy.rules.iter().map(|rule| SuccessRule {
        succeeded_indexes: rule.succeeded_indexes.as_deref(),
        succeeded_count: rule.succeeded_count,
    });
    Rules { rules: rules.collect() }
}

/// `spec.podFailurePolicy`.
pub(super) fn failure(policy: &PodFailurePolicy) -> impl Serialize {
    let rules = policy.rules.iter().map(|rule| FailureRule {
        action: &rule.action,
        on_exit_codes: rule.on_exit_codes.as_ref().map(|codes| ExitCodes {
            container_name: codes.container_name.as_deref(),
            operator: &codes.operator,
            values: &codes.values,
        }),
        on_pod_conditions: rule.on_pod_conditions.as_ref().map(|patterns| {
            let patterns = patterns.iter();
            patterns
                .map(|pattern| Pattern {
                    r#type: &pattern.type_,
                    status: pattern.status.as_deref().unwrap_or_default(),
                })
                .collect()
        }),
    });
    Rules { rules: rules.collect() }
}

/// `status.uncountedTerminatedPods`.
pub(super) fn uncounted(pods: &UncountedTerminatedPods) -> impl Serialize {
    Uncounted { succeeded: pods.succeeded.as_deref(), failed: pods.failed.as_deref() }
}

#[cfg(test)]
mod tests {
    use serde::de::DeserializeOwned;
    use serde_json::{Value, json};

    use super::*;

    fn parsed<T: DeserializeOwned>(value: Value) -> T {
        serde_json::from_value(value).unwrap()
    }

    #[test]
    fn values_have_the_names_and_order_of_go() {
        let policy = parsed(json!({"rules": [
            {"succeededCount": 1},
            {"succeededIndexes": "0-2", "succeededCount": 2},
        ]}));
        assert_eq!(
            serde_json::to_string(&success(&policy)).unwrap(),
            r#"{"Rules":[{"SucceededIndexes":null,"SucceededCount":1},{"SucceededIndexes":"0-2","SucceededCount":2}]}"#
        );
        let policy = parsed(json!({"rules": [
            {"action": "FailJob", "onExitCodes": {"operator": "In", "values": [1]}},
            {"action": "Ignore", "onPodConditions": [{"type": "A", "status": "True"}]},
        ]}));
        assert_eq!(
            serde_json::to_string(&failure(&policy)).unwrap(),
            r#"{"Rules":[{"Action":"FailJob","OnExitCodes":{"ContainerName":null,"Operator":"In","Values":[1]},"OnPodConditions":null},{"Action":"Ignore","OnExitCodes":null,"OnPodConditions":[{"Type":"A","Status":"True"}]}]}"#
        );
        let pods = parsed(json!({"failed": ["a"]}));
        assert_eq!(
            serde_json::to_string(&uncounted(&pods)).unwrap(),
            r#"{"Succeeded":null,"Failed":["a"]}"#
        );
    }
}
