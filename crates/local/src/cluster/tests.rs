use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use lockstep_api::{Resource, selector::FieldSelector, strategy::Json};
use lockstep_store::{
    Change, Expect, Limits, Op, Record, Selectors, Write,
    rest::{Catalog, DeleteOptions},
    watch::{EventType, Filter, WatchStart},
};
use serde_json::json;

use super::{Cluster, ListOptions, Options, QueueingPolicy, WriteOptions};
use crate::journal::{Journal, JournalError, Loaded};

fn cluster() -> Cluster {
    let registry = lockstep_api::builtin::registry();
    Cluster::open(Options {
        registry,
        data_dir: None,
        limits: Limits::default(),
        queueing: QueueingPolicy::default(),
    })
    .unwrap()
}

fn resource(cluster: &Cluster, plural: &str) -> Arc<Resource> {
    Arc::clone(cluster.catalog().registry().get("", "v1", plural).unwrap())
}

fn object(value: serde_json::Value) -> Json {
    value.as_object().unwrap().clone()
}

async fn with_namespace(cluster: &Cluster) {
    let namespaces = resource(cluster, "namespaces");
    let namespace = object(json!({"metadata": {"name": "default"}}));
    cluster.create(&namespaces, "", namespace, &WriteOptions::default()).await.unwrap();
}

#[tokio::test]
async fn what_is_written_can_be_read_listed_and_watched() {
    let cluster = cluster();
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let options = WriteOptions::default();
    let filter = Filter::new(&maps, None, Selectors::default());
    let mut watch = cluster.watch(filter.clone(), WatchStart::Now).await.unwrap();

    let map = object(json!({"metadata": {"name": "a"}, "data": {"k": "v"}}));
    let created = cluster.create(&maps, "default", map, &options).await.unwrap();
    assert!(created.is_created);
    let mut changed = created.object.json();
    changed.insert("data".to_owned(), json!({"k": "w"}));
    let updated =
        cluster.update(&maps, None, ("default", "a"), changed.clone(), &options).await.unwrap();
    assert!(updated.object.revision() > created.object.revision());
    let stale = cluster.update(&maps, None, ("default", "a"), changed, &options).await.unwrap_err();
    assert_eq!(stale.code, 409);
    let page = cluster.list(&filter, &ListOptions::default()).await.unwrap();
    assert_eq!(page.items.len(), 1);
    let gone =
        cluster.delete(&maps, ("default", "a"), &DeleteOptions::default(), &options).await.unwrap();
    assert!(gone.is_gone);
    let mut kinds = Vec::new();
    while kinds.len() < 3 {
        kinds.extend(watch.next().await.unwrap().into_iter().map(|notice| notice.kind));
    }
    assert_eq!(kinds, [EventType::Added, EventType::Modified, EventType::Deleted]);
}

fn durable(dir: &std::path::Path) -> Cluster {
    let registry = lockstep_api::builtin::registry();
    let data_dir = Some(dir.to_owned());
    Cluster::open(Options {
        registry,
        data_dir,
        limits: Limits::default(),
        queueing: QueueingPolicy::default(),
    })
    .unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acknowledged_writes_are_in_what_a_crash_leaves() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = durable(dir.path());
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let writers = (0..8).map(|writer| {
        let (cluster, maps) = (cluster.clone(), Arc::clone(&maps));
        tokio::spawn(async move {
            for at in 0..25 {
                let map = object(json!({"metadata": {"name": format!("m-{writer}-{at}")}}));
                cluster.create(&maps, "default", map, &WriteOptions::default()).await.unwrap();
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let seen = cluster.snapshot().revision();
    // The files as they are now, without a shutdown, are what a crash would leave.
    let crashed = tempfile::tempdir().unwrap();
    std::fs::copy(dir.path().join("state.redb"), crashed.path().join("state.redb")).unwrap();
    let recovered = durable(crashed.path());
    assert_eq!(recovered.uid(), cluster.uid());
    let filter = Filter::new(&maps, None, Selectors::default());
    let page = recovered.list(&filter, &ListOptions::default()).await.unwrap();
    assert_eq!(page.items.len(), 200);
    assert!(page.revision >= seen);
    let old = cluster.snapshot();
    for object in &page.items {
        let same = old.get(&maps.table, &object.key()).unwrap();
        assert_eq!(same.body, object.body);
    }
    let expired = recovered.watch(filter, WatchStart::After(seen - 1)).await.map(drop).unwrap_err();
    assert_eq!(expired.code, 410);
}

#[tokio::test]
async fn a_clean_stop_keeps_the_revision() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = durable(dir.path());
    with_namespace(&cluster).await;
    let revision = cluster.snapshot().revision();
    drop(cluster);
    assert_eq!(durable(dir.path()).snapshot().revision(), revision);
}

#[tokio::test]
async fn a_full_disk_fails_writes_and_leaves_reads_alone() {
    let dir = tempfile::tempdir().unwrap();
    let (journal, is_full) = crate::journal::disk::tests::flaky(dir.path());
    let registry = lockstep_api::builtin::registry();
    let journal: Box<dyn Journal> = Box::new(journal);
    let cluster =
        Cluster::with_journal(Catalog::new(registry), Limits::default(), Some(journal)).unwrap();
    with_namespace(&cluster).await;
    let before = cluster.snapshot().revision();
    let maps = resource(&cluster, "configmaps");
    let map = || object(json!({"metadata": {"name": "a"}}));
    is_full.store(true, Ordering::SeqCst);
    let options = WriteOptions::default();
    let status = cluster.create(&maps, "default", map(), &options).await.unwrap_err();
    assert_eq!(status.code, 500);
    assert!(status.message.contains("No space left on device"), "{}", status.message);
    assert!(cluster.read_only_reason().is_some());
    assert_eq!(cluster.get(&maps, "default", "a").unwrap_err().code, 404);
    is_full.store(false, Ordering::SeqCst);
    let deadline = std::time::Instant::now() + Duration::from_secs(10);
    let written = loop {
        match cluster.create(&maps, "default", map(), &options).await {
            Ok(written) => break written,
            Err(status) => assert!(std::time::Instant::now() < deadline, "{status}"),
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    };
    assert!(written.object.revision() > before + 1, "a lost revision came back");
    assert!(cluster.read_only_reason().is_none());
}

#[tokio::test]
async fn what_nobody_owns_goes_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    for cluster in [cluster(), durable(dir.path())] {
        with_namespace(&cluster).await;
        let maps = resource(&cluster, "configmaps");
        let options = WriteOptions::default();
        let owner = object(json!({"metadata": {"name": "owner"}}));
        let owner = cluster.create(&maps, "default", owner, &options).await.unwrap().object;
        let reference = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "name": "owner", "uid": &*owner.meta.uid,
        });
        for at in 0..200 {
            let name = format!("dependent-{at}");
            let dependent =
                object(json!({"metadata": {"name": name, "ownerReferences": [reference]}}));
            cluster.create(&maps, "default", dependent, &options).await.unwrap();
        }
        cluster
            .delete(&maps, ("default", "owner"), &DeleteOptions::default(), &options)
            .await
            .unwrap();
        let patience = std::time::Instant::now() + Duration::from_secs(10);
        while cluster.snapshot().len(&maps.table) > 0 {
            assert!(std::time::Instant::now() < patience, "dependents are still there");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }
}

/// What a journal does with the deletions in a commit.
#[derive(Clone, Copy)]
enum Deletions {
    Refuse,
    Panic,
}

/// A journal that keeps nothing and cannot stand deletions.
struct Squeamish {
    deletions: Deletions,
    refused: Arc<AtomicUsize>,
}

impl Journal for Squeamish {
    fn load(&mut self) -> Result<Loaded, JournalError> {
        Ok(Loaded::default())
    }

    fn commit(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if records.iter().all(|record| record.body.is_some() || record.revision == 0) {
            return Ok(());
        }
        self.refused.fetch_add(1, Ordering::SeqCst);
        match self.deletions {
            Deletions::Refuse => {
                Err(JournalError::Disk { path: "journal".into(), why: "no".to_owned() })
            }
            Deletions::Panic => panic!("a bug in the journal"),
        }
    }
}

fn squeamish(deletions: Deletions) -> (Cluster, Arc<AtomicUsize>) {
    let refused = Arc::new(AtomicUsize::new(0));
    let journal = Squeamish { deletions, refused: Arc::clone(&refused) };
    let registry = lockstep_api::builtin::registry();
    let cluster =
        Cluster::with_journal(Catalog::new(registry), Limits::default(), Some(Box::new(journal)));
    (cluster.unwrap(), refused)
}

#[tokio::test]
async fn cleaning_up_rests_while_writes_fail() {
    let (cluster, refused) = squeamish(Deletions::Refuse);
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let nobody = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "x", "uid": "x"});
    let orphan = object(json!({"metadata": {"name": "a", "ownerReferences": [nobody]}}));
    cluster.create(&maps, "default", orphan, &WriteOptions::default()).await.unwrap();
    tokio::time::sleep(Duration::from_millis(500)).await;
    assert_eq!(refused.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn a_failed_committer_is_no_silence() {
    let (cluster, _) = squeamish(Deletions::Panic);
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let options = WriteOptions::default();
    let map = |name: &str| object(json!({"metadata": {"name": name}}));
    cluster.create(&maps, "default", map("a"), &options).await.unwrap();
    let delete = DeleteOptions::default();
    let refused = cluster.delete(&maps, ("default", "a"), &delete, &options);
    let refused = tokio::time::timeout(Duration::from_secs(10), refused).await.unwrap();
    assert!(refused.is_err());
    let later = cluster.create(&maps, "default", map("b"), &options);
    let later = tokio::time::timeout(Duration::from_secs(10), later).await.unwrap().unwrap_err();
    assert!(later.message.contains("start again"), "{}", later.message);
    assert!(cluster.read_only_reason().is_some());
    cluster.get(&maps, "default", "a").expect("what was saved is still served");
}

#[tokio::test]
async fn a_change_that_comes_to_nothing_waits_for_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = durable(dir.path());
    let op = Op {
        table: "events".into(),
        key: "default/none".into(),
        expect: Expect::Any,
        write: Write::Delete(None),
    };
    let change = Change { checks: Vec::new(), ops: vec![op] };
    let outcome = cluster.0.core.commit(change);
    let outcome = tokio::time::timeout(Duration::from_secs(10), outcome).await.unwrap();
    assert!(outcome.is_ok_and(|objects| objects.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_watch_from_a_revision_never_reached_is_refused() {
    let cluster = cluster();
    with_namespace(&cluster).await;
    let filter = Filter::new(&resource(&cluster, "configmaps"), None, Selectors::default());
    let future = cluster.snapshot().revision() + 100;
    let refused = cluster.watch(filter, WatchStart::After(future)).await.map(drop).unwrap_err();
    assert_eq!(refused.code, 504);
    assert!(refused.message.contains("Too large resource version"), "{}", refused.message);
}

/// A journal that makes commits with deletions wait, and then refuses them.
struct Slow {
    is_waiting: Arc<AtomicUsize>,
    go: std::sync::mpsc::Receiver<()>,
}

impl Journal for Slow {
    fn load(&mut self) -> Result<Loaded, JournalError> {
        Ok(Loaded::default())
    }

    fn commit(&mut self, records: &[Record]) -> Result<(), JournalError> {
        if records.iter().all(|record| record.body.is_some() || record.revision == 0) {
            return Ok(());
        }
        self.is_waiting.store(1, Ordering::SeqCst);
        self.go.recv().ok();
        Err(JournalError::Disk { path: "journal".into(), why: "no".to_owned() })
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dry_run_shows_nothing_that_may_be_given_up() {
    let (sender, go) = std::sync::mpsc::channel();
    let is_waiting = Arc::new(AtomicUsize::new(0));
    let journal = Slow { is_waiting: Arc::clone(&is_waiting), go };
    let registry = lockstep_api::builtin::registry();
    let cluster =
        Cluster::with_journal(Catalog::new(registry), Limits::default(), Some(Box::new(journal)));
    let cluster = cluster.unwrap();
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let map = || object(json!({"metadata": {"name": "a"}}));
    let options = WriteOptions::default();
    cluster.create(&maps, "default", map(), &options).await.unwrap();
    let deletion = tokio::spawn({
        let (cluster, maps, options) = (cluster.clone(), Arc::clone(&maps), options.clone());
        async move {
            let delete = DeleteOptions::default();
            cluster.delete(&maps, ("default", "a"), &delete, &options).await
        }
    });
    while is_waiting.load(Ordering::SeqCst) == 0 {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let rehearsal = tokio::spawn(async move {
        let options = WriteOptions { dry_run: true, ..WriteOptions::default() };
        cluster.create(&maps, "default", map(), &options).await
    });
    tokio::time::sleep(Duration::from_millis(20)).await;
    sender.send(()).unwrap();
    deletion.await.unwrap().unwrap_err();
    assert_eq!(rehearsal.await.unwrap().unwrap_err().reason, "AlreadyExists");
}

#[tokio::test]
async fn lists_by_name_and_in_pages_keep_nothing_behind() {
    let cluster = cluster();
    with_namespace(&cluster).await;
    let maps = resource(&cluster, "configmaps");
    let options = WriteOptions::default();
    for name in ["a", "b", "c"] {
        let map = object(json!({"metadata": {"name": name}}));
        cluster.create(&maps, "default", map, &options).await.unwrap();
    }
    let named = |selector: &str, namespace| {
        let fields = FieldSelector::parse(selector, &*maps.strategy).unwrap();
        Filter::new(&maps, namespace, Selectors { fields, ..Selectors::default() })
    };
    let cases = [
        ("metadata.name=b", Some("default"), 1),
        ("metadata.name=b", None, 1),
        ("metadata.name=b,metadata.namespace=default", None, 1),
        ("metadata.name=b,metadata.namespace=other", Some("default"), 0),
        ("metadata.name=b,metadata.name!=b", Some("default"), 0),
        ("metadata.name=x", Some("default"), 0),
    ];
    for (selector, namespace, found) in cases {
        let page =
            cluster.list(&named(selector, namespace), &ListOptions::default()).await.unwrap();
        assert_eq!((page.items.len(), page.next), (found, None), "{selector}");
    }
    let filter = Filter::new(&maps, None, Selectors::default());
    let mut options = ListOptions { limit: 2, ..ListOptions::default() };
    let first = cluster.list(&filter, &options).await.unwrap();
    options.continue_token = first.next.map(|token| token.encode());
    assert!(cluster.0.core.retained().trim(), "the next page is to come");
    let last = cluster.list(&filter, &options).await.unwrap();
    assert_eq!((last.items.len(), last.next), (1, None));
    assert!(!cluster.0.core.retained().trim(), "nobody will ask again");
}

#[tokio::test]
async fn an_idle_table_lets_go_of_its_last_batch() {
    let registry = lockstep_api::builtin::registry();
    let limits = Limits { age_max: Duration::ZERO, ..Limits::default() };
    let cluster = Cluster::open(Options {
        registry,
        data_dir: None,
        limits,
        queueing: QueueingPolicy::default(),
    })
    .unwrap();
    let namespaces = resource(&cluster, "namespaces");
    let filter = Filter::new(&namespaces, None, Selectors::default());
    let mut late = cluster.watch(filter.clone(), WatchStart::Now).await.unwrap();
    with_namespace(&cluster).await;
    let shared = &cluster.0.core;
    {
        let mut core = shared.lock();
        core.store.trim(super::now() + jiff::SignedDuration::from_secs(1));
        shared.forget_batches(&core);
    }
    assert!(shared.tables.load()["namespaces"].borrow().events.is_empty());
    assert_eq!(late.next().await.unwrap_err().code, 410);
    let mut early = cluster.watch(filter, WatchStart::Now).await.unwrap();
    assert_eq!(early.next().await.unwrap().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_quota_holds_however_many_write_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let cluster = durable(dir.path());
    with_namespace(&cluster).await;
    let (maps, quotas) = (resource(&cluster, "configmaps"), resource(&cluster, "resourcequotas"));
    let options = WriteOptions::default();
    let quota = json!({"metadata": {"name": "q"}, "spec": {"hard": {"configmaps": "40"}}});
    cluster.create(&quotas, "default", object(quota), &options).await.unwrap();
    let used = || {
        let quota = cluster.get(&quotas, "default", "q").unwrap().json();
        quota["status"]["used"]["configmaps"].as_str().map(str::to_owned)
    };
    let until = async |wanted: &str| {
        for _ in 0..1000 {
            if used().as_deref() == Some(wanted) {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("{:?} instead of {wanted}", used());
    };
    until("0").await;
    // Each makes eight and takes one back: what is given back may be had by another.
    let writers = (0..8).map(|writer| {
        let (cluster, maps) = (cluster.clone(), Arc::clone(&maps));
        tokio::spawn(async move {
            let options = WriteOptions::default();
            for at in 0..8 {
                let map = object(json!({"metadata": {"name": format!("m-{writer}-{at}")}}));
                let made = cluster.create(&maps, "default", map, &options).await;
                assert!(made.as_ref().is_ok() || made.as_ref().is_err_and(|why| why.code == 403));
                if at == 4 && made.is_ok() {
                    let key = ("default", format!("m-{writer}-{at}"));
                    let delete = DeleteOptions::default();
                    cluster.delete(&maps, (key.0, &key.1), &delete, &options).await.unwrap();
                }
            }
        })
    });
    for writer in writers.collect::<Vec<_>>() {
        writer.await.unwrap();
    }
    let count = cluster.snapshot().range(&maps.table, Some("default"), None).count();
    assert!((32..=40).contains(&count), "{count} of 40");
    until(&count.to_string()).await;
}
