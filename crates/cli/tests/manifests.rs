//! `lockstep manifests`: what is printed, and that what is committed is the same.

use std::{fs, path::Path, process::Command};

fn printed(line: &str) -> String {
    let mut lockstep = Command::new(env!("CARGO_BIN_EXE_lockstep"));
    let output = lockstep.arg("manifests").args(line.split_whitespace()).output();
    let output = output.expect("lockstep runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).expect("it is text")
}

/// Definitions have files of their own, `deploy/crds`, with a test of their own.
#[test]
fn the_committed_bundle_is_what_is_printed() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy/operator.yaml");
    // Whatever is typed, they come in the order in which they are to be made.
    let text = printed("--only operator,rbac");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::write(&path, &text).unwrap();
    }
    let committed = fs::read_to_string(&path).unwrap_or_default();
    assert!(committed == text, "deploy/operator.yaml is out of date: UPDATE_GOLDEN=1");
    assert_eq!(printed(""), printed("--only crds") + &text);
}

#[test]
fn what_is_said_is_what_is_printed() {
    let text = printed("-n here --image=there:1 --replicas 3 --only operator");
    for want in ["namespace: here", "image: there:1", "replicas: 3", "lockstep.here.svc:7411"] {
        assert!(text.contains(want), "{want}: {text}");
    }
    assert!(!text.contains("CustomResourceDefinition") && !text.contains("ClusterRole"));
    let text = printed("--no-in-place-restart --only rbac,operator");
    for gone in ["secrets", "configmaps", "pods", "--restart-address", "--agent-image"] {
        assert!(!text.contains(gone), "{gone}: {text}");
    }
}
