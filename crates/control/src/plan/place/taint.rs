//! Taints of nodes and what pods tolerate.

use k8s_openapi::api::core::v1::{Taint, Toleration};

/// Whether one of the tolerations bears the taint.
pub fn tolerates(tolerations: &[Toleration], taint: &Taint) -> bool {
    tolerations.iter().any(|toleration| bears(toleration, taint))
}

/// The first taint with one of `effects` that nothing bears.
pub fn untolerated<'a>(
    tolerations: &[Toleration],
    taints: &'a [Taint],
    effects: &[&str],
) -> Option<&'a Taint> {
    taints
        .iter()
        .find(|taint| effects.contains(&taint.effect.as_str()) && !tolerates(tolerations, taint))
}

/// Whether this toleration bears the taint.
pub(super) fn bears(toleration: &Toleration, taint: &Taint) -> bool {
    let text = |value: &'_ Option<String>| value.as_deref().unwrap_or_default().to_owned();
    let (effect, key) = (text(&toleration.effect), text(&toleration.key));
    if !effect.is_empty() && effect != taint.effect {
        return false;
    }
    if !key.is_empty() && key != taint.key {
        return false;
    }
    match toleration.operator.as_deref() {
        Some("Exists") => true,
        None | Some("" | "Equal") => {
            !key.is_empty() && text(&toleration.value) == text(&taint.value)
        }
        Some(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tolerations_match_by_key_value_and_effect() {
        let taint = Taint {
            key: "k".to_owned(),
            value: Some("v".to_owned()),
            effect: "NoSchedule".to_owned(),
            time_added: None,
        };
        // (key, operator, value, effect, expected)
        let cases = [
            ("k", "Equal", "v", "NoSchedule", true),
            ("k", "", "v", "", true),
            ("k", "Equal", "w", "", false),
            ("k", "Exists", "", "", true),
            ("k", "Exists", "", "NoExecute", false),
            ("", "Exists", "", "", true),
            ("", "Equal", "", "", false),
            ("other", "Exists", "", "", false),
        ];
        for (key, operator, value, effect, want) in cases {
            let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
            let toleration = Toleration {
                key: some(key),
                operator: some(operator),
                value: some(value),
                effect: some(effect),
                toleration_seconds: None,
            };
            let got = bears(&toleration, &taint);
            assert_eq!(got, want, "{key} {operator} {value} {effect}");
        }
    }
}
