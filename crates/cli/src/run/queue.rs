//! `run --queue NAME`: jobs that name no queue wait in this one.

use anyhow::Result;
use lockstep_api::{
    labels::kueue::{PREBUILT_WORKLOAD, QUEUE_NAME},
    names,
};
use serde_json::{Value, json};

use super::submit::is_run;
use crate::{
    exit::{Ending, Exit},
    manifest::Manifest,
};

/// How long the value of a label may be.
const NAME_MAX: usize = 63;

/// A name that a LocalQueue may have and a label can hold.
pub(super) fn name(text: &str) -> Result<String, String> {
    match names::name_is_dns_subdomain(text, false).first() {
        Some(problem) => Err(problem.clone()),
        None if text.len() > NAME_MAX => Err(format!("it has more than {NAME_MAX} characters")),
        None => Ok(text.to_owned()),
    }
}

/// Puts every Job and JobSet that names no queue into `queue`.
///
/// # Errors
/// When there is neither a Job nor a JobSet.
pub(super) fn join(manifests: &mut [Manifest], queue: &str) -> Result<()> {
    let mut has_jobs = false;
    for manifest in manifests.iter_mut().filter(|it| is_run(it) && it.kind() != "Pod") {
        has_jobs = true;
        let metadata = manifest.object.entry("metadata").or_insert_with(|| json!({}));
        // What is no object is for the API to refuse.
        let Some(metadata) = metadata.as_object_mut() else { continue };
        let labels = metadata.entry("labels").or_insert_with(|| json!({}));
        if labels.is_null() {
            *labels = json!({});
        }
        if let Some(labels) = labels.as_object_mut() {
            labels.entry(QUEUE_NAME).or_insert_with(|| json!(queue));
        }
    }
    if has_jobs {
        return Ok(());
    }
    let message = format!(
        "error: --queue {queue}: there is no Job and no JobSet in these files, and pods by themselves \
         wait in no queue"
    );
    Err(Ending::error(Exit::Usage, message))
}

/// Whether a queue may decide when an object starts that was made: it names one, or somebody has
/// suspended it.
pub(super) fn may_hold(object: &Value) -> bool {
    let meta = &object["metadata"];
    let has_label = |key: &str| meta["labels"][key].is_string();
    has_label(QUEUE_NAME)
        || has_label(PREBUILT_WORKLOAD)
        || meta["annotations"][PREBUILT_WORKLOAD].is_string()
        || object["spec"]["suspend"] == true
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn jobs_that_name_no_queue_join_the_one_given() {
        let text = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a}\n---\n\
            apiVersion: batch/v1\nkind: Job\nmetadata:\n  name: b\n  labels: \
            {kueue.x-k8s.io/queue-name: own, x: y}\n---\n\
            apiVersion: jobset.x-k8s.io/v1alpha2\nkind: JobSet\nmetadata: {name: c, labels: }\n---\n\
            apiVersion: v1\nkind: Pod\nmetadata: {name: d}\n---\n\
            apiVersion: v1\nkind: ConfigMap\nmetadata: {name: e}\n";
        let mut manifests = manifest::parse("f.yaml", text).expect("YAML");
        join(&mut manifests, "team").expect("there are jobs");
        let queues: Vec<Option<&str>> = manifests
            .iter()
            .map(|it| it.object["metadata"]["labels"][QUEUE_NAME].as_str())
            .collect();
        assert_eq!(queues, [Some("team"), Some("own"), Some("team"), None, None]);
        let error = join(&mut manifests[3..], "team").expect_err("only a pod and its needs");
        assert_eq!(crate::exit::of(&error), Exit::Usage);
    }

    #[test]
    fn queues_have_names_that_a_label_can_hold() {
        for (text, is_name) in
            [("machine", true), ("team.a", true), ("Team", false), ("", false), ("a/b", false)]
        {
            assert_eq!(name(text).is_ok(), is_name, "{text:?}");
        }
        assert!(name(&"a".repeat(64)).is_err());
    }

    #[test]
    fn what_a_queue_may_hold_is_watched_for() {
        for (object, want) in [
            (json!({"metadata": {"name": "a"}}), false),
            (json!({"metadata": {"labels": {QUEUE_NAME: "team"}}}), true),
            (json!({"metadata": {"annotations": {PREBUILT_WORKLOAD: "w"}}}), true),
            (json!({"spec": {"suspend": true}}), true),
        ] {
            assert_eq!(may_hold(&object), want, "{object}");
        }
    }
}
