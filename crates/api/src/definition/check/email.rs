//! Addresses of mail, as Go's `net/mail` reads them.

use std::net::IpAddr;

/// Whether a text is one address, with or without a name: `a@example.com` or `Ann <a@example.com>`.
pub(super) fn is_address(text: &str) -> bool {
    let mut reader = Reader(text);
    let is_one = reader.addresses(true) == Some(1);
    is_one && reader.comments().is_some() && reader.0.is_empty()
}

/// What is left of a text.
struct Reader<'a>(&'a str);

impl<'a> Reader<'a> {
    fn space(&mut self) {
        self.0 = self.0.trim_start_matches([' ', '\t']);
    }

    fn take(&mut self, wanted: char) -> bool {
        let rest = self.0.strip_prefix(wanted);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Goes on after `length` bytes, which are the answer.
    fn split(&mut self, length: usize) -> Option<&'a str> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn comments(&mut self) -> Option<()> {
        self.space();
        while self.take('(') {
            self.comment()?;
            self.space();
        }
        Some(())
    }

    /// The rest of a comment, which may have others in it.
    fn comment(&mut self) -> Option<()> {
        let mut depth = 1;
        let mut chars = self.0.char_indices();
        while let Some((at, c)) = chars.next() {
            match c {
                '\\' => drop(chars.next()),
                '(' => depth += 1,
                ')' => depth -= 1,
                _ => {}
            }
            if depth == 0 {
                return self.split(at + 1).map(|_| ());
            }
        }
        None
    }

    /// How many addresses there are: one, or those of a group.
    fn addresses(&mut self, may_be_group: bool) -> Option<usize> {
        self.space();
        let before = self.0;
        if self.plain().is_some() {
            self.space();
            if self.take('(') {
                self.comment()?;
            }
            return Some(1);
        }
        self.0 = before;
        if !self.0.starts_with('<') {
            self.name()?;
        }
        self.space();
        if may_be_group && self.take(':') {
            return self.group();
        }
        (self.take('<') && self.plain().is_some() && self.take('>')).then_some(1)
    }

    fn group(&mut self) -> Option<usize> {
        let mut count = 0;
        self.space();
        while !self.take(';') {
            count += self.addresses(false)?;
            self.comments()?;
            if !self.0.starts_with(';') && !self.take(',') {
                return None;
            }
        }
        self.comments().map(|()| count)
    }

    /// `local@domain`.
    fn plain(&mut self) -> Option<()> {
        let is_plain =
            |atom: &&str| !atom.starts_with('.') && !atom.ends_with('.') && !atom.contains("..");
        self.space();
        match self.0.starts_with('"') {
            true => self.quoted().filter(|text| !text.is_empty())?,
            false => self.atom().filter(is_plain)?,
        };
        if !self.take('@') {
            return None;
        }
        self.space();
        if self.take('[') {
            let literal = self.split(self.0.find(']')?)?;
            let is_address = literal.parse::<IpAddr>().is_ok();
            return (self.take(']') && is_address).then_some(());
        }
        self.atom().filter(is_plain).map(|_| ())
    }

    /// The words before an address.
    fn name(&mut self) -> Option<()> {
        let mut has_words = false;
        loop {
            if has_words {
                self.comments()?;
            }
            self.space();
            let word = match self.0.starts_with('"') {
                true => self.quoted(),
                false => self.atom(),
            };
            if word.is_none() {
                return has_words.then_some(());
            }
            has_words = true;
        }
    }

    /// What is between quotes.
    fn quoted(&mut self) -> Option<&'a str> {
        let mut chars = self.0.char_indices().skip(1);
        while let Some((at, c)) = chars.next() {
            let is_fit = match c {
                '"' => return self.split(at + 1)?.get(1..at),
                '\\' => chars.next().is_some_and(|(_, c)| is_visible(c) || matches!(c, ' ' | '\t')),
                c => is_visible(c) || matches!(c, ' ' | '\t'),
            };
            if !is_fit {
                return None;
            }
        }
        None
    }

    fn atom(&mut self) -> Option<&'a str> {
        let is_inside = |c: char| is_visible(c) && !"()<>[]:;@\\,\"".contains(c);
        let length = self.0.find(|c| !is_inside(c)).unwrap_or(self.0.len());
        self.split(length).filter(|atom| !atom.is_empty())
    }
}

fn is_visible(c: char) -> bool {
    c.is_ascii_graphic() || !c.is_ascii()
}

#[cfg(test)]
mod tests {
    use super::is_address;

    #[test]
    fn addresses_are_what_go_reads_as_one() {
        let cases = [
            ("a@example.com", true),
            ("Ann <a@example.com>", true),
            ("\"Ann, B.\" (c) <a@x.io> (d (e))", true),
            ("a@x.io (Ann)", true),
            ("\"a b\"@x.io", true),
            ("a.b+c@x", true),
            ("é@x.io", true),
            ("a@[10.0.0.1]", true),
            ("all: a@x.io;", true),
            (" a@x.io ", true),
            ("a", false),
            ("", false),
            ("a..b@x.io", false),
            ("a@b.", false),
            (".a@b", false),
            ("<a@x.io", false),
            ("a@x.io, b@x.io", false),
            ("all: a@x.io, b@x.io;", false),
            ("all:;", false),
            ("\"\"@x.io", false),
            ("a@[x]", false),
            ("a@x.io (b", false),
            ("a b@x.io", false),
        ];
        for (text, want) in cases {
            assert_eq!(is_address(text), want, "{text}");
        }
    }
}
