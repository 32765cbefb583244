//! `lockstep create`: makes what manifests say, and nothing that is there already.

use anyhow::Result;

use crate::{
    apply::{DryRun, Place, Shown},
    args::Connection,
    catalog::Catalog,
    cluster::Cluster,
    exit::{Failures, usage},
    manifest, output, validate,
};

/// Options of `lockstep create`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
An object that exists already is an error; `lockstep apply` changes it instead. Names may be left to
the server with metadata.generateName.

Examples:
  lockstep create -f job.yaml
  lockstep create -f job.yaml -o name     print only `job.batch/NAME`, for scripts
  lockstep create -f job.yaml --dry-run=server -o yaml
                                          what the server would make of it
  generate | lockstep create -f -         standard input")]
pub(crate) struct Options {
    /// A file, a folder, or - for standard input; may be given more than once
    #[arg(short, long = "filename", value_name = "FILE")]
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
    #[command(flatten)]
    connection: Connection,
    #[arg(hide = true, trailing_var_arg = true, allow_hyphen_values = true)]
    generator: Vec<String>,
}

/// Creates every object, goes on after one that is refused, and fails in the end if one was.
pub(crate) async fn run(options: &Options) -> Result<()> {
    if let Some(kind) = options.generator.first() {
        return Err(usage(format!(
            "error: `create {kind}` makes objects from options, which only kubectl does; write a \
             manifest and use `create -f FILE`, or `kubectl create {kind} ... --dry-run=client \
             -o yaml | lockstep create -f -`"
        )));
    }
    if options.filename.is_empty() {
        return Err(usage("error: nothing to create: name a manifest with -f FILE"));
    }
    let manifests = manifest::read(&options.filename, options.recursive)?;
    if manifests.is_empty() {
        return Err(usage("error: no objects passed to create"));
    }
    let cluster = Cluster::find(&options.connection).await?;
    let catalog = Catalog::read(&cluster).await?;
    let mut failures = Failures::default();
    for manifest in &manifests {
        let done = async {
            let wanted = options.connection.namespace.as_deref();
            let place = Place::of(&cluster, &catalog, manifest, wanted)?;
            let object = place.create(&cluster, options.dry_run).await?;
            match options.output {
                Some(shown) => output::data(shown.render(place.resource, &object))?,
                None => {
                    let name = object["metadata"]["name"].as_str().unwrap_or(&place.name);
                    let prefix = place.resource.prefix();
                    let suffix = options.dry_run.suffix();
                    output::line(format!("{prefix}/{name} created{suffix}"))?;
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
