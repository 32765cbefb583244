//! The status block of a run: what is known in, lines out.

#[cfg(test)]
mod tests;

use jiff::Timestamp;

use super::{
    job::{self, Job},
    jobset::{self, JobSet},
    model::Model,
    pod::{self, Pod},
    strip,
    style::{Paint, Tone, cut},
};

/// Where the block is drawn.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Frame {
    /// How many columns there are.
    pub(crate) width: usize,
    /// How many lines it may take.
    pub(crate) height: usize,
    /// With or without colours.
    pub(crate) paint: Paint,
    /// When.
    pub(crate) now: Timestamp,
}

/// How wide a name is shown in the block.
const NAME_MAX: usize = 24;

/// The lines of the block, none wider than the frame.
pub(crate) fn block(model: &Model, frame: &Frame) -> Vec<String> {
    let mut lines = Vec::new();
    // What still runs is what people look for when there is no room for all.
    let (ended, going): (Vec<&Job>, Vec<&Job>) = model.lone_jobs().partition(|j| j.has_ended());
    let pods: Vec<&Pod> = model.bare_pods().collect();
    let (over, sets): (Vec<&JobSet>, Vec<&JobSet>) =
        model.sets.values().partition(|set| set.has_ended());
    let width = names(model).map(str::len).max().unwrap_or_default().min(NAME_MAX);
    let in_place = |set: &JobSet| if set.in_place().is_some() { 2 } else { 0 };
    let groups: usize =
        sets.iter().map(|set| 2 + set.spec.replicated_jobs.len() + in_place(set)).sum();
    let lines_wanted = groups + over.len() + 3 * going.len() + ended.len() + pods.len();
    let is_tight = lines_wanted > frame.height;
    for set in sets.into_iter().chain(over) {
        lines.push(set_line(model, set, width, frame));
        if !is_tight {
            lines.extend(set_details(model, set, frame));
        }
    }
    for job in going.into_iter().chain(ended) {
        lines.push(job_line(model, job, width, frame));
        if !is_tight {
            lines.extend(details(model, job, frame));
        }
    }
    lines.extend(pods.into_iter().map(|pod| pod_line(pod, width, frame)));
    let hidden = lines.len().saturating_sub(frame.height);
    if hidden > 0 {
        lines.truncate(frame.height.saturating_sub(1));
        let left = format!("... and {} more", hidden + 1);
        lines.push(frame.paint.text(Tone::Dim, &cut(&left, frame.width)));
    }
    lines
}

/// A Job in one line, for those who read line by line. What its pods wait for was told already.
pub(crate) fn plain(model: &Model, job: &Job) -> String {
    let waiting = match model.waiting_of(job).count() {
        0 => String::new(),
        count => format!(", {count} waiting"),
    };
    // Why it waits in a queue was told already, too.
    let place = model.job_place(job).map(|place| place.words);
    let why = place.or_else(|| model.why_job_waits(job)).or_else(|| model.why_idle(job));
    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
    format!("job/{}: {}{waiting}{why}", job.name, counts(model, job))
}

/// A JobSet in one line, for those who read line by line. What its pods wait for was told already.
pub(crate) fn plain_set(model: &Model, set: &JobSet) -> String {
    let budget = set.budget().map(|budget| format!("; {budget}")).unwrap_or_default();
    let why = model.set_place(set).map(|place| place.words);
    let why = why.or_else(|| model.why_set_waits(set));
    let why = why.filter(|why| !set.has_ended() && !why.starts_with("pod/"));
    let why = why.map(|why| format!("; {why}")).unwrap_or_default();
    format!("jobset/{}: {}{budget}{why}", set.name, set.progress())
}

fn names(model: &Model) -> impl Iterator<Item = &str> {
    let sets = model.sets.values().map(|set| set.name.as_str());
    let jobs = model.lone_jobs().map(|job| job.name.as_str());
    sets.chain(jobs).chain(model.bare_pods().map(|pod| pod.name.as_str()))
}

fn set_line(model: &Model, set: &JobSet, width: usize, frame: &Frame) -> String {
    let tone = match set.phase {
        jobset::Phase::Completed => Tone::Good,
        jobset::Phase::Failed | jobset::Phase::Gone => Tone::Bad,
        jobset::Phase::Suspended | jobset::Phase::Pending | jobset::Phase::Restarting => {
            Tone::Waiting
        }
        jobset::Phase::Running => Tone::Going,
    };
    let until = set.ended.unwrap_or(frame.now);
    let age = set.created.map(|since| elapsed(since, until)).unwrap_or_default();
    let mut rest = set.jobs_done();
    if let Some(budget) = set.budget() {
        rest = format!("{rest}, attempt {}, {budget}", set.status.restarts);
    }
    let word = model.set_place(set).map_or_else(|| set.phase.word(), |place| place.word);
    line(&set.name, width, (tone, word), &age, &rest, frame)
}

/// The lines below a JobSet that goes on: its replicated jobs, what workers that restart in place
/// do, and why it waits.
fn set_details(model: &Model, set: &JobSet, frame: &Frame) -> Vec<String> {
    if set.has_ended() {
        return Vec::new();
    }
    let groups = &set.spec.replicated_jobs;
    let width = groups.iter().map(|job| job.name.len()).max().unwrap_or_default().min(NAME_MAX);
    let mut lines: Vec<String> = groups
        .iter()
        .map(|job| {
            let name = cut(&job.name, width);
            cut(&format!("  {name:width$}  {}", set.group_words(job)), frame.width)
        })
        .collect();
    let last = set.last_in_place().map(|last| format!("last restart in place {last}"));
    for words in set.workers_words().into_iter().chain(last) {
        lines.push(cut(&format!("  {words}"), frame.width));
    }
    if let Some(why) = model.why_set_waits(set) {
        let shown = cut(&format!("  {why}"), frame.width);
        lines.push(frame.paint.text(Tone::Waiting, &shown));
    }
    lines
}

fn job_line(model: &Model, job: &Job, width: usize, frame: &Frame) -> String {
    let tone = match job.phase {
        job::Phase::Complete | job::Phase::Succeeding => Tone::Good,
        job::Phase::Failed | job::Phase::Failing | job::Phase::Gone => Tone::Bad,
        job::Phase::Suspended | job::Phase::Pending => Tone::Waiting,
        job::Phase::Running => Tone::Going,
    };
    let until = job.ended.unwrap_or(frame.now);
    let age = job.started.map(|since| elapsed(since, until)).unwrap_or_default();
    let word = model.job_place(job).map_or_else(|| job.phase.word(), |place| place.word);
    line(&job.name, width, (tone, word), &age, &counts(model, job), frame)
}

fn pod_line(pod: &Pod, width: usize, frame: &Frame) -> String {
    let (tone, word) = match pod.phase {
        pod::Phase::Succeeded => (Tone::Good, "Succeeded"),
        pod::Phase::Failed => (Tone::Bad, "Failed"),
        pod::Phase::Gone => (Tone::Bad, "Deleted"),
        _ if pod.is_deleting => (Tone::Waiting, "Ending"),
        _ if pod.waits.is_some() => (Tone::Waiting, "Waiting"),
        pod::Phase::Running => (Tone::Going, "Running"),
        pod::Phase::Pending => (Tone::Going, "Starting"),
    };
    let until = pod.ended.filter(|_| pod.has_ended()).unwrap_or(frame.now);
    let age = pod.created.map(|since| elapsed(since, until)).unwrap_or_default();
    let mut rest = Vec::new();
    if pod.restarts > 0 {
        rest.push(format!("{} restarts", pod.restarts));
    }
    if pod.waits.is_some() || pod.phase == pod::Phase::Failed {
        rest.push(pod.words());
    }
    line(&pod.name, width, (tone, word), &age, &rest.join(", "), frame)
}

/// `name  Phase  12s  what there is to say`, no wider than the frame.
fn line(
    name: &str,
    width: usize,
    (tone, word): (Tone, &str),
    age: &str,
    rest: &str,
    frame: &Frame,
) -> String {
    let name = cut(name, width);
    let plain = format!("{name:width$}  {word:<10}  {age:>6}  {rest}");
    let shown = cut(plain.trim_end(), frame.width);
    // Colours are put on what is left after cutting, so that none is cut in two.
    let head = format!("{name:width$}  ");
    match shown.strip_prefix(&head).and_then(|tail| tail.strip_prefix(word)) {
        Some(tail) => {
            let (name, word) =
                (frame.paint.text(Tone::Strong, &head), frame.paint.text(tone, word));
            format!("{name}{word}{tail}")
        }
        None => shown,
    }
}

/// `4/10 done, 5 running (5 ready), 1 failed, 2 restarts`.
fn counts(model: &Model, job: &Job) -> String {
    let mut parts = vec![job.progress()];
    if job.active > 0 {
        parts.push(format!("{} active ({} ready)", job.active, job.ready));
    }
    if job.terminating > 0 {
        parts.push(format!("{} ending", job.terminating));
    }
    if job.failed > 0 {
        parts.push(format!("{} failed", job.failed));
    }
    let restarts: i64 = model.pods_of(job).map(|pod| pod.restarts).sum();
    if restarts > 0 {
        parts.push(format!("{restarts} restarts"));
    }
    parts.join(", ")
}

/// The lines below a Job that goes on: its indexes, and why it waits.
fn details(model: &Model, job: &Job, frame: &Frame) -> Vec<String> {
    if job.has_ended() {
        return Vec::new();
    }
    let room = frame.width.saturating_sub(4);
    let mut lines = Vec::new();
    if let Some(strip) = strip::render(job, model.pods_of(job), room, frame.paint) {
        lines.push(format!("  [{strip}]"));
    }
    let waits = model.why_waits(job);
    let decided = matches!(job.phase, job::Phase::Succeeding | job::Phase::Failing)
        .then(|| format!("{}: {}", job.why.reason, job.why.message));
    if let Some(why) = decided.or(waits) {
        let shown = cut(&format!("  {why}"), frame.width);
        lines.push(frame.paint.text(Tone::Waiting, &shown));
    }
    lines
}

/// `12s`, `3m07s`, `1h02m`.
fn elapsed(since: Timestamp, until: Timestamp) -> String {
    let seconds = until.duration_since(since).as_secs().max(0);
    match (seconds / 3600, seconds / 60 % 60, seconds % 60) {
        (0, 0, seconds) => format!("{seconds}s"),
        (0, minutes, seconds) => format!("{minutes}m{seconds:02}s"),
        (hours, minutes, _) => format!("{hours}h{minutes:02}m"),
    }
}
