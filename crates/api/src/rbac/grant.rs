//! Whoever writes roles and bindings gives rights away, and may give away only their own.

use serde_json::{Value, json};

use super::{GROUP, Request, Roles, Who, allowed_by, overreach};
use crate::{
    json::{list, text},
    strategy::Json,
};

/// Why somebody may not write a role or a binding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The role that is to be bound is not there: nobody can tell what would be given away.
    NoSuchRole {
        /// `roles` or `clusterroles`.
        plural: String,
        /// Its name.
        name: String,
    },
    /// It would give away more than the writer has.
    Overreach(String),
}

/// Whether somebody may write `object`, a role or a binding of the kind `plural` that was `old`
/// before: when all rights it gives are theirs, or when a rule lets them `escalate` that role, or
/// `bind` the role that is bound.
///
/// # Errors
/// When not.
pub fn may_grant(
    roles: &impl Roles,
    who: Who<'_>,
    plural: &str,
    old: Option<&Json>,
    object: &Json,
) -> Result<(), Refusal> {
    let namespace = text(object, &["metadata", "namespace"]);
    let given = given(roles, plural, object, namespace);
    let request = Request::Resource {
        verb: given.verb,
        group: GROUP,
        resource: given.plural,
        subresource: "",
        namespace,
        name: given.name,
    };
    if allowed_by(roles, who, &request).is_some() {
        return Ok(());
    }
    let Some(rules) = given.rules else {
        let (plural, name) = (given.plural.to_owned(), given.name.to_owned());
        return Err(Refusal::NoSuchRole { plural, name });
    };
    if let Some(why) = overreach(roles, who, namespace, rules) {
        return Err(Refusal::Overreach(why));
    }
    // What it gathers may be anything, now or later; and what it no longer gathers stays in it.
    let gathers = is_gathering(object) || old.is_some_and(is_gathering);
    if gathers && overreach(roles, who, "", &everything()).is_some() {
        let why = "must have cluster-admin privileges to use the aggregationRule";
        return Err(Refusal::Overreach(why.to_owned()));
    }
    Ok(())
}

fn is_gathering(role: &Json) -> bool {
    !list(role, &["aggregationRule", "clusterRoleSelectors"]).is_empty()
}

fn everything() -> [Value; 2] {
    [
        json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}),
        json!({"verbs": ["*"], "nonResourceURLs": ["*"]}),
    ]
}

/// What an object gives away, and what one must be allowed to do to give away more than one has.
struct Given<'a> {
    verb: &'static str,
    plural: &'a str,
    name: &'a str,
    /// Nothing when the role is not there.
    rules: Option<&'a [Value]>,
}

fn given<'a>(
    roles: &'a impl Roles,
    plural: &'a str,
    object: &'a Json,
    namespace: &'a str,
) -> Given<'a> {
    if !object.contains_key("roleRef") {
        let name = text(object, &["metadata", "name"]);
        let rules = Some(list(object, &["rules"]));
        return Given { verb: "escalate", plural, name, rules };
    }
    let name = text(object, &["roleRef", "name"]);
    let is_of_namespace = text(object, &["roleRef", "kind"]) == "Role";
    let plural = if is_of_namespace { "roles" } else { "clusterroles" };
    let rules = roles.rules(is_of_namespace.then_some(namespace), name);
    Given { verb: "bind", plural, name, rules }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One user who has the rules of one role, and other roles that nobody has.
    struct Town {
        binding: Json,
        own: Vec<Value>,
        pods: Vec<Value>,
    }

    impl Roles for Town {
        fn cluster_bindings(&self) -> Vec<&Json> {
            vec![&self.binding]
        }

        fn bindings(&self, _namespace: &str) -> Vec<&Json> {
            Vec::new()
        }

        fn rules(&self, namespace: Option<&str>, name: &str) -> Option<&[Value]> {
            match (namespace, name) {
                (None, "own") => Some(&self.own),
                (None, "pods") | (Some("red"), "pods") => Some(&self.pods),
                _ => None,
            }
        }
    }

    fn object(value: Value) -> Json {
        value.as_object().unwrap().clone()
    }

    fn town(own: Value) -> Town {
        let binding = json!({
            "metadata": {"name": "b"},
            "roleRef": {"kind": "ClusterRole", "name": "own"},
            "subjects": [{"kind": "User", "name": "ann"}],
        });
        let pods = vec![json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]})];
        Town { binding: object(binding), own: vec![own], pods }
    }

    fn role() -> Json {
        object(json!({
            "metadata": {"name": "r", "namespace": "red"},
            "rules": [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}],
        }))
    }

    fn binding(kind: &str, name: &str) -> Json {
        object(json!({
            "metadata": {"name": "rb", "namespace": "red"},
            "roleRef": {"kind": kind, "name": name},
        }))
    }

    #[test]
    fn only_what_is_ones_own_is_given_away_unless_a_rule_says_so() {
        let nothing = json!({"verbs": [], "apiGroups": [""], "resources": []});
        let pods = json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]});
        let rule = |verb: &str, resource: &str, names: Value| {
            json!({"verbs": [verb], "apiGroups": [GROUP], "resources": [resource],
                   "resourceNames": names})
        };
        let cases = [
            ("nothing of one's own", nothing.clone(), role(), false),
            ("one's own", pods.clone(), role(), true),
            ("a binding of one's own", pods, binding("Role", "pods"), true),
            ("a binding of others'", nothing, binding("Role", "pods"), false),
            ("may escalate", rule("escalate", "roles", json!([])), role(), true),
            ("may escalate this one", rule("escalate", "roles", json!(["r"])), role(), true),
            ("may escalate another", rule("escalate", "roles", json!(["x"])), role(), false),
            ("to bind is not to escalate", rule("bind", "roles", json!([])), role(), false),
            ("may bind", rule("bind", "roles", json!(["pods"])), binding("Role", "pods"), true),
            (
                "may bind roles of namespaces only",
                rule("bind", "roles", json!([])),
                binding("ClusterRole", "pods"),
                false,
            ),
            (
                "to escalate is not to bind",
                rule("escalate", "roles", json!([])),
                binding("Role", "pods"),
                false,
            ),
        ];
        for (name, own, object, want) in cases {
            let plural = if object.contains_key("roleRef") { "rolebindings" } else { "roles" };
            let who = Who { name: "ann", groups: &[] };
            let got = may_grant(&town(own), who, plural, None, &object);
            assert_eq!(got.is_ok(), want, "{name}: {got:?}");
        }
    }

    #[test]
    fn only_who_may_do_everything_has_roles_gathered() {
        let gathering = object(json!({
            "metadata": {"name": "g"}, "rules": [],
            "aggregationRule": {"clusterRoleSelectors": [{}]},
        }));
        let everything = json!({
            "verbs": ["*"], "apiGroups": ["*"], "resources": ["*"], "nonResourceURLs": ["*"],
        });
        let pods = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["pods"]});
        let plain = object(json!({"metadata": {"name": "g"}, "rules": []}));
        let empty = object(json!({"metadata": {"name": "g"}, "aggregationRule": {}}));
        let cases = [
            (&everything, None, &gathering, true),
            (&pods, None, &gathering, false),
            (&everything, Some(&gathering), &plain, true),
            (&pods, Some(&gathering), &plain, false),
            (&pods, Some(&plain), &gathering, false),
            (&pods, Some(&plain), &plain, true),
            (&pods, None, &empty, true),
        ];
        for (own, old, new, want) in cases {
            let who = Who { name: "ann", groups: &[] };
            let got = may_grant(&town(own.clone()), who, "clusterroles", old, new);
            assert_eq!(got.is_ok(), want, "{old:?} {new:?}: {got:?}");
        }
    }

    #[test]
    fn what_is_not_there_cannot_be_bound() {
        let who = Who { name: "ann", groups: &[] };
        for (kind, plural) in [("Role", "roles"), ("ClusterRole", "clusterroles")] {
            let object = binding(kind, "nope");
            let got = may_grant(&town(json!({})), who, "rolebindings", None, &object);
            assert_eq!(
                got,
                Err(Refusal::NoSuchRole { plural: plural.to_owned(), name: "nope".to_owned() })
            );
        }
    }
}
