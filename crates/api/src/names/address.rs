//! IP addresses in fields that were there before Kubernetes became strict about them.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::field::{ErrorList, FieldError, Path};

/// Says what is wrong with an IP address.
pub fn validate_ip(value: &str, path: &Path) -> ErrorList {
    if let Ok(address) = value.parse::<Ipv6Addr>() {
        if address.to_ipv4_mapped().is_some() {
            let why = "must not be an IPv4-mapped IPv6 address";
            return vec![FieldError::invalid(path, value, why)];
        }
        return ErrorList::new();
    }
    if value.parse::<Ipv4Addr>().is_ok() {
        return ErrorList::new();
    }
    let why = if has_only_leading_zeros_wrong(value) {
        "must not have leading 0s"
    } else {
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    };
    vec![FieldError::invalid(path, value, why)]
}

fn has_only_leading_zeros_wrong(value: &str) -> bool {
    let parts: Vec<&str> = value.split('.').collect();
    let is_octet =
        |part: &&str| part.bytes().all(|b| b.is_ascii_digit()) && part.parse::<u8>().is_ok();
    parts.len() == 4 && parts.iter().all(is_octet)
}

#[cfg(test)]
mod tests {
    use super::{Path, validate_ip};

    #[test]
    fn addresses_are_strict() {
        let cases = [
            ("10.0.0.1", ""),
            ("::1", ""),
            ("FE80:0:0::1", ""),
            ("010.0.0.1", "ip: Invalid value: \"010.0.0.1\": must not have leading 0s"),
            (
                "::ffff:1.2.3.4",
                "ip: Invalid value: \"::ffff:1.2.3.4\": must not be an IPv4-mapped IPv6 address",
            ),
            (
                "x",
                "ip: Invalid value: \"x\": must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)",
            ),
        ];
        for (value, want) in cases {
            let got: Vec<String> =
                validate_ip(value, &Path::new("ip")).iter().map(ToString::to_string).collect();
            assert_eq!(got.join("; "), want, "{value}");
        }
    }
}
