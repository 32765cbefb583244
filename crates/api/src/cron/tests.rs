use super::*;

fn at(text: &str) -> Timestamp {
    text.parse().unwrap()
}

/// The times after another, up to the minute.
fn times(schedule: &str, zone: Option<&str>, after: &str, count: usize) -> Vec<String> {
    let schedule = Schedule::parse(schedule, zone).unwrap();
    let mut now = at(after);
    let next = || {
        now = schedule.next(now)?;
        Some(now.to_string())
    };
    std::iter::from_fn(next).take(count).collect()
}

// From the tests of the library that upstream uses.
#[test]
fn the_next_time_is_the_first_that_fits() {
    let cases = [
        ("0/15 * * * *", "2012-07-09T14:45:00Z", "2012-07-09T15:00:00Z"),
        ("0/15 * * * *", "2012-07-09T14:59:59Z", "2012-07-09T15:00:00Z"),
        ("20-35/15 * * * *", "2012-07-09T15:45:00Z", "2012-07-09T16:20:00Z"),
        ("20-35/15 * * * *", "2012-07-09T23:46:00Z", "2012-07-10T00:20:00Z"),
        ("0 0 9 Apr-Oct ?", "2012-07-09T23:35:00Z", "2012-08-09T00:00:00Z"),
        ("0 0 */5 Apr,Aug,Oct Mon", "2012-07-09T23:35:00Z", "2012-08-01T00:00:00Z"),
        ("0 0 */5 Oct Mon", "2012-07-09T23:35:00Z", "2012-10-01T00:00:00Z"),
        ("0 0 * Feb Mon", "2012-07-09T23:35:00Z", "2013-02-04T00:00:00Z"),
        ("0 0 * Feb Mon/2", "2012-07-09T23:35:00Z", "2013-02-01T00:00:00Z"),
        ("0 0 29 Feb ?", "2012-07-09T23:35:00Z", "2016-02-29T00:00:00Z"),
        ("@daily", "2012-07-09T00:00:00Z", "2012-07-10T00:00:00Z"),
        ("@hourly", "2012-07-09T14:00:01Z", "2012-07-09T15:00:00Z"),
        ("@weekly", "2012-07-09T14:00:00Z", "2012-07-15T00:00:00Z"),
        ("@monthly", "2012-07-09T14:00:00Z", "2012-08-01T00:00:00Z"),
        ("@yearly", "2012-07-09T14:00:00Z", "2013-01-01T00:00:00Z"),
        ("@every 1h30m", "2012-07-09T14:45:00.5Z", "2012-07-09T16:15:00Z"),
        ("@every 10ms", "2012-07-09T14:45:00Z", "2012-07-09T14:45:01Z"),
        ("TZ=America/New_York 0 8 * * *", "2012-07-09T00:00:00Z", "2012-07-09T12:00:00Z"),
        ("CRON_TZ=Asia/Tokyo @daily", "2012-07-09T00:00:00Z", "2012-07-09T15:00:00Z"),
    ];
    for (schedule, after, want) in cases {
        assert_eq!(times(schedule, None, after, 1), [want], "{schedule} after {after}");
    }
}

#[test]
fn minutes_begin_where_the_clocks_of_a_place_say() {
    // As long as each place had the time of its sun, Berlin was 53:28 ahead.
    let want = ["0001-01-01T00:00:32Z", "0001-01-01T00:02:32Z"];
    assert_eq!(times("*/2 * * 1-3 ?", Some("Europe/Berlin"), "0001-01-01T00:00:00Z", 2), want);
}

#[test]
fn days_fit_by_either_field_unless_one_is_every_day() {
    let want = ["2012-07-13T00:00:00Z", "2012-07-15T00:00:00Z", "2012-07-20T00:00:00Z"];
    assert_eq!(times("0 0 15 * Fri", None, "2012-07-09T00:00:00Z", 3), want);
    let want = ["2012-07-13T00:00:00Z", "2012-07-20T00:00:00Z"];
    assert_eq!(times("0 0 * * Fri", None, "2012-07-09T00:00:00Z", 2), want);
}

#[test]
fn clocks_that_are_set_leave_out_or_repeat() {
    let zone = Some("America/New_York");
    // 02:30 does not exist on March 11.
    let want = ["2012-03-10T07:30:00Z", "2012-03-12T06:30:00Z"];
    assert_eq!(times("30 2 * * *", zone, "2012-03-09T12:00:00Z", 2), want);
    // 01:30 comes twice on November 4.
    let want = ["2012-11-04T05:30:00Z", "2012-11-04T06:30:00Z", "2012-11-05T06:30:00Z"];
    assert_eq!(times("30 1 * * *", zone, "2012-11-04T04:00:00Z", 3), want);
    // Midnight does not exist on October 21 in Sao Paulo.
    let want = ["2012-10-22T02:00:00Z"];
    let zone = Some("America/Sao_Paulo");
    assert_eq!(times("0 0 * * *", zone, "2012-10-20T12:00:00Z", 1), want);
}

#[test]
fn what_never_comes_is_not_looked_for_for_ever() {
    for schedule in ["59 23 31 2 *", ", * * * *"] {
        assert!(times(schedule, None, "2012-07-09T00:00:00Z", 1).is_empty(), "{schedule}");
    }
}

#[test]
fn what_is_no_schedule_is_refused_in_upstreams_words() {
    let cases = [
        ("", "empty spec string"),
        ("* * * *", "expected exactly 5 fields, found 4: [* * * *]"),
        ("0 * * * * *", "expected exactly 5 fields, found 6: [0 * * * * *]"),
        ("60 * * * *", "end of range (60) above maximum (59): 60"),
        ("* * 0 * *", "beginning of range (0) below minimum (1): 0"),
        ("* * * * 7", "end of range (7) above maximum (6): 7"),
        ("5-1 * * * *", "beginning of range (5) beyond end of range (1): 5-1"),
        ("1-2-3 * * * *", "too many hyphens: 1-2-3"),
        ("1/2/3 * * * *", "too many slashes: 1/2/3"),
        ("*/0 * * * *", "step of range should be a positive number: */0"),
        ("x * * * *", "failed to parse int from x: strconv.Atoi: parsing \"x\": invalid syntax"),
        ("@often", "unrecognized descriptor: @often"),
        ("@every often", "failed to parse duration @every often: time: invalid duration \"often\""),
        (
            "TZ=Nowhere/Land * * * * *",
            "provided bad location Nowhere/Land: unknown time zone Nowhere/Land",
        ),
        ("TZ=0", "invalid schedule format: runtime error: slice bounds out of range [:-1]"),
    ];
    for (text, want) in cases {
        let got = Schedule::parse(text, None).map(drop).map_err(|error| error.to_string());
        assert_eq!(got, Err(want.to_owned()), "{text:?}");
    }
}
