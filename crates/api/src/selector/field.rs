//! Field selectors: `spec.nodeName=n1,status.phase!=Running`.

use std::{borrow::Cow, fmt};

use crate::{
    json::text,
    selector::SelectorError,
    strategy::{Json, Strategy},
};

/// A parsed field selector; without terms it matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FieldSelector {
    terms: Vec<Term>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Term {
    field: String,
    is_equal: bool,
    value: String,
}

impl FieldSelector {
    /// Parses the value of `fieldSelector` and checks that the kind can be selected by these
    /// fields.
    pub fn parse(selector: &str, strategy: &dyn Strategy) -> Result<Self, SelectorError> {
        let parsed = Self::parse_any(selector)?;
        match parsed.terms.iter().find(|term| !is_selectable(&term.field, strategy)) {
            Some(term) => Err(SelectorError(strategy.unsupported_field(&term.field))),
            None => Ok(parsed),
        }
    }

    /// Parses a field selector without asking whether a kind knows the fields.
    pub fn parse_any(selector: &str) -> Result<Self, SelectorError> {
        let mut parts = split_terms(selector);
        parts.sort_unstable();
        let terms = parts
            .into_iter()
            .filter(|part| !part.is_empty())
            .map(|part| parse_term(selector, part))
            // A term that names nothing and wants nothing demands nothing.
            .filter(|term| {
                !term.as_ref().is_ok_and(|term| term.field.is_empty() && term.value.is_empty())
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { terms })
    }

    /// Whether everything matches.
    pub fn is_empty(&self) -> bool {
        self.terms.is_empty()
    }

    /// Whether the selector says anything about `field`.
    pub fn names(&self, field: &str) -> bool {
        self.terms.iter().any(|term| term.field == field)
    }

    /// The one value `field` must have, when the selector demands one.
    pub fn exact(&self, field: &str) -> Option<&str> {
        self.terms
            .iter()
            .find(|term| term.is_equal && term.field == field)
            .map(|term| term.value.as_str())
    }

    /// Whether the fields, as `value_of` tells them, match. An absent field is the empty string.
    pub fn matches<'a>(&self, value_of: impl Fn(&str) -> Cow<'a, str>) -> bool {
        self.terms.iter().all(|term| (value_of(&term.field) == term.value) == term.is_equal)
    }

    /// Whether an object, in the version of `strategy`, matches.
    pub fn matches_object(&self, object: &Json, strategy: &dyn Strategy) -> bool {
        self.matches(|field| match field {
            "metadata.name" => Cow::Borrowed(text(object, &["metadata", "name"])),
            "metadata.namespace" => Cow::Borrowed(text(object, &["metadata", "namespace"])),
            other => Cow::Owned(strategy.field_value(object, other)),
        })
    }
}

impl fmt::Display for FieldSelector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, term) in self.terms.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            let operator = if term.is_equal { "=" } else { "!=" };
            write!(f, "{comma}{}{operator}{}", term.field, escaped(&term.value))?;
        }
        Ok(())
    }
}

fn is_selectable(field: &str, strategy: &dyn Strategy) -> bool {
    matches!(field, "metadata.name" | "metadata.namespace") || strategy.is_selectable(field)
}

/// Splits at commas that no backslash precedes.
fn split_terms(selector: &str) -> Vec<&str> {
    let mut terms = Vec::new();
    let (mut start, mut is_escaped) = (0, false);
    for (at, c) in selector.char_indices() {
        match c {
            _ if is_escaped => is_escaped = false,
            '\\' => is_escaped = true,
            ',' => {
                terms.push(&selector[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    terms.push(&selector[start..]);
    terms
}

fn parse_term(selector: &str, term: &str) -> Result<Term, SelectorError> {
    // The first operator splits the term; `==` must be tried before `=`.
    let split = term.char_indices().find_map(|(at, _)| {
        ["!=", "==", "="]
            .into_iter()
            .find(|operator| term[at..].starts_with(operator))
            .map(|operator| (&term[..at], operator, &term[at + operator.len()..]))
    });
    let Some((field, operator, value)) = split else {
        return Err(SelectorError(format!(
            "invalid selector: '{selector}'; can't understand '{term}'"
        )));
    };
    Ok(Term { field: field.to_owned(), is_equal: operator != "!=", value: unescaped(value)? })
}

fn unescaped(value: &str) -> Result<String, SelectorError> {
    let bad_escape = |sequence: &str| {
        SelectorError(format!("invalid field selector: invalid escape sequence: {sequence}"))
    };
    let mut plain = String::with_capacity(value.len());
    let mut chars = value.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => match chars.next() {
                Some(next @ ('\\' | ',' | '=')) => plain.push(next),
                Some(next) => return Err(bad_escape(&format!("\\{next}"))),
                None => return Err(bad_escape("\\")),
            },
            ',' | '=' => {
                return Err(SelectorError(format!(
                    "invalid field selector: unescaped character in value: {}",
                    u32::from(c)
                )));
            }
            _ => plain.push(c),
        }
    }
    Ok(plain)
}

fn escaped(value: &str) -> String {
    value.replace('\\', "\\\\").replace(',', "\\,").replace('=', "\\=")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;
    use crate::kinds::secret::SecretStrategy;

    #[test]
    fn field_selectors_match_like_upstream() {
        let secret = json!({"metadata": {"name": "s", "namespace": "n"}, "type": "a,b=c\\d"});
        let cases = [
            ("", true),
            (",", true),
            ("metadata.name=s", true),
            ("metadata.name==s", true),
            ("metadata.name!=s", false),
            ("metadata.name=s,metadata.namespace=n", true),
            ("metadata.name=s,,metadata.namespace=m", false),
            (r"type=a\,b\=c\\d", true),
            ("type=", false),
            ("type!=", true),
            ("=,!=", true),
        ];
        for (selector, want) in cases {
            let parsed = FieldSelector::parse(selector, &SecretStrategy).unwrap();
            let got = parsed.matches_object(secret.as_object().unwrap(), &SecretStrategy);
            assert_eq!(got, want, "{selector}");
        }
    }

    #[test]
    fn bad_field_selectors_say_why() {
        let cases = [
            ("x", "invalid selector: 'x'; can't understand 'x'"),
            ("type=a,x", "invalid selector: 'type=a,x'; can't understand 'x'"),
            (r"type=\x", r"invalid field selector: invalid escape sequence: \x"),
            (r"type=\", r"invalid field selector: invalid escape sequence: \"),
            ("type=a=b", "invalid field selector: unescaped character in value: 61"),
            ("spec.x=1", "field label not supported: spec.x"),
            ("=1", "field label not supported: "),
        ];
        for (selector, want) in cases {
            let error = FieldSelector::parse(selector, &SecretStrategy).unwrap_err();
            assert_eq!(error.to_string(), want, "{selector}");
        }
    }

    #[test]
    fn an_exact_name_is_known() {
        let parsed = FieldSelector::parse_any("metadata.name=x,a!=b").unwrap();
        assert_eq!(parsed.exact("metadata.name"), Some("x"));
        assert_eq!(parsed.exact("a"), None);
    }

    proptest! {
        #[test]
        fn printed_field_selectors_parse_to_themselves(values in prop::collection::vec(".*", 0..4)) {
            let terms = values
                .into_iter()
                .enumerate()
                .map(|(at, value)| Term { field: format!("f{at}"), is_equal: at % 2 == 0, value })
                .collect();
            let selector = FieldSelector { terms };
            prop_assert_eq!(FieldSelector::parse_any(&selector.to_string()).unwrap(), selector);
        }

        #[test]
        fn no_field_selector_panics(selector in ".*") {
            let _ = FieldSelector::parse_any(&selector);
        }
    }
}
