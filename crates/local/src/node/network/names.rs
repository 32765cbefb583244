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

    /// `text` with every name in it replaced by its address.
    pub fn replace(&self, text: &str) -> String {
        let mut replaced = String::with_capacity(text.len());
        let mut rest = text;
        while !rest.is_empty() {
            let word = rest.find(|c| !is_name_char(c)).unwrap_or(rest.len());
            let (name, after) = rest.split_at(word);
            // A sentence may end right after a name.
            let bare = name.trim_end_matches('.');
            match self.get(bare) {
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
            ("gang-0-0,gang-0-1", "127.64.0.2,gang-0-1"),
            ("my-gang-0-0.gang", "my-gang-0-0.gang"),
            ("gang-0-0.gang.", "127.64.0.2."),
            ("", ""),
            ("ü gang-0-0 ü", "ü 127.64.0.2 ü"),
        ];
        for (text, want) in cases {
            assert_eq!(names.replace(text), want, "{text}");
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
