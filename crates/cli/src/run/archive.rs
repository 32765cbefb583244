//! What is kept of a run: the last version of every object, and the logs as files.

use std::{
    collections::BTreeMap,
    fs::{self, File, OpenOptions},
    io::{ErrorKind, Write},
    path::{Path, PathBuf},
};

use anyhow::{Context, Result};
use lockstep_api::kueue;
use serde_json::{Value, json};

use super::{
    model::{ContainerId, Model, Name},
    watches::About,
};
use crate::{
    exit::{Ending, Exit},
    manifest::yaml,
};

/// How many objects are kept without asking whose they are.
const ROOM: usize = 4096;

/// The objects and logs of a run.
#[derive(Debug, Default)]
pub(crate) struct Archive {
    /// By what they are, name and uid: a pod that was deleted is kept beside one that came after.
    objects: BTreeMap<(u8, Name, String), Value>,
    /// How many there may be before those of others are dropped.
    room: usize,
    folder: Option<PathBuf>,
    /// Whose the folders of logs are: the uid of the first pod of each name.
    folders: BTreeMap<Name, String>,
}

impl Archive {
    /// Keeps objects, and in `folder` logs too.
    ///
    /// # Errors
    /// When the folder cannot be made, or there is something in it already.
    pub(crate) fn new(folder: Option<&Path>) -> Result<Self> {
        if let Some(folder) = folder {
            let shown = folder.display();
            fs::create_dir_all(folder).with_context(|| format!("cannot make {shown}"))?;
            let mut entries =
                fs::read_dir(folder).with_context(|| format!("cannot read {shown}"))?;
            if entries.next().is_some() {
                let message =
                    format!("error: {shown} is not empty; --keep wants a folder of its own");
                return Err(Ending::error(Exit::Usage, message));
            }
        }
        Ok(Self { room: ROOM, folder: folder.map(Path::to_owned), ..Self::default() })
    }

    /// Keeps an object that belongs to the run, as it is now.
    pub(crate) fn see(&mut self, about: About, mut object: Value, model: &Model) {
        // Members of a list do not say what they are.
        let (version, kind) = match about {
            About::Job => ("batch/v1", "Job"),
            About::Pod => ("v1", "Pod"),
            About::Event => ("v1", "Event"),
            About::JobSet => ("jobset.x-k8s.io/v1alpha2", "JobSet"),
            About::Workload => (kueue::API_VERSION, "Workload"),
        };
        for (field, text) in [("apiVersion", version), ("kind", kind)] {
            if object[field].is_null() {
                object[field] = text.into();
            }
        }
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let meta = &object["metadata"];
        let name = (text(&meta["namespace"]), text(&meta["name"]));
        let order = match about {
            About::Job => 0,
            About::Pod => 1,
            // Whether it is about something of ours may be known only later.
            About::Event => 2,
            About::JobSet => 3,
            About::Workload => 4,
        };
        let is_ours = match about {
            About::JobSet => model.sets.contains_key(&name),
            About::Job => model.jobs.contains_key(&name),
            About::Workload => model.has_workload(&name),
            About::Pod | About::Event => model.pods.contains_key(&name),
        };
        if about != About::Event && !is_ours {
            return;
        }
        let uid = text(&meta["uid"]);
        self.objects.insert((order, name, uid), object);
        // On a cluster that others use as well, most events are about things of theirs.
        if self.objects.len() > self.room {
            self.objects.retain(|(order, ..), object| *order != 2 || is_about(object, model));
            self.room = ROOM.max(2 * self.objects.len());
        }
    }

    /// Appends to the log of a container. Of pods that had one name, each has its own folder.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn log(&mut self, container: &ContainerId, bytes: &[u8]) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let ContainerId { namespace, pod, uid, name } = container;
        let first = self.folders.entry((namespace.clone(), pod.clone()));
        let first = first.or_insert_with(|| uid.clone());
        // No pod is called so: names have no underscore.
        let own = if first == uid { pod.clone() } else { format!("{pod}_{uid}") };
        let folder = folder.join("logs").join(namespace).join(own);
        let path = folder.join(format!("{name}.log"));
        // Not kept open: there may be more containers than a process may have files.
        let open = || OpenOptions::new().append(true).create(true).open(&path);
        let file = match open() {
            Err(error) if error.kind() == ErrorKind::NotFound => {
                fs::create_dir_all(&folder).and_then(|()| open())
            }
            opened => opened,
        };
        let written = file.and_then(|mut file: File| file.write_all(bytes));
        written.with_context(|| format!("cannot write {}", path.display()))
    }

    /// One List of everything: `applied` first, then Jobs of JobSets, then Workloads, then pods,
    /// then events in the order they happened.
    pub(crate) fn list(&self, applied: Vec<Value>, model: &Model) -> Value {
        let mut items = Vec::new();
        for mut object in applied {
            let meta = &object["metadata"];
            let text = |field: &str| meta[field].as_str().unwrap_or_default().to_owned();
            let name = (text("namespace"), text("name"));
            // What was seen last is newer than what was read.
            let order = match object["kind"].as_str() {
                Some("Job") => Some(0),
                Some("Pod") => Some(1),
                Some("JobSet") => Some(3),
                _ => None,
            };
            let seen = order.and_then(|order| self.objects.get(&(order, name, text("uid"))));
            if let Some(seen) = seen {
                object = seen.clone();
            }
            items.push(object);
        }
        let is_listed = |uid: &Value| items.iter().any(|item| item["metadata"]["uid"] == *uid);
        let children = self.of(0).chain(self.of(4)).chain(self.of(1));
        let children: Vec<&Value> =
            children.filter(|it| !is_listed(&it["metadata"]["uid"])).collect();
        let mut events: Vec<&Value> = self.of(2).filter(|event| is_about(event, model)).collect();
        events.sort_by_key(|event| moment(event).to_owned());
        let rest: Vec<Value> = children.into_iter().chain(events).cloned().collect();
        items.extend(rest);
        json!({"apiVersion": "v1", "kind": "List", "metadata": {}, "items": items})
    }

    /// Writes the list beside the logs.
    ///
    /// # Errors
    /// When the file cannot be written.
    pub(crate) fn store(&self, list: &Value) -> Result<()> {
        let Some(folder) = &self.folder else { return Ok(()) };
        let path = folder.join("objects.yaml");
        fs::write(&path, yaml::render(list))
            .with_context(|| format!("cannot write {}", path.display()))
    }

    fn of(&self, order: u8) -> impl Iterator<Item = &Value> {
        self.objects.iter().filter(move |(key, _)| key.0 == order).map(|(_, object)| object)
    }
}

fn is_about(event: &Value, model: &Model) -> bool {
    let about = &event["involvedObject"];
    let text = |field: &str| about[field].as_str().unwrap_or_default().to_owned();
    let name = (text("namespace"), text("name"));
    match about["kind"].as_str() {
        Some("JobSet") => model.sets.contains_key(&name),
        Some("Job") => model.jobs.contains_key(&name),
        Some("Pod") => model.pods.contains_key(&name),
        Some("Workload") => model.has_workload(&name),
        _ => false,
    }
}

/// When an event happened; texts of this form sort as the moments do.
fn moment(event: &Value) -> &str {
    let fields = [&event["eventTime"], &event["firstTimestamp"]];
    let written = fields.into_iter().find_map(Value::as_str);
    written.or_else(|| event["metadata"]["creationTimestamp"].as_str()).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(kind: &str, name: &str, uid: &str, version: &str) -> Value {
        json!({"kind": kind, "metadata": {"namespace": "d", "name": name, "uid": uid,
            "resourceVersion": version}})
    }

    #[test]
    fn the_list_holds_the_last_version_of_each_and_deleted_pods_too() {
        let mut model = Model::new(true);
        model.add(&object("Job", "j", "1", "1"));
        model.add(&object("Pod", "p", "2", "1"));
        let mut archive = Archive { room: 5, ..Archive::default() };
        archive.see(About::Job, object("Job", "j", "1", "9"), &model);
        archive.see(About::Pod, object("Pod", "p", "2", "5"), &model);
        archive.see(About::Pod, object("Pod", "p", "3", "7"), &model);
        archive.see(About::Pod, object("Pod", "other", "4", "7"), &model);
        for (name, kind, at) in [("b", "Job", "02"), ("a", "Job", "03"), ("c", "Node", "01")] {
            let mut event = object("Event", name, name, "1");
            event.as_object_mut().expect("an object").remove("kind");
            event["involvedObject"] = json!({"kind": kind, "namespace": "d", "name": "j"});
            event["firstTimestamp"] = json!(format!("2026-01-01T00:00:{at}Z"));
            archive.see(About::Event, event, &model);
        }
        assert_eq!(archive.objects.len(), 5, "the event of a node was dropped for want of room");
        let applied = vec![object("ConfigMap", "c", "0", "1"), object("Job", "j", "1", "1")];
        let list = archive.list(applied, &model);
        let shown = |item: &Value| {
            let meta = &item["metadata"];
            format!("{} {} {}", item["kind"], meta["name"], meta["resourceVersion"])
                .replace('"', "")
        };
        let shown: Vec<String> =
            list["items"].as_array().expect("items").iter().map(shown).collect();
        let want = ["ConfigMap c 1", "Job j 9", "Pod p 5", "Pod p 7", "Event b 1", "Event a 1"];
        assert_eq!(shown, want);
    }

    #[test]
    fn workloads_are_kept_with_what_happened_to_them() {
        use crate::queueing::workload::tests::object as workload;
        let mut model = Model::new(true);
        let mut job = object("Job", "train", "train", "1");
        job["metadata"]["namespace"] = json!("default");
        model.add(&job);
        let mut archive = Archive { room: ROOM, ..Archive::default() };
        for name in ["train", "foreign"] {
            let seen = workload(name, 0, json!({}));
            model.see_workload(&seen);
            archive.see(About::Workload, seen, &model);
            let mut event = object("Event", name, name, "1");
            event["involvedObject"] = json!({"kind": "Workload", "namespace": "default",
                "name": format!("job-{name}-1a2b3")});
            archive.see(About::Event, event, &model);
        }
        let list = archive.list(vec![job], &model);
        let kinds: Vec<String> = list["items"]
            .as_array()
            .expect("items")
            .iter()
            .map(|item| format!("{} {}", item["kind"], item["metadata"]["name"]).replace('"', ""))
            .collect();
        assert_eq!(kinds, ["Job train", "Workload job-train-1a2b3", "Event train"]);
    }

    #[test]
    fn logs_are_appended_and_a_folder_in_use_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let keep = folder.path().join("kept");
        let mut archive = Archive::new(Some(&keep)).expect("a new folder");
        let [namespace, pod, uid, name] = ["d", "p", "first", "c"].map(ToOwned::to_owned);
        let container = ContainerId { namespace, pod, uid, name };
        archive.log(&container, b"one\n").expect("written");
        archive.log(&container, b"two\n").expect("written");
        assert_eq!(fs::read_to_string(keep.join("logs/d/p/c.log")).expect("there"), "one\ntwo\n");
        let second = ContainerId { uid: "second".to_owned(), ..container };
        archive.log(&second, b"three\n").expect("written");
        let second = fs::read_to_string(keep.join("logs/d/p_second/c.log"));
        assert_eq!(second.expect("beside the first"), "three\n");
        let error = Archive::new(Some(&keep)).expect_err("in use");
        assert!(error.to_string().contains("not empty"), "{error}");
    }
}
