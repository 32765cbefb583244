//! Many worlds of gangs that are restarted in place, none of which may go wrong; and the model of
//! another protocol, which must.

use std::collections::BTreeSet;

use lockstep_sim::restart::{Broken, Outcome, Setup, prototype, run};

fn world(seed: u64, slots: Option<u32>) -> Outcome {
    kept(&Setup { seed, slots, ..Setup::default() })
}

/// Runs what must not go wrong.
fn kept(setup: &Setup) -> Outcome {
    let outcome = run(setup);
    let story = outcome.violation.as_ref().map(|violation| {
        let story = run(&Setup { is_told: true, ..setup.clone() }).story.join("\n");
        format!("{setup:?}: {violation}\n{story}")
    });
    assert!(story.is_none(), "{}", story.unwrap_or_default());
    outcome
}

// rule: in-place-restart S1, in-place-restart S2, in-place-restart S3, in-place-restart S4
// rule: in-place-restart S5, in-place-restart S6, in-place-restart S7, in-place-restart S8
// rule: in-place-restart S9, in-place-restart S10, in-place-restart S11, in-place-restart S12
// rule: in-place-restart L1, in-place-restart L2, in-place-restart L3, in-place-restart L4
// rule: in-place-restart F22, in-place-restart F39
#[test]
fn a_thousand_worlds_of_restarts_keep_all_promises() {
    let outcomes: Vec<Outcome> = (1..=1000).map(|seed| world(seed, None)).collect();
    let complete = outcomes.iter().filter(|outcome| outcome.is_complete).count();
    let restarted = outcomes.iter().filter(|outcome| outcome.releases > 1).count();
    let calm = outcomes.iter().filter(|outcome| outcome.faults == 0).count();
    assert!((500..990).contains(&complete), "{complete} complete");
    assert!(restarted > 400, "{restarted} with a restart");
    assert!((50..400).contains(&calm), "{calm} without a fault");
    let deleted = outcomes.iter().filter(|outcome| outcome.is_deleted).count();
    let resized = outcomes.iter().filter(|outcome| outcome.sizes > 0).count();
    assert!(deleted > 20 && resized > 60, "{deleted} deleted, {resized} resized");
}

// rule: in-place-restart F29, in-place-restart S10
#[test]
fn worlds_in_which_workers_leave_when_they_succeed_keep_all_promises() {
    let setup = |seed| Setup { seed, is_parting: true, ..Setup::default() };
    let outcomes: Vec<Outcome> = (0..500).map(|seed| kept(&setup(seed))).collect();
    let complete = outcomes.iter().filter(|outcome| outcome.is_complete).count();
    let restarted = outcomes.iter().filter(|outcome| outcome.releases > 1).count();
    assert!((250..495).contains(&complete), "{complete} complete");
    assert!(restarted > 150, "{restarted} with a restart");
}

// rule: in-place-restart F41
#[test]
fn gangs_that_fail_at_once_keep_all_promises_and_do_not_wait_for_each_other() {
    for seed in 0..50 {
        let outcome = kept(&Setup { seed, is_crowd: true, ..Setup::default() });
        assert!(outcome.releases >= 6, "seed {seed}: {} releases", outcome.releases);
    }
}

#[test]
fn a_gang_of_thousands_keeps_all_promises() {
    (1000..1002).for_each(|seed| {
        world(seed, Some(5000));
    });
}

#[test]
fn what_is_run_in_great_numbers_has_small_gangs_large_ones_and_crowds() {
    let setups: Vec<Setup> = (0..1000).map(Setup::sampled).collect();
    assert_eq!(setups.iter().filter(|setup| setup.slots == Some(5000)).count(), 1);
    assert_eq!(setups.iter().filter(|setup| setup.is_crowd).count(), 20);
    assert!(setups.iter().filter(|setup| setup.slots.is_none()).count() > 900);
}

#[test]
fn worlds_that_once_went_wrong_go_right() {
    // A leader that had been replaced without noticing deleted pods of a healthy gang.
    [1454, 8419].into_iter().for_each(|seed| drop(world(seed, None)));
    // A pod that was being replaced was waited for, and lost again after the release.
    [530].into_iter().for_each(|seed| drop(world(seed, None)));
    // A store that had gone back behind the success made a leader restart what had completed.
    [459].into_iter().for_each(|seed| drop(world(seed, None)));
    // A leader that nobody had found yet replaced pods whose agents were looking for it.
    [34295].into_iter().for_each(|seed| drop(world(seed, None)));
    // What a leader decided while the next one took over was overwritten.
    [53612, 61985, 62508].into_iter().for_each(|seed| drop(world(seed, None)));
    // An end that was learned from pods was undone by an agent that knew of a later epoch.
    [2268, 58699].into_iter().for_each(|seed| drop(world(seed, None)));
    // A job that was made anew while it was suspended was charged beyond its budget.
    [2213].into_iter().for_each(|seed| drop(world(seed, None)));
    // A pod that was gone before its place came back was waited for when it was heard of late.
    kept(&Setup::sampled(23875));
    // A leader that came while there were more workers waited for the success of as many.
    kept(&Setup::sampled(39861));
    // A leader that did not know that it was replaced sent a worker away, not knowing its place.
    [53848, 62210].into_iter().for_each(|seed| drop(kept(&Setup::sampled(seed))));
    // What was completed for the generation of the job was taken for that of a store gone back.
    kept(&Setup::sampled(48207));
    // A worker that succeeds alone while its pod is deleted has succeeded.
    [16657, 26547, 43007, 57037, 87317]
        .into_iter()
        .for_each(|seed| drop(kept(&Setup::sampled(seed))));
}

#[test]
fn a_seed_is_a_history() {
    for seed in 0..10 {
        let setup = Setup { seed, is_told: true, ..Setup::default() };
        let (first, second) = (run(&setup), run(&setup));
        assert!(first.events > 50, "seed {seed}: {} events", first.events);
        assert_eq!(first.story, second.story, "seed {seed}");
        let silent = run(&Setup { is_told: false, ..setup });
        assert_eq!(silent.events, first.events, "seed {seed}");
    }
}

/// Asserts that something that is broken on purpose is found out for what it is.
fn assert_found(broken: Broken, seeds: u64, words: &[&str]) {
    let mut others = BTreeSet::new();
    let is_crowd = broken == Broken::OneByOne;
    let is_found = (0..seeds).any(|seed| {
        let setup = Setup { seed, is_crowd, broken: Some(broken), ..Setup::default() };
        let Some(violation) = run(&setup).violation else { return false };
        let is_it = words.iter().any(|word| violation.contains(word));
        others.insert(violation);
        is_it
    });
    assert!(is_found, "none of {words:?}, but {others:#?}");
}

#[test]
fn a_store_that_brings_back_what_was_deleted_is_found() {
    assert_found(Broken::Forgetful, 10_000, &["after the job was deleted"]);
}

#[test]
fn a_release_beside_a_worker_that_was_removed_is_found() {
    assert_found(Broken::Blind, 1000, &["released while"]);
}

#[test]
fn another_number_of_workers_in_the_same_epoch_is_found() {
    assert_found(Broken::Unfrozen, 200, &["S3: epoch"]);
}

#[test]
fn gangs_that_wait_for_each_other_are_found() {
    assert_found(Broken::OneByOne, 10, &["F41"]);
}

/// The checkers bite: they object to the protocol whose failings this one is to mend.
#[test]
fn the_prototype_is_caught() {
    let caught: BTreeSet<&str> = (0..200).flat_map(prototype::run).collect();
    for invariant in ["S2", "S5", "S7", "L2"] {
        assert!(caught.contains(invariant), "{invariant} is not among {caught:?}");
    }
}
