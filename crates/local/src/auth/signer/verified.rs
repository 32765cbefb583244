//! Tokens whose signature was found to be right: to look at one again takes longer than all the
//! rest of most requests.
//!
//! Only the signature is remembered, which stays right for as long as the key does. Whether a token
//! still counts is asked each time.

use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use lockstep_api::tokens::Claims;
use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

/// How many are remembered for sure; twice as many may be.
const COUNT: usize = 4096;

/// What a token is found by: nobody finds out by trying how much of a wrong one is right.
type Digest = [u8; SHA256_OUTPUT_LEN];

/// Tokens with a right signature, and what they say. The ones that were not asked for since as many
/// others were are forgotten.
#[derive(Default)]
pub(super) struct Verified(Mutex<Generations>);

#[derive(Default)]
struct Generations {
    young: HashMap<Digest, Arc<Claims>>,
    old: HashMap<Digest, Arc<Claims>>,
}

impl Verified {
    /// What `token` says; `verify` finds out unless it is known, and only what it finds is kept.
    pub(super) fn read(
        &self,
        token: &str,
        verify: impl FnOnce() -> Option<Claims>,
    ) -> Option<Arc<Claims>> {
        let digest = digest_of(token);
        if let Some(known) = self.lock().find(&digest) {
            return Some(known);
        }
        let claims = Arc::new(verify()?);
        self.lock().keep(digest, Arc::clone(&claims));
        Some(claims)
    }

    fn lock(&self) -> MutexGuard<'_, Generations> {
        // No code that can panic runs while the lock is held.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Generations {
    fn find(&mut self, digest: &Digest) -> Option<Arc<Claims>> {
        if let Some(known) = self.young.get(digest) {
            return Some(Arc::clone(known));
        }
        let known = self.old.remove(digest)?;
        self.keep(*digest, Arc::clone(&known));
        Some(known)
    }

    fn keep(&mut self, digest: Digest, claims: Arc<Claims>) {
        if self.young.len() >= COUNT {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(digest, claims);
    }
}

fn digest_of(token: &str) -> Digest {
    let mut bytes = Digest::default();
    bytes.copy_from_slice(digest(&SHA256, token.as_bytes()).as_ref());
    bytes
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    fn claims(name: &str) -> Claims {
        use lockstep_api::tokens::{Grant, Reference};
        let account = Reference { name: name.to_owned(), uid: "1".to_owned() };
        let (namespace, audiences) = ("n".to_owned(), Vec::new());
        let grant = Grant { namespace, account, bound: None, audiences, seconds: 600 };
        Claims::new(grant, "id".to_owned(), jiff::Timestamp::UNIX_EPOCH)
    }

    #[test]
    fn a_right_signature_is_looked_at_once_and_a_wrong_one_each_time() {
        let verified = Verified::default();
        let looks = Cell::new(0);
        let ask = |token: &str| {
            verified.read(token, || {
                looks.set(looks.get() + 1);
                (token != "wrong").then(|| claims(token))
            })
        };
        for _ in 0..3 {
            assert_eq!(ask("right").as_deref(), Some(&claims("right")));
        }
        assert_eq!(looks.replace(0), 1);
        for _ in 0..3 {
            assert_eq!(ask("wrong"), None);
        }
        assert_eq!(looks.get(), 3);
    }

    #[test]
    fn no_more_are_kept_than_there_is_room_for_and_those_in_use_stay() {
        let verified = Verified::default();
        verified.read("kept", || Some(claims("kept"))).unwrap();
        for number in 0..5 * COUNT {
            let token = number.to_string();
            verified.read(&token, || Some(claims("other"))).unwrap();
            if number % 1000 == 0 {
                verified.read("kept", || panic!("it is in use")).unwrap();
            }
        }
        let known = verified.lock();
        assert!(known.young.len() <= COUNT && known.old.len() <= COUNT);
    }
}
