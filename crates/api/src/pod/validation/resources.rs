//! Requests and limits.

use std::collections::{BTreeMap, BTreeSet};

use k8s_openapi::{
    api::core::v1::{PodSpec, ResourceClaim, ResourceRequirements},
    apimachinery::pkg::api::resource::Quantity as Written,
};

use super::{
    container::Context,
    rules::{dns_label, list, text},
};
use crate::{
    amounts,
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
    quantity::Quantity,
};

type Amounts = BTreeMap<String, Written>;

/// Who asks for resources.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Owner {
    /// One container.
    Container,
    /// The pod as a whole.
    Pod,
}

/// Says what is wrong with requests and limits.
pub(super) fn validate(
    wanted: &ResourceRequirements,
    owner: Owner,
    context: &Context<'_>,
    path: &Path,
) -> ErrorList {
    let empty = Amounts::new();
    let limits = wanted.limits.as_ref().unwrap_or(&empty);
    let requests = wanted.requests.as_ref().unwrap_or(&empty);
    let mut errors = validate_amounts(limits, requests, owner, path);
    errors.extend(claims(list(&wanted.claims), &context.claims, &path.child("claims")));
    errors
}

/// Says what is wrong with `overhead`, which is judged as limits are.
pub(super) fn validate_overhead(overhead: &Amounts, path: &Path) -> ErrorList {
    validate_amounts(overhead, &Amounts::new(), Owner::Container, path)
}

/// Says what is wrong with the resources of the pod as a whole.
pub(super) fn validate_pod(spec: &PodSpec, context: &Context<'_>, path: &Path) -> ErrorList {
    let Some(wanted) = &spec.resources else { return ErrorList::new() };
    if context.os == Some("windows") {
        return vec![FieldError::forbidden(path, "may not be set for a windows pod")];
    }
    let mut errors = ErrorList::new();
    if wanted.claims.is_some() {
        let why = "claims may not be set for Resources at pod-level";
        errors.push(FieldError::forbidden(&path.child("claims"), why));
    }
    errors.extend(validate(wanted, Owner::Pod, context, path));
    errors.extend(limits_of_containers(spec, wanted, path));
    errors
}

fn validate_amounts(limits: &Amounts, requests: &Amounts, owner: Owner, path: &Path) -> ErrorList {
    let (limit_path, request_path) = (path.child("limits"), path.child("requests"));
    let mut errors = ErrorList::new();
    for (name, amount) in limits {
        errors.extend(validate_amount(name, amount, owner, &limit_path.key(name)));
    }
    for (name, amount) in requests {
        errors.extend(validate_amount(name, amount, owner, &request_path.key(name)));
        let may_overcommit = is_overcommittable(name);
        let Some(limit) = limits.get(name) else {
            if !may_overcommit {
                let why = "Limit must be set for non overcommitable resources";
                errors.push(FieldError::required(&limit_path, why));
            }
            continue;
        };
        let (Ok(asked), Ok(most)) = (Quantity::parse(&amount.0), Quantity::parse(&limit.0)) else {
            continue;
        };
        let relation = if asked != most && !may_overcommit {
            "equal to"
        } else if asked > most {
            "less than or equal to"
        } else {
            continue;
        };
        let why = format!("must be {relation} {name} limit of {}", limit.0);
        errors.push(FieldError::invalid(&request_path, &amount.0, &why));
    }
    let has = |wanted: fn(&str) -> bool| limits.keys().chain(requests.keys()).any(|n| wanted(n));
    if has(is_huge) && !has(|name| name == "cpu" || name == "memory") {
        errors.push(FieldError::forbidden(path, "HugePages require cpu or memory"));
    }
    errors
}

fn validate_amount(name: &str, amount: &Written, owner: Owner, path: &Path) -> ErrorList {
    let mut errors = match owner {
        Owner::Container => container_resource_name(name, path),
        Owner::Pod => pod_resource_name(name, path),
    };
    let parsed = match Quantity::parse(&amount.0) {
        Ok(parsed) => parsed,
        Err(error) => {
            errors.push(FieldError::invalid(path, &amount.0, &error.to_string()));
            return errors;
        }
    };
    if parsed.sign() < 0 {
        let why = "must be greater than or equal to 0";
        errors.push(FieldError::invalid(path, &amount.0, why));
    }
    if is_extended(name) && parsed.milli_value() % 1000 != 0 {
        errors.push(FieldError::invalid(path, &amount.0, "must be an integer"));
    }
    if is_huge(name) && !is_multiple_of_page(name, &parsed) {
        let why = format!("{} is not positive integer multiple of {name}", amount.0);
        errors.push(FieldError::invalid(path, &amount.0, &why));
    }
    errors
}

pub(crate) fn container_resource_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = resource_name(name, path);
    if !name.contains('/') {
        let is_known = matches!(name, "cpu" | "memory" | "ephemeral-storage") || is_huge(name);
        if !is_known {
            let why = "must be a standard resource for containers";
            errors.push(FieldError::invalid(path, name, why));
        }
    } else if !is_native(name) && !is_extended(name) {
        let why = "doesn't follow extended resource name standard";
        errors.push(FieldError::invalid(path, name, why));
    }
    errors
}

fn pod_resource_name(name: &str, path: &Path) -> ErrorList {
    let mut errors = resource_name(name, path);
    let is_known = matches!(name, "cpu" | "memory") || is_huge(name);
    if errors.is_empty() && !is_known {
        errors.push(FieldError::not_supported(path, name, &["cpu", "hugepages-", "memory"]));
    }
    errors
}

pub(crate) fn resource_name(name: &str, path: &Path) -> ErrorList {
    const STANDARD: [&str; 20] = [
        "configmaps",
        "cpu",
        "ephemeral-storage",
        "limits.cpu",
        "limits.ephemeral-storage",
        "limits.memory",
        "memory",
        "persistentvolumeclaims",
        "pods",
        "replicationcontrollers",
        "requests.cpu",
        "requests.ephemeral-storage",
        "requests.memory",
        "requests.storage",
        "resourcequotas",
        "secrets",
        "services",
        "services.loadbalancers",
        "services.nodeports",
        "storage",
    ];
    let mut errors = invalid(path, name, names::qualified_name(name));
    let is_standard =
        STANDARD.contains(&name) || is_huge(name) || name.starts_with("requests.hugepages-");
    if errors.is_empty() && !name.contains('/') && !is_standard {
        let why = "must be a standard resource type or fully qualified";
        errors.push(FieldError::invalid(path, name, why));
    }
    errors
}

pub(crate) fn is_huge(name: &str) -> bool {
    name.starts_with("hugepages-")
}

pub(crate) fn is_native(name: &str) -> bool {
    !name.contains('/') || name.contains("kubernetes.io/")
}

/// Whether more of it may be promised than there is.
pub(crate) fn is_overcommittable(name: &str) -> bool {
    is_native(name) && !is_huge(name)
}

pub(crate) fn is_extended(name: &str) -> bool {
    // The name must leave room for the prefix that quotas put before it.
    !is_native(name)
        && !name.starts_with("requests.")
        && names::qualified_name(&format!("requests.{name}")).is_empty()
}

fn is_multiple_of_page(name: &str, amount: &Quantity) -> bool {
    let size = name.strip_prefix("hugepages-").and_then(|size| Quantity::parse(size).ok());
    size.filter(|size| size.sign() > 0 && size.is_whole())
        .is_some_and(|size| amount.value() % size.value() == 0)
}

fn claims(claims: &[ResourceClaim], known: &BTreeSet<&str>, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();
    for (at, claim) in claims.iter().enumerate() {
        let path = path.index(at);
        let (name, request) = (claim.name.as_str(), text(&claim.request));
        if name.is_empty() {
            errors.push(FieldError::required(&path, ""));
            continue;
        }
        if seen.contains(name) {
            errors.push(FieldError::duplicate(&path, name));
        } else {
            let key = if request.is_empty() {
                name.to_owned()
            } else {
                errors.extend(dns_label(request, &path.child("request")));
                format!("{name}/{request}")
            };
            let prefix = format!("{name}/");
            if seen.contains(&key) {
                errors.push(FieldError::duplicate(&path, &key));
            } else if request.is_empty() && seen.iter().any(|other| other.starts_with(&prefix)) {
                errors.push(FieldError::duplicate(&path, name));
            }
            seen.insert(key);
        }
        if !known.contains(name) {
            let mut error = FieldError::not_found(&path, name);
            error.body += ": must be one of the names in pod.spec.resourceClaims";
            if known.is_empty() {
                error.body += " which is empty";
            } else {
                let known: Vec<&str> = known.iter().copied().collect();
                error.body += ": ";
                error.body += &known.join(", ");
            }
            errors.push(error);
        }
    }
    errors
}

/// No container may use more than the pod as a whole.
fn limits_of_containers(spec: &PodSpec, wanted: &ResourceRequirements, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, what) in [("requests", "requests"), ("limits", "limits")] {
        let own = if field == "requests" { &wanted.requests } else { &wanted.limits };
        for (name, total) in totals(spec, field) {
            let Some(most) = own.as_ref().and_then(|own| own.get(&name)) else { continue };
            if field == "limits" && !is_huge(&name) {
                continue;
            }
            if Quantity::parse(&most.0).is_ok_and(|most| total > most) {
                let why = format!(
                    "must be greater than or equal to aggregate container {what} of {total}"
                );
                errors.push(FieldError::invalid(&path.child(field).key(&name), &most.0, &why));
            }
        }
    }
    for (at, container) in spec.containers.iter().enumerate() {
        let limits = container.resources.as_ref().and_then(|r| r.limits.as_ref());
        for (name, limit) in limits.into_iter().flatten() {
            let Some(most) = wanted.limits.as_ref().and_then(|own| own.get(name)) else { continue };
            let exceeds = Quantity::parse(&limit.0)
                .and_then(|limit| Quantity::parse(&most.0).map(|most| limit > most));
            if exceeds == Ok(true) {
                let path = path.child("containers").index(at).key(name).child("limits");
                let why = format!("must be less than or equal to pod limits of {}", most.0);
                errors.push(FieldError::invalid(&path, &limit.0, &why));
            }
        }
    }
    errors
}

/// What all containers together need at one time.
fn totals(spec: &PodSpec, field: &str) -> BTreeMap<String, Quantity> {
    let json = serde_json::to_value(spec).unwrap_or_default();
    let empty = serde_json::Map::new();
    amounts::of_containers(json.as_object().unwrap_or(&empty), field)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::super::tests::{assert_container, assert_spec};

    #[test]
    fn requests_stay_within_limits() {
        let cases: [(Value, &[&str]); 6] = [
            (json!({"limits": {"cpu": "1"}, "requests": {"cpu": "500m"}}), &[]),
            (
                json!({"limits": {"cpu": "1"}, "requests": {"cpu": "2"}}),
                &["requests: Invalid value: \"2\": must be less than or equal to cpu limit of 1"],
            ),
            (
                json!({"limits": {"cpu": "-1"}}),
                &[
                    "limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
                    "requests[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
                ],
            ),
            (
                json!({"requests": {"nvidia.com/gpu": "1"}}),
                &["limits: Required value: Limit must be set for non overcommitable resources"],
            ),
            (
                json!({"limits": {"nvidia.com/gpu": "2"}, "requests": {"nvidia.com/gpu": "1"}}),
                &["requests: Invalid value: \"1\": must be equal to nvidia.com/gpu limit of 2"],
            ),
            (
                json!({"limits": {"nvidia.com/gpu": "500m"}, "requests": {"nvidia.com/gpu": "500m"}}),
                &[
                    "limits[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
                    "requests[nvidia.com/gpu]: Invalid value: \"500m\": must be an integer",
                ],
            ),
        ];
        for (resources, want) in cases {
            let want: Vec<String> =
                want.iter().map(|it| format!("spec.containers[0].resources.{it}")).collect();
            let want: Vec<&str> = want.iter().map(String::as_str).collect();
            assert_container(json!({"resources": resources}), &want);
        }
    }

    #[test]
    fn resources_have_known_names() {
        assert_container(
            json!({"resources": {"requests": {"gpu": "1"}}}),
            &[
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource type or fully qualified",
                "spec.containers[0].resources.requests[gpu]: Invalid value: \"gpu\": must be a standard resource for containers",
            ],
        );
        assert_container(
            json!({"resources": {"limits": {"hugepages-2Mi": "3Mi"}}}),
            &[
                "spec.containers[0].resources.limits[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources.requests[hugepages-2Mi]: Invalid value: \"3Mi\": 3Mi is not positive integer multiple of hugepages-2Mi",
                "spec.containers[0].resources: Forbidden: HugePages require cpu or memory",
            ],
        );
    }

    #[test]
    fn claims_are_among_the_pods() {
        assert_container(
            json!({"resources": {"claims": [{"name": "x"}]}}),
            &[
                "spec.containers[0].resources.claims[0]: Not found: \"x\": must be one of the names in pod.spec.resourceClaims which is empty",
            ],
        );
        assert_spec(
            json!({
                "resourceClaims": [{"name": "a", "resourceClaimName": "r"}, {"name": "a"}],
                "containers": [{"name": "c", "image": "i", "resources": {"claims": [{"name": "a", "request": "q"}, {"name": "a"}]}}],
            }),
            &[
                "spec.resourceClaims[1].name: Duplicate value: \"a\"",
                "spec.resourceClaims[1]: Invalid value: {\"name\":\"a\"}: must specify one of: `resourceClaimName`, `resourceClaimTemplateName`",
                "spec.containers[0].resources.claims[1]: Duplicate value: \"a\"",
            ],
        );
    }

    #[test]
    fn a_pods_own_resources_hold_those_of_its_containers() {
        assert_spec(
            json!({
                "resources": {"limits": {"cpu": "1"}, "requests": {"cpu": "1", "nvidia.com/gpu": "1"}},
                "containers": [{"name": "c", "image": "i", "resources": {"limits": {"cpu": "2"}}}],
            }),
            &[
                "spec.resources.requests[nvidia.com/gpu]: Unsupported value: \"nvidia.com/gpu\": supported values: \"cpu\", \"hugepages-\", \"memory\"",
                "spec.resources.limits: Required value: Limit must be set for non overcommitable resources",
                "spec.resources.requests[cpu]: Invalid value: \"1\": must be greater than or equal to aggregate container requests of 2",
                "spec.resources.containers[0][cpu].limits: Invalid value: \"2\": must be less than or equal to pod limits of 1",
            ],
        );
    }

    #[test]
    fn overhead_is_judged_as_limits_are() {
        assert_spec(
            json!({"overhead": {"cpu": "-1"}, "containers": [{"name": "c", "image": "i"}]}),
            &[
                "spec.overhead.limits[cpu]: Invalid value: \"-1\": must be greater than or equal to 0",
            ],
        );
    }
}
