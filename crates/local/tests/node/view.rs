//! Containers see their volumes, their names and nothing of the cluster's own files.

use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

use lockstep_local::node::network::{Network, PodName};
use lockstep_local::node::runtime::{Isolation, Launch, Mount, StartError};

use super::support::{Node, script};

fn mount(node: &Node, name: &str, target: &str, read_only: bool) -> Mount {
    let source = node.dirs.volumes("v").join(name);
    fs::create_dir_all(&source).unwrap();
    fs::write(source.join("file"), name).unwrap();
    Mount { volume: name.to_owned(), source, target: target.into(), read_only }
}

/// Whether containers have their own view here; says so if not.
fn has_view(node: &Node) -> bool {
    let (isolation, reason) = node.runtime.isolation();
    if isolation == Isolation::None {
        println!("without namespaces here ({reason:?}): the view of a container is not checked");
    }
    isolation != Isolation::None
}

#[test]
fn isolation_is_what_the_machine_allows() {
    let Ok(expected) = std::env::var("LOCKSTEP_TEST_ISOLATION") else { return };
    let node = Node::new();
    assert_eq!(format!("{:?}", node.runtime.isolation().0), expected);
}

async fn output(node: &mut Node, launch: Launch) -> String {
    let id = launch.id.clone();
    let exited = node.run(launch).await;
    let log = node.log(&id);
    assert_eq!(exited.code, 0, "{log}");
    log
}

#[tokio::test(flavor = "multi_thread")]
async fn volumes_are_at_their_paths_even_where_there_is_nothing() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    let targets =
        ["/data", "/checkpoints/deep/er", "/etc/app", "/data/inner", "/usr/local/x", "/opt"];
    let mut launch = script(
        "paths",
        "for dir in /data /checkpoints/deep/er /etc/app /data/inner /usr/local/x /opt; do \
           echo $dir $(cat $dir/file); done; \
         echo new > /data/new; ls -d /usr /etc/passwd /proc/self /tmp > /dev/null && echo same",
    );
    for (index, target) in targets.iter().enumerate() {
        launch.mounts.push(mount(&node, &format!("v{index}"), target, false));
    }
    let log = output(&mut node, launch).await;
    for (index, target) in targets.iter().enumerate() {
        assert!(log.contains(&format!("{target} v{index}")), "{target} in {log}");
    }
    assert!(log.ends_with("same"), "{log}");
    let written = fs::read_to_string(node.dirs.volumes("v").join("v0/new")).unwrap();
    assert_eq!(written, "new\n");
    for absent in ["/data", "/checkpoints", "/etc/app", "/usr/local/x"] {
        assert!(!Path::new(absent).exists(), "{absent} was made on the machine");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn read_only_volumes_cannot_be_written() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    let mut launch = script(
        "ro",
        "cat /ro/file; echo x > /ro/file || echo refused; echo y > /rw/file && echo ok",
    );
    launch.mounts.push(mount(&node, "keep", "/ro", true));
    launch.mounts.push(mount(&node, "change", "/rw", false));
    let log = output(&mut node, launch).await;
    assert!(["keep", "refused", "ok"].iter().all(|text| log.contains(text)), "{log}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_single_file_can_be_mounted() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    let mut launch = script("file", "cat /etc/passwd /nowhere/config.yaml");
    let mut over = mount(&node, "over", "/etc/passwd", false);
    over.source.push("file");
    let mut fresh = mount(&node, "fresh", "/nowhere/config.yaml", true);
    fresh.source.push("file");
    launch.mounts.extend([over, fresh]);
    assert_eq!(output(&mut node, launch).await, "overfresh");
}

#[tokio::test(flavor = "multi_thread")]
async fn impossible_places_are_failed_mounts() {
    let node = Node::new();
    if !has_view(&node) {
        return;
    }
    let cases = [("/etc/passwd", false), ("/etc/passwd/below", false), ("/etc", true)];
    for (index, (target, is_file)) in cases.into_iter().enumerate() {
        let mut launch = script(&format!("bad{index}"), "true");
        let mut volume = mount(&node, "vol", target, false);
        if is_file {
            volume.source.push("file");
        }
        launch.mounts.push(volume);
        let error = node.runtime.start(launch).await.unwrap_err();
        assert!(matches!(error, StartError::Mount { .. }), "{target}: {error}");
        let want = "MountVolume.SetUp failed for volume \"vol\" : cannot mount at";
        assert!(error.to_string().starts_with(want), "{error}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_data_directory_is_hidden() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    fs::create_dir_all(node.dirs.data()).unwrap();
    fs::write(node.dirs.data().join("token"), "secret").unwrap();
    let parent = node.dirs.data().parent().unwrap().to_owned();
    let data = node.dirs.data().display().to_string();
    let text =
        format!("cat {data}/token; cat /host/data/token; ls -A {data} /host/data | wc -l; true");
    let mut launch = script("hidden", &text);
    launch.mounts.push(Mount {
        volume: "host".into(),
        source: parent,
        target: "/host".into(),
        read_only: false,
    });
    let log = output(&mut node, launch).await;
    assert!(!log.contains("secret"), "{log}");
    assert!(fs::read_to_string(node.dirs.data().join("token")).is_ok());
}

#[tokio::test(flavor = "multi_thread")]
async fn names_resolve_and_follow_changes() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    let network = Network::claim(&node.dirs).unwrap();
    let name = |hostname: &str| PodName {
        namespace: "ns".into(),
        hostname: hostname.into(),
        subdomain: Some("gang".into()),
    };
    let address = network.address("a", &name("gang-0")).unwrap();
    assert_eq!(address.octets()[0], 127);
    network.publish("a", &name("gang-0"), address);
    let mut launch = script(
        "names",
        "hostname; getent hosts gang-0.gang; echo now; \
         until getent hosts gang-1.gang.ns.svc.cluster.local; do sleep 0.02; done",
    );
    launch.hostname = "gang-0".into();
    launch.hosts_file = Some(network.hosts_file("ns").unwrap());
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    super::support::eventually("the first name", || node.log(&id).contains("now")).await;
    let later = Ipv4Addr::new(127, 64, 9, 9);
    network.publish("b", &name("gang-1"), later);
    assert_eq!(node.exited().await.code, 0);
    let log = node.log(&id);
    let lines: Vec<_> = log.lines().collect();
    assert_eq!(lines[0], "gang-0");
    assert!(lines[1].starts_with(&address.to_string()), "{log}");
    assert!(lines[3].starts_with(&later.to_string()), "{log}");
    let machine = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    assert_ne!(machine.trim(), "gang-0");
}

#[tokio::test(flavor = "multi_thread")]
async fn devices_are_the_usual_ones() {
    let mut node = Node::new();
    if !has_view(&node) {
        return;
    }
    let launch = script(
        "dev",
        "echo lost > /dev/null; head -c 4 /dev/urandom | wc -c; echo x > /dev/shm/mine; \
         ls /dev/fd/0 /dev/pts/ptmx /dev/tty > /dev/null; echo out > /dev/stdout; \
         ls /dev | tr '\\n' ' '",
    );
    let log = output(&mut node, launch).await;
    assert!(log.contains("out") && log.starts_with('4'), "{log}");
    assert!(log.contains("termination-log") && !log.contains("vda"), "{log}");
    assert!(!Path::new("/dev/shm/mine").exists());
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_paths_and_names_are_replaced() {
    let mut options = super::support::options();
    options.without_namespaces = true;
    let mut node = Node::with(options);
    let network = Network::claim(&node.dirs).unwrap();
    let pod = PodName {
        namespace: "ns".into(),
        hostname: "gang-1".into(),
        subdomain: Some("gang".into()),
    };
    let text = "cat /data/file; echo $MASTER_ADDR $LOCKSTEP_VOLUME_VOL_1; \
                echo done > /dev/termination-log";
    let mut launch = script("plain", text);
    launch.mounts.push(mount(&node, "vol-1", "/data", false));
    launch.env.push(("MASTER_ADDR".into(), "gang-0.gang:29500".into()));
    launch.names = network.names(&pod, &[], launch.env.iter().map(|(_, value)| value.as_str()));
    let source = launch.mounts[0].source.display().to_string();
    let id = launch.id.clone();
    let started = node.runtime.start(launch).await.unwrap();
    assert!(started.warnings[0].contains("volume \"vol-1\" is not at /data"), "{started:?}");
    let exited = node.exited().await;
    assert_eq!((exited.code, exited.message.as_str()), (0, "done\n"));
    // The peer did not run yet; when it comes, it has the address it was given here.
    let peer = PodName { hostname: "gang-0".into(), ..pod };
    let address = network.address("peer", &peer).unwrap();
    assert_eq!(node.log(&id), format!("vol-1{address}:29500 {source}"));
    let mut refused = script("system", "true");
    refused.mounts.push(mount(&node, "etc", "/etc/app", false));
    let error = node.runtime.start(refused).await.unwrap_err();
    assert!(error.is_mount_failure(), "{error}");
}

#[tokio::test(flavor = "multi_thread")]
async fn without_namespaces_commands_that_come_later_find_volumes_too() {
    let mut options = super::support::options();
    options.without_namespaces = true;
    let node = Node::with(options);
    let mut launch = script("plain", "sleep 1000");
    launch.mounts.push(mount(&node, "vol-1", "/data", false));
    let id = launch.id.clone();
    node.runtime.start(launch).await.unwrap();
    let command = ["cat", "/data/file"].map(str::to_owned);
    let outcome = node.runtime.exec(&id, &command, std::time::Duration::from_secs(20)).await;
    let outcome = outcome.unwrap();
    assert_eq!((outcome.code, outcome.output.as_slice()), (0, b"vol-1".as_slice()));
}
