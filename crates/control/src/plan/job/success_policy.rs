//! Success policy (KEP-3998): an Indexed Job may succeed before all its indexes have.

use k8s_openapi::api::batch::v1::{Job, SuccessPolicyRule};

use crate::plan::job::indexes::Indexes;

/// The rules of a success policy, read once: they cannot change while the Job lives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SuccessRules(Vec<Rule>);

#[derive(Clone, Debug, PartialEq, Eq)]
struct Rule {
    /// The indexes that are looked at; all of them when absent.
    indexes: Option<Indexes>,
    count: Option<i32>,
}

impl SuccessRules {
    pub(crate) fn of(job: &Job, index_count: i32) -> Self {
        let policy = job.spec.as_ref().and_then(|spec| spec.success_policy.as_ref());
        let read = |rule: &SuccessPolicyRule| Rule {
            indexes: rule.succeeded_indexes.as_ref().map(|list| Indexes::parse(list, index_count)),
            count: rule.succeeded_count,
        };
        Self(policy.iter().flat_map(|policy| &policy.rules).map(read).collect())
    }

    /// The first rule that is met, in the words of the condition.
    pub(crate) fn matched(&self, succeeded: &Indexes) -> Option<String> {
        if succeeded.is_empty() {
            return None;
        }
        let at = self.0.iter().position(|rule| rule.is_met(succeeded))?;
        Some(format!("Matched rules at index {at}"))
    }
}

impl Rule {
    fn is_met(&self, succeeded: &Indexes) -> bool {
        match &self.indexes {
            None => self.count.is_some_and(|count| succeeded.count() >= i64::from(count)),
            // An empty list, or one that could not be read, is never met.
            Some(wanted) if wanted.is_empty() => false,
            Some(wanted) => {
                let hits = wanted.common(succeeded);
                hits == wanted.count() || self.count.is_some_and(|count| hits >= i64::from(count))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::{Value, json};

    use super::*;

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
}
