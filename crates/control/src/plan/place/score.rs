//! Which of the fitting nodes is best.

use super::cluster::NodeEntry;
use super::filter::View;
use super::taint::tolerates;

/// The most a node can get for one question.
const BEST: i64 = 100;

/// The best of the fitting nodes; the first of several equally good ones.
pub(super) fn best(view: &View<'_>, fitting: &[&NodeEntry]) -> Option<String> {
    if let [only] = fitting {
        return Some(only.name.clone());
    }
    let mut totals = vec![0_i64; fitting.len()];
    let mut add = |weight: i64, scores: Vec<i64>| {
        for (total, score) in totals.iter_mut().zip(scores) {
            *total += weight * score;
        }
    };
    let each = |score: &dyn Fn(&NodeEntry) -> i64| -> Vec<i64> {
        fitting.iter().map(|node| score(node)).collect()
    };
    add(1, each(&|node| least_allocated(view, node)));
    add(1, each(&|node| balanced(view, node)));
    if fitting.iter().any(|node| node.taints.iter().any(is_soft)) {
        add(3, inverted(each(&|node| soft_taints(view, node))));
    }
    if !view.pod.node_preferred.is_empty() {
        add(2, scaled(each(&|node| preferred_nodes(view, node))));
    }
    if !view.pod.preferred.is_empty() {
        add(2, spanned(&each(&|node| preferred_pods(view, node))));
    }
    if view.pod.spread.iter().any(|constraint| !constraint.is_strict) {
        add(2, inverted(each(&|node| crowding(view, node))));
    }
    let top = totals.iter().max()?;
    let place = totals.iter().position(|total| total == top)?;
    Some(fitting[place].name.clone())
}

/// The share of CPU and memory that stays free, in percent.
fn least_allocated(view: &View<'_>, node: &NodeEntry) -> i64 {
    let free = |used: i64, want: i64, have: i64| {
        if have <= 0 { 0 } else { (have - used - want).max(0).saturating_mul(BEST) / have }
    };
    let (used, want, have) = (&node.used, &view.pod.request, &node.allocatable);
    (free(used.cpu, want.cpu, have.cpu) + free(used.memory, want.memory, have.memory)) / 2
}

/// How evenly CPU and memory would be used.
fn balanced(view: &View<'_>, node: &NodeEntry) -> i64 {
    let share = |used: i64, want: i64, have: i64| {
        if have <= 0 { BEST } else { ((used + want).saturating_mul(BEST) / have).clamp(0, BEST) }
    };
    let (used, want, have) = (&node.used, &view.pod.request, &node.allocatable);
    let cpu = share(used.cpu, want.cpu, have.cpu);
    let memory = share(used.memory, want.memory, have.memory);
    BEST - (cpu - memory).abs() / 2
}

fn is_soft(taint: &k8s_openapi::api::core::v1::Taint) -> bool {
    taint.effect == "PreferNoSchedule"
}

fn soft_taints(view: &View<'_>, node: &NodeEntry) -> i64 {
    let soft = node.taints.iter().filter(|taint| is_soft(taint));
    soft.filter(|taint| !tolerates(&view.pod.tolerations, taint)).map(|_| 1).sum()
}

fn preferred_nodes(view: &View<'_>, node: &NodeEntry) -> i64 {
    let terms = view.pod.node_preferred.iter();
    terms.filter(|(_, term)| term.matches(&node.name, &node.labels)).map(|(weight, _)| weight).sum()
}

fn preferred_pods(view: &View<'_>, node: &NodeEntry) -> i64 {
    let found = |term: &super::terms::Term| {
        let domain = node.labels.get(&term.topology_key)?;
        view.cluster.counted.counts(term)?.get(domain).copied()
    };
    view.pod.preferred.iter().map(|(weight, term)| weight * found(term).unwrap_or(0)).sum()
}

fn crowding(view: &View<'_>, node: &NodeEntry) -> i64 {
    let soft = view.pod.spread.iter().filter(|constraint| !constraint.is_strict);
    soft.map(|constraint| {
        let domain = node.labels.get(&constraint.term.topology_key);
        let counts = view.cluster.counted.counts(&constraint.term);
        // A node without the label spreads nothing: it comes last.
        match domain {
            None => i64::from(i32::MAX),
            Some(domain) => counts.and_then(|counts| counts.get(domain)).copied().unwrap_or(0),
        }
    })
    .sum()
}

/// Scaled so that the highest gets the most.
fn scaled(scores: Vec<i64>) -> Vec<i64> {
    let top = scores.iter().copied().max().unwrap_or(0);
    if top <= 0 {
        return scores;
    }
    scores.into_iter().map(|score| score.saturating_mul(BEST) / top).collect()
}

/// Scaled so that the lowest gets the most.
fn inverted(scores: Vec<i64>) -> Vec<i64> {
    let top = scores.iter().copied().max().unwrap_or(0);
    let invert = |score: i64| if top <= 0 { BEST } else { BEST - score.saturating_mul(BEST) / top };
    scores.into_iter().map(invert).collect()
}

/// Scaled from the lowest to the highest.
fn spanned(scores: &[i64]) -> Vec<i64> {
    let low = scores.iter().copied().min().unwrap_or(0);
    let high = scores.iter().copied().max().unwrap_or(0);
    let span = high - low;
    scores.iter().map(|score| if span == 0 { 0 } else { BEST * (score - low) / span }).collect()
}
