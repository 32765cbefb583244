//! Lists whose elements can be told apart.

use lockstep_api::resource::Text;
use serde_json::Value;

use super::{Element, Place, place::ListForm};

/// The step from a list to `item`, one of its elements; `items` is their place.
///
/// # Errors
/// Why the element cannot be told from others.
pub(super) fn element_of(
    form: ListForm<'_>,
    items: Place<'_>,
    item: &Value,
) -> Result<Element, String> {
    match form {
        ListForm::Atomic => Err("invalid indexing of non-associative list".to_owned()),
        ListForm::Set => of_set(item),
        ListForm::Keyed(keys) => keyed(keys, items, item),
    }
}

fn of_set(item: &Value) -> Result<Element, String> {
    let why = match item {
        Value::Object(_) => "associative list without keys has an element that's a map type",
        Value::Array(_) => "not supported: associative list with lists as elements",
        Value::Null => "associative list without keys has an element that's an explicit null",
        Value::Bool(_) | Value::Number(_) | Value::String(_) => {
            return Ok(Element::Value(item.clone()));
        }
    };
    Err(why.to_owned())
}

fn keyed(names: &[Text], items: Place<'_>, item: &Value) -> Result<Element, String> {
    let item = match item {
        Value::Object(item) => item,
        Value::Null => {
            return Err("associative list with keys may not have a null element".to_owned());
        }
        Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => {
            return Err("associative list with keys may not have non-map elements".to_owned());
        }
    };
    let mut keys: Vec<(Box<str>, Value)> = names
        .iter()
        .filter_map(|name| {
            let value = item.get(&**name).or_else(|| items.key_default(name))?;
            Some(((**name).into(), value.clone()))
        })
        .collect();
    if keys.is_empty() {
        let listed: Vec<String> = names.iter().map(|name| format!("{name:?}")).collect();
        return Err(format!(
            "associative list with keys has an element that omits all key fields [{}] (and \
             doesn't have default values for any key fields)",
            listed.join(" ")
        ));
    }
    keys.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(Element::Key(keys))
}

/// The elements of a list with the steps to them, in their order. Those that cannot be told from
/// others are left out: objects that were accepted have none.
pub(super) fn elements<'a>(
    form: ListForm<'_>,
    items: Place<'_>,
    list: &'a [Value],
) -> Vec<(Element, &'a Value)> {
    let of = |item| element_of(form, items, item).ok().map(|element| (element, item));
    list.iter().filter_map(of).collect()
}
