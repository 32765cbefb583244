//! The same requests to a real API server and to ours: whatever differs is a fault, or is said in
//! `docs/reference/differences.md`.
//!
//! Scripts are in `tests/differential`, one namespace each. What two servers cannot agree on (uids,
//! moments, versions) is levelled before answers are compared.

mod compare;
mod define;
mod exchange;
mod level;
mod script;

use std::{collections::BTreeSet, fs, path::Path};

use anyhow::{Context, Result, ensure};
use kube::Client;

use self::{
    compare::differences,
    exchange::{Answer, Party},
    script::{Known, Script, Step},
};
use super::{
    check::{Suite, Summary},
    up::Up,
};
use crate::{
    kubernetes::{ControlPlane, Programs, VERSION, client_without_retries},
    shell,
};

/// Where every difference that stays is explained.
const EXPLAINED: &str = "docs/reference/differences.md";

/// How many requests there are at least, so that none gets lost with a file.
const REQUESTS_MIN: usize = 200;

/// Sends all scripts to both.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let scripts = script::all(&shell::root().join("tests/differential"))?;
    let explained = fs::read_to_string(shell::root().join(EXPLAINED))
        .with_context(|| format!("cannot read {EXPLAINED}"))?;
    let control_plane = ControlPlane::start(&Programs::of(VERSION)?)?;
    let folder = tempfile::tempdir()?;
    let arguments = ["--port", "0", "--in-memory"];
    let up = Up::start(binary, &folder.path().join("data"), &arguments)?;
    let mut suite = Suite::new(&format!("differences from Kubernetes v{VERSION}"), binary);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let mut met = BTreeSet::new();
    let sent = runtime.block_on(async {
        // An answer is an answer, also one that says to come again.
        let clients = [
            client_without_retries(&control_plane.kubeconfig()).await?,
            client_without_retries(&up.kubeconfig()).await?,
        ];
        define::custom_kinds(&clients[0]).await?;
        let mut sent = 0;
        for script in &scripts {
            sent += play(&mut suite, script, &clients, &mut met).await?;
        }
        anyhow::Ok(sent)
    })?;
    suite.prove("enough was asked", |_| {
        let is_enough = sent >= REQUESTS_MIN;
        if is_enough { Ok(()) } else { Err(format!("{sent} of {REQUESTS_MIN} requests")) }
    });
    compare_with_list(&mut suite, &scripts, &explained, &met);
    println!("{sent} requests to each");
    Ok(suite.finish())
}

/// What is known to differ is explained, and was seen to; and what is explained is known.
fn compare_with_list(
    suite: &mut Suite,
    scripts: &[Script],
    explained: &str,
    met: &BTreeSet<(String, String)>,
) {
    let known: BTreeSet<&str> = scripts.iter().flat_map(Script::known).map(Known::why).collect();
    let row = |line: &'_ str| Some(line.strip_prefix("| `")?.split_once('`')?.0.to_owned());
    let rows: BTreeSet<String> = explained.lines().filter_map(row).collect();
    for name in &known {
        suite.prove(&format!("{name} is explained"), |_| match rows.contains(*name) {
            true => Ok(()),
            false => Err(format!("{EXPLAINED} has no `{name}`")),
        });
    }
    for name in rows.iter().filter(|name| !known.contains(name.as_str())) {
        let why = format!("{EXPLAINED} has it, and no script does");
        suite.prove(&format!("{name} is known"), |_| Err(why));
    }
    for script in scripts {
        for known in &script.differs {
            let name = format!("{}: {} differs at {}", script.title, known.why, known.at);
            let is_met = met.contains(&(script.title.clone(), known.at.clone()));
            let why = "it does not any more, in no step".to_owned();
            suite.prove(&name, |_| if is_met { Ok(()) } else { Err(why) });
        }
    }
}

/// Sends one script to both, step by step, and gives the number of requests.
async fn play(
    suite: &mut Suite,
    script: &Script,
    clients: &[Client; 2],
    met: &mut BTreeSet<(String, String)>,
) -> Result<usize> {
    let mut parties = Vec::new();
    for client in clients {
        parties.push(Party::new(client.clone(), &script.namespace()).await?);
    }
    let [real, ours] = &mut parties[..] else { unreachable!("there are two clients") };
    for step in &script.steps {
        let name = format!("{}: {}", script.title, step.name);
        let answers = (real.ask(step).await, ours.ask(step).await);
        let outcome = match answers {
            (Ok(real), Ok(ours)) => judge(script, step, &real, &ours, met),
            (Err(error), _) => Err(format!("the real server: {error:#}")),
            (_, Err(error)) => Err(format!("ours: {error:#}")),
        };
        suite.prove(&name, |_| outcome);
    }
    ensure!(!script.steps.is_empty(), "{} has no steps", script.title);
    Ok(script.steps.len())
}

/// Whether both said the same, but for what is known.
fn judge(
    script: &Script,
    step: &Step,
    real: &Answer,
    ours: &Answer,
    met: &mut BTreeSet<(String, String)>,
) -> Result<(), String> {
    let known: Vec<&Known> = step.differs.iter().chain(&script.differs).collect();
    let mut faults = Vec::new();
    let mut is_met = vec![false; known.len()];
    for found in differences(&real.shown(), &ours.shown()) {
        match known.iter().position(|known| known.covers(&found.at)) {
            Some(at) => is_met[at] = true,
            None => faults.push(found.to_string()),
        }
    }
    for (known, is_met) in step.differs.iter().zip(&is_met) {
        if !is_met {
            faults.push(format!("{} does not differ any more ({})", known.at, known.why));
        }
    }
    let of_script = is_met.iter().skip(step.differs.len()).zip(&script.differs);
    let met_now = of_script.filter(|(is_met, _)| **is_met);
    met.extend(met_now.map(|(_, known)| (script.title.clone(), known.at.clone())));
    if faults.is_empty() { Ok(()) } else { Err(faults.join("\n  ")) }
}
