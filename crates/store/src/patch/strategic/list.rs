//! How lists merge: by key where the schema gives one, as sets of values otherwise.

use std::collections::BTreeMap;

use lockstep_api::{Status, schema::SchemaNode};
use serde_json::Value;

use super::{DIRECTIVE, bad_directive, cleaned, go_value, merge_map};

/// What tells the elements of a list apart.
#[derive(Clone, Copy)]
enum Identity {
    /// The value itself.
    Value,
    /// The value of this member.
    Key(&'static str),
}

impl Identity {
    fn of<'a>(&self, item: &'a Value) -> Option<&'a Value> {
        match self {
            Self::Value => Some(item),
            Self::Key(key) => item.as_object()?.get(*key),
        }
    }

    /// Refuses elements that lack the key.
    fn check(&self, items: &[Value]) -> Result<(), Status> {
        let Self::Key(key) = self else {
            return Ok(());
        };
        match items.iter().find(|item| self.of(item).is_none()) {
            None => Ok(()),
            Some(item) => Err(Status::bad_request(format!(
                "map: {} does not contain declared merge key: {key}",
                go_value(item)
            ))),
        }
    }
}

/// Where in a list each element is first found.
struct Index {
    identity: Identity,
    /// By the text of what tells it apart.
    places: BTreeMap<String, usize>,
}

impl Index {
    fn new(items: &[Value], identity: Identity) -> Self {
        let mut index = Self { identity, places: BTreeMap::new() };
        for (at, item) in items.iter().enumerate() {
            index.note(item, at);
        }
        index
    }

    fn note(&mut self, item: &Value, at: usize) {
        if let Some(identity) = self.identity.of(item) {
            self.places.entry(identity.to_string()).or_insert(at);
        }
    }

    fn place(&self, item: &Value) -> Option<usize> {
        self.places.get(&self.identity.of(item)?.to_string()).copied()
    }
}

/// The two lists as one: the patch's elements in the patch's order, the others between them where
/// they were.
pub(super) fn merge(
    original: Vec<Value>,
    patch: Vec<Value>,
    node: Option<SchemaNode>,
) -> Result<Vec<Value>, Status> {
    let identity = identity(&original, &patch, node)?;
    let (original, patch) = match identity {
        Identity::Value => (original, patch),
        Identity::Key(_) => run_directives(original, patch, identity)?,
    };
    identity.check(&original)?;
    identity.check(&patch)?;
    let merged = union(original.clone(), &patch, identity, node)?;
    Ok(arranged(merged, &patch, &original, identity))
}

/// The list after a patch that also says in which order its elements are to be; nothing when there
/// is no list on either side.
pub(super) fn ordered(
    current: Option<Vec<Value>>,
    patched: Option<Vec<Value>>,
    order: &[Value],
    node: Option<SchemaNode>,
) -> Result<Option<Vec<Value>>, Status> {
    let empty = Vec::new();
    let before = current.clone().unwrap_or_default();
    let identity = identity(&before, patched.as_ref().unwrap_or(&empty), node)?;
    identity.check(order)?;
    if let Some(patched) = &patched {
        check_order(patched, order, identity)?;
    }
    let is_merged = node.is_some_and(|node| node.strategies().merge);
    let merged = match (current, patched) {
        (None, None) => return Ok(None),
        (Some(current), None) => current,
        (None, Some(patched)) => patched.into_iter().filter_map(cleaned).collect(),
        (Some(current), Some(patched)) if is_merged => merge(current, patched, node)?,
        (Some(_), Some(patched)) => patched,
    };
    identity.check(&merged)?;
    Ok(Some(arranged(merged, order, &before, identity)))
}

fn identity(
    original: &[Value],
    patch: &[Value],
    node: Option<SchemaNode>,
) -> Result<Identity, Status> {
    let all = || original.iter().chain(patch);
    if all().any(Value::is_array) {
        return Err(crate::patch::unprocessable("lists of lists are not supported".to_owned()));
    }
    let maps = all().filter(|item| item.is_object()).count();
    if maps == 0 {
        return Ok(Identity::Value);
    }
    if maps != all().count() {
        return Err(Status::bad_request("list elements are not all of one type"));
    }
    match node.and_then(|node| node.merge_key()) {
        Some(key) => Ok(Identity::Key(key)),
        None => Err(Status::bad_request("cannot merge lists without merge key")),
    }
}

/// Carries out the elements of the patch that are directives. What is left of both lists is merged.
fn run_directives(
    mut original: Vec<Value>,
    patch: Vec<Value>,
    identity: Identity,
) -> Result<(Vec<Value>, Vec<Value>), Status> {
    let mut plain = Vec::with_capacity(patch.len());
    let mut deleted = Vec::new();
    let mut is_replacement = false;
    for item in patch {
        let Some(directive) = item.get(DIRECTIVE) else {
            plain.push(item);
            continue;
        };
        match directive.as_str() {
            Some("replace") => is_replacement = true,
            Some("delete") => {
                identity.check(std::slice::from_ref(&item))?;
                deleted.push(item);
            }
            Some("merge") => {
                return Err(Status::bad_request(
                    "merging lists cannot yet be specified in the patch",
                ));
            }
            _ => return Err(bad_directive(&item)),
        }
    }
    let deleted = Index::new(&deleted, identity);
    original.retain(|item| deleted.place(item).is_none());
    Ok(if is_replacement { (plain, Vec::new()) } else { (original, plain) })
}

/// All elements of both lists; those of the patch merged into those of the same identity.
fn union(
    mut merged: Vec<Value>,
    patch: &[Value],
    identity: Identity,
    node: Option<SchemaNode>,
) -> Result<Vec<Value>, Status> {
    let items = node.and_then(|node| node.items());
    let mut index = Index::new(&merged, identity);
    for item in patch {
        match (index.place(item), item) {
            (None, item) => {
                index.note(item, merged.len());
                merged.push(item.clone());
            }
            (Some(at), Value::Object(patch)) => {
                if let Value::Object(original) = &mut merged[at] {
                    merge_map(original, patch.clone(), items)?;
                }
            }
            (Some(_), _) => {}
        }
    }
    Ok(merged)
}

/// `merged` with the elements `order` names in that order, and the others among them as they were
/// in `before`, as far as that goes.
fn arranged(
    merged: Vec<Value>,
    order: &[Value],
    before: &[Value],
    identity: Identity,
) -> Vec<Value> {
    let order = Index::new(order, identity);
    let before = Index::new(before, identity);
    let (mut named, others): (Vec<_>, Vec<_>) =
        merged.into_iter().partition(|item| order.place(item).is_some());
    named.sort_by_cached_key(|item| order.place(item));
    let was_at = |item: Value| (before.place(&item), item);
    let mut others: Vec<_> = others.into_iter().map(was_at).collect();
    others.sort_by_key(|(at, _)| at.unwrap_or(usize::MAX));
    let mut arranged = Vec::with_capacity(named.len() + others.len());
    let mut others = others.into_iter().peekable();
    for (at, item) in named.into_iter().map(was_at) {
        let is_earlier = |other: Option<usize>| matches!((other, at), (Some(a), Some(b)) if a < b);
        while let Some((_, other)) = others.next_if(|(other, _)| is_earlier(*other)) {
            arranged.push(other);
        }
        arranged.push(item);
    }
    arranged.extend(others.map(|(_, other)| other));
    arranged
}

/// Refuses a patch list that is not in the order it asks for itself.
fn check_order(patch: &[Value], order: &[Value], identity: Identity) -> Result<(), Status> {
    if order.is_empty() {
        return Ok(());
    }
    let mut rest = order.iter();
    for item in patch.iter().filter(|item| item.get(DIRECTIVE).is_none()) {
        if !rest.any(|named| identity.of(named) == identity.of(item)) {
            return Err(Status::bad_request(
                "The order in patch list doesn't match $setElementOrder list",
            ));
        }
    }
    Ok(())
}
