//! A schema of a definition, read once: what fields there are, and what may be in them.

use std::{collections::BTreeMap, sync::OnceLock};

use serde_json::Value;

use super::rules::Programs;
use crate::{re2::Pattern, resource::Text, strategy::Json};

/// The members that every object of the API has.
pub(super) const META_FIELDS: [&str; 3] = ["apiVersion", "kind", "metadata"];

/// A schema, or a part of one.
#[derive(Debug, Default)]
pub struct Schema {
    /// The JSON type; empty when none is said.
    pub kind: String,
    /// What the text or number stands for.
    pub format: String,
    /// Whether null is a value here.
    pub is_nullable: bool,
    /// Whether fields that nobody described are kept.
    pub keeps_unknown: bool,
    /// Whether a whole object of some kind is here.
    pub is_embedded: bool,
    /// Whether an integer or a text may be here.
    pub is_int_or_string: bool,
    /// What there is when nothing is given.
    pub default: Option<Value>,
    /// The fields of an object.
    pub properties: BTreeMap<String, Self>,
    /// The other fields of an object.
    pub additional: Additional,
    /// The elements of a list.
    pub items: Option<Box<Self>>,
    /// What a list is to its owners: `atomic`, `set` or `map`.
    pub list_type: Option<String>,
    /// The fields by which elements are told apart.
    pub list_keys: Vec<Text>,
    /// Whether an object has one owner as a whole.
    pub is_atomic: bool,
    /// The rules, as expressions.
    pub rules: Vec<Rule>,
    /// Whether there are rules here or for anything in here.
    pub has_rules: bool,
    /// What values must be like.
    pub limits: Limits,
}

/// What the fields may be that are not named.
#[derive(Debug, Default)]
pub enum Additional {
    /// Nothing is said.
    #[default]
    Unsaid,
    /// Anything, or nothing.
    Allowed(bool),
    /// Values of one sort.
    Of(Box<Schema>),
}

/// What values must be like, beyond their type.
#[derive(Debug, Default)]
pub struct Limits {
    pub(super) required: Vec<String>,
    pub(super) choices: Option<Vec<Value>>,
    pub(super) pattern: Option<Shape>,
    pub(super) maximum: Option<(f64, bool)>,
    pub(super) minimum: Option<(f64, bool)>,
    pub(super) multiple_of: Option<f64>,
    pub(super) length: [Option<u64>; 2],
    pub(super) items: [Option<u64>; 2],
    pub(super) properties: [Option<u64>; 2],
    pub(super) all_of: Vec<Schema>,
    pub(super) any_of: Vec<Schema>,
    pub(super) one_of: Vec<Schema>,
    pub(super) not: Option<Box<Schema>>,
}

/// What texts must look like.
#[derive(Debug)]
pub(super) struct Shape {
    pub(super) text: String,
    /// Read when somebody first asks for it: most never are.
    read: OnceLock<Option<Pattern>>,
}

impl Shape {
    /// Whether a text does not look like it.
    pub(super) fn refuses(&self, text: &str) -> bool {
        let read = self.read.get_or_init(|| Pattern::new(&self.text).ok());
        read.as_ref().is_some_and(|pattern| !pattern.is_found_in(text))
    }
}

/// One of `x-kubernetes-validations`.
#[derive(Debug, Default)]
pub struct Rule {
    /// The expression.
    pub rule: String,
    /// What is said when it does not hold.
    pub message: String,
    /// An expression that makes the message.
    pub message_expression: String,
    /// The reason of the error.
    pub reason: String,
    /// The field the error is about.
    pub field_path: String,
    /// Whether the rule also holds where there was nothing before, if that is said.
    pub old_optional: Option<bool>,
    programs: OnceLock<Programs>,
}

impl Schema {
    /// Reads a schema. What it may not contain is found elsewhere.
    pub fn read(value: &Value) -> Self {
        let Some(schema) = value.as_object() else { return Self::default() };
        let text = |key: &str| schema.get(key).and_then(Value::as_str).unwrap_or_default();
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
        let properties = schema.get("properties").and_then(Value::as_object);
        let list_keys = schema.get("x-kubernetes-list-map-keys");
        let mut read = Self {
            kind: text("type").to_owned(),
            format: text("format").to_owned(),
            is_nullable: flag("nullable"),
            keeps_unknown: flag("x-kubernetes-preserve-unknown-fields"),
            is_embedded: flag("x-kubernetes-embedded-resource"),
            is_int_or_string: flag("x-kubernetes-int-or-string"),
            default: schema.get("default").filter(|value| !value.is_null()).cloned(),
            properties: properties
                .into_iter()
                .flatten()
                .map(|(name, value)| (name.clone(), Self::read(value)))
                .collect(),
            additional: match schema.get("additionalProperties") {
                None | Some(Value::Null) => Additional::Unsaid,
                Some(Value::Bool(is_allowed)) => Additional::Allowed(*is_allowed),
                Some(value) => Additional::Of(Box::new(Self::read(value))),
            },
            items: schema.get("items").filter(|it| it.is_object()).map(boxed),
            list_type: schema
                .get("x-kubernetes-list-type")
                .and_then(Value::as_str)
                .map(str::to_owned),
            list_keys: texts(list_keys).map(|key| key.to_owned().into()).collect(),
            is_atomic: text("x-kubernetes-map-type") == "atomic",
            rules: schema
                .get("x-kubernetes-validations")
                .and_then(Value::as_array)
                .into_iter()
                .flatten()
                .map(Rule::read)
                .collect(),
            has_rules: false,
            limits: Limits::read(schema),
        };
        let parts = read.properties.values().chain(read.items.as_deref());
        let has_rules = parts.chain(read.additional.schema()).any(|part| part.has_rules);
        read.has_rules = has_rules || !read.rules.is_empty();
        read
    }

    /// What the field `name` is.
    pub fn field(&self, name: &str) -> Option<&Self> {
        self.properties.get(name).or_else(|| self.additional.schema())
    }

    /// Whether a value is what it was before, as far as its schema can tell: elements of lists that
    /// are maps are known by their keys, and members that nobody described are never known again.
    pub(super) fn is_same(&self, new: &Value, old: &Value) -> bool {
        match (new, old) {
            (Value::Array(new), Value::Array(old)) if self.list_type.as_deref() == Some("map") => {
                if new.len() != old.len() {
                    return false;
                }
                let old = Keyed::of(self, old);
                let items = self.items.as_deref();
                let is_same = |new: &Value| {
                    items.zip(old.find(new)).is_some_and(|(items, old)| items.is_same(new, old))
                };
                new.iter().all(is_same)
            }
            (Value::Object(new), Value::Object(old)) => {
                let is_same = |(name, new): (&String, &Value)| {
                    let schema = self.field(name);
                    schema.zip(old.get(name)).is_some_and(|(schema, old)| schema.is_same(new, old))
                };
                new.len() == old.len() && new.iter().all(is_same)
            }
            (new, old) => new == old,
        }
    }

    /// Whether a predicate holds for this schema, or for one in it that describes values.
    pub fn any(&self, is_so: &impl Fn(&Self) -> bool) -> bool {
        is_so(self)
            || self.properties.values().any(|schema| schema.any(is_so))
            || self.items.as_deref().is_some_and(|schema| schema.any(is_so))
            || self.additional.schema().is_some_and(|schema| schema.any(is_so))
    }
}

/// The elements of an old list by the keys that tell them apart; of lists that are no maps none is
/// ever known again.
pub(super) struct Keyed<'a> {
    keys: &'a [Text],
    elements: BTreeMap<String, &'a Value>,
}

impl<'a> Keyed<'a> {
    /// The elements of a list that `schema` describes.
    pub(super) fn of(schema: &'a Schema, list: &'a [Value]) -> Self {
        let is_map = schema.list_type.as_deref() == Some("map");
        let keys = if is_map { &*schema.list_keys } else { &[] };
        let mut elements = BTreeMap::new();
        for element in list.iter().filter(|_| !keys.is_empty()) {
            // Of those that have the same keys the first one counts.
            if let Some(key) = key(keys, element) {
                elements.entry(key).or_insert(element);
            }
        }
        Self { keys, elements }
    }

    /// The element that an element of a new list was, where that can be told.
    pub(super) fn find(&self, item: &Value) -> Option<&'a Value> {
        if self.elements.is_empty() {
            return None;
        }
        self.elements.get(&key(self.keys, item)?).copied()
    }
}

/// The keys of an element as one text; nothing unless it has them all, and all are plain values.
fn key(names: &[Text], element: &Value) -> Option<String> {
    let mut text = String::new();
    for name in names {
        let value = element.get(&**name)?;
        if matches!(value, Value::Null | Value::Array(_) | Value::Object(_)) {
            return None;
        }
        text.push_str(&value.to_string());
        text.push('\0');
    }
    Some(text)
}

impl Additional {
    /// The schema of what is not named, if there is one.
    pub fn schema(&self) -> Option<&Schema> {
        match self {
            Self::Of(schema) => Some(schema),
            Self::Unsaid | Self::Allowed(_) => None,
        }
    }
}

impl Limits {
    fn read(schema: &Json) -> Self {
        let number = |key: &str| schema.get(key).and_then(Value::as_f64);
        let count = |key: &str| schema.get(key).and_then(Value::as_u64);
        let flag = |key: &str| schema.get(key).and_then(Value::as_bool).unwrap_or_default();
        let many = |key: &str| -> Vec<Schema> {
            let list = schema.get(key).and_then(Value::as_array);
            list.into_iter().flatten().map(Schema::read).collect()
        };
        let pattern = schema.get("pattern").and_then(Value::as_str).filter(|it| !it.is_empty());
        let choices = schema.get("enum").and_then(Value::as_array);
        Self {
            required: texts(schema.get("required")).map(str::to_owned).collect(),
            choices: choices.filter(|list| !list.is_empty()).cloned(),
            pattern: pattern.map(|text| Shape { text: text.to_owned(), read: OnceLock::new() }),
            maximum: number("maximum").map(|most| (most, flag("exclusiveMaximum"))),
            minimum: number("minimum").map(|least| (least, flag("exclusiveMinimum"))),
            multiple_of: number("multipleOf"),
            length: [count("minLength"), count("maxLength")],
            items: [count("minItems"), count("maxItems")],
            properties: [count("minProperties"), count("maxProperties")],
            all_of: many("allOf"),
            any_of: many("anyOf"),
            one_of: many("oneOf"),
            not: schema.get("not").filter(|it| it.is_object()).map(boxed),
        }
    }
}

impl Rule {
    fn read(value: &Value) -> Self {
        let text = |key: &str| value[key].as_str().unwrap_or_default().to_owned();
        Self {
            rule: text("rule"),
            message: text("message"),
            message_expression: text("messageExpression"),
            reason: text("reason"),
            field_path: text("fieldPath"),
            old_optional: value["optionalOldSelf"].as_bool(),
            programs: OnceLock::new(),
        }
    }

    /// Whether what was before may be nothing.
    pub(super) fn is_old_optional(&self) -> bool {
        self.old_optional == Some(true)
    }

    /// The expressions, read when somebody first asks for them.
    pub(super) fn programs(&self) -> &Programs {
        let (rule, message) = (&self.rule, &self.message_expression);
        self.programs.get_or_init(|| Programs::new(rule, message, self.is_old_optional()))
    }
}

fn boxed(value: &Value) -> Box<Schema> {
    Box::new(Schema::read(value))
}

fn texts(value: Option<&Value>) -> impl Iterator<Item = &str> {
    value.and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
