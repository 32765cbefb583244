//! Which flavors pods may be given.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use k8s_openapi::api::core::v1::{PodSpec, Taint, Toleration};
use lockstep_api::kueue::ResourceFlavor;

use super::{Fault, pool::Group};
use crate::plan::place::{may_run_on, untolerated};

/// All flavors there are.
pub(super) type Flavors = BTreeMap<String, Arc<ResourceFlavor>>;

/// The labels by which the flavors of a group are told apart.
pub(super) fn label_keys<'a>(flavors: &'a Flavors, group: &Group) -> BTreeSet<&'a str> {
    let known = group.flavors.iter().filter_map(|name| flavors.get(&**name));
    known.flat_map(|flavor| flavor.spec.node_labels.keys().map(String::as_str)).collect()
}

/// Why pods may not be given a flavor, if they may not.
pub(super) fn fault(
    flavors: &Flavors,
    name: &str,
    keys: &BTreeSet<&str>,
    pod: Option<&PodSpec>,
) -> Option<Fault> {
    let flavor_name = || name.to_owned();
    let Some(flavor) = flavors.get(name) else {
        return Some(Fault::Missing { flavor: flavor_name() });
    };
    let spec = &flavor.spec;
    let none = PodSpec::default();
    let pod = pod.unwrap_or(&none);
    if !spec.node_taints.is_empty() {
        let own = pod.tolerations.iter().flatten();
        let borne: Vec<Toleration> = own.chain(&spec.tolerations).cloned().collect();
        if let Some(taint) = untolerated(&borne, &spec.node_taints, &["NoSchedule", "NoExecute"]) {
            return Some(Fault::Tainted { flavor: flavor_name(), taint: shown(taint) });
        }
    }
    let may_run = may_run_on(pod, &spec.node_labels, keys);
    (!may_run).then(|| Fault::Affinity { flavor: flavor_name() })
}

/// A taint as users of Kueue know it from messages.
fn shown(taint: &Taint) -> String {
    let value = taint.value.as_deref().unwrap_or_default();
    let added = taint.time_added.as_ref().map_or_else(|| "<nil>".to_owned(), |at| at.0.to_string());
    format!("{{{} {value} {} {added}}}", taint.key, taint.effect)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    // rule: queueing 4.4.1
    // rule: queueing 1.3.2
    #[test]
    fn taints_and_affinity_decide_who_is_given_a_flavor() {
        let read = |name: &str, spec: Value| {
            let flavor = json!({"metadata": {"name": name}, "spec": spec});
            (name.to_owned(), Arc::new(serde_json::from_value(flavor).unwrap()))
        };
        let taint = |effect: &str| json!({"key": "instance", "value": "spot", "effect": effect});
        let flavors = Flavors::from([
            read("plain", json!({})),
            read("spot", json!({"nodeLabels": {"type": "spot"}})),
            read("tainted", json!({"nodeTaints": [taint("NoSchedule")]})),
            read("preferred", json!({"nodeTaints": [taint("PreferNoSchedule")]})),
            read(
                "borne",
                json!({"nodeTaints": [taint("NoExecute")], "tolerations": [{"operator": "Exists"}]}),
            ),
        ]);
        let any = json!({"containers": []});
        let tolerant = json!({"containers": [], "tolerations": [{"key": "instance",
            "operator": "Equal", "value": "spot"}]});
        let demanding = json!({"containers": [], "nodeSelector": {"type": "demand"}});
        let cases = [
            ("plain", &any, None),
            ("missing", &any, Some("flavor missing not found")),
            ("tainted", &tolerant, None),
            ("preferred", &any, None),
            ("borne", &any, None),
            (
                "tainted",
                &any,
                Some("untolerated taint {instance spot NoSchedule <nil>} in flavor tainted"),
            ),
            ("spot", &any, None),
            ("spot", &demanding, Some("flavor spot doesn't match node affinity")),
            ("plain", &demanding, Some("flavor plain doesn't match node affinity")),
        ];
        let keys = BTreeSet::from(["type"]);
        for (name, pod, want) in cases {
            let pod: PodSpec = serde_json::from_value(pod.clone()).unwrap();
            let got = fault(&flavors, name, &keys, Some(&pod)).map(|fault| fault.to_string());
            assert_eq!(got.as_deref(), want, "{name}");
        }
        assert_eq!(fault(&flavors, "plain", &keys, None), None, "a set without a template");
    }
}
