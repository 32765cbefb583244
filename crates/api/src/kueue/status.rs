//! What is said of a workload: conditions, and how they replace each other.

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use super::WorkloadStatus;
use crate::reasons::kueue::{deactivation, evicted, workload as conditions};

/// How long the message of a condition may be.
const MESSAGE_MAX: usize = 32 * 1024;

impl WorkloadStatus {
    /// The condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&Condition> {
        self.conditions.iter().find(|condition| condition.type_ == kind)
    }

    /// Whether the condition of this type is true.
    pub fn is_true(&self, kind: &str) -> bool {
        self.condition(kind).is_some_and(|condition| condition.status == "True")
    }

    /// Puts a condition in the place of the one of its type, or at the end. Its time is that of
    /// the last change of its status. Says whether anything but the generation has changed.
    pub fn say(
        &mut self,
        (kind, is_true): (&str, bool),
        (reason, message): (&str, &str),
        generation: Option<i64>,
        now: Timestamp,
    ) -> bool {
        let status = if is_true { "True" } else { "False" };
        let message = cut(message);
        let Some(known) = self.conditions.iter_mut().find(|known| known.type_ == kind) else {
            self.conditions.push(Condition {
                type_: kind.to_owned(),
                status: status.to_owned(),
                reason: reason.to_owned(),
                message: message.to_owned(),
                last_transition_time: Time(whole_second(now)),
                observed_generation: generation,
            });
            return true;
        };
        if known.status == status && known.reason == reason && known.message == message {
            return false;
        }
        if known.status != status {
            known.last_transition_time = Time(whole_second(now));
            status.clone_into(&mut known.status);
        }
        reason.clone_into(&mut known.reason);
        message.clone_into(&mut known.message);
        known.observed_generation = generation;
        true
    }

    /// Forgets which nodes and which cluster the workload was on. For when it is evicted.
    pub fn forget_places(&mut self) {
        self.unhealthy_nodes.clear();
        self.nominated_cluster_names.clear();
        self.cluster_name = None;
    }

    /// Adds the time since the workload was admitted to that of earlier admissions. For when it is
    /// not admitted any more. One that was stopped because it has had all its time begins anew.
    pub fn add_execution_time(&mut self, now: Timestamp) {
        let evicted = self.condition(conditions::EVICTED).filter(|it| it.status == "True");
        let cause = evicted.and_then(|it| it.reason.strip_prefix(evicted::DEACTIVATED_DUE_TO));
        if cause == Some(deactivation::MAXIMUM_EXECUTION_TIME_EXCEEDED) {
            self.accumulated_past_execution_time_seconds = None;
            return;
        }
        let Some(admitted) = self.condition(conditions::ADMITTED) else { return };
        let since = now.duration_since(admitted.last_transition_time.0).as_secs().max(0);
        let past = self.accumulated_past_execution_time_seconds.unwrap_or(0);
        let total = past.saturating_add(i32::try_from(since).unwrap_or(i32::MAX));
        self.accumulated_past_execution_time_seconds = Some(total);
    }
}

/// The message as far as it fits into a condition.
fn cut(message: &str) -> &str {
    let mut end = message.len().min(MESSAGE_MAX);
    while !message.is_char_boundary(end) {
        end -= 1;
    }
    &message[..end]
}

/// The API keeps times to the second: what we write is what we will read.
pub fn whole_second(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: queueing 1.3.19
    #[test]
    fn long_messages_are_cut_at_a_character() {
        let mut status = WorkloadStatus::default();
        let long = "é".repeat(MESSAGE_MAX);
        assert!(status.say(("T", true), ("R", &long), Some(1), Timestamp::UNIX_EPOCH));
        assert_eq!(status.conditions[0].message.len(), MESSAGE_MAX);
        assert!(!status.say(("T", true), ("R", &long), Some(2), Timestamp::UNIX_EPOCH));
        let odd = format!("a{long}");
        assert!(status.say(("T", true), ("R", &odd), Some(2), Timestamp::UNIX_EPOCH));
        assert_eq!(status.conditions[0].message.len(), MESSAGE_MAX - 1);
    }

    #[test]
    fn the_time_of_a_condition_is_that_of_its_status() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let mut status = WorkloadStatus::default();
        status.say(("T", false), ("A", "a"), None, at(1));
        status.say(("T", false), ("B", "b"), None, at(2));
        assert_eq!(status.conditions[0].last_transition_time.0, at(1));
        status.say(("T", true), ("B", "b"), None, at(3));
        assert_eq!(status.conditions[0].last_transition_time.0, at(3));
        assert_eq!(status.conditions.len(), 1);
    }
}
