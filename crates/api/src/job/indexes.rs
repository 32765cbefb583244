//! Lists of completion indexes as users and controllers write them: `1,3-5,7`.

use crate::quote::quoted;

/// Counts the indexes of a list, or says what is wrong with it.
///
/// Ranges have a first and a larger last index; everything ascends and is below `completions`.
///
/// # Errors
/// In the words of upstream, the first thing that is wrong.
pub fn validate_list(list: &str, completions: i32) -> Result<i32, String> {
    let mut total = 0;
    let mut previous: Option<i32> = None;
    for fragment in list.split(',').filter(|_| !list.is_empty()) {
        let (first, last) = parse_fragment(fragment, completions)?;
        if let Some(previous) = previous.filter(|previous| *previous >= first) {
            return Err(format!("non-increasing order, previous: {previous}, current: {first}"));
        }
        total += last - first + 1;
        previous = Some(last);
    }
    Ok(total)
}

/// The first index that is in both lists. Fragments that cannot be understood are skipped: they are
/// reported elsewhere.
pub fn first_overlap(completed: &str, failed: &str, completions: i32) -> Option<i32> {
    let intervals = |list: &str| -> Vec<(i32, i32)> {
        list.split(',').filter_map(|part| parse_fragment(part, completions).ok()).collect()
    };
    let (completed, failed) = (intervals(completed), intervals(failed));
    let (mut left, mut right) = (completed.iter().peekable(), failed.iter().peekable());
    while let (Some(&&(c_first, c_last)), Some(&&(f_first, f_last))) = (left.peek(), right.peek()) {
        if c_first <= f_last && f_first <= c_last {
            return Some(c_first.max(f_first));
        }
        if c_first <= f_first {
            left.next();
        } else {
            right.next();
        }
    }
    None
}

/// `N` or `A-B` with A below B.
fn parse_fragment(fragment: &str, completions: i32) -> Result<(i32, i32), String> {
    let mut parts = fragment.split('-');
    let (first, last) = (parts.next().unwrap_or_default(), parts.next());
    if parts.next().is_some() {
        return Err(format!(
            "the fragment {} violates the requirement that an index interval can have at most two \
             parts separated by '-'",
            quoted(fragment)
        ));
    }
    let first = parse_index(first, completions)?;
    let Some(last) = last else { return Ok((first, first)) };
    let last = parse_index(last, completions)?;
    if first >= last {
        return Err(format!("non-increasing order, previous: {first}, current: {last}"));
    }
    Ok((first, last))
}

fn parse_index(text: &str, completions: i32) -> Result<i32, String> {
    let index: i64 = text
        .parse()
        .map_err(|_| format!("cannot convert string to integer for index: {}", quoted(text)))?;
    i32::try_from(index)
        .ok()
        .filter(|index| *index < completions)
        .ok_or_else(|| format!("too large index: {}", quoted(text)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    // rule: job 1.2.5
    #[test]
    fn lists_ascend_below_completions() {
        let cases = [
            ("", Ok(0)),
            ("0", Ok(1)),
            ("1,3-5,7", Ok(5)),
            ("1-2,3", Ok(3)),
            ("+1,002", Ok(2)),
            (
                "1--3",
                Err(
                    "the fragment \"1--3\" violates the requirement that an index interval can have at most two parts separated by '-'",
                ),
            ),
            ("-1", Err("cannot convert string to integer for index: \"\"")),
            ("1-", Err("cannot convert string to integer for index: \"\"")),
            (" 1", Err("cannot convert string to integer for index: \" 1\"")),
            ("1,", Err("cannot convert string to integer for index: \"\"")),
            ("10", Err("too large index: \"10\"")),
            ("99999999999", Err("too large index: \"99999999999\"")),
            ("1-10", Err("too large index: \"10\"")),
            ("3-3", Err("non-increasing order, previous: 3, current: 3")),
            ("3,2", Err("non-increasing order, previous: 3, current: 2")),
            ("1-4,4", Err("non-increasing order, previous: 4, current: 4")),
        ];
        for (list, want) in cases {
            assert_eq!(validate_list(list, 10), want.map_err(str::to_owned), "{list}");
        }
    }

    // rule: job 1.2.5, job 1.6.26
    #[test]
    fn overlaps_are_found_at_the_first_common_index() {
        let cases = [
            ("", "", None),
            ("0-3", "", None),
            ("0-3,7", "4-6", None),
            ("0-3", "2", Some(2)),
            ("5", "1,3-9", Some(5)),
            ("x,5", "5", Some(5)),
            ("x,0,2-4,6-8", "y,1,8,9", Some(8)),
            ("0,2-4,x", "1,9,y", None),
            ("1--2,3", "3", Some(3)),
        ];
        for (completed, failed, want) in cases {
            assert_eq!(first_overlap(completed, failed, 10), want, "{completed} {failed}");
        }
    }

    proptest! {
        #[test]
        fn any_text_is_counted_or_refused(list in "[0-9,+ -]{0,20}|.*", completions in 0..50_i32) {
            if let Ok(total) = validate_list(&list, completions) {
                prop_assert!(total <= completions.max(0));
            }
            let _ = first_overlap(&list, "0-9", completions);
        }
    }
}
