//! What one object of a kind uses, by the names that quotas have for it.

use jiff::Timestamp;
use serde_json::Value;

use super::pods;
use crate::{
    amounts::{self, Amounts},
    json::{at, flag, list, text},
    quantity::Quantity,
    strategy::Json,
};

const CLASS: &str = ".storageclass.storage.k8s.io/";
const CLAIMS: [&str; 2] = ["persistentvolumeclaims", "requests.storage"];

/// How the objects of a kind are counted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counted {
    sort: Sort,
    /// `count/jobs.batch`.
    count: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Sort {
    Pods,
    Services,
    Claims,
    /// By number alone, also under a name from before all kinds could be counted.
    Objects(Option<&'static str>),
}

impl Counted {
    /// How a kind is counted; nothing for those that quotas leave alone.
    pub fn of(group: &str, plural: &str) -> Option<Self> {
        let sort = match (group, plural) {
            ("" | "events.k8s.io", "events") | ("", "bindings") => return None,
            ("authentication.k8s.io" | "authorization.k8s.io", _) => return None,
            ("", "pods") => Sort::Pods,
            ("", "services") => Sort::Services,
            ("", "persistentvolumeclaims") => Sort::Claims,
            ("", "configmaps") => Sort::Objects(Some("configmaps")),
            ("", "replicationcontrollers") => Sort::Objects(Some("replicationcontrollers")),
            ("", "resourcequotas") => Sort::Objects(Some("resourcequotas")),
            ("", "secrets") => Sort::Objects(Some("secrets")),
            _ => Sort::Objects(None),
        };
        let dot = if group.is_empty() { "" } else { "." };
        Some(Self { sort, count: format!("count/{plural}{dot}{group}") })
    }

    pub(super) fn sort(&self) -> Sort {
        self.sort
    }

    /// Whether it matters what is in them, not only how many there are.
    pub fn looks_inside(&self) -> bool {
        !matches!(self.sort, Sort::Objects(_))
    }

    /// The names of those of which only the number counts.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        let alias = match self.sort {
            Sort::Objects(alias) => alias,
            Sort::Pods | Sort::Services | Sort::Claims => None,
        };
        alias.into_iter().chain([self.count.as_str()])
    }

    /// Whether `name` says how much there may be of these objects.
    pub fn has(&self, name: &str) -> bool {
        if name == self.count {
            return true;
        }
        match self.sort {
            Sort::Pods => pods::is_counted(name),
            Sort::Services => {
                matches!(name, "services" | "services.nodeports" | "services.loadbalancers")
            }
            Sort::Claims => {
                let of_class = name.rsplit_once(CLASS).map_or(name, |(_, rest)| rest);
                CLAIMS.contains(&of_class)
            }
            Sort::Objects(alias) => alias == Some(name),
        }
    }

    /// Whether a write may make an object use more: a new one always, a change of some.
    pub fn may_grow(&self, sub: Option<&str>, object: &Json, old: Option<&Json>) -> bool {
        match (self.sort, sub, old) {
            (_, None, None) => true,
            (Sort::Services | Sort::Claims, None, Some(_)) | (Sort::Claims, Some("status"), _) => {
                true
            }
            // It may become one of those that a quota counts.
            (Sort::Pods, None, Some(old)) => pods::has_deadline(object) != pods::has_deadline(old),
            _ => false,
        }
    }

    /// Whether a changed object may use less than before, or be none of those any more that a
    /// quota counts.
    pub fn may_shrink(&self, object: &Json, old: &Json) -> bool {
        // Time is left out of account: it passes without a change.
        let differs = || self.usage(old, Timestamp::MIN) != self.usage(object, Timestamp::MIN);
        match self.sort {
            Sort::Pods => pods::has_deadline(object) != pods::has_deadline(old) || differs(),
            Sort::Services => differs(),
            Sort::Claims => true,
            Sort::Objects(_) => false,
        }
    }

    /// What an object uses.
    pub fn usage(&self, object: &Json, now: Timestamp) -> Amounts {
        let one = Quantity::whole(1);
        let mut used = Amounts::from([(self.count.clone(), one)]);
        match self.sort {
            Sort::Pods => used.extend(pods::usage(object, now)),
            Sort::Services => used.extend(of_service(object)),
            Sort::Claims => used.extend(of_claim(object)),
            Sort::Objects(alias) => used.extend(alias.map(|name| (name.to_owned(), one))),
        }
        used
    }
}

fn of_service(service: &Json) -> Amounts {
    let ports = list(service, &["spec", "ports"]);
    let is_allocating = at(service, &["spec", "allocateLoadBalancerNodePorts"])
        .is_none_or(Value::is_null)
        || flag(service, &["spec", "allocateLoadBalancerNodePorts"]);
    let is_given = |port: &&Value| port["nodePort"].as_i64().unwrap_or_default() != 0;
    let (balancers, ports) = match text(service, &["spec", "type"]) {
        "NodePort" => (0, ports.len()),
        "LoadBalancer" if is_allocating => (1, ports.len()),
        "LoadBalancer" => (1, ports.iter().filter(is_given).count()),
        _ => (0, 0),
    };
    let ports = i64::try_from(ports).unwrap_or(i64::MAX);
    [("services", 1), ("services.loadbalancers", balancers), ("services.nodeports", ports)]
        .map(|(name, number)| (name.to_owned(), Quantity::whole(number)))
        .into()
}

fn of_claim(claim: &Json) -> Amounts {
    let class = at(claim, &["metadata", "annotations", "volume.beta.kubernetes.io/storage-class"])
        .and_then(Value::as_str)
        .unwrap_or_else(|| text(claim, &["spec", "storageClassName"]));
    let size = |path: &[&str]| amounts::read(at(claim, path)).get("storage").copied();
    let asked = size(&["spec", "resources", "requests"]);
    let allocated = size(&["status", "allocatedResources"]);
    let size = asked.map(|asked| allocated.map_or(asked, |has| has.max(asked)).rounded(0));
    let mut used = Amounts::new();
    for (name, amount) in CLAIMS.into_iter().zip([Some(Quantity::whole(1)), size]) {
        let Some(amount) = amount else { continue };
        used.insert(name.to_owned(), amount);
        if !class.is_empty() {
            used.insert(format!("{class}{CLASS}{name}"), amount);
        }
    }
    used
}
