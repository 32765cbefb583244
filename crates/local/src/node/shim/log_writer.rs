//! Writes a container's output into log files, in the format container runtimes use:
//! `<RFC 3339 time> stdout|stderr F|P <text>`, where `P` marks a line that goes on.

use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};

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
    /// The number of the file that was set aside last. It only grows, and files keep theirs, so
    /// that readers never see one move.
    set_aside: u64,
    /// The beginnings of lines that have not ended, per stream.
    begun: [Vec<u8>; 2],
    tail: Vec<u8>,
    lines: Vec<u8>,
}

impl LogWriter {
    /// Opens the log of instance `attempt` in `dir`.
    pub(super) fn open(dir: &Path, attempt: u32, rotation: LogRotation) -> io::Result<Self> {
        let name = format!("{attempt}.log");
        let set_aside = files_aside(dir, &name)?.last().map_or(0, |(number, _)| *number);
        let dir = super::open_folder(dir)?;
        let file = create(&dir, &name)?;
        let size = file.metadata()?.len();
        let begun = [Vec::new(), Vec::new()];
        let (tail, lines) = (Vec::new(), Vec::new());
        Ok(Self { dir, name, file, size, rotation, set_aside, begun, tail, lines })
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

    /// Sets the file aside under the next number and drops the oldest.
    fn rotate(&mut self) {
        let old = |number: u64| format!("{}.{number}", self.name);
        let kept = u64::from(self.rotation.files_max.saturating_sub(1));
        if kept == 0 {
            let _ = unlinkat(&self.dir, &self.name, AtFlags::empty());
        } else {
            self.set_aside += 1;
            let _ = renameat(&self.dir, &self.name, &self.dir, old(self.set_aside));
            if let Some(oldest) = self.set_aside.checked_sub(kept) {
                let _ = unlinkat(&self.dir, old(oldest), AtFlags::empty());
            }
        }
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

/// The files of a log that were set aside, with their numbers, oldest first.
pub(crate) fn files_aside(dir: &Path, name: &str) -> io::Result<Vec<(u64, PathBuf)>> {
    let mut found = Vec::new();
    for entry in fs::read_dir(dir)? {
        let path = entry?.path();
        let file = path.file_name().and_then(|file| file.to_str());
        let number = file.and_then(|file| file.strip_prefix(name)?.strip_prefix('.')?.parse().ok());
        found.extend(number.map(|number| (number, path)));
    }
    found.sort_unstable();
    Ok(found)
}

fn create(dir: &OwnedFd, name: &str) -> io::Result<File> {
    let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::APPEND | OFlags::CLOEXEC;
    Ok(File::from(openat(dir, name, flags, Mode::from_raw_mode(0o640))?))
}

#[cfg(test)]
mod tests {
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
        let names = || {
            let entries = fs::read_dir(dir.path()).unwrap();
            let mut names: Vec<_> =
                entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
            names.sort();
            names
        };
        let [current, older, newer] = &names()[..] else { panic!("{:?}", names()) };
        let number = |name: &str| name.strip_prefix("0.log.").unwrap().parse::<u32>().unwrap();
        assert_eq!((current.as_str(), number(older) + 1), ("0.log", number(newer)));
        let newest = fs::read_to_string(dir.path().join(newer)).unwrap();
        assert!(newest.contains(&format!("{:060}", 39)) || newest.contains(&format!("{:060}", 38)));
        // Whoever goes on with the log goes on with the numbers.
        let (older, newer) = (newer.clone(), format!("0.log.{}", number(newer) + 1));
        let mut log = writer(dir.path(), LogRotation { bytes_max: 100, files_max: 3 });
        log.write(Stream::Out, format!("{:0100}\n", 0).as_bytes(), now);
        assert_eq!(names(), ["0.log".to_owned(), older, newer]);
    }
}
