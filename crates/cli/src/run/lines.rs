//! Bytes of a log to lines that can be shown beside others.

/// The longest line that is kept together.
pub(crate) const LINE_MAX: usize = 64 * 1024;

/// Takes the whole lines out of `pending`; what is left is the beginning of the next. A line that
/// grows without end is cut, since it would be kept for ever otherwise.
pub(crate) fn take_lines(pending: &mut Vec<u8>) -> Vec<u8> {
    match pending.iter().rposition(|&byte| byte == b'\n') {
        Some(last) => {
            let rest = pending.split_off(last + 1);
            std::mem::replace(pending, rest)
        }
        None if pending.len() >= LINE_MAX => {
            let mut cut = std::mem::take(pending);
            cut.push(b'\n');
            cut
        }
        None => Vec::new(),
    }
}

/// Puts `prefix` before each line.
pub(crate) fn prefixed(lines: &[u8], prefix: &str) -> Vec<u8> {
    if prefix.is_empty() {
        return lines.to_vec();
    }
    let mut out = Vec::with_capacity(lines.len() + 8 * prefix.len());
    for line in lines.split_inclusive(|&byte| byte == b'\n') {
        out.extend_from_slice(prefix.as_bytes());
        out.extend_from_slice(line);
    }
    out
}

/// Makes lines safe for a screen on which something else is drawn: colours stay, whatever moves the
/// cursor goes, and of a line that was overwritten the last version is kept.
pub(crate) fn tame(lines: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(lines);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        let line = line.trim_end_matches('\r');
        let line = line.rsplit('\r').next().unwrap_or_default();
        let is_coloured = push_tame(line, &mut out);
        if is_coloured {
            out.push_str("\x1b[0m");
        }
        out.push('\n');
    }
    out.into_bytes()
}

/// Adds `line` without what a screen would act on; whether it has colours.
fn push_tame(line: &str, out: &mut String) -> bool {
    let mut is_coloured = false;
    let mut rest = line;
    while let Some(at) = rest.find(|letter: char| letter.is_control() && letter != '\t') {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let length = escape_length(rest);
        if rest.starts_with("\x1b[") && rest[..length].ends_with('m') {
            out.push_str(&rest[..length]);
            is_coloured = true;
        }
        rest = &rest[length..];
    }
    out.push_str(rest);
    is_coloured
}

/// How many bytes the control sequence at the start of `text` has.
fn escape_length(text: &str) -> usize {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let Some(rest) = text.strip_prefix('\x1b') else { return first };
    match rest.chars().next() {
        Some('[') => {
            let end = rest[1..].find(|letter: char| ('\x40'..='\x7e').contains(&letter));
            end.map_or(text.len(), |end| end + 3)
        }
        // Titles and links: everything up to their end, which may never come.
        Some(']') => match rest.find(['\x07', '\x1b']) {
            Some(end) if rest[end..].starts_with('\x07') => end + 2,
            Some(end) if rest[end..].starts_with("\x1b\\") => end + 3,
            Some(end) => end + 1,
            None => text.len(),
        },
        Some(letter) if letter.is_ascii() => 2,
        _ => 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_lines_are_taken_and_the_rest_waits() {
        let mut pending = b"a\nb\nc".to_vec();
        assert_eq!(take_lines(&mut pending), b"a\nb\n");
        assert_eq!(take_lines(&mut pending), b"");
        assert_eq!(pending, b"c");
        pending.extend(std::iter::repeat_n(b'x', LINE_MAX));
        assert_eq!(take_lines(&mut pending).len(), LINE_MAX + 2);
        assert!(pending.is_empty());
    }

    #[test]
    fn each_line_gets_its_prefix() {
        assert_eq!(prefixed(b"a\n\nb\n", "[x] "), b"[x] a\n[x] \n[x] b\n");
        assert_eq!(prefixed(b"a\n", ""), b"a\n");
    }

    #[test]
    fn lines_keep_their_colours_and_lose_what_moves_the_cursor() {
        let cases: [(&[u8], &str); 10] = [
            (b"plain\ttext\n", "plain\ttext\n"),
            (b"\x1b[31mred\x1b[0m\n", "\x1b[31mred\x1b[0m\x1b[0m\n"),
            (b"a\x1b[2Jb\x1b[10;3Hc\n", "abc\n"),
            (b" 10%\r 50%\r100%\n", "100%\n"),
            (b"dos\r\n", "dos\n"),
            (b"bell\x07\x08\n", "bell\n"),
            (b"\x1b]0;title\x07x\n", "x\n"),
            (b"\x1b]8;;link\x1b\\x\n", "x\n"),
            (b"open\x1b[\n", "open\n"),
            (b"\xff\x1b\xc3\xa9\n", "\u{fffd}\u{e9}\n"),
        ];
        for (bytes, want) in cases {
            assert_eq!(String::from_utf8(tame(bytes)).expect("text"), want);
        }
    }

    #[test]
    fn no_input_breaks_the_taming() {
        let mut state = 1_u32;
        for _ in 0..2_000 {
            let bytes: Vec<u8> = (0..24)
                .map(|_| {
                    state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    b"\x1b[]m;\\\r\n\x07a\xc3\xa9\xff"[(state >> 24) as usize % 13]
                })
                .collect();
            let tamed = tame(&bytes);
            assert!(!tamed.contains(&b'\r'), "{bytes:?}");
        }
    }
}
