//! A file may hold several documents, each of which says by its apiVersion what it is about.

use serde::Deserialize;

use super::ConfigError;

/// One document of a file.
pub(super) struct Document {
    /// What it is about, if it says so.
    pub(super) api_version: Option<String>,
    /// Its text, behind as many empty lines as there are before it: so that lines have the numbers
    /// they have in the file.
    pub(super) text: String,
}

/// The documents of a file; empty ones are none.
pub(super) fn of(file: &str) -> Result<Vec<Document>, ConfigError> {
    let mut parts = vec![String::new()];
    for (at, line) in file.lines().enumerate() {
        let is_mark = line == "---" || line.starts_with("--- ");
        if is_mark {
            parts.push("\n".repeat(at + 1));
        } else if let Some(part) = parts.last_mut() {
            part.push_str(line);
            part.push('\n');
        }
    }
    let mut documents = Vec::new();
    for text in parts {
        let head = serde_saphyr::from_str::<Option<Head>>(&text);
        match head.map_err(|error| ConfigError::Invalid(error.to_string()))? {
            None => {}
            Some(head) => documents.push(Document { api_version: head.api_version, text }),
        }
    }
    Ok(documents)
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Head {
    api_version: Option<String>,
}

/// The text of a document as what it is to be.
pub(super) fn parse<T: for<'de> Deserialize<'de> + Default>(text: &str) -> Result<T, ConfigError> {
    let parsed: Option<T> =
        serde_saphyr::from_str(text).map_err(|error| ConfigError::Invalid(error.to_string()))?;
    Ok(parsed.unwrap_or_default())
}
