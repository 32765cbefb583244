//! One hosts file per namespace, rewritten in place because containers have it mounted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::fs::{self, File, OpenOptions};
use std::io;
use std::net::Ipv4Addr;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

use super::PodName;

const DOMAIN: &str = "svc.cluster.local";

/// All names, and the files they are written to.
pub(super) struct Hosts {
    dir: PathBuf,
    /// What every file starts with.
    head: String,
    /// In the order they came: a new one is appended, and what readers see before it does not move.
    entries: BTreeMap<u64, Entry>,
    next: u64,
    pods: BTreeMap<String, u64>,
    services: BTreeMap<(String, String), Vec<(Ipv4Addr, u64)>>,
    files: BTreeMap<String, NamespaceFile>,
}

struct Entry {
    address: Ipv4Addr,
    namespace: String,
    /// `pod.subdomain` or the name of a service: what other namespaces can qualify.
    local: Option<String>,
    /// The bare name of a pod, for its own namespace.
    bare: Option<String>,
}

struct NamespaceFile {
    file: File,
    path: PathBuf,
    written: String,
    is_stale: bool,
}

impl Hosts {
    /// Hosts files in `dir`. `machine` is the machine's own, whose entries stay valid.
    pub(super) fn new(dir: PathBuf, machine: &str) -> Self {
        Self {
            dir,
            head: head(machine),
            entries: BTreeMap::new(),
            next: 0,
            pods: BTreeMap::new(),
            services: BTreeMap::new(),
            files: BTreeMap::new(),
        }
    }

    pub(super) fn set_pod(&mut self, uid: &str, name: &PodName, address: Ipv4Addr) {
        let local = name.subdomain.as_ref().map(|domain| format!("{}.{domain}", name.hostname));
        let bare = Some(name.hostname.clone());
        let entry = Entry { address, namespace: name.namespace.clone(), local, bare };
        let is_same = |old: &Entry| {
            (&old.namespace, &old.local, &old.bare) == (&entry.namespace, &entry.local, &entry.bare)
        };
        // A pod that takes the place of another also takes its name.
        let replaced: Vec<u64> = self
            .pods
            .iter()
            .filter(|(other, number)| {
                other.as_str() == uid || self.entries.get(number).is_some_and(is_same)
            })
            .map(|(_, number)| *number)
            .collect();
        if let [only] = replaced[..] {
            let is_unchanged = |old: &Entry| is_same(old) && old.address == address;
            if self.pods.contains_key(uid) && self.entries.get(&only).is_some_and(is_unchanged) {
                return;
            }
        }
        for number in replaced {
            self.entries.remove(&number);
            self.pods.retain(|_, kept| *kept != number);
        }
        let number = self.add(entry);
        self.pods.insert(uid.to_owned(), number);
    }

    /// Returns whether anything changed.
    pub(super) fn remove_pod(&mut self, uid: &str) -> bool {
        let Some(number) = self.pods.remove(uid) else { return false };
        self.entries.remove(&number);
        self.mark_stale();
        true
    }

    /// Returns whether anything changed.
    pub(super) fn set_service(
        &mut self,
        namespace: &str,
        name: &str,
        addresses: &[Ipv4Addr],
    ) -> bool {
        let key = (namespace.to_owned(), name.to_owned());
        let old = self.services.remove(&key).unwrap_or_default();
        let wanted: BTreeSet<_> = addresses.iter().copied().collect();
        let (mut kept, gone): (Vec<_>, Vec<_>) =
            old.into_iter().partition(|(address, _)| wanted.contains(address));
        let has: BTreeSet<_> = kept.iter().map(|(address, _)| *address).collect();
        let mut has_changed = !gone.is_empty();
        for (_, number) in gone {
            self.entries.remove(&number);
        }
        for address in wanted.difference(&has) {
            let local = Some(name.to_owned());
            let entry =
                Entry { address: *address, namespace: namespace.to_owned(), local, bare: None };
            kept.push((*address, self.add(entry)));
            has_changed = true;
        }
        if !kept.is_empty() {
            self.services.insert(key, kept);
        }
        if has_changed {
            self.mark_stale();
        }
        has_changed
    }

    /// The file of a namespace, up to date.
    pub(super) fn file(&mut self, namespace: &str) -> io::Result<PathBuf> {
        if !self.files.contains_key(namespace) {
            crate::node::runtime::make_private_dir(&self.dir)?;
            let path = self.dir.join(namespace);
            let file = OpenOptions::new().write(true).create(true).truncate(false).open(&path)?;
            // Containers may run as other users.
            fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o644))?;
            file.set_len(0)?;
            let file = NamespaceFile { file, path, written: String::new(), is_stale: true };
            self.files.insert(namespace.to_owned(), file);
        }
        self.write(namespace)?;
        Ok(self.files[namespace].path.clone())
    }

    /// Writes all files that are out of date.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        let namespaces: Vec<_> = self.files.keys().cloned().collect();
        namespaces.iter().try_for_each(|namespace| self.write(namespace))
    }

    /// All names a pod of `namespace` can use.
    pub(super) fn names(&self, namespace: &str) -> BTreeMap<String, Ipv4Addr> {
        let names = |entry: &Entry| {
            let address = entry.address;
            entry.names(namespace).into_iter().map(move |name| (name, address)).collect::<Vec<_>>()
        };
        self.entries.values().flat_map(names).collect()
    }

    fn add(&mut self, entry: Entry) -> u64 {
        self.next += 1;
        self.entries.insert(self.next, entry);
        self.mark_stale();
        self.next
    }

    fn mark_stale(&mut self) {
        for file in self.files.values_mut() {
            file.is_stale = true;
        }
    }

    fn write(&mut self, namespace: &str) -> io::Result<()> {
        let Some(file) = self.files.get_mut(namespace).filter(|file| file.is_stale) else {
            return Ok(());
        };
        let mut text = self.head.clone();
        for entry in self.entries.values() {
            let names = entry.names(namespace);
            if !names.is_empty() {
                writeln!(text, "{} {}", entry.address, names.join(" "))
                    .expect("a String takes anything");
            }
        }
        // Readers hold the file open; what stays the same is not touched under them.
        let same = common_prefix(&file.written, &text);
        file.file.write_all_at(&text.as_bytes()[same..], same as u64)?;
        file.file.set_len(text.len() as u64)?;
        file.written = text;
        file.is_stale = false;
        Ok(())
    }
}

impl Entry {
    /// The names by which a pod of `namespace` can call this.
    fn names(&self, namespace: &str) -> Vec<String> {
        let is_own = self.namespace == namespace;
        let mut names = Vec::new();
        if let Some(local) = &self.local {
            let of = &self.namespace;
            names.push(format!("{local}.{of}.{DOMAIN}"));
            names.push(format!("{local}.{of}.svc"));
            names.push(format!("{local}.{of}"));
            names.extend(is_own.then(|| local.clone()));
        }
        names.extend(self.bare.clone().filter(|_| is_own));
        names
    }
}

/// The usual loopback names and the machine's own entries.
fn head(machine: &str) -> String {
    let mut head = String::from(
        "# Written by lockstep, and rewritten as pods come and go.\n\
         127.0.0.1 localhost\n\
         ::1 localhost ip6-localhost ip6-loopback\n",
    );
    for line in machine.lines() {
        let entry = line.split('#').next().unwrap_or_default().trim();
        let mut words = entry.split_whitespace();
        let is_loopback = words.next().is_some_and(|first| matches!(first, "127.0.0.1" | "::1"));
        let other_names = words.any(|name| !name.contains("localhost") && name != "ip6-loopback");
        if !entry.is_empty() && (!is_loopback || other_names) {
            head.push_str(entry);
            head.push('\n');
        }
    }
    head
}

fn common_prefix(a: &str, b: &str) -> usize {
    a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count()
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;

    use super::*;

    fn pod(namespace: &str, hostname: &str, subdomain: Option<&str>) -> PodName {
        PodName {
            namespace: namespace.to_owned(),
            hostname: hostname.to_owned(),
            subdomain: subdomain.map(str::to_owned),
        }
    }

    fn ip(last: u8) -> Ipv4Addr {
        Ipv4Addr::new(127, 64, 0, last)
    }

    #[test]
    fn names_follow_pods_and_services_in_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let machine = "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 box # mine\n\n# no\n";
        let mut hosts = Hosts::new(dir.path().join("hosts"), machine);
        let path = hosts.file("ns").unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        hosts.set_pod("a", &pod("ns", "gang-0", Some("gang")), ip(2));
        hosts.set_pod("b", &pod("ns", "alone", None), ip(3));
        hosts.set_pod("c", &pod("other", "far", Some("gang")), ip(4));
        assert!(hosts.set_service("ns", "web", &[ip(2), ip(3)]));
        assert!(!hosts.set_service("ns", "web", &[ip(3), ip(2)]));
        hosts.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        let lines: Vec<_> = text.lines().skip(3).collect();
        let want = [
            "127.0.1.1 box",
            "127.64.0.2 gang-0.gang.ns.svc.cluster.local gang-0.gang.ns.svc gang-0.gang.ns \
             gang-0.gang gang-0",
            "127.64.0.3 alone",
            "127.64.0.4 far.gang.other.svc.cluster.local far.gang.other.svc far.gang.other",
            "127.64.0.2 web.ns.svc.cluster.local web.ns.svc web.ns web",
            "127.64.0.3 web.ns.svc.cluster.local web.ns.svc web.ns web",
        ];
        assert_eq!(lines, want);
        hosts.set_pod("d", &pod("ns", "gang-0", Some("gang")), ip(9));
        assert!(hosts.remove_pod("b"));
        assert!(!hosts.remove_pod("a"), "its name went to another pod");
        assert!(hosts.set_service("ns", "web", &[]));
        hosts.flush().unwrap();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(text.lines().skip(4).count(), 2, "{text}");
        assert!(text.contains("127.64.0.9 gang-0.gang.ns.svc"));
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
        assert_eq!(hosts.names("ns").get("gang-0"), Some(&ip(9)));
    }
}
