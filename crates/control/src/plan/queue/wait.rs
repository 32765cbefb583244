//! Whose pods are waited for, and who waits meanwhile.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_api::kueue::{
    RequeuingTimestamp, WaitForPodsReady,
    wait::{self, Overrides},
};

use crate::plan::Key;

type Annotations = BTreeMap<String, String>;

/// Among whom nobody may have pods that are not ready.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Scope {
    /// All workloads there are.
    Everywhere,
    /// Those of a ClusterQueue.
    ClusterQueue(Arc<str>),
    /// Those of a LocalQueue.
    LocalQueue(Key),
    /// Those that were given a flavor.
    Flavor(Arc<str>),
}

/// Where it is said how a workload is waited for, the least particular first.
#[derive(Clone, Debug, Default)]
pub(super) struct Layers<'a> {
    pub flavors: Vec<(Arc<str>, Option<&'a Annotations>)>,
    pub cluster_queue: Option<(Arc<str>, Option<&'a Annotations>)>,
    pub local_queue: Option<(Key, Option<&'a Annotations>)>,
    pub workload: Option<&'a Annotations>,
}

impl<'a> Layers<'a> {
    /// What holds for the workload.
    pub(super) fn effective(&self, global: Option<&WaitForPodsReady>) -> Option<WaitForPodsReady> {
        let levels: Vec<Overrides> = self.all().map(Overrides::of).collect();
        wait::effective(global, &levels.iter().collect::<Vec<_>>())
    }

    /// By which time the workload comes back into its queue.
    pub(super) fn requeued_by(&self, global: Option<&WaitForPodsReady>) -> RequeuingTimestamp {
        let levels: Vec<Overrides> = self.all().map(Overrides::of).collect();
        wait::requeued_by(global, &levels.iter().collect::<Vec<_>>())
    }

    /// Among whom nobody may have pods that are not ready for this one to be admitted.
    pub(super) fn scopes(&self, global: Option<&WaitForPodsReady>) -> Vec<Scope> {
        if !self.effective(global).is_some_and(|wait| wait.block_admission) {
            return Vec::new();
        }
        // Whoever says so last says among whom.
        if let Some((name, of_queue)) = &self.cluster_queue {
            let of_local = self.local_queue.as_ref().filter(|(_, it)| blocks(*it).is_some());
            match of_local {
                _ if blocks(self.workload).is_some() => {
                    return vec![Scope::ClusterQueue(Arc::clone(name))];
                }
                Some((key, _)) => return vec![Scope::LocalQueue(key.clone())],
                None if blocks(*of_queue).is_some() => {
                    return vec![Scope::ClusterQueue(Arc::clone(name))];
                }
                None => {}
            }
        }
        let flavors = self.flavors.iter().filter(|(_, it)| blocks(*it) == Some(true));
        let flavors: Vec<Scope> =
            flavors.map(|(name, _)| Scope::Flavor(Arc::clone(name))).collect();
        if flavors.is_empty() { vec![Scope::Everywhere] } else { flavors }
    }

    fn all(&self) -> impl Iterator<Item = &'a Annotations> {
        let flavors = self.flavors.iter().filter_map(|(_, annotations)| *annotations);
        let cluster = self.cluster_queue.as_ref().and_then(|(_, annotations)| *annotations);
        let local = self.local_queue.as_ref().and_then(|(_, annotations)| *annotations);
        flavors.chain(cluster).chain(local).chain(self.workload)
    }
}

/// What annotations say of `blockAdmission`.
fn blocks(annotations: Option<&Annotations>) -> Option<bool> {
    Overrides::of(annotations?).block_admission
}

#[cfg(test)]
mod tests {
    use lockstep_api::labels::kueue as labels;

    use super::*;

    fn says(blocks: &str) -> Annotations {
        Annotations::from([(labels::BLOCK_ADMISSION.to_owned(), blocks.to_owned())])
    }

    // rule: queueing 2.10.1
    #[test]
    fn the_most_particular_word_counts_and_says_among_whom() {
        let global = |blocks| WaitForPodsReady { block_admission: blocks, ..Default::default() };
        let (yes, no) = (says("true"), says("false"));
        let cluster = Scope::ClusterQueue(Arc::from("q"));
        let local = Key { namespace: "ns".to_owned(), name: "l".to_owned() };
        let flavor = Scope::Flavor(Arc::from("f"));
        // (global, flavor, ClusterQueue, LocalQueue, workload)
        type Said<'a> = Option<&'a Annotations>;
        let cases: [(bool, [Said<'_>; 4], Vec<Scope>); 8] = [
            (false, [None; 4], vec![]),
            (true, [None; 4], vec![Scope::Everywhere]),
            (true, [None, Some(&no), None, None], vec![]),
            (false, [None, Some(&yes), None, None], vec![cluster.clone()]),
            (false, [None, Some(&no), Some(&yes), None], vec![Scope::LocalQueue(local.clone())]),
            (false, [None, None, None, Some(&yes)], vec![cluster]),
            (false, [Some(&yes), None, None, None], vec![flavor]),
            (true, [Some(&yes), None, None, Some(&no)], vec![]),
        ];
        for (blocks, [of_flavor, of_cluster, of_local, workload], want) in cases {
            let layers = Layers {
                flavors: vec![(Arc::from("f"), of_flavor)],
                cluster_queue: Some((Arc::from("q"), of_cluster)),
                local_queue: Some((local.clone(), of_local)),
                workload,
            };
            assert_eq!(layers.scopes(Some(&global(blocks))), want);
        }
        let off = Annotations::from([(labels::WAIT_FOR_PODS_READY.to_owned(), "false".to_owned())]);
        let layers = Layers { workload: Some(&off), ..Layers::default() };
        assert_eq!(layers.effective(Some(&global(true))), None);
    }
}
