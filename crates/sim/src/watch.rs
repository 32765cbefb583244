//! The watches of one controller: each lags behind the API on its own, and may be lost.

use std::{collections::BTreeMap, sync::Arc};

use lockstep_store::{Object, Revision};

use crate::api::{Api, Kind};

/// What a controller hears of one kind.
#[derive(Clone, Debug)]
pub enum News {
    /// An object is there, in this version.
    Seen(Arc<Object>),
    /// An object is gone; this was its last version.
    Gone(Arc<Object>),
    /// A list begins.
    Listing,
    /// An object is not listed any more; this was the last version heard of.
    Missing(Arc<Object>),
    /// A list ends.
    Listed,
}

/// How much a controller has heard of: the last revision of each kind, if it watches it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// Of JobSets.
    pub sets: Revision,
    /// Of Jobs.
    pub jobs: Revision,
    /// Of pods.
    pub pods: Revision,
    /// Of Workloads.
    pub workloads: Revision,
}

impl Seen {
    /// What these watches have brought.
    pub fn by(watches: &[Watch]) -> Self {
        let of = |kind| watches.iter().find(|watch| watch.kind == kind).map_or(0, Watch::seen);
        Self {
            sets: of(Kind::JobSet),
            jobs: of(Kind::Job),
            pods: of(Kind::Pod),
            workloads: of(Kind::Workload),
        }
    }
}

/// A watch over all objects of one kind.
#[derive(Debug)]
pub struct Watch {
    kind: Kind,
    /// Everything up to here was heard of; nothing when it has to begin with a list.
    seen: Option<Revision>,
    known: BTreeMap<Box<str>, Arc<Object>>,
}

impl Watch {
    /// A watch that has not begun.
    pub fn new(kind: Kind) -> Self {
        Self { kind, seen: None, known: BTreeMap::new() }
    }

    /// What it brings news of.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The last revision heard of.
    pub fn seen(&self) -> Revision {
        self.seen.unwrap_or_default()
    }

    /// The connection breaks, and what happened meanwhile is no longer known to the server: the
    /// watch begins again with a list.
    pub fn lose(&mut self) {
        self.seen = None;
    }

    /// Whether there is something to hear.
    pub fn is_behind(&self, api: &Api) -> bool {
        let table = &api.resource(self.kind).table;
        self.seen.is_none_or(|seen| seen < api.snapshot().table_revision(table))
    }

    /// Hears the next `max` things, or a whole list.
    pub fn hear(&mut self, api: &Api, max: usize) -> Vec<News> {
        let events = self.seen.and_then(|seen| api.events_after(self.kind, seen, max));
        let Some(events) = events else { return self.list(api) };
        let mut news = Vec::with_capacity(events.len());
        for event in events {
            self.seen = Some(event.revision);
            let object = Arc::clone(&event.object);
            if event.is_deletion {
                self.known.remove(&object.meta.uid);
                news.push(News::Gone(object));
            } else {
                self.known.insert(object.meta.uid.clone(), Arc::clone(&object));
                news.push(News::Seen(object));
            }
        }
        news
    }

    fn list(&mut self, api: &Api) -> Vec<News> {
        let before = std::mem::take(&mut self.known);
        let listed =
            api.list(self.kind).map(|object| (object.meta.uid.clone(), Arc::clone(object)));
        self.known = listed.collect();
        self.seen = Some(api.snapshot().revision());
        let gone = before.into_iter().filter(|(uid, _)| !self.known.contains_key(uid));
        let missing = gone.map(|(_, object)| News::Missing(object));
        let seen = self.known.values().map(|object| News::Seen(Arc::clone(object)));
        [News::Listing].into_iter().chain(missing).chain(seen).chain([News::Listed]).collect()
    }
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use lockstep_store::rest::DeleteOptions;

    use super::{News, Watch};
    use crate::{
        api::{Api, Kind},
        chance::Chance,
        manifest,
    };

    fn told(news: &[News]) -> Vec<String> {
        news.iter()
            .map(|news| match news {
                News::Seen(object) => format!("+{}", object.meta.name),
                News::Gone(object) => format!("-{}", object.meta.name),
                News::Missing(object) => format!("?{}", object.meta.name),
                News::Listing => "[".to_owned(),
                News::Listed => "]".to_owned(),
            })
            .collect()
    }

    #[test]
    fn a_lost_watch_hears_of_everything_once_more_and_of_what_went_meanwhile() {
        let mut api = Api::new(Timestamp::UNIX_EPOCH);
        let make = |api: &mut Api, name: &str| {
            api.create(Kind::Job, manifest::job(&mut Chance::new(1, "job"), name)).unwrap();
        };
        let mut watch = Watch::new(Kind::Job);
        make(&mut api, "a");
        assert!(watch.is_behind(&api));
        assert_eq!(told(&watch.hear(&api, 1)), ["[", "+a", "]"]);
        make(&mut api, "b");
        make(&mut api, "c");
        assert_eq!(told(&watch.hear(&api, 1)), ["+b"], "one thing at a time");
        watch.lose();
        let now = DeleteOptions {
            propagation: Some(lockstep_api::strategy::Propagation::Background),
            ..DeleteOptions::default()
        };
        api.delete(Kind::Job, "a", &now).unwrap();
        assert_eq!(told(&watch.hear(&api, 1)), ["[", "?a", "+b", "+c", "]"]);
        assert!(!watch.is_behind(&api));
    }
}
