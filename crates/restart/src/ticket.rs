//! What lets an agent speak: for a pod of one generation of one job, and nothing else.
//!
//! A ticket is made by whoever leads the job, and goes into the templates of its pods. It opens the
//! door; which place an agent speaks for then follows from the uid of its pod, which only that pod
//! and the readers of the API know. A ticket for each place would need a template for each: all
//! pods of a Job are made of one, and a Secret with a key for each of thousands of places, mounted
//! by index, is what a cluster should not have to carry. What one place can do to others is kept
//! small instead: see [`crate::seal`].

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use ring::hmac;
use serde::{Deserialize, Serialize};

use crate::seal::SEAL;

/// What a ticket says.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ticket {
    /// The job, by uid.
    pub job: String,
    /// The generation of its pods.
    pub generation: u32,
    /// Until when it is good, in seconds of Unix time.
    pub until: u64,
}

impl Ticket {
    /// What a ticket says, whoever made it: for its bearer, who has no key.
    pub fn read(signed: &str) -> Option<Self> {
        let (said, _) = signed.split_once('.')?;
        postcard::from_bytes(&URL_SAFE_NO_PAD.decode(said).ok()?).ok()
    }
}

/// The key that tickets are made and checked with. It is the same for all that may lead.
#[derive(Clone)]
pub struct Key {
    tickets: hmac::Key,
    /// What orders are sealed with: made of the same bytes, and good for nothing else.
    orders: hmac::Key,
}

impl Key {
    /// A key of these bytes, which should be 32 random ones.
    pub fn new(bytes: &[u8]) -> Self {
        let tickets = hmac::Key::new(hmac::HMAC_SHA256, bytes);
        let orders = hmac::sign(&tickets, b"lockstep orders");
        Self { orders: hmac::Key::new(hmac::HMAC_SHA256, orders.as_ref()), tickets }
    }

    /// What shows that this was said to the agents of a job by somebody who has the key.
    pub(crate) fn tag(&self, job: &str, said: &[u8]) -> [u8; SEAL] {
        let mut context = hmac::Context::with_key(&self.orders);
        // The length keeps what is said apart from the job.
        context.update(&(job.len() as u64).to_be_bytes());
        context.update(job.as_bytes());
        context.update(said);
        let mut tag = [0; SEAL];
        tag.copy_from_slice(&context.sign().as_ref()[..SEAL]);
        tag
    }

    /// Makes a ticket.
    pub fn sign(&self, ticket: &Ticket) -> String {
        let said = postcard::to_allocvec(ticket).expect("a ticket is plain data");
        let tag = hmac::sign(&self.tickets, &said);
        format!("{}.{}", URL_SAFE_NO_PAD.encode(said), URL_SAFE_NO_PAD.encode(tag))
    }

    /// What a ticket says, if it was made with this key and is still good `now`.
    pub fn check(&self, signed: &str, now: SystemTime) -> Option<Ticket> {
        let (said, tag) = signed.split_once('.')?;
        let (said, tag) = (URL_SAFE_NO_PAD.decode(said).ok()?, URL_SAFE_NO_PAD.decode(tag).ok()?);
        hmac::verify(&self.tickets, &said, &tag).ok()?;
        let ticket: Ticket = postcard::from_bytes(&said).ok()?;
        let now = now.duration_since(UNIX_EPOCH).unwrap_or(Duration::MAX).as_secs();
        (now < ticket.until).then_some(ticket)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_was_made_with_the_key_is_good_and_not_for_ever() {
        let (key, other) = (Key::new(&[7; 32]), Key::new(&[8; 32]));
        let ticket = Ticket { job: "uid".into(), generation: 2, until: 1000 };
        let signed = key.sign(&ticket);
        let at = |seconds| UNIX_EPOCH + Duration::from_secs(seconds);
        assert_eq!(key.check(&signed, at(999)), Some(ticket.clone()));
        assert_eq!(Ticket::read(&signed), Some(ticket.clone()), "its bearer needs no key");
        assert_eq!(key.check(&signed, at(1000)), None);
        assert_eq!(other.check(&signed, at(0)), None);
        let (said, tag) = signed.split_once('.').unwrap();
        let forged = other.sign(&Ticket { generation: 3, ..ticket });
        let (forged, _) = forged.split_once('.').unwrap();
        for bad in ["", ".", said, &format!("{said}."), &format!("{forged}.{tag}"), "a.b.c"] {
            assert_eq!(key.check(bad, at(0)), None, "{bad}");
        }
    }
}
