//! What is counted. Labels come from the registry and from enums, never from what clients send.

use std::{
    borrow::Cow,
    sync::{Arc, atomic::AtomicU64},
    time::Duration,
};

use prometheus_client::{
    encoding::{
        EncodeLabelSet,
        text::{encode_eof, encode_registry},
    },
    metrics::{
        counter::Counter,
        family::Family,
        gauge::Gauge,
        histogram::{Histogram, exponential_buckets},
    },
    registry,
};

use super::{
    App,
    request::{Target, Verb},
};
use crate::cluster::Cluster;

/// What a request is counted as.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(crate) struct Subject {
    verb: &'static str,
    group: Cow<'static, str>,
    resource: Cow<'static, str>,
}

impl Subject {
    /// What a request for `target` is counted as; what is not served is all the same.
    pub(crate) fn of(app: &App, target: &Target) -> Self {
        let other = |verb| Self { verb, group: Cow::Borrowed(""), resource: Cow::Borrowed("") };
        let Target::Resource(path) = target else { return other("other") };
        let catalog = app.cluster.catalog();
        match catalog.registry().get(&path.group, &path.version, &path.resource) {
            Some(resource) if path.verb != Verb::Unknown => Self {
                verb: path.verb.name(),
                group: resource.group.clone(),
                resource: resource.plural.clone(),
            },
            _ => other("unknown"),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct Answer {
    verb: &'static str,
    group: Cow<'static, str>,
    resource: Cow<'static, str>,
    code: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VerbOnly {
    verb: &'static str,
}

/// The counters of the server.
pub(crate) struct Metrics {
    registry: registry::Registry,
    answers: Family<Answer, Counter>,
    durations: Family<Subject, Histogram, fn() -> Histogram>,
    watches: Gauge,
    revision: Gauge<u64, AtomicU64>,
    memory: Gauge<u64, AtomicU64>,
    cluster: Cluster,
    controllers: Arc<lockstep_operator::metrics::Metrics>,
}

impl Metrics {
    /// Counters at zero.
    pub(crate) fn new(
        cluster: &Cluster,
        controllers: Arc<lockstep_operator::metrics::Metrics>,
    ) -> Self {
        let histogram: fn() -> Histogram = || Histogram::new(exponential_buckets(0.000_1, 2.0, 18));
        let answers = Family::default();
        let durations = Family::new_with_constructor(histogram);
        let streams = Family::<VerbOnly, Gauge>::default();
        let watches = streams.get_or_create(&VerbOnly { verb: "watch" }).clone();
        let (revision, memory) = (Gauge::default(), Gauge::default());
        let mut registry = registry::Registry::default();
        registry.register("apiserver_request", "Answered requests", answers.clone());
        registry.register(
            "apiserver_request_duration_seconds",
            "Time from a request to the head of its answer",
            durations.clone(),
        );
        registry.register("apiserver_longrunning_requests", "Open watches", streams);
        registry.register("lockstep_store_revision", "The highest revision seen", revision.clone());
        registry.register(
            "process_resident_memory_bytes",
            "Resident memory of the process",
            memory.clone(),
        );
        let cluster = cluster.clone();
        Self { registry, answers, durations, watches, revision, memory, cluster, controllers }
    }

    /// Notes an answer.
    pub(crate) fn answered(&self, subject: Subject, code: u16, took: Duration) {
        self.durations.get_or_create(&subject).observe(took.as_secs_f64());
        let Subject { verb, group, resource } = subject;
        self.answers.get_or_create(&Answer { verb, group, resource, code }).inc();
    }

    /// Counts a watch until the gauge is dropped.
    pub(crate) fn watching(&self) -> WatchGauge {
        self.watches.inc();
        WatchGauge(self.watches.clone())
    }

    /// Everything, as Prometheus reads it.
    pub(crate) fn text(&self) -> String {
        self.revision.set(self.cluster.snapshot().revision());
        self.memory.set(resident_memory_bytes().unwrap_or_default());
        let mut text = String::new();
        // Writing to a String cannot fail.
        let _infallible = encode_registry(&mut text, &self.registry)
            .and_then(|()| self.controllers.write(&mut text))
            .and_then(|()| encode_eof(&mut text));
        text
    }
}

/// One open watch.
pub(crate) struct WatchGauge(Gauge);

impl Drop for WatchGauge {
    fn drop(&mut self) {
        self.0.dec();
    }
}

/// How much memory the process holds, where the system says.
pub(crate) fn resident_memory_bytes() -> Option<u64> {
    let statm = std::fs::read_to_string("/proc/self/statm").ok()?;
    let pages: u64 = statm.split(' ').nth(1)?.parse().ok()?;
    Some(pages * u64::try_from(rustix::param::page_size()).ok()?)
}
