//! Text in quotes, as Kubernetes prints it.

use std::fmt::Write;

/// A string in double quotes, as Go's `%q` prints it.
pub fn quoted(text: &str) -> String {
    let mut quoted = String::with_capacity(text.len() + 2);
    quoted.push('"');
    for c in text.chars() {
        let code = u32::from(c);
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\x07' => quoted.push_str("\\a"),
            '\x08' => quoted.push_str("\\b"),
            '\x0b' => quoted.push_str("\\v"),
            '\x0c' => quoted.push_str("\\f"),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if code < 0x20 || code == 0x7f => drop(write!(quoted, "\\x{code:02x}")),
            _ if is_printable(c) => quoted.push(c),
            _ if code <= 0xffff => drop(write!(quoted, "\\u{code:04x}")),
            _ => drop(write!(quoted, "\\U{code:08x}")),
        }
    }
    quoted.push('"');
    quoted
}

/// Whether a character can be printed. Rust and Go agree on that, but for newer ones.
pub(crate) fn is_printable(c: char) -> bool {
    match c.is_ascii() {
        true => !c.is_ascii_control(),
        false => c.escape_debug().len() == 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_cannot_be_printed_is_escaped_as_go_does() {
        let cases = [
            ("", r#""""#),
            ("a \"b\" \\ c", r#""a \"b\" \\ c""#),
            ("\u{7}\n\t\u{1}\u{7f}", r#""\a\n\t\x01\x7f""#),
            ("é 語 😀", r#""é 語 😀""#),
            ("\u{200b}\u{feff}", r#""\u200b\ufeff""#),
        ];
        for (text, want) in cases {
            assert_eq!(quoted(text), want);
        }
    }
}
