//! Media types: what the client can read, and what it sent.

use http::{HeaderMap, header};
use lockstep_api::{Status, discovery::Aggregated};

use super::query::Query;

/// The media types of answers, in order of preference.
const SERVED: [&str; 2] = ["application/json", "application/yaml"];

/// The media types of bodies.
const READ: [&str; 3] =
    ["application/json", "application/yaml", "application/vnd.kubernetes.protobuf"];

/// How a body is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Input {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
    /// Kubernetes' protobuf, which Go clients use for built-in kinds.
    Protobuf,
}

/// How an answer is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Encoding {
    /// JSON.
    Json,
    /// YAML.
    Yaml,
}

/// Into what an object is turned before it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As it is.
    Object,
    /// A table with one row per object.
    Table,
    /// Its metadata only.
    Metadata,
    /// The metadata of a list.
    MetadataList,
}

/// What the client wants to read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Output {
    /// How it is written.
    pub(crate) encoding: Encoding,
    /// Into what it is turned.
    pub(crate) shape: Shape,
    /// The version of `meta.k8s.io` of what it is turned into.
    pub(crate) meta_version: &'static str,
    /// Whether a person reads it.
    pub(crate) is_pretty: bool,
}

impl Output {
    /// Plain JSON: what is used for errors about the request itself.
    pub(crate) const JSON: Self = Self {
        encoding: Encoding::Json,
        shape: Shape::Object,
        meta_version: "v1",
        is_pretty: false,
    };

    /// The media type of the answer.
    pub(crate) fn content_type(self) -> &'static str {
        match self.encoding {
            Encoding::Json => "application/json",
            Encoding::Yaml => "application/yaml",
        }
    }
}

/// Chooses how to answer: the first clause of `Accept`, by weight, that can be honoured.
pub(crate) fn output(headers: &HeaderMap, query: &Query) -> Result<Output, Status> {
    let is_pretty = is_for_people(headers, query);
    let accept = accept_of(headers);
    if accept.trim().is_empty() {
        return Ok(Output { is_pretty, ..Output::JSON });
    }
    clauses(&accept)
        .into_iter()
        .find_map(|clause| honoured(&clause))
        .map(|output| Output { is_pretty: output.is_pretty || is_pretty, ..output })
        .ok_or_else(|| Status::not_acceptable(&SERVED))
}

/// The same for what can only be shown as it is.
pub(crate) fn plain_output(headers: &HeaderMap, query: &Query) -> Result<Output, Status> {
    let accept = accept_of(headers);
    let is_plain = |output: &Output| output.shape == Shape::Object;
    let output = clauses(&accept).into_iter().filter_map(|clause| honoured(&clause)).find(is_plain);
    let output = output.ok_or_else(|| Status::not_acceptable(&SERVED))?;
    Ok(Output { is_pretty: output.is_pretty || is_for_people(headers, query), ..output })
}

/// The aggregated discovery a client asks for; nothing when it would rather have the legacy lists.
pub(crate) fn aggregated_discovery(headers: &HeaderMap) -> Option<Aggregated> {
    for clause in clauses(&accept_of(headers)) {
        if !clause.matches("application", "json") {
            continue;
        }
        let kind = (clause.parameter("g"), clause.parameter("as"), clause.parameter("v"));
        match kind {
            (None, None, None) => return None,
            (Some("apidiscovery.k8s.io"), Some("APIGroupDiscoveryList"), Some("v2")) => {
                return Some(Aggregated::V2);
            }
            (Some("apidiscovery.k8s.io"), Some("APIGroupDiscoveryList"), Some("v2beta1")) => {
                return Some(Aggregated::V2Beta1);
            }
            _ => {}
        }
    }
    None
}

/// How a request's body is written.
pub(crate) fn input(headers: &HeaderMap) -> Result<Input, Status> {
    match content_type(headers).as_deref() {
        None | Some("" | "application/json") => Ok(Input::Json),
        Some("application/yaml") => Ok(Input::Yaml),
        Some("application/vnd.kubernetes.protobuf") => Ok(Input::Protobuf),
        Some(_) => Err(Status::unsupported_media_type(&READ)),
    }
}

/// The media type of a request's body, without parameters, in lower case.
pub(crate) fn content_type(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::CONTENT_TYPE)?.to_str().unwrap_or("?");
    let essence = value.split_once(';').map_or(value, |(essence, _)| essence);
    Some(essence.trim().to_ascii_lowercase())
}

struct Clause {
    kind: String,
    subtype: String,
    parameters: Vec<(String, String)>,
    weight: f32,
}

impl Clause {
    fn matches(&self, kind: &str, subtype: &str) -> bool {
        (self.kind == kind && (self.subtype == subtype || self.subtype == "*"))
            || (self.kind == "*" && self.subtype == "*")
    }

    fn parameter(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(k, _)| k == name).map(|(_, v)| v.as_str())
    }
}

fn accept_of(headers: &HeaderMap) -> String {
    let values: Vec<&str> =
        headers.get_all(header::ACCEPT).iter().filter_map(|v| v.to_str().ok()).collect();
    values.join(",")
}

fn clauses(accept: &str) -> Vec<Clause> {
    let mut all: Vec<Clause> = accept.split(',').filter_map(clause).collect();
    // Sorting is stable: among equals, the client's order stands.
    all.sort_by(|a, b| {
        b.weight
            .total_cmp(&a.weight)
            .then((a.kind == "*").cmp(&(b.kind == "*")))
            .then((a.subtype == "*").cmp(&(b.subtype == "*")))
    });
    all
}

fn clause(text: &str) -> Option<Clause> {
    let mut parts = text.split(';').map(str::trim);
    let (kind, subtype) = match parts.next()? {
        "" => return None,
        "*" => ("*", "*"),
        media => media.split_once('/')?,
    };
    let mut weight = 1.0;
    let mut parameters = Vec::new();
    for part in parts {
        let Some((key, value)) = part.split_once('=') else { continue };
        let value = value.trim().trim_matches('"');
        if key.trim() == "q" {
            weight = value.parse().ok().filter(|q| (0.0..=1.0).contains(q)).unwrap_or(1.0);
        } else {
            parameters.push((key.trim().to_owned(), value.to_owned()));
        }
    }
    Some(Clause {
        kind: kind.trim().to_ascii_lowercase(),
        subtype: subtype.trim().to_ascii_lowercase(),
        parameters,
        weight,
    })
}

fn honoured(clause: &Clause) -> Option<Output> {
    let encoding = if clause.matches("application", "json") {
        Encoding::Json
    } else if clause.matches("application", "yaml") {
        Encoding::Yaml
    } else {
        return None;
    };
    if clause.parameter("stream").is_some_and(|stream| !stream.is_empty() && stream != "watch") {
        return None;
    }
    let is_pretty = clause.parameter("pretty") == Some("1");
    let plain = Output { encoding, is_pretty, ..Output::JSON };
    let asked = (clause.parameter("as"), clause.parameter("g"), clause.parameter("v"));
    let (kind, version) = match asked {
        (None, None, None) => return Some(plain),
        (Some(kind), Some("meta.k8s.io"), Some("v1")) => (kind, "v1"),
        (Some(kind), Some("meta.k8s.io"), Some("v1beta1")) => (kind, "v1beta1"),
        _ => return None,
    };
    let shape = match kind {
        "Table" => Shape::Table,
        "PartialObjectMetadata" => Shape::Metadata,
        "PartialObjectMetadataList" => Shape::MetadataList,
        _ => return None,
    };
    Some(Output { shape, meta_version: version, ..plain })
}

/// `?pretty=true`, or a client through which people look.
fn is_for_people(headers: &HeaderMap, query: &Query) -> bool {
    match query.first("pretty") {
        Some("") | None => {}
        Some(value) => return matches!(value, "1" | "t" | "T" | "true" | "TRUE" | "True"),
    }
    let agent = headers.get(header::USER_AGENT).and_then(|v| v.to_str().ok()).unwrap_or_default();
    ["curl", "Wget", "Mozilla/5.0"].iter().any(|prefix| agent.starts_with(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn accept(value: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::ACCEPT, value.parse().unwrap())])
    }

    #[test]
    fn answers_take_the_first_form_that_can_be_served() {
        use Encoding::{Json, Yaml};
        let table = "application/json;as=Table;v=v1;g=meta.k8s.io,\
                     application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json";
        let protobuf = "application/vnd.kubernetes.protobuf";
        let unknown = "application/json;as=Nonsense;v=v1;g=meta.k8s.io,application/yaml";
        let metadata = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
        let list = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1beta1";
        let cases = [
            ("", Some((Json, Shape::Object, "v1"))),
            ("*/*", Some((Json, Shape::Object, "v1"))),
            ("*", Some((Json, Shape::Object, "v1"))),
            ("application/*", Some((Json, Shape::Object, "v1"))),
            ("application/json", Some((Json, Shape::Object, "v1"))),
            ("application/yaml", Some((Yaml, Shape::Object, "v1"))),
            ("application/yaml;q=0.5, application/json", Some((Json, Shape::Object, "v1"))),
            ("application/json;stream=watch", Some((Json, Shape::Object, "v1"))),
            (table, Some((Json, Shape::Table, "v1"))),
            (metadata, Some((Json, Shape::Metadata, "v1"))),
            (list, Some((Json, Shape::MetadataList, "v1beta1"))),
            (unknown, Some((Yaml, Shape::Object, "v1"))),
            (&format!("{protobuf},application/json"), Some((Json, Shape::Object, "v1"))),
            (protobuf, None),
            ("text/html", None),
            ("garbage", None),
        ];
        for (header, want) in cases {
            let got = output(&accept(header), &Query::default());
            let got = got.ok().map(|o| (o.encoding, o.shape, o.meta_version));
            assert_eq!(got, want, "{header}");
        }
        let error = output(&accept(protobuf), &Query::default()).unwrap_err();
        assert_eq!(error.code, 406);
    }

    #[test]
    fn aggregated_discovery_must_be_asked_for() {
        let v2 = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList";
        let beta = v2.replace("v2", "v2beta1");
        assert_eq!(
            aggregated_discovery(&accept(&format!("{v2},{beta},application/json"))),
            Some(Aggregated::V2)
        );
        assert_eq!(
            aggregated_discovery(&accept(&format!("{beta},{v2}"))),
            Some(Aggregated::V2Beta1)
        );
        assert_eq!(aggregated_discovery(&accept("application/json")), None);
        assert_eq!(aggregated_discovery(&HeaderMap::new()), None);
    }

    #[test]
    fn bodies_without_a_type_are_json() {
        let typed = |v: &str| HeaderMap::from_iter([(header::CONTENT_TYPE, v.parse().unwrap())]);
        assert_eq!(input(&HeaderMap::new()).unwrap(), Input::Json);
        assert_eq!(input(&typed("application/json; charset=utf-8")).unwrap(), Input::Json);
        assert_eq!(input(&typed("Application/YAML")).unwrap(), Input::Yaml);
        let protobuf = input(&typed("application/vnd.kubernetes.protobuf")).unwrap();
        assert_eq!(protobuf, Input::Protobuf);
        let error = input(&typed("application/cbor")).unwrap_err();
        assert_eq!(
            (error.code, error.message.as_str()),
            (
                415,
                "the body of the request was in an unknown format - accepted media types include: \
                 application/json, application/yaml, application/vnd.kubernetes.protobuf"
            )
        );
    }

    #[test]
    fn people_get_indented_answers() {
        let curl = HeaderMap::from_iter([(header::USER_AGENT, "curl/8".parse().unwrap())]);
        assert!(output(&curl, &Query::default()).unwrap().is_pretty);
        assert!(!output(&curl, &Query::parse("pretty=false")).unwrap().is_pretty);
        assert!(output(&HeaderMap::new(), &Query::parse("pretty=true")).unwrap().is_pretty);
        assert!(!output(&HeaderMap::new(), &Query::parse("pretty")).unwrap().is_pretty);
    }
}
