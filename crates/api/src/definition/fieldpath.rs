//! Paths to fields as definitions write them: `.spec.a` or `.spec['a']`.

use super::schema::Schema;
use crate::field::Path;

/// The field that a path leads to, and the path as messages have it; or why it leads nowhere.
/// `has_brackets` says whether names may be in brackets.
pub(super) fn follow<'a>(
    schema: &'a Schema,
    path: &str,
    has_brackets: bool,
) -> Result<(Path, &'a Schema), String> {
    let mut tokens = Tokens(path);
    let mut at = (Path::default(), schema);
    while let Some(token) = tokens.next() {
        let end = || "unexpected end of JSON path".to_owned();
        at = match token {
            "." => step(at, tokens.next().ok_or_else(end)?)?,
            "[" if !has_brackets => return Err("array notation is not allowed".to_owned()),
            "[" => {
                let quoted = tokens.next().ok_or_else(end)?;
                let inner = quoted.strip_prefix('\'').and_then(|it| it.strip_suffix('\''));
                let inner = inner
                    .ok_or_else(|| format!("expected single quoted string but got {quoted}"))?;
                let after = step(at, &unescaped(inner)?)?;
                match tokens.next().ok_or_else(end)? {
                    "]" => after,
                    other => return Err(format!("expected ] but got {other}")),
                }
            }
            other => return Err(format!("expected [ or . but got: {other}")),
        };
    }
    Ok(at)
}

fn step<'a>((path, schema): (Path, &'a Schema), name: &str) -> Result<(Path, &'a Schema), String> {
    let nowhere = || "does not refer to a valid field".to_owned();
    if schema.properties.is_empty() {
        let inner = schema.additional.schema().ok_or_else(nowhere)?;
        return Ok((path.key(name), inner));
    }
    let inner = schema.properties.get(name).ok_or_else(nowhere)?;
    Ok((path.child(name), inner))
}

/// The parts of a path: dots and brackets, and what is between them.
struct Tokens<'a>(&'a str);

impl<'a> Iterator for Tokens<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.0;
        let first = text.chars().next()?;
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => closing(text).unwrap_or(text.len()),
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

/// Where a text in quotes ends that a path begins with.
fn closing(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|at| bytes[*at] == b'\'' && bytes[at - 1] != b'\\').map(|at| at + 1)
}

fn unescaped(text: &str) -> Result<String, String> {
    let mut plain = String::new();
    let mut chars = text.chars();
    while let Some(c) = chars.next() {
        let (true, Some(next)) = (c == '\\', chars.clone().next()) else {
            plain.push(c);
            continue;
        };
        chars.next();
        plain.push(match next {
            'a' => '\u{7}',
            'b' => '\u{8}',
            'f' => '\u{c}',
            'n' => '\n',
            'r' => '\r',
            't' => '\t',
            'v' => '\u{b}',
            '\'' | '\\' => next,
            _ => return Err(format!("invalid string literal: invalid escape char \\{next}")),
        });
    }
    Ok(plain)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn paths_lead_to_fields_and_members_of_maps() {
        let schema = Schema::read(&json!({"type": "object", "properties": {
            "a": {"type": "object", "properties": {"b.c": {"type": "string"}}},
            "map": {"type": "object", "additionalProperties": {"type": "integer"}},
        }}));
        let cases = [
            (".a", Ok("a")),
            (".a['b.c']", Ok("a.b.c")),
            (".map['x']", Ok("map[x]")),
            (".map.x", Ok("map[x]")),
            (".map['it\\'s']", Ok("map[it's]")),
            ("a", Err("expected [ or . but got: a")),
            (".", Err("unexpected end of JSON path")),
            (".a.x", Err("does not refer to a valid field")),
            (".a.'b.c'", Err("does not refer to a valid field")),
            (".map[x]", Err("expected single quoted string but got x")),
            (".map['x'", Err("unexpected end of JSON path")),
            (".map['\\z']", Err("invalid string literal: invalid escape char \\z")),
        ];
        for (path, want) in cases {
            let found = follow(&schema, path, true).map(|(path, _)| path.to_string());
            assert_eq!(found, want.map(str::to_owned).map_err(str::to_owned), "{path}");
        }
        let found = follow(&schema, ".map['x']", false).map(|(path, _)| path.to_string());
        assert_eq!(found, Err("array notation is not allowed".to_owned()));
    }
}
