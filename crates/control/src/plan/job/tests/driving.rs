//! The driver: what makes a Job be looked at, whose pods are whose, and what is remembered.

use jiff::SignedDuration;
use k8s_openapi::api::core::v1::Pod;
use serde_json::json;

use crate::plan::job::{
    Jobs, Options, Refusal, RefusalKind, Step, Waiting,
    tests::indexed,
    world::{Luck, World, is_tracked},
};

// rule: job 2.6, job 2.5, job 3.3.1, job 3.3.9, job 6.1.12
#[test]
fn what_was_written_is_known_before_the_watch_brings_it() {
    let mut world = World::new(json!({"parallelism": 3, "completions": 3}));
    world.deliver(usize::MAX);
    for _ in 0..10 {
        // The watch brings nothing at all.
        world.pass();
    }
    assert_eq!(world.active().len(), 3);
    assert_eq!(world.status().active, Some(3));
    assert_eq!(world.driver.next(world.now).map(|(_, plan)| plan.steps), None, "and no more");
}

// rule: job 3.3, job 3.5
#[test]
fn a_job_whose_pods_take_many_passes_says_so_after_the_first() {
    let options = Options { pods_per_pass_max: 2, ..Options::default() };
    let mut world = World::with(options, json!({"parallelism": 6, "completions": 6}));
    world.deliver(usize::MAX);
    let mut active = Vec::new();
    for _ in 0..4 {
        world.pass();
        active.push(world.status().active);
    }
    assert_eq!(active, [None, Some(2), Some(4), Some(6)]);
    assert!(world.status().start_time.is_some());
}

// rule: job 2.5, job 2.6
#[test]
fn a_create_whose_answer_is_lost_makes_no_second_pod() {
    for spec in [json!({"parallelism": 2, "completions": 2}), indexed(2, json!({}))] {
        let mut world = World::new(spec);
        world.lucks = [Luck::Unanswered].into();
        world.pass();
        assert_eq!(world.active().len(), 1);
        // Neither the answer nor the watch has brought it.
        world.tick(1);
        world.pass();
        assert_eq!(world.log.last().unwrap(), "relist", "there may be a pod nobody has seen");
        world.settle();
        assert_eq!(world.active().len(), 2);
    }
}

// rule: job 2.5, job 2.6
#[test]
fn a_create_on_an_old_view_meets_the_pod_that_is_there() {
    for spec in [json!({"parallelism": 2, "completions": 2}), indexed(2, json!({}))] {
        let mut world = World::new(spec);
        let (key, plan) = world.driver.next(world.now).unwrap();
        // Another controller, which does not know that it is none any more, does the same.
        let Step::Create(pods) = &plan.steps[0] else { panic!("{plan:?}") };
        for pod in pods {
            let made = (*pod.pod).clone();
            world.add_pod(&pod.name, |pod| {
                let uid = pod.metadata.uid.clone();
                *pod = made;
                pod.metadata.uid = uid;
            });
        }
        world.carry_out(&key, &plan, usize::MAX);
        world.driver.done(&key, world.now);
        assert_eq!(world.log.iter().filter(|what| what.starts_with("exists")).count(), 2);
        world.settle();
        assert_eq!(world.active().len(), 2);
    }
}

// rule: job 2.5
#[test]
fn a_name_that_a_stranger_has_is_passed_over() {
    let mut world = World::new(json!({}));
    let (_, plan) = world.driver.next(world.now).unwrap();
    let Step::Create(pods) = &plan.steps[0] else { panic!("{plan:?}") };
    let name = pods[0].name.clone();
    world.driver.done(&world.key(), world.now);
    world.add_pod(&name, |_| {});
    world.tick(1);
    world.settle();
    let active = world.active();
    assert_eq!(active.len(), 2, "the stranger's and ours");
    assert!(active.iter().any(|pod| *pod != name && pod.starts_with("j-")));
}

// rule: job 3.3.5, job 3.3.4
#[test]
fn a_finished_job_is_left_alone_even_before_the_watch_shows_it() {
    let mut world = World::new(json!({}));
    world.settle();
    world.succeed_all();
    world.deliver(usize::MAX);
    while world.pass().is_some() {}
    assert!(world.is_finished());
    let writes = world.log.len();
    // Old news come in after the end.
    world.deliver(usize::MAX);
    world.settle();
    assert_eq!(world.log.len(), writes);
    assert_eq!(world.waiting, Some(Waiting::Finished { condition: "Complete" }));
}

// rule: job 3.3.3, job 6.1.12, job 3.1
#[test]
fn a_job_of_another_manager_is_left_alone() {
    let mut world = World::new(json!({"managedBy": "example.com/other"}));
    world.settle();
    assert!(world.log.is_empty());
    assert_eq!(world.waiting, Some(Waiting::ManagedBy("example.com/other".into())));
    let external = |world: &World| {
        let facts = world.facts.iter();
        facts.filter(|fact| fact.metric.name() == "jobs_by_external_controller_total").count()
    };
    assert_eq!(external(&world), 1);
    // The name is used again, by a Job that is ours.
    world.remove_job();
    world.create_job(json!({"managedBy": "kubernetes.io/job-controller"}));
    world.settle();
    assert_eq!((world.active().len(), external(&world)), (1, 1));
    let options = Options { controller: "example.com/other".into(), ..Default::default() };
    let mut world = World::with(options, json!({}));
    world.settle();
    assert_eq!(world.waiting, Some(Waiting::ManagedBy("kubernetes.io/job-controller".into())));
}

// rule: job 3.3.6, job 6.1.18, job 3.12
#[test]
fn an_unknown_completion_mode_is_told_once_and_is_no_error() {
    let mut world = World::new(json!({}));
    let mut job = world.job.clone().unwrap();
    job.spec.as_mut().unwrap().completion_mode = Some("Sorted".into());
    world.put_job(job);
    world.settle();
    world.tick(100);
    let job = world.job.clone().unwrap();
    world.put_job(job);
    world.settle();
    let told: Vec<_> = world.events.iter().map(|event| (&*event.reason, &*event.message)).collect();
    let message = "Skipped Job sync because completion mode is unknown";
    assert_eq!(told, [("UnknownCompletionMode", message)]);
    assert!(world.log.is_empty() && world.driver.next_due().is_none());
    assert!(world.facts.iter().all(|fact| fact.metric.name() != "job_syncs_total"));
}

// rule: job 3.1
#[test]
fn events_of_pods_are_gathered_and_changes_of_the_spec_are_not() {
    let second = std::time::Duration::from_secs(1);
    let options = Options { batch_period: second, ..Default::default() };
    let mut world = World::with(options, json!({"parallelism": 2, "completions": 2}));
    world.pass();
    world.tick(30);
    world.settle();
    let pods = world.active();
    world.run(&pods[0]);
    world.run(&pods[1]);
    world.deliver(usize::MAX);
    assert_eq!(world.driver.next(world.now), None);
    let at = world.now + SignedDuration::from_secs(1);
    assert_eq!(world.driver.next_due(), Some(at));
    world.change(json!({"parallelism": 1}));
    world.deliver(usize::MAX);
    assert_eq!(world.driver.next_due(), Some(world.now));
}

// rule: job 3.1
#[test]
fn a_pass_that_fails_is_tried_again_later_and_later() {
    let mut world = World::new(json!({}));
    let mut waits = Vec::new();
    for _ in 0..8 {
        world.lucks = [Luck::Refused; 3].into();
        while world.driver.next_due().is_some_and(|due| due <= world.now) {
            world.pass();
        }
        let due = world.driver.next_due().unwrap();
        waits.push(due.duration_since(world.now).as_secs());
        world.now = due;
    }
    assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    world.lucks.clear();
    world.settle();
    assert!(world.status().start_time.is_some());
}

// rule: job 2.6, job 3.3.1, job 3.13
#[test]
fn a_write_that_meets_a_newer_job_waits_for_it() {
    let mut world = World::new(json!({}));
    world.settle();
    world.succeed_all();
    world.deliver(usize::MAX);
    // Somebody writes the Job, and we have not seen it.
    let job = world.job.clone().unwrap();
    world.put_job(job);
    world.pass();
    assert_eq!(world.status().succeeded, None);
    world.driver.pod_seen(&world.pods.values().next().unwrap().clone(), world.now);
    world.tick(1);
    world.settle();
    assert!(world.is_finished());
}

// rule: job 3.4, job 3.3.10
#[test]
fn orphans_that_the_job_selects_are_adopted_and_strangers_are_not() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    let labels = world.job.clone().unwrap().spec.unwrap().template.metadata.unwrap().labels;
    world.add_pod("orphan", |pod| pod.metadata.labels.clone_from(&labels));
    world.add_pod("going", |pod| {
        pod.metadata.labels.clone_from(&labels);
        pod.metadata.deletion_timestamp =
            Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(jiff::Timestamp::UNIX_EPOCH));
    });
    world.add_pod("stranger", |_| {});
    world.settle();
    let owner = |world: &World, name: &str| {
        world.pods[name].metadata.owner_references.as_ref().map(|owners| owners[0].uid.clone())
    };
    let uid = world.job.as_ref().unwrap().metadata.uid.clone();
    assert_eq!(owner(&world, "orphan"), uid);
    assert!(is_tracked(world.pod("orphan")));
    assert_eq!((owner(&world, "going"), owner(&world, "stranger")), (None, None));
    assert_eq!(
        world.log.iter().filter(|what| what.starts_with("create")).count(),
        1,
        "one is there"
    );
}

// rule: job 3.4
#[test]
fn nothing_is_adopted_by_a_job_that_is_going_or_gone() {
    let mut world = World::new(json!({}));
    world.settle();
    let labels = world.job.clone().unwrap().spec.unwrap().template.metadata.unwrap().labels;
    // The cache still shows the Job; the API says it is being deleted.
    world.add_pod("orphan", |pod| pod.metadata.labels.clone_from(&labels));
    world.deliver(usize::MAX);
    world.delete_job();
    world.pass();
    assert_eq!(world.pods["orphan"].metadata.owner_references, None);
    world.settle();
    assert_eq!(world.pods["orphan"].metadata.owner_references, None);
}

// rule: job 3.4
#[test]
fn a_pod_that_no_longer_matches_is_released() {
    let mut world = World::new(json!({}));
    world.settle();
    let name = world.active().remove(0);
    let mut pod = world.pod(&name).clone();
    pod.metadata.labels = None;
    world.put_pod(pod);
    world.settle();
    let pod = world.pod(&name);
    assert_eq!(pod.metadata.owner_references.as_deref(), Some(&[][..]));
    assert!(!is_tracked(pod));
    assert_eq!(world.log.iter().filter(|what| what.starts_with("create")).count(), 2, "replaced");
}

fn tracked(pod: &mut Pod) {
    pod.metadata.finalizers = Some(vec!["batch.kubernetes.io/job-tracking".into()]);
}

fn owned_by(pod: &mut Pod, kind: &str, uid: &str) {
    pod.metadata.owner_references =
        Some(vec![k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: "batch/v1".into(),
            kind: kind.into(),
            name: "old".into(),
            uid: uid.into(),
            controller: Some(true),
            block_owner_deletion: None,
        }]);
}

// rule: job 3.2, job 6.1.12
#[test]
fn pods_that_nobody_counts_lose_their_finalizers() {
    let mut world = World::new(json!({"managedBy": "example.com/other"}));
    world.add_pod("alone", tracked);
    world.add_pod("others", |pod| {
        tracked(pod);
        owned_by(pod, "Other", "x");
    });
    world.add_pod("unknown", |pod| {
        tracked(pod);
        owned_by(pod, "Job", "gone");
    });
    world.add_pod("going", |pod| {
        tracked(pod);
        owned_by(pod, "Job", "gone");
    });
    world.delete_pod("going");
    let uid = world.job.as_ref().unwrap().metadata.uid.clone().unwrap();
    world.add_pod("external", |pod| {
        tracked(pod);
        owned_by(pod, "Job", &uid);
        pod.metadata.owner_references.as_mut().unwrap()[0].name = "j".into();
    });
    world.delete_pod("external");
    world.settle();
    let held: Vec<&str> = world
        .pods
        .iter()
        .filter(|(_, pod)| is_tracked(pod))
        .map(|(name, _)| name.as_str())
        .collect();
    assert_eq!(held, ["external", "others", "unknown"], "a Job may only not be known yet");
}

// rule: job 3.2
#[test]
fn a_pod_is_not_freed_while_its_job_is_only_not_known_yet() {
    let mut world = World::new(json!({}));
    world.settle();
    let pod = world.active().remove(0);
    world.succeed_all();
    world.delete_pod(&pod);
    // A new leader: its watch of pods is ahead of the one of Jobs.
    world.driver = Jobs::new(Options::default());
    world.driver.jobs_listing();
    world.driver.jobs_listed(world.now);
    world.driver.pods_listing();
    world.driver.pod_seen(&world.pod(&pod).clone(), world.now);
    world.driver.pods_listed(world.now);
    assert!(world.pass().is_none());
    assert!(is_tracked(world.pod(&pod)), "nobody has counted it");
    world.driver.job_seen(&world.job.clone().unwrap(), world.now);
    let later = world.now + SignedDuration::from_secs(60);
    world.settle_until(later);
    assert_eq!(world.status().succeeded, Some(1));
    assert!(!world.pods.values().any(is_tracked));
}

// rule: job 3.2, job 3.3.2, job 3.15
#[test]
fn pods_of_a_job_that_is_gone_are_freed_and_refusals_tried_again() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    world.remove_job();
    world.lucks = [Luck::Refused].into();
    world.settle();
    assert_eq!(world.pods.values().filter(|pod| is_tracked(pod)).count(), 1);
    world.tick(1);
    world.settle();
    assert!(!world.pods.values().any(is_tracked));
    assert_eq!(world.driver.next_due(), None);
}

// rule: job 3.2, job 3.15
#[test]
fn pods_of_a_job_that_is_gone_are_freed_whatever_became_of_them() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    world.remove_job();
    world.active().iter().for_each(|pod| world.run(pod));
    world.deliver(1);
    world.pass();
    assert!(!world.pods.values().any(is_tracked), "what was seen of them does not matter");
}

// rule: job 3.2
#[test]
fn pods_of_a_job_that_has_ended_are_freed() {
    let mut world = World::new(json!({}));
    world.settle();
    let pod = world.active().remove(0);
    world.succeed_all();
    world.settle();
    assert!(world.is_finished());
    let mut late = world.pod(&pod).clone();
    tracked(&mut late);
    world.put_pod(late);
    world.settle();
    assert!(!is_tracked(world.pod(&pod)));
    assert_eq!(world.status().succeeded, Some(1), "and not counted again");
}

#[test]
fn nothing_is_decided_before_everything_was_listed() {
    let world = World::new(json!({}));
    let mut driver = Jobs::new(Options::default());
    driver.jobs_listing();
    driver.job_seen(world.job.as_ref().unwrap(), world.now);
    driver.jobs_listed(world.now);
    assert_eq!(
        (driver.next(world.now), driver.next_due()),
        (None, None),
        "pods are not listed yet"
    );
    driver.pods_listing();
    driver.pods_listed(world.now);
    assert!(driver.next(world.now).is_some());
}

#[test]
fn what_a_listing_does_not_show_is_gone() {
    let mut world = World::new(json!({}));
    world.settle();
    let pod = world.active().remove(0);
    // It is removed while the watch is broken: nobody is told.
    world.pods.remove(&pod);
    world.settle();
    assert_eq!(world.active().len(), 0);
    world.list();
    world.settle();
    assert_eq!(world.active().len(), 1);
}

#[test]
fn a_pod_that_no_watch_ever_showed_is_asked_for_after_a_listing() {
    let mut world = World::new(json!({}));
    world.pass();
    let pod = world.active().remove(0);
    // Made, and gone, while the watch was broken; the shell does not know what it missed.
    world.pods.remove(&pod);
    world.driver.pods_listed(world.now);
    world.pass();
    assert_eq!(world.log.last().unwrap(), "relist");
    while world.pass().is_some() {}
    assert_eq!(world.active().len(), 1, "{:?}", world.log);
}

#[test]
fn a_late_answer_about_a_pod_that_is_gone_is_no_news() {
    let mut world = World::new(json!({"parallelism": 2, "completions": 2}));
    world.settle();
    let name = world.active().remove(0);
    world.end(&name, 0);
    world.deliver(usize::MAX);
    let (key, plan) = world.driver.next(world.now).unwrap();
    let ended = world.pod(&name).clone();
    let uid = ended.metadata.uid.clone().unwrap();
    world.driver.pod_gone(&crate::plan::job::PodRef::new("ns", &name, &uid), world.now);
    world.driver.patched(&key, &ended);
    assert_eq!(world.driver.view(&key).unwrap().pod_count(), 1);
    drop(plan);
}

// rule: job 2.5
#[test]
fn a_namespace_that_goes_away_is_nobodys_fault() {
    let mut world = World::new(json!({}));
    let (key, plan) = world.driver.next(world.now).unwrap();
    let Step::Create(pods) = &plan.steps[0] else { panic!("{plan:?}") };
    let refusal =
        Refusal { kind: RefusalKind::NamespaceTerminating, message: "is being terminated".into() };
    assert_eq!(world.driver.create_failed(&key, &pods[0], &refusal, None), None);
    let done = world.driver.done(&key, world.now).unwrap();
    assert_eq!((done.result, done.action), ("success", "pods_created"));
    assert!(world.driver.next_due().unwrap() > world.now, "and not tried at once");
}
