//! Whether the cluster still answers, and when that is given up.

use std::time::Duration;

use tokio::time::Instant;

use crate::run::watches::About;

/// How long a cluster that is not heard of is waited for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// The longest pause between two attempts to hear of it. After a longer silence it was heard in
/// between: a watch on which nothing happens says nothing.
const PAUSE_MAX: Duration = Duration::from_secs(65);

/// What is to be done about an attempt that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is the first in a row: tell of it.
    New,
    /// Go on.
    Again,
    /// It has lasted too long, if the cluster does not answer now.
    Doubtful,
    /// It has lasted too long.
    Lost,
}

/// Since when attempts to watch fail, by what is watched.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    failing: [Option<Failing>; 5],
}

#[derive(Clone, Copy, Debug)]
struct Failing {
    since: Instant,
    last: Instant,
}

impl Contact {
    /// Takes note that something was heard; whether that is the end of a silence.
    pub(crate) fn heard(&mut self, about: About) -> bool {
        self.failing[about as usize].take().is_some() && self.is_well()
    }

    /// Takes note of an attempt that failed.
    pub(crate) fn missed(&mut self, about: About) -> Verdict {
        let was_well = self.is_well();
        let now = Instant::now();
        let failing = &mut self.failing[about as usize];
        let Some(before) = failing else {
            *failing = Some(Failing { since: now, last: now });
            let is_new = was_well && !about.is_extra();
            return if is_new { Verdict::New } else { Verdict::Again };
        };
        let pause = now.duration_since(std::mem::replace(&mut before.last, now));
        if now.duration_since(before.since) < PATIENCE {
            Verdict::Again
        } else if pause > PAUSE_MAX {
            Verdict::Doubtful
        } else {
            Verdict::Lost
        }
    }

    /// Takes note that the cluster answers after all.
    pub(crate) fn answers(&mut self, about: About) {
        self.failing[about as usize] = None;
    }

    /// Whether what is needed is heard of. Events and Workloads are good to have.
    pub(crate) fn is_well(&self) -> bool {
        let needed = [About::JobSet, About::Job, About::Pod];
        needed.iter().all(|about| self.failing[*about as usize].is_none())
    }
}

#[cfg(test)]
mod tests {
    use tokio::time::advance;

    use super::*;

    #[tokio::test(start_paused = true)]
    async fn contact_is_lost_only_after_a_minute_without_a_word() {
        let mut contact = Contact::default();
        assert_eq!(contact.missed(About::Pod), Verdict::New);
        assert_eq!(contact.missed(About::Job), Verdict::Again, "told already");
        for _ in 0..5 {
            advance(Duration::from_secs(10)).await;
            assert_eq!(contact.missed(About::Pod), Verdict::Again);
        }
        advance(Duration::from_secs(10)).await;
        assert_eq!(contact.missed(About::Pod), Verdict::Lost);
        assert!(!contact.heard(About::Pod), "Jobs are still not heard of");
        assert!(contact.heard(About::Job));
        assert!(!contact.heard(About::Job), "it was not away");
        assert_eq!(contact.missed(About::Pod), Verdict::New);
        advance(Duration::from_secs(600)).await;
        assert_eq!(contact.missed(About::Pod), Verdict::Doubtful, "a quiet watch in between");
        contact.answers(About::Pod);
        assert_eq!(contact.missed(About::Pod), Verdict::New);
    }
}
