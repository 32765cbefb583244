//! Generates `crates/api/openapi/` from what Kubernetes publishes.
//!
//! `schemas.json` holds the OpenAPI schemas of the kinds served, as clients read them. `types.json`
//! holds what the server itself needs to decode, prune and patch: Go's view of the same types, with
//! list semantics from the OpenAPI documents. `samples.json` holds an object of each kind as JSON
//! and as protobuf, by which the decoder of the latter is tested. All have one entry per line, so
//! that a new release shows as a readable diff.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

use anyhow::{Context, Result, bail, ensure};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The release of `k8s.io/kubernetes` everything is generated from.
const KUBERNETES: &str = "v1.36.4";
/// The release of `k8s.io/api` and `k8s.io/apimachinery` that belongs to it.
const STAGING: &str = "v0.36.4";

/// The kinds served, and the bodies of requests to them. A kind's list is taken along when there is
/// one. To serve another kind, add it here and run `cargo xtask openapi`.
const KINDS: &[(&str, &str, &[&str])] = &[
    (
        "",
        "v1",
        &[
            "Binding",
            "ConfigMap",
            "DeleteOptions",
            "Endpoints",
            "Event",
            "LimitRange",
            "Namespace",
            "Node",
            "PersistentVolumeClaim",
            "Pod",
            "ResourceQuota",
            "Secret",
            "Service",
            "ServiceAccount",
            "Status",
        ],
    ),
    ("apiextensions.k8s.io", "v1", &["CustomResourceDefinition"]),
    ("authentication.k8s.io", "v1", &["SelfSubjectReview", "TokenRequest", "TokenReview"]),
    (
        "authorization.k8s.io",
        "v1",
        &[
            "LocalSubjectAccessReview",
            "SelfSubjectAccessReview",
            "SelfSubjectRulesReview",
            "SubjectAccessReview",
        ],
    ),
    ("autoscaling", "v1", &["Scale"]),
    ("batch", "v1", &["CronJob", "Job"]),
    ("coordination.k8s.io", "v1", &["Lease"]),
    ("discovery.k8s.io", "v1", &["EndpointSlice"]),
    ("events.k8s.io", "v1", &["Event"]),
    ("policy", "v1", &["Eviction", "PodDisruptionBudget"]),
    (
        "rbac.authorization.k8s.io",
        "v1",
        &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding"],
    ),
    ("scheduling.k8s.io", "v1", &["PriorityClass"]),
];

/// Schemas that operations refer to and that belong to no kind.
const EXTRA: &[&str] = &[
    "io.k8s.apimachinery.pkg.apis.meta.v1.Patch",
    "io.k8s.apimachinery.pkg.apis.meta.v1.WatchEvent",
];

/// Regenerate the API schemas from the published OpenAPI documents.
#[derive(clap::Args, Debug)]
pub(crate) struct Options {
    /// Folder with the OpenAPI v3 documents; fetched with `go mod download` when not given.
    #[arg(long)]
    spec: Option<PathBuf>,
    /// Change nothing; fail if the committed files are not what would be generated.
    #[arg(long)]
    check: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Options) -> Result<()> {
    let scratch = std::env::temp_dir().join(format!("lockstep-openapi-{}", std::process::id()));
    fs::create_dir_all(&scratch)?;
    let outcome = generate(args, &scratch);
    fs::remove_dir_all(&scratch)?;
    let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/api/openapi");
    for (name, text) in outcome? {
        let path = target.join(name);
        if args.check {
            let committed = fs::read_to_string(&path).unwrap_or_default();
            ensure!(committed == text, "{name} is out of date: run `cargo xtask openapi`");
        } else {
            fs::create_dir_all(&target)?;
            fs::write(&path, text)?;
        }
    }
    Ok(())
}

fn generate(args: &Options, scratch: &Path) -> Result<[(&'static str, String); 3]> {
    let spec = match &args.spec {
        Some(spec) => spec.clone(),
        None => fetch_spec(scratch)?,
    };
    let published = read_published(&spec)?;
    let roots = roots(&published);
    let schemas = closure(&published, roots)?;
    let mut types = go_types(scratch)?;
    add_list_semantics(&mut types, &published);
    let lines = types.types.iter().map(|(name, t)| Ok((name, serde_json::to_value(t)?)));
    let types_text = format!(
        "{{\"kinds\":{},\"types\":{}}}\n",
        one_per_line(types.kinds.iter().map(|(k, v)| Ok((k, Value::from(v.clone())))))?,
        one_per_line(lines)?
    );
    let schemas_text = one_per_line(schemas.iter().map(|(name, s)| Ok((name, s.clone()))))? + "\n";
    let samples = types.samples.iter().map(|(kind, sample)| Ok((kind, sample.clone())));
    let samples_text = one_per_line(samples)? + "\n";
    Ok([("schemas.json", schemas_text), ("types.json", types_text), ("samples.json", samples_text)])
}

fn one_per_line<'a>(entries: impl Iterator<Item = Result<(&'a String, Value)>>) -> Result<String> {
    let lines: Vec<String> = entries
        .map(|entry| {
            let (name, mut value) = entry?;
            value.sort_all_objects();
            Ok(format!("{}:{value}", Value::from(name.as_str())))
        })
        .collect::<Result<_>>()?;
    Ok(format!("{{\n{}\n}}", lines.join(",\n")))
}

fn fetch_spec(scratch: &Path) -> Result<PathBuf> {
    #[derive(Deserialize)]
    struct Module {
        #[serde(rename = "Dir")]
        dir: PathBuf,
    }
    let module = format!("k8s.io/kubernetes@{KUBERNETES}");
    fs::write(scratch.join("go.mod"), "module scratch\n")?;
    let out = go(scratch, &["mod", "download", "-json", &module])?;
    let module: Module = serde_json::from_slice(&out)?;
    Ok(module.dir.join("api/openapi-spec/v3"))
}

/// All schemas of the documents of [`KINDS`]. A schema of one name is the same in all of them but
/// for the list of groups that `DeleteOptions` belongs to, which is complete in core's, read first.
fn read_published(spec: &Path) -> Result<BTreeMap<String, Value>> {
    #[derive(Deserialize)]
    struct Document {
        components: Components,
    }
    #[derive(Deserialize)]
    struct Components {
        schemas: Map<String, Value>,
    }
    let mut all = BTreeMap::new();
    for (group, version, _) in KINDS {
        let name = match *group {
            "" => format!("api__{version}_openapi.json"),
            group => format!("apis__{group}__{version}_openapi.json"),
        };
        let path = spec.join(name);
        let text = fs::read(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let document: Document = serde_json::from_slice(&text)?;
        for (name, schema) in document.components.schemas {
            all.entry(name).or_insert(schema);
        }
    }
    Ok(all)
}

/// The names of the schemas of [`KINDS`] and their lists.
fn roots(published: &BTreeMap<String, Value>) -> Vec<String> {
    let wanted = |kind: &Value| {
        let text = |key: &str| kind[key].as_str().unwrap_or_default();
        KINDS.iter().any(|(group, version, kinds)| {
            let name = text("kind");
            let item = name.strip_suffix("List").unwrap_or(name);
            *group == text("group")
                && *version == text("version")
                && (kinds.contains(&name) || kinds.contains(&item))
        })
    };
    published
        .iter()
        .filter(|(_, schema)| {
            let kinds = schema["x-kubernetes-group-version-kind"].as_array();
            kinds.is_some_and(|kinds| kinds.iter().any(wanted))
        })
        .map(|(name, _)| name.clone())
        .chain(EXTRA.iter().map(ToString::to_string))
        .collect()
}

fn closure(
    published: &BTreeMap<String, Value>,
    mut open: Vec<String>,
) -> Result<BTreeMap<String, Value>> {
    let mut taken = BTreeMap::new();
    while let Some(name) = open.pop() {
        if taken.contains_key(&name) {
            continue;
        }
        let schema = published.get(&name).with_context(|| format!("no schema {name}"))?;
        let mut found = BTreeSet::new();
        references(schema, &mut found);
        open.extend(found);
        taken.insert(name, schema.clone());
    }
    Ok(taken)
}

fn references(value: &Value, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(map) => {
            if let Some(Value::String(target)) = map.get("$ref") {
                found.extend(target.strip_prefix("#/components/schemas/").map(str::to_owned));
            }
            map.values().for_each(|v| references(v, found));
        }
        Value::Array(list) => list.iter().for_each(|v| references(v, found)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

#[derive(Deserialize)]
struct Types {
    kinds: BTreeMap<String, String>,
    types: BTreeMap<String, GoType>,
    samples: BTreeMap<String, Value>,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct GoType {
    kind: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    go: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    elem: String,
    #[serde(default, rename = "isMessage", skip_serializing_if = "std::ops::Not::not")]
    is_message: bool,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    fields: Vec<GoField>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    map_type: String,
}

#[derive(Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
struct GoField {
    name: String,
    #[serde(rename = "type")]
    type_name: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    via: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    omit: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    merge_key: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    strategy: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    proto: String,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    list_type: String,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    list_keys: Vec<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    map_type: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    key_default: Option<Value>,
}

fn go_types(scratch: &Path) -> Result<Types> {
    fs::write(scratch.join("main.go"), include_str!("openapi/gotypes.go"))?;
    fs::write(
        scratch.join("go.mod"),
        format!(
            "module scratch\ngo 1.24\nrequire (\n\tk8s.io/api {STAGING}\n\t\
             k8s.io/apiextensions-apiserver {STAGING}\n\tk8s.io/apimachinery {STAGING}\n)\n"
        ),
    )?;
    go(scratch, &["mod", "tidy"])?;
    let kinds: Vec<String> = KINDS
        .iter()
        .flat_map(|(group, version, kinds)| {
            kinds.iter().map(move |kind| format!("{group}/{version}/{kind}"))
        })
        .collect();
    let mut arguments = vec!["run", "."];
    arguments.extend(kinds.iter().map(String::as_str));
    Ok(serde_json::from_slice(&go(scratch, &arguments)?)?)
}

/// Adds `x-kubernetes-list-type`, `-list-map-keys` and `-map-type`, which Go only has as comments,
/// and what the keys of lists are when they are left out.
fn add_list_semantics(types: &mut Types, published: &BTreeMap<String, Value>) {
    let keys = list_keys(published);
    for (name, go_type) in &mut types.types {
        let Some(schema) = published.get(name) else { continue };
        if let Some(map_type) = schema["x-kubernetes-map-type"].as_str() {
            map_type.clone_into(&mut go_type.map_type);
        }
        for field in &mut go_type.fields {
            let property = &schema["properties"][&field.name];
            if let Some(map_type) = property["x-kubernetes-map-type"].as_str() {
                map_type.clone_into(&mut field.map_type);
            }
            if keys.contains(&(name.as_str(), field.name.as_str())) {
                field.key_default = property.get("default").cloned();
            }
            if let Some(list_type) = property["x-kubernetes-list-type"].as_str() {
                list_type.clone_into(&mut field.list_type);
            }
            if let Some(keys) = property["x-kubernetes-list-map-keys"].as_array() {
                field.list_keys =
                    keys.iter().filter_map(Value::as_str).map(str::to_owned).collect();
            }
        }
    }
}

/// The fields by which elements of some list are told apart: the schema they are in, their name.
fn list_keys(published: &BTreeMap<String, Value>) -> BTreeSet<(&str, &str)> {
    let mut keys = BTreeSet::new();
    let properties = published.values().filter_map(|it| it["properties"].as_object()).flatten();
    for (_, property) in properties {
        let items = &property["items"];
        let target = items.get("$ref").or_else(|| items["allOf"][0].get("$ref"));
        let Some(target) = target.and_then(Value::as_str) else { continue };
        let name = target.rsplit('/').next().unwrap_or(target);
        let listed = property["x-kubernetes-list-map-keys"].as_array().into_iter().flatten();
        keys.extend(listed.filter_map(Value::as_str).map(|key| (name, key)));
    }
    keys
}

fn go(folder: &Path, arguments: &[&str]) -> Result<Vec<u8>> {
    let output = Command::new("go")
        .args(arguments)
        .current_dir(folder)
        .output()
        .context("cannot run go, which is needed to read the published Go types")?;
    if !output.status.success() {
        let subcommand = arguments.first().copied().unwrap_or_default();
        bail!("go {subcommand} failed: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(output.stdout)
}
