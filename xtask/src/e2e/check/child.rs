//! Commands that run: how they end, and what they wrote until then.

use std::{
    io::{BufRead, BufReader, Read, Write},
    process::{Child, ExitStatus},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

use super::Done;
use crate::shell;

/// How long one run of a command may take before it counts as stuck.
const STUCK: Duration = Duration::from_secs(300);

/// How long a command that is left running may take to write what is waited for.
const PATIENCE: Duration = Duration::from_secs(60);

/// Waits for a child and collects what it wrote; one that takes too long is killed.
pub(crate) fn finish(mut child: Child, stdin: &str) -> Done {
    if let Some(mut input) = child.stdin.take() {
        // A command that does not read its input is no failure of the check.
        drop(input.write_all(stdin.as_bytes()));
    }
    let collect = |stream: Option<Box<dyn Read + Send>>| {
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(mut stream) = stream {
                drop(stream.read_to_end(&mut bytes));
            }
            String::from_utf8_lossy(&bytes).into_owned()
        })
    };
    let out = collect(child.stdout.take().map(|stream| Box::new(stream) as _));
    let err = collect(child.stderr.take().map(|stream| Box::new(stream) as _));
    let deadline = Instant::now() + STUCK;
    let code = loop {
        match child.try_wait() {
            Ok(Some(status)) => break code(status),
            Ok(None) if Instant::now() < deadline => thread::sleep(Duration::from_millis(5)),
            _ => {
                drop(child.kill());
                drop(child.wait());
                break -1;
            }
        }
    };
    Done { code, out: out.join().unwrap_or_default(), err: err.join().unwrap_or_default() }
}

/// Reads what a child writes until a line has `last`, then presses Ctrl-C. One that never gets
/// there is interrupted all the same.
pub(crate) fn interrupt_after(mut child: Child, last: &str) -> Done {
    let (sender, lines) = mpsc::channel();
    if let Some(stdout) = child.stdout.take() {
        thread::spawn(move || {
            let lines = BufReader::new(stdout).lines().map_while(Result::ok);
            lines.map(|line| sender.send(line)).take_while(Result::is_ok).count()
        });
    }
    let deadline = Instant::now() + PATIENCE;
    let mut out = String::new();
    let mut take = |line: String| {
        out.push_str(&line);
        out.push('\n');
        line.contains(last)
    };
    while let Ok(line) = lines.recv_timeout(deadline.saturating_duration_since(Instant::now())) {
        if take(line) {
            break;
        }
    }
    drop(shell::signal(child.id(), "INT"));
    let done = finish(child, "");
    for line in lines {
        take(line);
    }
    Done { out, ..done }
}

fn code(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().or_else(|| status.signal().map(|signal| 128 + signal)).unwrap_or(-1)
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn a_child_is_interrupted_when_it_has_written_what_was_waited_for() {
        let script =
            "trap 'echo bye; exit 3' INT; echo one; echo two; while :; do sleep 0.05; done";
        let mut shell = Command::new("sh");
        shell.args(["-c", script]).stdout(Stdio::piped()).stderr(Stdio::piped());
        let done = interrupt_after(shell.spawn().expect("a shell"), "two");
        assert_eq!((done.code, done.out.as_str()), (3, "one\ntwo\nbye\n"));
    }
}
