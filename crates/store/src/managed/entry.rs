//! The entries of `metadata.managedFields`, read and written.

use std::{collections::BTreeMap, fmt::Write};

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::Value;

use crate::fields::Set;

/// Who a manager is taken for who gives no name.
const NAMELESS: &str = "unknown";
/// How many entries a request may state. What it says beyond that would be paid for by every later
/// write; no more than a few owners are ever there in earnest.
const STATED_MAX: usize = 256;

/// How fields came to be owned. The order is that of the texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
pub enum Operation {
    /// By applying a configuration that has them.
    Apply,
    /// By changing them in any other way.
    Update,
}

/// What one manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Who.
    pub manager: String,
    /// How.
    pub operation: Operation,
    /// The version the fields are named in.
    pub api_version: String,
    /// The part of the object that was written, empty for all of it.
    pub subresource: String,
    /// When the entry last changed.
    pub time: Option<Timestamp>,
    /// The fields.
    pub fields: Set,
}

impl Entry {
    /// Whether both are the same manager's.
    fn is_same_manager(&self, other: &Self) -> bool {
        self.key() == other.key()
    }

    /// Whose the entry is. One that applies has one entry for all versions.
    fn key(&self) -> (&str, Operation, &str, &str) {
        let version = match self.operation {
            Operation::Apply => "",
            Operation::Update => self.api_version.as_str(),
        };
        (&self.manager, self.operation, &self.subresource, version)
    }

    /// The entry with other fields.
    pub(super) fn with(&self, fields: Set) -> Self {
        Self {
            manager: self.manager.clone(),
            operation: self.operation,
            api_version: self.api_version.clone(),
            subresource: self.subresource.clone(),
            time: self.time,
            fields,
        }
    }

    /// What upstream knows the manager by; it sorts by that.
    pub(super) fn identifier(&self) -> String {
        let mut text = String::from("{");
        if !self.manager.is_empty() {
            let _ = write!(text, "\"manager\":{},", Value::from(self.manager.as_str()));
        }
        let _ = match self.operation {
            Operation::Apply => write!(text, "\"operation\":\"Apply\""),
            Operation::Update => {
                let version = Value::from(self.api_version.as_str());
                write!(text, "\"operation\":\"Update\",\"apiVersion\":{version}")
            }
        };
        if !self.subresource.is_empty() {
            let _ = write!(text, ",\"subresource\":{}", Value::from(self.subresource.as_str()));
        }
        text.push('}');
        text
    }

    fn write(&self, out: &mut Vec<u8>) {
        let json = |text: &str| Value::from(text).to_string();
        out.extend_from_slice(b"{\"apiVersion\":");
        out.extend_from_slice(json(&self.api_version).as_bytes());
        out.extend_from_slice(b",\"fieldsType\":\"FieldsV1\",\"fieldsV1\":");
        self.fields.write(out);
        if !self.manager.is_empty() {
            out.extend_from_slice(b",\"manager\":");
            out.extend_from_slice(json(&self.manager).as_bytes());
        }
        out.extend_from_slice(match self.operation {
            Operation::Apply => b",\"operation\":\"Apply\"",
            Operation::Update => b",\"operation\":\"Update\"",
        });
        if !self.subresource.is_empty() {
            out.extend_from_slice(b",\"subresource\":");
            out.extend_from_slice(json(&self.subresource).as_bytes());
        }
        if let Some(time) = self.time {
            out.extend_from_slice(format!(",\"time\":\"{time}\"").as_bytes());
        }
        out.push(b'}');
    }
}

/// An entry as it is sent.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Sent {
    #[serde(default)]
    manager: Option<String>,
    operation: Operation,
    api_version: String,
    #[serde(default)]
    subresource: Option<String>,
    #[serde(default)]
    time: Option<String>,
    fields_type: String,
    #[serde(default)]
    fields_v1: Option<Set>,
}

impl Sent {
    fn entry(self) -> Option<Entry> {
        let is_known = self.fields_type == "FieldsV1" && !self.api_version.is_empty();
        is_known.then(|| Entry {
            manager: self.manager.unwrap_or_default(),
            operation: self.operation,
            api_version: self.api_version,
            subresource: self.subresource.unwrap_or_default(),
            time: self.time.and_then(|time| time.parse().ok()),
            fields: self.fields_v1.unwrap_or_default(),
        })
    }
}

/// What a request says of the owners of what it writes.
#[derive(Clone, Debug)]
pub enum Stated {
    /// Nothing, nothing that can be read, or too much: they are what they were.
    Nothing,
    /// That there are to be none.
    Reset,
    /// These.
    Managers(Managers),
}

impl Stated {
    /// What `metadata.managedFields` of a request says.
    pub fn of(value: Option<&Value>) -> Self {
        let Some(list) = value.and_then(Value::as_array) else { return Self::Nothing };
        match list.as_slice() {
            [] => Self::Reset,
            [Value::Object(entry)] if entry.values().all(is_zero) => Self::Reset,
            list if list.len() > STATED_MAX => Self::Nothing,
            list => match Managers::read(list.iter().map(Sent::deserialize)) {
                Some(managers) if !managers.0.is_empty() => Self::Managers(managers),
                _ => Self::Nothing,
            },
        }
    }
}

fn is_zero(value: &Value) -> bool {
    value.is_null() || value.as_str().is_some_and(str::is_empty)
}

/// All owners of the fields of an object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Managers(pub(super) Vec<Entry>);

impl Managers {
    /// Reads what [`Managers::encode`] wrote, which is nothing when there are none.
    pub fn decode(encoded: &[u8]) -> Self {
        if encoded.is_empty() {
            return Self::default();
        }
        let sent: Vec<Sent> = serde_json::from_slice(encoded).unwrap_or_default();
        Self::read(sent.into_iter().map(Ok)).unwrap_or_default()
    }

    fn read(sent: impl Iterator<Item = serde_json::Result<Sent>>) -> Option<Self> {
        let entries: Vec<Entry> = sent.map(|sent| sent.ok()?.entry()).collect::<Option<_>>()?;
        let mut places = BTreeMap::new();
        let mut place = |key| {
            let free = places.len();
            *places.entry(key).or_insert(free)
        };
        let places: Vec<usize> = entries.iter().map(|entry| place(entry.key())).collect();
        // Of two of one manager's, the later one is meant, in the place of the first.
        let mut managers = Vec::with_capacity(entries.len());
        for (entry, place) in entries.into_iter().zip(places) {
            match managers.get_mut(place) {
                Some(known) => *known = entry,
                None => managers.push(entry),
            }
        }
        Some(Self(managers))
    }

    /// The JSON of the entries, in the order in which they are shown; nothing when there are none.
    pub fn encode(mut self) -> Vec<u8> {
        if self.0.is_empty() {
            return Vec::new();
        }
        self.0.sort_by(|a, b| {
            let seconds = |entry: &Entry| entry.time.map_or(0, Timestamp::as_second);
            (a.operation, seconds(a), &a.manager, &a.api_version, &a.subresource).cmp(&(
                b.operation,
                seconds(b),
                &b.manager,
                &b.api_version,
                &b.subresource,
            ))
        });
        let mut out = Vec::with_capacity(512);
        for (at, entry) in self.0.iter().enumerate() {
            out.push(if at == 0 { b'[' } else { b',' });
            entry.write(&mut out);
        }
        out.push(b']');
        out
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The entries.
    pub fn entries(&self) -> &[Entry] {
        &self.0
    }

    pub(super) fn find(&self, like: &Entry) -> Option<&Entry> {
        self.0.iter().find(|entry| entry.is_same_manager(like))
    }

    /// Makes `entry` what its manager owns.
    pub(super) fn put(&mut self, entry: Entry) {
        match self.0.iter_mut().find(|known| known.is_same_manager(&entry)) {
            Some(known) => *known = entry,
            None => self.0.push(entry),
        }
    }

    pub(super) fn drop(&mut self, like: &Entry) {
        self.0.retain(|entry| !entry.is_same_manager(like));
    }
}

/// The name a manager goes by.
pub(super) fn name_of(manager: &str) -> String {
    if manager.is_empty() { NAMELESS } else { manager }.to_owned()
}

/// Whether two lists of owners differ in nothing but times.
pub fn is_same_but_for_times(a: &[u8], b: &[u8]) -> bool {
    if a == b {
        return true;
    }
    let timeless = |encoded| {
        let mut managers = Managers::decode(encoded);
        managers.0.iter_mut().for_each(|entry| entry.time = None);
        managers
    };
    // Upstream compares position by position, and so times may matter by the order they make.
    timeless(a) == timeless(b)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn sent(manager: &str, operation: &str, version: &str, field: &str) -> Value {
        json!({
            "manager": manager,
            "operation": operation,
            "apiVersion": version,
            "fieldsType": "FieldsV1",
            "fieldsV1": {field: {}},
        })
    }

    fn decoded(list: &[Value]) -> Managers {
        Managers::decode(Value::from(list).to_string().as_bytes())
    }

    #[test]
    fn of_two_entries_of_one_manager_the_later_is_meant() {
        let list = [
            sent("a", "Apply", "v1", "f:a"),
            sent("a", "Update", "v1", "f:b"),
            sent("b", "Apply", "v1", "f:c"),
            sent("a", "Update", "v2", "f:d"),
            sent("a", "Apply", "v2", "f:e"),
            sent("a", "Update", "v1", "f:f"),
        ];
        let managers = decoded(&list);
        let want: Vec<Entry> = [4, 5, 2, 3].map(|at| decoded(&list[at..=at]).0.remove(0)).into();
        assert_eq!(managers.entries(), want);
    }

    #[test]
    fn many_owners_are_read_in_little_more_than_the_time_to_read_their_texts() {
        // Where each is looked for in all others, this takes minutes.
        let count = 100_000;
        let list: Vec<Value> = (0..count)
            .map(|it| sent(&format!("a-manager-with-a-long-name-{it:06}"), "Apply", "v1", "f:a"))
            .collect();
        assert_eq!(decoded(&list).entries().len(), count);
    }

    #[test]
    fn requests_that_state_too_many_owners_state_none() {
        let list: Vec<Value> =
            (0..=STATED_MAX).map(|it| sent(&it.to_string(), "Apply", "v1", "f:a")).collect();
        let stated = |list: &[Value]| Stated::of(Some(&Value::from(list)));
        assert!(matches!(
            stated(&list[1..]),
            Stated::Managers(managers) if managers.entries().len() == STATED_MAX
        ));
        assert!(matches!(stated(&list), Stated::Nothing));
    }
}
