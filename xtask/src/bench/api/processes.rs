//! What processes have used of the processors.

use std::{fs, time::Duration};

use anyhow::{Context, Result};

/// The processes that answer for one server.
#[derive(Clone, Debug)]
pub(super) struct Group(Vec<u32>);

impl Group {
    /// These.
    pub(super) fn of(pids: &[u32]) -> Self {
        Self(pids.to_vec())
    }

    /// How long processors have worked for them, by the kernel's count.
    pub(super) fn cpu(&self) -> Result<Duration> {
        self.0.iter().map(|pid| cpu(*pid)).sum()
    }
}

fn cpu(pid: u32) -> Result<Duration> {
    let path = format!("/proc/{pid}/stat");
    let text = fs::read_to_string(&path).with_context(|| format!("cannot read {path}"))?;
    worked(&text).with_context(|| format!("{path} is not as expected"))
}

/// User and system time. The name of the program, in parentheses, may contain anything.
fn worked(stat: &str) -> Option<Duration> {
    let (_, fields) = stat.rsplit_once(')')?;
    let mut fields = fields.split_whitespace().skip(11);
    let ticks = fields.next()?.parse::<u64>().ok()? + fields.next()?.parse::<u64>().ok()?;
    // 100 in a second, on every platform that Linux has.
    Some(Duration::from_millis(ticks * 10))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_is_read_behind_a_name_with_parentheses() {
        let stat = "7 (a) b) S 1 2 3 4 5 6 7 8 9 10 150 50 0 0 20 0 1 0 9";
        assert_eq!(worked(stat), Some(Duration::from_secs(2)));
        assert_eq!(worked("7 (a"), None);
    }
}
