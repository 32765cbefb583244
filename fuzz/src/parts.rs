//! Inputs of several parts, as text that can be read and written by hand.

/// What stands between two parts: a line of its own.
pub const BREAK: &[u8] = b"\n---\n";

/// The parts of an input.
pub fn parts(bytes: &[u8]) -> impl Iterator<Item = &[u8]> {
    let mut rest = Some(bytes);
    std::iter::from_fn(move || {
        let part = rest?;
        match part.windows(BREAK.len()).position(|window| window == BREAK) {
            Some(at) => {
                rest = Some(&part[at + BREAK.len()..]);
                Some(&part[..at])
            }
            None => rest.take(),
        }
    })
}

/// The first line of a part, and what follows.
pub fn line(part: &[u8]) -> (&str, &[u8]) {
    let at = part.iter().position(|byte| *byte == b'\n').unwrap_or(part.len());
    let rest = part.get(at + 1..).unwrap_or_default();
    (std::str::from_utf8(&part[..at]).unwrap_or_default(), rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_are_what_lies_between_breaks() {
        let all = |text: &'static str| parts(text.as_bytes()).collect::<Vec<_>>();
        assert_eq!(all(""), [b""]);
        assert_eq!(all("a\n---\n\n---\nb---\n"), [&b"a"[..], b"", b"b---\n"]);
        assert_eq!(line(b"a b\nc\nd"), ("a b", &b"c\nd"[..]));
        assert_eq!(line(b"a"), ("a", &b""[..]));
    }
}
