//! Prints what is generated from the types of custom kinds, as one JSON object from paths to texts:
//! `cargo xtask crds` puts it where it belongs.
#![expect(clippy::print_stdout, reason = "printing is what it is for")]

use std::collections::BTreeMap;

use lockstep_api::custom::generate::{self, Generated};

fn main() {
    println!("{}", serde_json::json!(texts()));
}

/// The text of each generated file, by its path in the repository.
fn texts() -> BTreeMap<String, String> {
    let Generated { schemas, types, definitions, listed } = generate::files();
    let mut texts: BTreeMap<String, String> = definitions
        .iter()
        .map(|(name, definition)| {
            let text = serde_saphyr::to_string(definition).expect("JSON can be written as YAML");
            (format!("deploy/crds/{name}.yaml"), text)
        })
        .collect();
    texts.insert("crates/api/openapi/custom-schemas.json".to_owned(), schemas);
    texts.insert("crates/api/openapi/custom-types.json".to_owned(), types);
    texts.insert("crates/api/openapi/definitions.json".to_owned(), listed);
    texts
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "reading the files is the test")]
    fn committed_files_are_current() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        for (path, text) in texts() {
            let committed = std::fs::read_to_string(root.join(&path)).unwrap_or_default();
            assert!(committed == text, "{path} is out of date: run `cargo xtask crds`");
        }
    }
}
