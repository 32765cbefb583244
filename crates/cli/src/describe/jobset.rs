//! A JobSet in full: its replicated jobs, what is left of its restarts, what it waits for.

mod in_place;

use lockstep_api::{
    jobset::{Action, FailurePolicyRule, RestartRecord, StartupOrder, SuccessOperator, names},
    labels::jobset::RESTARTS_MAX_PREFIX,
    reasons::jobset::IN_PLACE_RESTART_FAILED,
};
use serde_json::{Value, json};

use super::{
    moment, object_head,
    template::list,
    text::{Text, scalar},
    waits_in,
};
use crate::run::{
    job::{self, Job, Why},
    jobset::{Failure, JobSet, Phase, recreation_words, why_matches},
};

/// Why a Job is answered by no rule.
const NO_MATCH: &str = "no rule matches";

/// Describes a JobSet and its Jobs, up to its events.
pub(super) fn describe(object: &Value, jobs: &[Value], text: &mut Text) {
    let mut set = JobSet::read(object);
    let read = |object| Some((object, Job::read(object))).filter(|(_, job)| is_of(job, &set));
    let (objects, jobs): (Vec<&Value>, Vec<Job>) = jobs.iter().filter_map(read).unzip();
    for job in jobs.iter().filter(|job| job.phase == job::Phase::Failed && !job.is_deleting) {
        if let Some(member) = &job.member {
            set.history.failed(&job.name, member, &job.why);
        }
    }
    object_head(object, text);
    text.field(0, "Created At", moment(&object["metadata"]["creationTimestamp"]));
    text.field(0, "State", state(&set));
    if let Some(budget) = set.budget() {
        text.field(0, "Attempt", set.status.restarts.to_string());
        text.field(0, "Restarts", budget);
    }
    if let Some(why) = why_waits(&set, &jobs) {
        text.field(0, "Waiting", why);
    }
    let spec = &object["spec"];
    text.known(0, "Suspend", &spec["suspend"]);
    text.known(0, "Managed By", &spec["managedBy"]);
    text.known(0, "TTL Seconds After Finished", &spec["ttlSecondsAfterFinished"]);
    policies(&set, object, text);
    network(&set, text);
    replicated_jobs(&set, text);
    in_place::describe(&set, object, &objects, text);
    restarts(&set, text);
    failed(&set, &jobs, text);
    children(&jobs, text);
    conditions(&object["status"]["conditions"], text);
}

fn is_of(job: &Job, set: &JobSet) -> bool {
    let member = job.member.as_ref();
    member.is_some_and(|member| member.uid.is_empty() || member.uid == set.uid)
}

fn state(set: &JobSet) -> String {
    match set.phase {
        Phase::Completed | Phase::Failed => {
            format!("{} ({}: {})", set.phase.word(), set.why.reason, set.why.message)
        }
        _ => set.phase.word().to_owned(),
    }
}

/// What it waits for, as far as the JobSet and its Jobs tell.
fn why_waits(set: &JobSet, jobs: &[Job]) -> Option<String> {
    if let Some(queue) = set.queue.as_deref().filter(|_| set.is_suspended() && !set.has_ended()) {
        return Some(waits_in(queue, &set.name));
    }
    if let Some(hindrance) = set.hindrance() {
        return Some(format!("the JobSet {hindrance}"));
    }
    let attempt = set.status.restarts;
    let is_old = |job: &&Job| job.member.as_ref().is_some_and(|it| it.attempt < attempt);
    match jobs.iter().filter(is_old).count() {
        0 => set.why_workers_wait().or_else(|| set.why_holds_back()),
        _ if set.has_ended() => None,
        1 => Some("for 1 Job of the attempt before to end".to_owned()),
        count => Some(format!("for {count} Jobs of the attempt before to end")),
    }
}

fn policies(set: &JobSet, object: &Value, text: &mut Text) {
    let order = set.spec.startup_policy.as_ref().map(|policy| policy.startup_policy_order);
    if order == Some(StartupOrder::InOrder) {
        text.field(0, "Startup Policy", "in the order of the replicated jobs");
    }
    if let Some(policy) = &set.spec.success_policy {
        let amount = if policy.operator == SuccessOperator::Any { "any Job" } else { "all Jobs" };
        let of = match policy.target_replicated_jobs.as_slice() {
            [] => String::new(),
            names => format!(" of {}", names.join(", ")),
        };
        text.field(0, "Success Policy", format!("{amount}{of} complete"));
    }
    let Some(policy) = &set.spec.failure_policy else {
        return text.field(0, "Failure Policy", "<none>: a Job that fails fails the JobSet");
    };
    text.line(0, "Failure Policy:");
    text.field(1, "Max Restarts", policy.max_restarts.to_string());
    text.known(1, "Restart Strategy", &object["spec"]["failurePolicy"]["restartStrategy"]);
    for (at, rule) in policy.rules.iter().enumerate() {
        let key = format!("{RESTARTS_MAX_PREFIX}{}", rule.name);
        let limit = scalar(&object["metadata"]["annotations"][&key]);
        text.field(1, &format!("Rule {at}"), rule_words(rule, &limit));
    }
    text.field(1, "Otherwise", "RestartJobSet");
}

/// `name: action when reason is A or B and message is like "x", of workers, 3 times at most`.
fn rule_words(rule: &FailurePolicyRule, limit: &str) -> String {
    let mut when = Vec::new();
    if !rule.on_job_failure_reasons.is_empty() {
        when.push(format!("the reason is {}", rule.on_job_failure_reasons.join(" or ")));
    }
    if !rule.on_job_failure_message_patterns.is_empty() {
        let patterns = rule.on_job_failure_message_patterns.iter();
        let patterns: Vec<String> = patterns.map(|pattern| format!("{pattern:?}")).collect();
        when.push(format!("the message is like {}", patterns.join(" or ")));
    }
    if !rule.target_replicated_jobs.is_empty() {
        when.push(format!("it is one of {}", rule.target_replicated_jobs.join(", ")));
    }
    let when = match when.as_slice() {
        [] => "when a Job fails".to_owned(),
        when => format!("when a Job fails and {}", when.join(" and ")),
    };
    let most = match limit {
        "" => String::new(),
        limit => format!(", {limit} times at most"),
    };
    format!("{}: {} {when}{most}", rule.name, rule.action.as_str())
}

fn network(set: &JobSet, text: &mut Text) {
    let network = set.spec.network.as_ref();
    if network.is_none_or(|network| network.enable_dns_hostnames != Some(false)) {
        text.field(0, "Subdomain", names::subdomain(&set.name, &set.spec));
    }
    if let Some(coordinator) = &set.spec.coordinator {
        text.field(0, "Coordinator", names::coordinator(&set.name, &set.spec, coordinator));
    }
}

fn replicated_jobs(set: &JobSet, text: &mut Text) {
    if set.spec.replicated_jobs.is_empty() {
        return text.field(0, "Replicated Jobs", "<none>");
    }
    text.end_block();
    text.line(0, "Replicated Jobs:");
    text.line(1, "Name\tReplicas\tReady\tSucceeded\tFailed\tActive\tSuspended\tRestarted\tAfter");
    text.line(1, "----\t--------\t-----\t---------\t------\t------\t---------\t---------\t-----");
    for job in &set.spec.replicated_jobs {
        let counts = set.counts(&job.name).cloned().unwrap_or_default();
        let restarted: i32 = counts.job_restarts.iter().sum();
        let numbers = [
            job.replicas,
            counts.ready,
            counts.succeeded,
            counts.failed,
            counts.active,
            counts.suspended,
            restarted,
        ];
        let after = job.depends_on.iter().flatten();
        let after: Vec<String> = after
            .map(|on| format!("{} {}", on.name, format!("{:?}", on.status).to_lowercase()))
            .collect();
        let mut cells = vec![job.name.clone()];
        cells.extend(numbers.map(|number| number.to_string()));
        cells.push(if after.is_empty() { "<none>".to_owned() } else { after.join(", ") });
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}

/// What led to the last restarts, where that is written down.
fn restarts(set: &JobSet, text: &mut Text) {
    let records: Vec<&RestartRecord> =
        set.status.lockstep.iter().flat_map(|own| &own.last_restarts).collect();
    if records.is_empty() {
        return;
    }
    text.line(0, "Last Restarts:");
    text.line(1, "Attempt\tAt\tJob\tReason\tRule\tAction\tWhy");
    text.line(1, "-------\t--\t---\t------\t----\t------\t---");
    for record in records {
        let at = record.time.as_ref().map(|time| json!(time.0.to_string()));
        let rule = if record.rule.is_empty() { "<none>" } else { &record.rule };
        let (attempt, at) = (record.attempt.to_string(), moment(&at.unwrap_or_default()));
        let why = why_restarted(set, record);
        let cells = [&attempt, &at, &record.job, &record.reason, rule, &record.action, &why];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}

/// Why the rule of a restart matched, as far as the JobSet still has it.
fn why_restarted(set: &JobSet, record: &RestartRecord) -> String {
    if record.reason == IN_PLACE_RESTART_FAILED {
        return recreation_words(&record.message);
    }
    if record.rule.is_empty() {
        return NO_MATCH.to_owned();
    }
    let mut rules = set.spec.failure_policy.iter().flat_map(|policy| &policy.rules);
    let Some(rule) = rules.find(|rule| rule.name == record.rule) else {
        return "<unknown>".to_owned();
    };
    let is_of = |group: &&str| {
        let index = record.job.strip_prefix(&format!("{}-{group}-", set.name));
        index.is_some_and(|index| index.parse::<u32>().is_ok())
    };
    let mut groups = set.spec.replicated_jobs.iter().map(|job| job.name.as_str());
    let group = groups.find(is_of).unwrap_or_default().to_owned();
    let why = Why { reason: record.reason.clone(), message: record.message.clone() };
    why_matches(rule, &Failure { group, why })
}

/// The Jobs of this attempt that have failed, and the rule that answers each.
fn failed(set: &JobSet, jobs: &[Job], text: &mut Text) {
    let is_failed = |job: &&Job| {
        let member = job.member.as_ref();
        job.phase == job::Phase::Failed
            && !job.is_deleting
            && member.is_some_and(|member| set.is_current(member))
    };
    let failed: Vec<&Job> = jobs.iter().filter(is_failed).collect();
    if failed.is_empty() || set.spec.failure_policy.is_none() {
        return;
    }
    text.line(0, "Failed Jobs:");
    text.line(1, "Job\tReason\tRule\tAction\tWhy");
    text.line(1, "---\t------\t----\t------\t---");
    for job in failed {
        let answer = set.rule_for(&job.name).zip(set.history.failure(&job.name));
        let (rule, action, why) = match answer {
            Some(((_, rule), failure)) => {
                (rule.name.as_str(), rule.action, why_matches(rule, failure))
            }
            None => ("<none>", Action::RestartJobSet, NO_MATCH.to_owned()),
        };
        let cells = [&job.name, &job.why.reason, rule, action.as_str(), &why];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}

fn children(jobs: &[Job], text: &mut Text) {
    if jobs.is_empty() {
        return text.field(0, "Jobs", "<none>");
    }
    text.line(0, "Jobs:");
    text.line(1, "Name\tAttempt\tState\tPods\tReason");
    text.line(1, "----\t-------\t-----\t----\t------");
    for job in jobs {
        let attempt = job.member.as_ref().map(|member| member.attempt_words());
        let state = if job.is_deleting { "Ending" } else { job.phase.word() };
        let pods = format!("{}, {} active ({} ready)", job.progress(), job.active, job.ready);
        let reason = if job.why.reason.is_empty() { "<none>" } else { &job.why.reason };
        let cells = [&job.name, attempt.as_deref().unwrap_or("?"), state, &pods, reason];
        text.line(1, &cells.join("\t"));
    }
    text.end_block();
}

fn conditions(conditions: &Value, text: &mut Text) {
    if list(conditions).is_empty() {
        return text.field(0, "Conditions", "<none>");
    }
    text.line(0, "Conditions:");
    text.line(1, "Type\tStatus\tSince\tReason\tMessage");
    text.line(1, "----\t------\t-----\t------\t-------");
    for condition in list(conditions) {
        let cell = |field: &str| scalar(&condition[field]);
        let since = moment(&condition["lastTransitionTime"]);
        let cells = [cell("type"), cell("status"), since, cell("reason"), cell("message")];
        text.line(1, &cells.join("\t"));
    }
}
