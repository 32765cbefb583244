//! Reads rules, gaps and markers, and makes the table of them. Uses nothing but the standard
//! library: the tidy test includes this file too.
//!
//! - `docs/conformance/<spec>-rules.txt`: an id and a title per line. A rule that cannot be proven
//!   because it is about nothing that is here ends with `; not applicable: ` and the reason.
//! - `docs/conformance/<spec>-gaps.txt`: ids that no test proves yet; it can only shrink. One that
//!   has a test makes the file out of date.
//! - `// rule: <spec> <id>, <spec> <id>` directly above a test.

use std::{
    collections::{BTreeMap, BTreeSet},
    fmt::Write,
    fs, io,
    path::{Path, PathBuf},
};

/// What is in the repository, and what is wrong with it.
pub(crate) struct Report {
    /// The tables as they should be.
    pub(crate) documents: Vec<Document>,
    /// One line each.
    pub(crate) faults: Vec<String>,
}

/// A table.
pub(crate) struct Document {
    /// Where it belongs.
    pub(crate) path: PathBuf,
    /// What it says.
    pub(crate) text: String,
    /// How far it has come.
    pub(crate) summary: String,
}

/// A test that claims to prove rules.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Proof {
    /// The file, from the root.
    file: String,
    test: String,
}

struct Spec {
    name: String,
    /// Id and title, in order.
    rules: Vec<(String, String)>,
    gaps: BTreeSet<String>,
}

/// What stands between the title of a rule and the reason why nothing has to prove it.
const NOT_APPLICABLE: &str = "; not applicable:";

/// Why a rule with this title does not apply, if it says so.
fn exemption(title: &str) -> Option<&str> {
    title.split_once(NOT_APPLICABLE).map(|(_, reason)| reason.trim())
}

/// Reads everything below `root`.
pub(crate) fn report(root: &Path) -> io::Result<Report> {
    let folder = root.join("docs/conformance");
    let mut faults = Vec::new();
    let mut proofs: BTreeMap<(String, String), BTreeSet<Proof>> = BTreeMap::new();
    for file in sources(root)? {
        let shown = file.strip_prefix(root).unwrap_or(&file).display().to_string();
        let text = fs::read_to_string(&file)?;
        for (rule, test) in markers(&shown, &text, &mut faults) {
            proofs.entry(rule).or_default().insert(Proof { file: shown.clone(), test });
        }
    }
    let mut documents = Vec::new();
    for spec in specs(&folder)? {
        faults.extend(spec.check(&mut proofs));
        documents.push(spec.table(&folder, &proofs));
        documents.extend(spec.remaining(&folder, &proofs));
        proofs.retain(|(name, _), _| *name != spec.name);
    }
    for ((name, id), found) in proofs {
        let at = found.first().map(|proof| proof.file.as_str()).unwrap_or_default();
        faults.push(format!("{at}: there is no specification {name} with a rule {id}"));
    }
    Ok(Report { documents, faults })
}

impl Spec {
    /// Rules that nobody proves and nobody listed as a gap, gaps and proofs of nothing.
    fn check(&self, proofs: &mut BTreeMap<(String, String), BTreeSet<Proof>>) -> Vec<String> {
        let mut faults = Vec::new();
        let name = &self.name;
        let known: BTreeSet<&str> = self.rules.iter().map(|(id, _)| id.as_str()).collect();
        if known.len() < self.rules.len() {
            faults.push(format!("{name}-rules.txt: an id is there twice"));
        }
        proofs.retain(|(spec, id), found| {
            let is_known = spec != name || known.contains(id.as_str());
            if !is_known && let Some(proof) = found.first() {
                faults.push(format!("{}: {name} has no rule {id}", proof.file));
            }
            is_known
        });
        for id in self.gaps.iter().filter(|id| !known.contains(id.as_str())) {
            faults.push(format!("{name}-gaps.txt: there is no rule {id}"));
        }
        for (id, title) in &self.rules {
            let is_proven = self.is_proven(id, proofs);
            match exemption(title) {
                Some("") => {
                    faults.push(format!("{name} {id} does not say why it is not applicable"))
                }
                Some(_) if is_proven || self.gaps.contains(id) => faults.push(format!(
                    "{name} {id} is not applicable, and yet there is a test or a gap"
                )),
                None if !is_proven && !self.gaps.contains(id) => {
                    faults.push(format!("no test proves {name} {id}: {title}"));
                }
                _ => {}
            }
        }
        faults
    }

    /// A rule is proven by a test, or by its parts when all of them are that apply.
    fn is_proven(&self, id: &str, proofs: &BTreeMap<(String, String), BTreeSet<Proof>>) -> bool {
        let has_test = |id: &str| proofs.contains_key(&(self.name.clone(), id.to_owned()));
        let prefix = format!("{id}.");
        let parts = self.rules.iter().filter(|(id, _)| id.starts_with(&prefix));
        let mut parts = parts.filter(|(_, title)| exemption(title).is_none()).peekable();
        has_test(id) || (parts.peek().is_some() && parts.all(|(id, _)| has_test(id)))
    }

    /// The list of gaps without those that are none any more.
    fn remaining(
        &self,
        folder: &Path,
        proofs: &BTreeMap<(String, String), BTreeSet<Proof>>,
    ) -> Option<Document> {
        if self.gaps.is_empty() {
            return None;
        }
        let name = &self.name;
        let gaps = self.rules.iter().filter(|(id, _)| self.gaps.contains(id));
        let open: Vec<&str> =
            gaps.map(|(id, _)| id.as_str()).filter(|id| !self.is_proven(id, proofs)).collect();
        let mut text = format!(
            "# Rules of {name} that no test proves yet. `cargo xtask conformance` takes out what \
             has one.\n"
        );
        for id in &open {
            text.push_str(id);
            text.push('\n');
        }
        let path = folder.join(format!("{name}-gaps.txt"));
        Some(Document { path, text, summary: format!("{name}: {} gaps are left", open.len()) })
    }

    fn table(
        &self,
        folder: &Path,
        proofs: &BTreeMap<(String, String), BTreeSet<Proof>>,
    ) -> Document {
        let name = &self.name;
        let proven = self.rules.iter().filter(|(id, _)| self.is_proven(id, proofs)).count();
        let exempt = self.rules.iter().filter(|(_, title)| exemption(title).is_some()).count();
        let total = self.rules.len() - exempt;
        let summary = format!("{name}: {proven} of {total} rules are proven by tests");
        let rest = match exempt {
            0 => String::new(),
            1 => " One more is not applicable.".to_owned(),
            _ => format!(" {exempt} more are not applicable."),
        };
        let mut text = format!(
            "# Which test proves which rule: {name}\n\n\
             Made by `cargo xtask conformance` from [the rules]({name}-rules.txt) and the \
             `// rule:` comments\nabove tests. {proven} of {total} rules are proven.{rest}\n\n\
             | Rule | What it demands | Tests |\n|---|---|---|\n"
        );
        for (id, title) in &self.rules {
            let found = proofs.get(&(name.clone(), id.clone()));
            let links: Vec<String> = found
                .into_iter()
                .flatten()
                .map(|Proof { file, test }| format!("[{test}](../../{file})"))
                .collect();
            let (title, exempt) = title.split_once(NOT_APPLICABLE).unwrap_or((title, ""));
            let tests = match (links.is_empty(), self.is_proven(id, proofs)) {
                (false, _) => links.join(", "),
                (true, true) => "those of its parts".to_owned(),
                (true, false) if exempt.is_empty() => "none yet".to_owned(),
                (true, false) => format!("not applicable:{exempt}"),
            };
            let _ = writeln!(text, "| {id} | {title} | {tests} |");
        }
        Document { path: folder.join(format!("{name}.md")), text, summary }
    }
}

fn specs(folder: &Path) -> io::Result<Vec<Spec>> {
    let mut specs = Vec::new();
    for entry in fs::read_dir(folder)? {
        let file = entry?.file_name().to_string_lossy().into_owned();
        let Some(name) = file.strip_suffix("-rules.txt") else { continue };
        let rules = lines(&fs::read_to_string(folder.join(&file))?);
        let gaps = fs::read_to_string(folder.join(format!("{name}-gaps.txt"))).unwrap_or_default();
        let gaps = lines(&gaps).into_iter().map(|(id, _)| id).collect();
        specs.push(Spec { name: name.to_owned(), rules, gaps });
    }
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(specs)
}

/// The first word of each line, and the rest of it.
fn lines(text: &str) -> Vec<(String, String)> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .filter(|line| !line.starts_with('#'))
        .map(|line| {
            let (id, rest) = line.split_once(char::is_whitespace).unwrap_or((line, ""));
            (id.to_owned(), rest.trim().to_owned())
        })
        .collect()
}

/// The Rust files of the workspace.
fn sources(root: &Path) -> io::Result<Vec<PathBuf>> {
    let mut folders = vec![root.join("crates")];
    let mut found = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                found.push(path);
            }
        }
    }
    found.sort();
    Ok(found)
}

/// The rules a file says its tests prove: ((spec, id), test).
fn markers(file: &str, text: &str, faults: &mut Vec<String>) -> Vec<((String, String), String)> {
    let mut found = Vec::new();
    let mut waiting: Vec<(String, String)> = Vec::new();
    let mut is_test = false;
    for (at, line) in text.lines().map(str::trim).enumerate() {
        let at = at + 1;
        if let Some(list) = line.strip_prefix("// rule: ") {
            for rule in list.split(',').map(str::trim) {
                match rule.split_once(' ') {
                    Some((spec, id)) => waiting.push((spec.to_owned(), id.trim().to_owned())),
                    None => faults.push(format!("{file}:{at}: {rule:?} is no `spec id`")),
                }
            }
        } else if !waiting.is_empty() {
            match function(line) {
                Some(test) if is_test => {
                    found.extend(waiting.drain(..).map(|rule| (rule, test.to_owned())));
                    is_test = false;
                }
                None if line.starts_with("#[") => {
                    is_test |= line.ends_with("test]") || line.contains("test(");
                }
                None if line.starts_with("//") => {}
                _ => {
                    faults.push(format!(
                        "{file}:{at}: a rule stands above something that is no test"
                    ));
                    waiting.clear();
                    is_test = false;
                }
            }
        }
    }
    found
}

/// The name of the function that begins in this line.
fn function(line: &str) -> Option<&str> {
    let line = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ")?;
    line.split(['(', '<']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(gaps: &[&str]) -> Spec {
        let rules = ["1", "1.1", "1.2", "2"].map(|id| (id.to_owned(), format!("title {id}")));
        let gaps = gaps.iter().map(|id| (*id).to_owned()).collect();
        Spec { name: "job".to_owned(), rules: rules.to_vec(), gaps }
    }

    fn proofs(ids: &[&str]) -> BTreeMap<(String, String), BTreeSet<Proof>> {
        let proof = Proof { file: "crates/x.rs".to_owned(), test: "holds".to_owned() };
        let one =
            |id: &&str| (("job".to_owned(), (*id).to_owned()), BTreeSet::from([proof.clone()]));
        ids.iter().map(one).collect()
    }

    #[test]
    fn rules_need_a_test_or_an_open_gap() {
        type Ids = &'static [&'static str];
        let cases: [(&str, Ids, Ids, Ids); 5] = [
            ("all proven", &["1", "1.1", "1.2", "2"], &[], &[]),
            ("by its parts", &["1.1", "1.2", "2"], &[], &[]),
            (
                "one is missing",
                &["1.1", "2"],
                &[],
                &["no test proves job 1: title 1", "no test proves job 1.2: title 1.2"],
            ),
            ("known gaps", &["1.1"], &["1", "1.2", "2"], &[]),
            (
                "unknown ids",
                &["1", "1.1", "1.2", "2", "9"],
                &["8"],
                &["crates/x.rs: job has no rule 9", "job-gaps.txt: there is no rule 8"],
            ),
        ];
        for (name, proven, gaps, want) in cases {
            assert_eq!(spec(gaps).check(&mut proofs(proven)), want, "{name}");
        }
    }

    #[test]
    fn a_rule_may_say_why_it_does_not_apply() {
        let mut spec = spec(&[]);
        spec.rules[2].1 = "title 1.2; not applicable: it is about the moon".to_owned();
        assert_eq!(spec.check(&mut proofs(&["1.1", "2"])), Vec::<String>::new());
        let table = spec.table(Path::new("docs"), &proofs(&["1.1", "2"])).text;
        assert!(table.contains("3 of 3 rules are proven. One more is not applicable."), "{table}");
        let line = "| 1.2 | title 1.2 | not applicable: it is about the moon |\n";
        assert!(table.contains(line), "{table}");
        let both = "job 1.2 is not applicable, and yet there is a test or a gap";
        assert_eq!(spec.check(&mut proofs(&["1", "1.1", "1.2", "2"])), [both]);
        spec.gaps.insert("1.2".to_owned());
        assert_eq!(spec.check(&mut proofs(&["1", "1.1", "2"])), [both]);
        spec.rules[2].1 = "title 1.2; not applicable: ".to_owned();
        let why = "job 1.2 does not say why it is not applicable";
        assert_eq!(spec.check(&mut proofs(&["1", "1.1", "2"])), [why]);
    }

    #[test]
    fn a_gap_that_is_closed_leaves_the_list() {
        let folder = Path::new("docs");
        let left = spec(&["1", "1.2", "2"]).remaining(folder, &proofs(&["1.2"])).unwrap();
        assert!(left.text.ends_with(".\n1\n2\n"), "{}", left.text);
        assert!(spec(&[]).remaining(folder, &proofs(&[])).is_none());
        let table = spec(&["2"]).table(folder, &proofs(&["1.1", "1.2"])).text;
        assert!(table.contains("| 1 | title 1 | those of its parts |\n"), "{table}");
        assert!(table.contains("| 1.1 | title 1.1 | [holds](../../crates/x.rs) |\n"), "{table}");
        assert!(table.contains("| 2 | title 2 | none yet |\n"), "{table}");
    }

    #[test]
    fn markers_stand_above_tests() {
        let text = "
            // rule: job 1.1, job 2
            // rule: jobset 3
            #[tokio::test]
            async fn one() {}
            // rule: job 2
            /// Why.
            #[test]
            #[expect(dead_code)]
            fn two<T>() {}
            // rule: job 7
            fn helper() {}
            // rule: nonsense
            #[test]
            fn three() {}
        ";
        let mut faults = Vec::new();
        let found: Vec<String> = markers("x.rs", text, &mut faults)
            .into_iter()
            .map(|((spec, id), test)| format!("{spec} {id} {test}"))
            .collect();
        assert_eq!(found, ["job 1.1 one", "job 2 one", "jobset 3 one", "job 2 two"]);
        assert_eq!(
            faults,
            [
                "x.rs:12: a rule stands above something that is no test",
                "x.rs:13: \"nonsense\" is no `spec id`",
            ]
        );
    }
}
