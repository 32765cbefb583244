//! What somebody may have meant.

/// `; did you mean "image"?`, or nothing when no known word is near.
pub(crate) fn did_you_mean<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    match nearest(word, known) {
        Some(near) => format!("; did you mean {near:?}?"),
        None => String::new(),
    }
}

/// The known word that a typing mistake turns into `word`, if there is one. Letter case alone is
/// the smallest of mistakes.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let lower = word.to_lowercase();
    // One mistake in short words, two in longer ones: more is another word.
    let allowed = match lower.chars().count() {
        0..=2 => 0,
        3..=5 => 1,
        _ => 2,
    };
    known
        .into_iter()
        .map(|known| (strsim::osa_distance(&lower, &known.to_lowercase()), known))
        .filter(|(distance, _)| *distance <= allowed)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, known)| known)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_mistakes_are_recognised_and_other_words_are_not() {
        let known = ["image", "imagePullPolicy", "name", "env", "envFrom"];
        for (word, want) in [
            ("imagee", Some("image")),
            ("imagePullPolcy", Some("imagePullPolicy")),
            ("imagepullpolicy", Some("imagePullPolicy")),
            ("naem", Some("name")),
            ("command", None),
            ("x", None),
            ("", None),
        ] {
            assert_eq!(nearest(word, known), want, "{word}");
        }
        assert_eq!(did_you_mean("naem", known), "; did you mean \"name\"?");
        assert_eq!(did_you_mean("other", known), "");
    }
}
