//! Placement: which node a pod goes to, as kube-scheduler decides it.
//!
//! [`Cluster`] is kept up to date per event (what each node has left, how many pods of which label
//! are in which topology domain), so that a placement costs what the nodes it looks at cost, never
//! a walk over all pods. This room knows nothing of the API: it is told of nodes and pods, and says
//! where a pod goes, which pods must go first, or why it goes nowhere.

mod cluster;
mod filter;
mod kind;
mod message;
mod preempt;
mod queue;
mod request;
mod score;
mod select;
mod spread;
mod taint;
mod terms;
#[cfg(test)]
mod tests;
mod wanted;

pub use cluster::{Cluster, Counters};
use filter::View;
pub(crate) use kind::may_run_on;
pub use queue::Queue;
pub use request::Resources;
pub use taint::{tolerates, untolerated};
pub use wanted::Wanted;

/// What users read of a pod that scheduling gates hold back.
pub const GATED_MESSAGE: &str = "Scheduling is blocked due to non-empty scheduling gates";

/// Where a pod goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Placement {
    /// To this node.
    Bind {
        /// Name of the node.
        node: String,
    },
    /// To this node, once these pods have left it.
    Preempt {
        /// Name of the node.
        node: String,
        /// Who has to leave, most important first.
        victims: Vec<Victim>,
        /// Why it fits nowhere now.
        message: String,
    },
    /// Nowhere.
    Unschedulable {
        /// Why, in the scheduler's words.
        message: String,
    },
}

/// A pod that has to leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Victim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid.
    pub uid: String,
}

impl Cluster {
    /// Says where `pod` goes. The caller notes the outcome with [`Cluster::assume`] or
    /// [`Cluster::nominate`].
    pub fn place(&mut self, pod: &Wanted) -> Placement {
        if self.node_count() == 0 {
            return Placement::Unschedulable {
                message: "no nodes available to schedule pods".to_owned(),
            };
        }
        if let Some(message) = self.known_failure(pod) {
            return Placement::Unschedulable { message };
        }
        self.register_terms(pod);
        let view = View::of(self, pod);
        let (fitting, search) = view.find_fitting();
        let best = score::best(&view, &fitting);
        self.note_search(search);
        if let Some(node) = best {
            return Placement::Bind { node };
        }
        let diagnosis = View::of(self, pod).diagnose();
        match self.preempt(pod, &diagnosis) {
            preempt::Outcome::Found { node, victims } => {
                let message = message::unschedulable(self.node_count(), &diagnosis, None);
                Placement::Preempt { node, victims, message }
            }
            preempt::Outcome::Not(why) => {
                let message = message::unschedulable(self.node_count(), &diagnosis, Some(&why));
                self.note_failure(pod, &message);
                Placement::Unschedulable { message }
            }
        }
    }
}
