//! The grammar of label selectors in query strings.
//!
//! `in` and `notin` are operators only where an operator may stand; elsewhere they are plain words.
//! The texts of errors are those of upstream's parser, because clients show them to people.

use std::collections::BTreeSet;

use crate::{
    names,
    selector::{
        SelectorError,
        label::{Operator, Requirement},
    },
};

/// Parses a label selector into its requirements, in the order written.
pub(super) fn requirements(selector: &str) -> Result<Vec<Requirement>, SelectorError> {
    let mut parser = Parser { tokens: tokens(selector), position: 0 };
    let mut found = Vec::new();
    loop {
        let first = parser.peek();
        if first == END {
            return Ok(found);
        }
        if !first.starts_requirement() {
            return first.unexpected(", expected: !, identifier, or 'end of string'");
        }
        let requirement = parser
            .requirement()
            .map_err(|error| SelectorError(format!("unable to parse requirement: {}", error.0)))?;
        found.push(requirement);
        let separator = parser.next();
        if separator == END {
            return Ok(found);
        }
        if !separator.is(",") {
            return separator.unexpected(", expected: ',' or 'end of string'");
        }
        let following = parser.peek();
        if !following.starts_requirement() {
            return following.unexpected(", expected: identifier after ','");
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Token<'a> {
    literal: &'a str,
    is_word: bool,
}

const END: Token<'_> = Token { literal: "", is_word: false };

impl Token<'_> {
    fn is(self, symbol: &str) -> bool {
        !self.is_word && self.literal == symbol
    }

    fn starts_requirement(self) -> bool {
        self.is_word || self.is("!")
    }

    /// Whether a value that was left out may precede this token.
    fn ends_requirement(self) -> bool {
        self == END || self.is(",")
    }

    fn unexpected<T>(self, expected: &str) -> Result<T, SelectorError> {
        Err(SelectorError(format!("found '{}'{expected}", self.literal)))
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(END)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let is_negated = self.peek().is("!");
        if is_negated {
            self.next();
        }
        let key = self.next();
        if !key.is_word {
            return key.unexpected(", expected: identifier");
        }
        let key = key.literal;
        let errors = names::qualified_name(key);
        if !errors.is_empty() {
            // The path of the key is absent here, and upstream prints that.
            let why = errors.join("; ");
            return Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {why}")));
        }
        if is_negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if self.peek().ends_requirement() {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = if matches!(operator, Operator::In | Operator::NotIn) {
            self.values()?
        } else {
            BTreeSet::from([self.exact_value()?])
        };
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        let token = self.next();
        match (token.is_word, token.literal) {
            (true, "in") => Ok(Operator::In),
            (true, "notin") => Ok(Operator::NotIn),
            (false, "=") => Ok(Operator::Equals),
            (false, "==") => Ok(Operator::DoubleEquals),
            (false, "!=") => Ok(Operator::NotEquals),
            (false, ">") => Ok(Operator::GreaterThan),
            (false, "<") => Ok(Operator::LessThan),
            _ => token.unexpected(", expected: in, notin, =, ==, !=, gt, lt"),
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        if self.peek().ends_requirement() {
            return Ok("");
        }
        let value = self.next();
        if value.is_word { Ok(value.literal) } else { value.unexpected(", expected: identifier") }
    }

    /// A list in parentheses, whose elements may be empty: `()` and `(,)` hold the empty string.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        let open = self.next();
        if !open.is("(") {
            return open.unexpected(" expected: '('");
        }
        let first = self.peek();
        if first.is(")") {
            self.next();
            return Ok(BTreeSet::from([""]));
        }
        if !first.is_word && !first.is(",") {
            return first.unexpected(", expected: ',', ')' or identifier");
        }
        let mut values = BTreeSet::new();
        loop {
            let (token, next) = (self.next(), self.peek());
            let is_followed = next.is(",") || next.is(")");
            if token.is_word {
                values.insert(token.literal);
                if !is_followed {
                    return next.unexpected(", expected: ',' or ')'");
                }
            } else if !token.is(",") {
                return token.unexpected(", expected: ',', or identifier");
            } else if values.is_empty() || is_followed {
                values.insert("");
            }
            if next.is(")") {
                self.next();
                return Ok(values);
            }
        }
    }
}

fn tokens(selector: &str) -> Vec<Token<'_>> {
    let mut tokens = Vec::new();
    let mut rest = selector;
    loop {
        rest = rest.trim_start_matches([' ', '\t', '\r', '\n']);
        // A NUL byte reads as the end of the text, as it does upstream.
        let Some(first) = rest.chars().next().filter(|&c| c != '\0') else {
            return tokens;
        };
        let is_word = !is_symbol(first);
        let end = if is_word {
            rest.find(|c| is_symbol(c) || " \t\r\n\0".contains(c)).unwrap_or(rest.len())
        } else if rest.starts_with("==") || rest.starts_with("!=") {
            2
        } else {
            1
        };
        let (literal, after) = rest.split_at(end);
        tokens.push(Token { literal, is_word });
        rest = if is_word { after.strip_prefix('\0').unwrap_or(after) } else { after };
    }
}

fn is_symbol(c: char) -> bool {
    matches!(c, '=' | '!' | '(' | ')' | ',' | '>' | '<')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use crate::selector::LabelSelector;

    #[test]
    fn selectors_print_in_their_normal_form() {
        let cases = [
            ("", ""),
            ("  ", ""),
            ("b,a", "a,b"),
            ("x = y", "x=y"),
            ("x==a,y!=b", "x==a,y!=b"),
            ("x in (c, a ,b)", "x in (a,b,c)"),
            ("x notin (a,a)", "x notin (a)"),
            ("x in ()", "x in ()"),
            ("x in (,a)", "x in (,a)"),
            ("x in (a,,b)", "x in (,a,b)"),
            ("x in (in,notin)", "x in (in,notin)"),
            ("in in (in)", "in in (in)"),
            ("notin,in", "in,notin"),
            ("!x,y", "!x,y"),
            ("x>1,y<2", "x>1,y<2"),
            ("x=,y", "x=,y"),
            ("example.com/a=b", "example.com/a=b"),
            ("a\0", "a"),
        ];
        for (selector, want) in cases {
            let parsed = LabelSelector::parse(selector).expect(selector);
            assert_eq!(parsed.to_string(), want, "{selector}");
        }
    }

    #[test]
    fn bad_selectors_say_why() {
        let cases = [
            ("=a", "found '=', expected: !, identifier, or 'end of string'"),
            ("a,", "found '', expected: identifier after ','"),
            ("a,,b", "found ',', expected: identifier after ','"),
            ("a=b=c", "found '=', expected: ',' or 'end of string'"),
            ("a=b c", "found 'c', expected: ',' or 'end of string'"),
            ("!a=b", "found '=', expected: ',' or 'end of string'"),
            ("!", "unable to parse requirement: found '', expected: identifier"),
            (
                "a b",
                "unable to parse requirement: found 'b', expected: in, notin, =, ==, !=, gt, lt",
            ),
            ("a=!", "unable to parse requirement: found '!', expected: identifier"),
            ("a in", "unable to parse requirement: found '' expected: '('"),
            ("a in b", "unable to parse requirement: found 'b' expected: '('"),
            ("a in (", "unable to parse requirement: found '', expected: ',', ')' or identifier"),
            ("a in (b", "unable to parse requirement: found '', expected: ',' or ')'"),
            ("a in (b,", "unable to parse requirement: found '', expected: ',', or identifier"),
            ("a in (b c)", "unable to parse requirement: found 'c', expected: ',' or ')'"),
            (
                "a>b",
                "unable to parse requirement: values[0]: Invalid value: \"b\": for 'Gt', 'Lt' \
                 operators, the value must be an integer",
            ),
        ];
        for (selector, want) in cases {
            let error = LabelSelector::parse(selector).unwrap_err();
            assert_eq!(error.to_string(), want, "{selector}");
        }
        let starts = [
            ("-a", "unable to parse requirement: <nil>: Invalid value: \"-a\": name part must"),
            ("a=-", "unable to parse requirement: values[0][a]: Invalid value: \"-\": a valid"),
        ];
        for (selector, want) in starts {
            let error = LabelSelector::parse(selector).unwrap_err().to_string();
            assert!(error.starts_with(want), "{error}");
        }
    }

    proptest! {
        #[test]
        fn no_selector_panics(selector in "[ a-c=!(),<>\\x00-]{0,24}|.*") {
            let _ = LabelSelector::parse(&selector);
        }

        #[test]
        fn printed_selectors_parse_to_themselves(selector in "[ abin=!(),<>1]{0,16}") {
            if let Ok(parsed) = LabelSelector::parse(&selector) {
                prop_assert_eq!(LabelSelector::parse(&parsed.to_string()).unwrap(), parsed);
            }
        }
    }
}
