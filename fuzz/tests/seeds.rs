//! What must hold of all inputs holds of the seeds, with or without libFuzzer.

use lockstep_fuzz::{TARGETS, seeds};

#[test]
fn all_targets_take_their_seeds() {
    for target in TARGETS {
        let seeds = seeds::of(target.name).unwrap();
        assert!(seeds.len() >= 2, "{} has no seeds", target.name);
        (target.feed)(b"");
        for seed in seeds {
            let shown = String::from_utf8_lossy(&seed[..seed.len().min(2000)]).into_owned();
            let fed = std::panic::catch_unwind(|| (target.feed)(&seed));
            assert!(fed.is_ok(), "{}:\n{shown}", target.name);
        }
    }
}
