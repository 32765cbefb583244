//! Which pods go when there are too many.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::plan::job::{PodRef, View, seen::Worth};

/// Active pods that should not be: those of an Indexed Job without a place in it, all but one of
/// each index, and then those that are worth least until `at_least` are found.
pub(crate) fn choose(view: &View, at_least: usize) -> Vec<PodRef> {
    let mut doomed = misplaced(view);
    if doomed.len() < at_least {
        let chosen: BTreeSet<&Arc<str>> = doomed.iter().copied().collect();
        let mut left: Vec<(&Worth, &Arc<str>)> = view
            .tally()
            .active
            .iter()
            .filter(|(_, name)| !chosen.contains(name))
            .filter_map(|(_, name)| Some((&view.pod(name)?.worth, name)))
            .collect();
        left.sort_unstable();
        let more = at_least - doomed.len();
        doomed.extend(left.into_iter().take(more).map(|(_, name)| name));
    }
    doomed.into_iter().filter_map(|name| view.pod_ref(name)).collect()
}

fn misplaced(view: &View) -> Vec<&Arc<str>> {
    if !view.rules().is_indexed {
        return Vec::new();
    }
    let active = &view.tally().active;
    let (start, end): (Arc<str>, Arc<str>) = ("".into(), "".into());
    let below = active.range(..(0, start));
    let beyond = active.range((view.rules().index_count(), end)..);
    let mut doomed: Vec<&Arc<str>> = below.chain(beyond).map(|(_, name)| name).collect();
    for index in &view.tally().slots.crowded {
        let mut pods: Vec<(&Worth, &Arc<str>)> = view
            .tally()
            .slots
            .active(*index)
            .filter_map(|name| Some((&view.pod(name)?.worth, name)))
            .collect();
        pods.sort_unstable();
        pods.pop();
        doomed.extend(pods.into_iter().map(|(_, name)| name));
    }
    doomed
}
