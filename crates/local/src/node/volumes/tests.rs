use std::os::unix::fs::symlink;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::*;

struct Bench {
    folder: TempDir,
    dirs: NodeDirs,
    sources: Sources,
}

impl Bench {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let dirs = NodeDirs::new(folder.path().join("data"));
        let mut sources = Sources::default();
        sources.tokens.insert((String::new(), 3607), "tok".to_owned());
        let mut bench = Self { folder, dirs, sources };
        bench.set_config(json!({"a": "1", "b": "2"}));
        let secret = serde_json::from_value(json!({"data": {"key": "c2VjcmV0"}})).unwrap();
        bench.sources.secrets.insert("s".into(), secret);
        bench
    }

    fn set_config(&mut self, data: Value) {
        let object = json!({"data": data, "binaryData": {"bin": "AAE="}});
        let object = serde_json::from_value(object).unwrap();
        self.sources.config_maps.insert("cm".into(), object);
    }

    fn prepare(&self, volume: Value) -> Result<PreparedVolume, String> {
        let mut prepared =
            prepare(&pod(volume), &self.sources, &self.dirs).map_err(|error| error.to_string())?;
        Ok(prepared.remove(0))
    }
}

fn pod(volume: Value) -> Pod {
    let mut named = volume;
    named["name"] = json!("v");
    serde_json::from_value(json!({
        "metadata": {"name": "p", "namespace": "ns", "uid": "u-1", "labels": {"l": "x"}},
        "spec": {"containers": [{"name": "c"}], "volumes": [named]},
    }))
    .unwrap()
}

fn read(volume: &PreparedVolume, path: &str) -> String {
    fs::read_to_string(volume.path.join(path)).unwrap()
}

fn mode(volume: &PreparedVolume, path: &str) -> u32 {
    fs::metadata(volume.path.join(path)).unwrap().permissions().mode() & 0o777
}

#[test]
fn objects_become_files() {
    let bench = Bench::new();
    let config = bench.prepare(json!({"configMap": {"name": "cm"}})).unwrap();
    assert_eq!((read(&config, "a"), mode(&config, "a")), ("1".into(), 0o644));
    assert_eq!(fs::read(config.path.join("bin")).unwrap(), [0, 1]);
    assert!(config.is_read_only);
    let items = json!([{"key": "key", "path": "deep/er", "mode": 0o400}]);
    let bench = Bench::new();
    let secret = json!({"secret": {"secretName": "s", "items": items, "defaultMode": 0o440}});
    let secret = bench.prepare(secret).unwrap();
    assert_eq!((read(&secret, "deep/er"), mode(&secret, "deep/er")), ("secret".into(), 0o400));
    let bench = Bench::new();
    let projected = bench.prepare(json!({"projected": {"sources": [
        {"configMap": {"name": "cm", "items": [{"key": "a", "path": "cm/a"}]}},
        {"configMap": {"name": "none", "optional": true}},
        {"secret": {"name": "s"}},
        {"downwardAPI": {"items": [{"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}]}},
        {"serviceAccountToken": {"path": "token", "expirationSeconds": 3607}},
    ]}}));
    let projected = projected.unwrap();
    let cases = [("cm/a", "1"), ("key", "secret"), ("labels", "l=\"x\""), ("token", "tok")];
    for (path, want) in cases {
        assert_eq!(read(&projected, path), want, "{path}");
    }
}

#[test]
fn failures_are_worded_as_a_kubelets() {
    let bench = Bench::new();
    let cases = [
        (json!({"configMap": {"name": "y"}}), "configmap \"y\" not found"),
        (json!({"secret": {"secretName": "y"}}), "secret \"y\" not found"),
        (
            json!({"configMap": {"name": "cm", "items": [{"key": "z", "path": "z"}]}}),
            "configmap references non-existent config key: z",
        ),
        (
            json!({"secret": {"secretName": "s", "items": [{"key": "z", "path": "z"}]}}),
            "references non-existent secret key: z",
        ),
        (
            json!({"hostPath": {"path": "/etc", "type": "File"}}),
            "hostPath type check failed: /etc is not a file",
        ),
        (
            json!({"hostPath": {"path": "/etc/hosts", "type": "Directory"}}),
            "hostPath type check failed: /etc/hosts is not a directory",
        ),
        (
            json!({"hostPath": {"path": "/etc/hosts", "type": "Socket"}}),
            "hostPath type check failed: /etc/hosts is not a socket file",
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": "x"}}),
            "persistentvolumeclaim \"x\" not found",
        ),
        (
            json!({"nfs": {"path": "/", "server": "x"}}),
            "nfs volumes are not supported by this node",
        ),
    ];
    for (volume, want) in cases {
        let error = bench.prepare(volume).unwrap_err();
        assert_eq!(error, format!("MountVolume.SetUp failed for volume \"v\" : {want}"));
    }
    fs::create_dir_all(bench.dirs.data()).unwrap();
    let own = bench.prepare(json!({"hostPath": {"path": bench.dirs.data()}})).unwrap_err();
    assert!(own.contains("belongs to the cluster"), "{own}");
}

#[test]
fn a_claim_is_one_folder_for_all_its_pods_once_it_is_bound() {
    let mut bench = Bench::new();
    let source = json!({"persistentVolumeClaim": {"claimName": "c"}});
    let mut claim = |more: Value| {
        let mut claim = json!({"metadata": {"name": "c", "uid": "claim-1"},
            "status": {"phase": "Bound"}});
        for (key, value) in more.as_object().unwrap() {
            claim[key] = value.clone();
        }
        bench.sources.claims.insert("c".into(), serde_json::from_value(claim).unwrap());
        bench.prepare(source.clone())
    };
    let error = claim(json!({"status": {"phase": "Pending"}})).unwrap_err();
    assert!(error.ends_with("persistentvolumeclaim \"c\" is not bound"), "{error}");
    let deleting =
        json!({"name": "c", "uid": "claim-1", "deletionTimestamp": "2026-01-01T00:00:00Z"});
    let error = claim(json!({"metadata": deleting})).unwrap_err();
    assert!(error.ends_with("persistentvolumeclaim \"c\" is being deleted"), "{error}");
    let bound = claim(json!({})).unwrap();
    assert_eq!(bound.path, bench.dirs.claims().join("claim-1"));
    assert!(!bound.is_read_only && bound.path.is_dir());
    remove(&bench.dirs, "u-1");
    assert!(bound.path.is_dir(), "it outlives the pod");
    let read_only = json!({"persistentVolumeClaim": {"claimName": "c", "readOnly": true}});
    assert!(bench.prepare(read_only).unwrap().is_read_only);
}

#[test]
fn updates_appear_at_once_and_only_when_there_are_any() {
    let mut bench = Bench::new();
    let volume = json!({"configMap": {"name": "cm"}});
    let prepared = bench.prepare(volume.clone()).unwrap();
    let open = fs::read_link(prepared.path.join("..data")).unwrap();
    let pod = pod(volume);
    assert_eq!(refresh(&pod, &bench.sources, &bench.dirs), Ok(false));
    assert_eq!(fs::read_link(prepared.path.join("..data")).unwrap(), open);
    bench.set_config(json!({"b": "22", "c": "3"}));
    assert_eq!(refresh(&pod, &bench.sources, &bench.dirs), Ok(true));
    assert_eq!((read(&prepared, "b"), read(&prepared, "c")), ("22".into(), "3".into()));
    assert!(fs::symlink_metadata(prepared.path.join("a")).is_err());
    let mut names: Vec<_> = fs::read_dir(&prepared.path)
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.starts_with("..1"))
        .collect();
    names.sort();
    assert_eq!(names, ["..data", "b", "bin", "c"]);
}

#[test]
fn mounts_show_what_was_asked_for_and_nothing_outside() {
    let bench = Bench::new();
    let empty = bench.prepare(json!({"emptyDir": {}})).unwrap();
    assert_eq!(mode(&empty, ""), 0o777);
    symlink("/etc", empty.path.join("out")).unwrap();
    let container = |mount: Value| -> Container {
        let mut mount = mount;
        mount["name"] = json!("v");
        mount["mountPath"] = json!("/m");
        serde_json::from_value(json!({"name": "c", "volumeMounts": [mount],
            "env": [{"name": "WHO", "value": "me"}]}))
        .unwrap()
    };
    let mounted = |mount: Value| {
        let container = container(mount);
        let pod = pod(json!({"emptyDir": {}}));
        let environment =
            crate::node::env::build(&pod, &container, &Sources::default(), &[]).unwrap();
        mounts(&container, std::slice::from_ref(&empty), &environment, &bench.dirs)
    };
    let whole = mounted(json!({})).unwrap().remove(0);
    assert_eq!((&whole.source, whole.read_only), (&empty.path, false));
    assert_eq!(whole.target, Path::new("/m"));
    assert!(mounted(json!({"readOnly": true})).unwrap()[0].read_only);
    let part = mounted(json!({"subPath": "x/y"})).unwrap().remove(0);
    assert_eq!(part.source, empty.path.canonicalize().unwrap().join("x/y"));
    assert!(part.source.is_dir());
    let named = mounted(json!({"subPathExpr": "logs/$(WHO)"})).unwrap().remove(0);
    assert!(named.source.ends_with("logs/me"));
    for bad in [
        json!({"subPath": "../x"}),
        json!({"subPath": "out"}),
        json!({"subPath": "out/x"}),
        json!({"subPath": "/etc"}),
        json!({"subPathExpr": "$(NOBODY)"}),
    ] {
        assert!(mounted(bad.clone()).is_err(), "{bad}");
    }
    drop(bench.folder);
}

#[test]
fn memory_is_given_back() {
    let bench = Bench::new();
    let mut pod = pod(json!({"emptyDir": {"medium": "Memory"}}));
    let uid = format!("test-{}", std::process::id());
    pod.metadata.uid = Some(uid.clone());
    let prepared = prepare(&pod, &bench.sources, &bench.dirs).unwrap().remove(0);
    assert!(prepared.path.is_dir());
    let all = bench.dirs.memory();
    assert!(all.join(&uid).is_dir());
    remove_memory(&bench.dirs, &uid);
    assert!(!all.exists(), "the last pod takes the folder along");
    prepare(&pod, &bench.sources, &bench.dirs).unwrap();
    remove_all_memory(&bench.dirs);
    assert!(!all.exists());
}

#[test]
fn the_data_of_the_cluster_is_not_a_volume_by_any_path() {
    let bench = Bench::new();
    let data = bench.dirs.data().to_owned();
    fs::create_dir_all(data.join("pki")).unwrap();
    let outside = bench.folder.path().join("outside");
    fs::create_dir(&outside).unwrap();
    symlink(&data, outside.join("link")).unwrap();
    for path in ["link", "link/pki", "link/new"] {
        for kind in ["", "DirectoryOrCreate"] {
            let wanted = json!({"hostPath": {"path": outside.join(path), "type": kind}});
            let error = bench.prepare(wanted).unwrap_err();
            assert!(error.contains("belongs to the cluster itself"), "{path}: {error}");
        }
    }
    assert!(!data.join("new").exists(), "it is refused before anything is created");
    let above = bench.prepare(json!({"hostPath": {"path": bench.folder.path()}})).unwrap();
    for path in ["data/pki", "data/new", "outside/link/pki"] {
        let container = serde_json::from_value(json!({
            "name": "c",
            "volumeMounts": [{"name": "v", "mountPath": "/m", "subPath": path}],
        }))
        .unwrap();
        let environment = Environment::default();
        let volumes = std::slice::from_ref(&above);
        let error = mounts(&container, volumes, &environment, &bench.dirs).unwrap_err();
        assert!(error.message.contains("belongs to the cluster itself"), "{path}: {error}");
    }
    assert!(!data.join("new").exists());
}
