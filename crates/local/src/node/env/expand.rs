//! `$(NAME)` in values, commands and arguments.

/// Replaces `$(NAME)` where `value_of` knows the name and leaves it as it is otherwise; `$$` is a
/// `$`.
pub(super) fn expand(text: &str, value_of: impl Fn(&str) -> Option<String>) -> String {
    let mut expanded = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(dollar) = rest.find('$') {
        expanded.push_str(&rest[..dollar]);
        let after = &rest[dollar + 1..];
        if let Some(more) = after.strip_prefix('$') {
            expanded.push('$');
            rest = more;
            continue;
        }
        let name = after.strip_prefix('(').and_then(|open| open.split_once(')'));
        let Some((name, more)) = name else {
            // Not a reference, or one that never ends.
            expanded.push('$');
            rest = after;
            continue;
        };
        match value_of(name) {
            Some(value) => expanded.push_str(&value),
            None => {
                expanded.push_str("$(");
                expanded.push_str(name);
                expanded.push(')');
            }
        }
        rest = more;
    }
    expanded.push_str(rest);
    expanded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn references_expand_as_in_a_kubelet() {
        let value_of = |name: &str| match name {
            "VAR_A" => Some("A".to_owned()),
            "VAR_EMPTY" => Some(String::new()),
            "VAR_REF" => Some("$(VAR_A)".to_owned()),
            _ => None,
        };
        let cases = [
            ("$(VAR_A)", "A"),
            ("___$(VAR_A)___", "___A___"),
            ("$(VAR_A)$(VAR_A)", "AA"),
            ("$(VAR_EMPTY)", ""),
            ("$(VAR_REF)", "$(VAR_A)"),
            ("$(NOPE)", "$(NOPE)"),
            ("$$(VAR_A)", "$(VAR_A)"),
            ("$$$(VAR_A)", "$A"),
            ("$$$$(VAR_A)", "$$(VAR_A)"),
            ("$VAR_A", "$VAR_A"),
            ("$(VAR_A", "$(VAR_A"),
            ("foo$", "foo$"),
            ("foo$$", "foo$"),
            ("$()", "$()"),
            ("$(-)", "$(-)"),
            ("$?_-$", "$?_-$"),
            ("ü$(VAR_A)ü", "üAü"),
        ];
        for (text, want) in cases {
            assert_eq!(expand(text, value_of), want, "{text}");
        }
    }
}
