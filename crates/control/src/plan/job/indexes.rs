//! Sets of completion indexes as intervals. Ranges are never expanded: a set of a hundred thousand
//! indexes in one piece costs as much as a set of one.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::Bound;

/// A set of completion indexes, kept as the fewest intervals that hold them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Indexes {
    /// First to last, both inclusive. Neighbours are always merged.
    intervals: BTreeMap<i32, i32>,
    count: i64,
}

impl Indexes {
    /// The empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// All indexes below `completions`.
    pub fn below(completions: i32) -> Self {
        let mut set = Self::new();
        set.insert_range(0, completions - 1);
        set
    }

    /// Reads a list such as `1,3-5,7`, as it may stand in a status or a rule, leniently: what
    /// makes no sense is skipped, the first index that is not below `completions` ends the list,
    /// and an end beyond it is cut.
    pub fn parse(list: &str, completions: i32) -> Self {
        let mut set = Self::new();
        for fragment in list.split(',').filter(|_| !list.is_empty()) {
            let mut parts = fragment.split('-');
            let Some(first) = parts.next().and_then(number) else { continue };
            if first >= i64::from(completions) {
                break;
            }
            let last = match parts.next().map(number) {
                None => first,
                Some(None) => continue,
                Some(Some(last)) => last.min(i64::from(completions) - 1),
            };
            let (Ok(first), Ok(last)) = (i32::try_from(first), i32::try_from(last)) else {
                continue;
            };
            set.insert_range(first, last);
        }
        set
    }

    /// Adds one index; whether it is new.
    pub fn insert(&mut self, index: i32) -> bool {
        let is_new = !self.contains(index);
        if is_new {
            self.insert_range(index, index);
        }
        is_new
    }

    /// Adds all indexes from `first` to `last`, both inclusive; nothing when they are reversed.
    pub fn insert_range(&mut self, first: i32, last: i32) {
        if first > last {
            return;
        }
        let (mut first, mut last) = (first, last);
        let touching = |set: &Self, from: i32, to: i32| {
            let reach = to.saturating_add(1);
            let (at, end) = set.intervals.range(..=reach).next_back()?;
            (end.saturating_add(1) >= from).then_some((*at, *end))
        };
        while let Some((at, end)) = touching(self, first, last) {
            self.intervals.remove(&at);
            self.count -= width(at, end);
            first = first.min(at);
            last = last.max(end);
        }
        self.intervals.insert(first, last);
        self.count += width(first, last);
    }

    /// Takes one index out; whether it was there.
    pub fn remove(&mut self, index: i32) -> bool {
        let Some((first, last)) = self.interval_of(index) else { return false };
        self.intervals.remove(&first);
        if first < index {
            self.intervals.insert(first, index - 1);
        }
        if index < last {
            self.intervals.insert(index + 1, last);
        }
        self.count -= 1;
        true
    }

    /// Adds or takes out one index.
    pub(crate) fn set(&mut self, index: i32, is_in: bool) {
        if is_in {
            self.insert(index);
        } else {
            self.remove(index);
        }
    }

    /// Adds or takes out all indexes from `first` to `last`, both inclusive.
    pub(crate) fn set_range(&mut self, first: i32, last: i32, is_in: bool) {
        // What is left of the intervals that reach over the ends is put back.
        self.insert_range(first, last);
        if is_in {
            return;
        }
        let Some((start, end)) = self.interval_of(first) else { return };
        self.intervals.remove(&start);
        self.count -= width(start, end);
        if start < first {
            self.insert_range(start, first - 1);
        }
        if last < end {
            self.insert_range(last + 1, end);
        }
    }

    /// Whether the index is in the set.
    pub fn contains(&self, index: i32) -> bool {
        self.interval_of(index).is_some()
    }

    /// How many indexes there are.
    pub fn count(&self) -> i64 {
        self.count
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.intervals.is_empty()
    }

    /// How many intervals hold them.
    pub fn pieces(&self) -> usize {
        self.intervals.len()
    }

    /// The intervals, ascending, both ends inclusive.
    pub fn intervals(&self) -> impl Iterator<Item = (i32, i32)> + '_ {
        self.intervals.iter().map(|(first, last)| (*first, *last))
    }

    /// The smallest indexes, ascending.
    pub fn iter(&self) -> impl Iterator<Item = i32> + '_ {
        self.intervals().flat_map(|(first, last)| first..=last)
    }

    /// The parts of the set between `first` and `last`, both inclusive.
    pub(crate) fn within(&self, first: i32, last: i32) -> Vec<(i32, i32)> {
        let reaches_in = self.interval_of(first).map(|(_, end)| (first, end.min(last)));
        let later = self.intervals.range((Bound::Excluded(first), Bound::Included(last)));
        let later = later.map(|(start, end)| (*start, (*end).min(last)));
        reaches_in.into_iter().chain(later).collect()
    }

    /// How many indexes both sets have: one walk over both lists of intervals.
    pub fn common(&self, other: &Self) -> i64 {
        let (mut ours, mut theirs) = (self.intervals().peekable(), other.intervals().peekable());
        let mut common = 0;
        while let (Some(&(a_first, a_last)), Some(&(b_first, b_last))) =
            (ours.peek(), theirs.peek())
        {
            let (first, last) = (a_first.max(b_first), a_last.min(b_last));
            if first <= last {
                common += width(first, last);
            }
            if a_last <= b_last {
                ours.next();
            } else {
                theirs.next();
            }
        }
        common
    }

    /// The indexes that are in exactly one of the two sets.
    pub fn difference_both_ways(&self, other: &Self) -> Vec<(i32, i32)> {
        let mut parts = self.minus(other);
        parts.extend(other.minus(self));
        parts
    }

    /// The intervals of what is in this set and not in the other.
    fn minus(&self, other: &Self) -> Vec<(i32, i32)> {
        let mut left = Vec::new();
        let mut others = other.intervals().peekable();
        for (mut first, last) in self.intervals() {
            loop {
                while others.next_if(|(_, end)| *end < first).is_some() {}
                match others.peek() {
                    Some(&(start, end)) if start <= last => {
                        if first < start {
                            left.push((first, start - 1));
                        }
                        if end >= last {
                            break;
                        }
                        first = end + 1;
                    }
                    _ => {
                        left.push((first, last));
                        break;
                    }
                }
            }
        }
        left
    }

    fn interval_of(&self, index: i32) -> Option<(i32, i32)> {
        let range = (Bound::Unbounded, Bound::Included(index));
        let (first, last) = self.intervals.range::<i32, _>(range).next_back()?;
        (*last >= index).then_some((*first, *last))
    }
}

/// One index alone, two neighbours with a comma, more with a dash.
impl fmt::Display for Indexes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (first, last)) in self.intervals().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            match i64::from(last) - i64::from(first) {
                0 => write!(f, "{comma}{first}")?,
                1 => write!(f, "{comma}{first},{last}")?,
                _ => write!(f, "{comma}{first}-{last}")?,
            }
        }
        Ok(())
    }
}

impl FromIterator<i32> for Indexes {
    fn from_iter<I: IntoIterator<Item = i32>>(indexes: I) -> Self {
        let mut set = Self::new();
        for index in indexes {
            set.insert(index);
        }
        set
    }
}

fn width(first: i32, last: i32) -> i64 {
    i64::from(last) - i64::from(first) + 1
}

/// A decimal number with an optional sign; an index is never negative, but a first number that is
/// makes its fragment start at nothing.
fn number(text: &str) -> Option<i64> {
    text.parse().ok().filter(|number| *number >= 0)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    // rule: job 1.2.6
    #[test]
    fn lists_are_read_leniently() {
        let cases = [
            ("", ""),
            ("0", "0"),
            ("0,1-foo,bar", "0"),
            ("1,3-5,7", "1,3-5,7"),
            ("1-2,3", "1-3"),
            ("foo,4", "4"),
            ("5-", ""),
            ("-5,6", "6"),
            ("2-4-9,6", "2-4,6"),
            ("8-20", "8,9"),
            ("3,10,4", "3"),
            ("7,10-12,1", "7"),
            ("5,2", "2,5"),
            ("1-4,2-6", "1-6"),
            ("99999999999999999999,4", "4"),
            ("5-3", ""),
            (" 1,2", "2"),
        ];
        for (list, want) in cases {
            assert_eq!(Indexes::parse(list, 10).to_string(), want, "{list:?}");
        }
        assert!(Indexes::parse("0-5", 0).is_empty(), "no completions, no indexes");
    }

    // rule: job 1.2.7, job 6.1.3
    #[test]
    fn sets_are_printed_in_the_fewest_intervals() {
        let cases: [(&[i32], &str); 6] = [
            (&[], ""),
            (&[4], "4"),
            (&[0, 1], "0,1"),
            (&[0, 1, 2], "0-2"),
            (&[7, 5, 4, 3, 1], "1,3-5,7"),
            (&[0, 1, 3, 4, 6], "0,1,3,4,6"),
        ];
        for (indexes, want) in cases {
            assert_eq!(indexes.iter().copied().collect::<Indexes>().to_string(), want);
        }
    }

    #[test]
    fn the_largest_set_there_can_be_is_one_interval() {
        let mut all = Indexes::below(i32::MAX);
        assert_eq!((all.count(), all.pieces()), (i64::from(i32::MAX), 1));
        all.insert_range(0, i32::MAX);
        assert_eq!(all.to_string(), "0-2147483647");
        assert!(all.remove(7));
        assert_eq!(all.pieces(), 2);
        assert_eq!(all.common(&Indexes::below(10)), 9);
    }

    fn naive(indexes: &Indexes) -> BTreeSet<i32> {
        indexes.iter().collect()
    }

    proptest! {
        #[test]
        fn a_set_behaves_as_a_plain_set_does(
            changes in proptest::collection::vec((any::<bool>(), 0..40_i32, 0..6_i32), 0..60),
            others in proptest::collection::btree_set(0..40_i32, 0..20),
        ) {
            let (mut set, mut plain) = (Indexes::new(), BTreeSet::new());
            for (adds, first, more) in changes {
                if adds {
                    set.insert_range(first, first + more);
                    plain.extend(first..=first + more);
                } else {
                    prop_assert_eq!(set.remove(first), plain.remove(&first));
                }
                prop_assert_eq!(set.count(), i64::try_from(plain.len()).unwrap());
            }
            prop_assert_eq!(naive(&set), plain.clone());
            let other: Indexes = others.iter().copied().collect();
            let common = plain.intersection(&others).count();
            prop_assert_eq!(set.common(&other), i64::try_from(common).unwrap());
            let apart: BTreeSet<i32> = set
                .difference_both_ways(&other)
                .into_iter()
                .flat_map(|(first, last)| first..=last)
                .collect();
            prop_assert_eq!(apart, plain.symmetric_difference(&others).copied().collect());
            prop_assert_eq!(Indexes::parse(&set.to_string(), 100), set.clone());
            let inside = set.within(10, 25).into_iter().flat_map(|(first, last)| first..=last);
            prop_assert!(inside.eq(plain.range(10..=25).copied()));
            let mut last_end = -2;
            for (first, last) in set.intervals() {
                prop_assert!(first > last_end + 1 && last >= first);
                last_end = last;
            }
        }

        #[test]
        fn any_text_can_be_read(list in "[0-9,-]{0,30}|.*", completions in 0..50_i32) {
            let set = Indexes::parse(&list, completions);
            prop_assert!(set.count() <= i64::from(completions));
        }
    }
}
