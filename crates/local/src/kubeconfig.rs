//! The kubeconfig through which kubectl and every client library find the cluster.

use std::{net::SocketAddr, path::Path};

use base64::{Engine, engine::general_purpose::STANDARD};

use crate::files::{self, FileError};

/// How to reach one cluster.
pub struct Kubeconfig<'a> {
    /// Names the cluster, the user and the context, so that several files can be merged.
    pub name: &'a str,
    /// Where the server listens.
    pub address: SocketAddr,
    /// The certificate to trust.
    pub ca_pem: &'a str,
    /// The bearer token.
    pub token: &'a str,
}

impl Kubeconfig<'_> {
    /// The server's URL.
    pub fn server(&self) -> String {
        // A wildcard address is one to listen on, not one to connect to.
        let mut address = self.address;
        if address.ip().is_unspecified() {
            address.set_ip(if address.is_ipv4() {
                [127, 0, 0, 1].into()
            } else {
                std::net::Ipv6Addr::LOCALHOST.into()
            });
        }
        format!("https://{address}")
    }

    /// The file's text.
    pub fn to_yaml(&self) -> String {
        // Every JSON string is a YAML string: quoting keeps odd names from becoming something else.
        let quoted = |text: &str| serde_json::Value::from(text).to_string();
        let name = quoted(self.name);
        let server = quoted(&self.server());
        let ca = STANDARD.encode(self.ca_pem);
        let token = quoted(self.token);
        format!(
            "apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             - name: {name}\n\
             \x20 cluster:\n\
             \x20   server: {server}\n\
             \x20   certificate-authority-data: {ca}\n\
             users:\n\
             - name: {name}\n\
             \x20 user:\n\
             \x20   token: {token}\n\
             contexts:\n\
             - name: {name}\n\
             \x20 context:\n\
             \x20   cluster: {name}\n\
             \x20   user: {name}\n\
             \x20   namespace: default\n\
             current-context: {name}\n"
        )
    }

    /// Writes the file, mode 0600, replacing one that is there: the port may have changed.
    pub fn write(&self, path: &Path) -> Result<(), FileError> {
        files::write_private(path, self.to_yaml().as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clients_can_read_it() {
        let config = Kubeconfig {
            name: "lockstep",
            address: "127.0.0.1:6443".parse().unwrap(),
            ca_pem: "-----BEGIN CERTIFICATE-----",
            token: "t0ken",
        };
        let read = kube::config::Kubeconfig::from_yaml(&config.to_yaml()).unwrap();
        assert_eq!(read.current_context.as_deref(), Some("lockstep"));
        let cluster = read.clusters[0].cluster.as_ref().unwrap();
        assert_eq!(cluster.server.as_deref(), Some("https://127.0.0.1:6443"));
        assert!(cluster.certificate_authority_data.is_some());
        let context = read.contexts[0].context.as_ref().unwrap();
        assert_eq!(context.namespace.as_deref(), Some("default"));
    }

    #[test]
    fn wildcard_addresses_are_reached_through_loopback() {
        for (listen, server) in
            [("0.0.0.0:1", "https://127.0.0.1:1"), ("[::]:1", "https://[::1]:1")]
        {
            let address = listen.parse().unwrap();
            let config = Kubeconfig { name: "x", address, ca_pem: "", token: "" };
            assert_eq!(config.server(), server);
        }
    }
}
