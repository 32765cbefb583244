//! What names, labels, keys and numbers may look like, and the words used to refuse them.
//!
//! Every function answers with the list of what is wrong, empty when nothing is; the texts are
//! those of Kubernetes, because clients show them to people who search for them.

mod address;

pub use address::validate_ip;

const DNS1123_LABEL: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const DNS1123_SUBDOMAIN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const DNS1123_UNDERSCORE: &str =
    "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*";
const DNS1035_LABEL: &str = "[a-z]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_RULE: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must \
                              start and end with an alphanumeric character";

/// What is wrong with a value, in the words of Kubernetes; empty when nothing is.
pub type Faults = Vec<String>;

/// A lowercase RFC 1123 label of at most 63 characters.
pub fn dns1123_label(value: &str) -> Faults {
    let mut faults = too_long(value, 63);
    if !is_label(value) {
        if is_subdomain(value) {
            faults.push("must not contain dots".to_owned());
        } else {
            faults.push(pattern(
                "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
                 '-', and must start and end with an alphanumeric character",
                DNS1123_LABEL,
                &["my-name", "123-abc"],
            ));
        }
    }
    faults
}

/// A lowercase RFC 1123 subdomain of at most 253 characters.
pub fn dns1123_subdomain(value: &str) -> Faults {
    let mut faults = too_long(value, 253);
    faults.extend(subdomain_pattern(value));
    faults
}

/// Like [`dns1123_subdomain`], with underscores inside each part and one at its start: what DNS
/// search paths hold.
pub fn dns1123_subdomain_with_underscore(value: &str) -> Faults {
    let mut faults = too_long(value, 253);
    let is_part = |part: &str| {
        let part = part.strip_prefix('_').unwrap_or(part).as_bytes();
        let inside = |b: &u8| is_lower(*b) || *b == b'-' || *b == b'_';
        framed(part, is_lower) && part.iter().all(inside)
    };
    if !value.split('.').all(is_part) {
        faults.push(pattern(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '_', '-' or '.', and must start and end with an alphanumeric character",
            DNS1123_UNDERSCORE,
            &["example.com"],
        ));
    }
    faults
}

/// A DNS-1035 label: as an RFC 1123 label, but starting with a letter.
pub fn dns1035_label(value: &str) -> Faults {
    let mut faults = too_long(value, 63);
    if !is_label(value) || !value.as_bytes()[0].is_ascii_lowercase() {
        faults.push(pattern(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with \
             an alphabetic character, and end with an alphanumeric character",
            DNS1035_LABEL,
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// A label key: a name of at most 63 characters with an optional DNS subdomain before a slash.
pub fn qualified_name(value: &str) -> Faults {
    let rule = || pattern(QUALIFIED_RULE, QUALIFIED, &["MyName", "my.name", "123-abc"]);
    let mut faults = Vec::new();
    let parts: Vec<&str> = value.split('/').collect();
    let name = match parts[..] {
        [name] => name,
        [prefix, name] => {
            if prefix.is_empty() {
                faults.push("prefix part must be non-empty".to_owned());
            } else {
                let mut found = too_many_bytes(prefix, 253);
                found.extend(subdomain_pattern(prefix));
                faults.extend(found.into_iter().map(|fault| format!("prefix part {fault}")));
            }
            name
        }
        _ => {
            return vec![format!(
                "a valid label key {} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')",
                rule()
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    }
    faults.extend(too_many_bytes(name, 63).into_iter().map(|fault| format!("name part {fault}")));
    if !is_qualified(name) {
        faults.push(format!("name part {}", rule()));
    }
    faults
}

/// A label value: empty, or as the name part of a label key.
pub fn label_value(value: &str) -> Faults {
    let mut faults = too_many_bytes(value, 63);
    if !value.is_empty() && !is_qualified(value) {
        faults.push(pattern(
            "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' \
             or '.', and must start and end with an alphanumeric character",
            "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// The name of an environment variable: printable ASCII without `=`.
pub fn env_var_name(value: &str) -> Faults {
    if value.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if value.bytes().all(|b| (b' '..=b'~').contains(&b) && b != b'=') {
        return Vec::new();
    }
    vec![
        "a valid environment variable name must consist only of printable ASCII characters other \
         than '='"
            .to_owned(),
    ]
}

/// A key of a ConfigMap or Secret.
pub fn config_map_key(value: &str) -> Faults {
    let mut faults = too_long(value, 253);
    let allowed = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'.' | b'_');
    if value.is_empty() || !value.bytes().all(allowed) {
        faults.push(pattern(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    faults.extend(climbing(value));
    faults
}

/// The name of a container port: an IANA service name.
pub fn port_name(value: &str) -> Faults {
    let mut faults = too_long(value, 15);
    let mut say = |fault: &str| faults.push(fault.to_owned());
    if value.is_empty() || !value.bytes().all(|b| is_lower(b) || b == b'-') {
        say("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)");
    }
    if !value.bytes().any(|b| b.is_ascii_lowercase()) {
        say("must contain at least one letter (a-z)");
    }
    if value.contains("--") {
        say("must not contain consecutive hyphens");
    }
    if value.starts_with('-') || value.ends_with('-') {
        say("must not begin or end with a hyphen");
    }
    faults
}

/// The name of an HTTP header.
pub fn http_header_name(value: &str) -> Faults {
    if !value.is_empty() && value.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-') {
        return Vec::new();
    }
    vec![pattern(
        "a valid HTTP header must consist of alphanumeric characters or '-'",
        "[-A-Za-z0-9]+",
        &["X-Header-Name"],
    )]
}

/// An identifier as in C.
pub fn c_identifier(value: &str) -> Faults {
    let is_start = |b: u8| b.is_ascii_alphabetic() || b == b'_';
    if value.bytes().next().is_some_and(is_start)
        && value.bytes().all(|b| is_start(b) || b.is_ascii_digit())
    {
        return Vec::new();
    }
    vec![pattern(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of \
         alphanumeric characters or '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// A percentage such as `93%`.
pub fn percent(value: &str) -> Faults {
    let digits = value.strip_suffix('%').unwrap_or_default();
    if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
        return Vec::new();
    }
    vec![pattern(
        "a valid percent string must be a numeric string followed by an ending '%'",
        "[0-9]+%",
        &["1%", "93%"],
    )]
}

/// The reason of a condition, such as `MinimumReplicasAvailable`.
pub fn condition_reason(value: &str) -> Faults {
    let bytes = value.as_bytes();
    let is_inner = |b: &u8| b.is_ascii_alphanumeric() || b"_,:".contains(b);
    let begins = bytes.first().is_some_and(u8::is_ascii_alphabetic);
    let ends = bytes.last().is_some_and(|b| b.is_ascii_alphanumeric() || *b == b'_');
    if begins && ends && bytes.iter().all(is_inner) {
        return Vec::new();
    }
    vec![pattern(
        "a condition reason must start with alphabetic character, optionally followed by a string \
         of alphanumeric characters or '_,:', and must end with an alphanumeric character or '_'",
        "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?",
        &["my_name", "MY_NAME", "MyName", "ReasonA,ReasonB", "ReasonA:ReasonB"],
    )]
}

/// A number between two others, both included.
pub fn in_range(value: i64, low: i64, high: i64) -> Faults {
    if (low..=high).contains(&value) {
        return Vec::new();
    }
    vec![format!("must be between {low} and {high}, inclusive")]
}

/// A TCP or UDP port.
pub fn port_number(value: i64) -> Faults {
    in_range(value, 1, 65535)
}

/// A user or group id.
pub fn posix_id(value: i64) -> Faults {
    in_range(value, 0, i64::from(i32::MAX))
}

/// A name that can be a segment of a path; `is_prefix` when something will be appended to it.
pub fn path_segment(name: &str, is_prefix: bool) -> Faults {
    if !is_prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    let found = ["/", "%"].into_iter().filter(|part| name.contains(part));
    found.map(|part| format!("may not contain '{part}'")).collect()
}

/// An object's name that must be a DNS subdomain; `is_prefix` for `generateName`.
pub fn name_is_dns_subdomain(name: &str, is_prefix: bool) -> Faults {
    dns1123_subdomain(&completed(name, is_prefix))
}

/// An object's name that must be a DNS label; `is_prefix` for `generateName`.
pub fn name_is_dns_label(name: &str, is_prefix: bool) -> Faults {
    dns1123_label(&completed(name, is_prefix))
}

/// An object's name that must be a DNS-1035 label; `is_prefix` for `generateName`.
pub fn name_is_dns1035_label(name: &str, is_prefix: bool) -> Faults {
    dns1035_label(&completed(name, is_prefix))
}

/// The longest a `generateName` may be before the suffix is appended.
pub const GENERATED_PREFIX_MAX: usize = 58;

/// A name made of `prefix`, cut to [`GENERATED_PREFIX_MAX`], and five characters drawn from
/// `random`.
pub fn generated(prefix: &str, random: u64) -> String {
    // No vowels and no 0, 1, 3: no words, and nothing that looks like something else.
    const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    let mut end = prefix.len().min(GENERATED_PREFIX_MAX);
    while !prefix.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = prefix[..end].to_owned();
    let mut rest = random;
    for _ in 0..5 {
        let at = usize::try_from(rest % 27).expect("less than 27");
        name.push(char::from(ALPHABET[at]));
        rest /= 27;
    }
    name
}

/// `must be no more than N characters`, when it is more.
pub fn too_long(value: &str, max: usize) -> Faults {
    if value.len() <= max {
        return Vec::new();
    }
    vec![format!("must be no more than {max} characters")]
}

/// `rule (e.g. 'a',  or 'b', regex used for validation is 'x')`.
pub(crate) fn pattern(rule: &str, regex: &str, examples: &[&str]) -> String {
    if examples.is_empty() {
        return format!("{rule} (regex used for validation is '{regex}')");
    }
    let shown: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{rule} (e.g. {}regex used for validation is '{regex}')", shown.join(" or "))
}

/// The same in the words used for labels.
fn too_many_bytes(value: &str, max: usize) -> Faults {
    if value.len() <= max {
        return Vec::new();
    }
    vec![format!("must be no more than {max} bytes")]
}

fn subdomain_pattern(value: &str) -> Option<String> {
    let why = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
               '-' or '.', and must start and end with an alphanumeric character";
    (!is_subdomain(value)).then(|| pattern(why, DNS1123_SUBDOMAIN, &["example.com"]))
}

/// A prefix as it is judged: its last dash will not be last once a suffix is there.
fn completed(name: &str, is_prefix: bool) -> String {
    match name.strip_suffix('-') {
        // One more character than the dash goes, as upstream has it: `a-` is judged as `a`.
        Some(rest) if is_prefix && !rest.is_empty() && name.is_ascii() => {
            format!("{}a", &rest[..rest.len() - 1])
        }
        _ => name.to_owned(),
    }
}

fn climbing(value: &str) -> Option<String> {
    match value {
        "." | ".." => Some(format!("must not be '{value}'")),
        _ if value.starts_with("..") => Some("must not start with '..'".to_owned()),
        _ => None,
    }
}

fn is_lower(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn framed(bytes: &[u8], edge: impl Fn(u8) -> bool) -> bool {
    bytes.first().is_some_and(|b| edge(*b)) && bytes.last().is_some_and(|b| edge(*b))
}

fn is_label(value: &str) -> bool {
    framed(value.as_bytes(), is_lower) && value.bytes().all(|b| is_lower(b) || b == b'-')
}

fn is_subdomain(value: &str) -> bool {
    value.split('.').all(is_label)
}

fn is_qualified(value: &str) -> bool {
    let inside = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_' | b'.');
    framed(value.as_bytes(), |b| b.is_ascii_alphanumeric()) && value.bytes().all(inside)
}

#[cfg(test)]
mod tests;
