//! The terminal: logs on stdout, notes on stderr, and below them the status block, redrawn in
//! place.

use std::io::{self, IsTerminal};

use anyhow::Result;
use rustix::termios::tcgetwinsize;

use super::{
    lines::{prefixed, tame},
    style::{Color, Paint, Tone, columns},
};
use crate::output;

/// What is assumed of a terminal that does not say.
const SIZE: (usize, usize) = (80, 24);

/// Where a run is shown.
pub(crate) struct Screen {
    is_live: bool,
    is_quiet: bool,
    has_logs: bool,
    logs_beside_data: bool,
    of_logs: Paint,
    of_notes: Paint,
    /// The widths of the lines of the block that are on the screen now.
    drawn: Vec<usize>,
    /// Nobody reads the logs any more.
    is_unread: bool,
}

/// How a run is to be shown.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    /// With which colours.
    pub(crate) color: Color,
    /// Errors only.
    pub(crate) is_quiet: bool,
    /// Whether logs are printed.
    pub(crate) has_logs: bool,
    /// Whether stdout is for something else, so that logs go to stderr.
    pub(crate) logs_beside_data: bool,
}

impl Screen {
    /// Looks at what stdout and stderr are.
    pub(crate) fn new(manner: Manner) -> Self {
        let is_dumb = std::env::var_os("TERM").is_none_or(|term| term == "dumb");
        let of_notes = Paint::new(manner.color.is_wanted(&io::stderr()));
        let of_logs = if manner.logs_beside_data {
            of_notes
        } else {
            Paint::new(manner.color.is_wanted(&io::stdout()))
        };
        Self {
            is_live: io::stderr().is_terminal() && !is_dumb && !manner.is_quiet,
            is_quiet: manner.is_quiet,
            has_logs: manner.has_logs,
            logs_beside_data: manner.logs_beside_data,
            of_logs,
            of_notes,
            drawn: Vec::new(),
            is_unread: false,
        }
    }

    /// Whether there is a status block.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    /// Whether only errors are told.
    pub(crate) fn is_quiet(&self) -> bool {
        self.is_quiet
    }

    /// Whether logs share the terminal with the block, so that only whole lines may be written.
    pub(crate) fn is_shared(&self) -> bool {
        self.is_live && (self.logs_beside_data || io::stdout().is_terminal())
    }

    /// Whether whoever read the logs has gone.
    pub(crate) fn is_unread(&self) -> bool {
        self.is_unread
    }

    /// The colours of the block and of notes.
    pub(crate) fn paint(&self) -> Paint {
        self.of_notes
    }

    /// How many columns and lines the terminal has.
    pub(crate) fn size(&self) -> (usize, usize) {
        match tcgetwinsize(io::stderr()) {
            Ok(size) if size.ws_col > 0 && size.ws_row > 0 => {
                (usize::from(size.ws_col), usize::from(size.ws_row))
            }
            _ => SIZE,
        }
    }

    /// Prints lines of a log.
    ///
    /// # Errors
    /// When stdout cannot be written, other than because nobody reads it.
    pub(crate) fn log(&mut self, label: &str, worker: u32, lines: &[u8]) -> Result<()> {
        if !self.has_logs || self.is_unread {
            return Ok(());
        }
        let prefix = match label {
            "" => String::new(),
            label => self.of_logs.text(Tone::Worker(worker), &format!("[{label}]")) + " ",
        };
        let shown = if self.is_shared() { tame(lines) } else { lines.to_vec() };
        let shown = prefixed(&shown, &prefix);
        self.erase();
        if self.logs_beside_data {
            output::aside(&shown);
            return Ok(());
        }
        match output::data(&shown).map_err(anyhow::Error::from) {
            Err(error) if output::is_closed_pipe(&error) => {
                self.is_unread = true;
                Ok(())
            }
            written => written,
        }
    }

    /// Tells something beside the logs.
    pub(crate) fn note(&mut self, text: &str) {
        self.erase();
        let shown = tame(text.as_bytes());
        output::aside(&shown);
    }

    /// Draws the block, in place of the one that is there.
    pub(crate) fn draw(&mut self, lines: &[String]) {
        if !self.is_live {
            return;
        }
        let mut text = erasure(&self.drawn, self.size().0);
        for line in lines {
            text.push_str(line);
            text.push('\n');
        }
        output::aside(text.as_bytes());
        self.drawn = lines.iter().map(|line| columns(line)).collect();
    }

    /// Whether the block had to make way for something.
    pub(crate) fn is_bare(&self) -> bool {
        self.drawn.is_empty()
    }

    /// Leaves the block where it is, for good.
    pub(crate) fn leave(&mut self) {
        self.drawn.clear();
    }

    fn erase(&mut self) {
        if !self.drawn.is_empty() {
            let text = erasure(&self.drawn, self.size().0);
            output::aside(text.as_bytes());
            self.drawn.clear();
        }
    }
}

/// What takes lines of these widths off a terminal that is `width` columns wide now: one that
/// became narrower has broken them into more.
fn erasure(drawn: &[usize], width: usize) -> String {
    let rows: usize = drawn.iter().map(|columns| columns.div_ceil(width.max(1)).max(1)).sum();
    if rows == 0 { String::new() } else { format!("\x1b[{rows}A\r\x1b[J") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_narrower_terminal_has_broken_the_lines() {
        assert_eq!(erasure(&[], 80), "");
        assert_eq!(erasure(&[0, 80], 80), "\x1b[2A\r\x1b[J");
        assert_eq!(erasure(&[30, 80], 40), "\x1b[3A\r\x1b[J");
        assert_eq!(erasure(&[1], 0), "\x1b[1A\r\x1b[J");
    }
}
