//! The order in which a gang is told of pods.

use std::cmp::Reverse;
use std::sync::Arc;

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;
use lockstep_api::labels::jobset as labels;

use super::leader::state;

/// Puts pods into the order in which they were made, which neither a listing nor a map has. Those
/// of one place matter: whoever is told of later is taken for the later one. Times are in whole
/// seconds, so of two of one second the one that has ended was the first.
pub(super) fn in_order(pods: &mut [Arc<Pod>]) {
    let number = |pod: &Pod, key: &str| -> Option<u32> { pod.labels().get(key)?.parse().ok() };
    pods.sort_by_cached_key(|pod| {
        let attempt = number(pod, labels::RESTART_ATTEMPT);
        let own_attempt = number(pod, labels::JOB_RESTART_ATTEMPT);
        let made = pod.creation_timestamp().map(|time| time.0);
        (attempt, own_attempt, made, Reverse(state(pod)), pod.name_any())
    });
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn pod(name: &str, attempts: (&str, &str), second: u32, status: Value) -> Arc<Pod> {
        let labels = json!({labels::RESTART_ATTEMPT: attempts.0,
                            labels::JOB_RESTART_ATTEMPT: attempts.1});
        let made = format!("2026-11-15T12:00:{second:02}Z");
        let object = json!({
            "metadata": {"name": name, "creationTimestamp": made, "labels": labels},
            "status": status,
        });
        Arc::new(serde_json::from_value(object).unwrap())
    }

    fn ordered(mut pods: Vec<Arc<Pod>>) -> Vec<String> {
        in_order(&mut pods);
        pods.iter().map(|pod| pod.name_any()).collect()
    }

    #[test]
    fn who_was_made_later_comes_later() {
        let running = || json!({"phase": "Running"});
        let failed = || json!({"phase": "Failed"});
        let cases = [
            ("by time", pod("b", ("0", "0"), 1, running()), pod("a", ("0", "0"), 2, running())),
            (
                "in one second",
                pod("b", ("0", "0"), 1, failed()),
                pod("a", ("0", "0"), 1, running()),
            ),
            ("by attempt", pod("b", ("9", "0"), 2, failed()), pod("a", ("10", "0"), 1, running())),
            ("of a Job", pod("b", ("1", "0"), 2, running()), pod("a", ("1", "1"), 1, failed())),
        ];
        for (name, first, second) in cases {
            assert_eq!(ordered(vec![first.clone(), second.clone()]), ["b", "a"], "{name}");
            assert_eq!(ordered(vec![second, first]), ["b", "a"], "{name}");
        }
    }
}
