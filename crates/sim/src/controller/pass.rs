//! What is left of a pass. It is lost with the controller, wherever it has come to.

use std::collections::VecDeque;

use lockstep_control::plan::Key;

use crate::watch::Seen;

/// Requests still to be made for one object.
pub(super) struct Pass<C> {
    /// The object.
    pub(super) key: Key,
    /// Whether the driver has begun no pass: there is one request, and nothing to end.
    pub(super) is_beside: bool,
    /// What the controller had seen when it planned.
    pub(super) seen: Seen,
    /// Each with the number of its group.
    calls: VecDeque<(usize, C)>,
    /// The group of the last request made.
    group: usize,
}

impl<C> Pass<C> {
    /// A pass of these groups of requests.
    pub(super) fn new(key: Key, groups: Vec<Vec<C>>, seen: Seen) -> Self {
        let numbered =
            |(group, calls): (usize, Vec<C>)| calls.into_iter().map(move |call| (group, call));
        let calls = groups.into_iter().enumerate().flat_map(numbered).collect();
        Self { key, is_beside: false, seen, calls, group: 0 }
    }

    /// A request that is part of no pass.
    pub(super) fn beside(key: Key, call: C, seen: Seen) -> Self {
        Self { is_beside: true, ..Self::new(key, vec![vec![call]], seen) }
    }

    /// Whether nothing is left.
    pub(super) fn is_over(&self) -> bool {
        self.calls.is_empty()
    }

    /// Takes the next request.
    pub(super) fn next(&mut self) -> Option<C> {
        let (group, call) = self.calls.pop_front()?;
        self.group = group;
        Some(call)
    }

    /// The last request has another one follow, before all others.
    pub(super) fn insert(&mut self, call: C) {
        self.calls.push_front((self.group, call));
    }

    /// The last request has failed: the rest of its group is tried, nothing after it.
    pub(super) fn fail(&mut self) {
        self.calls.retain(|(group, _)| *group == self.group);
    }
}

#[cfg(test)]
mod tests {
    use lockstep_control::plan::Key;

    use super::Pass;
    use crate::watch::Seen;

    /// Makes requests until none is left; those of `failing` fail, and 3 is followed by 30.
    fn made(failing: &[u32]) -> Vec<u32> {
        let key = Key { namespace: "sim".to_owned(), name: "a".to_owned() };
        let groups = vec![vec![1], vec![], vec![2, 3, 4], vec![5]];
        let mut pass = Pass::new(key, groups, Seen::default());
        let mut made = Vec::new();
        while let Some(call) = pass.next() {
            made.push(call);
            if failing.contains(&call) {
                pass.fail();
            } else if call == 3 {
                pass.insert(30);
            }
        }
        assert!(pass.is_over());
        made
    }

    #[test]
    fn a_failure_ends_the_pass_after_its_group() {
        assert_eq!(made(&[]), [1, 2, 3, 30, 4, 5]);
        assert_eq!(made(&[1]), [1]);
        assert_eq!(made(&[2]), [1, 2, 3, 30, 4]);
        assert_eq!(made(&[3]), [1, 2, 3, 4], "what should have followed does not");
        assert_eq!(made(&[2, 30]), [1, 2, 3, 30, 4]);
    }
}
