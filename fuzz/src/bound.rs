//! How long something may take, by the clock of the thread that does it: others on the machine
//! do not count.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// What a few KB may take, in a build that is watched and hardly optimised: some hundred times what
/// they do take.
const LIMIT: Duration = Duration::from_millis(500);
/// How long an input is made to see whether time grows faster than inputs do.
const STRETCHED: usize = 64 << 10;
/// One in how many inputs is made that long. A program is fed millions, and would do little else.
const STRETCHED_ONE_IN: u32 = if cfg!(feature = "programs") { 4096 } else { 64 };

/// Runs something that must not take long.
///
/// # Panics
/// When it does.
pub fn bounded<T>(run: impl FnOnce() -> T) -> T {
    bounded_by(LIMIT, run)
}

/// Runs something that must not take longer.
///
/// # Panics
/// When it does.
pub fn bounded_by<T>(limit: Duration, run: impl FnOnce() -> T) -> T {
    let before = clock();
    let done = run();
    let took = clock().saturating_sub(before);
    assert!(took < limit, "it takes too long: {took:?}");
    done
}

/// Runs something, and sometimes once more with an input that is much longer: with its bytes again
/// and again, and with those of its middle again and again between those around.
///
/// # Panics
/// When that takes long.
pub fn bounded_and_stretched<T>(bytes: &[u8], run: impl Fn(&[u8]) -> T) -> T {
    stretched(bytes, (STRETCHED, LIMIT), run)
}

/// The same with another length and another limit.
///
/// # Panics
/// When that takes longer.
pub fn stretched<T>(
    bytes: &[u8],
    (length, limit): (usize, Duration),
    run: impl Fn(&[u8]) -> T,
) -> T {
    // By the input itself: what was found once is found again.
    let sum = |sum: u32, byte: &u8| sum.wrapping_mul(31).wrapping_add(u32::from(*byte));
    let is_chosen = bytes.iter().fold(0, sum).is_multiple_of(STRETCHED_ONE_IN);
    if is_chosen && !bytes.is_empty() {
        let (head, rest) = bytes.split_at(bytes.len() / 3);
        let (middle, tail) = rest.split_at(rest.len() / 2);
        bounded_by(limit, || drop(run(&bytes.repeat(length / bytes.len()))));
        if !middle.is_empty() {
            let times = length.saturating_sub(head.len() + tail.len()) / middle.len();
            let longer = [head, &middle.repeat(times), tail].concat();
            bounded_by(limit, || drop(run(&longer)));
        }
    }
    bounded_by(limit, || run(bytes))
}

fn clock() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}
