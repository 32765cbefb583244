use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::Path,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use bytes::Bytes;
use lockstep_store::Record;
use redb::{Database, StorageBackend, backends::FileBackend};

use super::{DirLock, DiskJournal, FILE, RESERVE, Witness};
use crate::journal::{Journal, JournalError, Loaded};

fn record(revision: u64, table: &str, key: &str, body: Option<&str>) -> Record {
    let body = body.map(|body| Bytes::copy_from_slice(body.as_bytes()));
    Record { revision, table: table.into(), key: key.into(), body }
}

fn contents(loaded: &Loaded) -> Vec<(&str, &str)> {
    loaded
        .objects
        .iter()
        .map(|(_, key, body)| (key.as_str(), std::str::from_utf8(body).unwrap()))
        .collect()
}

fn reopened(dir: &Path) -> Loaded {
    DiskJournal::open(dir).unwrap().load().unwrap()
}

#[test]
fn what_was_committed_is_there_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let uid = {
        let mut journal = DiskJournal::open(dir.path()).unwrap();
        let uid = journal.load().unwrap().cluster_uid;
        journal
            .commit(&[
                record(1, "pods", "n/a", Some("one")),
                record(2, "pods", "n/a", Some("two")),
                record(3, "pods", "n/b", Some("gone")),
                record(4, "pods", "n/b", None),
            ])
            .unwrap();
        journal.close();
        uid
    };
    let loaded = reopened(dir.path());
    assert_eq!(contents(&loaded), [("n/a", "two")]);
    assert_eq!((loaded.highest, loaded.cluster_uid), (4, uid));
}

#[test]
fn revisions_of_lost_relaxed_writes_do_not_come_back() {
    let dir = tempfile::tempdir().unwrap();
    {
        let mut journal = DiskJournal::open(dir.path()).unwrap();
        journal.load().unwrap();
        journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
        journal.commit(&[record(2, "leases", "n/l", Some("perhaps lost"))]).unwrap();
        // No close: as after a crash.
    }
    assert!(reopened(dir.path()).highest >= 2);
    {
        let mut journal = DiskJournal::open(dir.path()).unwrap();
        let first = journal.load().unwrap().highest + 1;
        let writes = (first..first + RESERVE + 10)
            .map(|revision| record(revision, "leases", "n/l", Some("x")));
        for write in writes {
            journal.commit(std::slice::from_ref(&write)).unwrap();
            assert!(journal.reserved >= write.revision, "given out but not set aside");
        }
    }
}

#[test]
fn a_second_process_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let _first = DiskJournal::open(dir.path()).unwrap();
    let Err(error) = DiskJournal::open(dir.path()) else { panic!("it was let in") };
    let text = error.to_string();
    assert!(text.contains(&dir.path().display().to_string()), "{text}");
    assert!(text.contains(&format!("(pid {})", std::process::id())), "{text}");
}

#[test]
fn damage_is_refused_with_what_to_do_or_recovered_from() {
    let whole = tempfile::tempdir().unwrap();
    {
        let mut journal = DiskJournal::open(whole.path()).unwrap();
        journal.load().unwrap();
        for revision in 1..200 {
            let body = "x".repeat(2_000);
            let key = format!("n/{revision}");
            journal.commit(&[record(revision, "pods", &key, Some(&body))]).unwrap();
        }
    }
    let bytes = fs::read(whole.path().join(FILE)).unwrap();
    let mut refused = 0;
    let damages: Vec<Vec<u8>> = [0, 1, 100, 4_096, bytes.len() / 2, bytes.len() - 1]
        .into_iter()
        .map(|length| bytes[..length].to_vec())
        .chain([b"not a database at all".repeat(400), {
            let mut flipped = bytes.clone();
            flipped[64..320].fill(0xff);
            flipped
        }])
        .collect();
    for damaged in damages {
        let dir = tempfile::tempdir().unwrap();
        fs::write(dir.path().join(FILE), &damaged).unwrap();
        match DiskJournal::open(dir.path()).and_then(|mut journal| journal.load()) {
            Ok(loaded) => assert!(loaded.objects.is_empty() || loaded.objects.len() == 199),
            Err(error) => {
                refused += 1;
                let text = error.to_string();
                assert!(text.contains("restore it from a backup"), "{}: {text}", damaged.len());
            }
        }
    }
    assert!(refused > 2);
}

/// Copies what a crash would leave behind, or what an orderly end did.
fn copied(from: &Path, damage: impl FnOnce(&mut Vec<u8>)) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let mut bytes = fs::read(from.join(FILE)).unwrap();
    damage(&mut bytes);
    fs::write(dir.path().join(FILE), bytes).unwrap();
    fs::copy(from.join("state.commits"), dir.path().join("state.commits")).unwrap();
    dir
}

#[test]
fn whatever_page_is_damaged_nothing_promised_goes_missing_unnoticed() {
    let whole = tempfile::tempdir().unwrap();
    let mut journal = DiskJournal::open(whole.path()).unwrap();
    journal.load().unwrap();
    for revision in 1..12 {
        let key = format!("n/{}", revision % 7);
        let body = revision.to_string().repeat(3_000);
        journal.commit(&[record(revision, "pods", &key, Some(&body))]).unwrap();
    }
    let crashed = copied(whole.path(), |_| {});
    let want = reopened(copied(whole.path(), |_| {}).path());
    journal.close();
    drop(journal);
    for (from, how) in [(&crashed, "a crash"), (&whole, "an orderly end")] {
        let pages = fs::metadata(from.path().join(FILE)).unwrap().len() / 4_096;
        let mut refused = 0;
        for page in 0..usize::try_from(pages).unwrap() {
            let dir = copied(from.path(), |bytes| bytes[page * 4_096..][..4_096].fill(0x5a));
            match DiskJournal::open(dir.path()).and_then(|mut journal| journal.load()) {
                Ok(loaded) => {
                    assert_eq!(contents(&loaded), contents(&want), "page {page} after {how}");
                }
                Err(error) => {
                    refused += 1;
                    let text = error.to_string();
                    assert!(text.contains("restore it from a backup"), "page {page}: {text}");
                }
            }
        }
        assert!(refused > 10, "{refused} of {pages} pages after {how}");
    }
}

#[test]
fn a_count_of_commits_that_is_behind_or_makes_no_sense_accuses_nobody() {
    let whole = tempfile::tempdir().unwrap();
    let mut journal = DiskJournal::open(whole.path()).unwrap();
    journal.load().unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    drop(journal);
    let counts: [&[u8]; 4] = [b"", b"torn", &[0x5a; 16], &[0; 16]];
    for count in counts {
        let dir = copied(whole.path(), |_| {});
        fs::write(dir.path().join("state.commits"), count).unwrap();
        assert_eq!(contents(&reopened(dir.path())), [("n/a", "kept")]);
    }
}

#[test]
fn a_state_that_was_moved_away_is_begun_anew_and_an_older_one_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let older = tempfile::tempdir().unwrap();
    let mut journal = DiskJournal::open(dir.path()).unwrap();
    journal.load().unwrap();
    fs::copy(dir.path().join(FILE), older.path().join(FILE)).unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    drop(journal);
    fs::copy(older.path().join(FILE), dir.path().join(FILE)).unwrap();
    let error = DiskJournal::open(dir.path()).unwrap().load().unwrap_err().to_string();
    assert!(error.contains("1 of the last commits"), "{error}");
    fs::remove_file(dir.path().join(FILE)).unwrap();
    assert!(reopened(dir.path()).objects.is_empty());
    assert!(reopened(dir.path()).objects.is_empty(), "and stays what it is");
}

/// A file on a disk that can be full.
#[derive(Debug)]
struct Flaky {
    file: FileBackend,
    is_full: Arc<AtomicBool>,
}

impl Flaky {
    fn check(&self) -> std::io::Result<()> {
        if self.is_full.load(Ordering::SeqCst) {
            return Err(std::io::Error::from_raw_os_error(28));
        }
        Ok(())
    }
}

impl StorageBackend for Flaky {
    fn len(&self) -> std::io::Result<u64> {
        self.file.len()
    }

    fn read(&self, offset: u64, out: &mut [u8]) -> std::io::Result<()> {
        self.file.read(offset, out)
    }

    fn set_len(&self, len: u64) -> std::io::Result<()> {
        self.check()?;
        self.file.set_len(len)
    }

    fn sync_data(&self) -> std::io::Result<()> {
        self.check()?;
        self.file.sync_data()
    }

    fn write(&self, offset: u64, data: &[u8]) -> std::io::Result<()> {
        self.check()?;
        self.file.write(offset, data)
    }

    fn close(&self) -> std::io::Result<()> {
        self.file.close()
    }
}

/// A journal whose disk is full while the flag is set.
pub(crate) fn flaky(dir: &Path) -> (DiskJournal, Arc<AtomicBool>) {
    let is_full = Arc::new(AtomicBool::new(false));
    let (flag, path) = (Arc::clone(&is_full), dir.join(FILE));
    let file = path.clone();
    let open: super::Opener = Box::new(move || {
        let options = fs::OpenOptions::new()
            .read(true)
            .write(true)
            .create(true)
            .truncate(false)
            .open(&file)
            .map_err(redb::StorageError::Io)?;
        let backend = Flaky { file: FileBackend::new(options)?, is_full: Arc::clone(&flag) };
        Database::builder().create_with_backend(backend)
    });
    let lock = DirLock::take(dir).unwrap();
    let (database, witness) = (open().unwrap(), Witness::open(dir).unwrap());
    (DiskJournal::with(path, database, open, lock, witness), is_full)
}

#[test]
fn a_full_disk_fails_writes_until_there_is_space_again() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, is_full) = flaky(dir.path());
    journal.load().unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    is_full.store(true, Ordering::SeqCst);
    for revision in 2..4 {
        let error = journal.commit(&[record(revision, "pods", "n/b", Some("x"))]).unwrap_err();
        assert!(matches!(error, JournalError::Disk { .. }), "{error}");
        assert!(error.to_string().contains("No space left on device"), "{error}");
    }
    is_full.store(false, Ordering::SeqCst);
    std::thread::sleep(super::REOPEN_AFTER);
    journal.commit(&[record(4, "pods", "n/c", Some("kept too"))]).unwrap();
    drop(journal);
    let loaded = reopened(dir.path());
    assert!(contents(&loaded).contains(&("n/a", "kept")));
    assert!(contents(&loaded).contains(&("n/c", "kept too")));
}

#[test]
fn relaxed_writes_outlive_a_failed_commit() {
    let dir = tempfile::tempdir().unwrap();
    let (mut journal, is_full) = flaky(dir.path());
    journal.load().unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    journal.commit(&[record(2, "leases", "n/l", Some("old"))]).unwrap();
    journal.commit(&[record(3, "leases", "n/l", Some("new"))]).unwrap();
    is_full.store(true, Ordering::SeqCst);
    journal.commit(&[record(4, "pods", "n/b", Some("x"))]).unwrap_err();
    is_full.store(false, Ordering::SeqCst);
    journal.close();
    drop(journal);
    assert_eq!(contents(&reopened(dir.path())), [("n/l", "new"), ("n/a", "kept")]);
}

#[test]
fn a_commit_that_was_said_to_have_failed_and_is_there_has_its_number() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = DiskJournal::open(dir.path()).unwrap();
    journal.load().unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    // As if the last one had reached the disk, and the answer had been lost.
    let kept = journal.commits;
    journal.commits -= 1;
    journal.database = None;
    journal.commit(&[record(2, "pods", "n/b", Some("kept"))]).unwrap();
    assert_eq!(journal.commits, kept + 1);
}

#[test]
fn a_state_that_is_gone_is_not_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let mut journal = DiskJournal::open(dir.path()).unwrap();
    journal.load().unwrap();
    journal.commit(&[record(1, "pods", "n/a", Some("kept"))]).unwrap();
    journal.database = None;
    for damage in [fs::remove_file, |path| fs::write(path, b"")] as [fn(_) -> _; 2] {
        damage(dir.path().join(FILE)).unwrap();
        journal.failed = None;
        journal.commit(&[record(2, "pods", "n/b", Some("x"))]).unwrap_err();
    }
}

#[test]
fn nobody_else_may_read_the_state() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path().join("data");
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    drop(DiskJournal::open(&dir).unwrap());
    assert_eq!(mode(&dir), 0o700);
    fs::set_permissions(dir.join(FILE), fs::Permissions::from_mode(0o644)).unwrap();
    drop(DiskJournal::open(&dir).unwrap());
    for file in [FILE, "lock"] {
        assert_eq!(mode(&dir.join(file)), 0o600, "{file}");
    }
}
