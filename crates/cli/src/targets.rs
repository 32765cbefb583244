//! Which objects the words of a command name.

use anyhow::Result;

use crate::{
    catalog::{Catalog, Resource},
    exit::usage,
};

/// One object, or all of a resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Target<'a> {
    /// What kind of thing.
    pub(crate) resource: &'a Resource,
    /// Which one; all when `None`.
    pub(crate) name: Option<String>,
}

/// Reads `TYPE`, `TYPE NAME...`, `TYPE/NAME...` and comma-separated types.
pub(crate) fn parse<'a>(catalog: &'a Catalog, words: &[String]) -> Result<Vec<Target<'a>>> {
    if words.iter().any(|word| word.contains('/')) {
        return words.iter().map(|word| one(catalog, word)).collect();
    }
    let Some((types, names)) = words.split_first() else {
        return Err(usage("error: you must specify the type of resource"));
    };
    let resources = catalog.find(types)?;
    if names.is_empty() {
        let all = resources.into_iter().map(|resource| Target { resource, name: None });
        return Ok(all.collect());
    }
    let mut targets = Vec::new();
    for resource in resources {
        let named = names.iter().map(|name| Target { resource, name: Some(name.clone()) });
        targets.extend(named);
    }
    Ok(targets)
}

/// Reads `TYPE/NAME`.
pub(crate) fn one<'a>(catalog: &'a Catalog, word: &str) -> Result<Target<'a>> {
    match word.split_once('/') {
        Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
            Ok(Target { resource: catalog.one(kind)?, name: Some(name.to_owned()) })
        }
        Some(_) => Err(usage(format!(
            "error: arguments in resource/name form must have a single resource and name: {word:?} \
             has not; one looks like pod/hello"
        ))),
        None => Err(usage(format!(
            "error: there is no need to specify a resource type as a separate argument when \
             passing arguments in resource/name form: {word:?} has no slash"
        ))),
    }
}
