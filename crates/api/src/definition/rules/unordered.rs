//! Comparisons of values in which the order of some lists means nothing.
//!
//! Lists that are sets or maps are the same when they have the same elements. Whoever evaluates
//! expressions knows nothing of schemas, and so values are compared in a form in which such lists
//! are sorted: where an expression compares two of them as they are, it means the sorted ones.

use kube_cel::cel::{
    IdedExpr,
    common::ast::{CallExpr, Expr, operators},
};
use serde_json::Value;

use super::rewrite::in_entry;
use crate::definition::schema::Schema;

/// What the sorted forms of `self` and `oldSelf` are called, which nobody can write.
pub(super) const SORTED: [(&str, &str); 2] = [("self", "@self"), ("oldSelf", "@oldSelf")];

/// Makes an expression compare sorted values where it compares values as they are: `self.a` with
/// `oldSelf.a`, but not what was picked or made of them. The answer is whether it does so anywhere.
pub(super) fn rewrite(expression: &mut IdedExpr) -> bool {
    let mut is_changed = false;
    if let Expr::Call(CallExpr { func_name, target: None, args }) = &mut expression.expr
        && [operators::EQUALS, operators::NOT_EQUALS].contains(&func_name.as_str())
        && args.iter_mut().all(|it| root(it).is_some())
    {
        for name in args.iter_mut().filter_map(root) {
            if let Some((_, sorted)) = SORTED.iter().find(|(plain, _)| plain == name) {
                *name = (*sorted).to_owned();
            }
        }
        return true;
    }
    for part in parts(expression) {
        is_changed |= rewrite(part);
    }
    is_changed
}

/// The name that a path such as `oldSelf.value().a.b` begins with, if it is one of a value whose
/// schema is known.
fn root(expression: &mut IdedExpr) -> Option<&mut String> {
    match &mut expression.expr {
        Expr::Ident(name) => SORTED.iter().any(|(plain, _)| plain == name).then_some(name),
        Expr::Select(select) if !select.test => root(&mut select.operand),
        Expr::Call(call) if call.func_name == "value" && call.args.is_empty() => {
            root(call.target.as_deref_mut()?)
        }
        Expr::Unspecified
        | Expr::Call(_)
        | Expr::Comprehension(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => None,
    }
}

/// The expressions that an expression is made of, but for those in which a name means another.
fn parts(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Map(map) => map.entries.iter_mut().flat_map(|it| in_entry(&mut it.expr)).collect(),
        Expr::Struct(it) => it.entries.iter_mut().flat_map(|it| in_entry(&mut it.expr)).collect(),
        Expr::Comprehension(loops) => {
            let mut parts = vec![&mut loops.iter_range, &mut loops.accu_init];
            let second = loops.iter_var2.as_deref().unwrap_or_default();
            let names = [&*loops.iter_var, second, &*loops.accu_var];
            if !SORTED.iter().any(|(plain, _)| names.contains(plain)) {
                parts.extend([&mut loops.loop_cond, &mut loops.loop_step, &mut loops.result]);
            }
            parts
        }
    }
}

/// A value with its sets and maps sorted.
pub(super) fn sorted(schema: &Schema, value: &Value) -> Value {
    match value {
        Value::Object(object) => {
            let members = object.iter().map(|(name, value)| {
                let value = match schema.field(name) {
                    Some(schema) => sorted(schema, value),
                    None => value.clone(),
                };
                (name.clone(), value)
            });
            Value::Object(members.collect())
        }
        Value::Array(list) => {
            let Some(items) = schema.items.as_deref() else { return value.clone() };
            let mut list: Vec<Value> = list.iter().map(|item| sorted(items, item)).collect();
            match schema.list_type.as_deref() {
                Some("set") => list.sort_by_cached_key(ToString::to_string),
                Some("map") => list.sort_by_cached_key(|item| {
                    let keys = schema.list_keys.iter();
                    keys.map(|key| item[&**key].to_string()).collect::<Vec<_>>()
                }),
                _ => {}
            }
            Value::Array(list)
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => value.clone(),
    }
}
