//! Options for a bus between agents and orchestrators, and what they mean.

use std::{fs, path::PathBuf, sync::Arc};

use anyhow::{Context, Result};
use lockstep_restart::valkey::Server;
use rustls::{ClientConfig, RootCertStore, pki_types::CertificateDer, pki_types::pem::PemObject};

/// Where a bus is, and how to get in.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct BusOptions {
    /// A Valkey through which orchestrators are reached: valkey://HOST:PORT, or valkeys:// for TLS
    #[arg(long, value_name = "URL", env = "LOCKSTEP_BUS", hide_env_values = true)]
    pub(crate) bus: Option<String>,
    /// The user of the bus, if it is not in the URL
    #[arg(long, value_name = "NAME", env = "LOCKSTEP_BUS_USER", requires = "bus")]
    bus_user: Option<String>,
    /// A file with that user's password; the password may also be in $LOCKSTEP_BUS_PASSWORD
    #[arg(long, value_name = "FILE", env = "LOCKSTEP_BUS_PASSWORD_FILE", requires = "bus")]
    bus_password_file: Option<PathBuf>,
    #[arg(long, env = "LOCKSTEP_BUS_PASSWORD", hide = true, hide_env_values = true)]
    bus_password: Option<String>,
    /// The certificates that the bus's may be signed with, as a PEM file
    #[arg(long, value_name = "FILE", env = "LOCKSTEP_BUS_CA", requires = "bus")]
    bus_ca: Option<PathBuf>,
    /// The same certificates, as text
    #[arg(long, env = "LOCKSTEP_BUS_CA_PEM", conflicts_with = "bus_ca", hide = true)]
    bus_ca_pem: Option<String>,
}

impl BusOptions {
    /// The certificates that the bus's may be signed with, if any are named.
    pub(crate) fn ca_pem(&self) -> Result<Option<String>> {
        match &self.bus_ca {
            Some(file) => fs::read_to_string(file)
                .with_context(|| format!("cannot read the certificates in {}", file.display()))
                .map(Some),
            None => Ok(self.bus_ca_pem.clone()),
        }
    }

    /// The server, if one is named.
    pub(crate) fn server(&self) -> Result<Option<Server>> {
        let Some(url) = &self.bus else { return Ok(None) };
        let tls = self.ca_pem()?.map(|pem| trusting(pem.as_bytes(), "the bus"));
        let mut server = Server::new(url, tls.transpose()?).context("cannot use --bus")?;
        if let Some(user) = &self.bus_user {
            server = server.with_user(user);
        }
        if let Some(file) = &self.bus_password_file {
            let password = fs::read_to_string(file)
                .with_context(|| format!("cannot read the password in {}", file.display()))?;
            server = server.with_password(password.trim_end_matches(['\r', '\n']));
        } else if let Some(password) = &self.bus_password {
            server = server.with_password(password);
        }
        Ok(Some(server))
    }
}

/// Trusts whoever has a certificate signed with one of these.
pub(crate) fn trusting(pem: &[u8], whose: &str) -> Result<Arc<ClientConfig>> {
    let about = || format!("cannot use the certificates of {whose}");
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem) {
        roots.add(certificate.with_context(about)?).with_context(about)?;
    }
    anyhow::ensure!(!roots.is_empty(), "{}: there is none", about());
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .with_context(about)?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}
