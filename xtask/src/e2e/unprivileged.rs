//! The pod checks as a user without privileges, once with user namespaces and once without.

use std::{
    fs,
    os::unix::fs::{PermissionsExt, chown},
    path::Path,
    process::Command,
};

use anyhow::{Context, Result, ensure};

use super::{
    check::{Suite, Summary},
    kubectl::pods,
    up::Up,
};
use crate::{kubectl, shell};

/// Nobody: a user that owns nothing. Any id that has no entry in the user database would do.
const USER: u32 = 65_534;

/// Runs the checks in both worlds.
pub(crate) fn run(binary: &Path) -> Result<Summary> {
    let mut summary = Summary::default();
    for has_namespaces in [true, false] {
        summary.add(world(binary, has_namespaces)?);
    }
    Ok(summary)
}

fn world(binary: &Path, has_namespaces: bool) -> Result<Summary> {
    let title = if has_namespaces { "with user namespaces" } else { "without user namespaces" };
    let folder = tempfile::tempdir()?;
    let home = folder.path().join("home");
    fs::create_dir(&home)?;
    // The build may lie where only its owner can look.
    let copied = folder.path().join("lockstep");
    fs::copy(binary, &copied).context("cannot copy the binary")?;
    fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
    let is_root = shell::output(Command::new("id").arg("-u"))?.trim() == "0";
    if is_root {
        chown(&home, Some(USER), Some(USER))?;
    }
    let up = command(&copied, is_root, has_namespaces);
    let data = home.join("data");
    let kubectl = kubectl::binary(kubectl::VERSIONS[0])?;
    let mut suite = Suite::new(&format!("unprivileged, {title}"), &kubectl);
    let up = start(up, &home, &data)?;
    suite.set("KUBECONFIG", up.kubeconfig());
    suite.set("HOME", folder.path());
    suite.prove("the server runs as somebody else", |_| {
        let owner = shell::output(Command::new("stat").args(["-c", "%u"]).arg(&data));
        let owner = owner.map_err(|error| error.to_string())?;
        (owner.trim() != "0").then_some(()).ok_or_else(|| "it runs as root".to_owned())
    });
    pods::checks(&mut suite);
    let status = up.stop()?;
    suite.prove("it stops as it should", |_| {
        status.success().then_some(()).ok_or_else(|| status.to_string())
    });
    Ok(suite.finish())
}

/// The command that starts the binary for that user. Namespaces are taken away where the kernel
/// counts them: in a user namespace of its own, whose limit of further ones is zero. That leaves
/// the rest of the machine as it is.
fn command(binary: &Path, is_root: bool, has_namespaces: bool) -> Command {
    const FORBID: &str = "echo 0 > /proc/sys/user/max_user_namespaces && \
                          exec setpriv --inh-caps=-all --ambient-caps=-all -- \"$0\" \"$@\"";
    let mut words: Vec<String> = Vec::new();
    let mut add = |more: &[&str]| words.extend(more.iter().map(|&word| word.to_owned()));
    if is_root {
        let (user, group) = (format!("--reuid={USER}"), format!("--regid={USER}"));
        add(&["setpriv", &user, &group, "--clear-groups", "--inh-caps=-all", "--"]);
    }
    if !has_namespaces {
        add(&["unshare", "--user", "--map-current-user", "--keep-caps", "bash", "-c", FORBID]);
    }
    add(&[&binary.display().to_string()]);
    let mut command = Command::new(&words[0]);
    command.args(&words[1..]);
    command
}

fn start(mut command: Command, home: &Path, data: &Path) -> Result<Up> {
    command.env("HOME", home).env_remove("XDG_DATA_HOME").current_dir("/");
    ensure!(home.is_dir(), "{} is missing", home.display());
    Up::start_as(command, data, &["--port", "0"])
}
