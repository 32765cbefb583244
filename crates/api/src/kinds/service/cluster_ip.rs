//! Whether a service needs an address, which addresses there are, and the rules that tie
//! `clusterIP`, `clusterIPs`, `ipFamilies` and `ipFamilyPolicy` together.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use k8s_openapi::api::core::v1::ServiceSpec;
use serde_json::{Value, json};

use crate::{
    field::{ErrorList, FieldError, Path},
    json::{list, object_mut, text},
    names::validate_ip,
    strategy::Json,
};

/// The addresses services get: `127.32.0.0/16`, so that they work on a machine without privileges.
pub const SERVICE_RANGE: (Ipv4Addr, u8) = (Ipv4Addr::new(127, 32, 0, 0), 16);

/// What a service wants of the allocator of cluster IPs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterIp {
    /// Nothing: it has an address already, is headless, is a mere alias, or is invalid.
    Unneeded,
    /// Any free address of [`SERVICE_RANGE`].
    Any,
    /// This address of [`SERVICE_RANGE`].
    Exactly(Ipv4Addr),
}

/// What address a service wants, given what it had before. It may be called before or after the
/// service is prepared.
///
/// # Errors
/// When the address it asks for is not one that services can have.
pub fn cluster_ip_wanted(object: &Json, old: Option<&Json>) -> Result<ClusterIp, ErrorList> {
    let wanted = primary(object);
    if wanted == "None" || text(object, &["spec", "type"]) == "ExternalName" {
        return Ok(ClusterIp::Unneeded);
    }
    match (wanted, old.map(primary).unwrap_or_default()) {
        // What an update leaves out is carried over.
        ("", had) if !had.is_empty() && had != "None" => Ok(ClusterIp::Unneeded),
        ("", _) => Ok(ClusterIp::Any),
        (wanted, had) if wanted == had => Ok(ClusterIp::Unneeded),
        (wanted, _) => match wanted.parse::<IpAddr>() {
            Ok(IpAddr::V4(ip)) if is_in_range(ip) => Ok(ClusterIp::Exactly(ip)),
            Ok(IpAddr::V4(ip)) => {
                let (first, length) = SERVICE_RANGE;
                let why = format!(
                    "the provided IP ({ip}) is not in the valid range. The range of valid IPs is \
                     {first}/{length}"
                );
                Err(vec![allocation_error(ip, &why)])
            }
            // Validation says what is wrong with it.
            Ok(IpAddr::V6(_)) | Err(_) => Ok(ClusterIp::Unneeded),
        },
    }
}

fn primary(object: &Json) -> &str {
    let first = list(object, &["spec", "clusterIPs"]).first().and_then(Value::as_str);
    first.unwrap_or_else(|| text(object, &["spec", "clusterIP"]))
}

/// The error for an address that another service has.
pub fn already_allocated(ip: Ipv4Addr) -> FieldError {
    allocation_error(ip, "provided IP is already allocated")
}

/// Gives a service its address.
pub fn set_cluster_ip(object: &mut Json, ip: Ipv4Addr) {
    let spec = object_mut(object, "spec");
    spec.insert("clusterIP".to_owned(), ip.to_string().into());
    spec.insert("clusterIPs".to_owned(), json!([ip.to_string()]));
}

/// The addresses of [`SERVICE_RANGE`] in ascending order, without the first and the last one, which
/// stand for the network and for everybody.
pub fn service_addresses() -> impl Iterator<Item = Ipv4Addr> {
    let (first, length) = SERVICE_RANGE;
    let count = 1_u32 << (32 - length);
    (1..count - 1).map(move |offset| Ipv4Addr::from_bits(first.to_bits() + offset))
}

fn is_in_range(ip: Ipv4Addr) -> bool {
    let (first, length) = SERVICE_RANGE;
    let offset = ip.to_bits().wrapping_sub(first.to_bits());
    (1..(1_u32 << (32 - length)) - 1).contains(&offset)
}

fn allocation_error(ip: Ipv4Addr, why: &str) -> FieldError {
    let path = Path::new("spec").child("clusterIPs");
    FieldError::invalid(&path, [ip], &format!("failed to allocate IP {ip}: {why}"))
}

/// The rules among the fields themselves.
pub(super) fn validate_fields(spec: &ServiceSpec, old: Option<&ServiceSpec>) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.type_.as_deref() == Some("ExternalName") {
        return errors;
    }
    let path = Path::new("spec");
    let ips_path = path.child("clusterIPs");
    let ip = spec.cluster_ip.as_deref().unwrap_or_default();
    let ips = spec.cluster_ips.as_deref().unwrap_or_default();
    match ips.first() {
        None if !ip.is_empty() => errors.push(FieldError::required(&ips_path, "")),
        Some(first) if !ip.is_empty() && first != ip => {
            let why = "first value must match `clusterIP`";
            errors.push(FieldError::invalid(&ips_path, ips, why));
        }
        Some(_) if ip.is_empty() => {
            let why = "must be empty when `clusterIP` is not specified";
            errors.push(FieldError::invalid(&ips_path, ips, why));
        }
        _ => {}
    }
    let families = spec.ip_families.as_deref().unwrap_or_default();
    for (at, family) in families.iter().enumerate() {
        let path = path.child("ipFamilies").index(at);
        if !["IPv4", "IPv6"].contains(&family.as_str()) {
            errors.push(FieldError::not_supported(&path, family, &["IPv4", "IPv6"]));
        }
        if families[..at].contains(family) {
            errors.push(FieldError::duplicate(&path, family));
        }
    }
    if let Some(policy) = &spec.ip_family_policy {
        let supported = ["PreferDualStack", "RequireDualStack", "SingleStack"];
        if !supported.contains(&policy.as_str()) {
            let path = path.child("ipFamilyPolicy");
            errors.push(FieldError::not_supported(&path, policy, &supported));
        }
    }
    let known = old.and_then(|old| old.cluster_ips.as_deref()).unwrap_or_default();
    errors.extend(validate_ips(ips, families, known));
    errors
}

fn validate_ips(ips: &[String], families: &[String], known: &[String]) -> ErrorList {
    let mut errors = ErrorList::new();
    let path = Path::new("spec").child("clusterIPs");
    let mut is_misleading = false;
    for (at, ip) in ips.iter().enumerate() {
        if at == 0 && ip == "None" {
            if ips.len() > 1 {
                is_misleading = true;
                let why = "'None' must be the first and only value";
                errors.push(FieldError::invalid(&path, ips, why));
            }
        } else if !known.contains(ip) {
            let faults = validate_ip(ip, &path.index(at));
            is_misleading |= !faults.is_empty();
            errors.extend(faults);
        }
    }
    if ips.len() > 2 {
        errors.push(FieldError::invalid(&path, ips, "may only hold up to 2 values"));
    }
    // With malformed addresses among them, further complaints would only confuse.
    if is_misleading {
        return errors;
    }
    let is_v6 = |ip: &String| ip.parse::<Ipv6Addr>().is_ok();
    if ips.len() > 1 && (ips.len() > 2 || is_v6(&ips[0]) == is_v6(&ips[1])) {
        let why = "may specify no more than one IP for each IP family";
        errors.push(FieldError::invalid(&path, ips, why));
    }
    for (at, (ip, family)) in ips.iter().zip(families).enumerate() {
        let wrong = match family.as_str() {
            "IPv4" => is_v6(ip),
            "IPv6" => !is_v6(ip) && ip != "None",
            _ => false,
        };
        if wrong {
            let why = format!("expected an {family} value as indicated by `ipFamilies[{at}]`");
            errors.push(FieldError::invalid(&path.index(at), ip, &why));
        }
    }
    errors
}

/// The rules that follow from the cluster having IPv4 only.
pub(super) fn validate_families(spec: &ServiceSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    if spec.type_.as_deref() == Some("ExternalName") {
        return errors;
    }
    let path = Path::new("spec");
    let policy = spec.ip_family_policy.as_deref().unwrap_or_default();
    let ips = spec.cluster_ips.as_deref().unwrap_or_default();
    let families = spec.ip_families.as_deref().unwrap_or_default();
    for (count, what) in [(ips.len(), "cluster IPs"), (families.len(), "IP families")] {
        if policy == "SingleStack" && count == 2 {
            let why = format!(
                "must be 'RequireDualStack' or 'PreferDualStack' when multiple {what} are specified"
            );
            errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, &why));
        }
    }
    for (at, ip) in ips.iter().enumerate().skip(families.len()) {
        if ip.parse::<Ipv6Addr>().is_ok() {
            let path = path.child("clusterIPs").index(at);
            errors.push(FieldError::invalid(&path, ips, "IPv6 is not configured on this cluster"));
        }
    }
    let has_selector = spec.selector.as_ref().is_some_and(|selector| !selector.is_empty());
    let is_free = ips == ["None"] && !has_selector;
    if !errors.is_empty() || is_free {
        return errors;
    }
    if policy == "RequireDualStack" {
        let why = "this cluster is not configured for dual-stack services";
        errors.push(FieldError::invalid(&path.child("ipFamilyPolicy"), policy, why));
    }
    for (at, family) in families.iter().enumerate().filter(|(_, family)| *family != "IPv4") {
        let path = path.child("ipFamilies").index(at);
        errors.push(FieldError::invalid(&path, family, "not configured on this cluster"));
    }
    errors
}

/// An address once given stays.
pub(super) fn validate_change(spec: &ServiceSpec, old: &ServiceSpec) -> ErrorList {
    let mut errors = ErrorList::new();
    let is_alias = |of: &ServiceSpec| of.type_.as_deref() == Some("ExternalName");
    let ips = spec.cluster_ips.as_deref().unwrap_or_default();
    let old_ips = old.cluster_ips.as_deref().unwrap_or_default();
    let is_headless = |ips: &[String]| ips == ["None"];
    if is_alias(spec) || is_alias(old) || is_headless(ips) && is_headless(old_ips) {
        return errors;
    }
    let path = Path::new("spec").child("clusterIPs");
    let changed = "may not change once set";
    if ips.len() == old_ips.len() {
        for at in (0..ips.len()).filter(|at| ips[*at] != old_ips[*at]) {
            errors.push(FieldError::invalid(&path.index(at), ips, changed));
        }
    } else if ips.is_empty() {
        let why = "primary clusterIP can not be unset";
        errors.push(FieldError::invalid(&path.index(0), &spec.cluster_ips, why));
    } else if !old_ips.is_empty() && ips[0] != old_ips[0] {
        errors.push(FieldError::invalid(&path.index(0), ips, changed));
    }
    let families = spec.ip_families.as_deref().unwrap_or_default();
    let old_families = old.ip_families.as_deref().unwrap_or_default();
    if !is_headless(ips)
        && !is_headless(old_ips)
        && let (Some(family), Some(old_family)) = (families.first(), old_families.first())
        && family != old_family
    {
        let path = Path::new("spec").child("ipFamilies").index(0);
        errors.push(FieldError::invalid(&path, families, changed));
    }
    errors
}
