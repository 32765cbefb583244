//! One hosts file, changed under its readers without any of them seeing half a line.
//!
//! Containers have the file mounted, so it keeps its inode and is never truncated. Every line is a
//! place of its own. To take a line out, its first byte becomes `#`; to put one in, its text is
//! written as a comment, into a place that is free or at the end, and then its first byte is put
//! right. One byte changes at once for whoever reads.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where a line begins.
pub(super) type Place = u64;

/// What makes a line one that is not there. Comments for people have a blank after it.
const FREE: u8 = b'#';

/// A hosts file.
#[derive(Debug)]
pub(super) struct HostsFile {
    file: File,
    path: PathBuf,
    /// How long each line is, its end included.
    lengths: BTreeMap<Place, usize>,
    /// Places without a line, by length.
    free: BTreeSet<(usize, Place)>,
    /// Lines of an earlier life that nobody has asked for yet.
    inherited: BTreeMap<String, Vec<Place>>,
    end: u64,
}

impl HostsFile {
    /// The file at `path` with the lines of `head`. Lines that an earlier process left in it stay
    /// until [`HostsFile::settle`].
    pub(super) fn open(path: &Path, head: &str) -> io::Result<Self> {
        if !path.exists() {
            create(path, head)?;
        }
        let file = OpenOptions::new().read(true).write(true).open(path)?;
        let text = fs::read(path)?;
        let mut hosts = Self {
            file,
            path: path.to_owned(),
            lengths: BTreeMap::new(),
            free: BTreeSet::new(),
            inherited: BTreeMap::new(),
            end: 0,
        };
        hosts.read(&text)?;
        for line in head.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
            hosts.put(line)?;
        }
        Ok(hosts)
    }

    /// Where it is.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Puts a line in, or finds the one an earlier process put in.
    pub(super) fn put(&mut self, line: &str) -> io::Result<Place> {
        if let Some(places) = self.inherited.get_mut(line)
            && let Some(place) = places.pop()
        {
            return Ok(place);
        }
        let length = line.len() + 1;
        let fitting = self.free.range((length, 0)..).next().copied();
        let (room, place) = fitting.unwrap_or((length, self.end));
        let mut bytes = line.as_bytes().to_vec();
        bytes.resize(room - 1, b' ');
        bytes.push(b'\n');
        let first = std::mem::replace(&mut bytes[0], FREE);
        self.file.write_all_at(&bytes, place)?;
        self.file.write_all_at(&[first], place)?;
        self.free.remove(&(room, place));
        self.lengths.insert(place, room);
        self.end = self.end.max(place + room as u64);
        Ok(place)
    }

    /// Takes a line out.
    pub(super) fn take(&mut self, place: Place) -> io::Result<()> {
        self.file.write_all_at(&[FREE], place)?;
        if let Some(length) = self.lengths.remove(&place) {
            self.free.insert((length, place));
        }
        Ok(())
    }

    /// Takes out lines of an earlier life that say something else of these names.
    pub(super) fn supersede(&mut self, names: &str) -> io::Result<()> {
        let says = |line: &str| line.split_once(' ').is_some_and(|(_, rest)| rest == names);
        let old: Vec<String> = self.inherited.keys().filter(|line| says(line)).cloned().collect();
        for line in old {
            for place in self.inherited.remove(&line).unwrap_or_default() {
                self.take(place)?;
            }
        }
        Ok(())
    }

    /// Takes out all lines of an earlier life that nobody asked for.
    pub(super) fn settle(&mut self) -> io::Result<()> {
        for place in std::mem::take(&mut self.inherited).into_values().flatten() {
            self.take(place)?;
        }
        Ok(())
    }

    fn read(&mut self, text: &[u8]) -> io::Result<()> {
        for line in text.split_inclusive(|byte| *byte == b'\n') {
            let place = self.end;
            self.end += line.len() as u64;
            if !line.ends_with(b"\n") {
                // Broken off by a full disk; it is a comment, and gets its end now.
                self.file.write_all_at(b"\n", self.end)?;
                self.end += 1;
                continue;
            }
            match line {
                [FREE, b' ' | b'\n', ..] | [b'\n'] => {}
                [FREE, ..] => drop(self.free.insert((line.len(), place))),
                _ => {
                    self.lengths.insert(place, line.len());
                    let line = String::from_utf8_lossy(line).trim_end().to_owned();
                    self.inherited.entry(line).or_default().push(place);
                }
            }
        }
        Ok(())
    }
}

/// Makes the file: it is there as a whole or not at all.
pub(in super::super) fn create(path: &Path, head: &str) -> io::Result<()> {
    if let Some(folder) = path.parent() {
        crate::node::runtime::make_private_dir(folder)?;
    }
    let new = path.with_added_extension("new");
    fs::write(&new, head)?;
    // Containers may run as other users.
    fs::set_permissions(&new, fs::Permissions::from_mode(0o644))?;
    fs::rename(new, path)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt;
    use std::sync::atomic::{AtomicBool, Ordering};

    use super::*;

    const HEAD: &str = "# For people.\n127.0.0.1 localhost\n";

    fn live(path: &Path) -> Vec<String> {
        let text = fs::read_to_string(path).unwrap();
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        lines.map(|line| line.trim_end().to_owned()).collect()
    }

    #[test]
    fn lines_come_and_go_in_the_same_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let mut hosts = HostsFile::open(&path, HEAD).unwrap();
        let inode = fs::metadata(&path).unwrap().ino();
        let long = hosts.put("127.64.0.2 a-long-name another").unwrap();
        hosts.put("127.64.0.3 b").unwrap();
        let length = fs::metadata(&path).unwrap().len();
        hosts.take(long).unwrap();
        assert_eq!(live(&path), ["127.0.0.1 localhost", "127.64.0.3 b"]);
        assert_eq!(hosts.put("127.64.0.4 c").unwrap(), long, "a free place is used again");
        assert_eq!(live(&path), ["127.0.0.1 localhost", "127.64.0.4 c", "127.64.0.3 b"]);
        assert_eq!(fs::metadata(&path).unwrap().len(), length);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }

    #[test]
    fn what_an_earlier_process_wrote_stays_until_all_is_known() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let mut hosts = HostsFile::open(&path, HEAD).unwrap();
        for line in ["127.64.0.2 a x", "127.64.0.3 b", "127.64.0.4 c"] {
            hosts.put(line).unwrap();
        }
        drop(hosts);
        let (inode, before) = (fs::metadata(&path).unwrap().ino(), live(&path));
        let mut hosts = HostsFile::open(&path, HEAD).unwrap();
        assert_eq!(live(&path), before);
        hosts.put("127.64.0.2 a x").unwrap();
        assert_eq!(live(&path), before, "it was there");
        hosts.put("127.64.0.9 b").unwrap();
        hosts.supersede("b").unwrap();
        hosts.settle().unwrap();
        assert_eq!(live(&path), ["127.0.0.1 localhost", "127.64.0.2 a x", "127.64.0.9 b"]);
        assert_eq!(fs::metadata(&path).unwrap().ino(), inode);
    }

    #[test]
    fn no_reader_ever_sees_a_torn_line() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("hosts");
        let mut hosts = HostsFile::open(&path, HEAD).unwrap();
        let is_over = AtomicBool::new(false);
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| {
                while !is_over.load(Ordering::Relaxed) {
                    let lines = live(&path);
                    assert_eq!(lines.first().map(String::as_str), Some("127.0.0.1 localhost"));
                    for line in &lines[1..] {
                        let (address, name) = line.split_once(' ').expect("an address and a name");
                        let number = name.strip_prefix("pod-").expect("a whole name");
                        let number = number.strip_suffix("-end").expect("its end too");
                        assert_eq!(address, format!("127.64.{number}.1"), "{line}");
                    }
                }
            });
            let mut places = std::collections::VecDeque::new();
            for index in 0..4000 {
                let number = index * 7 % 250;
                places
                    .push_back(hosts.put(&format!("127.64.{number}.1 pod-{number}-end")).unwrap());
                if places.len() > 60 {
                    hosts.take(places.pop_front().unwrap()).unwrap();
                }
            }
            is_over.store(true, Ordering::Relaxed);
            reader.join().unwrap();
        });
        assert!(fs::metadata(&path).unwrap().len() < 8_000, "free places are used again");
    }
}
