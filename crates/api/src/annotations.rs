//! Annotations of our own, and those that only look like them.

use serde_json::Value;

use crate::{
    field::Path,
    json::at,
    labels::{
        jobset::{IN_PLACE_PROGRESS, IN_PLACE_REJOIN, IN_PLACE_STALLED_MAX, RESTARTS_MAX_PREFIX},
        kueue::{
            BLOCK_ADMISSION, PODS_READY_RECOVERY_TIMEOUT, PODS_READY_TIMEOUT, REQUEUING_BASE,
            REQUEUING_LIMIT, REQUEUING_MAX, REQUEUING_TIMESTAMP, SIZED_FROM, SUCCEEDED_AT_START,
            WAIT_FOR_PODS_READY,
        },
    },
    strategy::Json,
};

/// What annotations of our own begin with.
const PREFIX: &str = "lockstep.dev/";

/// What users may say on queues, flavors and jobs.
const FOR_ALL: [&str; 8] = [
    WAIT_FOR_PODS_READY,
    PODS_READY_TIMEOUT,
    PODS_READY_RECOVERY_TIMEOUT,
    BLOCK_ADMISSION,
    REQUEUING_TIMESTAMP,
    REQUEUING_LIMIT,
    REQUEUING_BASE,
    REQUEUING_MAX,
];

/// What is known on Jobs beside that.
pub(crate) const OF_JOBS: &[&str] = &[SUCCEEDED_AT_START];
/// What is known on JobSets beside that.
pub(crate) const OF_JOB_SETS: &[&str] =
    &[IN_PLACE_REJOIN, IN_PLACE_STALLED_MAX, IN_PLACE_PROGRESS, RESTARTS_MAX_PREFIX];
/// What is known on queues and flavors beside that.
pub(crate) const OF_QUEUES: &[&str] = &[SIZED_FROM];

/// Warns of annotations that look like ours and mean nothing: of all of a new object, of those of
/// one that was there before that it did not have. `more` is what is known beside what is for all;
/// what ends with a dot stands for all that begins with it.
pub(crate) fn warnings(object: &Json, old: Option<&Json>, more: &[&'static str]) -> Vec<String> {
    let of = |object| at(object, &["metadata", "annotations"]).and_then(Value::as_object);
    let is_known = |key: &str| {
        let mut known = FOR_ALL.iter().chain(more);
        known.any(|known| key == *known || known.ends_with('.') && key.starts_with(known))
    };
    let keys = of(object).into_iter().flat_map(|all| all.keys());
    let keys = keys.filter(|key| key.starts_with(PREFIX) && !is_known(key));
    let was_there = |key: &str| old.and_then(of).is_some_and(|old| old.contains_key(key));
    let path = Path::new("metadata").child("annotations");
    let warning = |key: &String| {
        let known = FOR_ALL.iter().chain(more);
        let nearest = known.min_by_key(|known| strsim::osa_distance(key, known));
        let nearest = nearest.copied().unwrap_or_default();
        format!(
            "{}: there is no such annotation, it has no effect; the nearest is {nearest}",
            path.key(key)
        )
    };
    keys.filter(|key| !was_there(key)).map(warning).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn with(annotations: Value) -> Json {
        let object = json!({"metadata": {"annotations": annotations}});
        object.as_object().cloned().unwrap_or_default()
    }

    #[test]
    fn what_is_misspelt_is_told_with_what_was_meant() {
        let cases: [(&str, &[&str], Option<&str>); 8] = [
            ("lockstep.dev/pods-ready-timeout", OF_JOBS, None),
            ("lockstep.dev/pods-ready-timout", OF_JOBS, Some("lockstep.dev/pods-ready-timeout")),
            ("lockstep.dev/podsReadyTimeout", OF_QUEUES, Some("lockstep.dev/pods-ready-timeout")),
            ("lockstep.dev/block", OF_QUEUES, Some("lockstep.dev/block-admission")),
            ("lockstep.dev/max-restarts.rule", OF_JOB_SETS, None),
            ("lockstep.dev/max-restart.rule", OF_JOB_SETS, Some("lockstep.dev/max-restarts.")),
            ("lockstep.dev/succeeded-at-start", OF_JOBS, None),
            ("example.com/pods-ready-timout", OF_JOBS, None),
        ];
        for (key, more, want) in cases {
            let want: Vec<String> = want
                .map(|near| {
                    format!(
                        "metadata.annotations[{key}]: there is no such annotation, it has no \
                         effect; the nearest is {near}"
                    )
                })
                .into_iter()
                .collect();
            assert_eq!(warnings(&with(json!({key: "5m"})), None, more), want, "{key}");
        }
    }

    #[test]
    fn jobs_sets_queues_and_flavors_are_looked_at_in_all_versions() {
        let kinds = [
            ("batch", "v1", "jobs"),
            ("jobset.x-k8s.io", "v1alpha2", "jobsets"),
            ("kueue.x-k8s.io", "v1beta2", "clusterqueues"),
            ("kueue.x-k8s.io", "v1beta1", "localqueues"),
            ("kueue.x-k8s.io", "v1beta2", "resourceflavors"),
        ];
        let object = with(json!({"lockstep.dev/pods-ready-timout": "5m"}));
        let registry = crate::builtin::registry();
        for (group, version, plural) in kinds {
            let resource = registry.get(group, version, plural).expect("it is served");
            let told = resource.strategy.warnings(&object, None);
            let near = "the nearest is lockstep.dev/pods-ready-timeout";
            assert!(told.iter().any(|it| it.ends_with(near)), "{plural}: {told:?}");
        }
    }

    #[test]
    fn what_was_there_before_is_told_once() {
        let old = with(json!({"lockstep.dev/one": "1"}));
        let new = with(json!({"lockstep.dev/one": "2", "lockstep.dev/two": "2"}));
        let told = warnings(&new, Some(&old), OF_JOBS);
        assert_eq!(told.len(), 1, "{told:?}");
        assert!(told[0].contains("lockstep.dev/two"), "{told:?}");
        assert_eq!(warnings(&old, Some(&new), OF_JOBS), Vec::<String>::new());
    }
}
