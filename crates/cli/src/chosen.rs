//! Which objects a command is about: by name, by query, or by manifest.

use anyhow::Result;

use crate::{
    apply::Place,
    args::Selectors,
    catalog::{Catalog, Resource, query},
    cluster::Cluster,
    exit::usage,
    manifest, targets,
};

/// How objects are chosen.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct Choice {
    /// TYPE NAME..., TYPE/NAME..., or TYPE with --all or -l
    #[arg(
        value_name = "TYPE[/NAME]",
        required_unless_present = "filename",
        conflicts_with = "filename"
    )]
    targets: Vec<String>,
    /// A file, a folder, or - for standard input, that names the objects
    #[arg(short, long = "filename", value_name = "FILE")]
    filename: Vec<String>,
    /// Also look into folders inside folders
    #[arg(short = 'R', long)]
    recursive: bool,
    /// All objects of the type in the namespace
    #[arg(long, conflicts_with = "selector")]
    all: bool,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    #[command(flatten)]
    selectors: Selectors,
}

/// One object that was chosen.
#[derive(Clone, Debug)]
pub(crate) struct Chosen<'a> {
    /// Its resource.
    pub(crate) resource: &'a Resource,
    /// Its namespace; meaningless for cluster-scoped objects.
    pub(crate) namespace: String,
    /// Its name.
    pub(crate) name: String,
}

impl Chosen<'_> {
    /// The path of the collection it is in.
    pub(crate) fn collection(&self) -> String {
        self.resource.collection(Some(&self.namespace))
    }

    /// Its own path.
    pub(crate) fn path(&self) -> String {
        self.resource.object(&self.namespace, &self.name)
    }
}

impl Choice {
    /// Whether the objects are whatever a query finds, and not named one by one.
    pub(crate) fn is_query(&self) -> bool {
        self.all || self.selectors.selector.is_some() || self.selectors.field_selector.is_some()
    }

    /// The objects meant; `namespace` is the one the user insists on.
    pub(crate) async fn resolve<'a>(
        &self,
        cluster: &Cluster,
        catalog: &'a Catalog,
        namespace: Option<&str>,
    ) -> Result<Vec<Chosen<'a>>> {
        let mut chosen = Vec::new();
        if !self.targets.is_empty() {
            for target in targets::parse(catalog, &self.targets)? {
                self.find(cluster, target, &mut chosen).await?;
            }
        }
        for manifest in &manifest::read(&self.filename, self.recursive)? {
            let place = Place::of(cluster, catalog, manifest, namespace)?;
            place.must_be_named()?;
            let Place { resource, name, namespace, .. } = place;
            chosen.push(Chosen { resource, namespace, name });
        }
        Ok(chosen)
    }

    async fn find<'a>(
        &self,
        cluster: &Cluster,
        target: targets::Target<'a>,
        into: &mut Vec<Chosen<'a>>,
    ) -> Result<()> {
        let resource = target.resource;
        if let Some(name) = target.name {
            if self.is_query() || self.all_namespaces {
                return Err(usage(format!(
                    "error: {name:?} names one object, which --all, -A and selectors cannot do: \
                     leave out one of them"
                )));
            }
            into.push(Chosen { resource, namespace: cluster.namespace.clone(), name });
            return Ok(());
        }
        if !self.is_query() {
            return Err(usage(
                "error: resource(s) were provided, but no name was specified: name them, or say \
                 --all or -l QUERY",
            ));
        }
        let pairs = [
            ("labelSelector", self.selectors.selector.clone()),
            ("fieldSelector", self.selectors.field_selector.clone()),
        ];
        let place = (!self.all_namespaces).then_some(cluster.namespace.as_str());
        let list = cluster.get(&(resource.collection(place) + &query(&pairs))).await?;
        for item in list["items"].as_array().into_iter().flatten() {
            let text = |field: &str| item["metadata"][field].as_str().unwrap_or_default();
            let (name, namespace) = (text("name").to_owned(), text("namespace").to_owned());
            into.push(Chosen { resource, namespace, name });
        }
        Ok(())
    }
}
