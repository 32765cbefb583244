//! What happened, line by line, for people.

use std::fmt::{self, Display};

use jiff::Timestamp;

/// The story of one world. Telling it costs time, so a world is run silently first and told only
/// when there is something to tell: the same seed gives the same story.
#[derive(Clone, Debug, Default)]
pub struct Trace {
    lines: Option<Vec<Line>>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Line {
    at: Timestamp,
    actor: &'static str,
    what: String,
}

impl Trace {
    /// A trace that notes nothing.
    pub fn silent() -> Self {
        Self::default()
    }

    /// A trace that notes everything.
    pub fn full() -> Self {
        Self { lines: Some(Vec::new()) }
    }

    /// Whether lines are kept.
    pub fn is_full(&self) -> bool {
        self.lines.is_some()
    }

    /// Adds a line.
    pub fn say(&mut self, at: Timestamp, actor: &'static str, what: impl FnOnce() -> String) {
        if let Some(lines) = &mut self.lines {
            lines.push(Line { at, actor, what: what() });
        }
    }
}

impl Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let lines = self.lines.as_deref().unwrap_or_default();
        let Some(first) = lines.first() else { return Ok(()) };
        for line in lines {
            let millis = line.at.duration_since(first.at).as_millis();
            let (seconds, millis) = (millis / 1000, millis % 1000);
            writeln!(f, "{seconds:>6}.{millis:03}  {:<10} {}", line.actor, line.what)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use jiff::{SignedDuration, Timestamp};

    use super::Trace;

    #[test]
    fn lines_have_the_time_since_the_first() {
        let mut trace = Trace::full();
        let start = Timestamp::UNIX_EPOCH;
        trace.say(start, "user", || "creates job a".to_owned());
        trace.say(start + SignedDuration::from_millis(61_005), "controller-1", || "x".to_owned());
        let want = "     0.000  user       creates job a\n    61.005  controller-1 x\n";
        assert_eq!(trace.to_string(), want);
        let mut silent = Trace::silent();
        silent.say(start, "user", || unreachable!("nobody listens"));
        assert_eq!(silent.to_string(), "");
    }
}
