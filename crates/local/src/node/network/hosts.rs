//! The names of pods and services, and the hosts files they are in: one per namespace, and one for
//! each pod that has names of its own.

mod file;

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};

pub(super) use self::file::create;
use self::file::{HostsFile, Place};
use super::PodName;

const DOMAIN: &str = "svc.cluster.local";

/// All names, and the files they are written to.
pub(super) struct Hosts {
    dir: PathBuf,
    /// What every file starts with.
    head: String,
    entries: BTreeMap<u64, Entry>,
    next: u64,
    pods: BTreeMap<String, (PodName, u64)>,
    /// Who has a name now.
    owners: BTreeMap<PodName, String>,
    services: BTreeMap<(String, String), BTreeMap<Ipv4Addr, u64>>,
    files: BTreeMap<Reader, Lines>,
    /// Whose names are all known: those of pods, those of services.
    known: (bool, bool),
}

/// Who sees a file.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Reader {
    /// All pods of a namespace.
    Namespace(String),
    /// One pod.
    Pod { namespace: String, uid: String },
}

impl Reader {
    fn namespace(&self) -> &str {
        match self {
            Self::Namespace(namespace) | Self::Pod { namespace, .. } => namespace,
        }
    }
}

#[derive(Clone)]
struct Entry {
    address: Ipv4Addr,
    namespace: String,
    /// `pod.subdomain` or the name of a service: what other namespaces can qualify.
    local: Option<String>,
    /// The bare name of a pod, for its own namespace.
    bare: Option<String>,
}

/// A file and which entry is where in it.
struct Lines {
    file: HostsFile,
    places: BTreeMap<u64, Place>,
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
            owners: BTreeMap::new(),
            services: BTreeMap::new(),
            files: BTreeMap::new(),
            known: (false, false),
        }
    }

    pub(super) fn set_pod(
        &mut self,
        uid: &str,
        name: &PodName,
        address: Ipv4Addr,
    ) -> io::Result<()> {
        if let Some((known, number)) = self.pods.get(uid)
            && known == name
            && self.entries.get(number).is_some_and(|entry| entry.address == address)
        {
            return Ok(());
        }
        let local = name.subdomain.as_ref().map(|domain| format!("{}.{domain}", name.hostname));
        let bare = Some(name.hostname.clone());
        let entry = Entry { address, namespace: name.namespace.clone(), local, bare };
        // A pod that takes the place of another also takes its name.
        let other = self.owners.insert(name.clone(), uid.to_owned());
        let replaced = [self.pods.remove(uid), other.and_then(|other| self.pods.remove(&other))];
        let number = self.number(entry);
        self.pods.insert(uid.to_owned(), (name.clone(), number));
        let gone: Vec<u64> = replaced.into_iter().flatten().map(|(_, number)| number).collect();
        if self.dir.join(&name.namespace).exists() {
            // Containers of an earlier process have it mounted.
            self.open_namespace(&name.namespace)?;
        }
        self.change(&[number], &gone)
    }

    pub(super) fn remove_pod(&mut self, uid: &str) -> io::Result<()> {
        let Some((name, number)) = self.pods.remove(uid) else { return Ok(()) };
        if self.owners.get(&name).is_some_and(|owner| owner == uid) {
            self.owners.remove(&name);
        }
        let changed = self.change(&[], &[number]);
        let namespace = name.namespace;
        self.files.remove(&Reader::Pod { namespace: namespace.clone(), uid: uid.to_owned() });
        if !self.has_pods(&namespace) {
            // Nobody has it mounted any more.
            self.files.remove(&Reader::Namespace(namespace.clone()));
            let _ = fs::remove_file(self.dir.join(namespace));
        }
        changed
    }

    /// Makes the name of a service stand for these addresses.
    pub(super) fn set_service(
        &mut self,
        namespace: &str,
        name: &str,
        addresses: &[Ipv4Addr],
    ) -> io::Result<()> {
        let key = (namespace.to_owned(), name.to_owned());
        let mut known = self.services.remove(&key).unwrap_or_default();
        let wanted: BTreeSet<_> = addresses.iter().copied().collect();
        let mut gone = Vec::new();
        known.retain(|address, number| {
            let stays = wanted.contains(address);
            gone.extend((!stays).then_some(*number));
            stays
        });
        let mut added = Vec::new();
        for address in wanted {
            if known.contains_key(&address) {
                continue;
            }
            let (namespace, local) = (namespace.to_owned(), Some(name.to_owned()));
            let number = self.number(Entry { address, namespace, local, bare: None });
            known.insert(address, number);
            added.push(number);
        }
        if !known.is_empty() {
            self.services.insert(key, known);
        }
        self.change(&added, &gone)
    }

    /// All pods of this node have been told: files of namespaces without any are leftovers.
    pub(super) fn pods_known(&mut self) -> io::Result<()> {
        self.known.0 = true;
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let is_used = entry.file_name().to_str().is_some_and(|name| self.has_pods(name));
            if !is_used {
                let _ = fs::remove_file(entry.path());
            }
        }
        self.settle()
    }

    /// All services have been told.
    pub(super) fn services_known(&mut self) -> io::Result<()> {
        self.known.1 = true;
        self.settle()
    }

    /// The file of a namespace, up to date.
    pub(super) fn file(&mut self, namespace: &str) -> io::Result<PathBuf> {
        self.open_namespace(namespace)?;
        let lines = &self.files[&Reader::Namespace(namespace.to_owned())];
        Ok(lines.file.path().to_owned())
    }

    /// The file of one pod, with lines of its own, up to date.
    pub(super) fn file_of(
        &mut self,
        uid: &str,
        namespace: &str,
        path: &Path,
        own: &str,
    ) -> io::Result<PathBuf> {
        let reader = Reader::Pod { namespace: namespace.to_owned(), uid: uid.to_owned() };
        let head = format!("{}{own}", self.head);
        self.open(reader, path, &head)?;
        Ok(path.to_owned())
    }

    /// All names a pod of `namespace` can use.
    pub(super) fn names(&self, namespace: &str) -> BTreeMap<String, Ipv4Addr> {
        let names = |entry: &Entry| {
            let address = entry.address;
            entry.names(namespace).into_iter().map(move |name| (name, address)).collect::<Vec<_>>()
        };
        self.entries.values().flat_map(names).collect()
    }

    fn has_pods(&self, namespace: &str) -> bool {
        let first =
            PodName { namespace: namespace.to_owned(), hostname: String::new(), subdomain: None };
        let next = self.owners.range(first..).next();
        next.is_some_and(|(name, _)| name.namespace == namespace)
    }

    fn number(&mut self, entry: Entry) -> u64 {
        self.next += 1;
        self.entries.insert(self.next, entry);
        self.next
    }

    fn open_namespace(&mut self, namespace: &str) -> io::Result<()> {
        let (path, head) = (self.dir.join(namespace), self.head.clone());
        self.open(Reader::Namespace(namespace.to_owned()), &path, &head)
    }

    fn open(&mut self, reader: Reader, path: &Path, head: &str) -> io::Result<()> {
        if self.files.contains_key(&reader) {
            return Ok(());
        }
        let mut lines = Lines { file: HostsFile::open(path, head)?, places: BTreeMap::new() };
        for (number, entry) in &self.entries {
            lines.put(*number, entry, reader.namespace())?;
        }
        if self.known == (true, true) {
            lines.file.settle()?;
        }
        self.files.insert(reader, lines);
        Ok(())
    }

    /// Writes what has changed. The new comes before the old goes, so that a name which moves is
    /// always somewhere.
    fn change(&mut self, added: &[u64], gone: &[u64]) -> io::Result<()> {
        let mut outcome = Ok(());
        for (reader, lines) in &mut self.files {
            for number in added {
                if let Some(entry) = self.entries.get(number) {
                    let put = lines.put(*number, entry, reader.namespace());
                    outcome = outcome.and(put);
                }
            }
            for place in gone.iter().filter_map(|number| lines.places.remove(number)) {
                let taken = lines.file.take(place);
                outcome = outcome.and(taken);
            }
        }
        for number in gone {
            self.entries.remove(number);
        }
        outcome
    }

    fn settle(&mut self) -> io::Result<()> {
        if self.known != (true, true) {
            return Ok(());
        }
        self.files.values_mut().try_for_each(|lines| lines.file.settle())
    }
}

impl Lines {
    fn put(&mut self, number: u64, entry: &Entry, namespace: &str) -> io::Result<()> {
        let names = entry.names(namespace).join(" ");
        if names.is_empty() || self.places.contains_key(&number) {
            return Ok(());
        }
        let place = self.file.put(&format!("{} {names}", entry.address))?;
        self.places.insert(number, place);
        // A service may have several addresses, a pod has one.
        if entry.bare.is_some() { self.file.supersede(&names) } else { Ok(()) }
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
        "# Written by lockstep, and changed as pods come and go.\n\
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

#[cfg(test)]
mod tests {
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

    /// The lines of a file that count, without the usual loopback ones.
    fn live(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#')).skip(2);
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn names_follow_pods_and_services_in_the_same_file() {
        let dir = tempfile::tempdir().unwrap();
        let machine = "127.0.0.1 localhost\n::1 localhost\n127.0.1.1 box # mine\n\n# no\n";
        let mut hosts = Hosts::new(dir.path().join("hosts"), machine);
        let path = hosts.file("ns").unwrap();
        hosts.set_pod("a", &pod("ns", "gang-0", Some("gang")), ip(2)).unwrap();
        hosts.set_pod("b", &pod("ns", "alone", None), ip(3)).unwrap();
        hosts.set_pod("c", &pod("other", "far", Some("gang")), ip(4)).unwrap();
        hosts.set_service("ns", "web", &[ip(2), ip(3)]).unwrap();
        hosts.set_service("ns", "web", &[ip(3), ip(2)]).unwrap();
        let want = [
            "127.0.1.1 box",
            "127.64.0.2 gang-0.gang.ns.svc.cluster.local gang-0.gang.ns.svc gang-0.gang.ns \
             gang-0.gang gang-0",
            "127.64.0.3 alone",
            "127.64.0.4 far.gang.other.svc.cluster.local far.gang.other.svc far.gang.other",
            "127.64.0.2 web.ns.svc.cluster.local web.ns.svc web.ns web",
            "127.64.0.3 web.ns.svc.cluster.local web.ns.svc web.ns web",
        ];
        assert_eq!(live(&path), want);
        hosts.set_pod("d", &pod("ns", "gang-0", Some("gang")), ip(9)).unwrap();
        hosts.remove_pod("b").unwrap();
        hosts.remove_pod("a").unwrap();
        hosts.set_service("ns", "web", &[]).unwrap();
        let lines = live(&path);
        assert_eq!(lines.len(), 3, "{lines:?}");
        assert!(lines.iter().any(|line| line.starts_with("127.64.0.9 gang-0.gang.ns.svc")));
        assert_eq!(hosts.names("ns").get("gang-0"), Some(&ip(9)), "its name went to another pod");
        assert_eq!(hosts.names("ns").get("alone"), None);
    }

    #[test]
    fn a_pod_may_have_lines_of_its_own() {
        let dir = tempfile::tempdir().unwrap();
        let mut hosts = Hosts::new(dir.path().join("hosts"), "");
        hosts.set_pod("a", &pod("ns", "a", None), ip(2)).unwrap();
        let own = "# Entries added by HostAliases.\n10.0.0.9\tdb\tdb.example\n";
        let path = hosts.file_of("a", "ns", &dir.path().join("pods/a/hosts"), own).unwrap();
        hosts.set_pod("b", &pod("ns", "b", None), ip(3)).unwrap();
        assert_eq!(live(&path), ["10.0.0.9\tdb\tdb.example", "127.64.0.2 a", "127.64.0.3 b"]);
    }

    #[test]
    fn files_survive_a_restart_and_go_with_their_namespace() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("hosts");
        let mut hosts = Hosts::new(folder.clone(), "");
        for namespace in ["one", "two"] {
            hosts.set_pod(namespace, &pod(namespace, "p", None), ip(2)).unwrap();
            hosts.file(namespace).unwrap();
        }
        hosts.set_service("one", "web", &[ip(7)]).unwrap();
        let before = live(&folder.join("one"));
        drop(hosts);
        let mut hosts = Hosts::new(folder.clone(), "");
        hosts.set_pod("one", &pod("one", "p", None), ip(2)).unwrap();
        hosts.set_pod("new", &pod("one", "q", None), ip(3)).unwrap();
        hosts.pods_known().unwrap();
        assert!(!folder.join("two").exists(), "its namespace has no pods any more");
        let after = live(&folder.join("one"));
        assert_eq!(after[..before.len()], before[..], "services are not known yet");
        hosts.services_known().unwrap();
        assert_eq!(live(&folder.join("one")), ["127.64.0.2 p", "127.64.0.3 q"]);
        hosts.remove_pod("one").unwrap();
        assert!(folder.join("one").exists());
        hosts.remove_pod("new").unwrap();
        assert!(!folder.join("one").exists());
    }
}
