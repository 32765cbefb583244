//! Expressions, read once, and what they come to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::cel::{
    Context, ExecutionError, IdedExpr, Value, objects::OptionalValue, parser::Parser,
};

use super::{
    depth::{self, DEPTH_MAX},
    functions, rewrite,
    unordered::{self, SORTED},
};

/// The longest message that an expression may make.
const MESSAGE_MAX: usize = 5 * 1024;

/// Functions that can be called, by the last part of their names; operators are no names. Loops are
/// none of them: those that can be run are no calls any more when this is asked.
const FUNCTIONS: &[&str] = &[
    "abs",
    "add",
    "asApproximateFloat",
    "asInteger",
    "bitAnd",
    "bitNot",
    "bitOr",
    "bitShiftLeft",
    "bitShiftRight",
    "bitXor",
    "bool",
    "byte",
    "bytes",
    "ceil",
    "charAt",
    "cidr",
    "compareTo",
    "contains",
    "containsCIDR",
    "containsIP",
    "date",
    "datetime",
    "decode",
    "distinct",
    "dns1035Label",
    "dns1035LabelPrefix",
    "dns1123Label",
    "dns1123LabelPrefix",
    "dns1123Subdomain",
    "dns1123SubdomainPrefix",
    "double",
    "duration",
    "encode",
    "endsWith",
    "equivalent",
    "family",
    "find",
    "findAll",
    "first",
    "flatten",
    "floor",
    "format",
    "getDate",
    "getDayOfMonth",
    "getDayOfWeek",
    "getDayOfYear",
    "getEscapedPath",
    "getFullYear",
    "getHost",
    "getHostname",
    "getHours",
    "getMilliseconds",
    "getMinutes",
    "getMonth",
    "getPort",
    "getQuery",
    "getScheme",
    "getSeconds",
    "greatest",
    "hasValue",
    "indexOf",
    "int",
    "intersects",
    "ip",
    "isCIDR",
    "isCIDRv4",
    "isCIDRv6",
    "isCanonical",
    "isFinite",
    "isGlobalUnicast",
    "isGreaterThan",
    "isIP",
    "isIPv4",
    "isIPv6",
    "isInf",
    "isInteger",
    "isLessThan",
    "isLinkLocalMulticast",
    "isLinkLocalUnicast",
    "isLoopback",
    "isNaN",
    "isQuantity",
    "isSemver",
    "isSorted",
    "isURL",
    "isUnspecified",
    "join",
    "labelValue",
    "last",
    "lastIndexOf",
    "least",
    "lowerAscii",
    "major",
    "masked",
    "matches",
    "max",
    "min",
    "minor",
    "named",
    "none",
    "of",
    "ofNonZeroValue",
    "or",
    "orValue",
    "patch",
    "prefixLength",
    "qualifiedName",
    "quantity",
    "quote",
    "range",
    "replace",
    "reverse",
    "round",
    "semver",
    "sign",
    "size",
    "slice",
    "sort",
    "split",
    "sqrt",
    "startsWith",
    "string",
    "sub",
    "substring",
    "sum",
    "timestamp",
    "trim",
    "trunc",
    "type",
    "uint",
    "upperAscii",
    "uri",
    "url",
    "uuid",
    "validate",
    "value",
];

thread_local! {
    /// All functions. They are many, and no evaluation changes them.
    static FUNCTIONS_KNOWN: Context<'static> = functions::all();
}

/// The expressions of a rule.
#[derive(Debug)]
pub(in crate::definition) struct Programs {
    pub(super) rule: Result<IdedExpr, String>,
    pub(super) message: Option<Result<IdedExpr, String>>,
    /// Whether the rule is about a change.
    pub(super) uses_old: bool,
    /// What keeps the rule from being looked at.
    pub(super) unsupported: Option<String>,
    /// Whether values are compared in whose lists order may mean nothing.
    pub(super) needs_sorted: bool,
}

/// What expressions are about: a value, and what it was before.
#[derive(Debug)]
pub(super) struct Subject {
    pub(super) new: Value,
    pub(super) old: Option<Value>,
    /// The same two with sets and maps sorted, where that is asked for.
    pub(super) sorted: Option<(Value, Option<Value>)>,
    /// Whether expressions see what was before as something that may not be there.
    pub(super) is_old_optional: bool,
}

/// What a rule comes to.
pub(super) enum Outcome {
    Holds,
    Fails,
    /// It cannot be evaluated, and why.
    Failed(String),
    /// It works on values of other types.
    Unfit,
}

/// Why an expression comes to nothing.
enum Fault {
    /// Nothing can be done with values of these types.
    NoOverload,
    Other(String),
}

impl From<ExecutionError> for Fault {
    #[expect(
        clippy::wildcard_enum_match_arm,
        reason = "more may be added, and speak for themselves"
    )]
    fn from(error: ExecutionError) -> Self {
        Self::Other(match error {
            ExecutionError::NoSuchOverload
            | ExecutionError::UnexpectedType { .. }
            | ExecutionError::UnsupportedBinaryOperator(..)
            | ExecutionError::UnsupportedTargetType { .. }
            | ExecutionError::UnsupportedUnaryOperator(..)
            | ExecutionError::ValuesNotComparable(..) => return Self::NoOverload,
            ExecutionError::FunctionError { function, message }
                if message.starts_with("string parse error") =>
            {
                format!("type conversion error from 'string' to '{function}'")
            }
            ExecutionError::FunctionError { message, .. } => message,
            ExecutionError::DivisionByZero(_) => "division by zero".to_owned(),
            ExecutionError::IndexOutOfBounds(Value::Int(at)) => {
                format!("index out of bounds: {at}")
            }
            ExecutionError::NoSuchKey(key) => format!("no such key: {key}"),
            ExecutionError::Overflow(..) => "integer overflow".to_owned(),
            ExecutionError::RemainderByZero(_) => "modulus by zero".to_owned(),
            other => other.to_string(),
        })
    }
}

impl Programs {
    pub(in crate::definition) fn new(rule: &str, message: &str, is_old_optional: bool) -> Self {
        let mut rule = parse(rule);
        let mut message = (!message.trim().is_empty()).then(|| parse(message));
        let uses_old = rule.as_ref().is_ok_and(|it| it.references().has_variable("oldSelf"));
        for expression in rule.iter_mut().chain(message.iter_mut().flatten()) {
            rewrite::fit(expression, is_old_optional);
        }
        let parsed = rule.iter().chain(message.iter().flatten());
        let mut unknown: Vec<String> = parsed
            .flat_map(|it| {
                it.references().functions().into_iter().map(str::to_owned).collect::<Vec<_>>()
            })
            .filter(|name| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_' || c == '.'))
            // Operators are spelled with underscores for what they work on.
            .filter(|name| !name.starts_with('_') && !name.ends_with('_'))
            .filter(|name| !FUNCTIONS.contains(&name.rsplit('.').next().unwrap_or(name)))
            .collect();
        unknown.sort();
        let unsupported = unknown.into_iter().next().map(|name| format!("the function {name}"));
        let expressions = rule.iter_mut().chain(message.iter_mut().flatten());
        // All of them are rewritten, not only those up to the first that needs it.
        let needs_sorted = expressions.map(unordered::rewrite).filter(|it| *it).count() > 0;
        Self { rule, message, uses_old, unsupported, needs_sorted }
    }

    /// What the rule comes to for a value and what it was before.
    pub(super) fn evaluate(&self, subject: &Subject) -> Outcome {
        let Ok(rule) = &self.rule else { return Outcome::Holds };
        match run(rule, subject) {
            Ok(Value::Bool(true)) => Outcome::Holds,
            Ok(Value::Bool(false)) => Outcome::Fails,
            Ok(other) => Outcome::Failed(format!("the rule is a {}, not a bool", other.type_of())),
            Err(Fault::NoOverload) => Outcome::Unfit,
            Err(Fault::Other(why)) => Outcome::Failed(why),
        }
    }

    /// The message that the rule makes, if it makes one that can be shown.
    pub(super) fn message(&self, subject: &Subject) -> Option<String> {
        let Some(Ok(message)) = &self.message else { return None };
        let Ok(Value::String(text)) = run(message, subject) else { return None };
        let text = text.trim();
        let is_fit = !text.is_empty() && !text.contains(['\n', '\r']) && text.len() <= MESSAGE_MAX;
        is_fit.then(|| text.to_owned())
    }
}

fn parse(text: &str) -> Result<IdedExpr, String> {
    // Whatever a user may write must not end more than the request that has it in it. Nobody
    // catches the end of the stack.
    if let Some(why) = depth::fault(text) {
        return Err(why);
    }
    let parser = || Parser::new().enable_optional_syntax(true).max_recursion_depth(DEPTH_MAX);
    let parsed = catch_unwind(|| parser().parse(text));
    match parsed {
        Ok(Ok(expression)) => Ok(expression),
        Ok(Err(why)) => Err(why.to_string().trim().to_owned()),
        Err(_) => Err("the expression cannot be read".to_owned()),
    }
}

/// What an expression comes to. Where it cannot be evaluated because of one element of a list, the
/// others are asked whether they decide: few expressions ever fail, and those that do not are
/// evaluated once and as they are.
fn run(expression: &IdedExpr, subject: &Subject) -> Result<Value, Fault> {
    let fault = match run_once(expression, subject) {
        Ok(value) => return Ok(value),
        Err(fault) => fault,
    };
    let mut patient = expression.clone();
    match rewrite::absorb(&mut patient) {
        0 => Err(fault),
        _ => run_once(&patient, subject).map_err(|_| fault),
    }
}

fn run_once(expression: &IdedExpr, subject: &Subject) -> Result<Value, Fault> {
    let shown = |old: Option<&Value>| match subject.is_old_optional {
        true => {
            let old = old.cloned().map_or_else(OptionalValue::none, OptionalValue::of);
            Some(Value::Opaque(std::sync::Arc::new(old)))
        }
        false => old.cloned(),
    };
    let evaluate = || {
        FUNCTIONS_KNOWN.with(|functions| {
            let [(new_name, new_sorted), (old_name, old_sorted)] = SORTED;
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value(new_name, subject.new.clone());
            if let Some(old) = shown(subject.old.as_ref()) {
                context.add_variable_from_value(old_name, old);
            }
            if let Some((new, old)) = &subject.sorted {
                context.add_variable_from_value(new_sorted, new.clone());
                if let Some(old) = shown(old.as_ref()) {
                    context.add_variable_from_value(old_sorted, old);
                }
            }
            context.resolve(expression)
        })
    };
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(result) => result.map_err(Fault::from),
        Err(_) => Err(Fault::Other("the expression cannot be evaluated".to_owned())),
    }
}
