//! How a pod is called and how it finds others: host names, DNS, host aliases.

use k8s_openapi::api::core::v1::{HostAlias, PodDNSConfig, PodSpec};

use super::rules::{dns_label, dns_subdomain, list, text};
use crate::{
    field::{ErrorList, FieldError, Path},
    meta::invalid,
    names,
};

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCH_CHARACTERS_MAX: usize = 2048;
const HOSTNAME_MAX: usize = 64;

/// Says what is wrong with `dnsConfig` under `policy`.
pub(super) fn validate_dns(config: Option<&PodDNSConfig>, policy: &str, path: &Path) -> ErrorList {
    let none = PodDNSConfig::default();
    let servers = list(&config.unwrap_or(&none).nameservers);
    if policy == "None" && config.is_none() {
        let why = "must provide `dnsConfig` when `dnsPolicy` is None";
        return vec![FieldError::required(path, why)];
    }
    if policy == "None" && servers.is_empty() {
        let why = "must provide at least one DNS nameserver when `dnsPolicy` is None";
        return vec![FieldError::required(&path.child("nameservers"), why)];
    }
    let Some(config) = config else { return ErrorList::new() };
    let mut errors = ErrorList::new();
    let (servers_path, searches_path) = (path.child("nameservers"), path.child("searches"));
    if servers.len() > NAMESERVERS_MAX {
        let why = format!("must not have more than {NAMESERVERS_MAX} nameservers");
        errors.push(FieldError::invalid(&servers_path, servers, &why));
    }
    for (at, server) in servers.iter().enumerate() {
        errors.extend(names::validate_ip(server, &servers_path.index(at)));
    }
    let searches = list(&config.searches);
    if searches.len() > SEARCHES_MAX {
        let why = format!("must not have more than {SEARCHES_MAX} search paths");
        errors.push(FieldError::invalid(&searches_path, searches, &why));
    }
    if searches.join(" ").len() > SEARCH_CHARACTERS_MAX {
        let why = format!(
            "must not have more than {SEARCH_CHARACTERS_MAX} characters (including spaces) in the \
             search list"
        );
        errors.push(FieldError::invalid(&searches_path, searches, &why));
    }
    for (at, search) in searches.iter().enumerate().filter(|(_, search)| *search != ".") {
        let search = search.strip_suffix('.').unwrap_or(search);
        let faults = names::dns1123_subdomain_with_underscore(search);
        errors.extend(invalid(&searches_path.index(at), search, faults));
    }
    for (at, option) in list(&config.options).iter().enumerate() {
        if text(&option.name).is_empty() {
            let path = path.child("options").index(at);
            errors.push(FieldError::required(&path, "must not be empty"));
        }
    }
    errors
}

/// Says what is wrong with `hostAliases`.
pub(super) fn validate_aliases(aliases: &[HostAlias], path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (at, alias) in aliases.iter().enumerate() {
        let path = path.index(at);
        errors.extend(names::validate_ip(&alias.ip, &path.child("ip")));
        for (n, name) in list(&alias.hostnames).iter().enumerate() {
            errors.extend(dns_subdomain(name, &path.child("hostnames").index(n)));
        }
    }
    errors
}

/// Says what is wrong with `hostnameOverride`.
pub(super) fn validate_override(spec: &PodSpec, path: &Path) -> ErrorList {
    let Some(name) = &spec.hostname_override else { return ErrorList::new() };
    let path = path.child("hostnameOverride");
    let mut errors = ErrorList::new();
    if spec.set_hostname_as_fqdn == Some(true) {
        let why = "may not be specified when setHostnameAsFQDN is true";
        errors.push(FieldError::forbidden(&path, why));
    }
    if spec.host_network == Some(true) {
        let why = "may not be specified when hostNetwork is true";
        errors.push(FieldError::forbidden(&path, why));
    }
    if name.len() > HOSTNAME_MAX {
        errors.push(FieldError::too_long(&path, HOSTNAME_MAX));
    }
    errors.extend(dns_subdomain(name, &path));
    errors
}

/// Says what is wrong with `hostname` and `subdomain`.
pub(super) fn validate_hostname(spec: &PodSpec, path: &Path) -> ErrorList {
    let mut errors = ErrorList::new();
    for (field, name) in [("hostname", &spec.hostname), ("subdomain", &spec.subdomain)] {
        if !text(name).is_empty() {
            errors.extend(dns_label(text(name), &path.child(field)));
        }
    }
    errors
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::check;

    #[test]
    fn dns_is_refused_in_upstream_words() {
        check(
            json!({"dnsPolicy": "None"}),
            &["spec.dnsConfig: Required value: must provide `dnsConfig` when `dnsPolicy` is None"],
        );
        check(
            json!({"dnsPolicy": "None", "dnsConfig": {}}),
            &[
                "spec.dnsConfig.nameservers: Required value: must provide at least one DNS nameserver when `dnsPolicy` is None",
            ],
        );
        check(
            json!({"dnsPolicy": "Some", "dnsConfig": {"nameservers": ["1.1.1.1", "x", "::1", "2.2.2.2"], "searches": [".", "a.b.", "_x.y"], "options": [{}]}}),
            &[
                "spec.dnsPolicy: Unsupported value: \"Some\": supported values: \"ClusterFirstWithHostNet\", \"ClusterFirst\", \"Default\", \"None\"",
                "spec.dnsConfig.nameservers: Invalid value: [\"1.1.1.1\",\"x\",\"::1\",\"2.2.2.2\"]: must not have more than 3 nameservers",
                "spec.dnsConfig.nameservers[1]: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
                "spec.dnsConfig.options[0]: Required value: must not be empty",
            ],
        );
    }

    #[test]
    fn names_are_dns_labels() {
        check(
            json!({"hostname": "a.b", "subdomain": "s.t"}),
            &[
                "spec.hostname: Invalid value: \"a.b\": must not contain dots",
                "spec.subdomain: Invalid value: \"s.t\": must not contain dots",
            ],
        );
        check(
            json!({"hostnameOverride": "x", "setHostnameAsFQDN": true}),
            &[
                "spec.hostnameOverride: Forbidden: may not be specified when setHostnameAsFQDN is true",
            ],
        );
        check(
            json!({"hostAliases": [{"ip": "300.1.1.1", "hostnames": ["ok.example"]}]}),
            &[
                "spec.hostAliases[0].ip: Invalid value: \"300.1.1.1\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ],
        );
    }
}
