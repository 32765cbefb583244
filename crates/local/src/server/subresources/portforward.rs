//! Connects clients to ports of a pod.
//!
//! A pod has an address of its own, and that is where its ports are: what its processes listen on
//! for this machine alone is found on this machine, by everybody.

mod channels;
mod pipe;
mod tunnel;

use std::{sync::Arc, time::Duration};

use axum::response::Response;
use kube::ResourceExt;
use lockstep_api::Status;
use tokio::{
    net::TcpStream,
    sync::{OwnedSemaphorePermit, mpsc},
    time::Instant,
};
use tokio_tungstenite::tungstenite::{Bytes, Message};

use super::pod;
use crate::{
    node::{network::PodAddresses, probe::dial},
    server::{
        call::{Address, Call},
        query::Query,
        websocket::{HEARTBEAT, Offer},
    },
};

/// What kubectl speaks.
const TUNNEL: &str = "SPDY/3.1+portforward.k8s.io";
/// What kube-rs speaks: a fixed list of ports, two channels for each.
const CHANNELS: &str = "v4.channel.k8s.io";
/// How many ports there can be: a channel has one byte.
const PORTS_MAX: usize = 128;
/// How long a connection to a port may take.
const DIAL_TIME_MAX: Duration = Duration::from_secs(10);
/// How much is read from a port at once.
const CHUNK: usize = 32 << 10;

/// A pod whose ports are connected to.
#[derive(Clone)]
struct Target {
    name: String,
    uid: String,
    addresses: PodAddresses,
}

/// Opens a WebSocket to the ports of a pod.
pub(super) fn open(
    call: &Call,
    address: &Address,
    permit: Option<OwnedSemaphorePermit>,
) -> Result<Response, Status> {
    let pod = pod::read(call, address)?;
    if pod::node(&pod).is_none() {
        let name = pod.name_any();
        return Err(Status::bad_request(format!("pod {name} does not have a host assigned")));
    }
    let offer = Offer::of(call, &[TUNNEL, CHANNELS])?;
    let ports = match offer.protocol {
        CHANNELS => ports(&call.query)?,
        _ => Vec::new(),
    };
    let target = Target {
        name: format!("{}_{}", pod.name_any(), pod.namespace().unwrap_or_default()),
        uid: pod.uid().unwrap_or_default(),
        // Not what the status says: that can be written by others than the node.
        addresses: call.app.addresses.clone(),
    };
    let (app, is_tunnel) = (Arc::clone(&call.app), offer.protocol == TUNNEL);
    Ok(offer.accept(move |socket| async move {
        let _held = permit;
        let mut stop = app.stop.subscribe();
        let serve = async {
            match is_tunnel {
                true => tunnel::serve(socket, target).await,
                false => channels::serve(socket, target, ports).await,
            }
        };
        tokio::select! {
            () = serve => {}
            () = crate::server::listen::stopped(&mut stop) => {}
        }
    }))
}

/// The ports a request is about, with the errors of a kubelet.
fn ports(query: &Query) -> Result<Vec<u16>, Status> {
    let lists: Vec<&str> = query.all("ports").collect();
    if lists.is_empty() {
        return Err(Status::bad_request("query parameter \"port\" is required"));
    }
    let mut ports = Vec::new();
    for text in lists.iter().flat_map(|list| list.split(',')) {
        let port = text.parse::<u16>().ok().filter(|port| *port > 0);
        let bad = || Status::bad_request(format!("unable to parse {text:?} as a port"));
        ports.push(port.ok_or_else(bad)?);
    }
    if ports.len() > PORTS_MAX {
        return Err(Status::bad_request(format!("at most {PORTS_MAX} ports can be forwarded")));
    }
    Ok(ports)
}

impl Target {
    /// Why a port cannot be forwarded, in the words of a kubelet.
    fn failure(&self, port: u16, why: &str) -> String {
        let Self { name, uid, .. } = self;
        format!("error forwarding port {port} to pod {name}, uid {uid}: {why}")
    }

    /// Connects to a port.
    async fn connect(&self, port: u16) -> Result<TcpStream, String> {
        let failed = |why: String| self.failure(port, &why);
        let Some(address) = self.addresses.of(&self.uid) else {
            return Err(failed("the pod has no address yet".to_owned()));
        };
        let stream = dial(&address.to_string(), port, Instant::now() + DIAL_TIME_MAX).await;
        let stream = stream.map_err(failed)?;
        // What is forwarded is often typed by people.
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }
}

/// Lets the client hear something now and then.
async fn beat(outgoing: &mpsc::Sender<Message>) {
    loop {
        tokio::time::sleep(HEARTBEAT).await;
        if outgoing.send(Message::Pong(Bytes::new())).await.is_err() {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ports_are_listed_in_any_way() {
        let many = (1..200).map(|port| port.to_string()).collect::<Vec<_>>().join(",");
        let cases = [
            ("ports=80", Ok(vec![80])),
            ("ports=80,81&ports=82", Ok(vec![80, 81, 82])),
            ("", Err("query parameter \"port\" is required".to_owned())),
            ("ports=", Err("unable to parse \"\" as a port".to_owned())),
            ("ports=0", Err("unable to parse \"0\" as a port".to_owned())),
            ("ports=65536", Err("unable to parse \"65536\" as a port".to_owned())),
            (&format!("ports={many}"), Err("at most 128 ports can be forwarded".to_owned())),
        ];
        for (query, want) in cases {
            let read = ports(&Query::parse(query)).map_err(|status| status.message);
            assert_eq!(read, want, "{query}");
        }
    }
}
