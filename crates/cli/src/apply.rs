//! `lockstep apply`: makes the cluster say what manifests say.

mod merge;

use anyhow::{Result, bail};
use serde_json::{Map, Value, json};

use crate::{
    args::Connection,
    catalog::{Catalog, Resource, query},
    cluster::{Cluster, Content},
    exit::{Failures, usage},
    get,
    manifest::{self, Manifest},
    output, validate,
};

/// Where the manifest applied last is kept: kubectl's annotation, so that both can be used in turn.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// How often an object that others write to at the same time is tried again.
const ATTEMPTS: usize = 5;

/// Options of `lockstep apply`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep apply -f pod.yaml              one file
  lockstep apply -f manifests/ -R         every manifest of a folder and the folders in it
  generate | lockstep apply -f -          standard input
  lockstep apply -f pod.yaml --dry-run=server
                                          what would happen, as the server sees it
  lockstep apply -f pod.yaml --server-side
                                          change nothing that somebody else has set")]
pub(crate) struct Options {
    /// A file, a folder, or - for standard input; may be given more than once
    #[arg(short, long = "filename", required = true, value_name = "FILE")]
    filename: Vec<String>,
    /// Also look into folders inside folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// Change nothing; `server` asks the server what it would do
    #[arg(long, value_enum, default_value = "none", num_args = 0..=1, require_equals = true,
          default_missing_value = "client")]
    dry_run: DryRun,
    /// Print the objects: name, json or yaml
    #[arg(short, long, value_enum, value_name = "FORMAT")]
    output: Option<Shown>,
    /// Let the server merge, and refuse to change what others own
    #[arg(long)]
    server_side: bool,
    /// With --server-side: take from others what they own
    #[arg(long, requires = "server_side")]
    force_conflicts: bool,
    /// With --server-side: who owns what is applied
    #[arg(long, default_value = "lockstep", value_name = "NAME")]
    field_manager: String,
    #[command(flatten)]
    connection: Connection,
}

/// Whether changes are meant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum DryRun {
    /// Changes are made
    #[default]
    None,
    /// Nothing is sent
    Client,
    /// The server decides everything and stores nothing
    Server,
}

impl DryRun {
    /// What is said after what was done.
    pub(crate) fn suffix(self) -> &'static str {
        match self {
            Self::None => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }

    /// What a request says.
    pub(crate) fn parameter(self) -> Option<String> {
        (self == Self::Server).then(|| "All".to_owned())
    }
}

/// How an object that was written is shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Shown {
    /// Only TYPE/NAME
    Name,
    /// The object as JSON
    Json,
    /// The object as YAML
    Yaml,
}

impl Shown {
    /// The object as text, without those who own its fields.
    pub(crate) fn render(self, resource: &Resource, object: &Value) -> String {
        let mut object = object.clone();
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        match self {
            Self::Name => get::name_line(resource, &object),
            Self::Json => get::json(&object),
            Self::Yaml => format!("---\n{}", manifest::yaml::render(&object)),
        }
    }
}

/// What an apply did to one object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It was not there.
    Created,
    /// It said something else.
    Configured,
    /// It said so already.
    Unchanged,
    /// It says so now; only the server knows what it said before.
    ServerSide,
}

impl Outcome {
    fn word(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Configured => "configured",
            Self::Unchanged => "unchanged",
            Self::ServerSide => "serverside-applied",
        }
    }
}

/// Applies every object, goes on after one that is refused, and fails in the end if one was.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let manifests = manifest::read(&options.filename, options.recursive)?;
    if manifests.is_empty() {
        return Err(usage("error: no objects passed to apply"));
    }
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let mut failures = Failures::default();
    for manifest in &manifests {
        let done = async {
            let place =
                Place::of(&cluster, &catalog, manifest, options.connection.namespace.as_deref())?;
            let applied = match options.server_side {
                true => place.apply_on_server(&cluster, options).await?,
                false => place.apply(&cluster, options.dry_run).await?,
            };
            match options.output {
                Some(shown) => output::data(shown.render(place.resource, &applied.object))?,
                None => {
                    let (done, suffix) = (applied.outcome.word(), options.dry_run.suffix());
                    output::line(format!("{} {done}{suffix}", place.shown()))?;
                }
            }
            anyhow::Ok(())
        };
        if let Err(error) = done.await {
            failures.note(&error);
            validate::note_places(&error, manifest);
        }
    }
    failures.end()
}

/// What became of one object.
#[derive(Clone, Debug)]
pub(crate) struct Applied {
    /// What was done.
    pub(crate) outcome: Outcome,
    /// The object as it is now, or as it would be.
    pub(crate) object: Value,
}

/// One object of a manifest and where it belongs.
#[derive(Debug)]
pub(crate) struct Place<'c, 'm> {
    /// Its resource.
    pub(crate) resource: &'c Resource,
    /// Its name.
    pub(crate) name: String,
    /// Its namespace; meaningless for cluster-scoped objects.
    pub(crate) namespace: String,
    object: Map<String, Value>,
    file: &'m str,
    line: u64,
}

impl<'c, 'm> Place<'c, 'm> {
    /// Finds the place of a manifest; `namespace` is the one the user insists on.
    pub(crate) fn of(
        cluster: &Cluster,
        catalog: &'c Catalog,
        manifest: &'m Manifest,
        namespace: Option<&str>,
    ) -> Result<Self> {
        let (file, name) = (manifest.file.as_str(), manifest.name());
        let resource =
            catalog.of_kind(manifest.api_version(), manifest.kind()).ok_or_else(|| {
                let (kind, version) = (manifest.kind(), manifest.api_version());
                let hint = catalog.near_kind(version, kind);
                usage(format!(
                    "error: {file}:{}: no matches for kind {kind:?} in version {version:?}{hint}",
                    manifest.line("kind"),
                ))
            })?;
        let mut object = manifest.object.clone();
        let mut place = cluster.namespace.clone();
        if resource.is_namespaced {
            match (manifest.namespace(), namespace) {
                (own, Some(wanted)) if !own.is_empty() && own != wanted => {
                    return Err(usage(format!(
                        "error: the namespace from the provided object {own:?} does not match the \
                         namespace {wanted:?}. You must pass '--namespace={own}' to perform this \
                         operation."
                    )));
                }
                ("", _) => set_namespace(&mut object, &place),
                (own, _) => own.clone_into(&mut place),
            }
        }
        let line = manifest.line("metadata");
        Ok(Self { resource, name: name.to_owned(), namespace: place, object, file, line })
    }

    /// Refuses an object that cannot be found again, because it has no name.
    pub(crate) fn must_be_named(&self) -> Result<()> {
        if !self.name.is_empty() {
            return Ok(());
        }
        let hint = if self.object.get("metadata").is_some_and(|m| m["generateName"].is_string()) {
            ": a generated name is different each time; use `create` for it"
        } else {
            " to find the object by"
        };
        let (file, line) = (self.file, self.line);
        Err(usage(format!("error: {file}:{line}: metadata.name is needed{hint}")))
    }

    /// `pod/hello`.
    pub(crate) fn shown(&self) -> String {
        format!("{}/{}", self.resource.prefix(), self.name)
    }

    /// Makes the object say what the manifest says.
    pub(crate) async fn apply(&self, cluster: &Cluster, dry_run: DryRun) -> Result<Applied> {
        self.must_be_named()?;
        let doing = format!("error when applying {:?}", self.file);
        let path = self.resource.object(&self.namespace, &self.name);
        let modified = self.annotated();
        for _ in 0..ATTEMPTS {
            let current = match cluster.get(&path).await {
                Ok(Value::Object(current)) => current,
                Ok(_) => bail!("error: {}: the server's answer is no object", self.shown()),
                Err(refusal) if refusal.is_not_found() => {
                    let object = self.post(cluster, modified, dry_run).await?;
                    return Ok(Applied { outcome: Outcome::Created, object });
                }
                Err(refusal) => return Err(refusal.into_error(Some(&doing))),
            };
            let Some((wanted, patch)) = self.patch(&modified, &current) else {
                let object = Value::Object(current);
                return Ok(Applied { outcome: Outcome::Unchanged, object });
            };
            if dry_run == DryRun::Client {
                let object = Value::Object(wanted);
                return Ok(Applied { outcome: Outcome::Configured, object });
            }
            let target = path.clone() + &write_query(dry_run);
            let patch = Value::Object(patch);
            match cluster
                .call("PATCH", &target, "application/json", Content::MergePatch(&patch))
                .await
            {
                Ok(object) => return Ok(Applied { outcome: Outcome::Configured, object }),
                Err(refusal) if refusal.code() == 409 => {}
                Err(refusal) => return Err(refusal.into_error(Some(&doing))),
            }
        }
        bail!("error: {} changes faster than it can be applied; try again", self.shown())
    }

    /// Lets the server make the object say what the manifest says.
    async fn apply_on_server(&self, cluster: &Cluster, options: &Options) -> Result<Applied> {
        self.must_be_named()?;
        if options.dry_run == DryRun::Client {
            return Err(usage("error: --dry-run=client doesn't work with --server-side"));
        }
        let force = options.force_conflicts.then(|| "true".to_owned());
        let query = query(&[
            ("fieldManager", Some(options.field_manager.clone())),
            ("fieldValidation", Some("Strict".to_owned())),
            ("force", force),
            ("dryRun", options.dry_run.parameter()),
        ]);
        let path = self.resource.object(&self.namespace, &self.name) + &query;
        let object = Value::Object(self.object.clone());
        let content = Content::Configuration(&object);
        match cluster.call("PATCH", &path, "application/json", content).await {
            Ok(object) => Ok(Applied { outcome: Outcome::ServerSide, object }),
            Err(refusal) => {
                let doing = format!("error when applying {:?}", self.file);
                Err(refusal.into_error(Some(&doing)))
            }
        }
    }

    /// Makes the object as the manifest says it, which must not be there yet.
    pub(crate) async fn create(&self, cluster: &Cluster, dry_run: DryRun) -> Result<Value> {
        self.post(cluster, self.object.clone(), dry_run).await
    }

    async fn post(
        &self,
        cluster: &Cluster,
        object: Map<String, Value>,
        dry_run: DryRun,
    ) -> Result<Value> {
        if dry_run == DryRun::Client {
            return Ok(Value::Object(object));
        }
        let path = self.resource.collection(Some(&self.namespace)) + &write_query(dry_run);
        let doing = format!("error when creating {:?}", self.file);
        let object = Value::Object(object);
        let sent = cluster.call("POST", &path, "application/json", Content::Json(&object)).await;
        sent.map_err(|refusal| refusal.into_error(Some(&doing)))
    }

    /// What `current` should become, and the patch that makes it so. The patch is tied to the
    /// version it was made for: lists in it are whole, so another writer's change in between must
    /// not be overwritten.
    fn patch(
        &self,
        modified: &Map<String, Value>,
        current: &Map<String, Value>,
    ) -> Option<(Map<String, Value>, Map<String, Value>)> {
        let annotations = current.get("metadata").map(|metadata| &metadata["annotations"]);
        let original = annotations
            .and_then(|annotations| annotations[LAST_APPLIED].as_str())
            .and_then(|text| serde_json::from_str::<Map<String, Value>>(text).ok());
        let schema = lockstep_api::schema::of(
            &self.resource.group,
            &self.resource.version,
            &self.resource.kind,
        );
        let wanted = merge::desired(original.as_ref(), modified, current, schema);
        let mut patch = merge::patch(current, &wanted)?;
        let version = current.get("metadata").map(|metadata| metadata["resourceVersion"].clone());
        let metadata = patch.entry("metadata").or_insert_with(|| json!({}));
        metadata["resourceVersion"] = version.unwrap_or_default();
        Some((wanted, patch))
    }

    /// The object with itself written down in its annotation.
    fn annotated(&self) -> Map<String, Value> {
        let mut object = self.object.clone();
        let metadata = object.entry("metadata").or_insert_with(|| json!({}));
        if !metadata["annotations"].is_object() {
            metadata["annotations"] = json!({});
        }
        if let Some(annotations) = metadata["annotations"].as_object_mut() {
            annotations.remove(LAST_APPLIED);
        }
        let written = Value::Object(object.clone()).to_string() + "\n";
        object["metadata"]["annotations"][LAST_APPLIED] = written.into();
        object
    }
}

fn set_namespace(object: &mut Map<String, Value>, namespace: &str) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        metadata.insert("namespace".to_owned(), namespace.into());
    }
}

fn write_query(dry_run: DryRun) -> String {
    query(&[
        ("fieldManager", Some("lockstep-apply".to_owned())),
        ("fieldValidation", Some("Strict".to_owned())),
        ("dryRun", dry_run.parameter()),
    ])
}
