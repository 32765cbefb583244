//! What a cluster makes of pods when they are created: containers that say nothing of a resource
//! get what a LimitRange has for them, and pods have the overhead of their RuntimeClass. Quota is
//! for the pods that will run, so this is counted before there are any.

use std::{borrow::Cow, collections::BTreeMap, sync::Arc};

use k8s_openapi::{
    api::{
        core::v1::{Container, LimitRange, LimitRangeItem, PodSpec, ResourceRequirements},
        node::v1::RuntimeClass,
    },
    apimachinery::pkg::api::resource::Quantity,
};

use super::{amount, request::pods_path};

type Quantities = BTreeMap<String, Quantity>;

/// All LimitRanges, and the overhead of all RuntimeClasses that have one.
#[derive(Clone, Debug, Default)]
pub(super) struct Additions {
    ranges: BTreeMap<String, Namespace>,
    overheads: BTreeMap<String, Quantities>,
}

/// The LimitRanges of a namespace, and what they come to.
#[derive(Clone, Debug, Default)]
struct Namespace {
    ranges: BTreeMap<String, Arc<LimitRange>>,
    containers: Bounds,
    pods: Bounds,
}

/// What the ranges of a namespace come to for containers, or for pods: of several defaults the
/// first counts, of several bounds the narrowest.
#[derive(Clone, Debug, Default, PartialEq)]
struct Bounds {
    limits: Quantities,
    requests: Quantities,
    least: BTreeMap<String, i64>,
    most: BTreeMap<String, i64>,
}

impl Additions {
    /// Notes a LimitRange; whether anything counts otherwise now.
    pub(super) fn put_range(
        &mut self,
        namespace: &str,
        name: &str,
        range: &Arc<LimitRange>,
    ) -> bool {
        let here = self.ranges.entry(namespace.to_owned()).or_default();
        here.ranges.insert(name.to_owned(), Arc::clone(range));
        here.sum_up()
    }

    /// Forgets a LimitRange; whether anything counts otherwise now.
    pub(super) fn remove_range(&mut self, namespace: &str, name: &str) -> bool {
        let Some(here) = self.ranges.get_mut(namespace) else { return false };
        here.ranges.remove(name);
        let is_changed = here.sum_up();
        if here.ranges.is_empty() {
            self.ranges.remove(namespace);
        }
        is_changed
    }

    /// Notes a RuntimeClass; whether its pods have another overhead now.
    pub(super) fn put_class(&mut self, name: &str, class: &RuntimeClass) -> bool {
        let overhead = class.overhead.as_ref().and_then(|it| it.pod_fixed.clone());
        match overhead.filter(|it| !it.is_empty()) {
            None => self.remove_class(name),
            Some(overhead) if self.overheads.get(name) == Some(&overhead) => false,
            Some(overhead) => {
                self.overheads.insert(name.to_owned(), overhead);
                true
            }
        }
    }

    /// Forgets a RuntimeClass; whether its pods had an overhead.
    pub(super) fn remove_class(&mut self, name: &str) -> bool {
        self.overheads.remove(name).is_some()
    }

    /// The pod as it will be when it is created in a namespace. Whoever has limits alone requests
    /// as much already.
    pub(super) fn complete<'a>(
        &self,
        namespace: &str,
        mut spec: Cow<'a, PodSpec>,
    ) -> Cow<'a, PodSpec> {
        let has_own = spec.overhead.as_ref().is_some_and(|it| !it.is_empty());
        let class = spec.runtime_class_name.as_ref().filter(|_| !has_own);
        if let Some(overhead) = class.and_then(|class| self.overheads.get(class)) {
            spec.to_mut().overhead = Some(overhead.clone());
        }
        let here = self.ranges.get(namespace).map(|here| &here.containers);
        if let Some(here) = here.filter(|it| !it.limits.is_empty() || !it.requests.is_empty()) {
            let spec = spec.to_mut();
            let initial = spec.init_containers.iter_mut().flatten();
            for container in spec.containers.iter_mut().chain(initial) {
                let resources = container.resources.get_or_insert_default();
                fill(resources.limits.get_or_insert_default(), &here.limits);
                fill(resources.requests.get_or_insert_default(), &here.requests);
            }
        }
        spec
    }

    /// What of the completed pods of a set is beyond the bounds of their namespace; `total` is what
    /// one asks for as a whole.
    pub(super) fn faults(
        &self,
        namespace: &str,
        (set, spec): (usize, &PodSpec),
        total: impl FnOnce() -> BTreeMap<String, i64>,
    ) -> Vec<String> {
        let Some(here) = self.ranges.get(namespace) else { return Vec::new() };
        let path = pods_path(set);
        let mut faults = Vec::new();
        let initial = spec.init_containers.iter().flatten().enumerate();
        let initial = initial.map(|it| ("initContainers", it));
        let main = spec.containers.iter().enumerate().map(|it| ("containers", it));
        for (list, (at, container)) in initial.chain(main) {
            let (least, most) = extremes(container);
            here.containers.judge(&format!("{path}.{list}[{at}]"), (&least, &most), &mut faults);
        }
        if here.pods != Bounds::default() {
            let total = total();
            here.pods.judge(&path, (&total, &total), &mut faults);
        }
        faults
    }
}

impl Namespace {
    /// Sums up what the ranges say; whether that is something else than before.
    fn sum_up(&mut self) -> bool {
        let items = || self.ranges.values().filter_map(|range| range.spec.as_ref());
        let items = || items().flat_map(|spec| &spec.limits);
        let of = |kind: &str| Bounds::of(items().filter(|item| item.type_ == kind));
        let (containers, pods) = (of("Container"), of("Pod"));
        let is_changed = (&containers, &pods) != (&self.containers, &self.pods);
        (self.containers, self.pods) = (containers, pods);
        is_changed
    }
}

impl Bounds {
    fn of<'a>(items: impl Iterator<Item = &'a LimitRangeItem>) -> Self {
        let mut bounds = Self::default();
        for item in items {
            fill(&mut bounds.limits, item.default.as_ref().unwrap_or(&Quantities::new()));
            fill(&mut bounds.requests, item.default_request.as_ref().unwrap_or(&Quantities::new()));
            merge(&mut bounds.least, item.min.as_ref(), i64::max);
            merge(&mut bounds.most, item.max.as_ref(), i64::min);
        }
        bounds
    }

    /// Says what is above the most and below the least there may be.
    fn judge(
        &self,
        path: &str,
        (least, most): (&BTreeMap<String, i64>, &BTreeMap<String, i64>),
        faults: &mut Vec<String>,
    ) {
        let beyond = |more: &BTreeMap<String, i64>, than: &BTreeMap<String, i64>| -> Vec<String> {
            let more = more.iter();
            let more = more.filter(|(name, it)| than.get(*name).is_some_and(|than| *it > than));
            more.map(|(name, _)| name.clone()).collect()
        };
        let above = (beyond(most, &self.most), "requests must not be above the limitRange max");
        let below = (beyond(&self.least, least), "requests must not be below the limitRange min");
        for (names, words) in [above, below] {
            if !names.is_empty() {
                faults.push(format!("{path}: Invalid value: {names:?}: {words}"));
            }
        }
    }
}

/// The least and the most of each resource that a container has as a request or a limit.
fn extremes(container: &Container) -> (BTreeMap<String, i64>, BTreeMap<String, i64>) {
    let none = ResourceRequirements::default();
    let resources = container.resources.as_ref().unwrap_or(&none);
    let (mut least, mut most) = (BTreeMap::new(), BTreeMap::new());
    for amounts in [&resources.requests, &resources.limits] {
        merge(&mut least, amounts.as_ref(), i64::min);
        merge(&mut most, amounts.as_ref(), i64::max);
    }
    (least, most)
}

/// Gives `amounts` what it has nothing of.
fn fill(amounts: &mut Quantities, defaults: &Quantities) {
    for (name, amount) in defaults {
        amounts.entry(name.clone()).or_insert_with(|| amount.clone());
    }
}

/// Gives `amounts` what it has nothing of, and of all else what `choose` says.
fn merge(
    amounts: &mut BTreeMap<String, i64>,
    others: Option<&Quantities>,
    choose: fn(i64, i64) -> i64,
) {
    for (name, other) in others.into_iter().flatten() {
        let Some(other) = amount::read(name, other) else { continue };
        let own = amounts.entry(name.clone()).or_insert(other);
        *own = choose(*own, other);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn range(items: &Value) -> Arc<LimitRange> {
        Arc::new(serde_json::from_value(json!({"spec": {"limits": items}})).unwrap())
    }

    fn pod(spec: Value) -> PodSpec {
        serde_json::from_value(spec).unwrap()
    }

    #[test]
    fn of_several_ranges_the_first_default_and_the_narrowest_bound_count() {
        let mut known = Additions::default();
        let first = range(&json!([{"type": "Container", "default": {"cpu": "2"},
                                   "defaultRequest": {"cpu": "1"}, "max": {"cpu": "8"}}]));
        let second = range(&json!([{"type": "Container", "default": {"cpu": "4", "memory": "1Gi"},
                                    "defaultRequest": {"cpu": "3"}, "max": {"cpu": "4"}}]));
        assert!(known.put_range("ns", "a", &first));
        assert!(known.put_range("ns", "b", &second));
        assert!(!known.put_range("ns", "b", &second), "nothing counts otherwise");
        let plain = pod(json!({"containers": [{"name": "c"}]}));
        let filled = json!({"limits": {"cpu": "2", "memory": "1Gi"}, "requests": {"cpu": "1"}});
        let done = known.complete("ns", Cow::Borrowed(&plain));
        assert_eq!(json!(done.containers[0].resources), filled);
        assert!(matches!(known.complete("other", Cow::Borrowed(&plain)), Cow::Borrowed(_)));
        let large = pod(json!({"containers": [{"resources": {"requests": {"cpu": "5"}}}]}));
        let want = ["spec.podSets[0].template.spec.containers[0]: Invalid value: [\"cpu\"]: \
                     requests must not be above the limitRange max"];
        assert_eq!(known.faults("ns", (0, &large), BTreeMap::new), want);
        assert!(known.remove_range("ns", "b"));
        assert!(known.faults("ns", (0, &large), BTreeMap::new).is_empty(), "up to 8");
        assert!(known.remove_range("ns", "a"));
        assert!(!known.remove_range("ns", "a"));
    }

    #[test]
    fn containers_and_pods_keep_within_their_bounds() {
        let mut known = Additions::default();
        known.put_range(
            "ns",
            "a",
            &range(&json!([
                {"type": "Container", "min": {"cpu": "100m"}, "max": {"memory": "1Gi"}},
                {"type": "Pod", "min": {"cpu": "1"}, "max": {"cpu": "3"}},
            ])),
        );
        let of = |resources: Value| {
            pod(json!({"initContainers": [{"resources": resources}],
                                               "containers": []}))
        };
        let total = |cpu: i64| move || BTreeMap::from([("cpu".to_owned(), cpu)]);
        /// Place, resource and end of the words of a fault.
        type Said = (&'static str, &'static str, &'static str);
        let (above, below) = ("above the limitRange max", "below the limitRange min");
        // Resources of the container, CPU of the pod -> what is said.
        let cases: [(Value, i64, &[Said]); 4] = [
            (json!({"requests": {"cpu": "1"}}), 1000, &[]),
            (
                json!({"requests": {"cpu": "50m"}, "limits": {"cpu": "2", "memory": "2Gi"}}),
                1000,
                &[(".initContainers[0]", "memory", above), (".initContainers[0]", "cpu", below)],
            ),
            (json!({}), 4000, &[("", "cpu", above)]),
            (json!({}), 500, &[("", "cpu", below)]),
        ];
        for (resources, cpu, want) in cases {
            let got = known.faults("ns", (3, &of(resources.clone())), total(cpu));
            let want = want.iter().map(|(place, resource, words)| {
                format!(
                    "spec.podSets[3].template.spec{place}: Invalid value: [{resource:?}]: requests \
                     must not be {words}"
                )
            });
            assert_eq!(got, want.collect::<Vec<_>>(), "{resources} {cpu}");
        }
    }

    #[test]
    fn pods_have_the_overhead_of_their_class_unless_they_say_so_themselves() {
        let mut known = Additions::default();
        let class: RuntimeClass = serde_json::from_value(json!({
            "handler": "h", "overhead": {"podFixed": {"cpu": "250m"}}}))
        .unwrap();
        assert!(known.put_class("heavy", &class));
        assert!(!known.put_class("heavy", &class));
        let cpu = |spec: Value| {
            let spec = pod(spec);
            let done = known.complete("ns", Cow::Borrowed(&spec));
            done.overhead.as_ref().map(|overhead| overhead["cpu"].0.clone())
        };
        let classed = json!({"containers": [], "runtimeClassName": "heavy"});
        assert_eq!(cpu(classed.clone()).as_deref(), Some("250m"));
        let mut own = classed.clone();
        own["overhead"] = json!({"cpu": "1"});
        assert_eq!(cpu(own.clone()).as_deref(), Some("1"));
        own["overhead"] = json!({});
        assert_eq!(cpu(own).as_deref(), Some("250m"));
        assert_eq!(cpu(json!({"containers": []})), None);
        assert!(known.remove_class("heavy"));
    }
}
