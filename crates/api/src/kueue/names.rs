//! What the objects of queueing are called.

use sha1::{Digest, Sha1};

/// How long a name may be.
const NAME_MAX: usize = 253;
/// How many digits tell jobs of one name apart.
const DIGITS: usize = 5;

/// The name of the Workload of a job: its kind and name, cut if need be, and some digits that tell
/// jobs of one name apart.
pub fn workload(kind: &str, group: &str, name: &str, uid: &str) -> String {
    let digest = Sha1::digest(format!("{kind}\n{group}\n{name}\n{uid}"));
    let digits: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    let prefix: String = format!("{}-{name}", kind.to_lowercase());
    let prefix: String = prefix.chars().take(NAME_MAX - DIGITS - 1).collect();
    format!("{prefix}-{}", &digits[..DIGITS])
}

#[cfg(test)]
mod tests {
    use super::*;

    // rule: queueing 3.2.1
    #[test]
    fn workloads_are_named_by_kind_name_and_uid() {
        let one = workload("Job", "batch", "train", "u1");
        assert_eq!(one, "job-train-e4af4", "printf 'Job\\nbatch\\ntrain\\nu1' | sha1sum");
        assert_ne!(one, workload("Job", "batch", "train", "u2"), "another uid");
        let set = workload("JobSet", "jobset.x-k8s.io", "train", "u1");
        assert!(set.starts_with("jobset-train-"), "{set}");
        let long = workload("Job", "batch", &"x".repeat(300), "u1");
        assert_eq!(long.len(), NAME_MAX);
        assert_eq!(long.rfind('-'), Some(247));
    }
}
