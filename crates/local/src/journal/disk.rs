//! The journal of a data directory: one redb file and a lock beside it.
//!
//! Each object is kept once, under its table and key. The same transaction that writes objects
//! writes the highest revision, so that no revision is ever given out twice, and the number of the
//! commit, so that none goes missing unnoticed.

mod lock;
mod witness;

use std::{
    collections::BTreeMap,
    fmt::Display,
    fs, io,
    os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _},
    panic,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

use bytes::Bytes;
use lockstep_store::{Record, Revision};
use redb::{
    Database, DatabaseError, Durability, ReadableDatabase, ReadableTable, StorageError,
    TableDefinition, WriteTransaction,
};

use super::{Journal, JournalError, Loaded, is_relaxed};
use crate::files;
use lock::DirLock;
use witness::Witness;

/// The name of the file in the data directory.
const FILE: &str = "state.redb";
const OBJECTS: TableDefinition<'_, (&str, &str), &[u8]> = TableDefinition::new("objects");
const META: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("meta");
const META_REVISION: &str = "revision";
const META_CLUSTER: &str = "cluster";
const META_COMMITS: &str = "commits";

/// How many revisions a commit sets aside for relaxed writes after it. They may be lost in a crash,
/// but their revisions were seen and must not come back.
const RESERVE: Revision = 4_096;
/// Everything lives in memory above; the engine needs no large cache of its own.
const CACHE_BYTES: usize = 16 << 20;
/// How long to wait after a failure before the file is opened again.
const REOPEN_AFTER: Duration = Duration::from_secs(1);
/// Compaction pays when the file has at least this many bytes and is mostly empty.
const COMPACT_MIN_BYTES: u64 = 32 << 20;

type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// A journal in a directory, which it holds against other processes.
pub struct DiskJournal {
    path: PathBuf,
    /// Opens the file again, which must be there.
    open: Opener,
    /// Gone after a failure, until it can be opened again.
    database: Option<Database>,
    failed: Option<(Instant, String)>,
    /// No revision up to this one will be given out after a crash.
    reserved: Revision,
    highest: Revision,
    /// How many commits were made safe since the file was made.
    commits: u64,
    witness: Witness,
    /// The engine has looked at every page of the file while it opened it.
    is_verified: Arc<AtomicBool>,
    /// The relaxed writes since the last commit that was made safe. They are gone when the file has
    /// to be opened again, but they were seen: they are written once more.
    loose: BTreeMap<(Arc<str>, Arc<str>), Record>,
    _lock: DirLock,
}

impl DiskJournal {
    /// Opens the journal of `dir`, making both if they are not there.
    ///
    /// # Errors
    /// When another process has it, when it is damaged, or when the disk says no.
    pub fn open(dir: &Path) -> Result<Self, JournalError> {
        let disk = |why: String| JournalError::Disk { path: dir.to_owned(), why };
        files::private_folder(dir).map_err(|error| disk(error.source.to_string()))?;
        let lock = DirLock::take(dir)?;
        let path = dir.join(FILE);
        // The engine takes an empty file for a new one. That is right after a first start that was
        // cut short; once keys lie beside it, a cluster has been served from here and is lost.
        let length = fs::metadata(&path).map_or(0, |file| file.len());
        let is_empty = length == 0 && path.exists();
        if is_empty && dir.join("pki").exists() {
            return Err(damaged(&path, "it is empty"));
        }
        make_private(&path).map_err(|error| disk(error.to_string()))?;
        let file = path.clone();
        let open: Opener =
            Box::new(move || Database::builder().set_cache_size(CACHE_BYTES).open(&file));
        let is_verified = Arc::new(AtomicBool::new(false));
        let verified = Arc::clone(&is_verified);
        let create = || {
            Database::builder()
                .set_cache_size(CACHE_BYTES)
                // Called while the file is repaired, which begins with a check of all its pages.
                .set_repair_callback(move |_| verified.store(true, Ordering::Relaxed))
                .create(&path)
        };
        let database = guarded(&path, || create().map_err(|error| opening(&path, &error)))?;
        let witness = Witness::open(dir).map_err(|error| disk(error.to_string()))?;
        if length == 0 {
            // Whoever moved a damaged file away begins anew; nothing was promised of this one.
            witness.promise(0);
        }
        keep_name(dir).map_err(|error| disk(error.to_string()))?;
        Ok(Self { is_verified, ..Self::with(path, database, open, lock, witness) })
    }

    fn with(
        path: PathBuf,
        database: Database,
        open: Opener,
        lock: DirLock,
        witness: Witness,
    ) -> Self {
        Self {
            path,
            commits: 0,
            witness,
            is_verified: Arc::default(),
            open,
            database: Some(database),
            failed: None,
            reserved: 0,
            highest: 0,
            loose: BTreeMap::new(),
            _lock: lock,
        }
    }

    fn read(&mut self) -> Result<Loaded, JournalError> {
        let path = self.path.clone();
        let database = self.database.as_mut().ok_or_else(|| damaged(&path, "it is closed"))?;
        if !self.is_verified.swap(true, Ordering::Relaxed) {
            // After an orderly end the engine trusts what it reads; disks are not to be trusted.
            database.check_integrity().map_err(|error| opening(&path, &error))?;
        }
        self.commits = count(database).map_err(|error| reading(&path, &error))?;
        let promised = self.witness.promised();
        if self.commits < promised {
            return Err(damaged(&path, missing(promised - self.commits)));
        }
        let mut loaded = read(database).map_err(|error| reading(&path, &error))?;
        let live: u64 = loaded.objects.iter().map(|(_, _, body)| body.len() as u64).sum();
        let size = fs::metadata(&path).map_or(0, |file| file.len());
        if size > COMPACT_MIN_BYTES && size / 4 > live {
            // Smaller is nicer, but nothing depends on it.
            let _kept_large = database.compact();
        }
        if loaded.cluster_uid.is_empty() {
            loaded.cluster_uid = uuid::Uuid::new_v4().to_string();
            let uid = loaded.cluster_uid.clone();
            self.transact(Durability::Immediate, |txn| {
                txn.open_table(META)?.insert(META_CLUSTER, uid.as_bytes())?;
                Ok(())
            })?;
        }
        self.reserved = loaded.highest;
        self.highest = loaded.highest;
        Ok(loaded)
    }

    /// One transaction. After a failure the file is closed: the engine must look at it anew.
    fn transact(
        &mut self,
        durability: Durability,
        write: impl FnOnce(&WriteTransaction) -> Result<(), redb::Error>,
    ) -> Result<(), JournalError> {
        let is_safe = matches!(durability, Durability::Immediate);
        let reopened = self.reopened();
        let commits = self.commits + u64::from(is_safe);
        let outcome = reopened.and_then(|()| {
            let database = self.database.as_ref().ok_or("it is closed")?;
            let run = || {
                let mut txn = database.begin_write()?;
                txn.set_durability(durability)?;
                write(&txn)?;
                if is_safe {
                    let count = commits.to_le_bytes();
                    txn.open_table(META)?.insert(META_COMMITS, count.as_slice())?;
                }
                txn.commit()?;
                Ok(())
            };
            panic::catch_unwind(panic::AssertUnwindSafe(run))
                .map_err(|_| "the engine failed".to_owned())?
                .map_err(|error: redb::Error| error.to_string())
        });
        match outcome {
            Ok(()) => {
                self.failed = None;
                self.commits = commits;
                if is_safe {
                    self.witness.promise(commits);
                }
                Ok(())
            }
            Err(why) => {
                // What failed may fail again when it is put away.
                let broken = self.database.take();
                let put_away = panic::AssertUnwindSafe(|| drop(broken));
                let _failed_again = panic::catch_unwind(put_away);
                let since = self.failed.take().map_or_else(Instant::now, |(since, _)| since);
                self.failed = Some((since, why.clone()));
                Err(JournalError::Disk { path: self.path.clone(), why })
            }
        }
    }

    /// The relaxed writes that are lost because the file must be opened again.
    fn lost(&self) -> Vec<Record> {
        match self.database {
            Some(_) => Vec::new(),
            None => self.loose.values().cloned().collect(),
        }
    }

    /// Opens the database again if it failed a while ago.
    fn reopened(&mut self) -> Result<(), String> {
        if self.database.is_none() {
            if let Some((since, why)) = &self.failed {
                if since.elapsed() < REOPEN_AFTER {
                    return Err(why.clone());
                }
                self.failed = None;
            }
            let opened =
                guarded(&self.path, || (self.open)().map_err(|error| opening(&self.path, &error)));
            let opened = opened.map_err(|error| error.to_string())?;
            let kept =
                guarded(&self.path, || count(&opened).map_err(|error| reading(&self.path, &error)));
            let kept = kept.map_err(|error| error.to_string())?;
            if kept < self.commits {
                return Err(damaged(&self.path, missing(self.commits - kept)).to_string());
            }
            // What was said to have failed may have reached the disk all the same.
            self.commits = kept;
            self.database = Some(opened);
        }
        Ok(())
    }
}

impl Journal for DiskJournal {
    fn load(&mut self) -> Result<Loaded, JournalError> {
        let path = self.path.clone();
        guarded(&path, || self.read())
    }

    fn commit(&mut self, records: &[Record]) -> Result<(), JournalError> {
        let Some(highest) = records.iter().map(|record| record.revision).max() else {
            return Ok(());
        };
        let highest = highest.max(self.highest);
        let is_loose = self.database.is_some()
            && highest <= self.reserved
            && records.iter().all(|record| is_relaxed(&record.table));
        if is_loose {
            self.transact(Durability::None, |txn| write_records(txn, records))?;
            let key = |record: &Record| (Arc::clone(&record.table), Arc::clone(&record.key));
            self.loose.extend(records.iter().map(|record| (key(record), record.clone())));
        } else {
            let reserved = highest + RESERVE;
            let lost = self.lost();
            self.transact(Durability::Immediate, |txn| {
                write_records(txn, &lost)?;
                write_records(txn, records)?;
                write_revision(txn, reserved)
            })?;
            self.reserved = reserved;
            self.loose.clear();
        }
        self.highest = highest;
        Ok(())
    }

    fn close(&mut self) {
        // Gives back the revisions set aside, and makes the last relaxed writes safe. If it fails,
        // it is as if we had crashed.
        let (highest, lost) = (self.highest, self.lost());
        self.failed = None;
        let _as_after_a_crash = self.transact(Durability::Immediate, |txn| {
            write_records(txn, &lost)?;
            write_revision(txn, highest)
        });
    }
}

/// Makes safe that the file is there at all: its name is in the folder, and the folder's in the one
/// above. What is in the file is of no use to whoever cannot find it after a loss of power.
fn keep_name(dir: &Path) -> io::Result<()> {
    fs::File::open(dir)?.sync_all()?;
    match dir.canonicalize()?.parent() {
        // A folder we may not read is somebody else's, and was there before.
        Some(above) => fs::File::open(above).map_or(Ok(()), |above| above.sync_all()),
        None => Ok(()),
    }
}

/// Makes the file if it is not there, and lets nobody but its owner read it.
fn make_private(path: &Path) -> io::Result<()> {
    let file =
        fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)?;
    if file.metadata()?.permissions().mode() & 0o077 != 0 {
        // Some file systems know no modes; what they hold is as open as whoever mounted them chose.
        if let Err(error) = file.set_permissions(fs::Permissions::from_mode(0o600)) {
            tracing::warn!(file = %path.display(), %error, "others may be able to read the state");
        }
    }
    Ok(())
}

fn write_records(txn: &WriteTransaction, records: &[Record]) -> Result<(), redb::Error> {
    let mut table = txn.open_table(OBJECTS)?;
    // In the order of keys, neighbours share pages; of several writes to one key the last counts.
    let mut order: Vec<&Record> = records.iter().collect();
    order.sort_by(|a, b| (&a.table, &a.key, b.revision).cmp(&(&b.table, &b.key, a.revision)));
    order.dedup_by(|later, first| later.table == first.table && later.key == first.key);
    for record in order {
        let key = (&*record.table, &*record.key);
        match &record.body {
            Some(body) => drop(table.insert(key, &**body)?),
            None => drop(table.remove(key)?),
        }
    }
    Ok(())
}

fn write_revision(txn: &WriteTransaction, revision: Revision) -> Result<(), redb::Error> {
    txn.open_table(META)?.insert(META_REVISION, revision.to_le_bytes().as_slice())?;
    Ok(())
}

/// How many commits the file says it holds.
fn count(database: &Database) -> Result<u64, redb::Error> {
    let meta = match database.begin_read()?.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(0),
        opened => opened?,
    };
    meta.get(META_COMMITS)?.map_or(Ok(0), |bytes| number(META_COMMITS, bytes.value()))
}

fn number(name: &str, bytes: &[u8]) -> Result<u64, redb::Error> {
    let bytes = bytes.try_into().map_err(|_| {
        redb::Error::Corrupted(format!("its record {name} is not eight bytes long"))
    })?;
    Ok(u64::from_le_bytes(bytes))
}

fn missing(commits: u64) -> String {
    format!("{commits} of the last commits that were promised are not in it")
}

fn read(database: &Database) -> Result<Loaded, redb::Error> {
    let mut loaded = Loaded::default();
    let txn = database.begin_read()?;
    let meta = match txn.open_table(META) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(loaded),
        opened => opened?,
    };
    if let Some(bytes) = meta.get(META_REVISION)? {
        loaded.highest = number(META_REVISION, bytes.value())?;
    }
    if let Some(uid) = meta.get(META_CLUSTER)? {
        loaded.cluster_uid = String::from_utf8_lossy(uid.value()).into_owned();
    }
    let objects = match txn.open_table(OBJECTS) {
        Err(redb::TableError::TableDoesNotExist(_)) => return Ok(loaded),
        opened => opened?,
    };
    for entry in objects.iter()? {
        let (key, body) = entry?;
        let (table, name) = key.value();
        let body = Bytes::copy_from_slice(body.value());
        loaded.objects.push((table.to_owned(), name.to_owned(), body));
    }
    Ok(loaded)
}

/// Runs what reads a file we may not have written. The engine panics on some damage.
fn guarded<T>(
    path: &Path,
    run: impl FnOnce() -> Result<T, JournalError>,
) -> Result<T, JournalError> {
    panic::catch_unwind(panic::AssertUnwindSafe(run))
        .unwrap_or_else(|_| Err(damaged(path, "its structure makes no sense")))
}

fn opening(path: &Path, error: &DatabaseError) -> JournalError {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            JournalError::InUse { path: path.to_owned(), holder: None }
        }
        DatabaseError::Storage(StorageError::Io(io))
            if io.kind() != io::ErrorKind::InvalidData
                && io.kind() != io::ErrorKind::UnexpectedEof =>
        {
            JournalError::Disk { path: path.to_owned(), why: io.to_string() }
        }
        other => damaged(path, other),
    }
}

fn reading(path: &Path, error: &redb::Error) -> JournalError {
    match error {
        redb::Error::Io(io) => JournalError::Disk { path: path.to_owned(), why: io.to_string() },
        other => damaged(path, other),
    }
}

fn damaged(path: &Path, why: impl Display) -> JournalError {
    JournalError::Damaged { path: path.to_owned(), why: why.to_string() }
}

#[cfg(test)]
pub(crate) mod tests;
