//! Heartbeats of fake nodes, for clusters whose controllers insist on them.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::StreamExt;
use k8s_openapi::api::core::v1::Node;
use kube::{Client, ResourceExt};
use tracing::warn;

use super::{FakeOptions, LOST, REGISTER_AT_ONCE, describe, node_name};
use crate::node::status;
use crate::observe::Change;

/// How often each node gives one.
const PERIOD: Duration = Duration::from_secs(10);

/// What is known of the nodes, by name.
#[derive(Debug, Default)]
pub(super) struct Known {
    /// Those that are gone or are to look lost.
    silent: HashSet<String>,
    /// Those that somebody has given up, though they are alive.
    doubted: HashSet<String>,
}

/// [`Known`] by everybody.
pub(super) type Shared = Arc<Mutex<Known>>;

impl Known {
    /// Notes a change of a node.
    pub(super) fn note(&mut self, change: &Change<Node>) {
        match change {
            Change::Put(node) => {
                let is_lost = node.annotations().get(LOST).is_some_and(|value| value == "true");
                keep(&mut self.silent, node.name_any(), is_lost);
                keep(&mut self.doubted, node.name_any(), !is_ready(node));
            }
            Change::Gone(key) => drop(self.silent.insert(key.name.clone())),
            Change::Listing | Change::Synced => {}
        }
    }

    /// Whether a node is gone or is to look lost.
    pub(super) fn is_silent(&self, node: &str) -> bool {
        self.silent.contains(node)
    }
}

/// Gives the heartbeats of all nodes for ever. A node that was given up while this process paused
/// says again that it is ready.
pub(super) async fn give(client: Client, options: FakeOptions, known: Shared) {
    let mut ticks = tokio::time::interval(PERIOD);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let each = futures::stream::iter(0..options.count);
        let beat = |index| beat(&client, &options, &known, index);
        each.for_each_concurrent(REGISTER_AT_ONCE, beat).await;
    }
}

async fn beat(client: &Client, options: &FakeOptions, known: &Shared, index: usize) {
    let name = node_name(index);
    let (is_silent, is_doubted) = {
        let known = known.lock().unwrap_or_else(PoisonError::into_inner);
        (known.is_silent(&name), known.doubted.contains(&name))
    };
    if is_silent {
        return;
    }
    if let Err(error) = status::renew_lease(client, &name).await {
        warn!(node = %name, %error, "heartbeat failed");
    }
    if is_doubted && let Err(error) = status::register(client, &describe(options, index)).await {
        warn!(node = %name, %error, "node not registered again");
    }
}

fn keep(names: &mut HashSet<String>, name: String, is_in: bool) {
    if is_in {
        names.insert(name);
    } else {
        names.remove(&name);
    }
}

fn is_ready(node: &Node) -> bool {
    let conditions = node.status.as_ref().and_then(|status| status.conditions.as_deref());
    conditions.unwrap_or_default().iter().any(|it| it.type_ == "Ready" && it.status == "True")
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn put(annotations: Value, ready: &str) -> Change<Node> {
        let node = json!({
            "metadata": {"name": "fake-0", "annotations": annotations},
            "status": {"conditions": [{"type": "Ready", "status": ready}]},
        });
        Change::Put(Arc::new(serde_json::from_value(node).unwrap()))
    }

    #[test]
    fn a_lost_node_is_silent_and_one_that_was_given_up_is_not() {
        let mut known = Known::default();
        for (change, is_silent, is_doubted) in [
            (put(json!({}), "True"), false, false),
            (put(json!({}), "Unknown"), false, true),
            (put(json!({LOST: "true"}), "True"), true, false),
            (put(json!({LOST: "false"}), "True"), false, false),
        ] {
            known.note(&change);
            assert_eq!(known.is_silent("fake-0"), is_silent, "{change:?}");
            assert_eq!(known.doubted.contains("fake-0"), is_doubted, "{change:?}");
        }
    }
}
