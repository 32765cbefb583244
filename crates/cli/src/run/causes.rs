//! What made a container end that did not end by itself: only events say so.

use serde_json::Value;

use super::ends::one_line;

/// What events say about the end of a container, in the order it happened. Nothing when it was
/// only asked to end with its pod.
pub(crate) fn of(events: &[Value]) -> Vec<String> {
    let killed = last(events, "Killing", |message| !message.starts_with("Stopping container"));
    let hook = last(events, "FailedPostStartHook", |_| true);
    let probe = match &killed {
        // A container that is not ready goes on, and so does one whose probe could not be asked.
        Some(_) => last(events, "Unhealthy", |message| {
            !message.starts_with("Readiness probe") && !message.contains(" probe errored")
        }),
        None => None,
    };
    // That it was killed because of its hook is no more than the hook says.
    let killed = killed.filter(|words| hook.is_none() || !words.ends_with("FailedPostStartHook"));
    [probe, hook, killed].into_iter().flatten().collect()
}

/// The last event of a reason whose message is wanted.
fn last(events: &[Value], reason: &str, is_wanted: impl Fn(&str) -> bool) -> Option<String> {
    let of_reason = events.iter().filter(|event| event["reason"] == reason);
    let wanted = of_reason.filter(|it| is_wanted(it["message"].as_str().unwrap_or_default()));
    // Texts of this form sort as the moments do.
    let found = wanted.max_by_key(|event| event["lastTimestamp"].as_str().unwrap_or_default())?;
    let message = one_line(found["message"].as_str().unwrap_or_default());
    Some(format!("{reason}: {message}"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn whoever_ended_a_container_is_named() {
        let event = |reason: &str, message: &str, second: u32| {
            json!({"reason": reason, "message": message,
                "lastTimestamp": format!("2026-01-01T00:00:{second:02}Z")})
        };
        let killed = "Container c failed liveness probe, will be restarted";
        let probes = [
            event("Unhealthy", "Liveness probe failed: new", 3),
            event("Unhealthy", "Liveness probe failed: old", 1),
            event("Unhealthy", "Readiness probe failed: no", 4),
            event("Unhealthy", "Liveness probe errored and resulted in unknown state: gone", 5),
        ];
        assert!(of(&probes).is_empty(), "nothing was ended");
        let mut events = probes.to_vec();
        events.push(event("Killing", killed, 4));
        events.push(event("Killing", "Stopping container c", 5));
        let want = ["Unhealthy: Liveness probe failed: new", &format!("Killing: {killed}")];
        assert_eq!(of(&events), want);
        let hook = [
            event("FailedPostStartHook", "PostStartHook failed", 1),
            event("Killing", "FailedPostStartHook", 2),
        ];
        assert_eq!(of(&hook), ["FailedPostStartHook: PostStartHook failed"]);
        assert!(of(&[event("Killing", "Stopping container c", 5)]).is_empty());
    }
}
