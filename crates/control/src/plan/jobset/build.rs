//! The Jobs a JobSet creates.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::{
        batch::v1::Job,
        core::v1::{PersistentVolumeClaimVolumeSource, PodSpec, Toleration, Volume},
    },
    apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference},
};
use lockstep_api::{
    jobset::{API_VERSION, JobSet, KIND, ReplicatedJob, in_place::restarts, names},
    labels::jobset as keys,
};

use super::{group, in_place, pass::Pass, service};

type Labels = BTreeMap<String, String>;

/// Builds the Job of a replicated job with this index.
pub(super) fn job(pass: &Pass<'_>, wanted: &ReplicatedJob, index: i32) -> Job {
    let jobset = pass.jobset();
    let (spec, meta) = (&jobset.spec, &jobset.metadata);
    let set_name = meta.name.as_deref().unwrap_or_default();
    let name = names::job(set_name, &wanted.name, i64::from(index));
    let own = own_labels(pass, wanted, index, &name);
    let exclusive = exclusive(jobset, wanted);
    let given = wanted.template.metadata.clone().unwrap_or_default();
    let mut job_spec = wanted.template.spec.clone().unwrap_or_default();
    let mut metadata = ObjectMeta {
        name: Some(name.clone()),
        namespace: meta.namespace.clone(),
        owner_references: Some(vec![owner(jobset)]),
        ..ObjectMeta::default()
    };
    put(&mut metadata, (given.labels, given.annotations), &own, &exclusive);
    let pods = job_spec.template.metadata.take().unwrap_or_default();
    let mut pod_meta = ObjectMeta { labels: None, annotations: None, ..pods.clone() };
    put(&mut pod_meta, (pods.labels, pods.annotations), &own, &exclusive);
    job_spec.template.metadata = Some(pod_meta);
    job_spec.suspend = Some(pass.is_suspended());
    let annotations = metadata.annotations.as_ref();
    let has = |key: &str| annotations.is_some_and(|all| all.contains_key(key));
    let is_kept_apart = has(keys::EXCLUSIVE_TOPOLOGY) && has(keys::NODE_SELECTOR);
    let pod = job_spec.template.spec.get_or_insert_default();
    if service::is_wanted(spec) {
        pod.subdomain = Some(names::subdomain(set_name, spec).to_owned());
    }
    if is_kept_apart {
        let namespace = meta.namespace.as_deref().unwrap_or_default();
        keep_apart(pod, format!("{namespace}_{name}"));
    }
    mount_claims(pod, jobset);
    if let Some(wiring) = &pass.options.in_place
        && restarts(meta).is_some()
    {
        let generation = in_place::generation(pass.status());
        in_place::inject(&mut job_spec, set_name, generation, wiring);
    }
    Job { metadata, spec: Some(job_spec), status: None }
}

/// The reference to the set in what it owns.
pub(super) fn owner(jobset: &JobSet) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: KIND.to_owned(),
        name: jobset.metadata.name.clone().unwrap_or_default(),
        uid: jobset.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}

/// What is put on a Job and its pods, as label and as annotation.
fn own_labels(pass: &Pass<'_>, wanted: &ReplicatedJob, index: i32, name: &str) -> Labels {
    let (spec, meta) = (pass.spec(), &pass.jobset().metadata);
    let set_name = meta.name.as_deref().unwrap_or_default();
    let namespace = meta.namespace.as_deref().unwrap_or_default();
    let index = i64::from(index);
    let global = group::before(spec, &wanted.name, |_| true) + index;
    let is_member = |job: &ReplicatedJob| job.group_name == wanted.group_name;
    let in_group = group::before(spec, &wanted.name, is_member) + index;
    let mut labels = vec![
        (keys::JOBSET_NAME, set_name.to_owned()),
        (keys::JOBSET_UID, meta.uid.clone().unwrap_or_default()),
        (keys::REPLICATED_JOB_NAME, wanted.name.clone()),
        (keys::REPLICATED_JOB_REPLICAS, wanted.replicas.to_string()),
        (keys::GLOBAL_REPLICAS, group::total(spec).to_string()),
        (keys::JOB_INDEX, index.to_string()),
        (keys::JOB_GLOBAL_INDEX, global.to_string()),
        (keys::JOB_KEY, names::job_key(namespace, name)),
        (keys::RESTART_ATTEMPT, pass.status().restarts.to_string()),
        (keys::GROUP_NAME, wanted.group_name.clone()),
        (keys::GROUP_REPLICAS, group::in_group(spec, &wanted.group_name).to_string()),
        (keys::JOB_GROUP_INDEX, in_group.to_string()),
    ];
    if pass.options.gates.restart_job {
        let index = usize::try_from(index).unwrap_or_default();
        let own = group::restarts_of(pass.jobset(), pass.status(), &wanted.name, index);
        labels.push((keys::JOB_RESTART_ATTEMPT, own.unwrap_or_default().to_string()));
    }
    if let Some(coordinator) = &spec.coordinator {
        labels.push((keys::COORDINATOR, names::coordinator(set_name, spec, coordinator)));
    }
    labels.into_iter().map(|(key, value)| (key.to_owned(), value)).collect()
}

/// Annotations of exclusive placement: those of the set, or of the replicated job where it says in
/// which domain.
fn exclusive(jobset: &JobSet, wanted: &ReplicatedJob) -> Labels {
    let mut found = Labels::new();
    let template = wanted.template.metadata.as_ref();
    let levels =
        [jobset.metadata.annotations.as_ref(), template.and_then(|meta| meta.annotations.as_ref())];
    for annotations in levels.into_iter().flatten() {
        let Some(topology) = annotations.get(keys::EXCLUSIVE_TOPOLOGY) else { continue };
        found.insert(keys::EXCLUSIVE_TOPOLOGY.to_owned(), topology.clone());
        if let Some(value) = annotations.get(keys::NODE_SELECTOR) {
            found.insert(keys::NODE_SELECTOR.to_owned(), value.clone());
        }
    }
    found
}

fn put(
    meta: &mut ObjectMeta,
    (labels, annotations): (Option<Labels>, Option<Labels>),
    own: &Labels,
    exclusive: &Labels,
) {
    let mut labels = labels.unwrap_or_default();
    labels.extend(own.clone());
    let mut annotations = annotations.unwrap_or_default();
    annotations.extend(own.clone());
    annotations.extend(exclusive.clone());
    meta.labels = Some(labels);
    meta.annotations = Some(annotations);
}

/// Sends pods to the nodes that are kept for their Job.
fn keep_apart(pod: &mut PodSpec, job: String) {
    pod.node_selector.get_or_insert_default().insert(keys::NAMESPACED_JOB.to_owned(), job);
    pod.tolerations.get_or_insert_default().push(Toleration {
        key: Some(keys::NO_SCHEDULE.to_owned()),
        operator: Some("Exists".to_owned()),
        effect: Some("NoSchedule".to_owned()),
        ..Toleration::default()
    });
}

/// Adds a volume for each claim that a container mounts.
fn mount_claims(pod: &mut PodSpec, jobset: &JobSet) {
    let set_name = jobset.metadata.name.as_deref().unwrap_or_default();
    let templates = jobset.spec.volume_claim_policies.iter().flat_map(|policy| &policy.templates);
    for template in templates.filter_map(|template| template.metadata.name.as_deref()) {
        let containers = pod.init_containers.iter().flatten().chain(&pod.containers);
        let mut mounts = containers.flat_map(|one| one.volume_mounts.iter().flatten());
        if !mounts.any(|mount| mount.name == template) {
            continue;
        }
        let claim = PersistentVolumeClaimVolumeSource {
            claim_name: names::claim(template, set_name),
            ..PersistentVolumeClaimVolumeSource::default()
        };
        pod.volumes.get_or_insert_default().push(Volume {
            name: template.to_owned(),
            persistent_volume_claim: Some(claim),
            ..Volume::default()
        });
    }
}
