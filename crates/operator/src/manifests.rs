//! What a cluster needs to have an operator: written here, beside what the operator does, and
//! printed by the binary that does it, so that neither is ahead of the other.
//!
//! This is rendering alone: options in, documents out.

mod deployment;
mod rights;

use lockstep_api::custom::generate;
use serde_json::{Value, json};

/// What is called so: the account, its roles, and the Deployment.
const NAME: &str = "lockstep-operator";
/// The Service that agents reach the leader by.
const HUB: &str = "lockstep";
/// The Service of its counters.
const METRICS: &str = "lockstep-metrics";

/// How an operator is to run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Options {
    /// The namespace of all that has one.
    pub namespace: String,
    /// An image with `lockstep` as its entry point.
    pub image: String,
    /// How many of them, of which one works.
    pub replicas: u32,
    /// Whether workers may restart in place, for which their agents must find the operator.
    pub has_in_place: bool,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            namespace: "lockstep-system".to_owned(),
            image: default_image(),
            replicas: 2,
            has_in_place: true,
        }
    }
}

/// What an image of this version is called, by whoever makes one.
pub fn default_image() -> String {
    format!("lockstep:{}", env!("CARGO_PKG_VERSION"))
}

/// A part of what there is to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    /// The CustomResourceDefinitions.
    Definitions,
    /// The namespace, the account, and what it may do.
    Rights,
    /// The Deployment and its Services.
    Operator,
}

impl Part {
    /// All of them, in the order in which they are to be made.
    pub const ALL: [Self; 3] = [Self::Definitions, Self::Rights, Self::Operator];

    /// The documents of this part, in the order in which they are to be made.
    pub fn documents(self, options: &Options) -> Vec<Value> {
        match self {
            Self::Definitions => generate::files().definitions.into_values().collect(),
            Self::Rights => {
                let mut documents = vec![namespace(options), account(options)];
                documents.extend(rights::documents(options));
                documents
            }
            Self::Operator => deployment::documents(options),
        }
    }
}

/// The text of these parts: one YAML document after the other.
pub fn text(parts: &[Part], options: &Options) -> String {
    let mut text = String::new();
    for document in parts.iter().flat_map(|part| part.documents(options)) {
        text.push_str("---\n");
        let written = serde_saphyr::to_string(&document);
        text.push_str(&written.expect("a JSON value is always valid YAML"));
    }
    text
}

/// The words that start an operator in a container.
pub fn arguments(options: &Options) -> Vec<String> {
    deployment::arguments(options)
}

/// The namespace. No pod with more rights than the operator's is let in.
fn namespace(options: &Options) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {
            "name": options.namespace,
            "labels": {
                "app.kubernetes.io/name": "lockstep",
                "pod-security.kubernetes.io/enforce": "restricted",
            },
        },
    })
}

fn account(options: &Options) -> Value {
    json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": metadata(NAME, options)})
}

/// The metadata of something of this name in the namespace.
fn metadata(name: &str, options: &Options) -> Value {
    json!({"name": name, "namespace": options.namespace, "labels": labels()})
}

fn labels() -> Value {
    json!({"app.kubernetes.io/name": "lockstep", "app.kubernetes.io/component": "operator"})
}
