//! What stands against an apply: fields that others own and have other values for.

use lockstep_api::{
    Status,
    quote::quoted,
    status::{Cause, Details},
};

use super::{Entry, Operation};

/// How many bytes of fields an answer lists. Each is listed with its whole path, and what is one
/// long name to a request may be on all of them.
const LISTED_MAX: usize = 1 << 20;

/// Fields that one other manager owns.
#[derive(Clone, Debug)]
pub struct Conflict {
    /// Who owns them. Of its fields there are only those in conflict.
    pub owner: Entry,
}

/// The fields of one conflict, as they are listed.
struct Listed {
    owner: String,
    fields: Vec<String>,
}

/// 409: what an apply is answered that would take fields from others.
pub(super) fn status(conflicts: &[Conflict]) -> Status {
    let mut room = LISTED_MAX;
    let listed: Vec<Listed> = conflicts
        .iter()
        .map(|Conflict { owner }| Listed {
            owner: shown(owner),
            fields: owner.fields.texts(&mut room),
        })
        .collect();
    let count = conflicts.iter().map(|conflict| conflict.owner.fields.count()).sum();
    let cause = |owner: &str, field: &str| Cause {
        reason: "FieldManagerConflict".to_owned(),
        message: format!("conflict with {owner}"),
        field: field.to_owned(),
    };
    let causes = listed
        .iter()
        .flat_map(|Listed { owner, fields }| fields.iter().map(move |it| cause(owner, it)))
        .collect();
    Status::apply_conflict(message(&listed, count))
        .with_details(Details { causes, ..Details::default() })
}

fn message(listed: &[Listed], count: usize) -> String {
    if let ([Listed { owner, fields }], 1) = (listed, count) {
        let field = fields.join("");
        return format!("Apply failed with 1 conflict: conflict with {owner}: {field}");
    }
    let mut lines = Vec::new();
    for Listed { owner, fields } in listed.iter().filter(|it| !it.fields.is_empty()) {
        lines.push(format!("conflicts with {owner}:"));
        lines.extend(fields.iter().map(|field| format!("- {field}")));
    }
    if listed.iter().map(|it| it.fields.len()).sum::<usize>() < count {
        lines.push("- ...".to_owned());
    }
    format!("Apply failed with {count} conflicts: {}", lines.join("\n"))
}

fn shown(owner: &Entry) -> String {
    let mut text = quoted(&owner.manager);
    if !owner.subresource.is_empty() {
        text = format!("{text} with subresource {}", quoted(&owner.subresource));
    }
    match owner.operation {
        Operation::Apply => text,
        Operation::Update => format!("{text} using {}", owner.api_version),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::{Element, Set};

    fn conflict(manager: &str, fields: Set) -> Conflict {
        let owner = Entry {
            manager: manager.to_owned(),
            operation: Operation::Apply,
            api_version: "v1".to_owned(),
            subresource: String::new(),
            time: None,
            fields,
        };
        Conflict { owner }
    }

    #[test]
    fn conflicts_are_listed_by_owner_until_there_are_too_many() {
        let few = Set::of(&[&["a"], &["a", "b"]]);
        let got = status(&[conflict("a", few.clone()), conflict("b", Set::of(&[&["a"]]))]);
        let want = "Apply failed with 3 conflicts: conflicts with \"a\":\n- .a\n- .a.b\n\
                    conflicts with \"b\":\n- .a";
        assert_eq!(got.message, want);
        let mut many = Set::default();
        let long = "x".repeat(LISTED_MAX / 10);
        for it in 0..1_000 {
            many.insert(&[Element::field(&long), Element::field(&it.to_string())]);
        }
        let got = status(&[conflict("a", many), conflict("b", few)]);
        assert!(got.message.starts_with("Apply failed with 1002 conflicts: conflicts with \"a\""));
        assert!(got.message.ends_with("\n- ..."));
        assert_eq!(got.details.unwrap().causes.len(), 10);
        assert!(got.message.len() < 2 * LISTED_MAX);
    }
}
