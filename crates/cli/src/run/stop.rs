//! Ending what a run has started: JobSets and Jobs are suspended, pods are deleted.

use anyhow::Result;
use futures::future::join_all;
use serde_json::json;

use super::model::Model;
use crate::{
    catalog::escape,
    cluster::{Cluster, Content},
};

/// Where JobSets are.
const SETS: &str = "/apis/jobset.x-k8s.io/v1alpha2";

/// What is to be asked of the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requests {
    suspend: Vec<String>,
    delete: Vec<String>,
}

/// What ends everything that has not ended.
pub(super) fn requests(model: &Model) -> Requests {
    let path = |root: &str, kind: &str, namespace: &str, name: &str| {
        format!("{root}/namespaces/{}/{kind}/{}", escape(namespace), escape(name))
    };
    let sets = model.sets.values().filter(|set| !set.has_ended() && !set.is_suspended());
    let sets = sets.map(|set| path(SETS, "jobsets", &set.namespace, &set.name));
    // A JobSet suspends its Jobs itself, and would resume what somebody else suspends.
    let jobs = model.lone_jobs().filter(|job| !job.has_ended() && !job.is_suspended);
    let jobs = jobs.map(|it| path("/apis/batch/v1", "jobs", &it.namespace, &it.name));
    let pods = model.bare_pods().filter(|pod| !pod.has_ended() && !pod.is_deleting);
    Requests {
        suspend: sets.chain(jobs).collect(),
        delete: pods.map(|it| path("/api/v1", "pods", &it.namespace, &it.name)).collect(),
    }
}

impl Requests {
    /// Asks for all of it at once: the grace of one is not the waiting time of the next. Returns
    /// what could not be done.
    pub(super) async fn send(self, cluster: &Cluster) -> Vec<String> {
        let patch = json!({"spec": {"suspend": true}});
        let suspends = self.suspend.iter().map(|path| async {
            // What is to be said about the manifest was said when it was created.
            cluster.call_quietly("PATCH", path, Content::MergePatch(&patch)).await
        });
        let deletes = self.delete.iter().map(|path| async {
            cluster.call("DELETE", path, "application/json", Content::Nothing).await
        });
        let (suspended, deleted) = futures::join!(join_all(suspends), join_all(deletes));
        let answers = suspended.into_iter().chain(deleted);
        let refused = answers.filter_map(Result::err).filter(|refusal| !refusal.is_not_found());
        refused.map(|refusal| refusal.explain(Some("cannot end it"))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_and_jobs_are_suspended_and_bare_pods_deleted() {
        let mut model = Model::new(true);
        let meta = |name: &str| json!({"namespace": "d", "name": name});
        model.add(&json!({"kind": "Job", "metadata": meta("going")}));
        model.add(&json!({"kind": "Job", "metadata": meta("asleep"), "spec": {"suspend": true}}));
        model.add(&json!({"kind": "Job", "metadata": meta("over"), "status": {"conditions": [
            {"type": "Complete", "status": "True"}]}}));
        model.add(&json!({"kind": "JobSet", "metadata": meta("set")}));
        let mut child = meta("set-a-0");
        child["labels"] = json!({"jobset.sigs.k8s.io/jobset-name": "set"});
        model.see_job(&json!({"kind": "Job", "metadata": child}));
        assert_eq!(model.jobs.len(), 4, "the Job of the set is known");
        model.add(&json!({"kind": "Pod", "metadata": meta("bare")}));
        model.add(&json!({"kind": "Pod", "metadata": meta("done"),
            "status": {"phase": "Succeeded"}}));
        let Requests { suspend, delete } = requests(&model);
        let set = format!("{SETS}/namespaces/d/jobsets/set");
        assert_eq!(suspend, [&set, "/apis/batch/v1/namespaces/d/jobs/going"]);
        assert_eq!(delete, ["/api/v1/namespaces/d/pods/bare"]);
    }
}
