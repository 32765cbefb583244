//! Replays what upstream's field manager made of the same writes.
//!
//! `upstream.json` holds sequences of updates and applies, each with the owners, the object or the
//! error that k8s.io/apimachinery v0.36 came to, with the types of client-go and no defaults.

use lockstep_api::{Status, decode, strategy::Json};
use serde::Deserialize;
use serde_json::{Value, json};

use super::*;
use crate::fields;

#[derive(Deserialize)]
struct Scenario {
    name: String,
    group: String,
    version: String,
    kind: String,
    steps: Vec<Step>,
}

#[derive(Deserialize)]
struct Step {
    op: String,
    manager: String,
    #[serde(default)]
    subresource: String,
    #[serde(default)]
    force: bool,
    object: Json,
    want: Want,
}

#[derive(Deserialize)]
struct Want {
    #[serde(default)]
    error: String,
    #[serde(default)]
    causes: Vec<String>,
    object: Option<Json>,
    managed: Option<Value>,
}

/// A kind of one version.
struct One<'a>(&'a lockstep_api::Resource);

impl Versions for One<'_> {
    fn place(&self, api_version: &str) -> Option<Place<'_>> {
        (self.0.api_version() == api_version).then(|| Place::of(self.0))
    }

    fn convert(&self, object: &Json, from: &str, to: &str) -> Option<Json> {
        (from == to).then(|| object.clone())
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + second).unwrap()
}

/// The owners with their times blotted out.
fn timeless(encoded: &[u8]) -> Value {
    if encoded.is_empty() {
        return Value::Null;
    }
    let mut list: Value = serde_json::from_slice(encoded).unwrap();
    for entry in list.as_array_mut().unwrap() {
        if let Some(time) = entry.get_mut("time") {
            *time = json!("now");
        }
    }
    list
}

/// As a server that knows the kind by its Go type has it.
fn completed(resource: &lockstep_api::Resource, object: &Json) -> Json {
    let mut object = object.clone();
    object.insert("apiVersion".to_owned(), resource.api_version().into());
    object.insert("kind".to_owned(), resource.kind.to_string().into());
    let (ignore, kind) = (decode::FieldValidation::Ignore, decode::PatchKind::Json);
    let whole = Value::Object(object);
    let decoded = decode::prune_and_check(resource, &whole, kind, ignore, Vec::new()).unwrap();
    let mut object = decoded.object;
    decode::complete(resource, &mut object);
    object["metadata"].as_object_mut().unwrap().insert("uid".to_owned(), "u".into());
    object
}

struct Live {
    object: Option<Json>,
    managed: Vec<u8>,
}

#[test]
fn owners_are_those_upstream_finds() {
    let scenarios: Vec<Scenario> = serde_json::from_str(include_str!("upstream.json")).unwrap();
    let registry = lockstep_api::builtin::registry();
    for scenario in scenarios {
        let is_meant = |resource: &&std::sync::Arc<lockstep_api::Resource>| {
            (&*resource.group, &*resource.version, &*resource.kind)
                == (&*scenario.group, &*scenario.version, &*scenario.kind)
        };
        let resource = registry.iter().find(is_meant).unwrap();
        let mut live = Live { object: None, managed: Vec::new() };
        for (at, step) in scenario.steps.iter().enumerate() {
            let name = format!("{}, step {at}", scenario.name);
            replay(resource, &mut live, step, at, &name);
        }
    }
}

fn replay(
    resource: &lockstep_api::Resource,
    live: &mut Live,
    step: &Step,
    second: usize,
    name: &str,
) {
    let api_version = resource.api_version();
    let sub = Some(step.subresource.as_str()).filter(|sub| !sub.is_empty());
    let reset = Set::of(resource.strategy.reset_fields(sub));
    let versions = One(resource);
    let writer = Writer {
        manager: &step.manager,
        api_version: &api_version,
        subresource: &step.subresource,
        reset: &reset,
        // Upstream's steps all happened within a second.
        now: at(i64::try_from(second / 1_000).unwrap()),
        versions: &versions,
    };
    let mut blank = Json::new();
    decode::complete(resource, &mut blank);
    let outcome = match step.op.as_str() {
        "apply" => apply(resource, &writer, live, &blank, step),
        _ => Ok(update(resource, &writer, live, &blank, step)),
    };
    match outcome {
        Ok((object, managed)) => {
            assert_eq!(step.want.error, "", "{name}");
            let mut want = step.want.object.clone().unwrap();
            want.remove("apiVersion");
            want.remove("kind");
            assert_eq!(object, completed(resource, &want), "{name}");
            let want = step.want.managed.clone().unwrap_or_default();
            assert_eq!(timeless(&managed), want, "{name}");
            *live = Live { object: Some(object), managed };
        }
        Err(status) => {
            // Of several faults in one object, upstream names any first.
            let lines = |text: &str| {
                let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
                lines.sort();
                lines
            };
            assert_eq!(lines(&status.message), lines(&step.want.error), "{name}");
            let details = status.details.unwrap_or_default();
            let causes = details.causes.iter();
            let mut got: Vec<String> =
                causes.map(|it| format!("{}|{}|{}", it.reason, it.message, it.field)).collect();
            let mut want = step.want.causes.clone();
            // Upstream lists owners in no order.
            got.sort();
            want.sort();
            assert_eq!(got, want, "{name}");
        }
    }
}

fn update(
    resource: &lockstep_api::Resource,
    writer: &Writer<'_>,
    live: &Live,
    blank: &Json,
    step: &Step,
) -> (Json, Vec<u8>) {
    let mut given = step.object.clone();
    let meta = given["metadata"].as_object_mut().unwrap();
    let stated = match writer.subresource {
        "" => Stated::of(meta.remove("managedFields").as_ref()),
        _ => Stated::Nothing,
    };
    let object = completed(resource, &given);
    let managed = match &live.object {
        None => writer.created(blank, &object, stated),
        Some(old) => writer.updated(old, &object, &live.managed, stated).into_owned(),
    };
    (object, managed)
}

fn apply(
    resource: &lockstep_api::Resource,
    writer: &Writer<'_>,
    live: &Live,
    blank: &Json,
    step: &Step,
) -> Result<(Json, Vec<u8>), Status> {
    crate::rest::check_config(resource, &step.object)?;
    let old = live.object.as_ref().unwrap_or(blank);
    let applied = writer.applied((blank, old), &step.object, &live.managed, step.force)?;
    Ok((completed(resource, &applied.object), applied.managers))
}

#[test]
fn times_change_only_with_what_they_are_the_times_of() {
    let registry = lockstep_api::builtin::registry();
    let resource = registry.get("", "v1", "configmaps").unwrap();
    let (versions, reset) = (One(resource), Set::default());
    let writer = |manager, second| Writer {
        manager,
        api_version: "v1",
        subresource: "",
        reset: &reset,
        now: at(second),
        versions: &versions,
    };
    let config = |x: &str| -> Json {
        serde_json::from_value(json!({"metadata": {"name": "c"}, "data": {"x": x}})).unwrap()
    };
    let times = |encoded: &[u8]| -> Vec<(String, Option<i64>)> {
        let entries = Managers::decode(encoded).0.into_iter();
        entries
            .map(|it| (it.manager, it.time.map(|time| time.as_second() - at(0).as_second())))
            .collect()
    };
    let blank = Json::new();
    let first = writer("a", 0).created(&blank, &config("1"), Stated::Nothing);
    assert_eq!(times(&first), [("a".to_owned(), Some(0))]);
    let same = writer("b", 1).updated(&config("1"), &config("1"), &first, Stated::Nothing);
    assert_eq!(&*same, first);
    let changed = writer("a", 2).updated(&config("1"), &config("2"), &first, Stated::Nothing);
    assert_eq!(times(&changed), [("a".to_owned(), Some(2))]);
    assert!(is_same_but_for_times(&changed, &first) && *changed != *first);
    let given = (&blank, &config("2"));
    let noop = writer("c", 3).applied(given, &config("2"), &changed, false).unwrap().managers;
    // As upstream has it, who applies what is already so has no time.
    assert_eq!(times(&noop), [("c".to_owned(), None), ("a".to_owned(), Some(2))]);
    let forced = writer("c", 4).applied(given, &config("3"), &noop, true).unwrap().managers;
    assert_eq!(times(&forced), [("c".to_owned(), Some(4)), ("a".to_owned(), Some(2))]);
    let set = fields::owned(Place::of(resource), &json!({"data": {"x": "1"}}));
    assert!(Managers::decode(&forced).0[0].fields.contains(&set));
}

#[test]
fn conflicts_hold_no_more_than_the_fields_they_are_about() {
    let registry = lockstep_api::builtin::registry();
    let resource = registry.get("", "v1", "configmaps").unwrap();
    let (versions, reset) = (One(resource), Set::default());
    let writer = |manager| Writer {
        manager,
        api_version: "v1",
        subresource: "",
        reset: &reset,
        now: at(0),
        versions: &versions,
    };
    let config = |count: usize, text: &str| -> Json {
        let data: std::collections::BTreeMap<String, &str> =
            (0..count).map(|it| (it.to_string(), text)).collect();
        serde_json::from_value(json!({"metadata": {"name": "c"}, "data": data})).unwrap()
    };
    // Were each to hold all that its owner has, these would take gigabytes.
    let (all, count) = (20_000, 10_000);
    let live = config(all, "1");
    let known = writer("a").created(&Json::new(), &live, Stated::Nothing);
    let managers = Managers::decode(&known);
    let found = writer("b").apply(&live, &config(count, "2"), managers, false).unwrap_err();
    let fields: Vec<usize> = found.iter().map(|it| it.owner.fields.count()).collect();
    assert_eq!(fields, [count]);
    let given = (&Json::new(), &live);
    let status = writer("b").applied(given, &config(count, "2"), &known, false).unwrap_err();
    assert_eq!(status.details.unwrap().causes.len(), count);
}
