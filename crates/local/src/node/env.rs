//! The environment of a container, from its spec and what it refers to. Pure.

mod expand;
pub(crate) mod field;
mod services;

use std::collections::BTreeMap;

use k8s_openapi::api::core::v1::{Container, EnvFromSource, EnvVar, Pod};

use self::expand::expand;
use super::sources::Sources;

/// Why a container cannot be configured: `CreateContainerConfigError`.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConfigError {
    /// An object that is not optional does not exist.
    #[error("{kind} \"{name}\" not found")]
    ObjectNotFound {
        /// `configmap` or `secret`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// An object lacks a key that is not optional.
    #[error("couldn't find key {key} in {kind} {namespace}/{name}")]
    KeyNotFound {
        /// `ConfigMap` or `Secret`.
        kind: &'static str,
        /// The namespace of the pod.
        namespace: String,
        /// The name of the object.
        name: String,
        /// The key.
        key: String,
    },
    /// A field that cannot be referred to.
    #[error("unsupported fieldPath: {path}")]
    Field {
        /// The path as it was given.
        path: String,
    },
    /// A resource that cannot be referred to.
    #[error("unsupported container resource : {resource}")]
    Resource {
        /// The resource as it was given.
        resource: String,
    },
    /// A resource of a container that the pod does not have.
    #[error("container {container} not found")]
    ContainerNotFound {
        /// Its name.
        container: String,
    },
    /// A quantity that is none.
    #[error("invalid quantity {text:?}")]
    Quantity {
        /// As it was given.
        text: String,
    },
    /// A source that this node does not know.
    #[error("environment variable {name} has a source that is not supported here")]
    Source {
        /// The name of the variable.
        name: String,
    },
    /// The container has no command, and there is no image to take one from.
    #[error(
        "container {container} has no command: images are not pulled, so set command \
         (or start lockstep with --image-command {image}=CMD)"
    )]
    NoCommand {
        /// Its name.
        container: String,
        /// Its image.
        image: String,
    },
}

/// The environment of a container.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Environment {
    /// All variables, each name once.
    pub variables: Vec<(String, String)>,
    /// Variables that were left out, and why.
    pub warnings: Vec<String>,
    /// What `$(NAME)` may refer to.
    known: BTreeMap<String, String>,
}

impl Environment {
    /// `text` with `$(NAME)` replaced.
    pub fn expand(&self, text: &str) -> String {
        expand(text, |name| self.known.get(name).cloned())
    }
}

/// Builds the environment of `container`. `base` is what every container has; the pod's own
/// variables override it.
pub fn build(
    pod: &Pod,
    container: &Container,
    sources: &Sources,
    base: &[(String, String)],
) -> Result<Environment, ConfigError> {
    let services = services::variables(pod, &sources.services);
    let mut own = BTreeMap::new();
    for from in container.env_from.iter().flatten() {
        add_all(&mut own, from, sources)?;
    }
    for variable in container.env.iter().flatten() {
        let known = |name: &str| own.get(name).or_else(|| services.get(name)).cloned();
        let value = match (variable.value.as_deref(), &variable.value_from) {
            (Some(value), _) if !value.is_empty() => Some(expand(value, known)),
            (_, Some(_)) => value_from(pod, container, variable, sources)?,
            _ => Some(String::new()),
        };
        if let Some(value) = value {
            own.insert(variable.name.clone(), value);
        }
    }
    let mut known = services;
    known.extend(own);
    let mut all: BTreeMap<String, String> = base.iter().cloned().collect();
    all.extend(known.clone());
    let (variables, invalid): (Vec<_>, Vec<_>) =
        all.into_iter().partition(|(name, value)| is_possible(name, value));
    let warnings = invalid
        .into_iter()
        .map(|(name, _)| format!("environment variable {name:?} is invalid and was left out"))
        .collect();
    Ok(Environment { variables, warnings, known })
}

/// The words of a probe's command, with the variables whose values `container` itself spells out.
pub fn expand_static(words: &[String], container: &Container) -> Vec<String> {
    let value_of = |wanted: &str| {
        let known = container.env.iter().flatten().rev().find(|it| it.name == wanted);
        known.filter(|it| it.value_from.is_none()).map(|it| it.value.clone().unwrap_or_default())
    };
    words.iter().map(|word| expand(word, value_of)).collect()
}

/// The command line of `container`: `command` and `args`, expanded. `args` alone are a command line
/// too, as they are for the many images that have no entry point.
pub fn command(
    container: &Container,
    environment: &Environment,
) -> Result<Vec<String>, ConfigError> {
    let command = container.command.as_deref().unwrap_or_default();
    let args = container.args.as_deref().unwrap_or_default();
    if command.is_empty() && args.is_empty() {
        return Err(ConfigError::NoCommand {
            container: container.name.clone(),
            image: container.image.clone().unwrap_or_default(),
        });
    }
    Ok(command.iter().chain(args).map(|word| environment.expand(word)).collect())
}

/// What every container has, taken from the environment of this process by `look_up`.
pub fn base(look_up: impl Fn(&str) -> Option<String>, hostname: &str) -> Vec<(String, String)> {
    let defaults = [
        ("PATH", "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"),
        ("HOME", "/"),
        ("LANG", "C.UTF-8"),
        ("TMPDIR", "/tmp"),
    ];
    let mut base: Vec<_> = defaults
        .into_iter()
        .map(|(name, default)| {
            let value = look_up(name).filter(|value| !value.is_empty());
            (name.to_owned(), value.unwrap_or_else(|| default.to_owned()))
        })
        .collect();
    base.push(("HOSTNAME".to_owned(), hostname.to_owned()));
    base
}

/// Adds every key of an object.
fn add_all(
    own: &mut BTreeMap<String, String>,
    from: &EnvFromSource,
    sources: &Sources,
) -> Result<(), ConfigError> {
    let prefix = from.prefix.as_deref().unwrap_or_default();
    if let Some(wanted) = &from.config_map_ref {
        match sources.config_maps.get(&wanted.name) {
            Some(found) => {
                let data = found.data.iter().flatten();
                own.extend(data.map(|(key, value)| (format!("{prefix}{key}"), value.clone())));
            }
            None if wanted.optional == Some(true) => {}
            None => return Err(not_found("configmap", &wanted.name)),
        }
    }
    if let Some(wanted) = &from.secret_ref {
        match sources.secrets.get(&wanted.name) {
            Some(found) => {
                let data = found.data.iter().flatten();
                own.extend(data.map(|(key, value)| (format!("{prefix}{key}"), text(&value.0))));
            }
            None if wanted.optional == Some(true) => {}
            None => return Err(not_found("secret", &wanted.name)),
        }
    }
    Ok(())
}

/// The value a source has; `None` if it is optional and there is none.
fn value_from(
    pod: &Pod,
    container: &Container,
    variable: &EnvVar,
    sources: &Sources,
) -> Result<Option<String>, ConfigError> {
    let Some(from) = &variable.value_from else { return Ok(None) };
    if let Some(field) = &from.field_ref {
        return field::of_pod(pod, &field.field_path, sources).map(Some);
    }
    if let Some(resource) = &from.resource_field_ref {
        return field::of_resources(pod, Some(container), resource, &sources.node).map(Some);
    }
    let (kind, object_kind, name, key, optional, found) =
        if let Some(wanted) = &from.config_map_key_ref {
            let object = sources.config_maps.get(&wanted.name);
            let value = object.map(|object| object.data.as_ref()?.get(&wanted.key).cloned());
            ("configmap", "ConfigMap", &wanted.name, &wanted.key, wanted.optional, value)
        } else if let Some(wanted) = &from.secret_key_ref {
            let object = sources.secrets.get(&wanted.name);
            let value = object.map(|object| Some(text(&object.data.as_ref()?.get(&wanted.key)?.0)));
            ("secret", "Secret", &wanted.name, &wanted.key, wanted.optional, value)
        } else {
            return Err(ConfigError::Source { name: variable.name.clone() });
        };
    match found {
        Some(Some(value)) => Ok(Some(value)),
        _ if optional == Some(true) => Ok(None),
        None => Err(not_found(kind, name)),
        Some(None) => Err(ConfigError::KeyNotFound {
            kind: object_kind,
            namespace: pod.metadata.namespace.clone().unwrap_or_default(),
            name: name.clone(),
            key: key.clone(),
        }),
    }
}

fn not_found(kind: &'static str, name: &str) -> ConfigError {
    ConfigError::ObjectNotFound { kind, name: name.to_owned() }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether a process can have such a variable at all.
fn is_possible(name: &str, value: &str) -> bool {
    !name.is_empty() && !name.contains(['=', '\0']) && !value.contains('\0')
}

#[cfg(test)]
mod tests;
