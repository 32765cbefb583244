//! The pods a Job creates.

use k8s_openapi::api::{
    batch::v1::Job,
    core::v1::{Container, EnvVar, EnvVarSource, ObjectFieldSelector, Pod},
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use lockstep_api::labels::{
    COMPLETION_INDEX, INDEX_FAILURE_COUNT, INDEX_IGNORED_FAILURE_COUNT, JOB_TRACKING_FINALIZER,
};

const INDEX_VARIABLE: &str = "JOB_COMPLETION_INDEX";

/// How often an index has failed before the pod that is to be made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct PastFailures {
    pub(crate) counted: i32,
    pub(crate) ignored: i32,
}

/// Builds a pod from the template of the Job.
pub(crate) fn pod(
    job: &Job,
    (name, prefix): (&str, String),
    index: Option<i32>,
    past: Option<PastFailures>,
) -> Pod {
    let template = job.spec.as_ref().map(|spec| &spec.template);
    let given = template.and_then(|template| template.metadata.as_ref());
    let mut labels = given.and_then(|meta| meta.labels.clone()).unwrap_or_default();
    let mut annotations = given.and_then(|meta| meta.annotations.clone()).unwrap_or_default();
    let mut finalizers = given.and_then(|meta| meta.finalizers.clone()).unwrap_or_default();
    let mut spec = template.and_then(|template| template.spec.clone()).unwrap_or_default();
    if let Some(index) = index {
        labels.insert(COMPLETION_INDEX.to_owned(), index.to_string());
        annotations.insert(COMPLETION_INDEX.to_owned(), index.to_string());
        spec.hostname = Some(format!("{}-{index}", job.metadata.name.as_deref().unwrap_or("")));
        let init = spec.init_containers.iter_mut().flatten();
        init.chain(&mut spec.containers).for_each(name_index);
    }
    if let Some(past) = past {
        annotations.insert(INDEX_FAILURE_COUNT.to_owned(), past.counted.to_string());
        if past.ignored > 0 {
            annotations.insert(INDEX_IGNORED_FAILURE_COUNT.to_owned(), past.ignored.to_string());
        }
    }
    if !finalizers.iter().any(|finalizer| finalizer == JOB_TRACKING_FINALIZER) {
        finalizers.push(JOB_TRACKING_FINALIZER.to_owned());
    }
    let metadata = ObjectMeta {
        name: Some(name.to_owned()),
        generate_name: Some(prefix),
        namespace: job.metadata.namespace.clone(),
        labels: Some(labels),
        annotations: Some(annotations).filter(|all| !all.is_empty()),
        finalizers: Some(finalizers),
        owner_references: Some(vec![owner(job)]),
        ..ObjectMeta::default()
    };
    Pod { metadata, spec: Some(spec), status: None }
}

fn owner(job: &Job) -> OwnerReference {
    OwnerReference {
        api_version: "batch/v1".to_owned(),
        kind: "Job".to_owned(),
        name: job.metadata.name.clone().unwrap_or_default(),
        uid: job.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// Tells a container its index, unless the template has its own idea of the variable.
fn name_index(container: &mut Container) {
    let variables = container.env.get_or_insert_default();
    if variables.iter().any(|variable| variable.name == INDEX_VARIABLE) {
        return;
    }
    let field = ObjectFieldSelector {
        field_path: format!("metadata.labels['{COMPLETION_INDEX}']"),
        ..ObjectFieldSelector::default()
    };
    variables.push(EnvVar {
        name: INDEX_VARIABLE.to_owned(),
        value_from: Some(EnvVarSource { field_ref: Some(field), ..EnvVarSource::default() }),
        ..EnvVar::default()
    });
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    fn job(template: Value) -> Job {
        Job::deserialize(json!({
            "metadata": {"name": "work", "namespace": "ns", "uid": "u"},
            "spec": {"template": template},
        }))
        .unwrap()
    }

    fn made(template: Value, index: Option<i32>, past: Option<PastFailures>) -> Value {
        let pod = pod(&job(template), ("work-abcde", "work-".into()), index, past);
        serde_json::to_value(pod).unwrap()
    }

    // rule: job 2.1
    #[test]
    fn a_pod_is_the_template_with_an_owner_and_a_finalizer() {
        let template = json!({
            "metadata": {"labels": {"a": "b"}, "annotations": {"c": "d"}, "finalizers": ["x/y"],
                "name": "ignored", "ownerReferences": [{"apiVersion": "v1", "kind": "Node",
                    "name": "n", "uid": "n"}]},
            "spec": {"hostname": "mine", "containers": [{"name": "c"}]},
        });
        let want = json!({
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {
                "name": "work-abcde",
                "generateName": "work-",
                "namespace": "ns",
                "labels": {"a": "b"},
                "annotations": {"c": "d"},
                "finalizers": ["x/y", "batch.kubernetes.io/job-tracking"],
                "ownerReferences": [{"apiVersion": "batch/v1", "kind": "Job", "name": "work",
                    "uid": "u", "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {"hostname": "mine", "containers": [{"name": "c"}]},
        });
        assert_eq!(made(template, None, None), want);
        let again = json!({"metadata": {"finalizers": ["batch.kubernetes.io/job-tracking"]}});
        let pod = made(again, None, None);
        assert_eq!(pod["metadata"]["finalizers"], json!(["batch.kubernetes.io/job-tracking"]));
    }

    // rule: job 2.1, job 6.1.17
    #[test]
    fn a_pod_of_an_index_is_told_which() {
        let own = json!([{"name": "JOB_COMPLETION_INDEX", "value": "mine"}]);
        let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {
            "hostname": "mine",
            "initContainers": [{"name": "i"}],
            "containers": [{"name": "c", "env": [{"name": "A", "value": "1"}]},
                {"name": "own", "env": own}],
        }});
        let past = PastFailures { counted: 2, ignored: 1 };
        let pod = made(template.clone(), Some(7), Some(past));
        let key = "batch.kubernetes.io/job-completion-index";
        assert_eq!(pod["metadata"]["labels"], json!({"a": "b", key: "7"}));
        assert_eq!(
            pod["metadata"]["annotations"],
            json!({key: "7", "batch.kubernetes.io/job-index-failure-count": "2",
                "batch.kubernetes.io/job-index-ignored-failure-count": "1"})
        );
        let variable = json!({"name": "JOB_COMPLETION_INDEX", "valueFrom": {"fieldRef":
            {"fieldPath": "metadata.labels['batch.kubernetes.io/job-completion-index']"}}});
        assert_eq!(pod["spec"]["hostname"], "work-7");
        assert_eq!(pod["spec"]["initContainers"][0]["env"], json!([variable]));
        assert_eq!(
            pod["spec"]["containers"][0]["env"],
            json!([{"name": "A", "value": "1"}, variable])
        );
        assert_eq!(pod["spec"]["containers"][1]["env"], own);
        let first = made(template, Some(0), Some(PastFailures::default()));
        assert_eq!(
            first["metadata"]["annotations"],
            json!({key: "0", "batch.kubernetes.io/job-index-failure-count": "0"})
        );
    }
}
