//! Expressions, read once, and what they come to.

use std::panic::{AssertUnwindSafe, catch_unwind};

use kube_cel::{
    KubeCelExt,
    cel::{Context, ExecutionError, IdedExpr, Value, objects::OptionalValue, parser::Parser},
};

/// The longest message that an expression may make.
const MESSAGE_MAX: usize = 5 * 1024;

/// Functions that can be called, by the last part of their names; operators are no names.
const FUNCTIONS: &[&str] = &[
    "abs",
    "add",
    "all",
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
    "dyn",
    "encode",
    "endsWith",
    "equivalent",
    "exists",
    "exists_one",
    "family",
    "filter",
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
    "has",
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
    "map",
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
    static FUNCTIONS_KNOWN: Context<'static> = Context::default().with_all();
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
}

/// What a rule comes to.
pub(super) enum Outcome {
    Holds,
    Fails,
    Failed(String),
}

impl Programs {
    pub(in crate::definition) fn new(rule: &str, message: &str) -> Self {
        let rule = parse(rule);
        let message = (!message.trim().is_empty()).then(|| parse(message));
        let uses_old = rule.as_ref().is_ok_and(|it| it.references().has_variable("oldSelf"));
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
        Self { rule, message, uses_old, unsupported }
    }

    /// What the rule comes to for a value and what it was before.
    pub(super) fn evaluate(&self, new: &Value, old: Option<&Value>, is_optional: bool) -> Outcome {
        let Ok(rule) = &self.rule else { return Outcome::Holds };
        match run(rule, new, old, is_optional) {
            Ok(Value::Bool(true)) => Outcome::Holds,
            Ok(Value::Bool(false)) => Outcome::Fails,
            Ok(other) => Outcome::Failed(format!("the rule is a {}, not a bool", other.type_of())),
            Err(why) => Outcome::Failed(why),
        }
    }

    /// The message that the rule makes, if it makes one that can be shown.
    pub(super) fn message(
        &self,
        new: &Value,
        old: Option<&Value>,
        is_optional: bool,
    ) -> Option<String> {
        let Some(Ok(message)) = &self.message else { return None };
        let Ok(Value::String(text)) = run(message, new, old, is_optional) else { return None };
        let text = text.trim();
        let is_fit = !text.is_empty() && !text.contains(['\n', '\r']) && text.len() <= MESSAGE_MAX;
        is_fit.then(|| text.to_owned())
    }
}

fn parse(text: &str) -> Result<IdedExpr, String> {
    // Whatever a user may write must not end more than the request that has it in it.
    let parsed = catch_unwind(|| Parser::new().enable_optional_syntax(true).parse(text));
    match parsed {
        Ok(Ok(expression)) => Ok(expression),
        Ok(Err(why)) => Err(why.to_string().trim().to_owned()),
        Err(_) => Err("the expression cannot be read".to_owned()),
    }
}

fn run(
    expression: &IdedExpr,
    new: &Value,
    old: Option<&Value>,
    is_optional: bool,
) -> Result<Value, String> {
    let evaluate = || {
        FUNCTIONS_KNOWN.with(|functions| {
            let mut context = functions.new_inner_scope();
            context.add_variable_from_value("self", new.clone());
            let old = match (old, is_optional) {
                (old, true) => {
                    let old = old.cloned().map_or_else(OptionalValue::none, OptionalValue::of);
                    Some(Value::Opaque(std::sync::Arc::new(old)))
                }
                (old, false) => old.cloned(),
            };
            if let Some(old) = old {
                context.add_variable_from_value("oldSelf", old);
            }
            context.resolve(expression)
        })
    };
    match catch_unwind(AssertUnwindSafe(evaluate)) {
        Ok(Ok(value)) => Ok(value),
        Ok(Err(ExecutionError::NoSuchKey(key))) => Err(format!("no such key: {key}")),
        Ok(Err(why)) => Err(why.to_string()),
        Err(_) => Err("the expression cannot be evaluated".to_owned()),
    }
}
