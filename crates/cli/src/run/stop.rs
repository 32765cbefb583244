//! Ending what a run has started: JobSets and Jobs are suspended, those in queues deactivated, pods
//! are deleted.

use anyhow::Result;
use futures::future::join_all;
use lockstep_api::kueue;
use serde_json::json;

use super::model::Model;
use crate::{
    catalog::escape,
    cluster::{Cluster, Content},
    queueing::workload::State,
};

/// Where JobSets are.
const SETS: &str = "/apis/jobset.x-k8s.io/v1alpha2";

/// What is to be asked of the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Requests {
    suspend: Vec<String>,
    deactivate: Vec<String>,
    delete: Vec<String>,
}

/// What ends everything that has not ended.
pub(super) fn requests(model: &Model) -> Requests {
    let path = |root: &str, kind: &str, namespace: &str, name: &str| {
        format!("{root}/namespaces/{}/{kind}/{}", escape(namespace), escape(name))
    };
    let sets = model.sets.values().filter(|set| !set.has_ended());
    // A JobSet suspends its Jobs itself, and would resume what somebody else suspends.
    let jobs = || model.lone_jobs().filter(|job| !job.has_ended());
    // Whoever is in a queue would be resumed as well, now or when its turn comes.
    let queued = sets.clone().filter_map(|set| model.workload_of_set(set));
    let queued = queued.chain(jobs().filter_map(|job| model.workload_of_job(job)));
    let queued = queued.filter(|it| it.is_active && it.state() != State::Finished);
    let root = format!("/apis/{}", kueue::API_VERSION);
    let queued = queued.map(|it| path(&root, "workloads", &it.namespace, &it.name));
    let sets = sets.filter(|set| !set.is_suspended() && model.workload_of_set(set).is_none());
    let sets = sets.map(|set| path(SETS, "jobsets", &set.namespace, &set.name));
    let jobs = jobs().filter(|job| !job.is_suspended && model.workload_of_job(job).is_none());
    let jobs = jobs.map(|it| path("/apis/batch/v1", "jobs", &it.namespace, &it.name));
    let pods = model.bare_pods().filter(|pod| !pod.has_ended() && !pod.is_deleting);
    Requests {
        suspend: sets.chain(jobs).collect(),
        deactivate: queued.collect(),
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
        let off = json!({"spec": {"active": false}});
        let offs = self.deactivate.iter().map(|path| async {
            cluster.call_quietly("PATCH", path, Content::MergePatch(&off)).await
        });
        let deletes = self.delete.iter().map(|path| async {
            cluster.call("DELETE", path, "application/json", Content::Nothing).await
        });
        let (suspended, off, deleted) =
            futures::join!(join_all(suspends), join_all(offs), join_all(deletes));
        let answers = suspended.into_iter().chain(off).chain(deleted);
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
        let Requests { suspend, deactivate, delete } = requests(&model);
        let set = format!("{SETS}/namespaces/d/jobsets/set");
        assert_eq!(suspend, [&set, "/apis/batch/v1/namespaces/d/jobs/going"]);
        assert_eq!(delete, ["/api/v1/namespaces/d/pods/bare"]);
        assert!(deactivate.is_empty(), "nothing is in a queue");
    }

    #[test]
    fn jobs_in_queues_are_deactivated_whether_they_run_or_wait() {
        use crate::queueing::workload::tests::{admitted, condition, object};
        let mut model = Model::new(false);
        for name in ["runs", "waits", "over", "off"] {
            model.add(&json!({"kind": "Job", "metadata": {"namespace": "default", "name": name,
                "uid": name}, "spec": {"suspend": name != "runs"}}));
        }
        let over = json!({"conditions": [condition("Finished", true, "Succeeded", "m")]});
        let mut off = object("off", 0, json!({}));
        off["spec"]["active"] = json!(false);
        for workload in [
            object("runs", 0, admitted("4", None)),
            object("waits", 0, json!({})),
            object("over", 0, over),
            off,
        ] {
            model.see_workload(&workload);
        }
        let Requests { suspend, deactivate, .. } = requests(&model);
        let path = "/apis/kueue.x-k8s.io/v1beta2/namespaces/default/workloads";
        assert_eq!(deactivate, ["runs", "waits"].map(|name| format!("{path}/job-{name}-1a2b3")));
        assert!(suspend.is_empty(), "queues suspend what is theirs");
    }
}
