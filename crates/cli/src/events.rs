//! `lockstep events`: what happened, oldest first.

use anyhow::Result;
use jiff::Timestamp;
use lockstep_api::duration::{UNKNOWN, human};
use serde_json::Value;

use crate::{
    args::Connection,
    catalog::{Catalog, escape},
    cluster::Cluster,
    output,
    tabs::Columns,
    targets,
    watching::Watching,
};

/// Options of `lockstep events`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  lockstep events                         what happened in the namespace
  lockstep events --for pod/hello         what happened to one object
  lockstep events -A -w --types=Warning   watch for trouble anywhere")]
pub(crate) struct Options {
    /// Only about this object
    #[arg(long = "for", value_name = "TYPE/NAME")]
    about: Option<String>,
    /// In all namespaces
    #[arg(short = 'A', long)]
    all_namespaces: bool,
    /// Only events of these types: Normal, Warning
    #[arg(long, value_delimiter = ',', value_name = "TYPE")]
    types: Vec<String>,
    /// Go on and show events as they happen
    #[arg(short, long)]
    watch: bool,
    /// Leave out the header line
    #[arg(long)]
    no_headers: bool,
    #[command(flatten)]
    connection: Connection,
}

/// Shows events.
pub(crate) async fn run(options: &Options) -> Result<()> {
    let cluster = Cluster::find(&options.connection).await?;
    let fields = match &options.about {
        Some(about) => {
            let catalog = Catalog::read(&cluster).await?;
            let target = targets::one(&catalog, about)?;
            let name = target.name.unwrap_or_default();
            Some(format!("involvedObject.kind={},involvedObject.name={name}", target.resource.kind))
        }
        None => None,
    };
    let path = if options.all_namespaces {
        "/api/v1/events".to_owned()
    } else {
        format!("/api/v1/namespaces/{}/events", escape(&cluster.namespace))
    };
    let watching = Watching {
        cluster: &cluster,
        path,
        pairs: vec![("fieldSelector", fields)],
        accept: "application/json",
    };
    let list = watching.list().await?;
    let mut screen = Screen { options, columns: Columns::default() };
    let found: Vec<Event> = sorted(&list).into_iter().filter(|e| options.wants(e)).collect();
    if found.is_empty() && !options.watch {
        let place = &cluster.namespace;
        output::note(if options.all_namespaces {
            "No events found.".to_owned()
        } else {
            format!("No events found in {place} namespace.")
        });
        return Ok(());
    }
    output::data(screen.render(&found, !options.no_headers, Timestamp::now()))?;
    if !options.watch {
        return Ok(());
    }
    let from = list["metadata"]["resourceVersion"].as_str().unwrap_or("0").to_owned();
    let show = |kind: &str, object: &Value| {
        let mut events = match kind {
            "LIST" => sorted(object),
            "ADDED" | "MODIFIED" => vec![Event::read(object)],
            _ => Vec::new(),
        };
        events.retain(|event| options.wants(event));
        output::data(screen.render(&events, false, Timestamp::now()))?;
        Ok(())
    };
    watching.run(from, show).await
}

impl Options {
    fn wants(&self, event: &Event) -> bool {
        self.types.is_empty() || self.types.iter().any(|t| t.eq_ignore_ascii_case(&event.kind))
    }
}

struct Screen<'a> {
    options: &'a Options,
    columns: Columns,
}

impl Screen<'_> {
    fn render(&mut self, events: &[Event], has_header: bool, now: Timestamp) -> String {
        let mut rows: Vec<Vec<String>> = Vec::new();
        if has_header {
            rows.push(
                ["NAMESPACE", "LAST SEEN", "TYPE", "REASON", "OBJECT", "MESSAGE"]
                    .map(Into::into)
                    .into(),
            );
        }
        rows.extend(events.iter().map(|event| {
            vec![
                event.namespace.clone(),
                event.age(now),
                event.kind.clone(),
                event.reason.clone(),
                event.object.clone(),
                event.message.clone(),
            ]
        }));
        if !self.options.all_namespaces {
            for row in &mut rows {
                row.remove(0);
            }
        }
        self.columns.render(&rows)
    }
}

/// One event, read from either API version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Event {
    namespace: String,
    /// `Normal` or `Warning`.
    pub(crate) kind: String,
    /// Why, in a word.
    pub(crate) reason: String,
    object: String,
    /// Who says so.
    pub(crate) source: String,
    /// Why, in a sentence.
    pub(crate) message: String,
    /// Which part of the object it is about, if not all of it.
    pub(crate) field: String,
    first: Option<Timestamp>,
    last: Option<Timestamp>,
    count: i64,
}

impl Event {
    /// Reads a `v1` Event.
    pub(crate) fn read(object: &Value) -> Self {
        let text = |value: &Value| value.as_str().unwrap_or_default().trim().to_owned();
        let moment = |value: &Value| value.as_str().and_then(|text| text.parse().ok());
        let about = &object["involvedObject"];
        let series = &object["series"];
        let written = moment(&object["eventTime"])
            .or_else(|| moment(&object["metadata"]["creationTimestamp"]));
        let first = moment(&object["firstTimestamp"]).or(written);
        let last = moment(&series["lastObservedTime"]).or_else(|| moment(&object["lastTimestamp"]));
        let source = match text(&object["source"]["component"]) {
            component if component.is_empty() => text(&object["reportingComponent"]),
            component => component,
        };
        Self {
            namespace: text(&object["metadata"]["namespace"]),
            kind: text(&object["type"]),
            reason: text(&object["reason"]),
            object: format!("{}/{}", text(&about["kind"]), text(&about["name"])),
            source,
            message: text(&object["message"]).replace(['\n', '\t'], " "),
            field: text(&about["fieldPath"]),
            first,
            last: last.or(first),
            count: series["count"].as_i64().or_else(|| object["count"].as_i64()).unwrap_or(1),
        }
    }

    /// How long ago, and how often: `5s (x3 over 2m)`.
    pub(crate) fn age(&self, now: Timestamp) -> String {
        let since = |moment: Option<Timestamp>| match moment {
            Some(moment) => human(now.duration_since(moment).as_secs()),
            None => UNKNOWN.to_owned(),
        };
        if self.count > 1 {
            format!("{} (x{} over {})", since(self.last), self.count, since(self.first))
        } else {
            since(self.last)
        }
    }
}

/// The events of a list, oldest first.
pub(crate) fn sorted(list: &Value) -> Vec<Event> {
    let mut events: Vec<Event> =
        list["items"].as_array().into_iter().flatten().map(Event::read).collect();
    events.sort_by_key(|event| event.last);
    events
}

#[cfg(test)]
mod tests {
    use clap::Parser;
    use serde_json::json;

    use super::*;
    use crate::{
        args::{Cli, Command},
        golden,
    };

    #[test]
    fn events_are_shown_oldest_first() {
        let about = json!({"kind": "Pod", "name": "hello"});
        let list = json!({"items": [
            {"metadata": {"namespace": "default"}, "type": "Warning", "reason": "BackOff",
             "involvedObject": about, "message": "Back-off restarting\nfailed container", "count": 3,
             "firstTimestamp": "2026-01-01T00:00:00Z", "lastTimestamp": "2026-01-01T00:02:00Z"},
            {"metadata": {"namespace": "default"}, "type": "Normal", "reason": "Scheduled",
             "involvedObject": about, "message": "Successfully assigned default/hello to here",
             "eventTime": "2026-01-01T00:00:00.000001Z"},
        ]});
        let now: Timestamp = "2026-01-01T00:02:05Z".parse().expect("a moment");
        let mut screens = String::new();
        for words in [vec!["lockstep", "events"], vec!["lockstep", "events", "-A"]] {
            let Command::Events(options) = Cli::parse_from(words).command else { panic!("events") };
            let mut screen = Screen { options: &options, columns: Columns::default() };
            screens.push_str(&screen.render(&sorted(&list), true, now));
            screens.push('\n');
        }
        golden::check("events.txt", &screens);
    }
}
