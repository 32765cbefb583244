//! Whether a Lease may be taken, and what is then written to it.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use tokio::time::Instant;

use super::LeaseOptions;

/// What may be done with a Lease.
#[derive(Debug, PartialEq)]
pub(super) enum Claim {
    /// It may be written like this, which makes us the leader.
    Take(LeaseSpec),
    /// Somebody else holds it.
    HeldBy(String),
}

/// A Lease as it was seen, and since when it has been so.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    spec: Option<LeaseSpec>,
    since: Instant,
}

impl Seen {
    /// Takes note of `found`. Something that has not changed has been so since it was first seen.
    pub(super) fn update(before: Option<Self>, found: Option<&Lease>, now: Instant) -> Self {
        let spec = found.and_then(|lease| lease.spec.clone());
        let since = before.filter(|before| before.spec == spec).map_or(now, |before| before.since);
        Self { spec, since }
    }
}

/// Decides about the Lease that was found, which has been as it is for as long as `seen` says.
pub(super) fn claim(
    options: &LeaseOptions,
    found: Option<&Lease>,
    seen: &Seen,
    now: Timestamp,
    clock: Instant,
) -> Claim {
    let spec = found.and_then(|lease| lease.spec.clone()).unwrap_or_default();
    let holder = spec.holder_identity.clone().unwrap_or_default();
    let is_ours = holder == options.identity;
    // What its holder promised counts, whatever we would have promised.
    let promised = spec.lease_duration_seconds.and_then(|seconds| u64::try_from(seconds).ok());
    let promised = promised.map_or(options.duration, Duration::from_secs);
    let is_over = clock.saturating_duration_since(seen.since) >= promised;
    if !is_ours && !holder.is_empty() && !is_over {
        return Claim::HeldBy(holder);
    }
    let transitions = spec.lease_transitions.unwrap_or(0);
    let is_transition = !is_ours && found.is_some();
    Claim::Take(LeaseSpec {
        holder_identity: Some(options.identity.clone()),
        lease_duration_seconds: i32::try_from(options.duration.as_secs()).ok(),
        acquire_time: spec.acquire_time.clone().filter(|_| is_ours).or(Some(MicroTime(now))),
        renew_time: Some(MicroTime(now)),
        lease_transitions: Some(transitions.saturating_add(i32::from(is_transition))),
        ..spec
    })
}

/// What a holder writes who gives the Lease back: nobody holds it, and nobody need wait long.
pub(super) fn released(spec: LeaseSpec, now: Timestamp) -> LeaseSpec {
    LeaseSpec {
        holder_identity: Some(String::new()),
        lease_duration_seconds: Some(1),
        renew_time: Some(MicroTime(now)),
        acquire_time: Some(MicroTime(now)),
        ..spec
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lease(holder: &str, renewed: i64, transitions: i32) -> Lease {
        let at = |second| Some(MicroTime(Timestamp::from_second(second).unwrap()));
        let spec = LeaseSpec {
            holder_identity: Some(holder.to_owned()),
            lease_duration_seconds: Some(15),
            acquire_time: at(100),
            renew_time: at(renewed),
            lease_transitions: Some(transitions),
            ..LeaseSpec::default()
        };
        Lease { spec: Some(spec), ..Lease::default() }
    }

    #[test]
    fn a_lease_is_taken_when_nobody_holds_it_or_its_holder_is_silent() {
        let options = LeaseOptions::new("default", "me");
        let now = Timestamp::from_second(200).unwrap();
        let start = Instant::now();
        let cases = [
            ("there is none", None, 0, Ok((200, 0))),
            ("it was given back", Some(lease("", 190, 3)), 0, Ok((200, 4))),
            ("it is ours", Some(lease("me", 190, 3)), 0, Ok((100, 3))),
            ("it was ours and nobody took it", Some(lease("me", 190, 3)), 99, Ok((100, 3))),
            ("another holds it", Some(lease("you", 190, 3)), 14, Err("you")),
            ("its date is long ago, by another's clock", Some(lease("you", 1, 3)), 0, Err("you")),
            ("another is silent", Some(lease("you", 190, 3)), 15, Ok((200, 4))),
        ];
        for (name, found, seconds, want) in cases {
            let seen = Seen::update(None, found.as_ref(), start);
            let clock = start + Duration::from_secs(seconds);
            match (claim(&options, found.as_ref(), &seen, now, clock), want) {
                (Claim::HeldBy(holder), Err(want)) => assert_eq!(holder, want, "{name}"),
                (Claim::Take(spec), Ok((acquired, transitions))) => {
                    assert_eq!(spec.holder_identity.as_deref(), Some("me"), "{name}");
                    assert_eq!(spec.lease_duration_seconds, Some(15), "{name}");
                    assert_eq!(spec.renew_time, Some(MicroTime(now)), "{name}");
                    let acquired = Timestamp::from_second(acquired).unwrap();
                    assert_eq!(spec.acquire_time, Some(MicroTime(acquired)), "{name}");
                    assert_eq!(spec.lease_transitions, Some(transitions), "{name}");
                }
                (got, want) => panic!("{name}: {got:?} instead of {want:?}"),
            }
        }
    }

    #[test]
    fn a_renewal_starts_the_waiting_anew() {
        let start = Instant::now();
        let later = start + Duration::from_secs(10);
        let first = Seen::update(None, Some(&lease("you", 1, 0)), start);
        let same = Seen::update(Some(first.clone()), Some(&lease("you", 1, 0)), later);
        assert_eq!(same.since, start);
        let renewed = Seen::update(Some(first), Some(&lease("you", 2, 0)), later);
        assert_eq!(renewed.since, later);
    }
}
