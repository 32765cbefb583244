//! Restarts in place on a cluster: where agents connect, what they trust, where they come from.

use std::{fs, net::SocketAddr, path::PathBuf, sync::Arc};

use anyhow::{Context, Result, bail};
use jiff::Timestamp;
use k8s_openapi::{ByteString, api::core::v1::Secret};
use kube::{Api, Client, api::PostParams};
use lockstep_local::tls::Authority;
use lockstep_operator::{
    jobset::Keys,
    process::{AgentSource, Door, Way, Wiring},
};
use lockstep_restart::{
    hub::{Hub, raise_open_files},
    place::Place,
    ticket::Key,
    valkey::{Bus, Server},
};
use rustls::ServerConfig;
use tokio_rustls::TlsAcceptor;

use crate::bus::BusOptions;

/// Options of restarts in place.
#[derive(Clone, Debug, clap::Args)]
#[command(next_help_heading = "Restarts in place")]
#[group(id = "restarts_in_place")]
pub(super) struct Options {
    /// Where agents around workers reach this operator: HOST:PORT, as the Service in front of it is
    /// called; without it, and without --bus, nothing restarts in place
    #[arg(long, value_name = "ADDRESS", requires = "agent", conflicts_with = "bus")]
    restart_address: Option<String>,
    /// Where to listen for them [default: every address, the port of --restart-address]
    #[arg(long, value_name = "ADDRESS", requires = "restart_address")]
    restart_bind_address: Option<SocketAddr>,
    /// The image that brings the agent into the pods of workers: one with this program as its entry
    #[arg(long, value_name = "IMAGE", group = "agent")]
    agent_image: Option<String>,
    /// The path of this program on every node, where it need not be brought
    #[arg(long, value_name = "PATH", group = "agent")]
    agent_path: Option<String>,
    #[command(flatten)]
    bus: BusOptions,
    /// The URL of the bus as agents reach it, if they reach it elsewhere; without user and password
    #[arg(long, value_name = "URL", requires = "bus")]
    agent_bus: Option<String>,
    /// The user that agents are at the bus
    #[arg(long, value_name = "NAME", requires = "bus")]
    agent_bus_user: Option<String>,
    /// A file with that user's password
    #[arg(long, value_name = "FILE", requires = "agent_bus_user")]
    agent_bus_password_file: Option<PathBuf>,
}

/// The Secret that all operators of a cluster share: an authority, and the key of tickets.
const SECRET: &str = "lockstep-in-place-restart";
const CA: &str = "ca.crt";
const CA_KEY: &str = "ca.key";
const TICKET_KEY: &str = "ticket.key";

impl Options {
    /// Listens for agents, here or on the bus, if they are told where to.
    pub(super) async fn open(&self, client: &Client, namespace: &str) -> Result<Option<Door>> {
        let server = self.bus.server()?;
        if server.is_none() && self.restart_address.is_none() {
            return Ok(None);
        }
        let agent = match (&self.agent_image, &self.agent_path) {
            (Some(image), _) => AgentSource::Image(image.clone()),
            (None, Some(path)) => AgentSource::Path(path.clone()),
            (None, None) => bail!("restarts in place need --agent-image or --agent-path"),
        };
        // Before anything is made in the cluster.
        let on_bus = server.map(|server| anyhow::Ok((server, self.way()?))).transpose()?;
        let identity = Identity::of(client, namespace)
            .await
            .with_context(|| format!("cannot use the Secret {SECRET} in namespace {namespace}"))?;
        match (on_bus, &self.restart_address) {
            (Some((server, (way, bus_password))), _) => {
                let place = Place::Bus(Bus::new(server, identity.key.clone()));
                let keys = Keys { tickets: identity.key, bus_password };
                Ok(Some(Door { place, keys, wiring: Wiring { way, agent }, serving: None }))
            }
            (None, Some(address)) => self.listen(address, identity, agent).map(Some),
            (None, None) => Ok(None),
        }
    }

    /// The way of agents to the bus, and their password there.
    fn way(&self) -> Result<(Way, Option<String>)> {
        let url = match (&self.agent_bus, &self.bus.bus) {
            (Some(url), _) => url.clone(),
            // As whoever leads they must not come.
            (None, Some(url)) => without_user(url),
            (None, None) => bail!("--bus is missing"),
        };
        anyhow::ensure!(
            url == without_user(&url),
            "--agent-bus must not name a user: it can be read in every pod; give --agent-bus-user \
             and --agent-bus-password-file"
        );
        let ca = self.bus.ca_pem()?;
        let tls = ca.as_ref().map(|pem| crate::bus::trusting(pem.as_bytes(), "the bus"));
        Server::new(&url, tls.transpose()?).context("cannot use --agent-bus")?;
        let password = match &self.agent_bus_password_file {
            Some(file) => Some(
                fs::read_to_string(file)
                    .with_context(|| format!("cannot read the password in {}", file.display()))?
                    .trim_end_matches(['\r', '\n'])
                    .to_owned(),
            ),
            None => None,
        };
        let (user, has_password) = (self.agent_bus_user.clone(), password.is_some());
        Ok((Way::Bus { url, ca, user, has_password }, password))
    }

    /// Has agents connect to this process.
    fn listen(&self, address: &str, identity: Identity, agent: AgentSource) -> Result<Door> {
        let (host, port) = split(address)?;
        let bind = self.restart_bind_address.unwrap_or_else(|| ([0, 0, 0, 0], port).into());
        let tls = identity.serve_as(&host)?;
        // Each agent is an open file.
        raise_open_files();
        let listener =
            Hub::bind(bind).with_context(|| format!("cannot listen on {bind} for agents"))?;
        let hub = Hub::new(identity.key.clone());
        let serving = Arc::clone(&hub).serve(listener, Some(TlsAcceptor::from(tls)));
        let (address, ca) = (address.to_owned(), identity.authority.pem().to_owned());
        let wiring = Wiring { way: Way::Orchestrator { address, ca }, agent };
        let keys = Keys { tickets: identity.key, bus_password: None };
        let serving = Some(tokio::spawn(serving));
        Ok(Door { place: Place::Hub(hub), keys, wiring, serving })
    }
}

/// A URL without the user in it.
fn without_user(url: &str) -> String {
    match url.split_once("://") {
        Some((scheme, rest)) => {
            let host = rest.rsplit_once('@').map_or(rest, |(_, host)| host);
            format!("{scheme}://{host}")
        }
        None => url.to_owned(),
    }
}

/// Host and port of an address.
fn split(address: &str) -> Result<(String, u16)> {
    let parts = address.rsplit_once(':').and_then(|(host, port)| {
        let host = host.trim_start_matches('[').trim_end_matches(']');
        (!host.is_empty()).then_some((host.to_owned(), port.parse().ok()?))
    });
    parts.with_context(|| {
        format!(
            "--restart-address {address:?} is no address; one looks like lockstep.here.svc:7411"
        )
    })
}

/// What the operators of a cluster have in common, so that agents trust each of them.
struct Identity {
    authority: Authority,
    key: Key,
}

impl Identity {
    /// Reads it from the cluster, or makes it if nobody has.
    async fn of(client: &Client, namespace: &str) -> Result<Self> {
        let api: Api<Secret> = Api::namespaced(client.clone(), namespace);
        loop {
            if let Some(found) = api.get_opt(SECRET).await? {
                return Self::read(&found);
            }
            let new = Self::make()?;
            match api.create(&PostParams::default(), &new).await {
                Ok(made) => return Self::read(&made),
                // Another operator was faster.
                Err(kube::Error::Api(status)) if status.code == 409 => {}
                Err(error) => return Err(error.into()),
            }
        }
    }

    fn make() -> Result<Secret> {
        let authority = Authority::ephemeral(Timestamp::now())?;
        let mut key = [0; 32];
        getrandom::fill(&mut key).map_err(|error| anyhow::anyhow!("no randomness: {error}"))?;
        let data = [
            (CA, authority.pem().as_bytes().to_vec()),
            (CA_KEY, authority.key_pem().into_bytes()),
            (TICKET_KEY, key.to_vec()),
        ];
        let data = data.map(|(name, bytes)| (name.to_owned(), ByteString(bytes)));
        let mut secret = Secret { data: Some(data.into()), ..Secret::default() };
        secret.metadata.name = Some(SECRET.to_owned());
        Ok(secret)
    }

    fn read(secret: &Secret) -> Result<Self> {
        let part = |name: &str| {
            let bytes = secret.data.as_ref().and_then(|data| data.get(name));
            bytes
                .map(|bytes| bytes.0.clone())
                .with_context(|| format!("it has no {name}; delete it, and a new one is made"))
        };
        let text = |name| Ok::<_, anyhow::Error>(String::from_utf8(part(name)?)?);
        let authority = Authority::from_pem(text(CA)?, &text(CA_KEY)?, Timestamp::now())?;
        Ok(Self { authority, key: Key::new(&part(TICKET_KEY)?) })
    }

    /// What proves to agents that this is the host they were told.
    fn serve_as(&self, host: &str) -> Result<Arc<ServerConfig>> {
        let now = Timestamp::now();
        let config = match host.parse() {
            Ok(address) => self.authority.server_config(&[], &[address], now),
            Err(_) => self.authority.server_config(&[host.to_owned()], &[], now),
        };
        config.context("cannot make a certificate")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_a_host_and_a_port() {
        assert_eq!(split("lockstep.here.svc:7411").unwrap(), ("lockstep.here.svc".into(), 7411));
        assert_eq!(split("[::1]:1").unwrap(), ("::1".into(), 1));
        for bad in ["", "host", "host:", ":1", "host:70000"] {
            assert!(split(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn agents_are_not_told_who_leads_on_the_bus() {
        for (url, want) in [
            ("valkey://bus:6379", "valkey://bus:6379"),
            ("valkeys://me:p@ss@bus:6379", "valkeys://bus:6379"),
            ("valkey://:secret@[::1]:6379", "valkey://[::1]:6379"),
            ("bus", "bus"),
        ] {
            assert_eq!(without_user(url), want);
        }
    }

    #[test]
    fn what_one_operator_makes_another_can_use() {
        let secret = Identity::make().unwrap();
        let identity = Identity::read(&secret).unwrap();
        for host in ["lockstep.here.svc", "10.0.0.1"] {
            identity.serve_as(host).unwrap();
        }
        let mut broken = secret;
        broken.data.as_mut().unwrap().remove(CA_KEY);
        let error = Identity::read(&broken).err().unwrap().to_string();
        assert!(error.contains("it has no ca.key"), "{error}");
    }
}
