//! The headless Service by which the pods of a JobSet reach each other.

use std::collections::BTreeMap;

use k8s_openapi::{
    api::core::v1::{Service, ServiceSpec},
    apimachinery::pkg::apis::meta::v1::ObjectMeta,
};
use lockstep_api::{
    jobset::{JobSetSpec, names},
    labels::jobset::JOBSET_NAME,
};

use super::{Step, build, pass::Pass};

/// Whether pods have names of their own.
pub(super) fn is_wanted(spec: &JobSetSpec) -> bool {
    spec.network.as_ref().and_then(|network| network.enable_dns_hostnames) == Some(true)
}

/// Creates the Service if it is wanted and not there. One that is there is left as it is, whoever
/// made it.
pub(super) fn ensure(pass: &mut Pass<'_>) {
    let spec = pass.spec();
    if !is_wanted(spec) || pass.view.has_service() {
        return;
    }
    let meta = &pass.jobset().metadata;
    let jobset = meta.name.as_deref().unwrap_or_default();
    let publish = spec.network.as_ref().and_then(|network| network.publish_not_ready_addresses);
    let service = Service {
        metadata: ObjectMeta {
            name: Some(names::subdomain(jobset, spec).to_owned()),
            namespace: meta.namespace.clone(),
            owner_references: Some(vec![build::owner(pass.jobset())]),
            ..ObjectMeta::default()
        },
        spec: Some(ServiceSpec {
            cluster_ip: Some("None".to_owned()),
            publish_not_ready_addresses: Some(publish.unwrap_or(true)),
            selector: Some(BTreeMap::from([(JOBSET_NAME.to_owned(), jobset.to_owned())])),
            ..ServiceSpec::default()
        }),
        status: None,
    };
    pass.steps.push(Step::CreateService(Box::new(service)));
}
