//! Escapes that stand for one character.

use super::Fault;

/// Reads an escape at the beginning of a text: the number of its character, and what follows. The
/// number may be that of half a surrogate pair, which is no character.
pub(super) fn character(text: &str) -> Result<(u32, &str), Fault> {
    let mut chars = text.chars();
    chars.next();
    let Some(kind) = chars.next() else {
        return Err(Fault::new("trailing backslash at end of expression", ""));
    };
    let after = chars.as_str();
    let wrong =
        |rest: &str| Err(Fault::new("invalid escape sequence", &text[..text.len() - rest.len()]));
    let code = match kind {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => return hex(after).or_else(wrong),
        // A single digit but zero would refer to a group, which is not known.
        '0' => return Ok(octal(kind, after)),
        '1'..='7' if after.starts_with(|char: char| char.is_digit(8)) => {
            return Ok(octal(kind, after));
        }
        _ if kind.is_ascii() && !kind.is_ascii_alphanumeric() => u32::from(kind),
        _ => return wrong(after),
    };
    Ok((code, after))
}

/// Up to three octal digits, of which the first was read.
fn octal(first: char, mut rest: &str) -> (u32, &str) {
    let mut code = first.to_digit(8).unwrap_or_default();
    for _ in 0..2 {
        let mut chars = rest.chars();
        let Some(digit) = chars.next().and_then(|char| char.to_digit(8)) else { break };
        code = code * 8 + digit;
        rest = chars.as_str();
    }
    (code, rest)
}

/// Two hexadecimal digits, or any number of them in braces. An error is what follows the part that
/// is wrong.
fn hex(text: &str) -> Result<(u32, &str), &str> {
    let mut chars = text.chars();
    let Some(first) = chars.next() else { return Err("") };
    if first != '{' {
        let digits = (first.to_digit(16), chars.next().and_then(|char| char.to_digit(16)));
        let (Some(high), Some(low)) = digits else { return Err(chars.as_str()) };
        return Ok((high * 16 + low, chars.as_str()));
    }
    let mut code = None;
    while let Some(char) = chars.next() {
        match (char, char.to_digit(16), code) {
            ('}', _, Some(code)) => return Ok((code, chars.as_str())),
            (_, Some(digit), _) => {
                code = Some(code.unwrap_or(0) * 16 + digit);
                if code > Some(u32::from(char::MAX)) {
                    break;
                }
            }
            _ => break,
        }
    }
    Err(chars.as_str())
}
