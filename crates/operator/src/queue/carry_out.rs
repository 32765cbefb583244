//! Carrying out the steps of one pass over a Workload.

use std::sync::Arc;

use kube::Api;
use kube::api::{DeleteParams, Patch, Preconditions};
use lockstep_api::kueue::Workload;
use lockstep_api::labels::kueue::RESOURCE_IN_USE;
use lockstep_control::plan::workload::Step;
use lockstep_control::plan::{Key, Refusal};
use serde_json::{Value, json};

use super::Message;
use crate::metrics::{Metrics, QueueMetrics};
use crate::passes::{Kind, Pass};
use crate::requests::refusal;
use crate::write;

/// What became of a request.
pub(super) enum Answer {
    Written(Arc<Workload>),
    Deleted,
    Failed(Refusal),
}

/// Passes over Workloads.
pub(super) enum OfWorkloads {}

impl Kind for OfWorkloads {
    type Key = Key;
    /// With the Workload it was planned on.
    type Step = (Arc<Workload>, Step);
    type Answer = Answer;
    type Message = Message;
    type Shared = ();

    const NAME: &'static str = "workload";

    fn queue(metrics: &Metrics) -> &QueueMetrics {
        &metrics.workload_queue
    }

    fn only_tells((_, step): &Self::Step) -> bool {
        !step.is_change()
    }

    fn is_fine(answer: &Answer) -> bool {
        !matches!(answer, Answer::Failed(_))
    }

    fn failed(refusal: Refusal) -> Answer {
        Answer::Failed(refusal)
    }

    async fn carry_out(pass: &Pass<Self>, (workload, step): Self::Step) -> bool {
        let Key { namespace, name } = &pass.key;
        let uid = pass.uid();
        let version = workload.metadata.resource_version.as_deref().unwrap_or_default();
        let written = match step {
            Step::WriteStatus(status) => {
                let object = (namespace.as_str(), name.as_str(), uid);
                write::workload_status(pass.client(), object, version, &status).await
            }
            Step::Deactivate => patch(pass, version, json!({"spec": {"active": false}})).await,
            Step::SetPriority(value) => {
                patch(pass, version, json!({"spec": {"priority": value}})).await
            }
            Step::RemoveFinalizer => {
                let known = workload.metadata.finalizers.iter().flatten();
                let left: Vec<&String> = known.filter(|name| *name != RESOURCE_IN_USE).collect();
                patch(pass, version, json!({"metadata": {"finalizers": left}})).await
            }
            Step::Delete => return delete(pass).await,
            Step::Emit(event) => {
                pass.record(event);
                return true;
            }
            Step::Note(fact) => {
                pass.metrics().kueue.note(&fact, &workload);
                return true;
            }
        };
        pass.tell(match written {
            Ok(workload) => Answer::Written(Arc::new(workload)),
            Err(error) => Answer::Failed(refusal(&error)),
        })
        .await
    }
}

async fn patch(
    pass: &Pass<OfWorkloads>,
    version: &str,
    mut patch: Value,
) -> kube::Result<Workload> {
    patch["metadata"]["uid"] = pass.uid().into();
    patch["metadata"]["resourceVersion"] = version.into();
    let Key { namespace, name } = &pass.key;
    write::patch(pass.client(), (namespace, name), &Patch::Merge(patch)).await
}

async fn delete(pass: &Pass<OfWorkloads>) -> bool {
    let api: Api<Workload> = Api::namespaced(pass.client().clone(), &pass.key.namespace);
    let same = Preconditions { uid: Some(pass.uid().to_owned()), resource_version: None };
    let params = DeleteParams { preconditions: Some(same), ..DeleteParams::background() };
    pass.tell(match api.delete(&pass.key.name, &params).await {
        Ok(_) => Answer::Deleted,
        Err(error) => Answer::Failed(refusal(&error)),
    })
    .await
}
