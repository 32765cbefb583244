//! A unified diff of two JSON values, for messages.

use serde::Serialize;
use serde_json::{Value, ser::PrettyFormatter};

/// Lines shown around a change.
const CONTEXT: usize = 3;
/// Beyond so many pairs of lines the changed part is shown as replaced whole.
const PAIRS_MAX: usize = 1 << 21;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Line {
    Kept,
    Removed,
    Added,
}

/// The difference from `old` to `new`, as `diff -u` shows it, without file names.
pub(super) fn unified(old: &Value, new: &Value) -> String {
    let (old, new) = (pretty(old), pretty(new));
    let old: Vec<&str> = old.lines().collect();
    let new: Vec<&str> = new.lines().collect();
    let script = script(&old, &new);
    let mut text = String::new();
    let mut at = 0;
    while let Some(first) = script[at..].iter().position(|line| *line != Line::Kept) {
        let start = (at + first).saturating_sub(CONTEXT).max(at);
        let end = hunk_end(&script, at + first);
        push_hunk(&mut text, &script, start..end, (&old, &new));
        at = end;
    }
    text
}

/// Where the hunk ends whose first change is at `change`: after as many kept lines as are shown,
/// unless another change comes close enough to be shown with it.
fn hunk_end(script: &[Line], change: usize) -> usize {
    let mut last = change;
    for (at, line) in script.iter().enumerate().skip(change) {
        if *line != Line::Kept {
            last = at;
        } else if at - last > 2 * CONTEXT {
            break;
        }
    }
    (last + 1 + CONTEXT).min(script.len())
}

fn push_hunk(
    text: &mut String,
    script: &[Line],
    range: std::ops::Range<usize>,
    (old, new): (&[&str], &[&str]),
) {
    let count = |lines: &[Line], skipped: Line| lines.iter().filter(|l| **l != skipped).count();
    let mut in_old = count(&script[..range.start], Line::Added);
    let mut in_new = count(&script[..range.start], Line::Removed);
    let hunk = &script[range];
    let place = |start: usize, length: usize| match length {
        0 => format!("{start},0"),
        1 => format!("{}", start + 1),
        _ => format!("{},{length}", start + 1),
    };
    let (from, to) = (count(hunk, Line::Added), count(hunk, Line::Removed));
    text.extend(["@@ -", &place(in_old, from), " +", &place(in_new, to), " @@\n"]);
    for line in hunk {
        let (sign, shown) = match line {
            Line::Kept => (' ', old[in_old]),
            Line::Removed => ('-', old[in_old]),
            Line::Added => ('+', new[in_new]),
        };
        in_old += usize::from(*line != Line::Added);
        in_new += usize::from(*line != Line::Removed);
        text.push(sign);
        text.push_str(shown);
        text.push('\n');
    }
}

/// What to do with each line to get from `old` to `new`.
fn script(old: &[&str], new: &[&str]) -> Vec<Line> {
    let head = old.iter().zip(new).take_while(|(a, b)| a == b).count();
    let tail =
        old[head..].iter().rev().zip(new[head..].iter().rev()).take_while(|(a, b)| a == b).count();
    let (a, b) = (&old[head..old.len() - tail], &new[head..new.len() - tail]);
    let mut script = vec![Line::Kept; head];
    if a.len().saturating_mul(b.len()) > PAIRS_MAX {
        script.extend(std::iter::repeat_n(Line::Removed, a.len()));
        script.extend(std::iter::repeat_n(Line::Added, b.len()));
    } else {
        script.extend(shortest(a, b));
    }
    script.extend(std::iter::repeat_n(Line::Kept, tail));
    script
}

fn shortest(a: &[&str], b: &[&str]) -> Vec<Line> {
    // common[i][j] is how many lines a[i..] and b[j..] have in common, in order.
    let width = b.len() + 1;
    let mut common = vec![0_u32; (a.len() + 1) * width];
    for i in (0..a.len()).rev() {
        for j in (0..b.len()).rev() {
            common[i * width + j] = if a[i] == b[j] {
                common[(i + 1) * width + j + 1] + 1
            } else {
                common[(i + 1) * width + j].max(common[i * width + j + 1])
            };
        }
    }
    let (mut i, mut j) = (0, 0);
    let mut script = Vec::with_capacity(a.len() + b.len());
    while i < a.len() || j < b.len() {
        if i < a.len() && j < b.len() && a[i] == b[j] {
            script.push(Line::Kept);
            (i, j) = (i + 1, j + 1);
        } else if j == b.len()
            || (i < a.len() && common[(i + 1) * width + j] >= common[i * width + j + 1])
        {
            script.push(Line::Removed);
            i += 1;
        } else {
            script.push(Line::Added);
            j += 1;
        }
    }
    script
}

fn pretty(value: &Value) -> String {
    let mut bytes = Vec::new();
    let formatter = PrettyFormatter::with_indent(b" ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, formatter);
    value.serialize(&mut serializer).expect("JSON values can always be written");
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::{Line, script, unified};

    #[test]
    fn changes_are_shown_with_their_surroundings() {
        let old = json!({"a": 1, "b": 2, "c": 3, "d": 4, "e": 5, "f": 6, "g": 7, "h": 8});
        let mut new = old.clone();
        new["d"] = json!(9);
        assert_eq!(
            unified(&old, &new),
            "@@ -2,7 +2,7 @@\n  \"a\": 1,\n  \"b\": 2,\n  \"c\": 3,\n- \"d\": 4,\n+ \"d\": 9,\n  \"e\": 5,\n  \"f\": 6,\n  \"g\": 7,\n"
        );
        assert_eq!(unified(&old, &old), "");
    }

    #[test]
    fn changes_far_apart_are_shown_apart() {
        let old: serde_json::Value = (0..40).collect();
        let mut new = old.clone();
        new[5] = json!("x");
        new[30] = json!("y");
        assert_eq!(unified(&old, &new).matches("@@ -").count(), 2);
        new[12] = json!("z");
        assert_eq!(unified(&old, &new).matches("@@ -").count(), 2, "close ones are joined");
    }

    proptest! {
        #[test]
        fn a_script_leads_from_old_to_new(
            old in proptest::collection::vec("[ab]", 0..12),
            new in proptest::collection::vec("[ab]", 0..12),
        ) {
            let a: Vec<&str> = old.iter().map(String::as_str).collect();
            let b: Vec<&str> = new.iter().map(String::as_str).collect();
            let (mut i, mut j, mut made) = (0, 0, Vec::new());
            for line in script(&a, &b) {
                match line {
                    Line::Kept => { made.push(a[i]); i += 1; j += 1; }
                    Line::Removed => i += 1,
                    Line::Added => { made.push(b[j]); j += 1; }
                }
            }
            prop_assert_eq!((made, i, j), (b.clone(), a.len(), b.len()));
        }
    }
}
