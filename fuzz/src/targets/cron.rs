//! Schedules of CronJobs.

use jiff::{SignedDuration, Timestamp};
use lockstep_api::cron::Schedule;

use crate::{
    bound::{bounded, bounded_and_stretched},
    parts::line,
};

/// The first line is a schedule, the second a time zone.
pub fn feed(bytes: &[u8]) {
    let (text, rest) = line(bytes);
    let (zone, _) = line(rest);
    let parse = |bytes: &[u8]| Schedule::parse(&String::from_utf8_lossy(bytes), None);
    let _ = bounded_and_stretched(text.as_bytes(), parse);
    let Ok(schedule) = Schedule::parse(text, Some(zone).filter(|zone| !zone.is_empty())) else {
        return;
    };
    // Leap days, clocks that are set, the end of all times.
    let starts = [0, 951_782_399, 1_774_749_600, 1_792_893_600, 253_402_207_200, -62_135_596_800];
    for start in starts {
        let mut at = Timestamp::UNIX_EPOCH + SignedDuration::from_secs(start);
        for _ in 0..4 {
            let Some(next) = bounded(|| schedule.next(at)) else { break };
            assert!(next > at, "{text} after {at}: {next}");
            // Nothing lies between: whoever asks a second before it hears the same.
            if next.as_second() - at.as_second() > 1 && !text.contains("@every") {
                let before = next - SignedDuration::from_secs(1);
                assert_eq!(schedule.next(before), Some(next), "{text} after {before}");
            }
            at = next;
        }
    }
}
