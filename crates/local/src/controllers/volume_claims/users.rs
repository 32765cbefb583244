//! Which pods use which claims.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::api::core::v1::Pod;
use kube::ResourceExt;

use super::Key;
use crate::observe::Change;

/// Whether a pod uses a claim at all.
pub(super) fn has_claims(pod: &Pod) -> bool {
    claims(pod).next().is_some()
}

/// The pods that use claims, and have not ended.
#[derive(Debug, Default)]
pub(super) struct Users {
    /// By the uid of the pod.
    pods: BTreeMap<String, BTreeSet<Key>>,
}

impl Users {
    /// Takes note of a change; the claims it matters to.
    pub(super) fn apply(&mut self, change: Change<Pod>) -> Vec<Key> {
        match change {
            Change::Put(pod) => {
                let phase = pod.status.as_ref().and_then(|status| status.phase.as_deref());
                let has_ended = matches!(phase, Some("Succeeded" | "Failed"));
                let namespace = pod.namespace().unwrap_or_default();
                let used: BTreeSet<Key> =
                    claims(&pod).map(|name| (namespace.clone(), name.to_owned())).collect();
                let uid = pod.uid().unwrap_or_default();
                if has_ended {
                    self.pods.remove(&uid);
                } else {
                    self.pods.insert(uid, used.clone());
                }
                used.into_iter().collect()
            }
            Change::Gone(key) => self.pods.remove(&key.uid).into_iter().flatten().collect(),
            Change::Listing | Change::Synced => Vec::new(),
        }
    }

    /// Whether a pod uses a claim.
    pub(super) fn has(&self, claim: &Key) -> bool {
        self.pods.values().any(|claims| claims.contains(claim))
    }
}

fn claims(pod: &Pod) -> impl Iterator<Item = &str> {
    let volumes = pod.spec.iter().flat_map(|spec| spec.volumes.iter().flatten());
    volumes.filter_map(|volume| Some(&*volume.persistent_volume_claim.as_ref()?.claim_name))
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use serde_json::json;

    use super::*;
    use crate::observe::ObjectKey;

    fn pod(uid: &str, claim: &str, phase: &str) -> Pod {
        serde_json::from_value(json!({
            "metadata": {"namespace": "d", "name": uid, "uid": uid},
            "spec": {"containers": [], "volumes": [{"name": "other", "emptyDir": {}},
                {"name": "v", "persistentVolumeClaim": {"claimName": claim}}]},
            "status": {"phase": phase}
        }))
        .unwrap()
    }

    #[test]
    fn a_claim_is_used_until_the_last_of_its_pods_has_ended() {
        let key = ("d".to_owned(), "c".to_owned());
        let mut users = Users::default();
        for uid in ["a", "b"] {
            let touched = users.apply(Change::Put(Arc::new(pod(uid, "c", "Running"))));
            assert_eq!(touched, std::slice::from_ref(&key));
        }
        assert!(users.has(&key) && !users.has(&("e".to_owned(), "c".to_owned())));
        users.apply(Change::Put(Arc::new(pod("a", "c", "Succeeded"))));
        assert!(users.has(&key));
        let gone = ObjectKey { namespace: "d".into(), name: "b".into(), uid: "b".into() };
        assert_eq!(users.apply(Change::Gone(gone)), std::slice::from_ref(&key));
        assert!(!users.has(&key));
    }
}
