//! Data directories that were damaged, are full, or belong to somebody else.

use std::{
    fs::{self, File},
    io::{Seek, SeekFrom, Write},
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail, ensure};

use crate::e2e::{check, check::Suite, up::Up};

/// What a damaged file may lead to: everything promised is there, or a clear refusal.
enum Verdict {
    Recovered,
    Refused(String),
}

/// All checks of this kind.
pub(super) fn checks(suite: &mut Suite, binary: &Path, folder: &Path) {
    let judge = |outcome: Result<()>| outcome.map_err(|error| format!("{error:#}"));
    suite.prove("a second process on the same data directory is refused", |_| {
        judge(second_process(binary, &folder.join("taken")))
    });
    for (name, hurt) in [
        ("a torn tail", tear as fn(&Path) -> Result<()>),
        ("garbage behind the end", append),
        ("a damaged page in the middle", scribble),
        ("a damaged head", behead),
        ("an empty file", empty),
    ] {
        suite.prove(&format!("{name} is recovered, or refused with advice"), |_| {
            judge(damaged(binary, &folder.join(name.replace(' ', "-")), hurt))
        });
    }
    suite.prove("a full disk fails writes and not reads", |_| {
        judge(full_disk(binary, &folder.join("full")))
    });
}

fn second_process(binary: &Path, data: &Path) -> Result<()> {
    let up = Up::start(binary, data, &["--port", "0"])?;
    let second = Command::new(binary)
        .args(["up", "--port", "0", "--data-dir"])
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let done = check::finish(second, "");
    ensure!(done.code == 4, "it ended with {}: {}", done.code, done.err);
    ensure!(done.err.contains("another lockstep"), "it said {:?}", done.err);
    lockstep(binary, data, &["get", "nodes"])?;
    up.stop()?;
    Ok(())
}

/// Writes, kills, damages, and starts again.
fn damaged(binary: &Path, data: &Path, hurt: fn(&Path) -> Result<()>) -> Result<()> {
    let up = Up::start(binary, data, &["--port", "0"])?;
    for number in 0..20 {
        apply(binary, data, number)?;
    }
    up.kill()?;
    hurt(&journal(data)?)?;
    match restart(binary, data)? {
        Verdict::Recovered => Ok(()),
        Verdict::Refused(why) => {
            let is_advice = why.contains(&data.display().to_string()) && !why.contains("panicked");
            ensure!(is_advice, "the refusal does not say what to do: {why}");
            Ok(())
        }
    }
}

fn restart(binary: &Path, data: &Path) -> Result<Verdict> {
    match Up::start(binary, data, &["--port", "0"]) {
        Err(error) => Ok(Verdict::Refused(error.to_string())),
        Ok(up) => {
            let names = lockstep(binary, data, &["get", "cm", "-o", "name"])?;
            for number in 0..20 {
                let name = format!("configmap/kept-{number}\n");
                ensure!(names.contains(&name), "it started, and lost {name}");
            }
            apply(binary, data, 99).context("after the recovery")?;
            up.stop()?;
            Ok(Verdict::Recovered)
        }
    }
}

/// A file size limit stands in for a full disk: it needs no mount and fails at the same place.
fn full_disk(binary: &Path, data: &Path) -> Result<()> {
    Up::start(binary, data, &["--port", "0"])?.stop()?;
    let kilobytes = fs::metadata(journal(data)?)?.len() / 1024 + 512;
    let mut limited = Command::new("bash");
    let script = format!("ulimit -f {kilobytes}; trap '' XFSZ; exec \"$0\" \"$@\"");
    limited.arg("-c").arg(script).arg(binary);
    let mut up = Up::start_as(limited, data, &["--port", "0"])?;
    let mut refusal = None;
    for number in 0..2000 {
        if let Err(error) = apply(binary, data, number) {
            refusal = Some(error.to_string());
            break;
        }
    }
    let refusal = refusal.context("the limit was never reached")?;
    ensure!(up.is_running(), "the server died: {}", up.said());
    ensure!(!refusal.contains("panicked"), "it panicked: {refusal}");
    let says_why =
        ["space", "disk", "large", "storage", "write"].iter().any(|w| refusal.contains(w));
    ensure!(says_why, "the refusal does not say why: {refusal}");
    let names = lockstep(binary, data, &["get", "cm", "-o", "name"])?;
    ensure!(names.contains("configmap/kept-0\n"), "reads do not go on");
    up.kill()?;
    let up = Up::start(binary, data, &["--port", "0"]).context("with room again")?;
    apply(binary, data, 5000).context("with room again")?;
    up.stop()?;
    Ok(())
}

fn apply(binary: &Path, data: &Path, number: usize) -> Result<()> {
    let padding = "x".repeat(20_000);
    let text = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: kept-{number}}}\ndata: {{p: {padding}}}\n"
    );
    let file = data.with_extension("yaml");
    fs::write(&file, text)?;
    lockstep(binary, data, &["apply", "-f", &file.display().to_string()]).map(drop)
}

fn lockstep(binary: &Path, data: &Path, arguments: &[&str]) -> Result<String> {
    let child = Command::new(binary)
        .args(arguments)
        .arg("--data-dir")
        .arg(data)
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    let done = check::finish(child, "");
    ensure!(done.code == 0, "{}", done.err.trim());
    Ok(done.out)
}

/// The largest file of a data directory is the one that holds the objects.
fn journal(data: &Path) -> Result<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(data)? {
        let entry = entry?;
        let meta = entry.metadata()?;
        if meta.is_file() && entry.file_name() != "lockstep.log" {
            files.push((meta.len(), entry.path()));
        }
    }
    files.sort();
    match files.pop() {
        Some((_, path)) => Ok(path),
        None => bail!("{} is empty", data.display()),
    }
}

fn tear(file: &Path) -> Result<()> {
    let length = fs::metadata(file)?.len();
    File::options().write(true).open(file)?.set_len(length.saturating_sub(100))?;
    Ok(())
}

fn append(file: &Path) -> Result<()> {
    File::options().append(true).open(file)?.write_all(&[0xA5; 3000])?;
    Ok(())
}

fn scribble(file: &Path) -> Result<()> {
    let middle = fs::metadata(file)?.len() / 2;
    overwrite(file, middle)
}

fn behead(file: &Path) -> Result<()> {
    overwrite(file, 0)
}

fn overwrite(file: &Path, at: u64) -> Result<()> {
    let mut file = File::options().write(true).open(file)?;
    file.seek(SeekFrom::Start(at))?;
    file.write_all(&[0x5A; 4096])?;
    Ok(())
}

fn empty(file: &Path) -> Result<()> {
    File::options().write(true).open(file)?.set_len(0)?;
    Ok(())
}
