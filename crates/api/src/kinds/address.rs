//! Addresses in the fields of services and endpoints.

use std::net::IpAddr;

use crate::{
    field::{ErrorList, FieldError, Path},
    names::validate_ip,
};

/// Says what is wrong with an address that must be a plain one: not unspecified, not link-local.
///
/// Upstream refuses loopback addresses too. Here pods have loopback addresses of their own, so
/// endpoints must be able to name them.
pub(super) fn validate_endpoint_ip(value: &str, path: &Path) -> ErrorList {
    let Ok(address) = value.parse::<IpAddr>() else {
        return vec![FieldError::invalid(path, value, "must be a valid IP address")];
    };
    let mut errors = ErrorList::new();
    let mut refuse = |why: &str| errors.push(FieldError::invalid(path, value, why));
    if address.is_unspecified() {
        refuse(&format!("may not be unspecified ({value})"));
    }
    let (is_link_local, is_link_local_multicast) = match address {
        IpAddr::V4(v4) => (v4.is_link_local(), v4.octets()[..3] == [224, 0, 0]),
        IpAddr::V6(v6) => {
            let first = v6.segments()[0];
            (first & 0xffc0 == 0xfe80, first & 0xff0f == 0xff02)
        }
    };
    if is_link_local {
        refuse("may not be in the link-local range (169.254.0.0/16, fe80::/10)");
    }
    if is_link_local_multicast {
        refuse("may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)");
    }
    errors
}

/// Like [`validate_endpoint_ip`], for addresses that others must be able to reach. One that was
/// accepted before need not be well-formed.
pub(super) fn validate_external_ip(value: &str, is_known: bool, path: &Path) -> ErrorList {
    let mut errors = if is_known { ErrorList::new() } else { validate_ip(value, path) };
    if errors.is_empty() {
        errors = validate_endpoint_ip(value, path);
        if value.parse::<IpAddr>().is_ok_and(|address| address.is_loopback()) {
            let why = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
            errors.push(FieldError::invalid(path, value, why));
        }
    }
    errors
}

/// Says what is wrong with a range of addresses such as `10.9.8.0/24`.
pub(super) fn validate_cidr(value: &str, path: &Path) -> ErrorList {
    let invalid = |why: &str| vec![FieldError::invalid(path, value, why)];
    let malformed = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
    let Some((address, length)) = value.split_once('/') else { return invalid(malformed) };
    let zeros = "must not have leading 0s in IP or prefix length";
    let address = match address.parse::<IpAddr>() {
        Ok(address) => address,
        Err(_) if has_leading_zeros(address, path) => return invalid(zeros),
        Err(_) => return invalid(malformed),
    };
    let bits = if address.is_ipv4() { 32 } else { 128 };
    let is_number = !length.is_empty() && length.bytes().all(|b| b.is_ascii_digit());
    let Some(length) = length.parse::<u32>().ok().filter(|n| is_number && *n <= bits) else {
        return invalid(malformed);
    };
    if value.ends_with(&format!("/0{length}")) {
        return invalid(zeros);
    }
    let host_bits = match address {
        IpAddr::V4(v4) => u128::from(v4.to_bits()) & low_bits(32 - length),
        IpAddr::V6(v6) if v6.to_ipv4_mapped().is_some() => {
            return invalid("must not have an IPv4-mapped IPv6 address");
        }
        IpAddr::V6(v6) => v6.to_bits() & low_bits(128 - length),
    };
    if host_bits != 0 {
        return invalid("must not have bits set beyond the prefix length");
    }
    ErrorList::new()
}

fn low_bits(count: u32) -> u128 {
    if count >= 128 { u128::MAX } else { (1 << count) - 1 }
}

fn has_leading_zeros(address: &str, path: &Path) -> bool {
    validate_ip(address, path).iter().any(|error| error.body.ends_with("must not have leading 0s"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn why(errors: &ErrorList) -> String {
        let details = errors.iter().map(|error| error.body.rsplit(": ").next().unwrap_or_default());
        details.collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn endpoints_are_plain_addresses() {
        let cases = [
            ("10.0.0.1", ""),
            ("127.33.0.1", ""),
            ("::1", ""),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("fe80::1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("224.0.0.9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("x", "must be a valid IP address"),
        ];
        for (value, want) in cases {
            assert_eq!(why(&validate_endpoint_ip(value, &Path::new("ip"))), want, "{value}");
        }
        let loopback = "may not be in the loopback range (127.0.0.0/8, ::1/128)";
        assert_eq!(why(&validate_external_ip("127.0.0.1", false, &Path::new("ip"))), loopback);
    }

    #[test]
    fn ranges_have_no_host_bits() {
        let malformed = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";
        let zeros = "must not have leading 0s in IP or prefix length";
        let cases = [
            ("10.0.0.0/8", ""),
            ("0.0.0.0/0", ""),
            ("::/0", ""),
            ("2001:db8::/64", ""),
            ("10.0.0.1/32", ""),
            ("10.0.0.1", malformed),
            ("10.0.0.0/33", malformed),
            ("10.0.0.0/", malformed),
            ("10.0.0.0/+8", malformed),
            ("x/8", malformed),
            ("010.0.0.0/8", zeros),
            ("10.0.0.0/08", zeros),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
        ];
        for (value, want) in cases {
            let errors = validate_cidr(value, &Path::new("cidr"));
            let got = errors.first().map(|error| error.body.as_str()).unwrap_or_default();
            assert!(got.ends_with(want) && got.is_empty() == want.is_empty(), "{value}: {got}");
        }
    }
}
