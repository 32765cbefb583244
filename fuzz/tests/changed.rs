//! What must hold of all inputs holds of seeds that were changed by chance: the same chance each
//! time, and few of them unless `LOCKSTEP_FUZZ_INPUTS` says how many, as `.ci/run` does. To look
//! for more is what libFuzzer is for.

use lockstep_fuzz::{TARGETS, seeds};

/// How many inputs each target gets, if nothing else is said.
const INPUTS: usize = 128;
/// Where something else is said.
const INPUTS_SAID: &str = "LOCKSTEP_FUZZ_INPUTS";

/// Longer seeds are cut: long inputs are not what is looked for here.
const LENGTH_MAX: usize = 2048;

#[test]
fn all_targets_take_seeds_that_were_changed_by_chance() {
    let said = std::env::var(INPUTS_SAID).ok();
    let inputs = said.map_or(INPUTS, |said| said.parse().expect("it is a number"));
    for target in TARGETS {
        let seeds = seeds::of(target.name).expect("the repository can be read");
        let words = seeds::words(target.name).expect("the repository can be read");
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let mut chance = Chance(0x9e37_79b9_7f4a_7c15);
        for _ in 0..inputs {
            let input = changed(&mut chance, &seeds, &words);
            let shown = String::from_utf8_lossy(&input).into_owned();
            let fed = std::panic::catch_unwind(|| (target.feed)(&input));
            assert!(fed.is_ok(), "{}: {shown:?}\n{input:?}", target.name);
        }
    }
}

/// A seed with some changes.
fn changed(chance: &mut Chance, seeds: &[Vec<u8>], words: &[&str]) -> Vec<u8> {
    let mut input = seeds[chance.below(seeds.len())].clone();
    input.truncate(LENGTH_MAX);
    for _ in 0..=chance.below(4) {
        let at = chance.below(input.len() + 1);
        let end = (at + chance.below(16)).min(input.len());
        match chance.below(5) {
            0 => drop(input.drain(at..end)),
            1 => {
                let again = input[at..end].to_vec();
                input.splice(at..at, again);
            }
            2 if !words.is_empty() => {
                let word = words[chance.below(words.len())];
                input.splice(at..at, word.bytes());
            }
            3 => {
                let other = &seeds[chance.below(seeds.len())];
                let from = chance.below(other.len() + 1);
                let to = (from + chance.below(64)).min(other.len());
                input.splice(at..at, other[from..to].iter().copied());
            }
            _ => {
                if let Some(byte) = input.get_mut(at) {
                    *byte ^= 1 << chance.below(8);
                }
            }
        }
    }
    input
}

/// Numbers that look like chance (xorshift).
struct Chance(u64);

impl Chance {
    /// A number from 0 to below `end`, which is not 0.
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or_default() % end
    }
}
