//! Which place in the gang a pod fills.

use std::collections::BTreeMap;
use std::ops::Range;

use k8s_openapi::api::core::v1::Pod;
use lockstep_api::{
    jobset::{JobSet, JobSetSpec, JobSetStatus, names},
    labels::{COMPLETION_INDEX, jobset as keys},
};

/// The places of a set's workers: those of each Job follow each other, in the order of its Jobs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seats {
    set_name: String,
    /// Of each Job, by replicated job and index.
    jobs: BTreeMap<(String, i32), Range<u32>>,
    count: u32,
}

/// The generation of the pods that a set makes now: one for each attempt.
pub fn generation(status: &JobSetStatus) -> u32 {
    u32::try_from(status.restarts).unwrap_or_default().saturating_add(1)
}

impl Seats {
    /// Those of a set.
    pub fn of(jobset: &JobSet) -> Self {
        let set_name = jobset.metadata.name.clone().unwrap_or_default();
        let mut seats = Self { set_name, ..Self::default() };
        for (name, index, range) in places(&jobset.spec) {
            seats.count = seats.count.max(range.end);
            seats.jobs.insert((name, index), range);
        }
        seats
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count
    }

    /// The place of a pod, and the generation it was made for; none if it is no worker of the set.
    pub fn seat(&self, pod: &Pod) -> Option<(u32, u32)> {
        let meta = &pod.metadata;
        let label = |key: &str| {
            let annotations = meta.annotations.as_ref();
            let labels = meta.labels.as_ref().and_then(|labels| labels.get(key));
            labels.or_else(|| annotations.and_then(|annotations| annotations.get(key)))
        };
        let number = |key: &str| label(key)?.parse::<u32>().ok();
        let index = i32::try_from(number(keys::JOB_INDEX)?).ok()?;
        let job = self.jobs.get(&(label(keys::REPLICATED_JOB_NAME)?.clone(), index))?;
        let slot = job.start.checked_add(number(COMPLETION_INDEX)?)?;
        let generation = number(keys::RESTART_ATTEMPT)?.checked_add(1)?;
        job.contains(&slot).then_some((slot, generation))
    }

    /// The Job of a place, and the worker there: its host name.
    pub fn worker(&self, slot: u32) -> Option<(String, String)> {
        let mut jobs = self.jobs.iter();
        let ((name, index), range) = jobs.find(|(_, range)| range.contains(&slot))?;
        let job = names::job(&self.set_name, name, i64::from(*index));
        let place = i64::from(slot - range.start);
        Some((job, names::pod(&self.set_name, name, i64::from(*index), place)))
    }
}

/// The places of the workers of each Job, in the order of the Jobs.
pub(super) fn places(spec: &JobSetSpec) -> Vec<(String, i32, Range<u32>)> {
    let mut first = 0_u32;
    let mut places = Vec::new();
    for group in &spec.replicated_jobs {
        let job = group.template.spec.as_ref();
        let pods = job.and_then(|job| job.parallelism).unwrap_or(1);
        let pods = u32::try_from(pods).unwrap_or_default();
        for index in 0..group.replicas {
            let end = first.saturating_add(pods);
            places.push((group.name.clone(), index, first..end));
            first = end;
        }
    }
    places
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn jobset() -> JobSet {
        serde_json::from_value(json!({
            "metadata": {"name": "js"},
            "spec": {"replicatedJobs": [
                {"name": "driver", "replicas": 1, "template": {"spec": {"template": {}}}},
                {"name": "none", "replicas": 0, "template": {"spec": {"template": {}}}},
                {"name": "w", "replicas": 2,
                 "template": {"spec": {"parallelism": 3, "template": {}}}},
            ]},
        }))
        .unwrap()
    }

    fn pod(labels: &Value) -> Pod {
        serde_json::from_value(json!({"metadata": {"name": "p", "labels": labels}})).unwrap()
    }

    #[test]
    fn places_are_counted_through_all_jobs() {
        let places = places(&jobset().spec);
        let want = [("driver", 0, 0..1), ("w", 0, 1..4), ("w", 1, 4..7)];
        let want = want.map(|(name, index, range)| (name.to_owned(), index, range));
        assert_eq!(places, want);
    }

    #[test]
    fn a_pod_is_known_by_its_job_its_index_and_its_attempt() {
        let seats = Seats::of(&jobset());
        assert_eq!(seats.count(), 7);
        let labels = |group: &str, job: &str, index: &str, attempt: &str| {
            json!({keys::REPLICATED_JOB_NAME: group, keys::JOB_INDEX: job,
                   COMPLETION_INDEX: index, keys::RESTART_ATTEMPT: attempt})
        };
        let seat = |value: &Value| seats.seat(&pod(value));
        assert_eq!(seat(&labels("driver", "0", "0", "0")), Some((0, 1)));
        assert_eq!(seat(&labels("w", "1", "2", "4")), Some((6, 5)));
        for none in [
            labels("w", "2", "0", "0"),
            labels("w", "1", "3", "0"),
            labels("x", "0", "0", "0"),
            labels("w", "0", "-1", "0"),
            labels("w", "0", "0", "first"),
            json!({}),
        ] {
            assert_eq!(seat(&none), None, "{none}");
        }
        assert_eq!(seats.worker(6), Some(("js-w-1".to_owned(), "js-w-1-2".to_owned())));
        assert_eq!(seats.worker(7), None);
    }
}
