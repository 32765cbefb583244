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
        match parser.peek() {
            Token::End => return Ok(found),
            Token::Word(_) | Token::Symbol("!") => {}
            other => {
                return fail(other, ", expected: !, identifier, or 'end of string'");
            }
        }
        let requirement = parser
            .requirement()
            .map_err(|error| SelectorError(format!("unable to parse requirement: {}", error.0)))?;
        found.push(requirement);
        match parser.next() {
            Token::End => return Ok(found),
            Token::Symbol(",") => {
                let next = parser.peek();
                if !matches!(next, Token::Word(_) | Token::Symbol("!")) {
                    return fail(next, ", expected: identifier after ','");
                }
            }
            other => return fail(other, ", expected: ',' or 'end of string'"),
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Token<'a> {
    Word(&'a str),
    Symbol(&'a str),
    End,
}

impl<'a> Token<'a> {
    fn literal(self) -> &'a str {
        match self {
            Self::Word(literal) | Self::Symbol(literal) => literal,
            Self::End => "",
        }
    }
}

struct Parser<'a> {
    tokens: Vec<Token<'a>>,
    position: usize,
}

impl<'a> Parser<'a> {
    fn peek(&self) -> Token<'a> {
        self.tokens.get(self.position).copied().unwrap_or(Token::End)
    }

    fn next(&mut self) -> Token<'a> {
        let token = self.peek();
        self.position += 1;
        token
    }

    fn requirement(&mut self) -> Result<Requirement, SelectorError> {
        let is_negated = self.peek() == Token::Symbol("!");
        if is_negated {
            self.next();
        }
        let key = match self.next() {
            Token::Word(key) => key,
            other => return fail(other, ", expected: identifier"),
        };
        let errors = names::qualified_name(key);
        if !errors.is_empty() {
            // The path of the key is absent here, and upstream prints that.
            let why = errors.join("; ");
            return Err(SelectorError(format!("<nil>: Invalid value: {key:?}: {why}")));
        }
        if is_negated {
            return Requirement::new(key, Operator::DoesNotExist, Vec::new());
        }
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Requirement::new(key, Operator::Exists, Vec::new());
        }
        let operator = self.operator()?;
        let values = match operator {
            Operator::In | Operator::NotIn => self.values()?,
            _ => BTreeSet::from([self.exact_value()?]),
        };
        Requirement::new(key, operator, values.into_iter().map(str::to_owned).collect())
    }

    fn operator(&mut self) -> Result<Operator, SelectorError> {
        match self.next() {
            Token::Word("in") => Ok(Operator::In),
            Token::Word("notin") => Ok(Operator::NotIn),
            Token::Symbol("=") => Ok(Operator::Equals),
            Token::Symbol("==") => Ok(Operator::DoubleEquals),
            Token::Symbol("!=") => Ok(Operator::NotEquals),
            Token::Symbol(">") => Ok(Operator::GreaterThan),
            Token::Symbol("<") => Ok(Operator::LessThan),
            other => fail(other, ", expected: in, notin, =, ==, !=, gt, lt"),
        }
    }

    fn exact_value(&mut self) -> Result<&'a str, SelectorError> {
        if matches!(self.peek(), Token::End | Token::Symbol(",")) {
            return Ok("");
        }
        match self.next() {
            Token::Word(value) => Ok(value),
            other => fail(other, ", expected: identifier"),
        }
    }

    /// A list in parentheses, whose elements may be empty: `()` and `(,)` hold the empty string.
    fn values(&mut self) -> Result<BTreeSet<&'a str>, SelectorError> {
        let open = self.next();
        if open != Token::Symbol("(") {
            return fail(open, " expected: '('");
        }
        match self.peek() {
            Token::Symbol(")") => {
                self.next();
                return Ok(BTreeSet::from([""]));
            }
            Token::Word(_) | Token::Symbol(",") => {}
            other => return fail(other, ", expected: ',', ')' or identifier"),
        }
        let mut values = BTreeSet::new();
        loop {
            match self.next() {
                Token::Word(value) => {
                    values.insert(value);
                    match self.peek() {
                        Token::Symbol("," | ")") => {}
                        other => return fail(other, ", expected: ',' or ')'"),
                    }
                }
                Token::Symbol(",") => {
                    let is_first = values.is_empty();
                    if is_first || matches!(self.peek(), Token::Symbol("," | ")")) {
                        values.insert("");
                    }
                }
                other => return fail(other, ", expected: ',', or identifier"),
            }
            if self.peek() == Token::Symbol(")") {
                self.next();
                return Ok(values);
            }
        }
    }
}

fn fail<T>(found: Token<'_>, expected: &str) -> Result<T, SelectorError> {
    Err(SelectorError(format!("found '{}'{expected}", found.literal())))
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
        if is_symbol(first) {
            let length = if rest.starts_with("==") || rest.starts_with("!=") { 2 } else { 1 };
            let (symbol, after) = rest.split_at(length);
            tokens.push(Token::Symbol(symbol));
            rest = after;
        } else {
            let end = rest.find(|c| is_symbol(c) || " \t\r\n\0".contains(c)).unwrap_or(rest.len());
            let (word, after) = rest.split_at(end);
            tokens.push(Token::Word(word));
            rest = after.strip_prefix('\0').unwrap_or(after);
        }
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
