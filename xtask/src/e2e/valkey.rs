//! Real agents that are led through a real Valkey. The tests are those of `crates/cli/tests` which
//! are left out elsewhere, since they need that server.

use std::{
    ffi::OsString,
    fs,
    path::Path,
    process::{Command, Stdio},
};

use anyhow::{Context, Result, bail};

use super::check::{Suite, Summary};
use crate::shell;

/// A leader for one of the tests to kill; there is nothing to see when it is run alone.
const HELPER: &str = "leads_until_it_is_killed";

/// Runs all of them.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let (server, version) = server()?;
    let mut suite = Suite::new(&format!("Valkey: {version}"), binary);
    let arguments = ["test", "--workspace", "--locked", "--quiet", "--test", "valkey", "--"];
    let mut tests = shell::cargo(arguments);
    // Some at a time: most of them wait most of the time.
    tests.args(["--ignored", "--skip", HELPER, "--test-threads", "3", "--format", "pretty"]);
    let output = tests
        .env("LOCKSTEP_VALKEY", server)
        .stdin(Stdio::null())
        .output()
        .context("cannot start the tests")?;
    let said = String::from_utf8_lossy(&output.stdout);
    for (name, is_ok) in outcomes(&said) {
        suite.prove(name, |_| if is_ok { Ok(()) } else { Err("see below".to_owned()) });
    }
    suite.prove("all of them were run", |_| {
        let errors = String::from_utf8_lossy(&output.stderr);
        let is_good = output.status.success() && said.contains("test result: ok. ");
        if is_good { Ok(()) } else { Err(format!("{said}\n{errors}")) }
    });
    Ok(suite.finish())
}

/// The tests that were run, and whether each passed.
fn outcomes(said: &str) -> impl Iterator<Item = (&str, bool)> {
    said.lines().filter_map(|line| {
        let (name, outcome) = line.strip_prefix("test ")?.rsplit_once(" ... ")?;
        Some((name, outcome == "ok"))
    })
}

/// A server to run, and what it calls itself: Valkey if it can be had, or else the Redis that
/// distributions had before it, from which it came.
pub(super) fn server() -> Result<(OsString, String)> {
    let found = |name: &str| {
        let output = Command::new(name).arg("--version").output().ok()?;
        let version = String::from_utf8_lossy(&output.stdout).trim().to_owned();
        output.status.success().then(|| (name.into(), version))
    };
    if let Some(server) = found("valkey-server") {
        return Ok(server);
    }
    println!("installing Valkey");
    for (name, is_backport) in
        [("valkey-server", false), ("valkey-server", true), ("redis-server", false)]
    {
        let installed = if is_backport { from_backports(name) } else { install(&[], name) };
        if let Err(error) = installed {
            println!("{error:#}");
        }
        if let Some(server) = found(name) {
            return Ok(server);
        }
    }
    bail!("there is neither valkey-server nor redis-server, and none can be installed")
}

fn install(options: &[String], package: &str) -> Result<()> {
    let mut install = Command::new("apt-get");
    install.env("DEBIAN_FRONTEND", "noninteractive").args(options);
    install.args(["install", "-y", "-qq", "--no-install-recommends", package]);
    shell::run(install.stdout(Stdio::null()))
}

/// Installs it from where a distribution keeps what is newer than itself. What the machine has for
/// its packages is not changed.
fn from_backports(package: &str) -> Result<()> {
    let mut targets = Command::new("apt-get");
    targets.args(["indextargets", "--format", "$(REPO_URI) $(RELEASE)", "Created-By: Packages"]);
    let targets = shell::output(&mut targets)?;
    let release = fs::read_to_string("/etc/os-release").context("which system is this?")?;
    let line = backports(&targets, &release).context("the system has no sources of its own")?;
    let folder = tempfile::tempdir()?;
    let list = folder.path().join("sources.list");
    let own = fs::read_to_string("/etc/apt/sources.list").unwrap_or_default();
    fs::write(&list, format!("{own}\n{line}\n"))?;
    let lists = folder.path().join("lists");
    fs::create_dir_all(lists.join("partial"))?;
    let options = [("Dir::Etc::SourceList", list), ("Dir::State::Lists", lists)];
    let options = options.map(|(name, path)| format!("-o{name}={}", path.display()));
    shell::run(Command::new("apt-get").args(&options).args(["update", "-qq"]))?;
    install(&options, package)
}

/// The line for the backports of the system that `os_release` is of, beside its own packages.
fn backports(targets: &str, os_release: &str) -> Option<String> {
    let codename = os_release.lines().find_map(|line| line.strip_prefix("VERSION_CODENAME="))?;
    targets.lines().find_map(|line| {
        let (site, release) = line.split_once(' ')?;
        (release == codename).then(|| format!("deb {site} {codename}-backports main"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_tests_say_is_understood() {
        let said = "\nrunning 2 tests\ntest a::b ... ok\ntest c ... FAILED\n\ntest result: FAILED.";
        assert_eq!(outcomes(said).collect::<Vec<_>>(), [("a::b", true), ("c", false)]);
    }

    #[test]
    fn backports_are_beside_the_packages_of_the_system() {
        let targets = "http://a/other stable\nhttp://a/debian/ bookworm\n";
        let line = backports(targets, "NAME=x\nVERSION_CODENAME=bookworm\n");
        assert_eq!(line.as_deref(), Some("deb http://a/debian/ bookworm-backports main"));
        assert_eq!(backports(targets, "VERSION_CODENAME=trixie"), None);
    }
}
