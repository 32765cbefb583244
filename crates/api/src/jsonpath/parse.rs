//! Reading templates.

use serde_json::Value;

use super::{Comparison, Filter, JsonPathError, Part, Path, Step};

/// The parts of a template. A `range` that is never ended goes on to the end.
pub(super) fn template(text: &str) -> Result<Vec<Part>, JsonPathError> {
    let mut reader = Reader { text, at: 0 };
    // Ranges that are open, the innermost last, each with the parts before it.
    let mut open: Vec<(Path, Vec<Part>)> = Vec::new();
    let mut parts = Vec::new();
    while let Some(plain) = reader.until_brace() {
        if !plain.is_empty() {
            parts.push(Part::Text(plain.to_owned()));
        }
        if reader.is_at_end() {
            break;
        }
        match reader.action()? {
            Action::Show(path) => parts.push(Part::Show(path)),
            Action::Range(path) => open.push((path, std::mem::take(&mut parts))),
            Action::End => match open.pop() {
                Some((path, before)) => {
                    let body = std::mem::replace(&mut parts, before);
                    parts.push(Part::Range(path, body));
                }
                None => return Err(JsonPathError("{end} without a {range} before it".to_owned())),
            },
        }
    }
    while let Some((path, before)) = open.pop() {
        let body = std::mem::replace(&mut parts, before);
        parts.push(Part::Range(path, body));
    }
    Ok(parts)
}

enum Action {
    Show(Path),
    Range(Path),
    End,
}

struct Reader<'a> {
    text: &'a str,
    at: usize,
}

impl<'a> Reader<'a> {
    fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn is_at_end(&self) -> bool {
        self.at >= self.text.len()
    }

    fn skips(&mut self, prefix: &str) -> bool {
        let is_there = self.rest().starts_with(prefix);
        if is_there {
            self.at += prefix.len();
        }
        is_there
    }

    /// The text up to the next opening brace, which is passed; `None` at the end.
    fn until_brace(&mut self) -> Option<&'a str> {
        if self.is_at_end() {
            return None;
        }
        let rest = self.rest();
        let end = rest.find('{').unwrap_or(rest.len());
        self.at += end;
        Some(&rest[..end])
    }

    /// What stands between the braces here.
    fn action(&mut self) -> Result<Action, JsonPathError> {
        let begun = self.at;
        self.at += 1;
        let mut steps = Vec::new();
        let mut word = None;
        loop {
            if self.skips("}") {
                break;
            }
            if let Some(found) = self.step(&steps)? {
                match found {
                    Found::Step(step) => steps.push(step),
                    Found::Word(found) => word = Some(found),
                    Found::Nothing => {}
                }
                continue;
            }
            let action = &self.text[begun..];
            return Err(JsonPathError(format!("no closing brace after {action:?}")));
        }
        match word {
            None => Ok(Action::Show(Path(steps))),
            Some("range") => Ok(Action::Range(Path(steps))),
            Some("end") => Ok(Action::End),
            Some(other) => {
                let message = format!(
                    "unrecognized identifier {other}: a field begins with a dot, as in {{.{other}}}"
                );
                Err(JsonPathError(message))
            }
        }
    }

    /// The next step inside of braces; `None` where the text ends.
    fn step(&mut self, before: &[Step]) -> Result<Option<Found<'a>>, JsonPathError> {
        if self.skips("[?(") {
            return self.filter().map(|filter| Some(Found::Step(Step::Filter(filter.into()))));
        }
        if self.skips("..") {
            if before.last() == Some(&Step::Below) {
                return Err(JsonPathError("invalid multiple recursive descent".to_owned()));
            }
            if self.rest().starts_with(is_word) {
                // The name after it is read as a field: the dot before it is the second of the two.
                self.at -= 1;
            }
            return Ok(Some(Found::Step(Step::Below)));
        }
        let Some(first) = self.rest().chars().next() else { return Ok(None) };
        let step = match first {
            ' ' | '@' | '$' => {
                self.at += 1;
                return Ok(Some(Found::Nothing));
            }
            '[' => self.brackets()?,
            '"' | '\'' => Step::Literal(self.quoted(first)?.into()),
            '.' => {
                self.at += 1;
                match self.name().as_str() {
                    "*" => Step::Each,
                    name => Step::Field(name.to_owned()),
                }
            }
            '+' | '-' | '0'..='9' => Step::Literal(self.number()?),
            letter if is_word(letter) => {
                let rest = self.rest();
                let end = rest.find(is_terminator).unwrap_or(rest.len());
                self.at += end;
                match &rest[..end] {
                    "true" => Step::Literal(true.into()),
                    "false" => Step::Literal(false.into()),
                    word => return Ok(Some(Found::Word(word))),
                }
            }
            other => {
                let message = format!("unexpected {other:?} in {{...}}");
                return Err(JsonPathError(message));
            }
        };
        Ok(Some(Found::Step(step)))
    }

    /// A field's name, up to the next character that ends one and has no backslash before it.
    fn name(&mut self) -> String {
        let mut name = String::new();
        let mut letters = self.rest().char_indices();
        let mut end = self.rest().len();
        while let Some((at, letter)) = letters.next() {
            if letter == '\\' {
                name.extend(letters.next().map(|(_, escaped)| escaped));
            } else if is_terminator(letter) {
                end = at;
                break;
            } else {
                name.push(letter);
            }
        }
        self.at += end;
        name
    }

    fn number(&mut self) -> Result<Value, JsonPathError> {
        let rest = self.rest();
        let is_part = |c: char| c == '.' || c.is_ascii_digit();
        let end = rest[1..].find(|c| !is_part(c)).map_or(rest.len(), |at| at + 1);
        self.at += end;
        let text = &rest[..end];
        let whole = text.parse::<i64>().map(Value::from);
        let number = whole.or_else(|_| text.parse::<f64>().map(Value::from));
        number.map_err(|_| JsonPathError(format!("cannot parse number {text}")))
    }

    /// The text in quotes here.
    fn quoted(&mut self, quote: char) -> Result<String, JsonPathError> {
        let mut text = String::new();
        let mut letters = self.rest()[1..].char_indices();
        while let Some((at, letter)) = letters.next() {
            match letter {
                '\\' => match letters.next() {
                    Some((_, 'n')) => text.push('\n'),
                    Some((_, 't')) => text.push('\t'),
                    Some((_, 'r')) => text.push('\r'),
                    Some((_, other)) => text.push(other),
                    None => break,
                },
                letter if letter == quote => {
                    self.at += at + 2;
                    return Ok(text);
                }
                letter => text.push(letter),
            }
        }
        Err(JsonPathError(format!("the quote in {:?} is never closed", self.rest())))
    }

    /// `[...]`: an index, a slice, a quoted name, or several of them.
    fn brackets(&mut self) -> Result<Step, JsonPathError> {
        let rest = self.rest();
        let end = closing_bracket(rest)
            .ok_or_else(|| JsonPathError(format!("no closing bracket after {rest:?}")))?;
        self.at += end + 1;
        let inside = &rest[1..end];
        let members = split_outside_quotes(inside, ',');
        if let [only] = members.as_slice() {
            let mut path = member(only.trim())?;
            return Ok(match path.0.len() {
                1 => path.0.remove(0),
                _ => Step::Union(vec![path]),
            });
        }
        let paths = members.iter().map(|text| member(text.trim()));
        Ok(Step::Union(paths.collect::<Result<_, _>>()?))
    }

    /// What stands between `[?(` and `)]`.
    fn filter(&mut self) -> Result<Filter, JsonPathError> {
        let rest = self.rest();
        let end = outside_quotes(rest)
            .find(|(at, _)| rest[*at..].starts_with(")]"))
            .map(|(at, _)| at)
            .ok_or_else(|| JsonPathError(format!("no )] after the filter {rest:?}")))?;
        self.at += end + 2;
        let inside = &rest[..end];
        let is_operator = |c: char| matches!(c, '!' | '<' | '>' | '=');
        let Some((from, _)) = outside_quotes(inside).find(|(_, c)| is_operator(*c)) else {
            return Ok(Filter { left: operand(inside)?, right: None });
        };
        let after = &inside[from..];
        let length = after.find(|c| !is_operator(c)).unwrap_or(after.len());
        let comparison = match &after[..length] {
            "==" => Comparison::Equal,
            "!=" => Comparison::NotEqual,
            "<" => Comparison::Less,
            "<=" => Comparison::LessOrEqual,
            ">" => Comparison::Greater,
            ">=" => Comparison::GreaterOrEqual,
            other => {
                let message =
                    format!("unrecognized filter operator {other}: use ==, !=, <, <=, > or >=");
                return Err(JsonPathError(message));
            }
        };
        let right = operand(&after[length..])?;
        Ok(Filter { left: operand(&inside[..from])?, right: Some((comparison, right)) })
    }
}

enum Found<'a> {
    Step(Step),
    Word(&'a str),
    Nothing,
}

/// One side of a filter.
fn operand(text: &str) -> Result<Path, JsonPathError> {
    let mut reader = Reader { text, at: 0 };
    let mut steps = Vec::new();
    while let Some(found) = reader.step(&steps)? {
        match found {
            Found::Step(step) => steps.push(step),
            Found::Nothing => {}
            Found::Word(word) => {
                let message = format!("{word:?} in a filter: a field is @.{word}, a text {word:?}");
                return Err(JsonPathError(message));
            }
        }
    }
    Ok(Path(steps))
}

/// One member of `[...]`.
fn member(text: &str) -> Result<Path, JsonPathError> {
    let all = Step::Slice { from: None, to: None, step: None };
    if text == "*" {
        return Ok(Path(vec![all]));
    }
    if let Some(quote) = text.chars().next().filter(|c| matches!(c, '"' | '\'')) {
        // A quoted name may hold a path of its own: dots in it part fields, as outside of it.
        let inner = text[1..].strip_suffix(quote);
        let inner = inner.ok_or_else(|| JsonPathError(format!("invalid array index {text}")))?;
        return operand(&format!(".{inner}"));
    }
    let numbers: Vec<&str> = text.split(':').map(str::trim).collect();
    let number = |text: &&str| match *text {
        "" => Ok(None),
        text => text
            .parse::<i64>()
            .map(Some)
            .map_err(|_| JsonPathError(format!("invalid array index {text}"))),
    };
    let numbers = numbers.iter().map(number).collect::<Result<Vec<_>, _>>()?;
    let step = match numbers.as_slice() {
        [Some(at)] => Step::At(*at),
        [from, to] => Step::Slice { from: *from, to: *to, step: None },
        [from, to, step] => Step::Slice { from: *from, to: *to, step: *step },
        _ => return Err(JsonPathError(format!("invalid array index {text:?}"))),
    };
    Ok(Path(vec![step]))
}

/// The characters of a text that are not in quotes, each with its place.
fn outside_quotes(text: &str) -> impl Iterator<Item = (usize, char)> {
    let mut quote = None;
    let mut is_escaped = false;
    text.char_indices().filter(move |(_, letter)| {
        let was_escaped = std::mem::take(&mut is_escaped);
        match (quote, letter) {
            (_, '\\') if !was_escaped => {
                is_escaped = true;
                false
            }
            (Some(open), letter) => {
                if open == *letter && !was_escaped {
                    quote = None;
                }
                false
            }
            (None, '"' | '\'') => {
                quote = Some(*letter);
                false
            }
            (None, _) => true,
        }
    })
}

fn closing_bracket(text: &str) -> Option<usize> {
    outside_quotes(text).find(|(_, letter)| *letter == ']').map(|(at, _)| at)
}

fn split_outside_quotes(text: &str, separator: char) -> Vec<&str> {
    let mut parts = Vec::new();
    let mut from = 0;
    for (at, _) in outside_quotes(text).filter(|(_, letter)| *letter == separator) {
        parts.push(&text[from..at]);
        from = at + separator.len_utf8();
    }
    parts.push(&text[from..]);
    parts
}

fn is_word(letter: char) -> bool {
    letter == '_' || letter.is_alphanumeric()
}

fn is_terminator(letter: char) -> bool {
    letter.is_whitespace() || matches!(letter, '.' | ',' | '[' | ']' | '$' | '@' | '{' | '}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn broken_templates_say_what_is_missing() {
        for (text, want) in [
            ("{.a", "no closing brace after \"{.a\""),
            ("{.a[0}", "no closing bracket after \"[0}\""),
            ("{.a[x]}", "invalid array index x"),
            ("{.a[]}", "invalid array index \"\""),
            ("{.a[?(@.b==1}", "no )] after the filter \"@.b==1}\""),
            ("{.a[?(@.b==~1)]}", "unexpected '~' in {...}"),
            ("{.a[?(@.b=1)]}", "unrecognized filter operator =: use ==, !=, <, <=, > or >="),
            ("{.a[?(@.b==c)]}", "\"c\" in a filter: a field is @.c, a text \"c\""),
            ("{'a}", "the quote in \"'a}\" is never closed"),
            ("{end}", "{end} without a {range} before it"),
            ("{name}", "unrecognized identifier name: a field begins with a dot, as in {.name}"),
            ("{.a....b}", "invalid multiple recursive descent"),
            ("{#}", "unexpected '#' in {...}"),
        ] {
            let error = template(text).expect_err(text);
            assert_eq!(error.to_string(), want, "{text}");
        }
    }

    #[test]
    fn any_text_is_read_or_refused_but_never_trips() {
        let pieces = [
            "{", "}", "[", "]", "?(", ")", ".", "..", "'", "\"", "\\", "a", "é", "1", ":", ",",
            "range ",
        ];
        for a in pieces {
            for b in pieces {
                for c in pieces {
                    for text in [
                        format!("{a}{b}{c}"),
                        format!("{{{a}{b}{c}}}"),
                        format!("{{.x[{a}{b}{c}]}}"),
                    ] {
                        drop(template(&text));
                    }
                }
            }
        }
    }
}
