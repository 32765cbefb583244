//! Success policy (KEP-3998): an Indexed Job may succeed before all its indexes have.

use k8s_openapi::api::batch::v1::{Job, SuccessPolicyRule};

use crate::plan::job::indexes::Indexes;

/// The rules of a success policy, read once: they cannot change while the Job lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SuccessRules(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// The indexes that are looked at; all of them when absent.
    wanted: Option<Vec<Interval>>,
    count: Option<i32>,
}

/// First and last index, both inclusive.
type Interval = (i32, i32);

impl SuccessRules {
    pub(crate) fn of(job: &Job, index_count: i32) -> Self {
        let policy = job.spec.as_ref().and_then(|spec| spec.success_policy.as_ref());
        let read = |rule: &SuccessPolicyRule| Rule {
            wanted: rule
                .succeeded_indexes
                .as_ref()
                .map(|list| Indexes::parse(list, index_count).intervals().collect()),
            count: rule.succeeded_count,
        };
        Self(policy.iter().flat_map(|policy| &policy.rules).map(read).collect())
    }

    /// The first rule that is met, in the words of the condition.
    pub(crate) fn matched(&self, succeeded: &Indexes) -> Option<String> {
        if succeeded.is_empty() || self.0.is_empty() {
            return None;
        }
        let done: Vec<Interval> = succeeded.intervals().collect();
        let at = self.0.iter().position(|rule| rule.is_met(&done, succeeded.count()))?;
        Some(format!("Matched rules at index {at}"))
    }
}

impl Rule {
    fn is_met(&self, done: &[Interval], done_count: i64) -> bool {
        let count = self.count.map(i64::from);
        match &self.wanted {
            None => count.is_some_and(|count| done_count >= count),
            // An empty list, or one that could not be read, is never met.
            Some(wanted) if wanted.is_empty() => false,
            Some(wanted) => {
                let total = wanted.iter().copied().map(width).sum();
                reaches(wanted, done, count.map_or(total, |count| count.min(total)), total)
            }
        }
    }
}

/// Whether so many of the wanted indexes are done: one walk over both lists, which ends as soon as
/// the answer is known.
fn reaches(wanted: &[Interval], done: &[Interval], enough: i64, total: i64) -> bool {
    let (mut hits, mut misses, mut at) = (0, 0, 0);
    for &(first, last) in wanted {
        let before = hits;
        while at < done.len() && done[at].1 < first {
            at += 1;
        }
        // An interval of the one list may reach over several of the other.
        let mut next = at;
        while next < done.len() && done[next].0 <= last {
            hits += width((first.max(done[next].0), last.min(done[next].1)));
            at = next;
            next += 1;
        }
        misses += width((first, last)) - (hits - before);
        if hits >= enough || misses > total - enough {
            break;
        }
    }
    hits >= enough
}

fn width((first, last): Interval) -> i64 {
    i64::from(last) - i64::from(first) + 1
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

    /// How many wanted indexes are done, found the slow way.
    fn hits(wanted: &Indexes, done: &Indexes) -> i64 {
        i64::try_from(wanted.iter().filter(|index| done.contains(*index)).count()).unwrap()
    }

    proptest! {
        #[test]
        fn the_walk_counts_what_both_lists_have(
            wanted in proptest::collection::btree_set(0..60_i32, 1..40),
            done in proptest::collection::btree_set(0..60_i32, 0..40),
            enough in 0..40_i64,
        ) {
            let wanted: Indexes = wanted.into_iter().collect();
            let done: Indexes = done.into_iter().collect();
            let lists: [Vec<Interval>; 2] = [&wanted, &done].map(|set| set.intervals().collect());
            let enough = enough.min(wanted.count());
            let want = hits(&wanted, &done) >= enough;
            prop_assert_eq!(reaches(&lists[0], &lists[1], enough, wanted.count()), want);
            prop_assert_eq!(wanted.common(&done), hits(&wanted, &done));
        }
    }

    fn rules(rules: &Value, completions: i32) -> SuccessRules {
        let job = json!({"spec": {"template": {}, "successPolicy": {"rules": rules}}});
        SuccessRules::of(&Job::deserialize(job).unwrap(), completions)
    }

    // rule: job 4.1
    #[test]
    fn the_first_rule_that_is_met_decides() {
        let list = |list: &str| json!({"succeededIndexes": list});
        let count = |count: i32| json!({"succeededCount": count});
        let both =
            |list: &str, count: i32| json!({"succeededIndexes": list, "succeededCount": count});
        let cases = [
            ("nothing has succeeded", json!([count(0)]), "", None),
            ("zero is met by one", json!([count(0)]), "4", Some(0)),
            ("count not reached", json!([count(3)]), "0,1", None),
            ("count reached", json!([count(2)]), "0,1", Some(0)),
            ("index missing", json!([list("0,2-4")]), "0,2,3", None),
            ("all indexes there", json!([list("0,2-4")]), "0-5", Some(0)),
            ("some of the indexes", json!([both("0,2-4", 2)]), "3-5", Some(0)),
            ("too few of the indexes", json!([both("0,2-4", 3)]), "3-5", None),
            ("all of fewer indexes than the count", json!([both("0,2", 5)]), "0-2", Some(0)),
            ("an empty list is never met", json!([list("")]), "0-9", None),
            ("a broken list is never met", json!([list("x-y"), list("1")]), "0-9", Some(1)),
            ("a list beyond completions is never met", json!([list("10-12")]), "0-9", None),
            ("the first of two", json!([list("7"), count(1)]), "7", Some(0)),
            ("the second of two", json!([list("8"), count(1)]), "7", Some(1)),
            ("an empty rule", json!([{}]), "0-9", None),
            ("no rules", json!([]), "0-9", None),
        ];
        for (name, given, succeeded, want) in cases {
            let met = rules(&given, 10).matched(&Indexes::parse(succeeded, 10));
            assert_eq!(met, want.map(|at: usize| format!("Matched rules at index {at}")), "{name}");
        }
    }

    /// Every third index, as long as fits in a rule: lists of one index each are the worst.
    fn longest_list(offset: i32) -> String {
        let mut list = String::new();
        for index in (offset..100_000).step_by(3) {
            let next = index.to_string();
            if list.len() + next.len() + 1 > 65_536 {
                break;
            }
            if !list.is_empty() {
                list.push(',');
            }
            list.push_str(&next);
        }
        list
    }

    // rule: job 4.1
    #[test]
    fn ranges_are_never_expanded_however_large() {
        let all = rules(&json!([{"succeededIndexes": "0-2147483645"}]), i32::MAX);
        let mut succeeded = Indexes::below(i32::MAX);
        assert!(all.matched(&succeeded).is_some());
        succeeded.remove(1_000_000);
        assert!(all.matched(&succeeded).is_none());
        // Twenty rules of the largest size over a hundred thousand indexes, none met but the last.
        let mut list: Vec<Value> = (0..19)
            .map(|at| {
                json!({"succeededIndexes": longest_list(at % 3),
                "succeededCount": 6_000})
            })
            .collect();
        list.push(json!({"succeededCount": 50_000}));
        let rules = rules(&json!(list), 100_000);
        let every_second: Indexes = (0..100_000).step_by(2).collect();
        assert_eq!(every_second.pieces(), 50_000);
        assert_eq!(rules.matched(&every_second).unwrap(), "Matched rules at index 19");
    }
}
