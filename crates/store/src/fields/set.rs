//! Sets of paths: a tree whose nodes say whether they are in the set themselves.

use std::{cmp::Ordering, fmt};

use super::Element;

/// A set of paths. The empty path is never in it: nobody owns a whole object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Set {
    /// Sorted. None is empty: each is in the set, or something below it is.
    pub(super) nodes: Vec<Node>,
}

/// What the set has at one element, and below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) element: Element,
    pub(super) is_member: bool,
    pub(super) below: Set,
}

/// The way from an object to something in it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Path(pub Vec<Element>);

impl fmt::Display for Path {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|element| element.fmt(f))
    }
}

impl Set {
    /// The set of these paths, each made of names of fields.
    pub fn of(paths: &[&[&str]]) -> Self {
        let mut set = Self::default();
        for path in paths {
            let path = path.iter().map(|name| Element::field(name)).collect::<Vec<_>>();
            set.insert(&path);
        }
        set
    }

    /// Whether there is nothing in it.
    pub fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Adds a path.
    pub fn insert(&mut self, path: &[Element]) {
        let Some((first, rest)) = path.split_first() else { return };
        let at = match self.find(first) {
            Ok(at) => at,
            Err(at) => {
                let element = first.clone();
                self.nodes.insert(at, Node { element, is_member: false, below: Self::default() });
                at
            }
        };
        match rest {
            [] => self.nodes[at].is_member = true,
            _ => self.nodes[at].below.insert(rest),
        }
    }

    /// Whether a path is in it.
    pub fn has(&self, path: &[Element]) -> bool {
        let Some((first, rest)) = path.split_first() else { return false };
        let Ok(at) = self.find(first) else { return false };
        match rest {
            [] => self.nodes[at].is_member,
            _ => self.nodes[at].below.has(rest),
        }
    }

    /// What is in the set at `element`: whether the element is, and the paths below it.
    pub(super) fn at(&self, element: &Element) -> Option<(bool, &Self)> {
        let node = &self.nodes[self.find(element).ok()?];
        Some((node.is_member, &node.below))
    }

    /// What is in the set at the field `name`.
    pub(super) fn at_field(&self, name: &str) -> Option<(bool, &Self)> {
        let at = self.nodes.binary_search_by(|node| match &node.element {
            Element::Field(field) => (**field).cmp(name),
            Element::Key(_) | Element::Value(_) | Element::Index(_) => Ordering::Greater,
        });
        let node = &self.nodes[at.ok()?];
        Some((node.is_member, &node.below))
    }

    fn find(&self, element: &Element) -> Result<usize, usize> {
        self.nodes.binary_search_by(|node| node.element.cmp(element))
    }

    /// Adds what is at one element, unless that is nothing. The elements must come in order.
    pub(super) fn push(&mut self, element: &Element, is_member: bool, below: Self) {
        if is_member || !below.is_empty() {
            self.nodes.push(Node { element: element.clone(), is_member, below });
        }
    }

    /// What is in either.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let mut all = Self::default();
        for pair in pairs(&self.nodes, &other.nodes) {
            all.nodes.push(match pair {
                (Some(node), None) | (None, Some(node)) => node.clone(),
                (Some(a), Some(b)) => Node {
                    element: a.element.clone(),
                    is_member: a.is_member || b.is_member,
                    below: a.below.union(&b.below),
                },
                (None, None) => continue,
            });
        }
        all
    }

    /// What is in both.
    #[must_use]
    pub fn intersection(&self, other: &Self) -> Self {
        let mut both = Self::default();
        let is_smaller = self.nodes.len() <= other.nodes.len();
        let (few, many) = if is_smaller { (self, other) } else { (other, self) };
        for node in &few.nodes {
            let Ok(at) = many.find(&node.element) else { continue };
            let found = &many.nodes[at];
            let (a, b) = if is_smaller { (node, found) } else { (found, node) };
            both.push(&a.element, a.is_member && b.is_member, a.below.intersection(&b.below));
        }
        both
    }

    /// What is in this set and not in the other.
    #[must_use]
    pub fn difference(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        for pair in pairs(&self.nodes, &other.nodes) {
            match pair {
                (Some(node), None) => rest.nodes.push(node.clone()),
                (Some(a), Some(b)) => {
                    let below = a.below.difference(&b.below);
                    rest.push(&a.element, a.is_member && !b.is_member, below);
                }
                (None, _) => {}
            }
        }
        rest
    }

    /// What is in this set and neither in the other nor below anything that is.
    #[must_use]
    pub fn outside(&self, other: &Self) -> Self {
        let mut rest = Self::default();
        for pair in pairs(&self.nodes, &other.nodes) {
            match pair {
                (Some(node), None) => rest.nodes.push(node.clone()),
                (Some(a), Some(b)) if !b.is_member => {
                    rest.push(&a.element, a.is_member, a.below.outside(&b.below));
                }
                (None | Some(_), _) => {}
            }
        }
        rest
    }

    /// Whether all of `other` is in this set.
    pub fn contains(&self, other: &Self) -> bool {
        other.nodes.iter().all(|node| {
            self.at(&node.element).is_some_and(|(is_member, below)| {
                (is_member || !node.is_member) && below.contains(&node.below)
            })
        })
    }

    /// Whether anything is in both.
    pub fn meets(&self, other: &Self) -> bool {
        let is_smaller = self.nodes.len() < other.nodes.len();
        let (few, many) = if is_smaller { (self, other) } else { (other, self) };
        few.nodes.iter().any(|node| {
            many.at(&node.element).is_some_and(|(is_member, below)| {
                (is_member && node.is_member) || below.meets(&node.below)
            })
        })
    }

    /// All paths: of each object those to its own fields first, then those further down.
    pub fn paths(&self) -> Vec<Path> {
        let mut paths = Vec::new();
        self.collect_paths(&mut Vec::new(), &mut paths);
        paths
    }

    fn collect_paths(&self, prefix: &mut Vec<Element>, paths: &mut Vec<Path>) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            let mut path = prefix.clone();
            path.push(node.element.clone());
            paths.push(Path(path));
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            prefix.push(node.element.clone());
            node.below.collect_paths(prefix, paths);
            prefix.pop();
        }
    }

    /// How many paths there are.
    pub fn count(&self) -> usize {
        self.nodes.iter().map(|node| usize::from(node.is_member) + node.below.count()).sum()
    }

    /// The texts of the paths, in the same order. The last is the one that takes what is left of
    /// `room`, a number of bytes, which becomes less by those of all.
    pub fn texts(&self, room: &mut usize) -> Vec<String> {
        let mut texts = Vec::new();
        self.collect_texts(&mut String::new(), room, &mut texts);
        texts
    }

    fn collect_texts(&self, prefix: &mut String, room: &mut usize, texts: &mut Vec<String>) {
        for node in self.nodes.iter().filter(|node| node.is_member) {
            if *room == 0 {
                return;
            }
            let text = format!("{prefix}{}", node.element);
            *room = room.saturating_sub(text.len());
            texts.push(text);
        }
        for node in self.nodes.iter().filter(|node| !node.below.is_empty()) {
            if *room == 0 {
                return;
            }
            let length = prefix.len();
            prefix.push_str(&node.element.to_string());
            node.below.collect_texts(prefix, room, texts);
            prefix.truncate(length);
        }
    }
}

/// The nodes of two sets, side by side.
fn pairs<'a>(
    a: &'a [Node],
    b: &'a [Node],
) -> impl Iterator<Item = (Option<&'a Node>, Option<&'a Node>)> {
    let (mut a, mut b) = (a.iter().peekable(), b.iter().peekable());
    std::iter::from_fn(move || {
        let order = match (a.peek(), b.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => a.element.cmp(&b.element),
        };
        Some(match order {
            Ordering::Less => (a.next(), None),
            Ordering::Greater => (None, b.next()),
            Ordering::Equal => (a.next(), b.next()),
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_and_what_is_below_it_are_different_things() {
        let parent = Set::of(&[&["a"]]);
        let child = Set::of(&[&["a", "b"]]);
        assert_eq!(parent.difference(&child), parent);
        assert_eq!(child.difference(&parent), child);
        assert!(child.outside(&parent).is_empty());
        assert_eq!(parent.outside(&child), parent);
        assert!(parent.intersection(&child).is_empty());
        assert!(!parent.meets(&child) && !parent.contains(&child));
        let both = parent.union(&child);
        assert!(both.contains(&parent) && both.meets(&child));
        let shown: Vec<_> = both.paths().iter().map(ToString::to_string).collect();
        assert_eq!(shown, [".a", ".a.b"]);
        assert_eq!((both.texts(&mut 100), both.count()), (shown, 2));
        assert_eq!(both.texts(&mut 2), [".a"]);
    }
}
