//! Conditions of workloads and queues.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};
use lockstep_api::{
    kueue::Workload,
    reasons::kueue::{evicted, requeued},
};

/// How long a message of a condition may be.
const MESSAGE_MAX: usize = 32 * 1024;
/// How long a message of an event may be.
const EVENT_MESSAGE_MAX: usize = 1024;

/// What a condition is to say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Said<'a> {
    pub kind: &'a str,
    pub is_true: bool,
    pub reason: &'a str,
    pub message: &'a str,
    pub generation: Option<i64>,
}

/// The condition of a workload of one type.
pub(super) fn of<'a>(workload: &'a Workload, kind: &str) -> Option<&'a Condition> {
    workload.status.as_ref().and_then(|status| find(&status.conditions, kind))
}

/// Whether a condition of a workload is true.
pub(super) fn is_true(workload: &Workload, kind: &str) -> bool {
    of(workload, kind).is_some_and(|condition| condition.status == "True")
}

/// The condition of one type.
pub(super) fn find<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.type_ == kind)
}

/// Sets a condition. The time of transition changes only with its status.
pub(super) fn set(conditions: &mut Vec<Condition>, said: &Said<'_>, now: Timestamp) {
    let status = if said.is_true { "True" } else { "False" };
    let mut new = Condition {
        type_: said.kind.to_owned(),
        status: status.to_owned(),
        reason: said.reason.to_owned(),
        message: cut(said.message, MESSAGE_MAX),
        observed_generation: said.generation,
        last_transition_time: Time(whole_seconds(now)),
    };
    match conditions.iter_mut().find(|condition| condition.type_ == said.kind) {
        None => conditions.push(new),
        Some(old) => {
            if old.status == new.status {
                new.last_transition_time = old.last_transition_time.clone();
            }
            *old = new;
        }
    }
}

/// Whether a condition says this already.
pub(super) fn says(conditions: &[Condition], said: &Said<'_>) -> bool {
    find(conditions, said.kind).is_some_and(|condition| {
        condition.status == (if said.is_true { "True" } else { "False" })
            && condition.reason == said.reason
            && condition.message == cut(said.message, MESSAGE_MAX)
    })
}

/// With what reason and words one comes back that was kept out because its queue was stopped, once
/// it is not any more.
pub(in crate::plan) fn restarted(kept_out_by: &str) -> Option<(&'static str, &'static str)> {
    match kept_out_by {
        evicted::LOCAL_QUEUE_STOPPED => Some((
            requeued::LOCAL_QUEUE_RESTARTED,
            "The LocalQueue was restarted after being stopped",
        )),
        evicted::CLUSTER_QUEUE_STOPPED => Some((
            requeued::CLUSTER_QUEUE_RESTARTED,
            "The ClusterQueue was restarted after being stopped",
        )),
        _ => None,
    }
}

/// Takes a condition away.
pub(super) fn remove(conditions: &mut Vec<Condition>, kind: &str) {
    conditions.retain(|condition| condition.type_ != kind);
}

/// A message that fits into an event.
pub(super) fn event_message(text: &str) -> String {
    cut(text, EVENT_MESSAGE_MAX)
}

/// A text of at most `max` bytes.
fn cut(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    let mut end = max.saturating_sub(CUT.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    format!("{}{CUT}", &text[..end])
}

/// What stands for the rest of a text.
const CUT: &str = " ...";

/// The API keeps whole seconds.
pub(super) fn whole_seconds(now: Timestamp) -> Timestamp {
    Timestamp::from_second(now.as_second()).unwrap_or(now)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: queueing 1.3.19
    #[test]
    fn long_messages_are_cut_at_a_character() {
        assert_eq!(cut("short", 10), "short");
        let long = "ä".repeat(MESSAGE_MAX);
        let shown = cut(&long, MESSAGE_MAX);
        assert!(shown.len() <= MESSAGE_MAX && shown.ends_with("ä ..."));
        let mut conditions = Vec::new();
        let said =
            Said { kind: "A", is_true: true, reason: "B", message: &long, generation: Some(1) };
        set(&mut conditions, &said, Timestamp::UNIX_EPOCH);
        assert!(conditions[0].message.len() <= MESSAGE_MAX);
        assert!(says(&conditions, &said), "a cut message is what is said");
        assert!(event_message(&long).len() <= EVENT_MESSAGE_MAX);
    }

    #[test]
    fn the_transition_time_follows_the_status() {
        let at = |second: i64| Timestamp::from_millisecond(second * 1000 + 7).unwrap();
        let mut conditions = Vec::new();
        let said =
            |is_true, reason| Said { kind: "A", is_true, reason, message: "", generation: None };
        for (second, is_true, reason, want) in
            [(1, true, "X", 1), (2, true, "Y", 1), (3, false, "Y", 3), (4, false, "Z", 3)]
        {
            set(&mut conditions, &said(is_true, reason), at(second));
            let time = conditions[0].last_transition_time.0;
            assert_eq!(time, Timestamp::from_second(want).unwrap(), "{second}");
            assert_eq!(conditions[0].reason, reason);
        }
    }
}
