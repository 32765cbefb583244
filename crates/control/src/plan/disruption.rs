//! PodDisruptionBudgets: how many of the pods that a budget is over may be evicted now.
//!
//! An eviction takes from what is written here, and notes whom it takes, in the change that deletes
//! the pod. This counts what is there, and forgets those who were noted when they have gone.

mod tally;

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::{
    api::policy::v1::{PodDisruptionBudget, PodDisruptionBudgetStatus},
    apimachinery::pkg::{
        apis::meta::v1::{Condition, Time},
        util::intstr::IntOrString,
    },
};
use lockstep_api::kinds::disruption_budget::{
    CONDITION, INSUFFICIENT_PODS, SUFFICIENT_PODS, SYNC_FAILED,
};

use super::Event;

pub use tally::{Owned, Owner, Seen, Tally};

/// How long a pod may be there after it was noted as evicted. When it still is, it stays.
const EVICTION_MAX: SignedDuration = SignedDuration::from_mins(2);

/// What is there.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    /// The budget.
    pub budget: &'a PodDisruptionBudget,
    /// The pods that it selects.
    pub pods: &'a Tally,
    /// How many pods those who own the pods should have, by uid; asked for when [`needs_scales`].
    pub scales: &'a BTreeMap<String, Scale>,
}

/// How many pods an owner should have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scale {
    /// So many.
    Of(i32),
    /// The owner has gone, or is another one now.
    Gone,
    /// Nobody can tell, and why.
    Unknown(String),
}

/// The outcome of one planning pass.
#[derive(Clone, Debug, Default, PartialEq)]
#[must_use = "a plan does nothing until a shell applies it"]
pub struct Plan {
    /// The status to write, if it is not what is there.
    pub status: Option<Box<PodDisruptionBudgetStatus>>,
    /// What to tell about the budget.
    pub events: Vec<Event>,
    /// Pods that were noted as evicted and have stayed.
    pub stayed: Vec<Stayed>,
    /// When to plan again, whatever happens.
    pub wake_at: Option<Timestamp>,
}

/// A pod that was to go and is still there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stayed {
    /// Its name.
    pub pod: String,
    /// What to tell about it.
    pub event: Event,
}

/// Whether a budget can only be reckoned by what the owners of its pods should have.
pub fn needs_scales(budget: &PodDisruptionBudget) -> bool {
    budget.spec.as_ref().is_some_and(|spec| {
        spec.max_unavailable.is_some() || matches!(spec.min_available, Some(IntOrString::String(_)))
    })
}

/// Plans one pass over a budget.
pub fn plan(view: View<'_>, now: Timestamp) -> Plan {
    let before = view.budget.status.clone().unwrap_or_default();
    let mut plan = Plan::default();
    if view.pods.is_empty() {
        plan.events.push(Event::normal("NoPods", "No matching pods found"));
    }
    let status = match demand(view, &mut plan) {
        Ok(demand) => reckon(view, &before, &demand, now, &mut plan),
        Err(why) => {
            let told = format!("Failed to calculate the number of expected pods: {why}");
            plan.events.push(Event::warning("CalculateExpectedPodCountFailed", told));
            failed(&before, why, now)
        }
    };
    if status != before {
        plan.status = Some(Box::new(status));
    }
    plan
}

/// What a budget asks for.
struct Demand {
    expected: i32,
    healthy: i32,
}

fn demand(view: View<'_>, plan: &mut Plan) -> Result<Demand, String> {
    let Some(spec) = &view.budget.spec else { return Ok(Demand { expected: 0, healthy: 0 }) };
    let counted = i32::try_from(view.pods.len()).unwrap_or(i32::MAX);
    match (&spec.max_unavailable, &spec.min_available) {
        (Some(most), _) => {
            let expected = expected(view, plan)?;
            Ok(Demand { expected, healthy: expected.saturating_sub(part(most, expected)?).max(0) })
        }
        (None, Some(IntOrString::Int(least))) => Ok(Demand { expected: counted, healthy: *least }),
        (None, Some(least)) => {
            let expected = expected(view, plan)?;
            Ok(Demand { expected, healthy: part(least, expected)? })
        }
        (None, None) => Ok(Demand { expected: 0, healthy: 0 }),
    }
}

/// How many pods all the owners of pods should have together.
fn expected(view: View<'_>, plan: &mut Plan) -> Result<i32, String> {
    let mut sum: i32 = 0;
    for (uid, owner) in view.pods.owners() {
        match view.scales.get(uid) {
            Some(Scale::Of(count)) => sum = sum.saturating_add(*count),
            Some(Scale::Unknown(why)) => return Err(why.clone()),
            Some(Scale::Gone) | None => {
                return Err(format!("found no controllers for pod {:?}", owner.pod));
            }
        }
    }
    if view.pods.unmanaged() > 0 {
        let selector = view.budget.spec.as_ref().and_then(|spec| spec.selector.as_ref());
        let selector = serde_json::to_string(&selector).unwrap_or_default();
        plan.events.push(Event::warning(
            "UnmanagedPods",
            format!(
                "Pods selected by this PodDisruptionBudget (selector: {selector}) were found to be \
                 unmanaged. As a result, the status of the PDB cannot be calculated correctly, \
                 which may result in undefined behavior. To account for these pods please set \
                 \".spec.minAvailable\" field of the PDB to an integer value."
            ),
        ));
    }
    Ok(sum)
}

/// A number of pods, or a part of all of them, which is rounded up.
fn part(bound: &IntOrString, all: i32) -> Result<i32, String> {
    let text = match bound {
        IntOrString::Int(number) => return Ok(*number),
        IntOrString::String(text) => text,
    };
    let percent = text.strip_suffix('%').and_then(|digits| digits.parse::<i64>().ok());
    let percent = percent.ok_or_else(|| {
        format!("invalid value for IntOrString: invalid value {text:?}: it is no percentage")
    })?;
    let rounded = (i64::from(all) * percent).div_euclid(100)
        + i64::from((i64::from(all) * percent).rem_euclid(100) > 0);
    Ok(i32::try_from(rounded).unwrap_or(i32::MAX))
}

fn reckon(
    view: View<'_>,
    before: &PodDisruptionBudgetStatus,
    demand: &Demand,
    now: Timestamp,
    plan: &mut Plan,
) -> PodDisruptionBudgetStatus {
    let evicted = evicted(view, before, now, plan);
    let missing = evicted.keys().filter(|name| view.pods.is_healthy(name)).count();
    let current = i32::try_from(view.pods.healthy().saturating_sub(missing)).unwrap_or(i32::MAX);
    // Without a pod that is expected nothing may go: those who come would not be counted yet.
    let spare = if demand.expected > 0 { current.saturating_sub(demand.healthy).max(0) } else { 0 };
    let generation = view.budget.metadata.generation;
    let (is_met, reason) = match spare {
        0 => (false, INSUFFICIENT_PODS),
        _ => (true, SUFFICIENT_PODS),
    };
    PodDisruptionBudgetStatus {
        conditions: Some(with_condition(before, is_met, (reason, ""), generation, now)),
        current_healthy: Some(current),
        desired_healthy: Some(demand.healthy),
        disrupted_pods: Some(evicted).filter(|evicted| !evicted.is_empty()),
        disruptions_allowed: Some(spare),
        expected_pods: Some(demand.expected),
        observed_generation: generation,
    }
}

/// Those who were noted as evicted, and whose deletion has not been heard of yet.
fn evicted(
    view: View<'_>,
    before: &PodDisruptionBudgetStatus,
    now: Timestamp,
    plan: &mut Plan,
) -> BTreeMap<String, Time> {
    let mut left = BTreeMap::new();
    for (name, at) in before.disrupted_pods.iter().flatten() {
        if !view.pods.is_staying(name) {
            continue;
        }
        let until = at.0.saturating_add(EVICTION_MAX).unwrap_or(Timestamp::MAX);
        if until < now {
            let metadata = &view.budget.metadata;
            let namespace = metadata.namespace.as_deref().unwrap_or_default();
            let budget = metadata.name.as_deref().unwrap_or_default();
            let told =
                format!("Pod was expected by PDB {namespace}/{budget} to be deleted but it wasn't");
            let event = Event::warning("NotDeleted", told);
            plan.stayed.push(Stayed { pod: name.clone(), event });
            continue;
        }
        left.insert(name.clone(), at.clone());
        // The moment itself still counts, as a pod that goes then has gone in time.
        let again = until.saturating_add(SignedDuration::from_nanos(1)).unwrap_or(until);
        plan.wake_at = Some(plan.wake_at.map_or(again, |wake| wake.min(again)));
    }
    left
}

/// What is written when nobody can tell: nothing may go.
fn failed(
    before: &PodDisruptionBudgetStatus,
    why: String,
    now: Timestamp,
) -> PodDisruptionBudgetStatus {
    let generation = before.observed_generation;
    let conditions = with_condition(before, false, (SYNC_FAILED, &why), generation, now);
    PodDisruptionBudgetStatus {
        conditions: Some(conditions),
        disruptions_allowed: Some(0),
        ..before.clone()
    }
}

/// The conditions as they are, but for ours.
fn with_condition(
    before: &PodDisruptionBudgetStatus,
    is_met: bool,
    (reason, message): (&str, &str),
    generation: Option<i64>,
    now: Timestamp,
) -> Vec<Condition> {
    let mut conditions = before.conditions.clone().unwrap_or_default();
    let status = if is_met { "True" } else { "False" };
    let mut condition = Condition {
        last_transition_time: Time(now),
        message: message.to_owned(),
        observed_generation: generation,
        reason: reason.to_owned(),
        status: status.to_owned(),
        type_: CONDITION.to_owned(),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == CONDITION) {
        Some(old) => {
            if old.status == status {
                condition.last_transition_time = old.last_transition_time.clone();
            }
            *old = condition;
        }
        None => conditions.push(condition),
    }
    conditions
}

#[cfg(test)]
mod tests;
