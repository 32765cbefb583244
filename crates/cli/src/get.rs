//! `lockstep get`: tables as the server makes them, or the objects themselves.

mod columns;
mod format;
mod sort;

use anyhow::Result;
use serde_json::{Value, json};

use crate::{
    apply::Place,
    args::{Connection, Selectors},
    catalog::{Catalog, Resource, query},
    cluster::{Cluster, TABLE},
    exit::{Failures, usage},
    jsonpath::Template,
    logs, manifest, output,
    table::{Printer, Style},
    targets::{self, Target},
    watching::Watching,
};

use self::{columns::ColumnsPrinter, format::Format};

pub(crate) use self::format::{json, name_line};

/// Options of `lockstep get`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep get pods                       pods of the current namespace
  lockstep get pods -A -o wide            of all namespaces, with addresses and nodes
  lockstep get pods,jobs                  two types
  lockstep get pod/hello svc/hello        two objects
  lockstep get pods -l app=train -w       watch the pods of one label
  lockstep get pods --field-selector status.phase=Running
  lockstep get pods --sort-by=.metadata.creationTimestamp -L app
                                          oldest first, a column for the label app
  lockstep get pod hello -o yaml          everything about one pod
  lockstep get pods -o jsonpath='{.items[*].status.podIP}'
  lockstep get pods -o custom-columns=NAME:.metadata.name,NODE:.spec.nodeName
  lockstep get -f pod.yaml                what a manifest names
  lockstep get all                        what people usually look for")]
pub(crate) struct Options {
    /// What to show: TYPE, TYPE NAME..., or TYPE/NAME...
    #[arg(value_name = "TYPE[/NAME]", required_unless_present_any = ["filename", "raw"],
          conflicts_with_all = ["filename", "raw"])]
    targets: Vec<String>,
    /// How to show it: wide, json, yaml, name, jsonpath=TEMPLATE, jsonpath-as-json=TEMPLATE,
    /// jsonpath-file=FILE, custom-columns=HEADER:PATH,..., custom-columns-file=FILE
    #[arg(short, long, value_name = "FORMAT", value_parser = Format::parse)]
    output: Option<Format>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    selectors: Selectors,
    /// Show the objects in the order of this field: `.metadata.name`
    #[arg(long, value_name = "PATH")]
    sort_by: Option<String>,
    /// Go on and show changes as they happen
    #[arg(short, long)]
    watch: bool,
    /// Show changes as they happen, without what is there now
    #[arg(long)]
    watch_only: bool,
    /// Show these labels as columns; may be given more than once
    #[arg(short = 'L', long, value_name = "LABEL", value_delimiter = ',')]
    label_columns: Vec<String>,
    /// Show all labels in a last column
    #[arg(long)]
    show_labels: bool,
    /// Put the type before each name
    #[arg(long)]
    show_kind: bool,
    /// Leave out the header line
    #[arg(long)]
    no_headers: bool,
    /// Keep metadata.managedFields in JSON and YAML
    #[arg(long)]
    show_managed_fields: bool,
    /// Say nothing when an object does not exist
    #[arg(long)]
    ignore_not_found: bool,
    /// A file, a folder, or - for standard input, that names the objects
    #[arg(short, long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    /// Also look into folders inside folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Print what the server answers to this path, as it is: `/readyz`
    #[arg(long, value_name = "PATH")]
    raw: Option<String>,
    #[command(flatten)]
    connection: Connection,
}

/// One object, or all of a resource, in a namespace.
struct Wanted<'a> {
    target: Target<'a>,
    /// `None` for all namespaces.
    namespace: Option<String>,
}

/// Shows what was asked for.
pub(crate) async fn run(options: &Options) -> Result<()> {
    if let Some(path) = options.sort_by.as_deref() {
        Template::relaxed(path).map_err(|error| usage(format!("error: --sort-by: {error}")))?;
    }
    let cluster = Cluster::find(&options.connection).await?;
    if let Some(path) = &options.raw {
        if !path.starts_with('/') {
            return Err(usage(format!("error: --raw {path:?}: a path begins with a slash")));
        }
        return logs::copy(cluster.stream(path, "*/*").await?, "").await;
    }
    let catalog = Catalog::read(&cluster).await?;
    let manifests = manifest::read(&options.filename, options.recursive)?;
    let mut wanted = options.wanted(&cluster, &catalog)?;
    for manifest in &manifests {
        let place =
            Place::of(&cluster, &catalog, manifest, options.connection.namespace.as_deref())?;
        place.must_be_named()?;
        let target = Target { resource: place.resource, name: Some(place.name) };
        wanted.push(Wanted { target, namespace: Some(place.namespace) });
    }
    if options.is_watch() && wanted.len() != 1 {
        return Err(usage(
            "error: you may only specify a single resource type, or a single object, to watch",
        ));
    }
    match &options.output {
        None | Some(Format::Wide) => tables(&cluster, options, &wanted).await,
        Some(format) => objects(&cluster, options, &wanted, format).await,
    }
}

impl Options {
    fn wanted<'a>(&self, cluster: &Cluster, catalog: &'a Catalog) -> Result<Vec<Wanted<'a>>> {
        if self.targets.is_empty() {
            return Ok(Vec::new());
        }
        let targets = targets::parse(catalog, &self.targets)?;
        let is_named = targets.iter().any(|target| target.name.is_some());
        if self.all_namespaces && is_named {
            return Err(usage(
                "error: a resource cannot be retrieved by name across all namespaces: name the \
                 namespace with -n",
            ));
        }
        if is_named
            && (self.selectors.selector.is_some() || self.selectors.field_selector.is_some())
        {
            return Err(usage(
                "error: name cannot be provided when a selector is specified: leave out one of them",
            ));
        }
        let place = (!self.all_namespaces).then(|| cluster.namespace.clone());
        let wanted = |target| Wanted { target, namespace: place.clone() };
        Ok(targets.into_iter().map(wanted).collect())
    }

    fn is_watch(&self) -> bool {
        self.watch || self.watch_only
    }

    fn pairs(&self) -> Vec<(&'static str, Option<String>)> {
        vec![
            ("labelSelector", self.selectors.selector.clone()),
            ("fieldSelector", self.selectors.field_selector.clone()),
            ("includeObject", self.sort_by.is_some().then(|| "Object".to_owned())),
        ]
    }

    fn path(&self, wanted: &Wanted<'_>) -> String {
        let resource = wanted.target.resource;
        match (&wanted.target.name, wanted.namespace.as_deref()) {
            (Some(name), namespace) => resource.object(namespace.unwrap_or_default(), name),
            (None, namespace) => resource.collection(namespace) + &query(&self.pairs()),
        }
    }

    /// The watch of the same objects.
    fn watching<'a>(
        &self,
        cluster: &'a Cluster,
        wanted: &Wanted<'_>,
        accept: &'static str,
    ) -> Watching<'a> {
        let path = wanted.target.resource.collection(wanted.namespace.as_deref());
        let pairs = match &wanted.target.name {
            Some(name) => vec![("fieldSelector", Some(format!("metadata.name={name}")))],
            None => self.pairs(),
        };
        Watching { cluster, path, pairs, accept }
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
            is_wide: matches!(self.output, Some(Format::Wide)),
            has_namespace: self.all_namespaces && resource.is_namespaced,
            label_columns: self.label_columns.clone(),
            has_labels: self.show_labels,
            is_headless: self.no_headers,
        }
    }

    fn sort<T>(&self, items: &mut Vec<T>, object: impl Fn(&T) -> &Value) -> Result<()> {
        match &self.sort_by {
            Some(path) => sort::sort(items, &Template::relaxed(path)?, path, object),
            None => Ok(()),
        }
    }
}

/// Tables of one resource, shown under one header.
struct Block<'a> {
    resource: &'a Resource,
    table: Value,
}

async fn tables(cluster: &Cluster, options: &Options, wanted: &[Wanted<'_>]) -> Result<()> {
    let mut blocks: Vec<Block<'_>> = Vec::new();
    let mut failures = Failures::default();
    let mut refusals = Vec::new();
    for one in wanted {
        let resource = one.target.resource;
        match cluster.table(&options.path(one)).await {
            Ok(table) => match blocks.last_mut() {
                Some(block) if block.resource == resource => block.append(table),
                _ => blocks.push(Block { resource, table }),
            },
            Err(refusal) if refusal.is_not_found() && options.ignore_not_found => {}
            Err(refusal) => refusals.push(anyhow::Error::from(refusal)),
        }
    }
    let is_mixed = wanted.windows(2).any(|pair| pair[0].target.resource != pair[1].target.resource);
    let mut is_first = true;
    for block in &mut blocks {
        if let Some(Value::Array(rows)) = block.table.get_mut("rows") {
            options.sort(rows, |row| &row["object"])?;
        }
        let is_empty = block.table["rows"].as_array().is_none_or(Vec::is_empty);
        if is_empty && !options.is_watch() {
            continue;
        }
        if !is_first {
            output::line("")?;
        }
        is_first = false;
        let mut printer = Printer::new(options.style(block.resource));
        let has_prefix = is_mixed || options.show_kind;
        let prefix =
            if has_prefix { format!("{}/", block.resource.prefix()) } else { String::new() };
        if options.is_watch() {
            if options.watch_only {
                block.table["rows"] = json!([]);
                printer.learn(&block.table);
            } else {
                output::data(printer.render(&block.table, &prefix))?;
            }
            let watching = options.watching(cluster, &wanted[0], TABLE);
            let from = version(&block.table);
            return watching
                .run(from, |_, table| Ok(output::data(printer.render(table, &prefix))?))
                .await;
        }
        output::data(printer.render(&block.table, &prefix))?;
    }
    refusals.iter().for_each(|refusal| failures.note(refusal));
    if is_first && failures.is_empty() && !options.ignore_not_found {
        output::note(nothing_found(cluster, options, wanted));
    }
    failures.end()
}

impl Block<'_> {
    fn append(&mut self, mut table: Value) {
        if let (Some(Value::Array(rows)), Some(Value::Array(more))) =
            (self.table.get_mut("rows"), table.get_mut("rows"))
        {
            rows.append(more);
        }
    }
}

/// The version a watch goes on from: that of a list, or of the one object in a Table.
fn version(answer: &Value) -> String {
    let listed = answer["metadata"]["resourceVersion"].as_str().filter(|v| !v.is_empty());
    let one = answer["rows"][0]["object"]["metadata"]["resourceVersion"].as_str();
    listed.or(one).unwrap_or("0").to_owned()
}

fn nothing_found(cluster: &Cluster, options: &Options, wanted: &[Wanted<'_>]) -> String {
    let is_namespaced = wanted.iter().any(|one| one.target.resource.is_namespaced);
    if options.all_namespaces || !is_namespaced {
        "No resources found".to_owned()
    } else {
        format!("No resources found in {} namespace.", cluster.namespace)
    }
}

/// What prints objects in one format, one after another.
enum Sink<'a> {
    Each(&'a Format),
    Columns(ColumnsPrinter<'a>),
}

impl<'a> Sink<'a> {
    fn new(format: &'a Format, options: &Options) -> Self {
        match format {
            Format::Columns(columns) => {
                Self::Columns(ColumnsPrinter::new(columns, !options.no_headers))
            }
            other => Self::Each(other),
        }
    }

    fn print(&mut self, resource: &Resource, objects: &[Value]) -> Result<()> {
        match self {
            Self::Columns(printer) => output::data(printer.render(objects)?)?,
            Self::Each(format) => {
                for object in objects {
                    output::data(format.render(resource, object)?)?;
                }
            }
        }
        Ok(())
    }
}

async fn objects(
    cluster: &Cluster,
    options: &Options,
    wanted: &[Wanted<'_>],
    format: &Format,
) -> Result<()> {
    let mut sink = Sink::new(format, options);
    let mut found: Vec<(&Resource, Value)> = Vec::new();
    let mut failures = Failures::default();
    for one in wanted {
        let resource = one.target.resource;
        let answer = match cluster.get(&options.path(one)).await {
            Ok(answer) => answer,
            Err(refusal) if refusal.is_not_found() && options.ignore_not_found => continue,
            Err(refusal) => {
                failures.note(&refusal.into());
                continue;
            }
        };
        let from = version(&answer);
        let items = parts(resource, answer).into_iter().map(|object| options.cleaned(object));
        if !options.is_watch() {
            found.extend(items.map(|item| (resource, item)));
            continue;
        }
        if !options.watch_only {
            sink.print(resource, &items.collect::<Vec<_>>())?;
        }
        let watching = options.watching(cluster, one, "application/json");
        return watching
            .run(from, |_, object| {
                let objects = parts(resource, object.clone());
                let cleaned = objects.into_iter().map(|object| options.cleaned(object));
                sink.print(resource, &cleaned.collect::<Vec<_>>())
            })
            .await;
    }
    options.sort(&mut found, |(_, object)| object)?;
    let is_single = wanted.len() == 1 && wanted[0].target.name.is_some();
    let is_listed = !is_single && !matches!(format, Format::Name | Format::Columns(_));
    let has_nothing = found.is_empty() && (is_single || !failures.is_empty());
    if is_listed && !has_nothing {
        let items: Vec<Value> = found.into_iter().map(|(_, object)| object).collect();
        let list = json!({
            "apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""},
            "items": items});
        // A list has no resource of its own, and no format of it needs one.
        sink.print(wanted[0].target.resource, &[list])?;
        return failures.end();
    }
    if matches!(format, Format::Columns(_)) {
        // All at once, so that the columns are as wide as the widest.
        let rows: Vec<Value> = found.into_iter().map(|(_, object)| object).collect();
        if !rows.is_empty() || failures.is_empty() {
            sink.print(wanted[0].target.resource, &rows)?;
        }
        return failures.end();
    }
    for (resource, object) in found {
        sink.print(resource, &[object])?;
    }
    failures.end()
}

/// The members of a list, with the `apiVersion` and `kind` that lists leave out; anything else is
/// its own only member.
fn parts(resource: &Resource, mut answer: Value) -> Vec<Value> {
    let Some(Value::Array(mut items)) = answer.get_mut("items").map(Value::take) else {
        return vec![answer];
    };
    for item in &mut items {
        if let Value::Object(item) = item {
            item.entry("apiVersion").or_insert_with(|| resource.api_version().into());
            item.entry("kind").or_insert_with(|| resource.kind.clone().into());
        }
    }
    items
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
        for format in ["json", "yaml", "name", "jsonpath={.kind}/{.metadata.name}"] {
            let format = Format::parse(format).expect(format);
            screens.push_str(&format.render(&pods, &object).expect("rendered"));
            screens.push('\n');
        }
        golden::check("get-formats.txt", &screens);
    }
}
