//! What decoding finds wrong, and where.

use crate::schema::Field;

/// More problems than this are not listed.
const PROBLEMS_MAX: usize = 100;

/// What was found on the way.
#[derive(Default)]
pub(super) struct Findings {
    /// Unknown and doubled fields.
    pub(super) strict: Vec<String>,
    /// The first value of a wrong type.
    pub(super) mistyped: Option<String>,
    /// What ended the decoding.
    pub(super) fatal: Option<String>,
    /// The way from the root to where decoding is.
    pub(super) path: Vec<Step>,
}

/// One step of the way from the root to where we are.
pub(super) enum Step {
    /// A field of a struct, and the Go name of the struct.
    Field(&'static str, &'static Field),
    /// A key of free-form JSON.
    Key(String),
    /// A position in a list.
    Index(usize),
}

impl Findings {
    /// `spec.containers[0]`.
    fn path_to(&self, name: &str) -> String {
        let mut text = String::new();
        let mut add = |name: &str| {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(name);
        };
        let mut steps = self.path.iter().peekable();
        let mut segment = String::new();
        while let Some(step) = steps.next() {
            match step {
                Step::Field(_, field) => field.name.clone_into(&mut segment),
                Step::Key(key) => segment.clone_from(key),
                Step::Index(_) => {}
            }
            while let Some(Step::Index(at)) = steps.peek() {
                segment = format!("{segment}[{at}]");
                steps.next();
            }
            add(&segment);
        }
        add(name);
        text
    }

    /// Notes that the field `name` of where we are is unknown or doubled.
    pub(super) fn note(&mut self, problem: &str, name: &str) {
        if self.strict.len() < PROBLEMS_MAX {
            let text = format!("{problem} {}", super::quoted(&self.path_to(name)));
            if !self.strict.contains(&text) {
                self.strict.push(text);
            }
        }
    }

    /// `json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type ...`.
    pub(super) fn type_error(&self, found: &str, wanted: &str) -> String {
        let mut fields = self.path.iter().filter_map(|step| match step {
            Step::Field(owner, field) => Some((owner, field)),
            Step::Key(_) | Step::Index(_) => None,
        });
        let Some((owner, _)) = fields.clone().next_back() else {
            return format!("json: cannot unmarshal {found} into Go value of type {wanted}");
        };
        let mut path = String::new();
        for (_, field) in &mut fields {
            for part in [field.via, field.name] {
                if !part.is_empty() {
                    path.push('.');
                    path.push_str(part);
                }
            }
        }
        let owner = owner.rsplit_once('.').map_or(*owner, |(_, name)| name);
        format!(
            "json: cannot unmarshal {found} into Go struct field {owner}{path} of type {wanted}"
        )
    }
}
