//! How little and how much pods and claims may ask for, with the words of upstream's LimitRanger.

use serde_json::Value;

use super::items;
use crate::{
    amounts::{self, Amounts},
    json::{at, list},
    quantity::{MILLI_VALUE_MAX, Quantity},
    strategy::Json,
};

/// Says which bounds of a range a pod does not keep.
pub fn pod_faults(range: &Json, pod: &Json) -> Vec<String> {
    let mut faults = Vec::new();
    let empty = Json::new();
    let spec = pod.get("spec").and_then(Value::as_object).unwrap_or(&empty);
    for item in list(range, &["spec", "limits"]) {
        let kind = item["type"].as_str().unwrap_or_default();
        match kind {
            "Container" => {
                let containers =
                    ["containers", "initContainers"].into_iter().flat_map(|key| list(spec, &[key]));
                for container in containers {
                    let has = |field| amounts::of_container(container, field);
                    enforce(item, kind, &has("requests"), &has("limits"), &mut faults);
                }
            }
            "Pod" => {
                let (requests, limits) = (of_pod(spec, "requests"), of_pod(spec, "limits"));
                enforce(item, kind, &requests, &limits, &mut faults);
            }
            _ => {}
        }
    }
    faults
}

/// Says which bounds of a range a claim does not keep.
pub fn claim_faults(range: &Json, claim: &Json) -> Vec<String> {
    let requests = &amounts::read(at(claim, &["spec", "resources", "requests"]));
    // A claim has no limits, whatever it says.
    let limits = &Amounts::new();
    let kind = "PersistentVolumeClaim";
    let mut faults = Vec::new();
    for item in items(range, kind) {
        for (name, bound) in &amounts::read(item.get("min")) {
            faults.extend(Asked { kind, name, requests, limits }.too_little(bound));
        }
        for (name, bound) in &amounts::read(item.get("max")) {
            faults.extend(Asked { kind, name, requests, limits }.request_too_much(bound));
        }
    }
    faults
}

/// What a pod has as a whole: what it says itself, else what its containers come to.
fn of_pod(spec: &Json, field: &str) -> Amounts {
    let mut total = amounts::of_containers(spec, field);
    let own = amounts::read(at(spec, &["resources", field]));
    total.extend(own.into_iter().filter(|(name, _)| matches!(name.as_str(), "cpu" | "memory")));
    total
}

fn enforce(
    item: &Value,
    kind: &str,
    requests: &Amounts,
    limits: &Amounts,
    faults: &mut Vec<String>,
) {
    for (name, bound) in &amounts::read(item.get("min")) {
        faults.extend(Asked { kind, name, requests, limits }.too_little(bound));
    }
    for (name, bound) in &amounts::read(item.get("max")) {
        faults.extend(Asked { kind, name, requests, limits }.too_much(bound));
    }
    for (name, bound) in &amounts::read(item.get("maxLimitRequestRatio")) {
        faults.extend(Asked { kind, name, requests, limits }.too_far_apart(bound));
    }
}

/// What is asked for of one resource.
#[derive(Clone, Copy)]
struct Asked<'a> {
    kind: &'a str,
    name: &'a str,
    requests: &'a Amounts,
    limits: &'a Amounts,
}

impl<'a> Asked<'a> {
    fn request(self) -> Option<&'a Quantity> {
        self.requests.get(self.name)
    }

    fn limit(self) -> Option<&'a Quantity> {
        self.limits.get(self.name)
    }

    /// Request, limit and bound as numbers that can be compared: in thousandths where these fit.
    fn numbers(self, bound: &Quantity) -> (i64, i64, i64) {
        let or_zero = |amount: Option<&Quantity>| amount.copied().unwrap_or(Quantity::ZERO);
        let all = [or_zero(self.request()), or_zero(self.limit()), *bound];
        let is_fine = all.iter().all(|amount| amount.value() <= MILLI_VALUE_MAX);
        let number = |amount: &Quantity| {
            if is_fine { amount.milli_value() } else { amount.value() }
        };
        (number(&all[0]), number(&all[1]), number(&all[2]))
    }

    fn too_little(self, bound: &Quantity) -> Option<String> {
        let (request, limit, least) = self.numbers(bound);
        let rule = format!("minimum {} usage per {} is {bound}", self.name, self.kind);
        let Some(asked) = self.request() else {
            return Some(format!("{rule}.  No request is specified"));
        };
        if request < least {
            return Some(format!("{rule}, but request is {asked}"));
        }
        let has = self.limit()?;
        (limit < least).then(|| format!("{rule}, but limit is {has}"))
    }

    fn too_much(self, bound: &Quantity) -> Option<String> {
        let (request, limit, most) = self.numbers(bound);
        let rule = format!("maximum {} usage per {} is {bound}", self.name, self.kind);
        let Some(has) = self.limit() else {
            return Some(format!("{rule}.  No limit is specified"));
        };
        if limit > most {
            return Some(format!("{rule}, but limit is {has}"));
        }
        let asked = self.request()?;
        (request > most).then(|| format!("{rule}, but request is {asked}"))
    }

    fn request_too_much(self, bound: &Quantity) -> Option<String> {
        let (request, _, most) = self.numbers(bound);
        let rule = format!("maximum {} usage per {} is {bound}", self.name, self.kind);
        let Some(asked) = self.request() else {
            return Some(format!("{rule}.  No request is specified"));
        };
        (request > most).then(|| format!("{rule}, but request is {asked}"))
    }

    fn too_far_apart(self, bound: &Quantity) -> Option<String> {
        let (request, limit, _) = self.numbers(bound);
        let rule = format!("{} max limit to request ratio per {} is {bound}", self.name, self.kind);
        if self.request().is_none() || request == 0 {
            return Some(format!("{rule}, but no request is specified or request is 0"));
        }
        if self.limit().is_none() || limit == 0 {
            return Some(format!("{rule}, but no limit is specified or limit is 0"));
        }
        let ratio = limit as f64 / request as f64;
        let is_beyond = if bound.value() <= MILLI_VALUE_MAX {
            ratio * 1000.0 > bound.milli_value() as f64
        } else {
            ratio > bound.value() as f64
        };
        is_beyond.then(|| format!("{rule}, but provided ratio is {ratio:.6}"))
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn range(item: &Value) -> Json {
        json!({"spec": {"limits": [item]}}).as_object().unwrap().clone()
    }

    fn container(resources: &Value) -> Json {
        let spec = json!({"containers": [{"name": "a", "resources": resources}]});
        json!({"spec": spec}).as_object().unwrap().clone()
    }

    #[test]
    fn containers_stay_within_bounds() {
        let both = json!({"type": "Container", "min": {"cpu": "100m"}, "max": {"cpu": "2"},
            "maxLimitRequestRatio": {"cpu": "1500m"}});
        let cases: [(&str, Value, &[&str]); 5] = [
            ("within", json!({"requests": {"cpu": "1"}, "limits": {"cpu": "1500m"}}), &[]),
            (
                "nothing said",
                json!({}),
                &[
                    "minimum cpu usage per Container is 100m.  No request is specified",
                    "maximum cpu usage per Container is 2.  No limit is specified",
                    "cpu max limit to request ratio per Container is 1500m, but no request is \
                     specified or request is 0",
                ],
            ),
            (
                "too little",
                json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "60m"}}),
                &["minimum cpu usage per Container is 100m, but request is 50m"],
            ),
            (
                "too much and too far apart",
                json!({"requests": {"cpu": "1"}, "limits": {"cpu": "3"}}),
                &[
                    "maximum cpu usage per Container is 2, but limit is 3",
                    "cpu max limit to request ratio per Container is 1500m, but provided ratio is \
                     3.000000",
                ],
            ),
            (
                "no limit",
                json!({"requests": {"cpu": "1"}}),
                &[
                    "maximum cpu usage per Container is 2.  No limit is specified",
                    "cpu max limit to request ratio per Container is 1500m, but no limit is \
                     specified or limit is 0",
                ],
            ),
        ];
        for (name, resources, want) in cases {
            assert_eq!(pod_faults(&range(&both), &container(&resources)), want, "{name}");
        }
    }

    #[test]
    fn a_pod_is_what_runs_together_and_what_it_says_itself() {
        let most = range(&json!({"type": "Pod", "max": {"cpu": "3"}}));
        let cpu = |amount: &str| json!({"requests": {"cpu": amount}, "limits": {"cpu": amount}});
        let pod = |spec: Value| json!({"spec": spec}).as_object().unwrap().clone();
        let containers = json!([{"resources": cpu("1")}, {"resources": cpu("1")}]);
        let sidecar = json!({"restartPolicy": "Always", "resources": cpu("1500m")});
        let initial = json!({"resources": cpu("2")});
        let cases: [(&str, Value, &[&str]); 5] = [
            ("the sum", json!({"containers": containers}), &[]),
            (
                "a sidecar counts as well",
                json!({"containers": containers, "initContainers": [sidecar]}),
                &["maximum cpu usage per Pod is 3, but limit is 3500m"],
            ),
            (
                "an init container runs alone",
                json!({"containers": containers, "initContainers": [initial]}),
                &[],
            ),
            (
                "or beside the sidecars before it",
                json!({"containers": [], "initContainers": [sidecar, initial]}),
                &["maximum cpu usage per Pod is 3, but limit is 3500m"],
            ),
            (
                "the pod's own word counts",
                json!({"containers": containers, "resources": cpu("4")}),
                &["maximum cpu usage per Pod is 3, but limit is 4"],
            ),
        ];
        for (name, spec, want) in cases {
            assert_eq!(pod_faults(&most, &pod(spec)), want, "{name}");
        }
    }

    #[test]
    fn claims_stay_within_bounds() {
        let item = json!({"type": "PersistentVolumeClaim", "min": {"storage": "1Gi"},
            "max": {"storage": "2Gi"}});
        let claim = |size: &str| {
            let spec = json!({"resources": {"requests": {"storage": size}}});
            json!({"spec": spec}).as_object().unwrap().clone()
        };
        assert!(claim_faults(&range(&item), &claim("1Gi")).is_empty());
        assert_eq!(
            claim_faults(&range(&item), &claim("1Mi")),
            ["minimum storage usage per PersistentVolumeClaim is 1Gi, but request is 1Mi"]
        );
        assert_eq!(
            claim_faults(&range(&item), &claim("3Gi")),
            ["maximum storage usage per PersistentVolumeClaim is 2Gi, but request is 3Gi"]
        );
    }
}
