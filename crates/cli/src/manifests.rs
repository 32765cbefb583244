//! `lockstep manifests`: what a cluster needs to have an operator, as YAML.

use anyhow::Result;
use clap::ValueEnum;
use lockstep_api::names;
use lockstep_operator::manifests::{self, Part};

use crate::output;

/// Options of `lockstep manifests`.
#[derive(Clone, Debug, clap::Args)]
#[command(after_help = "\
The documents are those of this very version: definitions, the rights of what the operator does, and
a Deployment of it. Nothing is sent anywhere.

No image is published: make one with this program as its entry point, and say how it is called. The
same image brings the agent into the pods of workers that restart in place.

Examples:
  lockstep manifests --image registry.example.com/lockstep:0.1.0 | kubectl apply -f -
  lockstep manifests --only crds          the definitions, for an operator that runs elsewhere
  lockstep manifests --only rbac --no-in-place-restart")]
pub(crate) struct Options {
    /// The namespace to run it in
    #[arg(short, long, value_name = "NAME", default_value = "lockstep-system",
          value_parser = namespace)]
    namespace: String,
    /// The image to run
    #[arg(long, value_name = "IMAGE", default_value_t = manifests::default_image())]
    image: String,
    /// How many to run, of which one works
    #[arg(long, value_name = "COUNT", default_value_t = 2)]
    replicas: u32,
    /// Leave out what restarts in place need: a Service, and rights to pods, Secrets and ConfigMaps
    #[arg(long)]
    no_in_place_restart: bool,
    /// Print only the definitions, only what gives rights, only the Deployment and its Services
    #[arg(long, value_name = "PART", value_delimiter = ',')]
    only: Vec<Only>,
}

/// What can be asked for alone: [`Part`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Only {
    Crds,
    Rbac,
    Operator,
}

impl From<Only> for Part {
    fn from(only: Only) -> Self {
        match only {
            Only::Crds => Self::Definitions,
            Only::Rbac => Self::Rights,
            Only::Operator => Self::Operator,
        }
    }
}

/// Prints them.
pub(crate) fn run(options: &Options) -> Result<()> {
    Ok(output::data(text(options))?)
}

fn text(options: &Options) -> String {
    let only: Vec<Part> = options.only.iter().copied().map(Part::from).collect();
    // In the order in which they are to be made, each once, whatever was typed.
    let parts = Part::ALL.into_iter().filter(|part| only.is_empty() || only.contains(part));
    let parts: Vec<Part> = parts.collect();
    let wanted = manifests::Options {
        namespace: options.namespace.clone(),
        image: options.image.clone(),
        replicas: options.replicas,
        has_in_place: !options.no_in_place_restart,
    };
    manifests::text(&parts, &wanted)
}

fn namespace(name: &str) -> Result<String, String> {
    match names::dns1123_label(name).first() {
        None => Ok(name.to_owned()),
        Some(fault) => Err(fault.clone()),
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;
    use crate::args::Cli;

    #[test]
    fn a_namespace_has_a_name() {
        assert!(namespace("a-1").is_ok());
        assert!(namespace("Here").unwrap_err().contains("lowercase"));
    }

    #[test]
    fn the_deployment_starts_what_there_is() {
        for has_in_place in [true, false] {
            let wanted = manifests::Options { has_in_place, ..manifests::Options::default() };
            let words = manifests::arguments(&wanted);
            let words = std::iter::once("lockstep".to_owned()).chain(words);
            Cli::command().try_get_matches_from(words).unwrap();
        }
    }
}
