//! Containers without their own view of the machine: what would be mounted or resolved is replaced
//! in the environment and the arguments instead.

use std::path::{Path, PathBuf};

use lockstep_api::pod::{TOKEN_FOLDER, TOKEN_VOLUME};

use super::{Launch, StartError};

/// Folders of the system, whose content programs rely on without it being named to them.
const SYSTEM: [&str; 12] = [
    "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/proc", "/sbin", "/sys", "/usr",
    "/var/lib",
];

/// What [`rewrite`] comes to.
#[derive(Debug)]
pub(super) struct Rewritten {
    /// What users should know.
    pub(super) warnings: Vec<String>,
    /// Paths that the container cannot have, and where that is: for commands that come later.
    pub(super) paths: Vec<(PathBuf, PathBuf)>,
}

/// Replaces the paths of volumes and the names of the gang in `launch`.
pub(super) fn rewrite(launch: &mut Launch, message_file: &Path) -> Result<Rewritten, StartError> {
    let mut paths = Vec::new();
    let mut warnings = Vec::new();
    let mut exported = Vec::new();
    for mount in &launch.mounts {
        // Shared memory is there on every machine, and it is what was meant.
        if mount.target == Path::new("/dev/shm") {
            continue;
        }
        if SYSTEM.iter().any(|dir| mount.target.starts_with(dir)) || mount.target == Path::new("/")
        {
            return Err(StartError::Mount {
                volume: mount.volume.clone(),
                message: format!(
                    "{:?} cannot be mounted over a system folder without mount namespaces; \
                     allow unprivileged user namespaces on this machine, or use another mountPath",
                    mount.target
                ),
            });
        }
        exported.push((variable(&mount.volume), mount.source.to_string_lossy().into_owned()));
        paths.push((mount.target.clone(), mount.source.clone()));
        // Every pod has it, and few look into it.
        if mount.target == Path::new(TOKEN_FOLDER) {
            continue;
        }
        warnings.push(format!(
            "volume {:?} is not at {} but at {}: mount namespaces are not allowed here; \
             the path was replaced in the command and the environment, see also ${}",
            mount.volume,
            mount.target.display(),
            mount.source.display(),
            variable(&mount.volume)
        ));
    }
    paths.push((PathBuf::from(&launch.termination_message_path), message_file.to_owned()));
    // The longest first, so that a volume inside a volume is found.
    paths.sort_by_key(|(target, _)| std::cmp::Reverse(target.as_os_str().len()));
    let replace = |text: &str| replace_paths(&launch.names.replace(text), &paths);
    let command = launch.command.iter().map(|argument| replace(argument)).collect();
    let env = launch.env.iter().map(|(name, value)| {
        let value = launch.names.replace_in_variable(name, value);
        (name.clone(), replace_paths(&value, &paths))
    });
    let env = exported.into_iter().chain(env).collect();
    let working_dir = launch
        .working_dir
        .as_ref()
        .map(|dir| PathBuf::from(replace_paths(&dir.to_string_lossy(), &paths)));
    launch.command = command;
    launch.env = env;
    launch.working_dir = working_dir;
    launch.mounts.clear();
    Ok(Rewritten { warnings, paths })
}

/// The variable that says where a volume is.
fn variable(volume: &str) -> String {
    // What follows is made up for each pod.
    let volume = if volume.starts_with(TOKEN_VOLUME) { "kube-api-access" } else { volume };
    let name: String = volume
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' })
        .collect();
    format!("LOCKSTEP_VOLUME_{name}")
}

/// Replaces each whole path in `text` that is one of `paths` or lies below it.
pub(crate) fn replace_paths(text: &str, paths: &[(PathBuf, PathBuf)]) -> String {
    let mut replaced = String::with_capacity(text.len());
    let mut rest = text;
    let mut before = None;
    'text: while let Some(c) = rest.chars().next() {
        if c == '/' && !before.is_some_and(is_path_char) {
            for (target, source) in paths {
                let Some(target) = target.to_str().map(|target| target.trim_end_matches('/'))
                else {
                    continue;
                };
                let Some(after) = rest.strip_prefix(target).filter(|_| !target.is_empty()) else {
                    continue;
                };
                // `/data2` is not below `/data`, nor is `/data.old`.
                if after.chars().next().is_none_or(|next| next == '/' || !is_path_char(next)) {
                    replaced.push_str(&source.to_string_lossy());
                    rest = after;
                    before = Some('x');
                    continue 'text;
                }
            }
        }
        replaced.push(c);
        before = Some(c);
        rest = &rest[c.len_utf8()..];
    }
    replaced
}

fn is_path_char(c: char) -> bool {
    c.is_alphanumeric() || matches!(c, '/' | '.' | '-' | '_' | '~' | '+' | '@' | '}')
}

#[cfg(test)]
mod tests {
    use super::super::{ContainerId, Mount};
    use super::*;

    #[test]
    fn paths_are_replaced_whole() {
        let paths = [("/data/in", "/v/in"), ("/data", "/v/data")]
            .map(|(target, source)| (PathBuf::from(target), PathBuf::from(source)));
        let cases = [
            ("/data", "/v/data"),
            ("/data/x", "/v/data/x"),
            ("/data/in/x", "/v/in/x"),
            ("cat /data/a>/data/b", "cat /v/data/a>/v/data/b"),
            ("--dir=/data", "--dir=/v/data"),
            ("/database", "/database"),
            ("/data.old", "/data.old"),
            ("/my/data", "/my/data"),
            ("$HOME/data", "$HOME/data"),
            ("${HOME}/data", "${HOME}/data"),
            ("a:/data:/data/in", "a:/v/data:/v/in"),
            ("'/data'", "'/v/data'"),
        ];
        for (text, want) in cases {
            assert_eq!(replace_paths(text, &paths), want, "{text}");
        }
    }

    #[test]
    fn system_folders_are_refused_and_shared_memory_is_there_anyway() {
        let launch = |target: &str| {
            let id = ContainerId { pod_uid: "u".into(), container: "c".into(), attempt: 0 };
            let mut launch = Launch::new(id, vec!["true".into()]);
            launch.mounts.push(Mount {
                volume: "my-vol".into(),
                source: "/v/my".into(),
                target: target.into(),
                read_only: false,
            });
            launch
        };
        let cases =
            [("/etc/ssl", true), ("/usr/share/x", true), ("/dev/shm", false), ("/data", false)];
        for (target, is_refused) in cases {
            let result = rewrite(&mut launch(target), Path::new("/m"));
            assert_eq!(result.is_err(), is_refused, "{target}");
        }
        let mut data = launch("/data");
        let rewritten = rewrite(&mut data, Path::new("/m")).unwrap();
        assert_eq!(rewritten.warnings.len(), 1);
        assert_eq!(replace_paths("/data/x", &rewritten.paths), "/v/my/x", "and later");
        assert_eq!(data.env, [("LOCKSTEP_VOLUME_MY_VOL".to_owned(), "/v/my".to_owned())]);
    }

    #[test]
    fn the_token_of_every_pod_is_named_without_a_word_of_warning() {
        let id = ContainerId { pod_uid: "u".into(), container: "c".into(), attempt: 0 };
        let mut launch = Launch::new(id, vec!["cat".into(), format!("{TOKEN_FOLDER}/token")]);
        launch.mounts.push(Mount {
            volume: "kube-api-access-x7k2p".into(),
            source: "/v/api".into(),
            target: TOKEN_FOLDER.into(),
            read_only: true,
        });
        let rewritten = rewrite(&mut launch, Path::new("/m")).unwrap();
        assert_eq!(rewritten.warnings, Vec::<String>::new());
        let named = ("LOCKSTEP_VOLUME_KUBE_API_ACCESS".to_owned(), "/v/api".to_owned());
        assert_eq!((launch.env, &*launch.command[1]), (vec![named], "/v/api/token"));
    }
}
