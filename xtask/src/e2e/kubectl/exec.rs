//! Commands in pods, files to and from them, their main processes and their ports.

use std::{
    fs,
    io::{BufRead, BufReader, Read, Write},
    net::TcpStream,
    path::Path,
    process::Child,
    time::Duration,
};

use super::pod;
use crate::e2e::check::{Check, Suite};

/// A server that says what it was told.
const SERVER: &str = "
import socket, os, threading
def serve(c):
    while True:
        b = c.recv(65536)
        if not b: break
        c.sendall(b)
    c.close()
s = socket.create_server((os.environ['IP'], 7700))
while True:
    threading.Thread(target=serve, args=s.accept()[:1]).start()
";

/// The checks, with files in `folder`.
pub(super) fn checks(suite: &mut Suite, folder: &Path) {
    let script = "echo up; trap 'exit 0' TERM; while :; do sleep 0.1; done";
    let apply = Check::new("apply -f -").stdin(&pod("shell", script));
    suite.check("a pod to work with", apply.out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/shell --timeout=30s");
    suite.check("it is ready", ready.out("condition met"));
    commands(suite);
    terminals(suite);
    files(suite, folder);
    main_process(suite);
    ports(suite);
    rights(suite);
    let clean = Check::new("delete pod shell talk server --grace-period=1 --ignore-not-found");
    suite.check("clean up", clean.out("shell"));
}

fn commands(suite: &mut Suite) {
    suite.check("exec", Check::new("exec shell -- echo hello").out_is("hello"));
    let both = Check::new("exec shell -- sh -c 'echo out; echo err >&2'");
    suite.check("exec keeps streams apart", both.out_is("out").err("err"));
    let code = Check::new("exec shell -- sh -c 'exit 7'").code(7);
    suite.check("exec has the code", code.err("command terminated with exit code 7"));
    let input = Check::new("exec -i shell -- wc -c").stdin(&"x".repeat(1 << 20));
    suite.check("exec -i reads to the end", input.out_is("1048576"));
    let other = Check::new("exec -i shell -- head -c 3").stdin("abcdef");
    suite.check("exec -i ends with the command", other.out_is("abc"));
    let much = Check::new("exec shell -- sh -c 'seq 100000 | md5sum'");
    suite.check("exec has all of it", much.out("dea9193b768319cbb4ff1a137ac03113"));
    let missing = Check::new("exec shell -- no-such-program").code(1);
    suite.check("no such program", missing.err("executable file not found in $PATH"));
    let container = Check::new("exec shell -c nobody -- date").code(1);
    suite.check("no such container", container.err("container nobody is not valid for pod shell"));
    let nobody = Check::new("exec nobody -- date").code(1).err("pods \"nobody\" not found");
    suite.check("no such pod", nobody);
}

/// A command that has a terminal, as large as the one kubectl runs on.
fn terminals(suite: &mut Suite) {
    suite.prove("exec -it: a terminal", |suite| {
        let script =
            "tty; for i in $(seq 50); do stty size | grep 31.97 && exit 6; sleep 0.1; done";
        let done = suite.on_a_terminal(&format!("exec -it shell -- sh -c '{script}'"), "");
        let is_right =
            done.code == 6 && done.out.contains("/dev/pts/") && done.out.contains("31 97");
        is_right.then_some(()).ok_or_else(|| format!("{done:?}"))
    });
    suite.prove("exec -it: what is typed is run", |suite| {
        let typed = "echo sum-$((40+2))\nexit 5\n";
        let done = suite.on_a_terminal("exec -it shell -- sh", typed);
        let is_right = done.code == 5 && done.out.contains("sum-42\r\n");
        is_right.then_some(()).ok_or_else(|| format!("{done:?}"))
    });
}

fn files(suite: &mut Suite, folder: &Path) {
    let (from, back) = (folder.join("from"), folder.join("back"));
    let bytes: Vec<u8> = (0..3_000_000_u32).flat_map(|n| n.to_le_bytes()).collect();
    let place = folder.join("place");
    let made = fs::create_dir_all(&place).and_then(|()| fs::write(&from, &bytes));
    suite.prove("a file to copy", |_| made.map_err(|error| error.to_string()));
    let (from, back, place) = (from.display(), back.display(), place.display());
    suite.check("cp to a pod", Check::new(&format!("cp {from} shell:{place}/copy")));
    let folder = Check::new(&format!("cp shell:{place} {back}"));
    suite.check("cp from a pod", folder);
    suite.prove("it is the same file", |_| match fs::read(format!("{back}/copy")) {
        Ok(copied) if copied == bytes => Ok(()),
        Ok(copied) => Err(format!("{} bytes instead of {}", copied.len(), bytes.len())),
        Err(error) => Err(error.to_string()),
    });
}

fn main_process(suite: &mut Suite) {
    let run = "run talk -i --rm --restart=Never --image=busybox --command -- sh -c";
    let script = "while read line; do echo got $line; done; echo bye";
    let talk = Check::new(&format!("{run} '{script}'")).stdin("one\ntwo\n");
    suite.check("run -i --rm", talk.out("got one\ngot two\nbye").out("deleted"));
    let fail = Check::new(&format!("{run} 'cat >/dev/null; exit 4'")).stdin("x").code(4);
    suite.check("run -i has the code", fail);
    let ticks = pod("talk", "while :; do echo tick; sleep 0.2; done");
    suite.check("a pod that talks", Check::new("apply -f -").stdin(&ticks).out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/talk --timeout=30s");
    suite.check("it is ready", ready.out("condition met"));
    suite.prove("attach", |suite| {
        let mut child = suite.start("attach talk").map_err(|error| error.to_string())?;
        let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
        let line = lines.next().and_then(Result::ok).unwrap_or_default();
        end(child);
        if line == "tick" { Ok(()) } else { Err(format!("it began with {line:?}")) }
    });
    let delete = Check::new("delete pod talk --grace-period=1").out("deleted");
    suite.check("it goes", delete);
}

fn ports(suite: &mut Suite) {
    let server = pod("server", "exec python3 -c \"$SERVER\"").replace(
        "    command:",
        &format!(
            "    env:\n    - {{name: SERVER, value: {SERVER:?}}}\n    - name: IP\n      \
             valueFrom: {{fieldRef: {{fieldPath: status.podIP}}}}\n    readinessProbe:\n      \
             tcpSocket: {{port: 7700}}\n      periodSeconds: 1\n    command:"
        ),
    );
    suite.check("a server", Check::new("apply -f -").stdin(&server).out("created"));
    let ready = Check::new("wait --for=condition=Ready pod/server --timeout=60s");
    suite.check("it is ready", ready.out("condition met"));
    suite.prove("port-forward", |suite| {
        let (child, port) = forward(suite, "port-forward pod/server :7700")?;
        let said = echo(port, 4).and_then(|()| echo(port, 3_000_000));
        end(child);
        said
    });
    suite.prove("port-forward to nobody", |suite| {
        let (mut child, port) = forward(suite, "port-forward pod/server :7701")?;
        let _refused = echo(port, 4);
        let mut said = String::new();
        let mut stderr = child.stderr.take().ok_or("no stderr")?;
        end(child);
        stderr.read_to_string(&mut said).map_err(|error| error.to_string())?;
        match said.contains("error forwarding port 7701 to pod") && said.contains("refused") {
            true => Ok(()),
            false => Err(said),
        }
    });
}

/// Starts a forwarding to a port that kubectl chooses.
fn forward(suite: &Suite, line: &str) -> Result<(Child, u16), String> {
    let mut child = suite.start(line).map_err(|error| error.to_string())?;
    let mut lines = BufReader::new(child.stdout.take().ok_or("no stdout")?).lines();
    let first = lines.next().and_then(Result::ok).unwrap_or_default();
    let port = first.split("127.0.0.1:").nth(1).and_then(|rest| rest.split(' ').next());
    let port = port.and_then(|port| port.parse().ok());
    // The pipe is read to its end, so that kubectl never blocks on it.
    std::thread::spawn(move || lines.map_while(Result::ok).count());
    match port {
        Some(port) => Ok((child, port)),
        None => {
            end(child);
            Err(format!("it began with {first:?}"))
        }
    }
}

/// Sends so many bytes and expects them back.
fn echo(port: u16, count: usize) -> Result<(), String> {
    let failed = |error: std::io::Error| error.to_string();
    let stream = TcpStream::connect(("127.0.0.1", port)).map_err(failed)?;
    stream.set_read_timeout(Some(Duration::from_secs(60))).map_err(failed)?;
    let (mut reader, mut writer) = (stream.try_clone().map_err(failed)?, stream);
    let bytes: Vec<u8> = (0..=250_u8).cycle().take(count).collect();
    let sent = bytes.clone();
    let sending = std::thread::spawn(move || {
        writer.write_all(&sent)?;
        writer.shutdown(std::net::Shutdown::Write)
    });
    let mut back = Vec::new();
    reader.read_to_end(&mut back).map_err(failed)?;
    drop(sending.join());
    match back == bytes {
        true => Ok(()),
        false => Err(format!("{} of {count} bytes came back", back.len())),
    }
}

fn end(mut child: Child) {
    drop(child.kill());
    drop(child.wait());
}

/// Who may look at pods may not run commands in them.
fn rights(suite: &mut Suite) {
    let role = "create role looker --verb=get --resource=pods,pods/exec";
    suite.check("a role to look", Check::new(role).out("created"));
    let binding = "create rolebinding looker --role=looker --user=looker";
    suite.check("for somebody", Check::new(binding).out("created"));
    let refused = Check::new("exec shell --as=looker -- date").code(1);
    let why = "User \"looker\" cannot create resource \"pods/exec\"";
    suite.check("is not one to run commands", refused.err(why));
    let clean = Check::new("delete role/looker rolebinding/looker").out("deleted");
    suite.check("clean up", clean);
}
