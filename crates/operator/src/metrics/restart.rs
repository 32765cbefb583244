//! What is counted of restarts in place.

use lockstep_api::jobset::InPlaceRestart;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

type Part = [(&'static str, &'static str); 1];

/// The upper ends of the ranges that times are counted in, in seconds.
const SECONDS: [f64; 16] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0,
];

/// Times of restarts in place.
pub struct RestartMetrics {
    parts: Family<Part, Histogram, fn() -> Histogram>,
    whole: Histogram,
}

impl RestartMetrics {
    pub(super) fn new(registry: &mut Registry) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(SECONDS);
        let metrics = Self { parts: Family::new_with_constructor(histogram), whole: histogram() };
        let put = registry.sub_registry_with_prefix("lockstep_restart");
        let help = "How long each part of a restart in place took";
        put.register("phase_seconds", help, metrics.parts.clone());
        let help = "How long restarts in place took, from the failure to the last worker running";
        put.register("seconds", help, metrics.whole.clone());
        metrics
    }

    /// Counts a restart.
    pub fn restarted(&self, restart: &InPlaceRestart) {
        for (part, micros) in restart.parts() {
            self.parts.get_or_create(&[("phase", part)]).observe(seconds(micros));
        }
        self.whole.observe(seconds(restart.total_micros()));
    }
}

#[expect(clippy::cast_precision_loss, reason = "a restart takes no centuries")]
fn seconds(micros: i64) -> f64 {
    micros as f64 / 1e6
}

#[cfg(test)]
mod tests {
    use prometheus_client::encoding::text::encode_registry;

    use super::*;

    #[test]
    fn each_part_and_the_whole_are_histograms() {
        let mut registry = Registry::default();
        let metrics = RestartMetrics::new(&mut registry);
        let restart = InPlaceRestart {
            detected_micros: 500,
            stopped_micros: 20_000,
            ..InPlaceRestart::default()
        };
        metrics.restarted(&restart);
        let mut text = String::new();
        encode_registry(&mut text, &registry).unwrap();
        for line in [
            "# TYPE lockstep_restart_seconds histogram",
            "lockstep_restart_seconds_sum 0.0205",
            r#"lockstep_restart_phase_seconds_sum{phase="stopped"} 0.02"#,
            r#"lockstep_restart_phase_seconds_count{phase="running"} 1"#,
        ] {
            assert!(text.contains(line), "{line} is not in {text}");
        }
    }
}
