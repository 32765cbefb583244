//! What a write is charged to quotas, and whether they allow it.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::{Counted, Quota, counted::Sort, pods};
use crate::{
    amounts::{self, Amounts},
    quantity::Quantity,
    strategy::Json,
};

/// A write that may use more of something.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// How objects of its kind are counted.
    pub counted: &'a Counted,
    /// The object as it will be.
    pub object: &'a Json,
    /// The object as it was, if it is not new.
    pub old: Option<&'a Json>,
    /// Whether it only says what is so already: then it is counted and not refused.
    pub is_status: bool,
    /// When it is made.
    pub now: Timestamp,
}

/// What becomes of one quota.
#[derive(Debug, PartialEq, Eq)]
pub struct Charge {
    /// The place of the quota among those that were given.
    pub at: usize,
    /// All that is used with the write.
    pub used: Amounts,
}

/// Charges a write to all quotas that count it.
///
/// # Errors
/// Why a quota does not allow it.
pub fn charge(quotas: &[Quota], request: &Request<'_>) -> Result<Vec<Charge>, String> {
    let mut concerned = Vec::new();
    for (at, quota) in quotas.iter().enumerate() {
        if is_concerned(quota, request)? {
            concerned.push(at);
        }
    }
    if concerned.is_empty() {
        return Ok(Vec::new());
    }
    let usage = request.counted.usage(request.object, request.now);
    let negative: Vec<&str> =
        usage.iter().filter(|(_, amount)| amount.sign() < 0).map(|(name, _)| &**name).collect();
    if !negative.is_empty() {
        return Err(format!("quota usage is negative for resource(s): {}", negative.join(",")));
    }
    let mut charges = Vec::new();
    for at in concerned {
        let quota = &quotas[at];
        let more = growth(quota, request, &usage);
        if more.is_empty() {
            continue;
        }
        let mut used = quota.used.clone();
        amounts::add(&mut used, &more);
        if !request.is_status {
            check(quota, &more, &used)?;
        }
        if used != quota.used {
            charges.push(Charge { at, used });
        }
    }
    Ok(charges)
}

/// Whether a quota counts the object, which must then say what it has to.
fn is_concerned(quota: &Quota, request: &Request<'_>) -> Result<bool, String> {
    let counted = request.counted;
    let tracked: BTreeSet<&str> =
        quota.hard.keys().map(String::as_str).filter(|name| counted.has(name)).collect();
    if tracked.is_empty() || !quota.is_about(counted, request.object) {
        return Ok(false);
    }
    let unsaid = (counted.sort() == Sort::Pods).then(|| pods::unsaid(request.object, &tracked));
    if let Some(why) = unsaid.flatten() {
        return Err(format!("failed quota: {}: {why}", quota.name));
    }
    if tracked.iter().any(|name| !quota.used.contains_key(*name)) {
        let names: Vec<&str> = tracked.into_iter().collect();
        let names = names.join(",");
        return Err(format!("status unknown for quota: {}, resources: {names}", quota.name));
    }
    Ok(true)
}

/// What the write adds to a quota: all of the object, or what it grows by.
fn growth(quota: &Quota, request: &Request<'_>, usage: &Amounts) -> Amounts {
    let mut more = usage.clone();
    if let Some(old) = request.old.filter(|old| quota.is_about(request.counted, old)) {
        let before = request.counted.usage(old, request.now);
        for (name, amount) in &mut more {
            let had = before.get(name).copied().unwrap_or(Quantity::ZERO);
            *amount = amount.minus(&had);
        }
    }
    more.retain(|name, amount| amount.sign() > 0 && quota.hard.contains_key(name));
    more
}

fn check(quota: &Quota, more: &Amounts, used: &Amounts) -> Result<(), String> {
    let is_beyond = |name: &&String| quota.hard.get(*name).is_some_and(|most| used[*name] > *most);
    let exceeded: Vec<&String> = more.keys().filter(is_beyond).collect();
    if exceeded.is_empty() {
        return Ok(());
    }
    let listed = |amounts: &Amounts| {
        let parts: Vec<String> = exceeded
            .iter()
            .filter_map(|name| Some(format!("{name}={}", amounts.get(*name)?)))
            .collect();
        parts.join(",")
    };
    Err(format!(
        "exceeded quota: {}, requested: {}, used: {}, limited: {}",
        quota.name,
        listed(more),
        listed(&quota.used),
        listed(&quota.hard)
    ))
}
