//! Limits hold, by whatever this machine offers.

use std::fs;

use lockstep_local::node::runtime::{LimitedBy, Limits};

use super::support::{Node, options, script};

const HOG: &str = "tail /dev/zero";

fn limits() -> Limits {
    Limits { memory_bytes: Some(64 << 20), cpu_milli: Some(500), cpu_request_milli: Some(100) }
}

#[tokio::test(flavor = "multi_thread")]
async fn too_much_memory_ends_the_container() {
    let mut node = Node::new();
    let by = node.runtime.limited_by();
    if by == LimitedBy::Rlimit {
        println!("no cgroups here: whether a container is killed for its memory is not checked");
        return;
    }
    // The hog is a child: the container has to end although its main process did nothing wrong.
    let mut launch = script("hog", &format!("{HOG}; echo went on; sleep 60"));
    launch.limits = limits();
    let started = node.runtime.start(launch).await.unwrap();
    assert_eq!(started.limited_by, by);
    let exited = node.exited().await;
    assert_eq!((exited.code, exited.oom_killed), (137, true), "{exited:?}");
    let mut launch = script("modest", "echo fine");
    launch.limits = limits();
    let exited = node.run(launch).await;
    assert_eq!((exited.code, exited.oom_killed), (0, false));
    let left = fs::read_to_string("/proc/self/mounts").unwrap();
    for dir in left.lines().filter_map(|line| line.split(' ').nth(1)) {
        if dir.starts_with("/sys/fs/cgroup") {
            assert!(!has_cgroup(dir.as_ref(), "hog.main.0"), "{dir}");
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn version_2_kills_a_container_for_its_memory_as_one() {
    let mut node = Node::new();
    let by = node.runtime.limited_by();
    if by != LimitedBy::Cgroup2 {
        println!("skipped: the memory controller of cgroup v2 is not to be had here, but {by}");
        return;
    }
    let mut launch = script("hog2", &format!("{HOG} & sleep 60"));
    launch.limits = limits();
    let exited = node.run(launch).await;
    assert_eq!((exited.code, exited.signal, exited.oom_killed), (137, Some(9), true), "{exited:?}");
}

fn has_cgroup(dir: &std::path::Path, name: &str) -> bool {
    let entries = fs::read_dir(dir).into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
        .any(|entry| entry.file_name() == name || has_cgroup(&entry.path(), name))
}

#[tokio::test(flavor = "multi_thread")]
async fn without_cgroups_processes_are_limited_one_by_one() {
    let mut options = options();
    options.without_cgroups = true;
    let mut node = Node::with(options);
    let mut launch = script("hog", &format!("nice; {HOG} || echo refused"));
    launch.limits = limits();
    let id = launch.id.clone();
    let started = node.runtime.start(launch).await.unwrap();
    assert_eq!(started.limited_by, LimitedBy::Rlimit);
    assert_eq!(node.exited().await.code, 0);
    let log = node.log(&id);
    assert!(log.contains("refused"), "{log}");
    // Whoever runs this may be nice already.
    let own = rustix::process::getpriority_process(None).unwrap();
    assert!(log.starts_with(&(own + 10).min(19).to_string()), "{log}");
}
