//! Nothing of a container is lost or forgotten when `lockstep` or a shim dies.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use lockstep_local::node::runtime::RecoveredState;

use super::support::{Node, eventually, options, script};

const DATA: &str = "LOCKSTEP_TEST_DATA";
const DIE: &str = "LOCKSTEP_TEST_DIE";
/// Started twice removed from the main process, so that only its shim can find it.
const STRAY: &str = "(setsid sh -c 'echo $$; exec sleep 985' &) ; sleep 0.1; ";

/// Another process of this test, which runs [`a_process_that_will_be_killed`].
fn other_process(data: &Path, die_with_parent: bool) -> Child {
    other("a_process_that_will_be_killed", data, die_with_parent)
}

/// Another process that runs one of the ignored tests here, as far as its first words.
fn other(test: &str, data: &Path, die_with_parent: bool) -> Child {
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", &format!("node::survival::{test}")])
        .args(["--ignored", "--nocapture"])
        .env(DATA, data)
        .env(DIE, if die_with_parent { "1" } else { "0" })
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    assert!(lines.map_while(Result::ok).any(|line| line.contains("containers run")));
    child
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by other tests, in a process of its own"]
async fn a_process_that_will_be_killed() {
    let Some(data) = std::env::var_os(DATA).map(PathBuf::from) else { return };
    let mut options = options();
    options.die_with_parent = std::env::var(DIE).as_deref() == Ok("1");
    let node = Node::at(data, options);
    let long = script("long", &format!("{STRAY} sleep 984; exit 5"));
    node.runtime.start(long).await.unwrap();
    node.runtime.start(script("short", "sleep 0.5; echo late; exit 6")).await.unwrap();
    eventually("the stray", || node.log(&script("long", "").id).trim().parse::<u32>().is_ok())
        .await;
    println!("containers run");
    std::future::pending::<()>().await;
}

fn is_alive(pid: &str) -> bool {
    // A zombie is no longer alive, it only has not been buried yet.
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_some_and(|(_, rest)| !rest.starts_with('Z'))
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_are_taken_over_after_a_crash() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut other = other_process(&data, false);
    other.kill().unwrap();
    other.wait().unwrap();
    tokio::time::sleep(std::time::Duration::from_millis(700)).await;
    let mut node = Node::at(data, options());
    let found = node.runtime.recover();
    let [long, short] = &found[..] else { panic!("{found:?}") };
    assert_eq!((&long.id, &short.id), (&script("long", "").id, &script("short", "").id));
    let RecoveredState::Exited(exited) = &short.state else { panic!("{short:?}") };
    assert_eq!(exited.code, 6);
    assert_eq!(node.log(&short.id), "late");
    let RecoveredState::Running(started) = &long.state else { panic!("{long:?}") };
    assert!(is_alive(&started.pid.to_string()));
    assert_eq!(node.runtime.recover().len(), 1, "what was taken over is not found again");
    let outcome = node
        .runtime
        .exec(&long.id, &["true".to_owned()], std::time::Duration::from_secs(5))
        .await
        .unwrap();
    assert_eq!(outcome.code, 0);
    let stray = node.log(&long.id).trim().to_owned();
    assert!(is_alive(&stray));
    node.runtime.terminate(&long.id, 15);
    assert_eq!(node.exited().await.code, 143);
    assert!(!is_alive(&stray));
    node.runtime.forget_pod(&long.id.pod_uid);
    assert_eq!(node.runtime.recover().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn containers_can_be_made_to_die_with_the_process() {
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let mut other = other_process(&data, true);
    let node = Node::at(data, options());
    let stray = node.log(&script("long", "").id).trim().to_owned();
    assert!(is_alive(&stray));
    other.kill().unwrap();
    other.wait().unwrap();
    eventually("the death of all", || !is_alive(&stray)).await;
    let exit_of = |name: &str| node.dirs.container(&script(name, "").id).join("exit.json");
    eventually("the records", || exit_of("long").exists() && exit_of("short").exists()).await;
    let found = node.runtime.recover();
    assert!(found.iter().all(|one| matches!(one.state, RecoveredState::Exited(_))), "{found:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_killed_shim_takes_its_container_with_it() {
    let mut node = Node::new();
    let launch = script("orphan", &format!("{STRAY} sleep 983"));
    let id = launch.id.clone();
    let started = node.runtime.start(launch).await.unwrap();
    eventually("the stray", || node.log(&id).trim().parse::<u32>().is_ok()).await;
    let stray = node.log(&id).trim().to_owned();
    let killed = Command::new("kill").args(["-9", &shim_of(started.pid)]).status().unwrap();
    assert!(killed.success());
    let exited = node.exited().await;
    assert_eq!((exited.code, exited.signal), (137, Some(9)));
    assert!(exited.message.contains("was killed"), "{exited:?}");
    eventually("the end of the rest", || !is_alive(&stray)).await;
    assert!(!is_alive(&started.pid.to_string()));
}

/// The id of the shim of a main process: its parent.
fn shim_of(pid: u32) -> String {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    stat.rsplit_once(") ").unwrap().1.split(' ').nth(1).unwrap().to_owned()
}

/// Whoever cleans up after a shim must not take a container that starts at that moment for part of
/// the old one: the kernel gives the number of its mount namespace to the next.
#[tokio::test(flavor = "multi_thread")]
async fn the_death_of_a_shim_leaves_other_containers_alone() {
    let node = Node::new();
    for round in 0..10 {
        let first = script(&format!("first{round}"), "sleep 980");
        let started = node.runtime.start(first).await.unwrap();
        let others = (0..8).map(|number| {
            let (runtime, name) = (node.runtime.clone(), format!("other{round}-{number}"));
            tokio::spawn(async move { runtime.start(script(&name, "exec sleep 979")).await })
        });
        let others: Vec<_> = others.collect();
        let killed = Command::new("kill").args(["-9", &shim_of(started.pid)]).status().unwrap();
        assert!(killed.success());
        for (number, other) in others.into_iter().enumerate() {
            let other = other.await.unwrap();
            assert!(other.is_ok_and(|it| is_alive(&it.pid.to_string())), "{round}: {number}");
        }
        eventually("the end of the first", || !is_alive(&started.pid.to_string())).await;
    }
    eventually("the others alone", || node.runtime.running().len() == 80).await;
    node.runtime.close().await;
}

/// The containers of `data` that have a process, each as often as it has a shim or a main process.
fn processes(data: &Path) -> Vec<String> {
    let marker = format!("DATA={}", data.display());
    let mut found = Vec::new();
    for entry in fs::read_dir("/proc").unwrap().flatten() {
        let environ = fs::read(entry.path().join("environ")).unwrap_or_default();
        let mut variables = environ.split(|byte| *byte == 0).map(String::from_utf8_lossy);
        if variables.clone().any(|variable| variable == marker) {
            let id =
                variables.find_map(|it| Some(it.strip_prefix("LOCKSTEP_CONTAINER=")?.to_owned()));
            found.push(id.unwrap_or_default());
        }
    }
    found.sort();
    found
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "run by other tests, in a process of its own"]
async fn a_process_that_is_killed_while_it_starts() {
    let Some(data) = std::env::var_os(DATA).map(PathBuf::from) else { return };
    let mut options = options();
    options.die_with_parent = false;
    let node = Node::at(data.clone(), options);
    println!("containers run");
    let starts = (0..40).map(|number| {
        let mut launch = script(&format!("many{number}"), "exec sleep 982");
        launch.env.push(("DATA".to_owned(), data.display().to_string()));
        node.runtime.start(launch)
    });
    let _ = futures::future::join_all(starts).await;
    std::future::pending::<()>().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn starts_cut_short_by_a_crash_are_found_or_never_happen() {
    let folder = tempfile::tempdir().unwrap();
    for (round, pause_ms) in [5, 15, 30, 60, 120].into_iter().enumerate() {
        let data = folder.path().join(round.to_string());
        let mut other = other("a_process_that_is_killed_while_it_starts", &data, false);
        tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
        other.kill().unwrap();
        other.wait().unwrap();
        let mut node = Node::at(data.clone(), options());
        let found = node.runtime.recover();
        let is_running = |one: &&lockstep_local::node::runtime::Recovered| {
            matches!(one.state, RecoveredState::Running(_))
        };
        let mut running: Vec<_> =
            found.iter().filter(is_running).map(|one| one.id.to_string()).collect();
        running.sort();
        // A shim that had not been given the word must not start its container later.
        tokio::time::sleep(std::time::Duration::from_millis(300)).await;
        // In the moment in which it becomes another program, a process shows no environment.
        let limit = std::time::Instant::now() + std::time::Duration::from_secs(10);
        while processes(&data) != running && std::time::Instant::now() < limit {
            tokio::time::sleep(std::time::Duration::from_millis(50)).await;
        }
        assert_eq!(processes(&data), running, "round {round}: {found:?}");
        // What never began can be started as if nothing had happened.
        let mut again = script("many39", "exit 7");
        if !running.contains(&again.id.to_string()) {
            again.id.attempt = u32::from(found.iter().any(|one| one.id == again.id));
            assert_eq!(node.run(again).await.code, 7);
        }
        node.runtime.close().await;
        assert_eq!(processes(&data), Vec::<String>::new());
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn closing_waits_for_starts_in_flight() {
    for pause_ms in [0, 5, 20, 50] {
        let folder = tempfile::tempdir().unwrap();
        let data = folder.path().join("data");
        let node = Node::at(data.clone(), options());
        let starts: Vec<_> = (0..20)
            .map(|number| {
                let mut launch = script(&format!("late{number}"), "exec sleep 981");
                launch.env.push(("DATA".to_owned(), data.display().to_string()));
                let runtime = node.runtime.clone();
                tokio::spawn(async move { runtime.start(launch).await })
            })
            .collect();
        tokio::time::sleep(std::time::Duration::from_millis(pause_ms)).await;
        node.runtime.close().await;
        assert_eq!(processes(&data), Vec::<String>::new());
        for start in starts {
            if let Err(error) = start.await.unwrap() {
                assert_eq!(error.to_string(), "the node is shutting down");
            }
        }
        assert_eq!(processes(&data), Vec::<String>::new(), "nothing starts any more");
    }
}
