//! Tables for names and keys.

use super::*;

const SUBDOMAIN: &str = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const NAME_PART: &str = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";

fn check(function: impl Fn(&str) -> Faults, cases: &[(&str, &[&str])]) {
    for (value, want) in cases {
        assert_eq!(function(value), *want, "{value:?}");
    }
}

#[test]
fn labels_and_subdomains_are_refused_in_upstream_words() {
    let long = "a".repeat(64);
    check(
        dns1123_label,
        &[
            ("a-1", &[]),
            ("1", &[]),
            ("a.b", &["must not contain dots"]),
            ("", &[LABEL]),
            ("-a", &[LABEL]),
            ("A", &[LABEL]),
            ("a_b", &[LABEL]),
            (&long, &["must be no more than 63 characters"]),
        ],
    );
    check(
        dns1123_subdomain,
        &[("a.b-c.1", &[]), ("a..b", &[SUBDOMAIN]), ("a.", &[SUBDOMAIN]), ("é", &[SUBDOMAIN])],
    );
    assert_eq!(dns1035_label("a-1"), Faults::new());
    assert_eq!(dns1035_label("1a").len(), 1);
    assert_eq!(dns1035_label("").len(), 1);
    assert_eq!(dns1123_subdomain_with_underscore("_a.b_c.d"), Faults::new());
    assert_eq!(dns1123_subdomain_with_underscore("a._").len(), 1);
}

#[test]
fn label_keys_have_an_optional_prefix() {
    let long = "a".repeat(64);
    check(
        qualified_name,
        &[
            ("app", &[]),
            ("x.io/App_1", &[]),
            ("/a", &["prefix part must be non-empty"]),
            ("x.io/", &["name part must be non-empty", NAME_PART]),
            (&long, &["name part must be no more than 63 bytes"]),
        ],
    );
    assert_eq!(qualified_name("X/a"), [format!("prefix part {SUBDOMAIN}")]);
    assert!(qualified_name("a/b/c")[0].starts_with("a valid label key must consist"));
    assert!(qualified_name("a/b/c")[0].ends_with("(e.g. 'example.com/MyName')"));
}

#[test]
fn label_values_may_be_empty() {
    check(label_value, &[("", &[]), ("a.B_c-1", &[])]);
    assert_eq!(label_value("-").len(), 1);
    assert_eq!(label_value(&"é".repeat(40)).len(), 2, "length counts bytes");
}

#[test]
fn keys_and_variables() {
    check(config_map_key, &[("a.b_C-1", &[]), (".", &["must not be '.'"])]);
    check(config_map_key, &[("..", &["must not be '..'"]), ("..a", &["must not start with '..'"])]);
    assert_eq!(config_map_key("a/b").len(), 1);
    check(env_var_name, &[("A b#1", &[]), ("", &["environment variable name must be non-empty"])]);
    assert_eq!(env_var_name("A=B").len(), 1);
    assert_eq!(env_var_name("ü").len(), 1);
    check(
        port_name,
        &[
            ("http-2", &[]),
            ("1", &["must contain at least one letter (a-z)"]),
            ("a--b", &["must not contain consecutive hyphens"]),
            ("a-", &["must not begin or end with a hyphen"]),
            (
                "",
                &[
                    "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
                    "must contain at least one letter (a-z)",
                ],
            ),
        ],
    );
    assert_eq!(percent("7%"), Faults::new());
    assert_eq!(percent("%").len(), 1);
    assert_eq!(c_identifier("_a1"), Faults::new());
    assert_eq!(c_identifier("1a").len(), 1);
    assert_eq!(http_header_name("X-A"), Faults::new());
    assert_eq!(port_number(0), ["must be between 1 and 65535, inclusive"]);
    assert_eq!(posix_id(-1), ["must be between 0 and 2147483647, inclusive"]);
}

#[test]
fn prefixes_may_end_in_a_dash() {
    assert_eq!(name_is_dns_subdomain("job-", true), Faults::new());
    assert_eq!(name_is_dns_subdomain("job-", false).len(), 1);
    assert_eq!(name_is_dns_label("a-", true), Faults::new());
    assert_eq!(name_is_dns_label("-", true).len(), 1);
    assert_eq!(name_is_dns_label("é-", true).len(), 1);
    assert_eq!(name_is_dns1035_label("a-", true), Faults::new());
}

#[test]
fn path_segments_cannot_climb() {
    assert_eq!(path_segment("..", false), ["may not be '..'"]);
    assert_eq!(path_segment("..", true), Faults::new());
    assert_eq!(path_segment("a/b%", false), ["may not contain '/'", "may not contain '%'"]);
}

#[test]
fn generated_names_have_five_more_characters() {
    let name = generated("job-", 0x1234_5678_9abc);
    assert_eq!(name.len(), 9);
    assert!(name[4..].bytes().all(|b| b"bcdfghjklmnpqrstvwxz2456789".contains(&b)), "{name}");
    assert_ne!(name, generated("job-", 1));
    assert_eq!(generated(&"a".repeat(70), 3).len(), 63);
    assert_eq!(generated(&format!("{}é", "a".repeat(57)), 3).len(), 62, "cut between characters");
}
