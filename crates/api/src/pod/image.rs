//! What an image reference says: enough of its grammar to find the tag.

/// The tag of an image reference: `latest` when it has neither tag nor digest, `None` when it has a
/// digest only or is no reference at all.
pub fn tag(reference: &str) -> Option<&str> {
    let (named, digest) = match reference.split_once('@') {
        Some((named, digest)) => (named, Some(digest)),
        None => (reference, None),
    };
    if digest.is_some_and(|digest| !is_digest(digest)) || is_identifier(reference) {
        return None;
    }
    // A colon before the last slash separates a port.
    let start = named.rfind('/').map_or(0, |at| at + 1);
    let (name, tag) = match named[start..].split_once(':') {
        Some((last, tag)) => (&named[..start + last.len()], Some(tag)),
        None => (named, None),
    };
    if !is_name(name) || tag.is_some_and(|tag| !is_tag(tag)) {
        return None;
    }
    match (tag, digest) {
        (None, None) => Some("latest"),
        (tag, _) => tag,
    }
}

fn is_name(name: &str) -> bool {
    let path = match name.split_once('/') {
        Some((host, path)) if is_host(host) => path,
        _ => name,
    };
    name.len() <= 255 && path.split('/').all(is_component)
}

/// Whether the first part names a registry rather than a folder on the default one.
fn is_host(part: &str) -> bool {
    let looks_so = part == "localhost"
        || part.contains(['.', ':'])
        || part.bytes().any(|b| b.is_ascii_uppercase());
    let (host, port) = part.rsplit_once(':').unwrap_or((part, "0"));
    let is_label = |label: &str| {
        label.starts_with(|c: char| c.is_ascii_alphanumeric())
            && label.ends_with(|c: char| c.is_ascii_alphanumeric())
            && label.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-')
    };
    looks_so
        && (host.starts_with('[') || host.split('.').all(is_label))
        && !port.is_empty()
        && port.bytes().all(|b| b.is_ascii_digit())
}

/// Lower-case words joined by one dot, one or two underscores, or dashes.
fn is_component(part: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = part.as_bytes();
    let mut at = 0;
    loop {
        let word = bytes[at..].iter().take_while(|b| is_word(**b)).count();
        if word == 0 {
            return false;
        }
        at += word;
        if at == bytes.len() {
            return true;
        }
        let joint = bytes[at..].iter().take_while(|b| !is_word(**b)).count();
        let is_joint = match &part[at..at + joint] {
            "." | "_" | "__" => true,
            dashes => dashes.bytes().all(|b| b == b'-'),
        };
        if !is_joint {
            return false;
        }
        at += joint;
    }
}

fn is_tag(tag: &str) -> bool {
    let is_word = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
    tag.len() <= 128
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|b| is_word(b) || b == b'.' || b == b'-')
}

fn is_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let is_part = |part: &str| {
        part.starts_with(|c: char| c.is_ascii_alphabetic())
            && part.bytes().all(|b| b.is_ascii_alphanumeric())
    };
    algorithm.split(['-', '_', '+', '.']).all(is_part)
        && hex.len() >= 32
        && hex.bytes().all(|b| b.is_ascii_hexdigit())
}

/// 64 hexadecimal digits could be an image id, so they are no name.
fn is_identifier(reference: &str) -> bool {
    reference.len() == 64
        && reference.bytes().all(|b| b.is_ascii_digit() || (b'a'..=b'f').contains(&b))
}

#[cfg(test)]
mod tests {
    use super::tag;

    #[test]
    fn tags_are_found() {
        let digest = format!("sha256:{}", "a".repeat(64));
        let cases = [
            ("busybox", Some("latest")),
            ("busybox:latest", Some("latest")),
            ("busybox:1.36", Some("1.36")),
            ("localhost:5000/a/b", Some("latest")),
            ("localhost:5000/a/b:v1", Some("v1")),
            ("ghcr.io/x/y_z.a--b", Some("latest")),
            ("Foo.example/x:1", Some("1")),
            ("", None),
            ("Busybox", None),
            ("a//b", None),
            ("a b", None),
            ("a:", None),
            ("a___b", None),
            ("ü", None),
            ("a@sha256:12", None),
        ];
        for (reference, want) in cases {
            assert_eq!(tag(reference), want, "{reference:?}");
        }
        assert_eq!(tag(&format!("busybox@{digest}")), None);
        assert_eq!(tag(&format!("busybox:latest@{digest}")), Some("latest"));
        assert_eq!(tag(&"a".repeat(64)), None);
    }
}
