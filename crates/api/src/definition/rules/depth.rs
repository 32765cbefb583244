//! How deep an expression goes, as its text tells. Whoever reads and evaluates expressions calls
//! itself for each level, and nothing but a limit keeps a long chain from using up the stack.

/// How deep upstream lets an expression go.
pub(super) const DEPTH_MAX: u16 = 250;
/// How many brackets may be inside of each other: a parser uses 8 KiB for each, and ten times less
/// for all else.
const BRACKETS_MAX: usize = 96;
/// The most characters that it lets one have.
const SIZE_MAX: usize = 100_000;

/// Why an expression is too much to be read, if it is.
pub(super) fn fault(text: &str) -> Option<String> {
    let size = text.chars().count();
    let why = if size > SIZE_MAX {
        format!("expression code point size exceeds limit: size: {size}, limit {SIZE_MAX}")
    } else {
        format!("expression recursion limit exceeded: {}", exceeded(text)?)
    };
    Some(format!("ERROR: <input>:-1:0: {why}"))
}

/// The limit that a text goes beyond.
fn exceeded(text: &str) -> Option<usize> {
    let most = usize::from(DEPTH_MAX);
    let mut scan = Scan::default();
    let mut rest = text;
    while !rest.is_empty() {
        let length = scan.take(rest);
        rest = rest.get(length..).unwrap_or_default();
        if scan.outer.len() > BRACKETS_MAX {
            return Some(BRACKETS_MAX);
        }
        if scan.depth() > most {
            return Some(most);
        }
    }
    None
}

/// How deep it goes between two brackets. Parts count only up to what ends them: `a.b.c + d` is as
/// deep as `a.b.c`.
#[derive(Default)]
struct Level {
    /// What closes it; nothing for the whole.
    closing: Option<char>,
    /// `.a` and `[0]`.
    members: usize,
    /// `+`, `*` and the like.
    operators: usize,
    /// `==`, `<` and the like.
    relations: usize,
    /// `:`, which what comes after is inside of.
    choices: usize,
    /// `?` without their `:`.
    questions: usize,
}

impl Level {
    fn depth(&self) -> usize {
        self.members + self.operators + self.relations + self.choices + 1
    }
}

#[derive(Default)]
struct Scan {
    /// How deep the levels around the innermost one go.
    around: usize,
    outer: Vec<Level>,
    level: Level,
    /// What was there last; a name or a literal is `a`.
    last: Option<char>,
    /// Whether the text cannot be an expression. What a parser makes of the rest nobody knows, so
    /// that nothing ends any more what is counted.
    is_broken: bool,
}

impl Scan {
    fn depth(&self) -> usize {
        self.around + self.level.depth()
    }

    /// Whether a value has to come now, or may.
    fn expects_value(&self) -> bool {
        !matches!(self.last, Some('a' | ')' | ']' | '}'))
    }

    /// Takes what a text begins with. The answer is its length.
    fn take(&mut self, text: &str) -> usize {
        let mut chars = text.chars();
        let Some(first) = chars.next() else { return 0 };
        if matches!(first, '\t' | ' ' | '\r' | '\n' | '\u{c}') {
            return 1;
        }
        if text.starts_with("//") {
            return text.find('\n').unwrap_or(text.len());
        }
        if let Some(length) = literal(text) {
            self.value();
            return length;
        }
        if first.is_ascii_alphanumeric() || first == '_' {
            let is_inside = |c: char| c.is_ascii_alphanumeric() || c == '_';
            let length = text.find(|c| !is_inside(c)).unwrap_or(text.len());
            let (word, rest) = text.split_at(length);
            match word {
                "in" => self.relation(),
                _ => self.value(),
            }
            // After a number, but not after a name, letters may belong to the quotes behind them.
            let is_number = first.is_ascii_digit() && rest.starts_with(['"', '\'']);
            let letters: &[char] = if is_number { &['b', 'B', 'r', 'R'] } else { &[] };
            return word.trim_end_matches(letters).len();
        }
        let is_doubled = chars.next().is_some_and(|next| match first {
            '=' | '!' | '<' | '>' => next == '=',
            '&' | '|' => next == first,
            _ => false,
        });
        self.sign(first, is_doubled);
        first.len_utf8() + usize::from(is_doubled)
    }

    fn value(&mut self) {
        self.is_broken |= !self.expects_value();
        self.last = Some('a');
    }

    fn relation(&mut self) {
        self.is_broken |= self.expects_value();
        self.end_of_operands();
        self.level.relations += 1;
        self.last = Some('<');
    }

    fn sign(&mut self, sign: char, is_doubled: bool) {
        let expects_value = self.expects_value();
        match sign {
            '.' => {
                self.is_broken |= self.last == Some('.');
                self.level.members += 1;
            }
            '(' | '[' | '{' => return self.open(sign),
            ')' | ']' | '}' => self.close(sign),
            '+' | '-' | '*' | '/' | '%' => {
                self.is_broken |= expects_value && sign != '-';
                self.end_of_members();
                self.level.operators += 1;
            }
            '!' if !is_doubled => self.is_broken |= !expects_value,
            '=' | '!' | '<' | '>' => return self.relation(),
            '&' | '|' => {
                self.is_broken |= expects_value || !is_doubled;
                self.end_of_relations();
            }
            // A mark of what may not be there.
            '?' if matches!(self.last, Some('.' | '[' | '{' | ',' | ':')) => return,
            '?' => {
                self.is_broken |= expects_value;
                self.level.questions += 1;
            }
            ':' => self.colon(),
            ',' => {
                self.is_broken |= expects_value || self.level.closing.is_none();
                self.end_of_relations();
                if !self.is_broken {
                    self.level.choices = 0;
                }
            }
            _ => self.is_broken = true,
        }
        self.last = Some(sign);
    }

    fn open(&mut self, sign: char) {
        let is_member = sign == '[' && !self.expects_value();
        self.level.members += usize::from(is_member || self.is_broken);
        let closing = match sign {
            '(' => ')',
            '[' => ']',
            _ => '}',
        };
        let inner = Level { closing: Some(closing), ..Level::default() };
        self.around += self.level.depth();
        self.outer.push(std::mem::replace(&mut self.level, inner));
        self.last = Some(sign);
    }

    fn close(&mut self, sign: char) {
        let is_empty = matches!(self.last, Some('(' | '[' | '{' | ','));
        self.is_broken |= self.level.closing != Some(sign) || self.expects_value() && !is_empty;
        if self.is_broken {
            return;
        }
        if let Some(outer) = self.outer.pop() {
            self.around = self.around.saturating_sub(outer.depth());
            self.level = outer;
        }
    }

    fn colon(&mut self) {
        let is_choice = self.level.questions > 0;
        self.is_broken |= self.expects_value() || !is_choice && self.level.closing != Some('}');
        self.level.questions = self.level.questions.saturating_sub(1);
        self.end_of_relations();
        self.level.choices += 1;
    }

    fn end_of_members(&mut self) {
        if !self.is_broken {
            self.level.members = 0;
        }
    }

    fn end_of_operands(&mut self) {
        self.end_of_members();
        if !self.is_broken {
            self.level.operators = 0;
        }
    }

    fn end_of_relations(&mut self) {
        self.end_of_operands();
        if !self.is_broken {
            self.level.relations = 0;
        }
    }
}

/// The length of the text, the bytes or the name in quotes that something begins with, if it does
/// with one that is whole.
fn literal(text: &str) -> Option<usize> {
    if let Some(name) = text.strip_prefix('`') {
        let is_inside = |c: char| c.is_ascii_alphanumeric() || "_.-/ ".contains(c);
        let length = name.find(|c| !is_inside(c))?;
        return (length > 0 && name[length..].starts_with('`')).then_some(length + 2);
    }
    let after_bytes = text.strip_prefix(['b', 'B']).unwrap_or(text);
    let quoted = after_bytes.strip_prefix(['r', 'R']).unwrap_or(after_bytes);
    let is_raw = quoted.len() < after_bytes.len();
    let quote = quoted.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let prefix = text.len() - quoted.len();
    let thrice = quote.to_string().repeat(3);
    let long = quoted.strip_prefix(&*thrice).and_then(|it| closed(it, &thrice, is_raw));
    if let Some(length) = long {
        return Some(prefix + 6 + length);
    }
    let short = closed(&quoted[1..], &thrice[..1], is_raw)?;
    Some(prefix + 2 + short)
}

/// How much is before the quotes that close a literal.
fn closed(text: &str, quotes: &str, is_raw: bool) -> Option<usize> {
    let is_long = quotes.len() > 1;
    let mut at = 0;
    loop {
        let rest = text.get(at..)?;
        if rest.starts_with(quotes) {
            return Some(at);
        }
        at += match rest.chars().next()? {
            '\n' | '\r' if !is_long => return None,
            '\\' if !is_raw => escape(rest)?,
            other => other.len_utf8(),
        };
    }
}

/// The length of the escape that a text begins with, if that is one.
fn escape(text: &str) -> Option<usize> {
    let kind = text.chars().nth(1)?;
    let digits = |from: usize, count: usize, radix: u32| {
        let digits = text.get(from..from + count)?;
        digits.chars().all(|c| c.is_digit(radix)).then_some(from + count)
    };
    match kind {
        'a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`' => Some(2),
        'x' | 'X' => digits(2, 2, 16),
        'u' => digits(2, 4, 16),
        'U' => digits(2, 8, 16),
        '0'..='3' => digits(1, 3, 8),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chain(first: &str, more: &str, count: usize) -> String {
        format!("{first}{}", more.repeat(count))
    }

    #[test]
    fn chains_of_any_sort_are_counted() {
        let many = 10 * usize::from(DEPTH_MAX);
        let deep = [
            chain("1", "+1", many),
            chain("1", " == 1", many),
            chain("1", " in 1", many),
            chain("a", ".a", many),
            chain("a", ".?a", many),
            chain("a", "[0]", many),
            chain("a", ".f()", many),
            chain("x", ".f(x", many),
            chain("", "[", many),
            chain("", "(", many),
            chain("", "{1:", many),
            format!("{}1", "true ? 1 : ".repeat(many)),
            // The parser goes on where it finds a fault, and so does the chain.
            chain("1", "+ +", many),
            chain("1", "+1 , 1", many),
            chain("(1", "+ ]", many),
            chain("(1", "+ (1] +1", many),
            chain("' 1", "+1", many),
            chain(r"'\q' ", "+1 &&", many),
            chain("1 ' ", "+1 &&", many),
            format!(r"[1r'\', {}'", "[".repeat(many)),
            format!(r"[0br'\', {}'", "[".repeat(many)),
        ];
        for text in deep {
            let why = fault(&text).unwrap_or_default();
            assert!(why.contains("recursion limit exceeded: "), "{} {why}", &text[..20]);
        }
        let why = fault(&"x".repeat(SIZE_MAX + 1)).unwrap();
        assert!(why.ends_with("exceeds limit: size: 100001, limit 100000"), "{why}");
    }

    #[test]
    fn what_is_only_long_is_not_deep() {
        let many = 10 * usize::from(DEPTH_MAX);
        let flat = [
            chain("self.a.b[0].c() > 1", " && self.a.b[0].c() > 1 + 1", many),
            chain("a.b", " || !a.b", many),
            format!("[{}]", "1 + 1, a.b, x ? 1 : 2,".repeat(many)),
            format!("{{{}}}", "'k': v.a + 1, ?k: v ? 1 : 2,".repeat(many)),
            format!("f({}1).a", "1 + 1, -a.b, ".repeat(many)),
            format!("'{}' == ''", "1+1.a[(".repeat(many)),
            format!(r"r'{}\' == br'\'", "1+1.a[(".repeat(many)),
            format!(r#""""{}\"""""#, "1+'1'.a[(\n".repeat(many)),
            format!("true // {}\n && `a.b/c`", "1+1.a[(".repeat(many)),
            format!(r"'\x41\u0041\U00000041\101\n{}'", "1+1.a[(".repeat(many)),
        ];
        for text in flat {
            assert_eq!(fault(&text), None, "{}", &text[..20]);
        }
        let most = usize::from(DEPTH_MAX);
        assert_eq!(fault(&chain("1", "+1", most - 1)), None);
        assert!(fault(&chain("1", "+1", most)).is_some());
        assert_eq!(fault(&"(".repeat(BRACKETS_MAX)), None);
        let why = fault(&"(".repeat(BRACKETS_MAX + 1)).unwrap();
        assert!(why.ends_with("recursion limit exceeded: 96"), "{why}");
    }
}
