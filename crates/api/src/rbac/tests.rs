//! Rules, bindings and what follows from them.

use std::collections::BTreeMap;

use serde_json::json;

use super::*;

/// Roles and bindings of a small cluster.
#[derive(Default)]
struct Town {
    cluster_bindings: Vec<Json>,
    bindings: BTreeMap<&'static str, Vec<Json>>,
    rules: BTreeMap<(Option<&'static str>, &'static str), Vec<Value>>,
}

impl Roles for Town {
    fn cluster_bindings(&self) -> Vec<&Json> {
        self.cluster_bindings.iter().collect()
    }

    fn bindings(&self, namespace: &str) -> Vec<&Json> {
        self.bindings.get(namespace).into_iter().flatten().collect()
    }

    fn rules(&self, namespace: Option<&str>, name: &str) -> Option<&[Value]> {
        let found =
            self.rules.iter().find(|((place, role), _)| (*place, *role) == (namespace, name));
        found.map(|(_, rules)| rules.as_slice())
    }
}

fn object(value: Value) -> Json {
    value.as_object().cloned().unwrap()
}

fn binding(name: &str, role: (&str, &str), subject: Value) -> Json {
    let (kind, role) = role;
    object(json!({
        "metadata": {"name": name},
        "roleRef": {"kind": kind, "name": role},
        "subjects": [{"kind": "User", "name": "somebody-else"}, subject],
    }))
}

fn town() -> Town {
    let reader = json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods"]});
    let secret = json!({
        "verbs": ["get"], "apiGroups": [""], "resources": ["secrets"], "resourceNames": ["mine"],
    });
    let health = json!({"verbs": ["get"], "nonResourceURLs": ["/healthz", "/apis/*"]});
    let scale = json!({"verbs": ["*"], "apiGroups": ["*"], "resources": ["*/scale", "pods/log"]});
    Town {
        cluster_bindings: vec![
            binding("health", ("ClusterRole", "health"), json!({"kind": "Group", "name": "all"})),
            binding("gone", ("ClusterRole", "deleted"), json!({"kind": "User", "name": "ann"})),
        ],
        bindings: BTreeMap::from([(
            "red",
            vec![
                binding(
                    "read",
                    ("Role", "reader"),
                    json!({"kind": "ServiceAccount", "name": "bot"}),
                ),
                binding("scale", ("ClusterRole", "scale"), json!({"kind": "User", "name": "ann"})),
                binding(
                    "far",
                    ("Role", "secret"),
                    json!({"kind": "ServiceAccount", "name": "bot", "namespace": "blue"}),
                ),
            ],
        )]),
        rules: BTreeMap::from([
            ((None, "health"), vec![health]),
            ((None, "scale"), vec![scale]),
            ((Some("red"), "reader"), vec![reader]),
            ((Some("red"), "secret"), vec![secret]),
        ]),
    }
}

/// `verb [group/]resource[/sub] [namespace [name]]`, or `verb /path`.
fn ask(user: &str, words: &str) -> Option<String> {
    let words: Vec<&str> = words.split(' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let request = if word(1).starts_with('/') {
        Request::Path { verb: word(0), path: word(1) }
    } else {
        let (group, rest) = word(1).split_once(':').unwrap_or_else(|| ("", word(1)));
        let (resource, subresource) = rest.split_once('/').unwrap_or((rest, ""));
        Request::Resource {
            verb: word(0),
            group,
            resource,
            subresource,
            namespace: word(2),
            name: word(3),
        }
    };
    let groups = ["all".to_owned()];
    allowed_by(&town(), Who { name: user, groups: &groups }, &request)
}

#[test]
fn only_what_a_rule_covers_is_allowed() {
    let red = "system:serviceaccount:red:bot";
    let blue = "system:serviceaccount:blue:bot";
    let cases = [
        (red, "get pods red", true),
        (red, "list pods red x", true),
        (red, "delete pods red x", false),
        (red, "get pods blue", false),
        (red, "get pods", false),
        (red, "get pods/log red x", false),
        (red, "get secrets red mine", false),
        (red, "get other:pods red", false),
        (blue, "get secrets red mine", true),
        (blue, "get secrets red", false),
        (blue, "get secrets red yours", false),
        (blue, "get pods red", false),
        ("ann", "update apps:deployments/scale red x", true),
        ("ann", "update apps:deployments red x", false),
        ("ann", "get pods/log red x", true),
        ("ann", "get pods/exec red x", false),
        ("ann", "get secrets red mine", false),
        ("ann", "get /healthz", true),
        ("ann", "get /healthz/ping", false),
        ("ann", "get /apis/batch", true),
        ("ann", "post /healthz", false),
    ];
    for (user, words, want) in cases {
        assert_eq!(ask(user, words).is_some(), want, "{user}: {words}");
    }
}

#[test]
fn the_reason_names_the_binding() {
    let cases = [
        (
            "system:serviceaccount:red:bot",
            "get pods red",
            r#"RBAC: allowed by RoleBinding "read/red" of Role "reader" to ServiceAccount "bot/red""#,
        ),
        (
            "system:serviceaccount:blue:bot",
            "get secrets red mine",
            r#"RBAC: allowed by RoleBinding "far/red" of Role "secret" to ServiceAccount "bot/blue""#,
        ),
        (
            "ann",
            "get /healthz",
            r#"RBAC: allowed by ClusterRoleBinding "health" of ClusterRole "health" to Group "all""#,
        ),
    ];
    for (user, words, want) in cases {
        assert_eq!(ask(user, words).as_deref(), Some(want));
    }
}

#[test]
fn superusers_need_no_role() {
    let groups = [SUPERUSERS.to_owned()];
    let who = Who { name: "root", groups: &groups };
    let request = Request::Path { verb: "delete", path: "/" };
    assert_eq!(allowed_by(&Town::default(), who, &request).as_deref(), Some(""));
}

#[test]
fn refusals_say_who_cannot_do_what_where() {
    let who = Who { name: "ann", groups: &[] };
    let pods = |subresource, namespace| Request::Resource {
        verb: "get",
        group: "",
        resource: "pods",
        subresource,
        namespace,
        name: "",
    };
    let cases = [
        (
            pods("", "red"),
            r#"User "ann" cannot get resource "pods" in API group "" in the namespace "red""#,
        ),
        (
            pods("log", ""),
            r#"User "ann" cannot get resource "pods/log" in API group "" at the cluster scope"#,
        ),
        (
            Request::Path { verb: "get", path: "/metrics" },
            r#"User "ann" cannot get path "/metrics""#,
        ),
    ];
    for (request, want) in cases {
        assert_eq!(refusal(who, &request), want);
    }
}

#[test]
fn nobody_gives_away_what_is_not_theirs() {
    let owned = [
        json!({"verbs": ["get", "list"], "apiGroups": [""], "resources": ["pods", "pods/log"]}),
        json!({"verbs": ["*"], "apiGroups": ["batch"], "resources": ["*"]}),
        json!({"verbs": ["get"], "nonResourceURLs": ["/metrics/*"]}),
        json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
               "resourceNames": ["mine"]}),
    ];
    let cases = [
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}), true),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["pods/log"]}), true),
        (json!({"verbs": ["get", "delete"], "apiGroups": [""], "resources": ["pods"]}), false),
        (json!({"verbs": ["*"], "apiGroups": [""], "resources": ["pods"]}), false),
        (json!({"verbs": ["*"], "apiGroups": ["batch"], "resources": ["jobs", "*"]}), true),
        (json!({"verbs": ["get"], "apiGroups": ["*"], "resources": ["jobs"]}), false),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/metrics/x"]}), true),
        (json!({"verbs": ["get"], "nonResourceURLs": ["/metrics"]}), false),
        (
            json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"],
                   "resourceNames": ["mine"]}),
            true,
        ),
        (json!({"verbs": ["get"], "apiGroups": [""], "resources": ["secrets"]}), false),
    ];
    for (rule, want) in cases {
        assert_eq!(includes(&owned, &rule), want, "{rule}");
    }
}

#[test]
fn those_who_reach_too_far_are_told_what_is_not_theirs() {
    let pods = |verbs: &[&str]| json!({"apiGroups": [""], "resources": ["pods"], "verbs": verbs});
    let bot = "system:serviceaccount:red:bot";
    let tried = |name: &str, namespace: &str, rule: Value| {
        overreach(&town(), Who { name, groups: &["all".to_owned()] }, namespace, &[rule])
    };
    assert_eq!(tried(bot, "red", pods(&["get", "list"])), None);
    assert_eq!(
        tried(bot, "red", pods(&["get", "delete"])).as_deref(),
        Some(
            "user \"system:serviceaccount:red:bot\" (groups=[\"all\"]) is attempting to grant RBAC \
             permissions not currently held:\n{APIGroups:[\"\"], Resources:[\"pods\"], \
             Verbs:[\"delete\"]}"
        )
    );
    let much =
        json!({"apiGroups": [""], "resources": ["pods", "pods/log"], "verbs": ["delete", "patch"]});
    let told = tried(bot, "red", much).unwrap();
    let (_, told) = told.split_once('\n').unwrap();
    assert_eq!(
        told,
        "{APIGroups:[\"\"], Resources:[\"pods\"], Verbs:[\"delete\" \"patch\"]}\n\
         {APIGroups:[\"\"], Resources:[\"pods/log\"], Verbs:[\"delete\" \"patch\"]}"
    );
    let told = tried(bot, "red", pods(&["delete", "delete"])).unwrap();
    assert!(told.ends_with("Verbs:[\"delete\" \"delete\"]}"), "what is asked for twice is: {told}");
    assert!(tried(bot, "blue", pods(&["get"])).is_some(), "rights end with the namespace");
}

#[test]
fn a_role_is_put_together_from_those_its_selectors_match() {
    let rule = |verb: &str| json!({"verbs": [verb], "apiGroups": [""], "resources": ["pods"]});
    let role = |name: &str, label: &str, verbs: &[&str]| {
        let rules: Vec<Value> = verbs.iter().map(|verb| rule(verb)).collect();
        let labels = json!({label: "true"});
        object(json!({"metadata": {"name": name, "labels": labels}, "rules": rules}))
    };
    let sum = object(json!({
        "metadata": {"name": "sum", "labels": {"to-sum": "true"}},
        "aggregationRule": {"clusterRoleSelectors": [{"matchLabels": {"to-sum": "true"}}]},
        "rules": [rule("old")],
    }));
    let others = [
        role("b", "to-sum", &["get", "list"]),
        role("a", "to-sum", &["watch", "get"]),
        role("c", "to-other", &["delete"]),
        sum.clone(),
    ];
    let want = vec![rule("watch"), rule("get"), rule("list")];
    assert_eq!(aggregated(&sum, &others), Some(want));
    assert_eq!(aggregated(&others[0], &others), None, "an ordinary one has rules of its own");
}
