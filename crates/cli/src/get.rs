//! `lockstep get`: tables as the server makes them, or the objects themselves.

use anyhow::{Result, bail};
use futures::{AsyncBufReadExt, TryStreamExt};
use serde::Serialize;
use serde_json::{Value, json};

use crate::{
    args::{Connection, Selectors},
    catalog::{Catalog, Resource, query},
    cluster::{Cluster, TABLE},
    exit::{Ending, Exit},
    manifest::yaml,
    output,
    table::{Printer, Style},
    targets::{self, Target},
};

/// Options of `lockstep get`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep get pods                       pods of the current namespace
  lockstep get pods -A -o wide            of all namespaces, with addresses and nodes
  lockstep get pod/hello svc/hello        two objects
  lockstep get pods -l app=train -w       watch the pods of one label
  lockstep get pod hello -o yaml          everything about one pod
  lockstep get all                        what people usually look for")]
pub(crate) struct Options {
    /// What to show: TYPE, TYPE NAME..., or TYPE/NAME...
    #[arg(required = true, value_name = "TYPE[/NAME]")]
    targets: Vec<String>,
    /// How to show it
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Format>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    selectors: Selectors,
    /// Go on and show changes as they happen
    #[arg(short, long)]
    watch: bool,
    /// Show all labels in a last column
    #[arg(long)]
    show_labels: bool,
    /// Leave out the header line
    #[arg(long)]
    no_headers: bool,
    /// Keep metadata.managedFields in JSON and YAML
    #[arg(long)]
    show_managed_fields: bool,
    /// Say nothing when an object does not exist
    #[arg(long)]
    ignore_not_found: bool,
    #[command(flatten)]
    connection: Connection,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// More columns
    Wide,
    /// The objects as JSON
    Json,
    /// The objects as YAML
    Yaml,
    /// Only TYPE/NAME
    Name,
}

/// Shows what was asked for.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let targets = targets::parse(&catalog, &options.targets)?;
    if options.watch && targets.len() != 1 {
        bail!("error: you may only specify a single resource type");
    }
    match options.output {
        None | Some(Format::Wide) => tables(&cluster, options, &targets).await,
        Some(format) => objects(&cluster, options, &targets, format).await,
    }
}

impl Options {
    fn namespace<'a>(&self, cluster: &'a Cluster) -> Option<&'a str> {
        (!self.all_namespaces).then_some(cluster.namespace.as_str())
    }

    fn path(&self, cluster: &Cluster, target: &Target<'_>) -> String {
        match &target.name {
            Some(name) => target.resource.object(&cluster.namespace, name),
            None => {
                let pairs = [
                    ("labelSelector", self.selectors.selector.clone()),
                    ("fieldSelector", self.selectors.field_selector.clone()),
                ];
                target.resource.collection(self.namespace(cluster)) + &query(&pairs)
            }
        }
    }

    /// The watch that goes on where `answer` ended.
    fn watch_path(&self, cluster: &Cluster, target: &Target<'_>, answer: &Value) -> String {
        let version = answer["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned();
        let one = target.name.as_ref().map(|name| format!("metadata.name={name}"));
        let pairs = [
            ("labelSelector", self.selectors.selector.clone()),
            ("fieldSelector", one.or_else(|| self.selectors.field_selector.clone())),
            ("resourceVersion", Some(version)),
            ("watch", Some("true".to_owned())),
        ];
        target.resource.collection(self.namespace(cluster)) + &query(&pairs)
    }

    /// The object without what only managers of fields care for.
    fn cleaned(&self, mut object: Value) -> Value {
        if !self.show_managed_fields
            && let Some(Value::Object(metadata)) = object.get_mut("metadata")
        {
            metadata.remove("managedFields");
        }
        object
    }

    fn style(&self, resource: &Resource) -> Style {
        Style {
            is_wide: self.output == Some(Format::Wide),
            has_namespace: self.all_namespaces && resource.is_namespaced,
            has_labels: self.show_labels,
            is_headless: self.no_headers,
        }
    }
}

/// Tables of one resource, shown under one header.
struct Block<'a> {
    resource: &'a Resource,
    tables: Vec<Value>,
}

async fn tables(cluster: &Cluster, options: &Options, targets: &[Target<'_>]) -> Result<()> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut refusals = Vec::new();
    for target in targets {
        match cluster.table(&options.path(cluster, target)).await {
            Ok(table) => match blocks.last_mut() {
                Some(block) if block.resource == target.resource => block.tables.push(table),
                _ => blocks.push(Block { resource: target.resource, tables: vec![table] }),
            },
            Err(refusal) if refusal.is_not_found() && options.ignore_not_found => {}
            Err(refusal) => refusals.push(refusal),
        }
    }
    let is_mixed = targets.windows(2).any(|pair| pair[0].resource != pair[1].resource);
    let mut is_first = true;
    for block in &blocks {
        let is_empty = block.tables.iter().all(|t| t["rows"].as_array().is_none_or(Vec::is_empty));
        if is_empty && !options.watch {
            continue;
        }
        if !is_first {
            output::line("")?;
        }
        is_first = false;
        let mut printer = Printer::new(options.style(block.resource));
        let prefix = if is_mixed { format!("{}/", block.resource.prefix()) } else { String::new() };
        for table in &block.tables {
            output::data(printer.render(table, &prefix))?;
        }
        if options.watch {
            let path = options.watch_path(cluster, &targets[0], &block.tables[0]);
            return watch(cluster, &path, TABLE, |table| output::data(printer.render(table, "")))
                .await;
        }
    }
    for refusal in &refusals {
        output::note(refusal.explain(None));
    }
    if !refusals.is_empty() {
        return Err(Ending::silent(Exit::Failed));
    }
    if is_first && !options.ignore_not_found {
        output::note(nothing_found(cluster, options, targets));
    }
    Ok(())
}

fn nothing_found(cluster: &Cluster, options: &Options, targets: &[Target<'_>]) -> String {
    let is_namespaced = targets.iter().any(|target| target.resource.is_namespaced);
    if options.all_namespaces || !is_namespaced {
        "No resources found".to_owned()
    } else {
        format!("No resources found in {} namespace.", cluster.namespace)
    }
}

async fn objects(
    cluster: &Cluster,
    options: &Options,
    targets: &[Target<'_>],
    format: Format,
) -> Result<()> {
    let mut found: Vec<(&Resource, Value)> = Vec::new();
    for target in targets {
        let mut answer = match cluster.get(&options.path(cluster, target)).await {
            Ok(answer) => answer,
            Err(refusal) if refusal.is_not_found() && options.ignore_not_found => continue,
            Err(refusal) => return Err(refusal.into()),
        };
        if options.watch {
            let path = options.watch_path(cluster, target, &answer);
            for object in parts(target.resource, answer) {
                output::data(shown(target.resource, &options.cleaned(object), format))?;
            }
            return watch(cluster, &path, "application/json", |object| {
                output::data(shown(target.resource, &options.cleaned(object.clone()), format))
            })
            .await;
        }
        match target.name {
            Some(_) => found.push((target.resource, answer)),
            None => {
                let items = parts(target.resource, answer.take());
                found.extend(items.into_iter().map(|item| (target.resource, item)));
            }
        }
    }
    let is_single = targets.len() == 1 && targets[0].name.is_some();
    let found = found.into_iter().map(|(resource, object)| (resource, options.cleaned(object)));
    if format == Format::Name || is_single {
        for (resource, object) in found {
            output::data(shown(resource, &object, format))?;
        }
        return Ok(());
    }
    let items: Vec<Value> = found.map(|(_, object)| object).collect();
    let list = json!({
        "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": items});
    output::data(serialized(&list, format))?;
    Ok(())
}

/// The members of a list, with the `apiVersion` and `kind` that lists leave out; anything else is
/// its own only member.
fn parts(resource: &Resource, mut answer: Value) -> Vec<Value> {
    let Some(Value::Array(items)) = answer.get_mut("items").map(Value::take) else {
        return vec![answer];
    };
    let mut whole = items;
    for item in &mut whole {
        if let Value::Object(item) = item {
            item.entry("apiVersion").or_insert_with(|| resource.api_version().into());
            item.entry("kind").or_insert_with(|| resource.kind.clone().into());
        }
    }
    whole
}

fn shown(resource: &Resource, object: &Value, format: Format) -> String {
    match format {
        Format::Name => {
            let name = object["metadata"]["name"].as_str().unwrap_or_default();
            format!("{}/{name}\n", resource.prefix())
        }
        Format::Json | Format::Yaml | Format::Wide => serialized(object, format),
    }
}

fn serialized(value: &Value, format: Format) -> String {
    if format == Format::Yaml {
        return yaml::render(value);
    }
    let mut bytes = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, indented);
    value.serialize(&mut serializer).expect("a JSON value can be written as JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

/// Hands each object of a watch to `show`, until the server or the user ends it.
async fn watch(
    cluster: &Cluster,
    path: &str,
    accept: &str,
    mut show: impl FnMut(&Value) -> std::io::Result<()>,
) -> Result<()> {
    let mut lines = cluster.stream(path, accept).await?.lines();
    while let Some(line) = lines.try_next().await? {
        let event: Value = serde_json::from_str(&line)?;
        match event["type"].as_str() {
            Some("BOOKMARK") => {}
            Some("ERROR") => {
                bail!("error: {}", event["object"]["message"].as_str().unwrap_or("watch ended"))
            }
            _ => show(&event["object"])?,
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{catalog::tests::resource, golden};

    #[test]
    fn objects_print_in_every_format() {
        let pods = resource("", "Pod", "pods", &["po"]);
        let list = json!({"kind": "PodList", "items": [{"metadata": {"name": "p", "labels": {"on": "yes"}}}]});
        let object = parts(&pods, list).remove(0);
        let mut screens = String::new();
        for format in [Format::Json, Format::Yaml, Format::Name] {
            screens.push_str(&shown(&pods, &object, format));
            screens.push('\n');
        }
        golden::check("get-formats.txt", &screens);
    }
}
