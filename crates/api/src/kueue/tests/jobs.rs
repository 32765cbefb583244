use serde_json::{Value, json};

use super::merge;
use crate::{
    kueue::jobs::{self, JobKind, JobPolicy, JobSurroundings, Owner},
    strategy::Json,
};

const QUEUE: &str = "kueue.x-k8s.io/queue-name";
const CLASS: &str = "kueue.x-k8s.io/priority-class";

#[derive(Clone)]
struct Around {
    queue: bool,
    class: bool,
    namespace: bool,
    owner: Owner,
}

impl JobSurroundings for Around {
    fn has_default_queue(&self) -> bool {
        self.queue
    }

    fn has_default_class(&self) -> bool {
        self.class
    }

    fn is_namespace_managed(&self) -> bool {
        self.namespace
    }

    fn owner(&self) -> Owner {
        self.owner
    }
}

const PLAIN: Around = Around { queue: false, class: false, namespace: true, owner: Owner::Nobody };

fn job(members: Value) -> Json {
    let mut object = json!({"metadata": {"name": "j"}, "spec": {"suspend": false}});
    merge(&mut object, members);
    object.as_object().unwrap().clone()
}

fn labelled(labels: Value) -> Json {
    job(json!({"metadata": {"labels": labels}}))
}

/// What a job says, what is decided and what is around: which labels it gets, whether it waits.
type NewJob = (&'static str, Json, JobPolicy, Around, Value, bool);

fn usual() -> JobPolicy {
    JobPolicy { defaults_class: true, ..JobPolicy::default() }
}

fn for_all() -> JobPolicy {
    JobPolicy { queue_for_all: Some("machine".to_owned()), ..usual() }
}

fn by_default() -> Vec<NewJob> {
    let usual = usual();
    let both = Around { queue: true, class: true, ..PLAIN };
    let (plain, mine) = (labelled(json!({})), labelled(json!({QUEUE: "mine"})));
    vec![
        ("stock", plain.clone(), usual.clone(), PLAIN, json!({}), false),
        ("by label", mine.clone(), usual.clone(), PLAIN, json!({QUEUE: "mine"}), true),
        (
            "a class there is",
            mine.clone(),
            usual.clone(),
            Around { class: true, ..PLAIN },
            json!({QUEUE: "mine", CLASS: "default"}),
            true,
        ),
        (
            "a class nobody needs",
            plain.clone(),
            usual.clone(),
            Around { class: true, ..PLAIN },
            json!({}),
            false,
        ),
        (
            "a queue there is",
            plain.clone(),
            usual.clone(),
            both.clone(),
            json!({QUEUE: "default", CLASS: "default"}),
            true,
        ),
        (
            "a namespace that is not managed",
            plain.clone(),
            usual.clone(),
            Around { namespace: false, ..both.clone() },
            json!({}),
            false,
        ),
        (
            "also with a label",
            mine.clone(),
            usual.clone(),
            Around { namespace: false, ..both.clone() },
            json!({QUEUE: "mine"}),
            false,
        ),
        (
            "an owner that is managed",
            plain.clone(),
            usual.clone(),
            Around { owner: Owner::Managed, ..both.clone() },
            json!({}),
            false,
        ),
        (
            "an owner that is not",
            plain.clone(),
            usual.clone(),
            Around { owner: Owner::Unmanaged, ..both },
            json!({}),
            false,
        ),
    ]
}

fn by_policy() -> Vec<NewJob> {
    let without = JobPolicy { manages_without_queue: true, ..usual() };
    let all = for_all();
    let plain = labelled(json!({}));
    vec![
        ("without a queue", plain.clone(), without.clone(), PLAIN, json!({}), true),
        ("all of them", plain.clone(), all.clone(), PLAIN, json!({QUEUE: "machine"}), true),
        (
            "all but those with a queue of the namespace",
            plain.clone(),
            all.clone(),
            Around { queue: true, ..PLAIN },
            json!({QUEUE: "default"}),
            true,
        ),
        (
            "all but children",
            plain.clone(),
            all.clone(),
            Around { owner: Owner::Managed, ..PLAIN },
            json!({}),
            false,
        ),
    ]
}

// rule: queueing 3.1.3
#[test]
fn new_jobs_are_given_a_queue_and_a_class_and_wait() {
    let cases = by_default().into_iter().chain(by_policy());
    for (name, mut object, policy, around, labels, waits) in cases {
        jobs::fill_new(&mut object, &policy, &around);
        assert_eq!(object["metadata"]["labels"], labels, "{name}");
        assert_eq!(object["spec"]["suspend"], waits, "{name}");
        let once = object.clone();
        jobs::fill_new(&mut object, &policy, &around);
        assert_eq!(object, once, "{name}: twice is once");
    }
    let mut bare = job(json!({}));
    jobs::fill_new(&mut bare, &for_all(), &PLAIN);
    assert_eq!(bare["metadata"]["labels"], json!({QUEUE: "machine"}), "no labels before");
}

fn new_faults(object: &Json) -> Vec<String> {
    let errors = jobs::validate_create(JobKind::Job, object);
    errors.iter().map(ToString::to_string).collect()
}

// rule: queueing 3.1.4
#[test]
fn labels_and_annotations_of_new_jobs_mean_something() {
    let sized = |annotations: Value| {
        job(json!({"metadata": {"annotations": annotations},
                   "spec": {"parallelism": 4, "completions": 3}}))
    };
    let exec = "kueue.x-k8s.io/max-exec-time-seconds";
    let least = "kueue.x-k8s.io/job-min-parallelism";
    let equal = "kueue.x-k8s.io/job-completions-equal-parallelism";
    let subdomain = "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric \
                     characters, '-' or '.', and must start and end with an alphanumeric character \
                     (e.g. 'example.com', regex used for validation is \
                     '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
    let prebuilt = "kueue.x-k8s.io/prebuilt-workload-name";
    let cases = [
        (
            labelled(json!({QUEUE: "My_Queue"})),
            format!("metadata.labels[{QUEUE}]: Invalid value: \"My_Queue\": {subdomain}"),
        ),
        (
            labelled(json!({prebuilt: "W"})),
            format!("metadata.labels[{prebuilt}]: Invalid value: \"W\": {subdomain}"),
        ),
        (
            labelled(json!({exec: "soon"})),
            format!(
                "metadata.labels[{exec}]: Invalid value: \"soon\": strconv.Atoi: parsing \"soon\": \
                 invalid syntax"
            ),
        ),
        (
            labelled(json!({exec: "0"})),
            format!("metadata.labels[{exec}]: Invalid value: 0: should be greater than 0"),
        ),
        (
            sized(json!({least: "3"})),
            format!("metadata.annotations[{least}]: Invalid value: 3: should be between 0 and 2"),
        ),
        (
            sized(json!({least: "0"})),
            format!("metadata.annotations[{least}]: Invalid value: 0: should be between 0 and 2"),
        ),
        (
            sized(json!({"lockstep.dev/pods-ready-timeout": "later"})),
            "metadata.annotations[lockstep.dev/pods-ready-timeout]: Invalid value: \"later\": must \
             be a duration above zero, such as 5m or 1h30m"
                .to_owned(),
        ),
    ];
    for (object, want) in cases {
        assert_eq!(new_faults(&object), [want]);
    }
    assert_eq!(
        new_faults(&sized(json!({equal: "true"}))),
        [
            format!(
                "metadata.annotations[{equal}]: Invalid value: \"true\": should not be enabled for \
                 NonIndexed jobs"
            ),
            format!(
                "spec.completions: Invalid value: 3: should be equal to parallelism when {equal} is \
                 annotation is true"
            ),
        ]
    );
    let fine = labelled(json!({QUEUE: "my.queue", exec: "3600", prebuilt: "w"}));
    assert_eq!(new_faults(&fine), Vec::<String>::new());
    assert_eq!(new_faults(&sized(json!({least: "2"}))), Vec::<String>::new());
    assert_eq!(jobs::validate_create(JobKind::JobSet, &sized(json!({least: "9"}))), []);
    let elastic = sized(json!({"kueue.x-k8s.io/elastic-job": "true"}));
    assert!(jobs::warnings(&elastic)[0].contains("has no effect"));
    assert_eq!(jobs::warnings(&fine), Vec::<String>::new());
}

fn label(key: &str, value: &str) -> Value {
    json!({"metadata": {"labels": {key: value}}})
}

/// What is wrong with a change of a job that waits, or does not.
fn faults(old: &Value, new: &Value, suspend: bool, has_default: bool) -> Vec<String> {
    let of = |members: &Value| {
        let mut object = job(members.clone());
        object["spec"]["suspend"] = suspend.into();
        object
    };
    let errors = jobs::validate_update(JobKind::Job, &of(new), &of(old), || has_default);
    errors.iter().map(ToString::to_string).collect()
}

// rule: queueing 3.1.4
#[test]
fn what_a_job_waits_for_does_not_change_while_it_runs() {
    let exec = "kueue.x-k8s.io/max-exec-time-seconds";
    let prebuilt = "kueue.x-k8s.io/prebuilt-workload-name";
    let none = json!({});
    let fixed = "field is immutable";
    let running = [
        (label(QUEUE, "a"), label(QUEUE, "b"), QUEUE, "\"b\"", fixed),
        (none.clone(), label(QUEUE, "b"), QUEUE, "\"b\"", fixed),
        (label(exec, "5"), label(exec, "6"), exec, "\"6\"", fixed),
        (label(prebuilt, "v"), label(prebuilt, "w"), prebuilt, "\"w\"", fixed),
        (
            none.clone(),
            label(CLASS, "high"),
            CLASS,
            "\"high\"",
            "WorkloadPriorityClass cannot be added to a non-suspended workload",
        ),
    ];
    for (old, new, key, value, why) in running {
        let want = format!("metadata.labels[{key}]: Invalid value: {value}: {why}");
        assert_eq!(faults(&old, &new, false, false), [want]);
        assert_eq!(faults(&old, &new, true, false), Vec::<String>::new(), "{key}: it waits");
    }
    let removed = format!(
        "metadata.labels[{CLASS}]: Invalid value: \"\": WorkloadPriorityClass cannot be removed \
         from a workload"
    );
    for suspend in [true, false] {
        assert_eq!(faults(&label(CLASS, "high"), &none, suspend, false), [removed.as_str()]);
        let other = faults(&label(CLASS, "high"), &label(CLASS, "low"), suspend, false);
        assert_eq!(other, Vec::<String>::new(), "another class is fine");
    }
    assert_eq!(
        faults(&label(QUEUE, "a"), &none, true, true),
        [format!(
            "metadata.labels[{QUEUE}]: Invalid value: \"\": queue-name must not be empty in \
             namespace with default queue"
        )]
    );
    assert_eq!(faults(&label(QUEUE, "a"), &none, true, false), Vec::<String>::new());
}

// rule: queueing 3.1.4
#[test]
fn what_a_job_is_stays_and_one_that_is_being_stopped_still_runs() {
    let elastic = "kueue.x-k8s.io/elastic-job";
    let none = json!({});
    let on = json!({"metadata": {"annotations": {elastic: "true"}}});
    assert_eq!(
        faults(&none, &on, true, false),
        [format!("metadata.labels[{elastic}]: Invalid value: true: field is immutable")]
    );
    let stopping = json!({"metadata": {"labels": {QUEUE: "b"},
        "annotations": {"kueue.x-k8s.io/stopping": "true"}}});
    assert_eq!(
        faults(&label(QUEUE, "a"), &stopping, true, false),
        [format!("metadata.labels[{QUEUE}]: Invalid value: \"b\": field is immutable")],
        "one that is being stopped still runs"
    );
    let least = |size: i32| {
        json!({"metadata": {"annotations": {"kueue.x-k8s.io/job-min-parallelism": "1"}},
               "spec": {"parallelism": size}})
    };
    assert_eq!(
        faults(&least(4), &least(3), false, false),
        [
            "spec.parallelism: Forbidden: cannot change when partial admission is enabled and the job \
          is not suspended"
        ]
    );
}

#[test]
fn what_is_said_of_partial_admission_is_read_again_when_it_changes() {
    let least = |value: &str| {
        json!({"metadata": {"annotations": {"kueue.x-k8s.io/job-min-parallelism": value}},
               "spec": {"parallelism": 4}})
    };
    let path = "metadata.annotations[kueue.x-k8s.io/job-min-parallelism]";
    assert_eq!(
        faults(&least("2"), &least("9"), true, false),
        [format!("{path}: Invalid value: 9: should be between 0 and 3")]
    );
    let equal = "kueue.x-k8s.io/job-completions-equal-parallelism";
    let is_equal = |value: &str| {
        json!({"metadata": {"annotations": {equal: value}},
               "spec": {"parallelism": 4, "completions": 4, "completionMode": "Indexed"}})
    };
    assert_eq!(faults(&is_equal("true"), &is_equal("T"), false, false), Vec::<String>::new());
    assert_eq!(
        faults(&is_equal("true"), &is_equal("f"), false, false),
        [format!(
            "metadata.annotations[{equal}]: Forbidden: field is immutable while the job is not \
             suspended"
        )]
    );
}
