//! Names replaced by addresses, for containers that cannot have their own hosts file.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;

/// Names and what they stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Names(BTreeMap<String, Ipv4Addr>);

impl Names {
    /// The address of `name`.
    pub fn get(&self, name: &str) -> Option<Ipv4Addr> {
        self.0.get(name).copied()
    }

    /// `text` with the names in it replaced by their addresses.
    ///
    /// A name with a dot is replaced wherever it stands. A bare one is so often just a word that it
    /// is replaced only where a host must be: after `//` or `@`, or before a port.
    pub fn replace(&self, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(word);
            // A sentence may end right after a name.
            let bare = name.trim_end_matches('.');
            let is_host = || bare.contains('.') || is_host_position(&replaced, after);
            match self.get(bare).filter(|_| is_host()) {
                Some(address) => {
                    replaced.push_str(&address.to_string());
                    replaced.push_str(&name[bare.len()..]);
                }
                None => replaced.push_str(name),
            }
            let other = after.find(is_name_char).unwrap_or(after.len());
            replaced.push_str(&after[..other]);
            rest = &after[other..];
        }
        replaced
    }

    /// The value of a variable, which may be a bare name if the variable's own name says so.
    pub fn replace_in_variable(&self, name: &str, value: &str) -> String {
        let takes_host = ["ADDR", "ADDRESS", "ENDPOINT", "HOST", "SERVER"]
            .iter()
            .any(|end| name.to_ascii_uppercase().ends_with(end));
        match self.get(value).filter(|_| takes_host) {
            Some(address) => address.to_string(),
            None => self.replace(value),
        }
    }
}

/// Whether what stands between `before` and `after` must be a host.
fn is_host_position(before: &str, after: &str) -> bool {
    let mut after = after.chars();
    let has_port = after.next() == Some(':') && after.next().is_some_and(|c| c.is_ascii_digit());
    has_port || before.ends_with("//") || before.ends_with('@')
}

/// Everything in `text` that could be a name.
pub(super) fn mentioned(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c| !is_name_char(c))
        .map(|word| word.trim_end_matches('.'))
        .filter(|word| !word.is_empty())
}

/// The host name of a member of the gang `subdomain` of `namespace`, if `name` is one.
pub(super) fn member<'a>(name: &'a str, subdomain: &str, namespace: &str) -> Option<&'a str> {
    let (hostname, rest) = name.split_once('.')?;
    let rest = rest.strip_prefix(subdomain)?;
    let is_known = |rest: &str| {
        let Some(rest) = rest.strip_prefix('.').and_then(|rest| rest.strip_prefix(namespace))
        else {
            return false;
        };
        matches!(rest, "" | ".svc" | ".svc.cluster.local")
    };
    (!hostname.is_empty() && (rest.is_empty() || is_known(rest))).then_some(hostname)
}

impl FromIterator<(String, Ipv4Addr)> for Names {
    fn from_iter<T: IntoIterator<Item = (String, Ipv4Addr)>>(names: T) -> Self {
        Self(names.into_iter().collect())
    }
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '-' | '.' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_names_are_replaced_and_nothing_else() {
        let names: Names = [
            ("gang-0-0.gang".to_owned(), Ipv4Addr::new(127, 64, 0, 2)),
            ("gang-0-0".to_owned(), Ipv4Addr::new(127, 64, 0, 2)),
        ]
        .into_iter()
        .collect();
        let cases = [
            ("gang-0-0.gang", "127.64.0.2"),
            ("tcp://gang-0-0.gang:29500/x", "tcp://127.64.0.2:29500/x"),
            ("gang-0-0.gang,gang-0-1", "127.64.0.2,gang-0-1"),
            ("gang-0-0:80", "127.64.0.2:80"),
            ("http://gang-0-0/x", "http://127.64.0.2/x"),
            ("me@gang-0-0", "me@127.64.0.2"),
            ("run gang-0-0", "run gang-0-0"),
            ("gang-0-0:x", "gang-0-0:x"),
            ("my-gang-0-0.gang", "my-gang-0-0.gang"),
            ("gang-0-0.gang.", "127.64.0.2."),
            ("", ""),
            ("ü gang-0-0.gang ü", "ü 127.64.0.2 ü"),
        ];
        for (text, want) in cases {
            assert_eq!(names.replace(text), want, "{text}");
        }
        let variables = [("MASTER_ADDR", "127.64.0.2"), ("HOSTNAME", "gang-0-0")];
        for (name, want) in variables {
            assert_eq!(names.replace_in_variable(name, "gang-0-0"), want, "{name}");
        }
    }

    #[test]
    fn members_of_a_gang_are_known_by_their_domain() {
        let cases = [
            ("gang-0.gang", Some("gang-0")),
            ("gang-0.gang.ns", Some("gang-0")),
            ("gang-0.gang.ns.svc", Some("gang-0")),
            ("gang-0.gang.ns.svc.cluster.local", Some("gang-0")),
            ("gang-0.gang.other", None),
            ("gang-0.gangster", None),
            ("gang", None),
            (".gang", None),
        ];
        for (name, want) in cases {
            assert_eq!(member(name, "gang", "ns"), want, "{name}");
        }
        let words: Vec<_> = mentioned("tcp://a.b:1,c.d. x").collect();
        assert_eq!(words, ["tcp", "a.b", "1", "c.d", "x"]);
    }
}
