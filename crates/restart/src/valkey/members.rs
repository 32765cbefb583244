//! Who speaks on the bus. There are no connections of agents here, so there is one link for each
//! life of an agent, which ends when another life begins or nothing is heard any more.

use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};

use super::letter::Letter;

/// How many earlier lives of an agent are remembered, so that what they said does not count when it
/// arrives late.
const PAST_MAX: usize = 8;

/// Whose letter it is.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Sender {
    /// Of the agent on this link.
    Known(u64),
    /// Of an earlier life of it.
    Past,
    /// Of somebody who has to be let in first.
    New,
}

#[derive(Debug)]
struct Member {
    session: u64,
    ticket: String,
    link: u64,
    heard: Instant,
    past: VecDeque<u64>,
}

/// Those that were let in, by pod.
#[derive(Debug, Default)]
pub(super) struct Members {
    members: HashMap<String, Member>,
    pods: HashMap<u64, String>,
}

impl Members {
    /// A letter came in.
    pub(super) fn sender(&mut self, letter: &Letter, now: Instant) -> Sender {
        let Some(member) = self.members.get_mut(&letter.hello.pod) else { return Sender::New };
        let session = letter.status.session;
        if member.past.contains(&session) {
            return Sender::Past;
        }
        // The ticket was looked at when it was let in; it may have run out since.
        if (member.session, &member.ticket) != (session, &letter.hello.ticket) {
            return Sender::New;
        }
        member.heard = now;
        Sender::Known(member.link)
    }

    /// The writer of a letter was let in, on this link. Gives the link of the life before it.
    pub(super) fn enter(&mut self, letter: &Letter, link: u64, now: Instant) -> Option<u64> {
        let pod = &letter.hello.pod;
        let before = self.members.remove(pod);
        let mut past = VecDeque::new();
        if let Some(before) = &before {
            self.pods.remove(&before.link);
            past.clone_from(&before.past);
            if before.session != letter.status.session {
                past.push_back(before.session);
            }
            while past.len() > PAST_MAX {
                past.pop_front();
            }
        }
        let (session, ticket) = (letter.status.session, letter.hello.ticket.clone());
        self.pods.insert(link, pod.clone());
        self.members.insert(pod.clone(), Member { session, ticket, link, heard: now, past });
        before.map(|before| before.link)
    }

    /// A link is over.
    pub(super) fn close(&mut self, link: u64) {
        if let Some(pod) = self.pods.remove(&link) {
            self.members.remove(&pod);
        }
    }

    /// Nobody could be heard for some time, which is nobody's fault.
    pub(super) fn pardon(&mut self, now: Instant) {
        self.members.values_mut().for_each(|member| member.heard = now);
    }

    /// Those that were not heard for so long are over: their links and pods.
    pub(super) fn silent(&mut self, now: Instant, longest: Duration) -> Vec<(u64, String)> {
        let is_silent = |member: &Member| now.saturating_duration_since(member.heard) > longest;
        let silent = self.members.iter().filter(|(_, member)| is_silent(member));
        let silent: Vec<_> = silent.map(|(pod, member)| (member.link, pod.clone())).collect();
        silent.iter().for_each(|(link, _)| self.close(*link));
        silent
    }
}

#[cfg(test)]
mod tests {
    use super::super::letter::tests::letter;
    use super::*;

    #[test]
    fn each_life_of_an_agent_is_a_link_and_the_last_one_counts() {
        let (mut members, now) = (Members::default(), Instant::now());
        let (first, second) = (letter("pod", 1), letter("pod", 2));
        assert_eq!(members.sender(&first, now), Sender::New);
        assert_eq!(members.enter(&first, 10, now), None);
        assert_eq!(members.sender(&first, now), Sender::Known(10));
        assert_eq!(members.sender(&second, now), Sender::New);
        assert_eq!(members.enter(&second, 11, now), Some(10));
        assert_eq!(members.sender(&first, now), Sender::Past);
        assert_eq!(members.sender(&second, now), Sender::Known(11));
        // What the gang has closed has to be let in again.
        members.close(10);
        assert_eq!(members.sender(&second, now), Sender::Known(11));
        members.close(11);
        assert_eq!(members.sender(&second, now), Sender::New);
    }

    #[test]
    fn another_ticket_is_looked_at() {
        let (mut members, now) = (Members::default(), Instant::now());
        members.enter(&letter("pod", 1), 10, now);
        let mut other = letter("pod", 1);
        other.hello.ticket.push('x');
        assert_eq!(members.sender(&other, now), Sender::New);
    }

    #[test]
    fn who_says_nothing_is_lost_unless_nobody_could_be_heard() {
        let (mut members, start) = (Members::default(), Instant::now());
        let (second, longest) = (Duration::from_secs(1), Duration::from_secs(30));
        members.enter(&letter("a", 1), 1, start);
        members.enter(&letter("b", 2), 2, start);
        members.sender(&letter("b", 2), start + second * 20);
        assert_eq!(members.silent(start + second * 30, longest), []);
        members.pardon(start + second * 31);
        assert_eq!(members.silent(start + second * 40, longest), []);
        members.sender(&letter("b", 2), start + second * 60);
        assert_eq!(members.silent(start + second * 62, longest), [(1, "a".to_owned())]);
        assert_eq!(members.sender(&letter("a", 1), start), Sender::New);
    }
}
