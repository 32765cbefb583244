//! Writes a container's output into log files, in the format container runtimes use:
//! `<RFC 3339 time> stdout|stderr F|P <text>`, where `P` marks a line that goes on.

use std::fs::File;
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::Path;

use jiff::Timestamp;
use rustix::fs::{AtFlags, Mode, OFlags, openat, renameat, unlinkat};

use super::wire::LogRotation;

/// Longer lines are split.
const LINE_MAX: usize = 16 << 10;
/// As much of the end as a termination message can hold.
const TAIL_BYTES: usize = 2048;
const TAIL_LINES: usize = 80;

/// Where a line came from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    Out,
    Err,
}

/// The log of one container instance.
pub(super) struct LogWriter {
    dir: OwnedFd,
    name: String,
    file: File,
    size: u64,
    rotation: LogRotation,
    /// The beginnings of lines that have not ended, per stream.
    begun: [Vec<u8>; 2],
    tail: Vec<u8>,
    lines: Vec<u8>,
}

impl LogWriter {
    /// Opens the log of instance `attempt` in `dir`.
    pub(super) fn open(dir: &Path, attempt: u32, rotation: LogRotation) -> io::Result<Self> {
        let dir = super::open_folder(dir)?;
        let name = format!("{attempt}.log");
        let file = create(&dir, &name)?;
        let size = file.metadata()?.len();
        let begun = [Vec::new(), Vec::new()];
        let (tail, lines) = (Vec::new(), Vec::new());
        Ok(Self { dir, name, file, size, rotation, begun, tail, lines })
    }

    /// Takes output of the container.
    pub(super) fn write(&mut self, stream: Stream, output: &[u8], now: Timestamp) {
        self.remember(output);
        let mut begun = std::mem::take(&mut self.begun[stream as usize]);
        for piece in output.split_inclusive(|byte| *byte == b'\n') {
            begun.extend_from_slice(piece);
            let ended = begun.pop_if(|last| *last == b'\n').is_some();
            let mut line = begun.as_slice();
            while line.len() > LINE_MAX {
                let (part, rest) = line.split_at(LINE_MAX);
                self.line(stream, b'P', part, now);
                line = rest;
            }
            if ended {
                self.line(stream, b'F', line, now);
                begun.clear();
            } else {
                let rest = line.len();
                begun.drain(..begun.len() - rest);
            }
        }
        self.begun[stream as usize] = begun;
        self.flush();
    }

    /// Writes the lines that were begun and will not end.
    pub(super) fn finish(&mut self, now: Timestamp) {
        for stream in [Stream::Out, Stream::Err] {
            let begun = std::mem::take(&mut self.begun[stream as usize]);
            if !begun.is_empty() {
                self.line(stream, b'P', &begun, now);
            }
        }
        self.flush();
    }

    /// The last lines, for a container that failed without a message.
    pub(super) fn tail(&self) -> String {
        let text = String::from_utf8_lossy(&self.tail);
        let lines: Vec<_> = text.split_inclusive('\n').collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].concat()
    }

    fn line(&mut self, stream: Stream, tag: u8, text: &[u8], now: Timestamp) {
        let name = match stream {
            Stream::Out => "stdout",
            Stream::Err => "stderr",
        };
        let _ = write!(self.lines, "{now:.9} {name} {} ", char::from(tag));
        self.lines.extend_from_slice(text);
        self.lines.push(b'\n');
        if self.size + self.lines.len() as u64 >= self.rotation.bytes_max {
            self.flush();
            self.rotate();
        }
    }

    fn flush(&mut self) {
        if self.lines.is_empty() {
            return;
        }
        // On a full disk output is lost rather than the container stopped.
        if self.file.write_all(&self.lines).is_ok() {
            self.size += self.lines.len() as u64;
        }
        self.lines.clear();
        self.lines.shrink_to(4 * LINE_MAX);
    }

    /// Sets the file aside as `.1`, the one before as `.2`, and so on.
    fn rotate(&mut self) {
        let old = |index: u32| format!("{}.{index}", self.name);
        let kept = self.rotation.files_max.saturating_sub(1);
        for index in (1..kept).rev() {
            let _ = renameat(&self.dir, old(index), &self.dir, old(index + 1));
        }
        let _ = if kept == 0 {
            unlinkat(&self.dir, &self.name, AtFlags::empty())
        } else {
            renameat(&self.dir, &self.name, &self.dir, old(1))
        };
        if let Ok(file) = create(&self.dir, &self.name) {
            self.file = file;
            self.size = 0;
        }
    }

    fn remember(&mut self, output: &[u8]) {
        self.tail.extend_from_slice(&output[output.len().saturating_sub(TAIL_BYTES)..]);
        let over = self.tail.len().saturating_sub(TAIL_BYTES);
        self.tail.drain(..over);
    }
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o640))?))
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    fn writer(dir: &Path, rotation: LogRotation) -> LogWriter {
        LogWriter::open(dir, 0, rotation).unwrap()
    }

    #[test]
    fn lines_are_whole_and_tagged() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(0).unwrap();
        let long = "x".repeat(LINE_MAX + 5);
        let mut log = writer(dir.path(), LogRotation::default());
        log.write(Stream::Out, b"one\ntw", now);
        log.write(Stream::Err, b"oops\n", now);
        log.write(Stream::Out, b"o\n\n", now);
        log.write(Stream::Out, format!("{long}\nend").as_bytes(), now);
        log.finish(now);
        let text = fs::read_to_string(dir.path().join("0.log")).unwrap();
        let time = "1970-01-01T00:00:00.000000000Z";
        let lines: Vec<_> = text.lines().collect();
        let want = [
            format!("{time} stdout F one"),
            format!("{time} stderr F oops"),
            format!("{time} stdout F two"),
            format!("{time} stdout F "),
            format!("{time} stdout P {}", "x".repeat(LINE_MAX)),
            format!("{time} stdout F xxxxx"),
            format!("{time} stdout P end"),
        ];
        assert_eq!(lines, want);
        assert!(log.tail().ends_with("xx\nend"));
        assert!(log.tail().len() <= TAIL_BYTES);
    }

    #[test]
    fn full_files_are_set_aside_and_the_oldest_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let now = Timestamp::from_second(0).unwrap();
        let mut log = writer(dir.path(), LogRotation { bytes_max: 100, files_max: 3 });
        for number in 0..40 {
            log.write(Stream::Out, format!("{number:060}\n").as_bytes(), now);
        }
        let mut names: Vec<_> = fs::read_dir(dir.path())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .collect();
        names.sort();
        assert_eq!(names, ["0.log", "0.log.1", "0.log.2"]);
        let newest = fs::read_to_string(dir.path().join("0.log.1")).unwrap();
        assert!(newest.contains(&format!("{:060}", 39)) || newest.contains(&format!("{:060}", 38)));
    }
}
