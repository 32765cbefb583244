//! Everything again for a user without rights, with user namespaces and with a kernel that forbids
//! them.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::support::shim;

const NOBODY: u32 = 65534;

/// Runs the other tests of this executable as `nobody`.
fn run_as_nobody(isolation: &str, change: impl FnOnce(&mut Command)) {
    if !rustix::process::geteuid().is_root() {
        println!("not root: the other tests already ran without rights");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let open = |path: &Path| fs::set_permissions(path, fs::Permissions::from_mode(0o777)).unwrap();
    open(folder.path());
    // The build folder may be out of reach for other users.
    let copy = |from: PathBuf, name: &str| {
        let to = folder.path().join(name);
        fs::copy(from, &to).unwrap();
        open(&to);
        to
    };
    let tests = copy(std::env::current_exe().unwrap(), "tests");
    let shim = copy(shim(), "shim");
    let mut command = Command::new(tests);
    command
        .args(["--skip", "node::users", "--test-threads", "4"])
        .env("LOCKSTEP_TEST_SHIM", shim)
        .env("LOCKSTEP_TEST_ISOLATION", isolation)
        .env("LOCKSTEP_TEST_RUN", format!("-{isolation}-{}", std::process::id()))
        .env("TMPDIR", folder.path())
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY);
    change(&mut command);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    print!("{text}{}", String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success());
    assert!(!text.contains("running 0 tests"));
}

#[test]
fn a_user_without_rights_can_do_everything() {
    let probe = Command::new(shim()).args(["__shim", "probe"]).uid(NOBODY).gid(NOBODY).output();
    if !String::from_utf8_lossy(&probe.unwrap().stdout).contains("UserMount") {
        println!("this machine forbids user namespaces: only the other test can run");
        return;
    }
    run_as_nobody("UserMount", |_| {});
}

#[test]
fn a_user_without_rights_and_namespaces_can_do_everything_else() {
    run_as_nobody("None", |command| {
        #[expect(unsafe_code, reason = "the child must lose the right before it is the program")]
        // SAFETY: the closure makes system calls on constants only.
        unsafe {
            command.pre_exec(forbid_unshare);
        }
    });
}

/// Makes every `unshare` of this process and its children fail, as hardened kernels do.
#[expect(unsafe_code, reason = "seccomp filters are raw system calls")]
fn forbid_unshare() -> io::Result<()> {
    let filter = |code: u32, jf, k: u32| libc::sock_filter {
        code: u16::try_from(code).expect("all codes are small"),
        jt: 0,
        jf,
        k,
    };
    let unshare = u32::try_from(libc::SYS_unshare).expect("all numbers are small");
    let mut filters = [
        filter(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0),
        filter(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, 1, unshare),
        filter(libc::BPF_RET, 0, libc::SECCOMP_RET_ERRNO | libc::EPERM.unsigned_abs()),
        filter(libc::BPF_RET, 0, libc::SECCOMP_RET_ALLOW),
    ];
    let program = libc::sock_fprog { len: 4, filter: filters.as_mut_ptr() };
    // SAFETY: the program and its filters live until the call returns.
    let done = unsafe {
        libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0
            && libc::prctl(libc::PR_SET_SECCOMP, libc::SECCOMP_MODE_FILTER, &raw const program) == 0
    };
    if done { Ok(()) } else { Err(io::Error::last_os_error()) }
}
