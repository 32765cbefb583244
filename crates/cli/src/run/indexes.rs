//! Index lists as a Job's status writes them: `0,2-5,7`.

/// Sorted, inclusive ranges. Ranges are never taken apart.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Indexes(Vec<(u32, u32)>);

impl Indexes {
    /// Reads a list; what makes no sense in it is left out.
    pub(crate) fn read(text: &str) -> Self {
        let ranges = text.split(',').filter_map(|part| {
            let (from, to) = part.split_once('-').unwrap_or((part, part));
            let (from, to) = (from.parse().ok()?, to.parse().ok()?);
            (from <= to).then_some((from, to))
        });
        let mut ranges: Vec<(u32, u32)> = ranges.collect();
        ranges.sort_unstable();
        Self(ranges)
    }

    /// How many of `from..to` there are.
    pub(crate) fn count_in(&self, from: u32, to: u32) -> u32 {
        // Ranges that end before `from` can be skipped without a look at each.
        let start = self.0.partition_point(|&(_, last)| last < from);
        let touching = self.0[start..].iter().take_while(|&&(first, _)| first < to);
        touching.map(|&(first, last)| (last.min(to - 1) + 1).saturating_sub(first.max(from))).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_are_counted_without_taking_them_apart() {
        let cases = [
            ("", 0, 10, 0),
            ("0", 0, 10, 1),
            ("0,2-5,7", 0, 10, 6),
            ("0,2-5,7", 3, 6, 3),
            ("0,2-5,7", 5, 6, 1),
            ("0,2-5,7", 6, 7, 0),
            ("0-4294967295", 1, 4_294_967_295, 4_294_967_294),
            ("x,3-1,,4", 0, 10, 1),
        ];
        for (text, from, to, want) in cases {
            assert_eq!(Indexes::read(text).count_in(from, to), want, "{text} in {from}..{to}");
        }
    }
}
