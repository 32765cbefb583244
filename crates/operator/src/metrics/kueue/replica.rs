//! What this process is among those that work on a cluster.

use std::sync::OnceLock;

use crate::lease::Leadership;

/// Whether this process leads, as far as somebody has said.
#[derive(Debug, Default)]
pub(super) struct Replica(OnceLock<Leadership>);

const FOLLOWER: &str = "follower";

impl Replica {
    /// From now on this tells whether it leads. It is said once.
    pub(super) fn follow(&self, leadership: &Leadership) {
        drop(self.0.set(leadership.clone()));
    }

    /// Whether others may admit, and this does not.
    pub(super) fn follows(&self) -> bool {
        self.role() == FOLLOWER
    }

    /// The role, in the word that Kueue has for it.
    pub(super) fn role(&self) -> &'static str {
        match self.0.get() {
            None => "standalone",
            Some(leadership) if leadership.is_alone() => "standalone",
            Some(leadership) if leadership.may_send() => "leader",
            Some(_) => FOLLOWER,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_role_is_told_as_kueue_tells_it() {
        let replica = Replica::default();
        assert_eq!(replica.role(), "standalone");
        replica.follow(&Leadership::never());
        assert_eq!(replica.role(), "follower");
        let replica = Replica::default();
        replica.follow(&Leadership::alone());
        assert_eq!(replica.role(), "standalone");
    }
}
