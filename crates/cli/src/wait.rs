//! `lockstep wait`: until objects are as somebody wants them.

use std::time::Duration;

use anyhow::Result;
use serde_json::Value;

use crate::{
    args::Connection,
    catalog::Catalog,
    chosen::{Choice, Chosen},
    cluster::Cluster,
    exit::{Ending, Exit, Failures, usage},
    jsonpath::{self, Template},
    output,
    refusal::Refusal,
    waiting::{self, Deadline},
};

/// How often a query is asked again for objects that are to be created.
const PERIOD: Duration = Duration::from_millis(200);

/// Options of `lockstep wait`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
When the time is up, the command ends with 3.

Examples:
  lockstep wait pod/hello --for=condition=Ready
  lockstep wait job/train --for=condition=Complete --timeout=10m
  lockstep wait pods -l app=train --for=condition=Ready=false
  lockstep wait pod/hello --for=jsonpath='{.status.phase}'=Succeeded
  lockstep wait pod/hello --for=jsonpath='{.status.podIP}'
                                          until there is any value
  lockstep wait pod/hello --for=delete    until it is gone
  lockstep wait pod/hello --for=create --for=condition=Ready
                                          one after the other")]
pub(crate) struct Options {
    #[command(flatten)]
    choice: Choice,
    /// What to wait for: create, delete, condition=NAME[=VALUE] or jsonpath='{PATH}'[=VALUE]; may
    /// be given more than once
    #[arg(long = "for", value_name = "CONDITION", required = true, value_parser = aim)]
    aims: Vec<Aim>,
    /// How long to wait at most; 0 to look once, negative for no limit
    #[arg(long, value_name = "DURATION", default_value = "30s", value_parser = patience,
          allow_hyphen_values = true)]
    timeout: Patience,
    #[command(flatten)]
    connection: Connection,
}

/// What an object must become.
#[derive(Clone, Debug, PartialEq)]
enum Aim {
    Create,
    Delete,
    Condition { name: String, value: String },
    Path { template: Template, value: Option<String> },
}

/// Whole seconds, or for ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Patience(Option<i64>);

/// Waits for each object in turn; the time is for all of them together.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let deadline = Deadline::after(options.timeout.0);
    let wanted = options.connection.namespace.as_deref();
    let resolve = || options.choice.resolve(&cluster, &catalog, wanted);
    let is_for = |aim: &Aim| options.aims.contains(aim);
    let mut chosen = resolve().await?;
    if chosen.is_empty() && is_for(&Aim::Create) {
        chosen = deadline
            .limit("the condition", async {
                loop {
                    tokio::time::sleep(PERIOD).await;
                    let found = resolve().await?;
                    if !found.is_empty() {
                        return Ok(found);
                    }
                }
            })
            .await?;
    }
    if chosen.is_empty() && !is_for(&Aim::Delete) {
        return Err(Ending::error(Exit::Failed, "error: no matching resources found"));
    }
    let mut aims: Vec<&Aim> = options.aims.iter().collect();
    // Nothing else can hold of what does not exist yet.
    aims.sort_by_key(|aim| **aim != Aim::Create);
    let mut failures = Failures::default();
    for object in &chosen {
        for aim in &aims {
            match aim.wait(&cluster, object, options.timeout, deadline).await {
                Ok(true) => {
                    let (prefix, name) = (object.resource.prefix(), &object.name);
                    output::line(format!("{prefix}/{name} condition met"))?;
                }
                Ok(false) => {}
                Err(error) => {
                    failures.note(&error);
                    break;
                }
            }
        }
    }
    failures.end()
}

impl Aim {
    /// Waits until it holds; false when there was nothing to wait for.
    async fn wait(
        &self,
        cluster: &Cluster,
        object: &Chosen<'_>,
        patience: Patience,
        deadline: Deadline,
    ) -> Result<bool> {
        let shown = format!("{}/{}", object.resource.plural, object.name);
        let now = match cluster.get(&object.path()).await {
            Ok(now) => Some(now),
            Err(refusal) if refusal.is_not_found() => match self {
                Self::Delete => return Ok(false),
                Self::Create => None,
                Self::Condition { .. } | Self::Path { .. } => return Err(refusal.into()),
            },
            Err(refusal) => return Err(refusal.into()),
        };
        if self.is_met(now.as_ref())? {
            return Ok(true);
        }
        if patience.0 == Some(0) {
            let message = format!("error: condition not met for {shown}");
            return Err(Ending::error(Exit::TimedOut, message));
        }
        let uid = now.as_ref().map(|object| object["metadata"]["uid"].clone());
        let mut failure = None;
        let collection = object.collection();
        let watching = waiting::until(cluster, &collection, &object.name, |object| match self {
            // One of the same name that was made since is another one.
            Self::Delete => object.map(|object| object["metadata"]["uid"].clone()) != uid,
            _ => self.is_met(object).unwrap_or_else(|error| {
                failure = Some(error);
                true
            }),
        });
        let last = deadline.limit(&format!("the condition on {shown}"), watching).await?;
        if let Some(error) = failure {
            return Err(error);
        }
        match (self, last) {
            (Self::Delete, _) | (_, Some(_)) => Ok(true),
            (_, None) => Err(Refusal::gone(object.resource, &object.name).into()),
        }
    }

    /// Whether an object is as it should be. One that is gone is looked at no longer.
    fn is_met(&self, object: Option<&Value>) -> Result<bool> {
        let Some(object) = object else { return Ok(*self != Self::Create) };
        match self {
            Self::Create => Ok(true),
            Self::Delete => Ok(false),
            Self::Condition { name, value } => Ok(has_condition(object, name, value)),
            Self::Path { template, value } => {
                let found = template.values(object).map_err(|error| usage(error.to_string()))?;
                match (found.as_slice(), value) {
                    ([], _) => Ok(false),
                    ([_], None) => Ok(true),
                    ([Value::Object(_) | Value::Array(_)], Some(_)) => Err(usage(
                        "error: the jsonpath leads to an object or a list, which cannot be \
                         compared: go on to one of its fields",
                    )),
                    ([found], Some(value)) => Ok(jsonpath::shown(found).trim() == value.trim()),
                    _ => Err(usage("error: the jsonpath matches more than one value")),
                }
            }
        }
    }
}

/// Whether the condition is there with that status, and about the object as it is now.
fn has_condition(object: &Value, name: &str, value: &str) -> bool {
    let same = |known: &Value, wanted: &str| {
        known.as_str().is_some_and(|known| known.eq_ignore_ascii_case(wanted))
    };
    let status = &object["status"];
    let mut conditions = status["conditions"].as_array().into_iter().flatten();
    let Some(condition) = conditions.find(|condition| same(&condition["type"], name)) else {
        return false;
    };
    let observed = condition["observedGeneration"].as_i64();
    let observed = observed.or_else(|| status["observedGeneration"].as_i64());
    let is_stale = match (object["metadata"]["generation"].as_i64(), observed) {
        (Some(generation), Some(observed)) => observed < generation,
        _ => false,
    };
    !is_stale && same(&condition["status"], value)
}

fn aim(text: &str) -> Result<Aim, String> {
    if text.eq_ignore_ascii_case("delete") {
        return Ok(Aim::Delete);
    }
    if text.eq_ignore_ascii_case("create") {
        return Ok(Aim::Create);
    }
    if let Some(condition) = text.strip_prefix("condition=") {
        let (name, value) = condition.split_once('=').unwrap_or((condition, "true"));
        if !name.is_empty() {
            return Ok(Aim::Condition { name: name.to_owned(), value: value.to_owned() });
        }
    }
    if let Some(input) = text.strip_prefix("jsonpath=") {
        let (path, value) = split_path(input);
        let template = Template::relaxed(path.trim_matches('\'')).map_err(|e| e.to_string())?;
        let value = value.map(|value| value.trim_matches(['\'', '"']).to_owned());
        if value.as_deref() == Some("") {
            return Err("there is no value after the equals sign".to_owned());
        }
        return Ok(Aim::Path { template, value });
    }
    Err("it must be create, delete, condition=NAME[=VALUE] or jsonpath='{PATH}'[=VALUE]".to_owned())
}

/// Splits at the first `=` that is no part of a comparison: `==`, `!=`, `<=`, `>=`.
fn split_path(input: &str) -> (&str, Option<&str>) {
    let bytes = input.as_bytes();
    let mut at = 0;
    while let Some(found) = input[at..].find('=') {
        let here = at + found;
        let is_doubled = bytes.get(here + 1) == Some(&b'=');
        let is_comparison = here > 0 && matches!(bytes[here - 1], b'!' | b'<' | b'>');
        if !is_doubled && !is_comparison {
            return (&input[..here], Some(&input[here + 1..]));
        }
        at = here + 1 + usize::from(is_doubled);
    }
    (input, None)
}

fn patience(text: &str) -> Result<Patience, String> {
    if let Some(rest) = text.strip_prefix('-') {
        return crate::logs::duration(rest).map(|_| Patience(None));
    }
    let seconds = if text == "0" { 0 } else { crate::logs::duration(text)? };
    Ok(Patience(Some(seconds)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn conditions_are_read_as_kubectl_reads_them() {
        let condition =
            |name: &str, value: &str| Aim::Condition { name: name.into(), value: value.into() };
        let path = |path: &str, value: Option<&str>| Aim::Path {
            template: Template::relaxed(path).expect(path),
            value: value.map(ToOwned::to_owned),
        };
        for (text, want) in [
            ("delete", Some(Aim::Delete)),
            ("Create", Some(Aim::Create)),
            ("condition=Ready", Some(condition("Ready", "true"))),
            ("condition=Ready=False", Some(condition("Ready", "False"))),
            ("jsonpath={.status.phase}=Running", Some(path(".status.phase", Some("Running")))),
            ("jsonpath='{.status.phase}'=Running", Some(path(".status.phase", Some("Running")))),
            ("jsonpath={.status.podIP}", Some(path(".status.podIP", None))),
            (
                r#"jsonpath={.status.conditions[?(@.type=="Ready")].status}=True"#,
                Some(path(r#".status.conditions[?(@.type=="Ready")].status"#, Some("True"))),
            ),
            ("jsonpath={.a}=", None),
            ("condition=", None),
            ("Ready", None),
        ] {
            assert_eq!(aim(text).ok(), want, "{text}");
        }
    }

    #[test]
    fn a_condition_counts_only_for_the_object_as_it_is() {
        let object = |observed: i64, status: &str| {
            json!({"metadata": {"generation": 2}, "status": {"observedGeneration": observed,
                "conditions": [{"type": "Ready", "status": status}]}})
        };
        assert!(has_condition(&object(2, "True"), "ready", "true"));
        assert!(!has_condition(&object(1, "True"), "ready", "true"), "seen too early");
        assert!(!has_condition(&object(2, "False"), "Ready", "true"));
        assert!(!has_condition(&json!({}), "Ready", "true"));
    }

    #[test]
    fn a_path_must_lead_to_one_plain_value() {
        let pod = json!({"status": {"phase": "Running", "ips": ["a", "b"], "count": 3}});
        for (text, want) in [
            ("jsonpath={.status.phase}=Running", Some(true)),
            ("jsonpath={.status.phase}=Failed", Some(false)),
            ("jsonpath={.status.count}=3", Some(true)),
            ("jsonpath={.status.nothing}", Some(false)),
            ("jsonpath={.status.ips}", Some(true)),
            ("jsonpath={.status.ips}=a", None),
            ("jsonpath={.status.ips[*]}=a", None),
        ] {
            let met = aim(text).expect(text).is_met(Some(&pod)).ok();
            assert_eq!(met, want, "{text}");
        }
    }

    #[test]
    fn time_is_finite_unless_it_is_negative() {
        assert_eq!(patience("10s"), Ok(Patience(Some(10))));
        assert_eq!(patience("0"), Ok(Patience(Some(0))));
        assert_eq!(patience("-1s"), Ok(Patience(None)));
        assert!(patience("soon").is_err());
    }
}
