//! The options of the node inside `up` and `run`.

use std::collections::BTreeMap;

use anyhow::Result;
use k8s_openapi::apimachinery::pkg::api::resource::Quantity;
use lockstep_api::{names, quantity};
use lockstep_local::{
    embedded::{self, NodeOptions as Wanted},
    node::{fake::FakeOptions, runtime::RuntimeOptions},
};

/// What the node is like, and which pretended ones stand beside it.
#[derive(Clone, Debug, Default, clap::Args)]
#[command(next_help_heading = "Nodes")]
pub(crate) struct NodeOptions {
    /// What the node is called [default: the machine's name]
    #[arg(long, value_name = "NAME", value_parser = node_name)]
    node_name: Option<String>,
    /// What the node has, over what is found: cpu=8,memory=32Gi,nvidia.com/gpu=2
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = amount)]
    capacity: Vec<(String, Quantity)>,
    /// What to run for an image when a container has no command; may be given more than once
    #[arg(long, value_name = "IMAGE=COMMAND", value_parser = image_command)]
    image_command: Vec<(String, Command)>,
    /// Add so many nodes whose pods only pretend
    #[arg(long, value_name = "COUNT")]
    fake_nodes: Option<usize>,
    /// Put a label on each fake node; {i} is its number, {i/100} that divided and rounded down
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair, requires = "fake_nodes")]
    fake_node_label: Vec<(String, String)>,
    /// What each fake node has [default: cpu=32,memory=256Gi,pods=110]
    #[arg(long, value_name = "NAME=AMOUNT", value_delimiter = ',', value_parser = amount,
          requires = "fake_nodes")]
    fake_node_capacity: Vec<(String, Quantity)>,
}

/// The words of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Command(Vec<String>);

impl NodeOptions {
    /// The options of a cluster with such nodes.
    pub(crate) fn embedded(&self) -> embedded::Options {
        let mut options = embedded::Options::default();
        if let Some(name) = &self.node_name {
            options.node_name.clone_from(name);
        }
        // The agent of workers that restart in place is this program.
        options.agent = std::env::current_exe().ok();
        let commands = self.image_command.iter().cloned();
        options.node = Some(Wanted {
            capacity: self.capacity.iter().cloned().collect(),
            image_commands: commands.map(|(image, Command(words))| (image, words)).collect(),
            runtime: RuntimeOptions::from_env(),
            ..Wanted::default()
        });
        options.fake_nodes = self.fake_nodes.map(|count| FakeOptions {
            labels: self.fake_node_label.iter().cloned().collect::<BTreeMap<_, _>>(),
            capacity: self.fake_node_capacity.iter().cloned().collect(),
            ..FakeOptions::new(count)
        });
        options
    }
}

fn node_name(text: &str) -> Result<String, String> {
    match names::name_is_dns_subdomain(text, false).first() {
        Some(problem) => Err(problem.clone()),
        None => Ok(text.to_owned()),
    }
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.to_owned(), value.to_owned())),
        _ => Err("it must look like KEY=VALUE".to_owned()),
    }
}

fn amount(text: &str) -> Result<(String, Quantity), String> {
    let (name, amount) = pair(text).map_err(|_| "it must look like cpu=8".to_owned())?;
    match quantity::Quantity::parse(&amount) {
        Err(_) => Err(format!("{amount:?} is no amount; one looks like 8, 500m or 32Gi")),
        Ok(parsed) if parsed < quantity::Quantity::ZERO => {
            Err(format!("{amount:?} is less than nothing; one looks like 8, 500m or 32Gi"))
        }
        Ok(_) => Ok((name, Quantity(amount))),
    }
}

fn image_command(text: &str) -> Result<(String, Command), String> {
    let (image, command) =
        pair(text).map_err(|_| "it must look like nginx='python3 -m http.server'".to_owned())?;
    let words = split(&command)?;
    if words.is_empty() {
        return Err(format!("there is no command for {image}"));
    }
    Ok((image, Command(words)))
}

/// Splits a command as a shell does: blanks between words, quotes and backslashes inside them.
fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote: Option<char> = None;
    let mut letters = text.chars();
    while let Some(letter) = letters.next() {
        match (quote, letter) {
            (Some(open), letter) if letter == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(letter);
                word.get_or_insert_default();
            }
            (None | Some('"'), '\\') => match letters.next() {
                Some(next) => word.get_or_insert_default().push(next),
                None => return Err("the command ends with a backslash".to_owned()),
            },
            (None, letter) if letter.is_whitespace() => words.extend(word.take()),
            (_, letter) => word.get_or_insert_default().push(letter),
        }
    }
    if quote.is_some() {
        return Err("a quote in the command is never closed".to_owned());
    }
    words.extend(word);
    Ok(words)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_split_as_a_shell_splits_them() {
        for (text, want) in [
            ("python3 -m http.server", Some(vec!["python3", "-m", "http.server"])),
            ("sh -c 'echo a b'", Some(vec!["sh", "-c", "echo a b"])),
            (r#"echo "a \" b" c\ d ''"#, Some(vec!["echo", "a \" b", "c d", ""])),
            ("echo 'a", None),
            ("echo \\", None),
        ] {
            let split = split(text).ok();
            let want = want.map(|words| words.into_iter().map(ToOwned::to_owned).collect());
            assert_eq!(split, want, "{text}");
        }
    }

    #[test]
    fn amounts_and_images_must_make_sense() {
        assert_eq!(amount("cpu=8"), Ok(("cpu".to_owned(), Quantity("8".to_owned()))));
        assert!(amount("cpu").is_err() && amount("cpu=many").is_err() && amount("=1").is_err());
        assert!(amount("cpu=-2").is_err() && amount("cpu=0").is_ok());
        assert!(node_name("Bad_Node").is_err() && node_name("node-1.local").is_ok());
        assert!(image_command("nginx").is_err() && image_command("nginx= ").is_err());
    }
}
