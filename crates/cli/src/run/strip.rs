//! The indexes of a Job as a strip of letters, one for each, or for several when there are many.

use super::{
    job::Job,
    pod::{Phase, Pod},
    style::{Paint, Tone},
};

/// Where the indexes behind one letter stand; of several, what matters most is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Cell {
    /// Nothing was started, or it is to be started again.
    #[default]
    ToCome,
    /// Some are done, and nothing is being done about the others yet.
    Partly,
    Done,
    Starting,
    Running,
    Waiting,
    Failed,
}

impl Cell {
    fn letter(self) -> &'static str {
        match self {
            Self::ToCome => ".",
            Self::Partly => "-",
            Self::Done => "#",
            Self::Starting => "~",
            Self::Running => ">",
            Self::Waiting => "!",
            Self::Failed => "x",
        }
    }

    fn tone(self) -> Tone {
        match self {
            Self::ToCome | Self::Partly => Tone::Dim,
            Self::Done => Tone::Good,
            Self::Starting | Self::Running => Tone::Going,
            Self::Waiting => Tone::Waiting,
            Self::Failed => Tone::Bad,
        }
    }

    fn of(pod: &Pod) -> Self {
        match (pod.phase, &pod.waits) {
            (Phase::Running | Phase::Pending, Some(_)) => Self::Waiting,
            (Phase::Running, None) => Self::Running,
            (Phase::Pending, None) => Self::Starting,
            (Phase::Succeeded | Phase::Failed | Phase::Gone, _) => Self::ToCome,
        }
    }
}

/// The strip, at most `width` columns wide; nothing for a Job without indexes.
pub(super) fn render<'a>(
    job: &Job,
    pods: impl Iterator<Item = &'a Pod>,
    width: usize,
    paint: Paint,
) -> Option<String> {
    let indexes = job.completions.filter(|&count| job.is_indexed && count > 0)?;
    let room = u32::try_from(width).unwrap_or(u32::MAX).max(1);
    let each = indexes.div_ceil(room);
    let count = indexes.div_ceil(each);
    let mut cells = vec![Cell::ToCome; count as usize];
    for pod in pods {
        if let Some(index) = pod.index.filter(|&index| index < indexes) {
            let cell = &mut cells[(index / each) as usize];
            *cell = (*cell).max(Cell::of(pod));
        }
    }
    for (at, cell) in (0..count).zip(&mut cells) {
        let (from, to) = (at * each, indexes.min((at + 1).saturating_mul(each)));
        let done = job.done.count_in(from, to);
        if job.lost.count_in(from, to) > 0 {
            *cell = Cell::Failed;
        } else if done == to - from {
            *cell = Cell::Done;
        } else if done > 0 {
            *cell = (*cell).max(Cell::Partly);
        }
    }
    Some(paint_runs(&cells, paint))
}

/// Letters of one kind in one go: a colour for each letter would be a lot of bytes.
fn paint_runs(cells: &[Cell], paint: Paint) -> String {
    let runs = cells.chunk_by(|a, b| a == b);
    runs.map(|run| paint.text(run[0].tone(), &run[0].letter().repeat(run.len()))).collect()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn job(completions: u32, done: &str, lost: &str) -> Job {
        Job::read(&json!({"spec": {"completionMode": "Indexed", "completions": completions},
            "status": {"completedIndexes": done, "failedIndexes": lost}}))
    }

    fn pod(index: u32, phase: Phase) -> Pod {
        Pod { index: Some(index), phase, ..Pod::default() }
    }

    #[test]
    fn an_index_is_a_letter_and_many_share_one() {
        let running = [pod(2, Phase::Running), pod(3, Phase::Pending), pod(0, Phase::Succeeded)];
        let cases = [
            (job(6, "0,1", "5"), 10, "##>~.x"),
            (job(6, "0,1", "5"), 3, "#>x"),
            (job(6, "0", ""), 2, ">~"),
            (job(8, "0-3,6", ""), 4, "##.-"),
            (job(100_000, "", ""), 5, ">...."),
        ];
        for (job, width, want) in cases {
            let pods = if job.completions == Some(8) { &[][..] } else { &running[..] };
            let strip = render(&job, pods.iter(), width, Paint::new(false));
            assert_eq!(strip.as_deref(), Some(want));
        }
        let plain = Job::read(&json!({"spec": {"completions": 3}}));
        assert_eq!(render(&plain, [].iter(), 10, Paint::new(false)), None);
    }
}
