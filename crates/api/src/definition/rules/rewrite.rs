//! Expressions as whoever evaluates them can do so: what it does not know is put in words that it
//! does.

use kube_cel::cel::{
    IdedExpr,
    common::{
        ast::{
            CallExpr, ComprehensionExpr, EntryExpr, Expr, ListExpr, LiteralValue, SelectExpr,
            operators,
        },
        types::CelString,
    },
};

use super::functions::{LISTED, MERGED, PAIRS};

/// What loops gather, which nobody can write.
const RESULT: &str = "@result";
/// The element of a loop that has two names.
const PAIR: &str = "@pair";
/// What something is made of that may be nothing, as a list.
const OPTIONAL: &str = "@optional";
/// How many loops inside of each other are made to go on: each of them is there twice then.
const LOOPS_MAX: usize = 4;

/// Puts an expression in words that can be evaluated. `is_old_optional` says whether `oldSelf` may
/// be nothing.
pub(super) fn fit(expression: &mut IdedExpr, is_old_optional: bool) {
    for part in parts(expression) {
        fit(part, is_old_optional);
    }
    let is_optional = |it: &IdedExpr| is_optional(it, is_old_optional);
    let fitting = match &mut expression.expr {
        Expr::Call(call) => fitting_call(call),
        // A field of what may be nothing may be nothing too.
        Expr::Select(select) if is_optional(&select.operand) => Some(fitting_field(select)),
        Expr::Unspecified
        | Expr::Comprehension(_)
        | Expr::Ident(_)
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => None,
    };
    if let Some(fitting) = fitting {
        *expression = fitting;
    }
}

fn fitting_call(call: &mut CallExpr) -> Option<IdedExpr> {
    // Fields that are not there are none by their index only.
    if call.func_name == operators::OPT_SELECT {
        operators::OPT_INDEX.clone_into(&mut call.func_name);
        return None;
    }
    if call.target.is_none() {
        let is_dyn = call.func_name == "dyn" && call.args.len() == 1;
        return if is_dyn { call.args.pop() } else { None };
    }
    let is_named = |at: usize| call.args.get(at).and_then(named).is_some();
    // What fits is taken, not copied: chains would be copied once for each of their steps.
    match (&*call.func_name, call.args.len()) {
        (function @ ("optMap" | "optFlatMap"), 2) if is_named(0) => {
            let is_plain = function == "optMap";
            let (target, body) = (*call.target.take()?, call.args.pop()?);
            Some(of_optional(target, named(call.args.first()?)?, body, is_plain))
        }
        (function, count) if is_loop(function, count) && is_named(0) && is_named(1) => {
            let function = std::mem::take(&mut call.func_name);
            let target = *call.target.take()?;
            let bodies = call.args.split_off(2);
            let names = [named(call.args.first()?)?, named(call.args.get(1)?)?];
            of_pairs(&function, target, names, bodies)
        }
        _ => None,
    }
}

/// Whether a method is a loop in which elements have two names.
fn is_loop(function: &str, args: usize) -> bool {
    match function {
        "all" | "exists" | "existsOne" | "exists_one" => args == 3,
        "transformList" | "transformMap" => args == 3 || args == 4,
        _ => false,
    }
}

fn fitting_field(select: &mut SelectExpr) -> IdedExpr {
    let field = Expr::Literal(LiteralValue::String(CelString::from(select.field.as_str())));
    let operand = std::mem::take(&mut *select.operand);
    let found = call(operators::OPT_INDEX, vec![operand, bare(field)]);
    match select.test {
        true => method(found, "hasValue", Vec::new()),
        false => found,
    }
}

/// Whether an expression comes to something that may be nothing, as far as that can be seen.
fn is_optional(expression: &IdedExpr, is_old_optional: bool) -> bool {
    let is_optional = |it: &IdedExpr| is_optional(it, is_old_optional);
    match &expression.expr {
        Expr::Ident(name) => is_old_optional && name == "oldSelf",
        Expr::Call(call) => match (&*call.func_name, call.target.as_deref(), &*call.args) {
            (operators::OPT_INDEX | operators::OPT_SELECT, ..) => true,
            (operators::INDEX, None, [list, _]) => is_optional(list),
            (operators::CONDITIONAL, None, [_, yes, no]) => is_optional(yes) || is_optional(no),
            ("or", Some(target), [_]) => is_optional(target),
            ("of" | "ofNonZeroValue" | "none", Some(target), _) => {
                matches!(&target.expr, Expr::Ident(name) if name == "optional")
            }
            _ => false,
        },
        Expr::Comprehension(loops) => loops.accu_var == OPTIONAL && is_optional(&loops.result),
        Expr::Unspecified
        | Expr::List(_)
        | Expr::Literal(_)
        | Expr::Map(_)
        | Expr::Select(_)
        | Expr::Struct(_) => false,
    }
}

/// `target.optMap(name, body)`, or `optFlatMap` of a body that may be nothing itself.
fn of_optional(target: IdedExpr, name: &str, body: IdedExpr, is_plain: bool) -> IdedExpr {
    let optional = || ident("optional");
    let first = bare(Expr::Literal(LiteralValue::Int(0.into())));
    let value = call(operators::INDEX, vec![ident(OPTIONAL), first]);
    let is_there = call(operators::NOT_EQUALS, vec![ident(OPTIONAL), list(Vec::new())]);
    let body = match is_plain {
        true => method(optional(), "of", vec![body]),
        false => body,
    };
    let nothing = method(optional(), "none", Vec::new());
    let found = call(operators::CONDITIONAL, vec![is_there, with(name, value, body), nothing]);
    // A name for what may be nothing would mean what it is, or fail: a list is what it is.
    with(OPTIONAL, call(LISTED, vec![target]), found)
}

/// A loop over the elements of a list and where they are, or the members of a map and what they are
/// called.
fn of_pairs(
    function: &str,
    target: IdedExpr,
    [first, second]: [&str; 2],
    bodies: Vec<IdedExpr>,
) -> Option<IdedExpr> {
    let part = |at: i64| {
        let at = bare(Expr::Literal(LiteralValue::Int(at.into())));
        call(operators::INDEX, vec![ident(PAIR), at])
    };
    let bound = |body| with(first, part(0), with(second, part(1), body));
    let mut bodies = bodies.into_iter();
    let (body, other) = (bodies.next()?, bodies.next());
    let so_far = || ident(RESULT);
    let is = |is_so: bool| bare(Expr::Literal(LiteralValue::Boolean(is_so.into())));
    let strictly = |it| call(operators::NOT_STRICTLY_FALSE, vec![it]);
    let (init, condition, step) = match (function, &other) {
        ("all", None) => {
            let step = call(operators::LOGICAL_AND, vec![so_far(), bound(body)]);
            (is(true), strictly(so_far()), step)
        }
        ("exists", None) => {
            let step = call(operators::LOGICAL_OR, vec![so_far(), bound(body)]);
            let goes_on = strictly(call(operators::LOGICAL_NOT, vec![so_far()]));
            (is(false), goes_on, step)
        }
        ("existsOne" | "exists_one", None) => {
            let one = || bare(Expr::Literal(LiteralValue::Int(1.into())));
            let next = call(operators::ADD, vec![so_far(), one()]);
            let step = call(operators::CONDITIONAL, vec![bound(body), next, so_far()]);
            let none = bare(Expr::Literal(LiteralValue::Int(0.into())));
            let mut loops = over_pairs(target, none, is(true), step);
            loops.result = call(operators::EQUALS, vec![so_far(), one()]);
            return Some(bare(Expr::Comprehension(Box::new(loops))));
        }
        ("transformList" | "transformMap", _) => {
            let is_list = function == "transformList";
            let (filter, body) = match other {
                Some(other) => (Some(body), other),
                None => (None, body),
            };
            let next = match is_list {
                true => call(operators::ADD, vec![so_far(), list(vec![bound(body)])]),
                false => call(MERGED, vec![so_far(), part(0), bound(body)]),
            };
            let step = match filter {
                Some(it) => call(operators::CONDITIONAL, vec![bound(it), next, so_far()]),
                None => next,
            };
            let init = if is_list { list(Vec::new()) } else { bare(Expr::Map(Default::default())) };
            (init, is(true), step)
        }
        _ => return None,
    };
    let loops = over_pairs(target, init, condition, step);
    Some(bare(Expr::Comprehension(Box::new(loops))))
}

fn over_pairs(
    target: IdedExpr,
    accu_init: IdedExpr,
    loop_cond: IdedExpr,
    loop_step: IdedExpr,
) -> ComprehensionExpr {
    ComprehensionExpr {
        iter_range: call(PAIRS, vec![target]),
        iter_var: PAIR.to_owned(),
        iter_var2: None,
        accu_var: RESULT.to_owned(),
        accu_init,
        loop_cond,
        loop_step,
        result: ident(RESULT),
    }
}

/// An expression in which a name means a value: a loop that goes round no time.
fn with(name: &str, value: IdedExpr, body: IdedExpr) -> IdedExpr {
    bare(Expr::Comprehension(Box::new(ComprehensionExpr {
        iter_range: list(Vec::new()),
        iter_var: "@unused".to_owned(),
        iter_var2: None,
        accu_var: name.to_owned(),
        accu_init: value,
        loop_cond: bare(Expr::Literal(LiteralValue::Boolean(false.into()))),
        loop_step: ident(name),
        result: body,
    })))
}

/// Makes loops go on after an element that fails, as another one may decide. The answer is how many
/// such loops are inside of each other.
pub(super) fn absorb(expression: &mut IdedExpr) -> usize {
    let within = parts(expression).into_iter().map(absorb).max().unwrap_or_default();
    if within < LOOPS_MAX && absorb_one(expression).is_some() { within + 1 } else { within }
}

fn absorb_one(expression: &mut IdedExpr) -> Option<()> {
    let Expr::Comprehension(loops) = &expression.expr else { return None };
    let Expr::Call(step) = &loops.loop_step.expr else { return None };
    let decides = match &*step.func_name {
        operators::LOGICAL_AND => false,
        operators::LOGICAL_OR => true,
        _ => return None,
    };
    // Looks for an element that decides, and counts those that fail as ones that do not.
    let mut first = loops.clone();
    let Expr::Call(CallExpr { args, .. }) = &mut first.loop_step.expr else { return None };
    let body = args.get_mut(1)?;
    let not = |it| call(operators::LOGICAL_NOT, vec![it]);
    let strictly = |it| call(operators::NOT_STRICTLY_FALSE, vec![it]);
    let plain = std::mem::take(body);
    *body = if decides { not(strictly(not(plain))) } else { strictly(plain) };
    let first = bare(Expr::Comprehension(first));
    let then = std::mem::take(expression);
    let operator = if decides { operators::LOGICAL_OR } else { operators::LOGICAL_AND };
    *expression = call(operator, vec![first, then]);
    Some(())
}

/// The expressions that an expression is made of.
fn parts(expression: &mut IdedExpr) -> Vec<&mut IdedExpr> {
    match &mut expression.expr {
        Expr::Unspecified | Expr::Ident(_) | Expr::Literal(_) => Vec::new(),
        Expr::Call(call) => call.target.as_deref_mut().into_iter().chain(&mut call.args).collect(),
        Expr::List(list) => list.elements.iter_mut().collect(),
        Expr::Select(select) => vec![&mut select.operand],
        Expr::Map(map) => map.entries.iter_mut().flat_map(|it| in_entry(&mut it.expr)).collect(),
        Expr::Struct(it) => it.entries.iter_mut().flat_map(|it| in_entry(&mut it.expr)).collect(),
        Expr::Comprehension(loops) => vec![
            &mut loops.iter_range,
            &mut loops.accu_init,
            &mut loops.loop_cond,
            &mut loops.loop_step,
            &mut loops.result,
        ],
    }
}

pub(super) fn in_entry(entry: &mut EntryExpr) -> Vec<&mut IdedExpr> {
    match entry {
        EntryExpr::StructField(field) => vec![&mut field.value],
        EntryExpr::MapEntry(entry) => vec![&mut entry.key, &mut entry.value],
    }
}

fn bare(expr: Expr) -> IdedExpr {
    IdedExpr { id: 0, expr }
}

fn ident(name: &str) -> IdedExpr {
    bare(Expr::Ident(name.to_owned()))
}

fn list(elements: Vec<IdedExpr>) -> IdedExpr {
    bare(Expr::List(ListExpr::new(elements)))
}

fn call(function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    bare(Expr::Call(CallExpr { func_name: function.to_owned(), target: None, args }))
}

fn method(target: IdedExpr, function: &str, args: Vec<IdedExpr>) -> IdedExpr {
    let target = Some(Box::new(target));
    bare(Expr::Call(CallExpr { func_name: function.to_owned(), target, args }))
}

fn named(expression: &IdedExpr) -> Option<&str> {
    match &expression.expr {
        Expr::Ident(name) => Some(name),
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
