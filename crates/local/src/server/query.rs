//! Query strings, read as tolerantly as clients write them: `?&limit=500`, a lone `?`, empty pairs.

use lockstep_api::Status;

/// The pairs of a query string, decoded, in order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads a query string. A pair that cannot be decoded is left out, as Go's server does it.
    pub(crate) fn parse(raw: &str) -> Self {
        let pairs = raw.split('&').filter(|pair| !pair.is_empty() && !pair.contains(';'));
        Self(
            pairs
                .filter_map(|pair| {
                    let (key, value) = pair.split_once('=').unwrap_or((pair, ""));
                    Some((decode(key, true)?, decode(value, true)?))
                })
                .collect(),
        )
    }

    /// The first value of `key`.
    pub(crate) fn first(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// The first value of `key`, or the empty string.
    pub(crate) fn text(&self, key: &str) -> &str {
        self.first(key).unwrap_or_default()
    }

    /// Every value of `key`.
    pub(crate) fn all<'a>(&'a self, key: &'a str) -> impl Iterator<Item = &'a str> {
        self.0.iter().filter(move |(k, _)| k == key).map(|(_, v)| v.as_str())
    }

    /// A flag: absent, `0` and `false` are false, everything else is true.
    pub(crate) fn flag(&self, key: &str) -> bool {
        self.optional_flag(key).unwrap_or_default()
    }

    /// A flag that may be absent.
    pub(crate) fn optional_flag(&self, key: &str) -> Option<bool> {
        self.first(key).map(|value| value != "0" && !value.eq_ignore_ascii_case("false"))
    }

    /// A whole number that may be absent.
    pub(crate) fn integer(&self, key: &str) -> Result<Option<i64>, Status> {
        self.first(key).map(parse_integer).transpose()
    }
}

fn parse_integer(text: &str) -> Result<i64, Status> {
    text.parse().map_err(|_| {
        // Go's words: clients and people search for them.
        let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        let why = if is_number { "value out of range" } else { "invalid syntax" };
        Status::bad_request(format!("strconv.ParseInt: parsing {text:?}: {why}"))
    })
}

/// Undoes percent-encoding; `None` for a broken escape or text that is not UTF-8.
pub(crate) fn decode(text: &str, plus_is_space: bool) -> Option<String> {
    if !text.contains(['%', '+']) {
        return Some(text.to_owned());
    }
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&first, tail)) = rest.split_first() {
        rest = tail;
        match first {
            b'%' => {
                let (high, low) = (hex(*tail.first()?)?, hex(*tail.get(1)?)?);
                bytes.push(high << 4 | low);
                rest = &tail[2..];
            }
            b'+' if plus_is_space => bytes.push(b' '),
            other => bytes.push(other),
        }
    }
    String::from_utf8(bytes).ok()
}

fn hex(digit: u8) -> Option<u8> {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn queries_are_read_tolerantly() {
        let cases = [
            ("", vec![]),
            ("&", vec![]),
            ("&limit=500", vec![("limit", "500")]),
            ("a=b&&c", vec![("a", "b"), ("c", "")]),
            ("labelSelector=a%3Db%2Cc+in+%28d%29", vec![("labelSelector", "a=b,c in (d)")]),
            ("a=%zz&b=1", vec![("b", "1")]),
            ("a=%f", vec![]),
            ("a=%ff", vec![]),
            ("=x", vec![("", "x")]),
            ("a=b=c", vec![("a", "b=c")]),
        ];
        for (raw, want) in cases {
            let want: Vec<_> =
                want.iter().map(|&(k, v): &(&str, &str)| (k.to_owned(), v.to_owned())).collect();
            assert_eq!(Query::parse(raw).0, want, "{raw}");
        }
    }

    #[test]
    fn flags_and_numbers_follow_go() {
        let query = Query::parse("a&b=false&c=0&d=FALSE&e=1&n=5&m=x&o=99999999999999999999");
        for (key, want) in
            [("a", true), ("b", false), ("c", false), ("d", false), ("e", true), ("z", false)]
        {
            assert_eq!(query.flag(key), want, "{key}");
        }
        assert_eq!(query.integer("n").unwrap(), Some(5));
        assert_eq!(query.integer("z").unwrap(), None);
        let error = query.integer("m").unwrap_err();
        assert_eq!(error.message, "strconv.ParseInt: parsing \"x\": invalid syntax");
        let error = query.integer("o").unwrap_err();
        assert!(error.message.ends_with("value out of range"));
    }
}
