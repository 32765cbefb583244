//! The formats of `-o`.

use std::fs;

use serde::Serialize;
use serde_json::Value;

use super::columns::CustomColumns;
use crate::{catalog::Resource, jsonpath::Template, manifest::yaml, suggest};

/// How objects are shown.
#[derive(Clone, Debug)]
pub(crate) enum Format {
    /// A table with more columns.
    Wide,
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Only TYPE/NAME.
    Name,
    /// What a template makes of it.
    JsonPath(Template),
    /// What a template finds, as a JSON list.
    JsonPathAsJson(Template),
    /// A table with columns of the user's own.
    Columns(CustomColumns),
}

const FORMATS: [&str; 9] = [
    "wide",
    "json",
    "yaml",
    "name",
    "jsonpath",
    "jsonpath-as-json",
    "jsonpath-file",
    "custom-columns",
    "custom-columns-file",
];

impl Format {
    /// Reads the value of `-o`.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let (name, argument) = match text.split_once('=') {
            Some((name, argument)) => (name, Some(argument)),
            None => (text, None),
        };
        let needed =
            |what: &str| argument.ok_or_else(|| format!("it must look like {name}={what}"));
        let path = "'{.metadata.name}'";
        match name {
            "wide" => Ok(Self::Wide),
            "json" => Ok(Self::Json),
            "yaml" => Ok(Self::Yaml),
            "name" => Ok(Self::Name),
            "jsonpath" => template(needed(path)?).map(Self::JsonPath),
            "jsonpath-as-json" => template(needed(path)?).map(Self::JsonPathAsJson),
            "jsonpath-file" => template(&read(needed("FILE")?)?).map(Self::JsonPath),
            "custom-columns" => {
                let columns = needed("NAME:.metadata.name,NODE:.spec.nodeName")?;
                CustomColumns::parse(columns).map(Self::Columns)
            }
            "custom-columns-file" => {
                CustomColumns::from_file(&read(needed("FILE")?)?).map(Self::Columns)
            }
            "go-template" | "go-template-file" | "template" | "templatefile" => Err(format!(
                "{name} needs Go's template language, which only kubectl has; use \
                 jsonpath='{{.metadata.name}}' or custom-columns=NAME:.metadata.name"
            )),
            _ => {
                let hint = suggest::did_you_mean(name, FORMATS);
                Err(format!("there is no format {name:?}, only {}{hint}", FORMATS.join(", ")))
            }
        }
    }

    /// One object, or a list of them, as text. Tables are made elsewhere.
    pub(crate) fn render(&self, resource: &Resource, object: &Value) -> anyhow::Result<String> {
        Ok(match self {
            Self::Name => name_line(resource, object),
            Self::Json | Self::Wide | Self::Columns(_) => json(object),
            Self::Yaml => yaml::render(object),
            Self::JsonPath(template) => template.render(object)?,
            Self::JsonPathAsJson(template) => json(&Value::Array(template.values(object)?)),
        })
    }
}

/// `pod/hello`, as a line.
pub(crate) fn name_line(resource: &Resource, object: &Value) -> String {
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    format!("{}/{name}\n", resource.prefix())
}

/// JSON with kubectl's indentation.
pub(crate) fn json(value: &Value) -> String {
    let mut bytes = Vec::new();
    let indented = serde_json::ser::PrettyFormatter::with_indent(b"    ");
    let mut serializer = serde_json::Serializer::with_formatter(&mut bytes, indented);
    value.serialize(&mut serializer).expect("a JSON value can be written as JSON");
    bytes.push(b'\n');
    String::from_utf8(bytes).expect("JSON is UTF-8")
}

fn template(text: &str) -> Result<Template, String> {
    let template = Template::parse(text).map_err(|error| format!("the template: {error}"))?;
    if template.has_expression() {
        return Ok(template);
    }
    Err(format!("there is no expression in {text:?}; one looks like '{{.metadata.name}}'"))
}

fn read(path: &str) -> Result<String, String> {
    fs::read_to_string(path).map_err(|error| format!("cannot read {path}: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_format_is_refused_with_one_that_is() {
        for (text, want) in [
            ("jsn", "there is no format \"jsn\", only wide, json, yaml, name, "),
            ("go-template={{.x}}", "go-template needs Go's template language"),
            ("jsonpath", "it must look like jsonpath='{.metadata.name}'"),
            ("jsonpath=.metadata.name", "there is no expression in \".metadata.name\""),
            ("jsonpath={.a", "the template: no closing brace"),
            ("jsonpath-file=/nonexistent", "cannot read /nonexistent: "),
            ("custom-columns", "it must look like custom-columns=NAME:.metadata.name"),
            ("custom-columns=NAME", "the column \"NAME\" has no field path"),
        ] {
            let error = Format::parse(text).expect_err(text);
            assert!(error.starts_with(want), "{text}: {error}");
        }
    }
}
