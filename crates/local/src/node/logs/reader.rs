//! Reads log files, the ones set aside by rotation included.

use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use bytes::Bytes;
use jiff::Timestamp;

use super::line::Line;
use super::{LogOptions, LogStream};
use crate::node::shim::files_aside;

const CHUNK: usize = 64 << 10;

/// What reading gave.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    Data(Bytes),
    /// There is no more right now.
    CaughtUp,
    /// Nothing more is wanted.
    Complete,
}

/// A place in the log of one container instance.
pub(super) struct Reader {
    dir: PathBuf,
    name: String,
    options: LogOptions,
    /// The file being read; `None` before the first.
    file: Option<File>,
    is_begun: bool,
    /// Read but not yet passed on: at most one chunk and the beginning of a line.
    pending: Vec<u8>,
    is_line_start: bool,
    left: Option<u64>,
}

impl Reader {
    pub(super) fn new(dir: PathBuf, attempt: u32, options: LogOptions) -> Self {
        let left = options.limit_bytes;
        Self {
            dir,
            name: format!("{attempt}.log"),
            options,
            file: None,
            is_begun: false,
            pending: Vec::new(),
            is_line_start: true,
            left,
        }
    }

    /// Reads on.
    pub(super) fn next(&mut self) -> io::Result<Next> {
        if !self.is_begun && !self.begin()? {
            return Ok(Next::CaughtUp);
        }
        loop {
            if self.left == Some(0) {
                return Ok(Next::Complete);
            }
            let Some(file) = &mut self.file else { return Ok(Next::CaughtUp) };
            let start = self.pending.len();
            self.pending.resize(start + CHUNK, 0);
            let count = file.read(&mut self.pending[start..])?;
            self.pending.truncate(start + count);
            if count == 0 {
                if !self.go_to_newer()? {
                    return Ok(Next::CaughtUp);
                }
                continue;
            }
            let output = self.take_lines();
            if !output.is_empty() {
                return Ok(Next::Data(output.into()));
            }
        }
    }

    /// Finds the place to start. Returns whether there is a log at all.
    fn begin(&mut self) -> io::Result<bool> {
        let mut files = self.files()?;
        if files.is_empty() {
            return Ok(false);
        }
        self.is_begun = true;
        if let Some(since) = self.options.since {
            // What was last written before that time cannot contain anything of it.
            let since = SystemTime::from(since);
            let is_old = |file: &File| file.metadata()?.modified().map(|time| time < since);
            while files.len() > 1 && is_old(&files[0])? {
                files.remove(0);
            }
        }
        if let Some(lines) = self.options.tail_lines {
            self.file = Some(tail(&mut files, lines)?);
        } else {
            self.file = Some(files.remove(0));
        }
        Ok(true)
    }

    /// The files of this instance, oldest first.
    fn files(&self) -> io::Result<Vec<File>> {
        let Listing { aside, current } = self.list()?;
        let mut files: Vec<File> = aside.into_iter().map(|(_, file)| file).collect();
        files.extend(current);
        Ok(files)
    }

    /// Goes on to the file after the current one, if it has been set aside. Returns whether there
    /// is more to read.
    fn go_to_newer(&mut self) -> io::Result<bool> {
        let Some(file) = &mut self.file else { return Ok(false) };
        let at = file.stream_position()?;
        let number = file.metadata()?.ino();
        let Listing { aside, current } = self.list()?;
        let is_it = |file: &File| file.metadata().is_ok_and(|meta| meta.ino() == number);
        if current.as_ref().is_none_or(is_it) {
            return Ok(false);
        }
        // Lines may have come between the last read and the file being set aside.
        let Some(file) = &self.file else { return Ok(false) };
        if file.metadata()?.len() > at {
            return Ok(true);
        }
        // One that is not among them has been dropped: it goes on with the oldest there is.
        let place = aside.iter().position(|(_, file)| is_it(file)).map_or(0, |place| place + 1);
        let next = aside.into_iter().nth(place).map(|(_, file)| file).or(current);
        self.pending.clear();
        self.file = next;
        Ok(true)
    }

    /// The files there are, none of them set aside while they were looked for.
    fn list(&self) -> io::Result<Listing> {
        let name = self.dir.join(&self.name);
        loop {
            let current = open(&name)?;
            let mut aside = Vec::new();
            for (number, path) in files_aside(&self.dir, &self.name)? {
                // The oldest may be dropped at any time.
                aside.extend(open(&path)?.map(|file| (number, file)));
            }
            let number = |file: Option<&File>| file.and_then(|it| Some(it.metadata().ok()?.ino()));
            if number(current.as_ref()) == number(open(&name)?.as_ref()) {
                return Ok(Listing { aside, current });
            }
        }
    }

    /// Passes whole lines on in the form that was asked for.
    fn take_lines(&mut self) -> Vec<u8> {
        let Some(end) = self.pending.iter().rposition(|byte| *byte == b'\n') else {
            return Vec::new();
        };
        let rest = self.pending.split_off(end + 1);
        let lines = std::mem::replace(&mut self.pending, rest);
        let mut output = Vec::with_capacity(lines.len());
        for line in lines.split(|byte| *byte == b'\n') {
            if let Some(line) = Line::parse(line).filter(|line| self.is_wanted(line)) {
                if self.options.timestamps && self.is_line_start {
                    output.extend_from_slice(line.time_text);
                    output.push(b' ');
                }
                output.extend_from_slice(line.text);
                if !line.is_partial {
                    output.push(b'\n');
                }
                self.is_line_start = !line.is_partial;
            }
        }
        if let Some(left) = &mut self.left {
            let kept = usize::try_from(*left).unwrap_or(usize::MAX).min(output.len());
            output.truncate(kept);
            *left -= kept as u64;
        }
        output
    }

    fn is_wanted(&self, line: &Line<'_>) -> bool {
        let is_stream = |stream| stream == LogStream::All || stream == line.stream;
        let is_late_enough = |since: Timestamp| line.time().is_none_or(|time| time >= since);
        is_stream(self.options.stream) && self.options.since.is_none_or(is_late_enough)
    }
}

/// The files of a log at one moment.
struct Listing {
    /// Those set aside, with their numbers, oldest first.
    aside: Vec<(u64, File)>,
    current: Option<File>,
}

fn open(path: &Path) -> io::Result<Option<File>> {
    match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        other => other.map(Some),
    }
}

/// The file that has the last `lines` lines, at the first of them; files after it are found by
/// reading on.
fn tail(files: &mut Vec<File>, lines: u64) -> io::Result<File> {
    let mut wanted = lines;
    loop {
        let mut file = files.pop().expect("there is at least one file");
        let (found, position) = last_lines(&file, wanted)?;
        if found >= wanted || files.is_empty() {
            file.seek(SeekFrom::Start(position))?;
            return Ok(file);
        }
        wanted -= found;
    }
}

/// How many of the last `wanted` lines are in `file`, and where the first of them starts.
fn last_lines(file: &File, wanted: u64) -> io::Result<(u64, u64)> {
    let length = file.metadata()?.len();
    if wanted == 0 {
        return Ok((0, length));
    }
    let mut found = 0;
    let mut end = length;
    let mut chunk = vec![0; CHUNK];
    while end > 0 {
        let start = end.saturating_sub(CHUNK as u64);
        let part = &mut chunk[..usize::try_from(end - start).unwrap_or(CHUNK)];
        file.read_exact_at(part, start)?;
        for (index, byte) in part.iter().enumerate().rev() {
            let at = start + index as u64;
            // A newline at the very end closes the last line rather than starting another.
            if *byte == b'\n' && at + 1 < length {
                found += 1;
                if found == wanted {
                    return Ok((found, at + 1));
                }
            }
        }
        end = start;
    }
    Ok((found + u64::from(length > 0), 0))
}
