//! What a namespace that is being deleted says about how far that has come.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::json;

use crate::{json::object_mut, strategy::Json};

/// What is left in a namespace that is being deleted, all of it asked to go.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remaining {
    /// How many objects of each resource, as `resource.group`; of the core group `resource.`.
    pub resources: BTreeMap<String, usize>,
    /// How many objects each finalizer holds.
    pub finalizers: BTreeMap<String, usize>,
}

/// Type, and reason and message when all is well. Nothing here can fail to be discovered, parsed or
/// deleted; clients that know the conditions find all of them.
const WELL: [(&str, &str, &str); 5] = [
    (
        "NamespaceDeletionDiscoveryFailure",
        "ResourcesDiscovered",
        "All resources successfully discovered",
    ),
    (
        "NamespaceDeletionGroupVersionParsingFailure",
        "ParsedGroupVersions",
        "All legacy kube types successfully parsed",
    ),
    (
        "NamespaceDeletionContentFailure",
        "ContentDeleted",
        "All content successfully deleted, may be waiting on finalization",
    ),
    (CONTENT, "ContentRemoved", "All content successfully removed"),
    (FINALIZERS, "ContentHasNoFinalizers", "All content-preserving finalizers finished"),
];

const CONTENT: &str = "NamespaceContentRemaining";
const FINALIZERS: &str = "NamespaceFinalizersRemaining";

/// Makes the conditions say what remains; returns whether they did not say so already.
pub fn update(namespace: &mut Json, remaining: &Remaining, now: Timestamp) -> bool {
    let status = object_mut(namespace, "status");
    let conditions = status.entry("conditions").or_insert_with(|| json!([]));
    let Some(conditions) = conditions.as_array_mut() else { return false };
    let mut is_changed = false;
    for (kind, reason, message) in WELL {
        let (status, reason, message) = match troubled(kind, remaining) {
            Some((reason, message)) => ("True", reason, message),
            None => ("False", reason, message.to_owned()),
        };
        let mut wanted = json!({
            "type": kind,
            "status": status,
            // RFC 3339 without fractions, as all times in metadata are.
            "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string(),
            "reason": reason,
            "message": message,
        });
        match conditions.iter_mut().find(|condition| condition["type"] == kind) {
            None => conditions.push(wanted),
            Some(known) => {
                if known["status"] == wanted["status"] {
                    wanted["lastTransitionTime"] = known["lastTransitionTime"].clone();
                }
                if *known == wanted {
                    continue;
                }
                *known = wanted;
            }
        }
        is_changed = true;
    }
    is_changed
}

/// The reason and the message of a condition that holds.
fn troubled(kind: &str, remaining: &Remaining) -> Option<(&'static str, String)> {
    let listed = |counts: &BTreeMap<String, usize>, how: &str| {
        let each: Vec<String> = counts
            .iter()
            .map(|(name, count)| format!("{name} {how} {count} resource instances"))
            .collect();
        (!each.is_empty()).then(|| each.join(", "))
    };
    match kind {
        CONTENT => {
            let each = listed(&remaining.resources, "has")?;
            Some(("SomeResourcesRemain", format!("Some resources are remaining: {each}")))
        }
        FINALIZERS => {
            let each = listed(&remaining.finalizers, "in")?;
            let start = "Some content in the namespace has finalizers remaining";
            Some(("SomeFinalizersRemain", format!("{start}: {each}")))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::Value;

    use super::*;

    fn remaining(resources: &[(&str, usize)], finalizers: &[(&str, usize)]) -> Remaining {
        let counted = |counts: &[(&str, usize)]| {
            counts.iter().map(|(name, count)| ((*name).to_owned(), *count)).collect()
        };
        Remaining { resources: counted(resources), finalizers: counted(finalizers) }
    }

    fn condition<'a>(namespace: &'a Json, kind: &str) -> &'a Value {
        let conditions = namespace["status"]["conditions"].as_array().expect("conditions");
        conditions.iter().find(|one| one["type"] == kind).expect(kind)
    }

    #[test]
    fn what_remains_is_counted_and_said_in_upstreams_words() {
        let mut namespace = Json::new();
        let at = |second: i64| Timestamp::from_second(second).expect("a moment");
        let held = remaining(&[("pods.", 2), ("jobs.batch", 1)], &[("example.com/hold", 3)]);
        assert!(update(&mut namespace, &held, at(10)));
        assert_eq!(namespace["status"]["conditions"].as_array().map(Vec::len), Some(5));
        let content = condition(&namespace, CONTENT);
        assert_eq!(content["status"], "True");
        assert_eq!(content["reason"], "SomeResourcesRemain");
        assert_eq!(
            content["message"],
            "Some resources are remaining: jobs.batch has 1 resource instances, pods. has 2 \
             resource instances"
        );
        assert_eq!(
            condition(&namespace, FINALIZERS)["message"],
            "Some content in the namespace has finalizers remaining: example.com/hold in 3 \
             resource instances"
        );
        let failure = condition(&namespace, "NamespaceDeletionContentFailure");
        assert_eq!(failure["status"], "False");
        assert!(!update(&mut namespace, &held, at(11)), "nothing new");
        assert!(update(&mut namespace, &remaining(&[("pods.", 1)], &[]), at(12)));
        let began = &condition(&namespace, CONTENT)["lastTransitionTime"];
        assert_eq!(began, "1970-01-01T00:00:10Z", "it still holds");
        let over = condition(&namespace, FINALIZERS);
        assert_eq!(over["lastTransitionTime"], "1970-01-01T00:00:12Z");
        assert_eq!(over["reason"], "ContentHasNoFinalizers");
        assert!(update(&mut namespace, &Remaining::default(), at(13)));
        assert_eq!(condition(&namespace, CONTENT)["message"], "All content successfully removed");
    }
}
