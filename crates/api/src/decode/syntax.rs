//! Says where JSON is malformed, with the words of Go's `encoding/json`.
//!
//! Only called once parsing has failed, so it scans again from the start instead of asking the
//! parser to keep track.

use std::fmt::Write;

use serde_json::Value;

/// Go refuses to nest deeper than this, and we earlier.
const TOO_DEEP: &str = "exceeded max depth";

/// The message for a body that could not be parsed.
pub(super) fn message(body: &[u8], error: &serde_json::Error) -> String {
    match problem(body) {
        Some(message) => message,
        None if error.to_string().starts_with("recursion limit") => TOO_DEEP.to_owned(),
        // What Go accepts and we do not: lone surrogates, numbers beyond all range.
        None => error.to_string(),
    }
}

/// What Go would say of a body's syntax, if anything.
pub(super) fn problem(body: &[u8]) -> Option<String> {
    let mut scanner = Scanner { body, at: 0, open: Vec::new() };
    match scanner.scan() {
        Ok(()) => None,
        Err(Problem::End) => Some("unexpected end of JSON input".to_owned()),
        Err(Problem::Byte(context)) => {
            let byte = body.get(scanner.at).copied().unwrap_or(b' ');
            Some(format!("invalid character {} {context}", quoted(byte)))
        }
    }
}

/// The message for a body that is JSON but no object.
pub(super) fn not_an_object(body: &[u8], value: &Value) -> String {
    let found = match body.trim_ascii_start().first() {
        Some(b'[') => "array",
        Some(b'"') => "string",
        Some(b't' | b'f') => "bool",
        Some(b'n') => "null",
        Some(_) => "number",
        None if value.is_array() => "array",
        None => "value",
    };
    format!(
        "json: cannot unmarshal {found} into Go value of type struct {{ APIVersion string \
         \"json:\\\"apiVersion,omitempty\\\"\"; Kind string \"json:\\\"kind,omitempty\\\"\" }}"
    )
}

/// The beginning of a body, for messages.
pub(super) fn summary(body: &[u8]) -> String {
    const LENGTH: usize = 30;
    let (start, more) = match body.get(..LENGTH) {
        Some(start) if body.len() > LENGTH => (start, " ..."),
        _ => (body, ""),
    };
    match start.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(start)),
        Some(_) => {
            let mut text = String::new();
            for byte in start {
                let _ = write!(text, "{byte:02x}");
            }
            text + more
        }
    }
}

enum Problem {
    /// The input ends too early.
    End,
    /// The byte at the scanner's position does not belong there.
    Byte(String),
}

type Scanned = Result<(), Problem>;

struct Scanner<'a> {
    body: &'a [u8],
    at: usize,
    /// The brackets that are open.
    open: Vec<u8>,
}

impl Scanner<'_> {
    fn scan(&mut self) -> Scanned {
        loop {
            self.value()?;
            // After a value: close what ends here, until another value must follow.
            loop {
                self.skip_space();
                let next = self.body.get(self.at).copied();
                match (self.open.last(), next) {
                    (None, None) => return Ok(()),
                    (None, Some(_)) => return self.unexpected("after top-level value"),
                    (Some(_), None) => return Err(Problem::End),
                    (Some(b'['), Some(b',')) => {
                        self.at += 1;
                        break;
                    }
                    (Some(b'{'), Some(b',')) => {
                        self.at += 1;
                        self.key()?;
                        break;
                    }
                    (Some(b'['), Some(b']')) | (Some(b'{'), Some(b'}')) => {
                        self.at += 1;
                        self.open.pop();
                    }
                    (Some(b'['), Some(_)) => return self.unexpected("after array element"),
                    (Some(_), Some(_)) => return self.unexpected("after object key:value pair"),
                }
            }
        }
    }

    /// Reads one value, or the opening of one that holds others up to its first inner value.
    fn value(&mut self) -> Scanned {
        loop {
            self.skip_space();
            match self.peek()? {
                b'{' => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek()? == b'}' {
                        self.at += 1;
                        return Ok(());
                    }
                    self.open.push(b'{');
                    self.key()?;
                }
                b'[' => {
                    self.at += 1;
                    self.skip_space();
                    if self.peek()? == b']' {
                        self.at += 1;
                        return Ok(());
                    }
                    self.open.push(b'[');
                }
                b'"' => return self.string(),
                b't' => return self.literal("true"),
                b'f' => return self.literal("false"),
                b'n' => return self.literal("null"),
                b'-' | b'0'..=b'9' => return self.number(),
                _ => return self.unexpected("looking for beginning of value"),
            }
        }
    }

    fn key(&mut self) -> Scanned {
        self.skip_space();
        if self.peek()? != b'"' {
            return self.unexpected("looking for beginning of object key string");
        }
        self.string()?;
        self.skip_space();
        if self.peek()? != b':' {
            return self.unexpected("after object key");
        }
        self.at += 1;
        Ok(())
    }

    fn string(&mut self) -> Scanned {
        self.at += 1;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Ok(());
                }
                b'\\' => {
                    self.at += 1;
                    self.escape()?;
                }
                0..0x20 => return self.unexpected("in string literal"),
                _ => self.at += 1,
            }
        }
    }

    fn escape(&mut self) -> Scanned {
        match self.peek_inside() {
            b'b' | b'f' | b'n' | b'r' | b't' | b'\\' | b'/' | b'"' => self.at += 1,
            b'u' => {
                self.at += 1;
                for _ in 0..4 {
                    if !self.peek_inside().is_ascii_hexdigit() {
                        return self.unexpected("in \\u hexadecimal character escape");
                    }
                    self.at += 1;
                }
            }
            _ => return self.unexpected("in string escape code"),
        }
        Ok(())
    }

    fn literal(&mut self, word: &str) -> Scanned {
        for wanted in word.bytes() {
            if self.peek_inside() != wanted {
                let wanted = char::from(wanted);
                return self.unexpected(&format!("in literal {word} (expecting '{wanted}')"));
            }
            self.at += 1;
        }
        Ok(())
    }

    fn number(&mut self) -> Scanned {
        if self.peek_inside() == b'-' {
            self.at += 1;
            if !self.peek_inside().is_ascii_digit() {
                return self.unexpected("in numeric literal");
            }
        }
        if self.peek_inside() == b'0' {
            self.at += 1;
        } else {
            self.digits();
        }
        if self.body.get(self.at) == Some(&b'.') {
            self.at += 1;
            if !self.peek_inside().is_ascii_digit() {
                return self.unexpected("after decimal point in numeric literal");
            }
            self.digits();
        }
        if matches!(self.body.get(self.at), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek_inside(), b'+' | b'-') {
                self.at += 1;
            }
            if !self.peek_inside().is_ascii_digit() {
                return self.unexpected("in exponent of numeric literal");
            }
            self.digits();
        }
        Ok(())
    }

    fn digits(&mut self) {
        while self.body.get(self.at).is_some_and(u8::is_ascii_digit) {
            self.at += 1;
        }
    }

    fn skip_space(&mut self) {
        while matches!(self.body.get(self.at), Some(b' ' | b'\t' | b'\r' | b'\n')) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Result<u8, Problem> {
        self.body.get(self.at).copied().ok_or(Problem::End)
    }

    /// The next byte inside a word, number or escape. Go looks for their end by feeding them a
    /// blank, so that is what it complains of when the input ends there.
    fn peek_inside(&self) -> u8 {
        self.body.get(self.at).copied().unwrap_or(b' ')
    }

    fn unexpected(&self, context: &str) -> Scanned {
        Err(Problem::Byte(context.to_owned()))
    }
}

/// A byte in single quotes, as Go prints it.
fn quoted(byte: u8) -> String {
    match byte {
        b'\'' => r"'\''".to_owned(),
        b'"' => "'\"'".to_owned(),
        b'\\' => r"'\\'".to_owned(),
        b'\n' => r"'\n'".to_owned(),
        b'\r' => r"'\r'".to_owned(),
        b'\t' => r"'\t'".to_owned(),
        0x07 => r"'\a'".to_owned(),
        0x08 => r"'\b'".to_owned(),
        0x0b => r"'\v'".to_owned(),
        0x0c => r"'\f'".to_owned(),
        0..0x20 | 0x7f => format!("'\\x{byte:02x}'"),
        0x80..0xa0 | 0xad => format!("'\\u{byte:04x}'"),
        _ => format!("'{}'", char::from(byte)),
    }
}
