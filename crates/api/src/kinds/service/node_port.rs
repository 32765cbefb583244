//! Which ports of the nodes a service gets.

use std::{collections::BTreeSet, ops::RangeInclusive};

use serde_json::Value;

use super::prepare::{needs_health_port, needs_node_port, ports_mut};
use crate::{
    field::{FieldError, Path},
    json::{flag, integer, list, object_mut, text},
    strategy::Json,
};

/// The ports of nodes that services can have.
pub const NODE_PORTS: RangeInclusive<i64> = 30_000..=32_767;

/// Ports at the start of the range that are only given to those who ask for them.
const STATIC_PORTS: i64 = 86;

const ALLOCATED: &str = "provided port is already allocated";
const OUT_OF_RANGE: &str =
    "provided port is not in the valid range. The range of valid ports is 30000-32767";

/// Why a service does not get its ports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NodePortError {
    /// It asks for one it cannot have.
    Refused(FieldError),
    /// The system has none to give, or none of those it was asked for.
    Failed(String),
}

/// The ports of nodes a service has.
pub fn node_ports(object: &Json) -> impl Iterator<Item = i64> {
    let ports = list(object, &["spec", "ports"]).iter().filter_map(Value::as_object);
    ports
        .filter_map(|port| integer(port, &["nodePort"]))
        .chain(integer(object, &["spec", "healthCheckNodePort"]))
        .filter(|port| *port != 0)
}

/// Gives a service the ports of nodes it wants and has not got, and says whether it got any.
/// `taken` are those of other services; `seed` says where to begin to look.
///
/// # Errors
/// When a port it asks for is taken or cannot be given, or when none is left.
pub fn allocate_node_ports(
    object: &mut Json,
    old: Option<&Json>,
    taken: BTreeSet<i64>,
    seed: u64,
) -> Result<bool, NodePortError> {
    let had: BTreeSet<i64> = old.into_iter().flat_map(node_ports).collect();
    let is_automatic = match text(object, &["spec", "type"]) {
        "NodePort" => true,
        "LoadBalancer" => flag(object, &["spec", "allocateLoadBalancerNodePorts"]),
        _ => false,
    };
    let spec = object_mut(object, "spec");
    let mut pool = Pool { taken, had, seed, is_used: false };
    if needs_node_port(spec) {
        allocate(spec, &mut pool, is_automatic, old.is_none())?;
    }
    if needs_health_port(spec) {
        let wanted = integer(spec, &["healthCheckNodePort"]).unwrap_or_default();
        let port = match wanted {
            0 => pool.next().ok_or_else(|| "a HealthCheck NodePort 0: range is full".to_owned()),
            port => pool
                .claim(port)
                .map(|()| port)
                .map_err(|why| format!("requested HealthCheck NodePort {port}: {why}")),
        };
        let port =
            port.map_err(|why| NodePortError::Failed(format!("failed to allocate {why}")))?;
        spec.insert("healthCheckNodePort".to_owned(), port.into());
    }
    Ok(pool.is_used)
}

fn allocate(
    spec: &mut Json,
    pool: &mut Pool,
    is_automatic: bool,
    is_new: bool,
) -> Result<(), NodePortError> {
    // Those that were asked for come first, so that nobody else is given them.
    let mut by_port: Vec<(i64, i64)> = Vec::new();
    let mut claimed = BTreeSet::new();
    for (at, port) in ports_mut(spec).enumerate() {
        let wanted = integer(port, &["nodePort"]).unwrap_or_default();
        // Two protocols may share a port.
        if wanted == 0 || !claimed.insert(wanted) {
            continue;
        }
        pool.claim(wanted).map_err(|why| {
            let path = Path::new("spec").child("ports").index(at).child("nodePort");
            NodePortError::Refused(FieldError::invalid(&path, wanted, why))
        })?;
        by_port.push((integer(port, &["port"]).unwrap_or_default(), wanted));
    }
    for port in ports_mut(spec).filter(|_| is_automatic) {
        if integer(port, &["nodePort"]).unwrap_or_default() != 0 {
            continue;
        }
        let number = integer(port, &["port"]).unwrap_or_default();
        // The same service over several protocols is found at the same port of a node.
        let shared = by_port.iter().find(|(port, _)| is_new && *port == number);
        let given = match shared {
            Some((_, given)) => *given,
            None => pool.next().ok_or_else(|| {
                NodePortError::Failed("failed to allocate a nodePort: range is full".to_owned())
            })?,
        };
        by_port.push((number, given));
        port.insert("nodePort".to_owned(), given.into());
    }
    Ok(())
}

struct Pool {
    taken: BTreeSet<i64>,
    /// What the service has already.
    had: BTreeSet<i64>,
    seed: u64,
    is_used: bool,
}

impl Pool {
    fn claim(&mut self, port: i64) -> Result<(), &'static str> {
        if self.had.contains(&port) && !self.taken.contains(&port) {
            return Ok(());
        }
        if !NODE_PORTS.contains(&port) {
            return Err(OUT_OF_RANGE);
        }
        self.is_used = true;
        if self.taken.insert(port) { Ok(()) } else { Err(ALLOCATED) }
    }

    /// A free port. The search begins somewhere else each time, so that a port is not given away
    /// again right after it was freed.
    fn next(&mut self) -> Option<i64> {
        let (first, last) = (*NODE_PORTS.start() + STATIC_PORTS, *NODE_PORTS.end());
        let count = last - first + 1;
        let start = i64::try_from(self.seed % u64::try_from(count).unwrap_or(1)).unwrap_or(0);
        let dynamic = (first + start..=last).chain(first..first + start);
        let port = dynamic
            .chain(*NODE_PORTS.start()..first)
            .find(|port| !self.taken.contains(port) && !self.had.contains(port))?;
        self.is_used = true;
        self.taken.insert(port);
        Some(port)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn service(spec: Value) -> Json {
        let Value::Object(service) = json!({"spec": spec}) else { panic!("an object") };
        service
    }

    fn allocated(
        spec: Value,
        old: Option<Value>,
        taken: &[i64],
    ) -> Result<(Vec<i64>, bool), NodePortError> {
        let mut object = service(spec);
        let old = old.map(service);
        let taken = taken.iter().copied().collect();
        let is_used = allocate_node_ports(&mut object, old.as_ref(), taken, 14)?;
        Ok((node_ports(&object).collect(), is_used))
    }

    #[test]
    fn ports_are_given_to_those_who_need_them() {
        let cases = [
            ("no need", json!({"type": "ClusterIP", "ports": [{"port": 80}]}), vec![], false),
            ("any", json!({"type": "NodePort", "ports": [{"port": 80}]}), vec![30_100], true),
            (
                "any two",
                json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81}]}),
                vec![30_100, 30_102],
                true,
            ),
            (
                "two protocols share one",
                json!({"type": "NodePort", "ports": [{"port": 53}, {"port": 53, "protocol": "UDP"}]}),
                vec![30_100, 30_100],
                true,
            ),
            (
                "one that is asked for",
                json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_000}]}),
                vec![30_000],
                true,
            ),
            (
                "asked for by one of two protocols",
                json!({"type": "NodePort", "ports": [{"port": 53}, {"port": 53, "nodePort": 31_000}]}),
                vec![31_000, 31_000],
                true,
            ),
            (
                "a balancer",
                json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": true,
                    "externalTrafficPolicy": "Local", "ports": [{"port": 80}]}),
                vec![30_100, 30_102],
                true,
            ),
            (
                "a balancer that wants none",
                json!({"type": "LoadBalancer", "allocateLoadBalancerNodePorts": false,
                    "ports": [{"port": 80}, {"port": 81, "nodePort": 30_500}]}),
                vec![30_500],
                true,
            ),
        ];
        for (name, spec, want, is_used) in cases {
            assert_eq!(allocated(spec, None, &[30_101]), Ok((want, is_used)), "{name}");
        }
    }

    #[test]
    fn ports_of_others_and_out_of_range_are_refused() {
        let asks = |port: i64| json!({"type": "NodePort", "ports": [{"port": 80}, {"port": 81, "nodePort": port}]});
        let refused = |port: i64| match allocated(asks(port), None, &[30_101]).unwrap_err() {
            NodePortError::Refused(error) => error.to_string(),
            NodePortError::Failed(why) => why,
        };
        assert_eq!(
            refused(30_101),
            "spec.ports[1].nodePort: Invalid value: 30101: provided port is already allocated"
        );
        for port in [80, 29_999, 32_768] {
            assert_eq!(
                refused(port),
                format!(
                    "spec.ports[1].nodePort: Invalid value: {port}: provided port is not in the \
                     valid range. The range of valid ports is 30000-32767"
                )
            );
        }
        let all: Vec<i64> = NODE_PORTS.collect();
        let any = json!({"type": "NodePort", "ports": [{"port": 80}]});
        let full = NodePortError::Failed("failed to allocate a nodePort: range is full".to_owned());
        assert_eq!(allocated(any.clone(), None, &all), Err(full));
        for left in [30_000, 30_085, 30_086, 32_767] {
            let taken: Vec<i64> = NODE_PORTS.filter(|port| *port != left).collect();
            assert_eq!(allocated(any.clone(), None, &taken), Ok((vec![left], true)));
        }
    }

    #[test]
    fn what_a_service_has_it_keeps() {
        let has = json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30_300}]});
        assert_eq!(allocated(has.clone(), Some(has.clone()), &[]), Ok((vec![30_300], false)));
        let more = json!({"type": "NodePort", "ports": [
            {"port": 80, "nodePort": 30_300}, {"port": 80, "protocol": "UDP"},
        ]});
        assert_eq!(allocated(more, Some(has), &[30_100]), Ok((vec![30_300, 30_101], true)));
    }
}
