//! Lists, whole or in pages, and the tokens that lead from one page to the next.

use std::sync::Arc;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use lockstep_api::Status;
use serde::{Deserialize, Serialize};

use crate::{Revision, object::Object, snapshot::Snapshot, watch::Filter};

const TOKEN_VERSION: &str = "meta.k8s.io/v1";

/// Some of the objects of a list, in the order of their keys.
#[derive(Clone, Debug)]
pub struct Page {
    /// The objects.
    pub items: Vec<Arc<Object>>,
    /// The revision of the whole list.
    pub revision: Revision,
    /// Where the next page begins, unless this is the last.
    pub next: Option<Token>,
    /// How many objects come after this page; unknown when selectors are used.
    pub remaining: Option<usize>,
}

/// Up to `limit` objects of `snapshot` that `filter` selects, beginning where `token` says.
pub fn list(
    snapshot: &Snapshot,
    filter: &Filter,
    token: Option<&Token>,
    limit: Option<usize>,
) -> Page {
    let start = token.map(|token| token.start.as_str());
    let table = &*filter.resource.table;
    let revision = snapshot.revision();
    if let Some(key) = filter.only_key() {
        let found = snapshot.get(table, &key).filter(|object| filter.selects(object));
        let is_ahead = start.is_none_or(|start| start <= key.as_str());
        let items = found.filter(|_| is_ahead).cloned().into_iter().collect();
        return Page { items, revision, next: None, remaining: None };
    }
    let limit = limit.filter(|limit| *limit > 0).unwrap_or(usize::MAX);
    let mut found = snapshot
        .range(table, filter.namespace.as_deref(), start)
        .filter(|(_, object)| filter.selects(object));
    let mut items = Vec::new();
    let mut last = None;
    for (key, object) in found.by_ref().take(limit) {
        items.push(Arc::clone(object));
        last = Some(key);
    }
    let Some(last) = last.filter(|_| found.next().is_some()) else {
        return Page { items, revision, next: None, remaining: None };
    };
    let start = format!("{last}\0");
    // Counting walks to the end of the list: the first page does it for all that follow.
    let remaining = filter.selectors.is_empty().then(|| {
        let counted = token.and_then(|token| token.left).filter(|left| *left > items.len());
        counted.map_or_else(|| found.count() + 1, |left| left - items.len())
    });
    let next = Some(Token { revision: Some(revision), start, left: remaining });
    Page { items, revision, next, remaining }
}

/// A continue token.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Token {
    /// The revision of the list; none to go on with whatever is there now.
    pub revision: Option<Revision>,
    /// The first key of the next page.
    pub start: String,
    /// How many objects there are from `start` on, when that was counted.
    pub left: Option<usize>,
}

#[derive(Serialize, Deserialize)]
struct Wire {
    #[serde(default)]
    v: String,
    #[serde(default)]
    rv: i64,
    #[serde(default)]
    start: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    left: Option<usize>,
}

impl Token {
    /// The token as clients carry it.
    pub fn encode(&self) -> String {
        let rv = self.revision.map_or(-1, |revision| i64::try_from(revision).unwrap_or(i64::MAX));
        let (v, start) = (TOKEN_VERSION.to_owned(), self.start.clone());
        let wire = Wire { v, rv, start, left: self.left };
        let json = serde_json::to_vec(&wire).expect("a token is plain data");
        URL_SAFE_NO_PAD.encode(json)
    }

    /// Reads a token.
    ///
    /// # Errors
    /// 400 when it is none of ours.
    pub fn decode(text: &str) -> Result<Self, Status> {
        let refuse = |why: String| {
            Status::bad_request(format!("invalid continue token: continue key is not valid{why}"))
        };
        let bytes = URL_SAFE_NO_PAD.decode(text).map_err(|error| refuse(format!(": {error}")))?;
        let wire: Wire =
            serde_json::from_slice(&bytes).map_err(|error| refuse(format!(": {error}")))?;
        if wire.v != TOKEN_VERSION {
            return Err(refuse(format!(
                ": server does not recognize this encoded version {}",
                wire.v
            )));
        }
        if wire.rv == 0 {
            let why = ": incorrect encoded start resourceVersion (version meta.k8s.io/v1)";
            return Err(refuse(why.to_owned()));
        }
        if wire.start.is_empty() {
            let why = ": encoded start key empty (version meta.k8s.io/v1)";
            return Err(refuse(why.to_owned()));
        }
        if !is_clean(&wire.start) {
            return Err(refuse(format!(": {}", wire.start)));
        }
        let revision = Revision::try_from(wire.rv).ok();
        // What is there now may be more or fewer than there were.
        let left = wire.left.filter(|_| revision.is_some());
        Ok(Self { revision, start: wire.start, left })
    }

    /// The answer when the revision of the token is no longer kept: 410 with a token that goes on
    /// from the same place in whatever is there now.
    pub fn expired(&self) -> Status {
        let mut status = Status::expired(
            "The provided continue parameter is too old to display a consistent list result. You \
             can start a new list without the continue parameter, or use the continue token in this \
             response to retrieve the remainder of the results. Continuing with the provided token \
             results in an inconsistent list - objects that were created, modified, or deleted \
             between the time the first chunk was returned and now may show up in the list.",
        );
        let fresh = Self { revision: None, start: self.start.clone(), left: None };
        status.metadata.continue_token = fresh.encode();
        status
    }
}

/// Whether a key has no empty and no relative steps.
fn is_clean(key: &str) -> bool {
    key.strip_prefix('/').unwrap_or(key).split('/').all(|step| !matches!(step, "" | "." | ".."))
}
