//! What a write that is no apply does to owners: whoever changes a field has it from then on.

use std::{borrow::Cow, collections::BTreeMap};

use jiff::Unit;
use lockstep_api::strategy::Json;

use super::{Entry, Managers, Operation, Stated, UNOWNED, Writer, cap::cap, entry::name_of};
use crate::fields::{self, Comparison, Set};

/// What a write makes of the owners of an object.
pub(super) struct Outcome {
    pub(super) managers: Managers,
    /// What the write changed, in the version of the request.
    pub(super) comparison: Comparison,
}

impl Writer<'_> {
    /// The owners of a new object. `blank` is an object of its kind with nothing in it.
    pub fn created(&self, blank: &Json, object: &Json, stated: Stated) -> Vec<u8> {
        let managers = match stated {
            Stated::Managers(managers) => managers,
            Stated::Nothing | Stated::Reset => Managers::default(),
        };
        let comparison = self.compare(blank, object);
        self.take(blank, object, managers, comparison).encode()
    }

    /// The owners of an object that was `live`, with those in `known`, and is now `new`.
    pub fn updated<'a>(
        &self,
        live: &Json,
        new: &Json,
        known: &'a [u8],
        stated: Stated,
    ) -> Cow<'a, [u8]> {
        let managers = match stated {
            // Objects nobody owned anything of when they were last written stay so.
            Stated::Nothing if known.is_empty() => return Cow::Borrowed(known),
            Stated::Reset => return Cow::Owned(Vec::new()),
            Stated::Nothing => None,
            Stated::Managers(managers) => Some(managers),
        };
        let comparison = self.compare(live, new);
        if comparison.is_empty() {
            return managers.map_or(Cow::Borrowed(known), |it| Cow::Owned(it.encode()));
        }
        let managers = managers.unwrap_or_else(|| Managers::decode(known));
        Cow::Owned(self.take(live, new, managers, comparison).encode())
    }

    fn compare(&self, live: &Json, new: &Json) -> Comparison {
        fields::compare(self.place(), live, new, self.reset)
    }

    /// The owners after a write that changed what `comparison` says.
    pub(super) fn take(
        &self,
        live: &Json,
        new: &Json,
        managers: Managers,
        comparison: Comparison,
    ) -> Managers {
        let managers = self.reconciled(managers);
        let outcome = self.release(live, new, managers, comparison, None);
        let Outcome { mut managers, comparison } = outcome;
        let taken = comparison.written().difference(&UNOWNED);
        if !taken.is_empty() {
            let mut entry = self.entry(Operation::Update, taken);
            entry.time = Some(self.moment());
            if let Some(known) = managers.find(&entry) {
                entry.fields = entry.fields.union(&known.fields);
            }
            managers.put(entry);
        }
        cap(&mut managers);
        managers
    }

    /// Takes from all owners but `applier` what the write has changed.
    pub(super) fn release(
        &self,
        live: &Json,
        new: &Json,
        mut managers: Managers,
        comparison: Comparison,
        applier: Option<&Entry>,
    ) -> Outcome {
        let applier = applier.map(Entry::identifier);
        let mut versions = BTreeMap::from([(self.api_version.to_owned(), Some(comparison))]);
        managers.0.retain_mut(|entry| {
            if applier.as_ref().is_some_and(|applier| *applier == entry.identifier()) {
                return !entry.fields.is_empty();
            }
            let found = versions
                .entry(entry.api_version.clone())
                .or_insert_with_key(|version| self.compare_in(version, live, new));
            // Nobody can own anything in a version that is not served.
            let Some(Comparison { added, modified, removed }) = found else { return false };
            for gone in [added, modified, removed] {
                if entry.fields.meets(gone) {
                    entry.fields = entry.fields.difference(gone);
                }
            }
            !entry.fields.is_empty()
        });
        let comparison = versions.remove(self.api_version).flatten().unwrap_or_default();
        Outcome { managers, comparison }
    }

    /// The owners as they are when the schema of the kind has changed since they were noted.
    pub(super) fn reconciled(&self, mut managers: Managers) -> Managers {
        for entry in &mut managers.0 {
            let place = self.versions.place(&entry.api_version);
            if let Some(fields) = place.and_then(|place| fields::reconciled(place, &entry.fields)) {
                entry.fields = fields;
            }
        }
        managers
    }

    /// What differs in another version of the kind.
    pub(super) fn compare_in(&self, version: &str, live: &Json, new: &Json) -> Option<Comparison> {
        let place = self.versions.place(version)?;
        let live = self.versions.convert(live, self.api_version, version)?;
        let new = self.versions.convert(new, self.api_version, version)?;
        Some(fields::compare(place, &live, &new, &Set::default()))
    }

    /// An entry of the writer's.
    pub(super) fn entry(&self, operation: Operation, fields: Set) -> Entry {
        Entry {
            manager: name_of(self.manager),
            operation,
            api_version: self.api_version.to_owned(),
            subresource: self.subresource.to_owned(),
            time: None,
            fields,
        }
    }

    /// The moment of the write as entries have it: in whole seconds.
    pub(super) fn moment(&self) -> jiff::Timestamp {
        let round = jiff::TimestampRound::new().smallest(Unit::Second).mode(jiff::RoundMode::Floor);
        self.now.round(round).unwrap_or(self.now)
    }
}
