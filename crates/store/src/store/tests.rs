//! The store against a model that keeps a copy of everything at every revision.

use std::{collections::BTreeMap, sync::Arc};

use jiff::Timestamp;
use lockstep_api::{Registry, Resource};
use proptest::prelude::*;
use serde_json::json;

use super::Store;
use crate::{
    Change, Draft, Expect, Limits, Op, Revision, Selectors, Snapshot, Write,
    page::{self, Token},
    testing::map,
    watch::{EventType, Filter},
};

const TABLES: [&str; 2] = ["configmaps", "secrets"];

/// One step of a history.
#[derive(Clone, Debug)]
enum Step {
    Write { table: usize, key: u8, expect: u8, value: Option<u8> },
    Seal,
    Publish(u8),
    RollBack,
}

fn step() -> impl Strategy<Value = Step> {
    let write = (0..2_usize, 0..6_u8, 0..4_u8, proptest::option::weighted(0.7, 0..4_u8));
    prop_oneof![
        8 => write.prop_map(|(table, key, expect, value)| Step::Write { table, key, expect, value }),
        4 => any::<u8>().prop_map(Step::Publish),
        1 => Just(Step::RollBack),
        3 => Just(Step::Seal),
    ]
}

/// Table and key to value and revision.
type State = BTreeMap<(usize, String), (u8, Revision)>;

#[derive(Default)]
struct Model {
    head: State,
    published: State,
    staged: Vec<(Revision, (usize, String), Option<u8>)>,
    /// The published state after each revision.
    history: BTreeMap<Revision, State>,
    last: Revision,
}

impl Model {
    fn write(&mut self, at: (usize, String), value: Option<u8>) {
        if value.is_none() && !self.head.contains_key(&at) {
            return;
        }
        self.last += 1;
        apply(&mut self.head, &at, value, self.last);
        self.staged.push((self.last, at, value));
    }

    fn publish(&mut self, through: Revision) {
        while self.staged.first().is_some_and(|(revision, ..)| *revision <= through) {
            let (revision, at, value) = self.staged.remove(0);
            apply(&mut self.published, &at, value, revision);
            self.history.insert(revision, self.published.clone());
        }
    }
}

fn apply(state: &mut State, at: &(usize, String), value: Option<u8>, revision: Revision) {
    match value {
        Some(value) => drop(state.insert(at.clone(), (value, revision))),
        None => drop(state.remove(at)),
    }
}

struct Rig {
    store: Store,
    model: Model,
    resources: Vec<Arc<Resource>>,
}

impl Rig {
    fn new(limits: Limits) -> Self {
        let registry: Registry = lockstep_api::builtin::registry();
        let resources =
            TABLES.iter().map(|plural| Arc::clone(registry.get("", "v1", plural).unwrap()));
        let mut model = Model::default();
        model.history.insert(0, State::new());
        Self { store: Store::new(limits), model, resources: resources.collect() }
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Write { table, key, expect, value } => self.write(*table, *key, *expect, *value),
            Step::Publish(share) => {
                let staged = &self.model.staged;
                let through = match staged.len() {
                    0 => 0,
                    count => staged[usize::from(*share) % count].0,
                };
                let before = self.model.staged.len();
                let batches = self.store.publish(through, Timestamp::UNIX_EPOCH);
                self.model.publish(through);
                let told: usize = batches.iter().map(|batch| batch.events.len()).sum();
                assert_eq!(told, before - self.model.staged.len());
            }
            Step::Seal => self.store.seal(),
            Step::RollBack => {
                self.store.roll_back();
                self.model.staged.clear();
                self.model.head = self.model.published.clone();
            }
        }
    }

    fn write(&mut self, table: usize, key: u8, expect: u8, value: Option<u8>) {
        let at = (table, format!("n/k{key}"));
        let current = self.model.head.get(&at).map(|(_, revision)| *revision);
        let (expect, is_met) = match expect {
            0 => (Expect::Absent, current.is_none()),
            1 => (Expect::Revision(current.unwrap_or(1)), current.is_some()),
            2 => (Expect::Revision(current.unwrap_or_default() + 1_000), false),
            _ => (Expect::Any, true),
        };
        let write = match value {
            None => Write::Delete(None),
            Some(value) => {
                let labels = json!({"v": value.to_string()});
                let object = json!({"metadata":
                    {"name": format!("k{key}"), "namespace": "n", "uid": "u", "labels": labels}});
                Write::Put(Draft::new(&map(object), &[], &*self.resources[table].strategy))
            }
        };
        let op = Op { table: TABLES[table].into(), key: at.1.as_str().into(), expect, write };
        let staged = self.store.stage(Change { checks: Vec::new(), ops: vec![op] });
        assert_eq!(staged.is_ok(), is_met, "the expectation is judged on the head");
        if is_met {
            self.model.write(at, value);
            assert_eq!(staged.unwrap().revision, self.model.last);
        }
    }

    fn check(&self) {
        assert_eq!(seen(self.store.published()), self.model.published, "what readers see");
        assert_eq!(seen(self.store.head()), self.model.head, "what writers build on");
        assert_eq!(self.store.last_revision(), self.model.last);
        for table in 0..TABLES.len() {
            for (revision, state) in &self.model.history {
                self.check_past(table, *revision, state);
            }
        }
    }

    /// A watch from `revision` leads to the present; a rewind leads back.
    fn check_past(&self, table: usize, revision: Revision, past: &State) {
        let of_table = |state: &State| -> State {
            state.iter().filter(|(at, _)| at.0 == table).map(|(k, v)| (k.clone(), *v)).collect()
        };
        let filter = Filter::new(&self.resources[table], None, Selectors::default());
        let Ok(events) = self.store.log().events_after(TABLES[table], revision, usize::MAX) else {
            return;
        };
        let mut state = of_table(past);
        let mut last = revision;
        for event in &events {
            assert!(event.revision > last, "revisions only grow");
            last = event.revision;
            let notice = filter.notice(event).expect("everything is selected");
            assert_eq!(notice.object.revision(), event.revision);
            let at = (table, event.key.to_string());
            let known = state.contains_key(&at);
            match notice.kind {
                EventType::Deleted => assert!(state.remove(&at).is_some()),
                kind @ (EventType::Added | EventType::Modified) => {
                    assert_eq!(kind == EventType::Modified, known);
                    let value = notice.object.meta.label("v").unwrap().parse().unwrap();
                    state.insert(at, (value, event.revision));
                }
            }
        }
        assert_eq!(state, of_table(&self.model.published), "a watch from {revision}");
        let rewound = self.store.rewind(TABLES[table], revision).unwrap().run();
        assert_eq!(of_table(&seen(&rewound)), of_table(past), "a rewind to {revision}");
        self.check_pages(&rewound, &filter);
    }

    fn check_pages(&self, snapshot: &Snapshot, filter: &Filter) {
        let whole = page::list(snapshot, filter, None, None).items;
        let mut paged = Vec::new();
        let mut token = None;
        loop {
            let page = page::list(snapshot, filter, token.as_ref(), Some(2));
            assert!(page.items.len() <= 2);
            paged.extend(page.items);
            let left = whole.len() - paged.len();
            let Some(next) = page.next else {
                assert_eq!(left, 0);
                break;
            };
            assert_eq!(page.remaining, Some(left));
            token = Some(Token::decode(&next.encode()).unwrap());
        }
        let keys = |objects: &[Arc<crate::Object>]| -> Vec<_> {
            objects.iter().map(|object| (object.key(), object.revision())).collect()
        };
        assert_eq!(keys(&paged), keys(&whole), "pages are the list");
    }
}

fn seen(snapshot: &Snapshot) -> State {
    let mut state = State::new();
    for (at, table) in TABLES.iter().enumerate() {
        for (key, object) in snapshot.range(table, None, None) {
            let value = object.meta.label("v").unwrap().parse().unwrap();
            let json = object.json();
            assert_eq!(json["metadata"]["resourceVersion"], object.revision().to_string());
            state.insert((at, key.to_string()), (value, object.revision()));
        }
    }
    state
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn the_store_does_what_the_model_does(steps in prop::collection::vec(step(), 1..60)) {
        let mut rig = Rig::new(Limits::default());
        for step in &steps {
            rig.run(step);
            if !matches!(step, Step::Write { .. }) {
                rig.check();
            }
        }
        rig.check();
    }

    #[test]
    fn a_short_memory_forgets_but_never_lies(steps in prop::collection::vec(step(), 1..60)) {
        let mut rig = Rig::new(Limits { events_max: 5, ..Limits::default() });
        for step in &steps {
            rig.run(step);
            assert!(rig.store.log().len() <= 5);
        }
        rig.check();
    }
}

#[test]
fn history_is_bounded_by_count_bytes_and_age() {
    let at = |second| Timestamp::from_second(second).unwrap();
    let mut rig =
        Rig::new(Limits { age_max: std::time::Duration::from_secs(10), ..Limits::default() });
    rig.write(0, 1, 3, Some(1));
    rig.store.publish(1, at(0));
    rig.write(0, 1, 3, Some(2));
    rig.store.publish(2, at(8));
    rig.store.trim(at(-1_000));
    assert!(rig.store.log().check(TABLES[0], 0).is_ok(), "the clock was put back");
    rig.store.trim(at(11));
    let expired = rig.store.log().check(TABLES[0], 0).unwrap_err();
    assert_eq!(expired.to_string(), "too old resource version: 0 (1)");
    assert!(rig.store.log().check(TABLES[0], 1).is_ok());
    assert!(rig.store.log().check(TABLES[1], 0).is_ok(), "nothing was forgotten of this table");
    let mut rig = Rig::new(Limits { bytes_max: 5_000, ..Limits::default() });
    for revision in 1..=20 {
        rig.write(0, 1, 3, Some(revision));
        rig.store.publish(u64::from(revision), at(0));
    }
    let kept = rig.store.log().len();
    assert!((2..=6).contains(&kept), "an event takes about a kilobyte, and {kept} are kept");
}

#[test]
fn tokens_that_are_not_ours_are_refused() {
    let encode = |text: &str| {
        use base64::Engine as _;
        base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(text)
    };
    let cases = [
        "!!".to_owned(),
        "AAAA".to_owned(),
        encode("[]"),
        encode("{\"v\":\"v2\",\"rv\":1,\"start\":\"a\"}"),
        encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":0,\"start\":\"a\"}"),
        encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":1,\"start\":\"\"}"),
        encode("{\"v\":\"meta.k8s.io/v1\",\"rv\":1,\"start\":\"../secrets\"}"),
    ];
    for text in cases {
        let status = Token::decode(&text).unwrap_err();
        assert!(status.message.starts_with("invalid continue token: continue key is not valid"));
        assert_eq!(status.code, 400, "{text}");
    }
    let token = Token { revision: Some(7), start: "n/a\0".to_owned(), left: Some(3) };
    assert_eq!(Token::decode(&token.encode()).unwrap(), token);
    let fresh = Token::decode(&token.expired().metadata.continue_token).unwrap();
    assert_eq!((fresh.revision, fresh.start, fresh.left), (None, token.start, None));
}
