//! Whether a container that has ended is started again, and when.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{Container, ContainerRestartRule, Pod};

use super::memory::after;
use super::{Exit, Options, Role};

/// The back-off of one container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Delay {
    /// How long after its end the container may start again.
    pub wait: Duration,
    /// When that was last decided.
    pub updated_at: Timestamp,
}

/// When a container that has ended may start again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Retry {
    /// Now; the next time it waits this long.
    Now(Delay),
    /// Not before `at`, because it waits for `wait` after its end.
    Later { at: Timestamp, wait: Duration },
}

/// Whether a container in this role is started again after it ended with `code`.
///
/// Rules of the container come first, then its own policy, then the pod's.
pub(super) fn restarts(pod: &Pod, role: Role, container: &Container, code: i32) -> bool {
    match role {
        Role::Sidecar => return true,
        Role::Init if code == 0 => return false,
        Role::Init | Role::Main => {}
    }
    let own = container.restart_policy.as_deref();
    if own.is_some() {
        let rules = container.restart_policy_rules.as_deref().unwrap_or_default();
        if rules.iter().any(|rule| rule.action == "Restart" && matches(rule, code)) {
            return true;
        }
    }
    let policy = pod.spec.as_ref().and_then(|spec| spec.restart_policy.as_deref());
    match own.or(policy) {
        Some("Never") => false,
        Some("OnFailure") => code != 0,
        _ => true,
    }
}

/// When a container that ended as `exit` says may start again.
///
/// The first restart is at once; each one after that waits twice as long as the one before. A
/// container that ended long after the last decision starts afresh.
pub(super) fn retry(exit: &Exit, known: Option<Delay>, options: &Options, now: Timestamp) -> Retry {
    let finished_at = exit.finished_at.unwrap_or(now);
    let fresh = Delay { wait: options.backoff_base, updated_at: now };
    let Some(known) = known else { return Retry::Now(fresh) };
    if finished_at > after(known.updated_at, options.backoff_max * 2) {
        return Retry::Now(fresh);
    }
    let at = after(finished_at, known.wait);
    if at > now {
        return Retry::Later { at, wait: known.wait };
    }
    Retry::Now(Delay { wait: (known.wait * 2).min(options.backoff_max), updated_at: now })
}

/// A duration in the way Go prints it: `10s`, `2m40s`, `5m0s`, `500ms`.
pub fn go_duration(duration: Duration) -> String {
    let (seconds, millis) = (duration.as_secs(), duration.subsec_millis());
    if seconds == 0 {
        return format!("{millis}ms");
    }
    let fraction = match millis {
        0 => String::new(),
        millis => format!(".{millis:03}").trim_end_matches('0').to_owned(),
    };
    let (hours, minutes, rest) = (seconds / 3600, seconds / 60 % 60, seconds % 60);
    match (hours, minutes) {
        (0, 0) => format!("{rest}{fraction}s"),
        (0, _) => format!("{minutes}m{rest}{fraction}s"),
        _ => format!("{hours}h{minutes}m{rest}{fraction}s"),
    }
}

/// A number of seconds from the API as a duration; negative ones count as none.
pub(super) fn seconds(count: i64) -> Duration {
    Duration::from_secs(u64::try_from(count).unwrap_or(0))
}

fn matches(rule: &ContainerRestartRule, code: i32) -> bool {
    let Some(codes) = &rule.exit_codes else { return false };
    let is_listed = codes.values.as_deref().unwrap_or_default().contains(&code);
    match codes.operator.as_str() {
        "In" => is_listed,
        "NotIn" => !is_listed,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use k8s_openapi::api::core::v1::ContainerRestartRuleOnExitCodes;

    use super::super::world::pod;
    use super::*;

    fn rule(operator: &str, values: &[i32]) -> ContainerRestartRule {
        ContainerRestartRule {
            action: "Restart".to_owned(),
            exit_codes: Some(ContainerRestartRuleOnExitCodes {
                operator: operator.to_owned(),
                values: Some(values.to_vec()),
            }),
        }
    }

    #[test]
    fn the_nearest_policy_decides() {
        // (role, pod policy, container policy, rule, code, expected)
        let cases = [
            (Role::Main, "Always", None, None, 0, true),
            (Role::Main, "OnFailure", None, None, 0, false),
            (Role::Main, "OnFailure", None, None, 1, true),
            (Role::Main, "Never", None, None, 1, false),
            (Role::Main, "Never", Some("OnFailure"), None, 1, true),
            (Role::Main, "Always", Some("Never"), None, 1, false),
            (Role::Main, "Never", Some("Never"), Some(rule("In", &[42])), 42, true),
            (Role::Main, "Never", Some("Never"), Some(rule("In", &[42])), 41, false),
            (Role::Main, "Never", Some("Never"), Some(rule("NotIn", &[42])), 41, true),
            (Role::Init, "Always", None, None, 0, false),
            (Role::Init, "Always", None, None, 1, true),
            (Role::Init, "Never", None, None, 1, false),
            (Role::Sidecar, "Never", Some("Always"), None, 0, true),
        ];
        for (role, policy, own, rule, code, want) in cases {
            let pod = pod(policy, &["a"]).pod;
            let mut container = pod.spec.as_ref().unwrap().containers[0].clone();
            container.restart_policy = own.map(str::to_owned);
            container.restart_policy_rules = rule.map(|rule| vec![rule]);
            assert_eq!(
                restarts(&pod, role, &container, code),
                want,
                "{role:?} {policy} {own:?} {code}"
            );
        }
    }

    #[test]
    fn restarts_wait_longer_each_time_and_start_afresh_after_a_long_run() {
        let at = |second| Timestamp::from_second(second).unwrap();
        let exit = |second| Exit { finished_at: Some(at(second)), ..Exit::default() };
        let options = Options::default();
        let Retry::Now(first) = retry(&exit(100), None, &options, at(100)) else {
            panic!("the first restart is at once");
        };
        assert_eq!(first.wait.as_secs(), 10);
        let second = retry(&exit(101), Some(first), &options, at(101));
        assert_eq!(second, Retry::Later { at: at(111), wait: Duration::from_secs(10) });
        let mut known = first;
        let mut waits = Vec::new();
        let mut clock = 111;
        for _ in 0..6 {
            let Retry::Now(next) = retry(&exit(clock - 400), Some(known), &options, at(clock))
            else {
                panic!("400 s are more than any back-off");
            };
            waits.push(next.wait.as_secs());
            known = next;
            clock += 401;
        }
        assert_eq!(waits, [20, 40, 80, 160, 300, 300]);
        let long_run = retry(&exit(clock + 700), Some(known), &options, at(clock + 700));
        assert_eq!(
            long_run,
            Retry::Now(Delay { wait: Duration::from_secs(10), updated_at: at(clock + 700) })
        );
    }

    #[test]
    fn durations_print_as_in_go() {
        let cases = [(500, "500ms"), (10_000, "10s"), (160_000, "2m40s"), (300_000, "5m0s")];
        for (millis, want) in cases {
            assert_eq!(go_duration(Duration::from_millis(millis)), want);
        }
        assert_eq!(go_duration(Duration::from_millis(1500)), "1.5s");
        assert_eq!(go_duration(Duration::from_secs(3600)), "1h0m0s");
    }
}
