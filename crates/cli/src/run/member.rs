//! What a Job or pod is to the JobSet it is of.

use lockstep_api::{
    jobset::KIND,
    labels::jobset::{
        JOB_INDEX, JOB_RESTART_ATTEMPT, JOBSET_NAME, JOBSET_UID, REPLICATED_JOB_NAME,
        RESTART_ATTEMPT,
    },
};
use serde_json::Value;

/// A place in a JobSet.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Member {
    /// The name of the JobSet.
    pub(crate) set: String,
    /// The uid of the JobSet; empty where nobody says.
    pub(crate) uid: String,
    /// The replicated job.
    pub(crate) group: String,
    /// The index within the replicated job.
    pub(crate) index: i64,
    /// The attempt of the whole JobSet.
    pub(crate) attempt: i32,
    /// How often the Job was restarted by itself.
    pub(crate) alone: i32,
}

impl Member {
    /// Reads it from the metadata of a Job or pod.
    pub(crate) fn of(meta: &Value) -> Option<Self> {
        let labels = &meta["labels"];
        let text = |key: &str| labels[key].as_str().unwrap_or_default();
        let set = labels[JOBSET_NAME].as_str()?.to_owned();
        let owners = meta["ownerReferences"].as_array().into_iter().flatten();
        let mut owners = owners.filter(|it| it["controller"] == true && it["kind"] == KIND);
        let owner = owners.next().and_then(|owner| owner["uid"].as_str());
        Some(Self {
            set,
            uid: owner.unwrap_or_else(|| text(JOBSET_UID)).to_owned(),
            group: text(REPLICATED_JOB_NAME).to_owned(),
            index: text(JOB_INDEX).parse().unwrap_or_default(),
            attempt: text(RESTART_ATTEMPT).parse().unwrap_or_default(),
            alone: text(JOB_RESTART_ATTEMPT).parse().unwrap_or_default(),
        })
    }

    /// `2`, or `2.1` for a Job that was restarted once by itself in attempt 2 or before.
    pub(crate) fn attempt_words(&self) -> String {
        match self.alone {
            0 => self.attempt.to_string(),
            alone => format!("{}.{alone}", self.attempt),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_member_is_known_by_its_labels_and_its_owner() {
        let meta = json!({"labels": {JOBSET_NAME: "train", JOBSET_UID: "by-label",
            REPLICATED_JOB_NAME: "workers", JOB_INDEX: "3", RESTART_ATTEMPT: "2",
            JOB_RESTART_ATTEMPT: "0"}});
        let member = Member::of(&meta).expect("a member");
        assert_eq!((member.uid.as_str(), member.index), ("by-label", 3));
        assert_eq!(member.attempt_words(), "2");
        let mut owned = meta;
        owned["ownerReferences"] =
            json!([{"kind": "JobSet", "uid": "by-owner", "controller": true}]);
        owned["metadata"] = json!({});
        owned["labels"][JOB_RESTART_ATTEMPT] = json!("1");
        let member = Member::of(&owned).expect("a member");
        assert_eq!((member.uid.as_str(), member.attempt_words().as_str()), ("by-owner", "2.1"));
        assert_eq!(Member::of(&json!({"labels": {"a": "b"}})), None);
        let odd = json!({"labels": {JOBSET_NAME: "x", RESTART_ATTEMPT: "many"}});
        assert_eq!(Member::of(&odd).expect("a member").attempt, 0);
    }
}
