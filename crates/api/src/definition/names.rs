//! Which names a definition gets, beside those that others of its group have.

use std::collections::BTreeSet;

use jiff::{Timestamp, Unit};
use serde_json::{Value, json};

use super::validation::{Approval, approval};
use crate::{
    json::{at, object_mut, text},
    quote::quoted,
    strategy::Json,
};

/// The names that other definitions of a group have.
#[derive(Clone, Debug, Default)]
pub struct Taken {
    resources: BTreeSet<String>,
    kinds: BTreeSet<String>,
}

impl Taken {
    /// Adds the names that a definition has been given.
    pub fn add(&mut self, definition: &Json) {
        let Some(names) = at(definition, &["status", "acceptedNames"]) else { return };
        for key in ["plural", "singular"] {
            self.resources.extend(names[key].as_str().map(str::to_owned));
        }
        let short = names["shortNames"].as_array().into_iter().flatten();
        self.resources.extend(short.filter_map(Value::as_str).map(str::to_owned));
        for key in ["kind", "listKind"] {
            self.kinds.extend(names[key].as_str().map(str::to_owned));
        }
    }
}

/// Gives a definition the names it wants, as far as nobody else has them, and says so in its
/// status.
pub fn settle(definition: &mut Json, taken: &Taken, now: Timestamp) {
    let wanted = at(definition, &["spec", "names"]).cloned().unwrap_or_default();
    let had = at(definition, &["status", "acceptedNames"]).cloned().unwrap_or_default();
    if wanted != had {
        let (names, fault) = accepted(&wanted, &had, taken);
        object_mut(definition, "status").insert("acceptedNames".to_owned(), names);
        let is_accepted = fault.is_none();
        let (reason, message) =
            fault.unwrap_or_else(|| ("NoConflicts", "no conflicts found".to_owned()));
        set_condition(definition, "NamesAccepted", is_accepted, (reason, &message), now);
        if !super::is_true(definition, "Established") {
            let (reason, message) = match is_accepted {
                true => ("InitialNamesAccepted", "the initial names have been accepted"),
                false => ("NotAccepted", "not all names are accepted"),
            };
            set_condition(definition, "Established", is_accepted, (reason, message), now);
        }
    }
    settle_approval(definition, now);
}

fn settle_approval(definition: &mut Json, now: Timestamp) {
    let (is_so, reason, message) = match approval(definition) {
        Approval::Unneeded => return,
        Approval::Given { is_approved, reason, message } => (is_approved, reason, message),
        Approval::Faulty { reason, message } => (false, reason, message),
    };
    let name = "KubernetesAPIApprovalPolicyConformant";
    set_condition(definition, name, is_so, (reason, &message), now);
}

/// Says that a condition holds, or does not; its time changes when that does.
pub fn set_condition(
    definition: &mut Json,
    name: &str,
    is_so: bool,
    (reason, message): (&str, &str),
    now: Timestamp,
) {
    let status = object_mut(definition, "status");
    let slot = status.entry("conditions").or_insert(Value::Null);
    if !slot.is_array() {
        *slot = Value::Array(Vec::new());
    }
    let Value::Array(conditions) = slot else { return };
    let is_so = if is_so { "True" } else { "False" };
    let old = conditions.iter_mut().find(|condition| condition["type"] == name);
    let since = match &old {
        Some(old) if old["status"] == is_so => old["lastTransitionTime"].clone(),
        _ => seconds(now).into(),
    };
    let condition = json!({
        "type": name, "status": is_so, "lastTransitionTime": since, "reason": reason,
        "message": message,
    });
    match old {
        Some(old) => *old = condition,
        None => conditions.push(condition),
    }
}

/// The names of `wanted` that are free or were had before, and what is wrong if there are others.
fn accepted(wanted: &Value, had: &Value, taken: &Taken) -> (Value, Option<(&'static str, String)>) {
    let mut names = if had.is_object() { had.clone() } else { json!({}) };
    let mut fault = None;
    let in_use = |name: &str| format!("{} is already in use", quoted(name));
    let mut try_one = |key: &str, others: &BTreeSet<String>, reason: &'static str| {
        let name = wanted[key].as_str().unwrap_or_default();
        if had[key] == *name || !others.contains(name) {
            names[key] = name.into();
        } else {
            fault = Some((reason, in_use(name)));
        }
    };
    try_one("plural", &taken.resources, "PluralConflict");
    try_one("singular", &taken.resources, "SingularConflict");
    if wanted["shortNames"] != had["shortNames"] {
        let list = |names: &Value| names["shortNames"].as_array().cloned().unwrap_or_default();
        let own = list(had);
        let conflicts: Vec<String> = list(wanted)
            .iter()
            .filter(|name| !own.contains(name))
            .filter_map(Value::as_str)
            .filter(|name| taken.resources.contains(*name))
            .map(in_use)
            .collect();
        match conflicts.as_slice() {
            [] => copy(wanted, &mut names, "shortNames"),
            [one] => fault = Some(("ShortNamesConflict", one.clone())),
            many => fault = Some(("ShortNamesConflict", format!("[{}]", many.join(", ")))),
        }
    }
    let mut try_one = |key: &str, reason: &'static str| {
        let name = wanted[key].as_str().unwrap_or_default();
        if had[key] == *name || !taken.kinds.contains(name) {
            names[key] = name.into();
        } else {
            fault = Some((reason, in_use(name)));
        }
    };
    try_one("kind", "KindConflict");
    try_one("listKind", "ListKindConflict");
    copy(wanted, &mut names, "categories");
    (names, fault)
}

fn copy(from: &Value, to: &mut Value, key: &str) {
    let Value::Object(to) = to else { return };
    match from.get(key) {
        Some(value) => drop(to.insert(key.to_owned(), value.clone())),
        None => drop(to.remove(key)),
    }
}

fn seconds(at: Timestamp) -> String {
    at.round(Unit::Second).unwrap_or(at).to_string()
}

/// Whether two definitions are of one group.
pub fn is_same_group(a: &Json, b: &Json) -> bool {
    text(a, &["spec", "group"]) == text(b, &["spec", "group"])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(plural: &str, kind: &str, short: &[&str]) -> Json {
        let value = json!({"spec": {"group": "example.com", "names": {
            "plural": plural, "singular": kind.to_lowercase(), "kind": kind,
            "listKind": format!("{kind}List"), "shortNames": short}}});
        let Value::Object(object) = value else { unreachable!("it is one") };
        object
    }

    fn said(definition: &Json, name: &str) -> [String; 3] {
        let condition = super::super::condition(definition, name).unwrap();
        ["status", "reason", "message"].map(|key| condition[key].as_str().unwrap().to_owned())
    }

    #[test]
    fn free_names_are_accepted_at_once() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut one = definition("foos", "Foo", &["f"]);
        settle(&mut one, &Taken::default(), now);
        assert_eq!(one["status"]["acceptedNames"], one["spec"]["names"]);
        assert_eq!(said(&one, "NamesAccepted"), ["True", "NoConflicts", "no conflicts found"]);
        assert_eq!(
            said(&one, "Established"),
            ["True", "InitialNamesAccepted", "the initial names have been accepted"]
        );
    }

    #[test]
    fn names_of_others_are_refused_until_they_are_free() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let cases: [(Json, &str, &str); 3] = [
            (definition("bars", "Foo", &[]), "ListKindConflict", "\"FooList\" is already in use"),
            (definition("bars", "Bar", &["f"]), "ShortNamesConflict", "\"f\" is already in use"),
            (definition("f", "Bar", &[]), "PluralConflict", "\"f\" is already in use"),
        ];
        let mut taken = Taken::default();
        let mut first = definition("foos", "Foo", &["f"]);
        settle(&mut first, &taken, now);
        taken.add(&first);
        for (mut other, reason, message) in cases {
            settle(&mut other, &taken, now);
            assert_eq!(said(&other, "NamesAccepted"), ["False", reason, message]);
            assert_eq!(
                said(&other, "Established"),
                ["False", "NotAccepted", "not all names are accepted"]
            );
            settle(&mut other, &Taken::default(), now);
            assert_eq!(said(&other, "Established")[0], "True");
        }
    }

    #[test]
    fn groups_of_kubernetes_itself_say_who_approved() {
        let now = "2026-11-15T12:00:00Z".parse().unwrap();
        let mut one = definition("foos", "Foo", &[]);
        one["spec"]["group"] = "foo.k8s.io".into();
        one.insert(
            "metadata".to_owned(),
            json!({"annotations": {
            "api-approved.kubernetes.io": "https://github.com/kubernetes/kubernetes/pull/1"}}),
        );
        settle(&mut one, &Taken::default(), now);
        assert_eq!(
            said(&one, "KubernetesAPIApprovalPolicyConformant"),
            [
                "True",
                "ApprovedAnnotation",
                "approved in https://github.com/kubernetes/kubernetes/pull/1"
            ]
        );
    }
}
