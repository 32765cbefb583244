//! What the objects of a JobSet are called.

use sha1::{Digest, Sha1};

use super::{Coordinator, JobSetSpec};

/// The name of a Job: `<jobset>-<replicated job>-<index>`.
pub fn job(jobset: &str, replicated_job: &str, index: i64) -> String {
    format!("{jobset}-{replicated_job}-{index}")
}

/// The host name of a pod of an Indexed Job; its name goes on with a hyphen and five characters.
pub fn pod(jobset: &str, replicated_job: &str, job_index: i64, pod_index: i64) -> String {
    format!("{jobset}-{replicated_job}-{job_index}-{pod_index}")
}

/// The name of the headless Service, and the domain of the pods.
pub fn subdomain<'a>(jobset: &'a str, spec: &'a JobSetSpec) -> &'a str {
    match spec.network.as_ref().map(|network| network.subdomain.as_str()) {
        None | Some("") => jobset,
        Some(subdomain) => subdomain,
    }
}

/// Where the coordinator is reached.
pub fn coordinator(jobset: &str, spec: &JobSetSpec, coordinator: &Coordinator) -> String {
    let Coordinator { replicated_job, job_index, pod_index } = coordinator;
    let host = pod(jobset, replicated_job, *job_index, *pod_index);
    format!("{host}.{}", subdomain(jobset, spec))
}

/// The name of a claim made from a template.
pub fn claim(template: &str, jobset: &str) -> String {
    format!("{template}-{jobset}")
}

/// What tells a Job from all others of the cluster, in a label: SHA-1 of namespace and name.
pub fn job_key(namespace: &str, job: &str) -> String {
    let digest = Sha1::digest(format!("{namespace}/{job}"));
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::jobset::Network;

    // rule: jobset 2.1
    #[test]
    fn names_are_made_of_names_and_indexes() {
        assert_eq!(job("js", "workers", 10), "js-workers-10");
        assert_eq!(pod("js", "workers", 1, 2), "js-workers-1-2");
        assert_eq!(claim("data", "js"), "data-js");
        assert_eq!(job_key("default", "js-a-0"), "48f2819cdfd2c46a2f2aea5af4915251215e08e1");
        let driver =
            Coordinator { replicated_job: "driver".to_owned(), job_index: 1, pod_index: 3 };
        let mut spec = JobSetSpec::default();
        assert_eq!(coordinator("js", &spec, &driver), "js-driver-1-3.js");
        let network = Network { subdomain: "net".to_owned(), ..Network::default() };
        spec.network = Some(network);
        assert_eq!(coordinator("js", &spec, &driver), "js-driver-1-3.net");
    }
}
