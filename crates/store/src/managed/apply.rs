//! Server-side apply: a configuration is laid over an object, and whoever applies it owns what it
//! says. What its manager applied before and does not any more goes, unless others own it too.

use std::collections::BTreeMap;

use lockstep_api::{Status, strategy::Json};
use serde_json::Value;

use super::{Conflict, Entry, Managers, Operation, UNOWNED, Writer, conflict, last_applied};
use crate::fields::{self, Place, Set};

/// Who owns the fields of an object that nobody has been watched changing.
const BEFORE: &str = "before-first-apply";

/// What an apply comes to.
#[derive(Clone, Debug)]
pub struct Applied {
    /// The object, not defaulted.
    pub object: Json,
    /// The owners of its fields, encoded.
    pub managers: Vec<u8>,
}

impl Writer<'_> {
    /// Applies `config` to an object that is `live`, with the owners in `known`. `blank` is an
    /// object of its kind with nothing in it.
    ///
    /// # Errors
    /// 409 when the configuration has other values for what others own, unless it `is_forced`.
    pub fn applied(
        &self,
        (blank, live): (&Json, &Json),
        config: &Json,
        known: &[u8],
        is_forced: bool,
    ) -> Result<Applied, Status> {
        let mut managers = self.reconciled(Managers::decode(known));
        if managers.is_empty() {
            let before = Writer { manager: BEFORE, ..*self };
            let comparison = fields::compare(self.place(), blank, live, self.reset);
            managers = before.take(blank, live, managers, comparison);
        }
        let outcome = self.apply(live, config, managers.clone(), is_forced);
        let outcome = match outcome {
            Err(conflicts) if self.manager == last_applied::MANAGER => {
                match last_applied::unexpected(self, live, conflicts) {
                    left if left.is_empty() => self.apply(live, config, managers, true),
                    left => Err(left),
                }
            }
            outcome => outcome,
        };
        let (mut object, managers) = outcome.map_err(|found| conflict::status(&found))?;
        if self.manager == last_applied::MANAGER {
            last_applied::renew(&mut object, config);
        }
        Ok(Applied { object, managers: managers.encode() })
    }

    pub(super) fn apply(
        &self,
        live: &Json,
        config: &Json,
        mut managers: Managers,
        is_forced: bool,
    ) -> Result<(Json, Managers), Vec<Conflict>> {
        let place = self.place();
        let mut config = config.clone();
        // Stored objects do not say what they are.
        config.retain(|name, _| name != "apiVersion" && name != "kind");
        let (config, was) = (Value::Object(config), Value::Object(live.clone()));
        let merged = fields::merge(place, &was, &config);
        let fields = fields::owned(place, &config).outside(self.reset);
        let mut entry = self.entry(Operation::Apply, fields);
        let last = managers.find(&entry).cloned();
        entry.time = last.as_ref().and_then(|last| last.time);
        managers.put(entry.clone());
        let new = match last.filter(|last| !last.fields.is_empty()) {
            Some(last) => object(self.prune(merged, &managers, &last)),
            None => object(merged),
        };
        let comparison = fields::compare(place, live, &new, self.reset);
        if !is_forced {
            let found = self.conflicts(live, &new, &managers, (&entry, &comparison));
            if !found.is_empty() {
                return Err(found);
            }
        }
        let mut managers = self.release(live, &new, managers, comparison, Some(&entry)).managers;
        // When nothing changes, neither does the time.
        if new != *live {
            entry.time = Some(self.moment());
        }
        entry.fields = entry.fields.difference(&UNOWNED);
        if entry.fields.is_empty() {
            managers.drop(&entry);
        } else {
            managers.put(entry);
        }
        Ok((new, managers))
    }

    /// What others own and the new version changes.
    fn conflicts(
        &self,
        live: &Json,
        new: &Json,
        managers: &Managers,
        (applier, comparison): (&Entry, &fields::Comparison),
    ) -> Vec<Conflict> {
        let applier = applier.identifier();
        let mut sorted: BTreeMap<String, &Entry> =
            managers.entries().iter().map(|entry| (entry.identifier(), entry)).collect();
        sorted.remove(&applier);
        let mut versions = BTreeMap::from([(self.api_version, comparison.written())]);
        let mut found = Vec::new();
        for owner in sorted.into_values() {
            let written = versions.entry(&owner.api_version).or_insert_with_key(|version| {
                let found = self.compare_in(version, live, new);
                found.map(|comparison| comparison.written()).unwrap_or_default()
            });
            let fields = owner.fields.intersection(written);
            if !fields.is_empty() {
                found.push(Conflict { owner: owner.with(fields) });
            }
        }
        found
    }

    /// The merged object without what its manager applied the last time, not this time, and nobody
    /// else owns.
    fn prune(&self, merged: Value, managers: &Managers, last: &Entry) -> Value {
        let version = last.api_version.as_str();
        let Some(place) = self.versions.place(version) else { return merged };
        let Some(merged) = self.convert(&merged, self.api_version, version) else { return merged };
        let last = fields::named_too(Some(place), &last.fields);
        let pruned = fields::remove(place, &merged, &last);
        let pruned = self.keep_owned((&merged, version), pruned, managers);
        let all = named(place, &merged);
        let gone = all.difference(&named(place, &pruned)).intersection(&last);
        let pruned = fields::remove(place, &merged, &gone);
        self.convert(&pruned, version, self.api_version).unwrap_or(pruned)
    }

    /// `pruned` with what somebody owns put back from `merged`; both are of one version.
    fn keep_owned(
        &self,
        (merged, version): (&Value, &str),
        pruned: Value,
        managers: &Managers,
    ) -> Value {
        let mut owned: BTreeMap<&str, Set> = BTreeMap::new();
        for entry in managers.entries() {
            let all = owned.entry(entry.api_version.as_str()).or_default();
            *all = all.union(&entry.fields);
        }
        // The version both are of comes first: others may need those fields to be converted.
        let mut versions: Vec<&str> = owned.keys().copied().collect();
        versions.sort_by_key(|other| *other != version);
        let mut pruned = pruned;
        for other in versions {
            let Some(place) = self.versions.place(other) else { continue };
            let Some(all) = self.convert(merged, version, other) else { continue };
            let Some(left) = self.convert(&pruned, version, other) else { continue };
            let kept = fields::named_too(Some(place), &owned[other]);
            let gone = named(place, &all).difference(&named(place, &left).union(&kept));
            let kept = fields::remove(place, &all, &gone);
            pruned = self.convert(&kept, other, version).unwrap_or(pruned);
        }
        pruned
    }

    fn convert(&self, value: &Value, from: &str, to: &str) -> Option<Value> {
        if from == to {
            return Some(value.clone());
        }
        let object = value.as_object()?;
        self.versions.convert(object, from, to).map(Value::Object)
    }
}

/// All fields of an object, with members of structs that are there only through what they have.
fn named(place: Place<'_>, value: &Value) -> Set {
    fields::named_too(Some(place), &fields::owned(place, value))
}

fn object(value: Value) -> Json {
    let Value::Object(object) = value else { return Json::new() };
    object
}
