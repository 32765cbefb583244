//! CronJob: how they are filled in, checked and shown.

use jiff::Timestamp;
use k8s_openapi::api::batch::v1::CronJobSpec;
use serde_json::Value;

use crate::{
    cron::{Schedule, zone},
    duration::{age, since},
    field::{ErrorList, FieldError, Path},
    job::{defaults, strategy::warn_about_name, table::template_cells, validation},
    json::{at, list, object_mut, set_default, text},
    kinds::{NOT_NEGATIVE, view},
    names,
    pod::warnings_for_template,
    strategy::{Column, Json, Strategy},
    table::{self, AGE, NAME, column, wide},
};

/// What is left of the 63 bytes of a Job's name beside the time in it.
const NAME_MAX: usize = 52;

const POLICIES: [&str; 3] = ["Allow", "Forbid", "Replace"];

/// CronJob.
#[derive(Debug)]
pub struct CronJobStrategy;

impl Strategy for CronJobStrategy {
    fn fill_defaults(&self, object: &mut Json) {
        let spec = object_mut(object, "spec");
        if text(spec, &["concurrencyPolicy"]).is_empty() {
            spec.insert("concurrencyPolicy".to_owned(), "Allow".into());
        }
        set_default(spec, "suspend", false);
        set_default(spec, "successfulJobsHistoryLimit", 3);
        set_default(spec, "failedJobsHistoryLimit", 1);
        defaults::fill_template(object_mut(spec, "jobTemplate"));
    }

    fn validate_create(&self, object: &Json) -> ErrorList {
        let mut errors = validate(object, None);
        let name = text(object, &["metadata", "name"]);
        if name.len() > NAME_MAX {
            let path = Path::new("metadata").child("name");
            errors.push(FieldError::invalid(&path, name, "must be no more than 52 characters"));
        }
        errors
    }

    fn validate_update(&self, object: &Json, old: &Json) -> ErrorList {
        validate(object, Some(old))
    }

    fn warnings(&self, object: &Json, old: Option<&Json>) -> Vec<String> {
        let mut warnings = Vec::new();
        let schedule = text(object, &["spec", "schedule"]);
        match old {
            None => warnings.extend(warn_about_name(text(object, &["metadata", "name"]))),
            Some(_) if schedule.contains("TZ") => warnings.push(
                "cannot use TZ or CRON_TZ in spec.spec.schedule, use timeZone instead, see \
                 https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more \
                 details"
                    .to_owned(),
            ),
            Some(_) => {}
        }
        let has_changed = old.is_none_or(|old| old.get("spec") != object.get("spec"));
        let path = ["spec", "jobTemplate", "spec", "template"];
        if let Some(template) = at(object, &path).and_then(Value::as_object).filter(|_| has_changed)
        {
            warnings.extend(warnings_for_template(template, &path.join(".")));
        }
        warnings
    }

    fn validate_name(&self, name: &str, is_prefix: bool) -> Vec<String> {
        names::name_is_dns_subdomain(name, is_prefix)
    }

    fn has_status(&self) -> bool {
        true
    }

    fn columns(&self) -> &'static [Column] {
        COLUMNS
    }

    fn row(&self, object: &Json, now: Timestamp) -> Vec<Value> {
        let or_none = |text: &str| if text.is_empty() { "<none>" } else { text }.to_owned();
        let last = match text(object, &["status", "lastScheduleTime"]) {
            "" => "<none>".to_owned(),
            time => since(time, now),
        };
        let suspend = match at(object, &["spec", "suspend"]).and_then(Value::as_bool) {
            Some(true) => "True",
            Some(false) => "False",
            None => "<unset>",
        };
        let mut cells = vec![
            table::name(object),
            text(object, &["spec", "schedule"]).into(),
            or_none(text(object, &["spec", "timeZone"])).into(),
            suspend.into(),
            list(object, &["status", "active"]).len().into(),
            last.into(),
            age(object, now).into(),
        ];
        let spec = at(object, &["spec", "jobTemplate", "spec"]).and_then(Value::as_object);
        cells.extend(template_cells(spec));
        cells
    }
}

const COLUMNS: &[Column] = &[
    NAME,
    column("Schedule", "The schedule in Cron format."),
    column("Timezone", "The time zone of the schedule."),
    Column { kind: "boolean", ..column("Suspend", "Whether no further Jobs are started.") },
    Column { kind: "integer", ..column("Active", "How many of its Jobs run.") },
    column("Last Schedule", "How long ago a Job was last started."),
    AGE,
    wide("Containers", "Names of the containers of its pods."),
    wide("Images", "Images of the containers of its pods."),
    wide("Selector", "Labels of its pods."),
];

fn validate(object: &Json, old: Option<&Json>) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec: CronJobSpec = view(object, "spec", &mut errors);
    let path = Path::new("spec");
    errors.extend(validate_schedule(&spec, old, &path.child("schedule")));
    let non_negative = |field: &str, number: Option<i64>| {
        let number = number.filter(|number| *number < 0)?;
        Some(FieldError::invalid(&path.child(field), number, NOT_NEGATIVE))
    };
    errors.extend(non_negative("startingDeadlineSeconds", spec.starting_deadline_seconds));
    let given = spec.time_zone.as_deref();
    let had = old.and_then(|old| at(old, &["spec", "timeZone"])).and_then(Value::as_str);
    if old.is_none() || had != given {
        errors.extend(given.and_then(|zone| validate_zone(zone, &path.child("timeZone"))));
    }
    let policy = spec.concurrency_policy.as_deref().unwrap_or_default();
    if !POLICIES.contains(&policy) {
        let path = path.child("concurrencyPolicy");
        errors.push(FieldError::not_supported(&path, policy, &POLICIES));
    }
    errors.extend(validate_template(object, &spec, &path.child("jobTemplate").child("spec")));
    let successful = spec.successful_jobs_history_limit.map(i64::from);
    errors.extend(non_negative("successfulJobsHistoryLimit", successful));
    let failed = spec.failed_jobs_history_limit.map(i64::from);
    errors.extend(non_negative("failedJobsHistoryLimit", failed));
    errors
}

fn validate_template(object: &Json, spec: &CronJobSpec, path: &Path) -> ErrorList {
    let Some(job) = &spec.job_template.spec else { return ErrorList::new() };
    let template = at(object, &["spec", "jobTemplate"]).and_then(Value::as_object);
    let mut errors = validation::validate_template_spec(template.unwrap_or(object), job, path);
    if let Some(selector) = &job.selector {
        let why = "`selector` will be auto-generated";
        errors.push(FieldError::invalid(&path.child("selector"), selector, why));
    }
    if job.manual_selector == Some(true) {
        let path = path.child("manualSelector");
        errors.push(FieldError::not_supported(&path, true, &["nil", "false"]));
    }
    errors
}

fn validate_schedule(spec: &CronJobSpec, old: Option<&Json>, path: &Path) -> ErrorList {
    let schedule = spec.schedule.as_str();
    if schedule.is_empty() {
        return vec![FieldError::required(path, "")];
    }
    let invalid = |why: &str| FieldError::invalid(path, schedule, why);
    let mut errors = ErrorList::new();
    if let Err(error) = Schedule::parse(schedule, None) {
        errors.push(invalid(&error.to_string()));
    }
    // Those that had a time zone in the schedule before that was refused may keep it.
    let had = old.is_some_and(|old| text(old, &["spec", "schedule"]).contains("TZ"));
    if schedule.contains("TZ") {
        if !had {
            let why = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead";
            errors.push(invalid(why));
        } else if spec.time_zone.is_some() {
            errors.push(invalid("cannot use both timeZone field and TZ or CRON_TZ in schedule"));
        }
    }
    errors
}

fn validate_zone(name: &str, path: &Path) -> Option<FieldError> {
    let invalid = |why: &str| Some(FieldError::invalid(path, name, why));
    if name.is_empty() {
        return invalid("timeZone must be nil or non-empty string");
    }
    let is_fit = |part: &str| {
        !matches!(part, "." | "..")
            && !part.starts_with('-')
            && (1..=14).contains(&part.len())
            && part.bytes().all(|byte| {
                byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'-' | b'_' | b'+')
            })
    };
    if !name.split('/').all(is_fit) {
        return invalid(&format!("unknown time zone {name}"));
    }
    if name.eq_ignore_ascii_case("Local") {
        return invalid(
            "timeZone must be an explicit time zone as defined in \
             https://www.iana.org/time-zones",
        );
    }
    match zone(name) {
        Some(_) => None,
        None => invalid(&format!("unknown time zone {name}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn cron(spec: &Value) -> Json {
        let mut all = json!({
            "metadata": {"name": "c", "namespace": "n"},
            "spec": {
                "schedule": "*/5 * * * *",
                "jobTemplate": {"spec": {"template": {"spec": {
                    "restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}],
                }}}},
            },
        });
        let all = all.as_object_mut().unwrap();
        object_mut(all, "spec").extend(spec.as_object().unwrap().clone());
        CronJobStrategy.fill_defaults(all);
        all.clone()
    }

    fn faults(object: &Json, old: Option<&Json>) -> Vec<String> {
        let errors = match old {
            None => CronJobStrategy.validate_create(object),
            Some(old) => CronJobStrategy.validate_update(object, old),
        };
        errors.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn what_cannot_be_is_refused_in_upstreams_words() {
        let cases = [
            (json!({}), None),
            (json!({"timeZone": "Europe/Berlin"}), None),
            (json!({"schedule": ""}), Some("spec.schedule: Required value")),
            (
                json!({"schedule": "* * * *"}),
                Some(
                    "spec.schedule: Invalid value: \"* * * *\": expected exactly 5 fields, found \
                     4: [* * * *]",
                ),
            ),
            (
                json!({"schedule": "TZ=UTC * * * * *"}),
                Some(
                    "spec.schedule: Invalid value: \"TZ=UTC * * * * *\": cannot use TZ or CRON_TZ \
                     in schedule, use timeZone field instead",
                ),
            ),
            (
                json!({"timeZone": "Nowhere/Land"}),
                Some(
                    "spec.timeZone: Invalid value: \"Nowhere/Land\": unknown time zone \
                     Nowhere/Land",
                ),
            ),
            (
                json!({"timeZone": ""}),
                Some(
                    "spec.timeZone: Invalid value: \"\": timeZone must be nil or non-empty string",
                ),
            ),
            (
                json!({"startingDeadlineSeconds": -1}),
                Some(
                    "spec.startingDeadlineSeconds: Invalid value: -1: must be greater than or \
                     equal to 0",
                ),
            ),
            (
                json!({"concurrencyPolicy": "Maybe"}),
                Some(
                    "spec.concurrencyPolicy: Unsupported value: \"Maybe\": supported values: \
                     \"Allow\", \"Forbid\", \"Replace\"",
                ),
            ),
            (
                json!({"failedJobsHistoryLimit": -1}),
                Some(
                    "spec.failedJobsHistoryLimit: Invalid value: -1: must be greater than or \
                     equal to 0",
                ),
            ),
        ];
        for (spec, want) in cases {
            let want: Vec<String> = want.into_iter().map(str::to_owned).collect();
            assert_eq!(faults(&cron(&spec), None), want, "{spec}");
        }
    }

    #[test]
    fn names_leave_room_for_the_time() {
        let mut long = cron(&json!({}));
        object_mut(&mut long, "metadata").insert("name".to_owned(), "x".repeat(53).into());
        let why = "must be no more than 52 characters";
        assert!(faults(&long, None)[0].ends_with(why));
        assert!(faults(&long, Some(&long)).is_empty(), "what is there may be changed");
    }

    #[test]
    fn an_old_time_zone_in_the_schedule_may_stay() {
        let old = cron(&json!({"schedule": "TZ=UTC 0 * * * *"}));
        assert!(faults(&old, Some(&old)).is_empty());
        let both = cron(&json!({"schedule": "TZ=UTC 0 * * * *", "timeZone": "Asia/Tokyo"}));
        let why = "cannot use both timeZone field and TZ or CRON_TZ in schedule";
        assert!(faults(&both, Some(&old))[0].ends_with(why));
    }

    #[test]
    fn the_template_is_checked_and_has_no_selector() {
        let template = json!({"jobTemplate": {"spec": {
            "manualSelector": true, "selector": {},
            "template": {"spec": {"containers": [{"name": "c", "image": "i"}]}},
        }}});
        let got = faults(&cron(&template), None);
        let wanted =
            ["template.spec.restartPolicy: Required", "selector: Invalid", "manualSelector"];
        assert_eq!(got.len(), wanted.len(), "{got:?}");
        for (fault, want) in got.iter().zip(wanted) {
            let want = format!("spec.jobTemplate.spec.{want}");
            assert!(fault.starts_with(&want), "{fault}");
        }
    }

    #[test]
    fn a_row_says_when_and_how_many() {
        let mut object = cron(&json!({"timeZone": "Asia/Tokyo"}));
        let status = json!({"active": [{}], "lastScheduleTime": "2026-11-15T11:59:00Z"});
        object.insert("status".to_owned(), status);
        let cells = CronJobStrategy.row(&object, "2026-11-15T12:00:00Z".parse().unwrap());
        let want = json!(["c", "*/5 * * * *", "Asia/Tokyo", "False", 1, "60s", "<unknown>", "c"]);
        assert_eq!(Value::from(&cells[..8]), want);
        assert_eq!(cells[8..], ["i", "<none>"]);
    }
}
