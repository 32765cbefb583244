//! Functions of expressions that the crates which evaluate them lack, or do otherwise.

use std::{cell::LazyCell, sync::Arc};

use chrono::SecondsFormat;
use kube_cel::{
    KubeCelExt,
    cel::{
        Context, ExecutionError, FunctionContext, IdedExpr, ResolveResult, Value,
        common::ast::{CallExpr, Expr},
        extractors::This,
        functions,
        objects::{Key, Map, OptionalValue},
    },
};

use super::super::check::go_float;

/// Makes a list of lists of two: the elements of a list and where they are, or the members of a map
/// and what they are called.
pub(super) const PAIRS: &str = "@pairs";
/// Makes a list of what may be nothing.
pub(super) const LISTED: &str = "@listed";
/// Adds a member to a map.
pub(super) const MERGED: &str = "@merged";

/// What types are called, which nobody can write as a text.
const TYPES: [&str; 9] =
    ["bool", "bytes", "double", "int", "list", "map", "null_type", "string", "uint"];
/// Types whose names are paths: `google.protobuf.Duration`.
const PATHS: [&str; 2] = ["Duration", "Timestamp"];

thread_local! {
    /// All functions of the crates. They are many, and no evaluation changes them.
    static GIVEN: LazyCell<Context<'static>> = const {
        LazyCell::new(|| Context::default().with_all())
    };
}

/// All functions, and the names of types.
pub(super) fn all() -> Context<'static> {
    let mut context = Context::default().with_all();
    context.add_function("bool", truth);
    context.add_function("size", size);
    context.add_function("string", text);
    context.add_function("type", type_of);
    context.add_function(PAIRS, pairs);
    context.add_function(LISTED, listed);
    context.add_function(MERGED, |map: Value, key: Value, value: Value| merged(&map, key, value));
    for name in TYPES {
        context.add_variable_from_value(name, type_named(name));
    }
    let paths = PATHS.map(|name| (name, type_named(name)));
    let protobuf = map(paths);
    context.add_variable_from_value("google", map([("protobuf", protobuf)]));
    context
}

fn map<const COUNT: usize>(members: [(&str, Value); COUNT]) -> Value {
    let members = members.into_iter().map(|(name, value)| (Key::from(name), value));
    Value::Map(Map { map: Arc::new(members.collect()) })
}

fn truth(This(value): This<Value>) -> ResolveResult {
    if let Value::Bool(_) = value {
        return Ok(value);
    }
    let Value::String(text) = &value else { return Err(ExecutionError::NoSuchOverload) };
    match text.as_str() {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(Value::Bool(true)),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(Value::Bool(false)),
        _ => Err(ExecutionError::function_error(
            "bool",
            "type conversion error from 'string' to 'bool'",
        )),
    }
}

/// The size of a text is counted in characters.
fn size(context: &FunctionContext<'_, '_>, This(value): This<Value>) -> ResolveResult {
    if let Value::String(text) = &value {
        return Ok(Value::Int(i64::try_from(text.chars().count()).unwrap_or(i64::MAX)));
    }
    functions::size(context, This(value)).map(Value::Int)
}

fn text(This(value): This<Value>) -> ResolveResult {
    let text = if let Value::Bool(is_so) = value {
        is_so.to_string()
    } else if let Value::Float(number) = value {
        go_float(number)
    } else if let Value::Timestamp(moment) = value {
        moment_text(&moment.to_rfc3339_opts(SecondsFormat::Nanos, true))
    } else if let Value::Duration(time) = value {
        // Upstream tells what a double has of it.
        let seconds: f64 = time.num_seconds().to_string().parse().unwrap_or_default();
        format!("{}s", seconds + f64::from(time.subsec_nanos()) / 1e9)
    } else {
        return given_text(value);
    };
    Ok(Value::String(Arc::new(text)))
}

/// A moment with a fraction of nine digits, without those that say nothing.
fn moment_text(text: &str) -> String {
    let Some((whole, rest)) = text.split_once('.') else { return text.to_owned() };
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    let (digits, zone) = rest.split_at(end);
    match digits.trim_end_matches('0') {
        "" => format!("{whole}{zone}"),
        digits => format!("{whole}.{digits}{zone}"),
    }
}

fn given_text(value: Value) -> ResolveResult {
    let name = "@value";
    let args = vec![IdedExpr { id: 0, expr: Expr::Ident(name.to_owned()) }];
    let call = CallExpr { func_name: "string".to_owned(), target: None, args };
    let call = IdedExpr { id: 0, expr: Expr::Call(call) };
    GIVEN.with(|given| {
        let mut context = given.new_inner_scope();
        context.add_variable_from_value(name, value);
        context.resolve(&call)
    })
}

fn type_named(name: &str) -> Value {
    Value::from(format!("@type:{name}"))
}

fn type_of(This(value): This<Value>) -> ResolveResult {
    let name = match value {
        Value::Bool(_) => "bool",
        Value::Bytes(_) => "bytes",
        Value::Float(_) => "double",
        Value::Int(_) => "int",
        Value::List(_) => "list",
        Value::Map(_) => "map",
        Value::Null => "null_type",
        Value::String(_) => "string",
        Value::UInt(_) => "uint",
        Value::Duration(_) => "Duration",
        Value::Timestamp(_) => "Timestamp",
        Value::Function(..) | Value::Opaque(_) => return Err(ExecutionError::NoSuchOverload),
    };
    Ok(type_named(name))
}

fn pairs(This(value): This<Value>) -> ResolveResult {
    let pair = |key: Value, value: &Value| Value::List(Arc::new(vec![key, value.clone()]));
    let pairs = if let Value::List(list) = value {
        list.iter().zip(0..).map(|(it, at)| pair(Value::Int(at), it)).collect()
    } else if let Value::Map(map) = value {
        let mut members: Vec<(&Key, &Value)> = map.map.iter().collect();
        members.sort_by_key(|(name, _)| *name);
        members.into_iter().map(|(name, value)| pair(name.into(), value)).collect()
    } else {
        return Err(ExecutionError::NoSuchOverload);
    };
    Ok(Value::List(Arc::new(pairs)))
}

fn listed(This(value): This<Value>) -> ResolveResult {
    let found = <&OptionalValue>::try_from(&value)?.value();
    Ok(Value::List(Arc::new(found.into_iter().cloned().collect())))
}

fn merged(map: &Value, key: Value, value: Value) -> ResolveResult {
    let Value::Map(map) = map else { return Err(ExecutionError::NoSuchOverload) };
    let mut members = (*map.map).clone();
    members.insert(key.try_into().map_err(ExecutionError::UnsupportedKeyType)?, value);
    Ok(Value::Map(Map { map: Arc::new(members) }))
}
