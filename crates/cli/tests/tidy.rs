//! Rules of the house that no compiler checks.

#[path = "../../../xtask/src/conformance/rules.rs"]
mod rules;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    process::Command,
};

/// Which crates of ours each crate may use: the table of ARCHITECTURE.md, for the crates there are.
const EDGES: [(&str, &[&str]); 12] = [
    ("lockstep-api", &[]),
    ("lockstep-control", &["lockstep-api"]),
    ("lockstep-store", &["lockstep-api"]),
    ("lockstep-sim", &["lockstep-api", "lockstep-control", "lockstep-store"]),
    ("lockstep-restart", &["lockstep-control"]),
    ("lockstep-operator", &["lockstep-api", "lockstep-control", "lockstep-restart"]),
    (
        "lockstep-local",
        &[
            "lockstep-api",
            "lockstep-control",
            "lockstep-operator",
            "lockstep-restart",
            "lockstep-store",
        ],
    ),
    ("lockstep", &["lockstep-api", "lockstep-local", "lockstep-operator", "lockstep-restart"]),
    (
        "lockstep-bench",
        &[
            "lockstep-api",
            "lockstep-control",
            "lockstep-local",
            "lockstep-operator",
            "lockstep-restart",
        ],
    ),
    ("lockstep-fuzz", &["lockstep-api", "lockstep-local", "lockstep-store"]),
    ("lockstep-conformance", &[]),
    ("xtask", &[]),
];

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the root is there")
}

/// Every text file that is ours to write, with its text.
fn files(extensions: &[&str]) -> Vec<(String, String)> {
    let root = root();
    let mut folders = vec![root.clone()];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder).expect("a readable folder").flatten() {
            let path = entry.path();
            let name = entry.file_name().to_string_lossy().into_owned();
            if path.is_dir() {
                let is_generated =
                    ["target", ".git", "golden", "openapi", "crds"].contains(&name.as_str());
                // `src/openapi` is code, `crates/api/openapi` is what it generates.
                if !is_generated || folder.ends_with("src") {
                    folders.push(path);
                }
            } else if extensions.iter().any(|e| name.ends_with(&format!(".{e}"))) {
                let shown = path.strip_prefix(&root).expect("below the root").display().to_string();
                found.push((shown, fs::read_to_string(&path).unwrap_or_default()));
            }
        }
    }
    found.sort();
    found
}

fn complain(faults: &[String]) {
    assert!(faults.is_empty(), "\n{}\n", faults.join("\n"));
}

#[test]
fn files_are_short_and_clean() {
    // Spelled in halves, so that this file does not name them itself.
    let leftovers =
        [["FIX", "ME"], ["XX", "X:"], ["to", "do!("], ["unimple", "mented!("], ["db", "g!("]]
            .map(|h| h.concat());
    let mut faults = Vec::new();
    for (file, text) in files(&["rs", "md", "toml", "yaml", "sh"]) {
        let lines = text.lines().count();
        if lines > 1000 {
            faults.push(format!("{file}: {lines} lines; split it by what it decides"));
        }
        if !text.is_empty() && !text.ends_with('\n') {
            faults.push(format!("{file}: no newline at the end"));
        }
        let mut is_screen = false;
        for (at, line) in text.lines().enumerate() {
            let at = at + 1;
            // Screens in the documentation are as wide as they are.
            is_screen ^= file.ends_with(".md") && line.starts_with("```");
            // What is quoted to the letter keeps what others left at the ends of its lines.
            let is_quoted = file.contains("tests/data/kep-");
            if line.ends_with([' ', '\t']) && !is_quoted {
                faults.push(format!("{file}:{at}: blanks at the end"));
            }
            if let Some(leftover) = leftovers.iter().find(|leftover| line.contains(*leftover)) {
                faults.push(format!("{file}:{at}: {leftover} left over"));
            }
            // rustfmt minds the code; prose is ours to mind. Tables and links cannot be broken.
            let is_prose = line.trim_start().starts_with("//") || file.ends_with(".md");
            let is_fixed = line.contains("http") || line.starts_with('|') || line.contains("](");
            if is_prose && !is_fixed && !is_screen && line.chars().count() > 100 {
                faults.push(format!("{file}:{at}: longer than 100 columns"));
            }
        }
    }
    complain(&faults);
}

#[test]
fn markdown_has_one_title_and_no_dead_link() {
    let mut faults = Vec::new();
    for (file, text) in files(&["md"]) {
        let mut is_code = false;
        let mut titles = 0;
        for (at, line) in text.lines().enumerate() {
            if line.trim_start().starts_with("```") {
                is_code = !is_code;
            }
            if is_code {
                continue;
            }
            titles += usize::from(line.starts_with("# "));
            for link in links(line) {
                let target = link.split('#').next().unwrap_or_default();
                let is_ours = !target.is_empty() && !target.contains("://");
                let folder = root().join(&file);
                let folder = folder.parent().expect("a file lies in a folder");
                if is_ours && !folder.join(target).exists() {
                    faults.push(format!("{file}:{}: dead link to {target}", at + 1));
                }
            }
        }
        if titles != 1 {
            faults.push(format!("{file}: {titles} titles instead of one"));
        }
    }
    complain(&faults);
}

fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split(')').next())
}

#[test]
fn crates_use_only_what_the_architecture_allows() {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--no-deps", "--format-version=1", "--offline"])
        .current_dir(root())
        .output()
        .expect("cargo runs");
    let metadata: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let mut found = BTreeMap::new();
    for package in metadata["packages"].as_array().into_iter().flatten() {
        let uses: BTreeSet<String> = package["dependencies"]
            .as_array()
            .into_iter()
            .flatten()
            .filter(|dependency| dependency["path"].is_string() && dependency["kind"].is_null())
            .filter_map(|dependency| dependency["name"].as_str().map(ToOwned::to_owned))
            .collect();
        found.insert(package["name"].as_str().unwrap_or_default().to_owned(), uses);
    }
    let allowed: BTreeMap<&str, &[&str]> = EDGES.into_iter().collect();
    let mut faults = Vec::new();
    for (package, uses) in &found {
        match allowed.get(package.as_str()) {
            None => faults.push(format!("{package} is not in the table of edges")),
            Some(allowed) => {
                let extra = uses.iter().filter(|used| !allowed.contains(&used.as_str()));
                faults.extend(extra.map(|used| format!("{package} must not use {used}")));
            }
        }
    }
    complain(&faults);
    let pictured = fs::read_to_string(root().join("ARCHITECTURE.md")).expect("ARCHITECTURE.md");
    for (package, _) in EDGES {
        let room = package.strip_prefix("lockstep-").unwrap_or(if package == "xtask" {
            "xtask"
        } else {
            "cli"
        });
        assert!(pictured.contains(&format!("`{room}`")), "ARCHITECTURE.md does not name {room}");
    }
}

#[test]
fn every_example_is_run_by_a_test() {
    let tests = files(&["rs"]).into_iter().filter(|(file, _)| file.contains("tests/"));
    let tests: String = tests.map(|(_, text)| text).collect();
    let mut faults = Vec::new();
    for (file, _) in files(&["yaml"]).iter().filter(|(file, _)| file.starts_with("examples/")) {
        let name = file.trim_start_matches("examples/");
        if !tests.contains(name) {
            faults.push(format!("{file} is run by no test"));
        }
    }
    complain(&faults);
}

#[test]
fn every_rule_of_the_specifications_is_proven_by_a_test() {
    let report = rules::report(&root()).expect("a readable repository");
    let mut faults = report.faults;
    for rules::Document { path, text, summary } in report.documents {
        if fs::read_to_string(&path).unwrap_or_default() != text {
            let file = path.display();
            faults.push(format!("{file} is out of date: cargo xtask conformance ({summary})"));
        }
    }
    complain(&faults);
}
