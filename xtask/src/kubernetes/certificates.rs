//! Who is who in a control plane: a certificate authority, and what it signs.

use std::{fs, net::Ipv4Addr, path::Path};

use anyhow::{Context, Result};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};

/// Names by which clients inside and outside of pods reach the API server.
const NAMES: [&str; 4] =
    ["localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc"];

/// Addresses by which they do: loopback, and the first one of those of services.
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::LOCALHOST, Ipv4Addr::new(10, 0, 0, 1)];

/// A certificate authority.
pub(crate) struct Authority {
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate and its key.
pub(crate) struct Identity {
    pub(crate) certificate: String,
    pub(crate) key: String,
}

impl Authority {
    /// A new one; its certificate is in `ca.crt` of the folder.
    pub(crate) fn new(folder: &Path) -> Result<Self> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, "kubernetes-ca");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        write(&folder.join("ca.crt"), &params.self_signed(&key)?.pem())?;
        Ok(Self { issuer: Issuer::new(params, key) })
    }

    /// Writes what the API server shows to clients: `apiserver.crt` and `apiserver.key`.
    pub(crate) fn serve(&self, folder: &Path) -> Result<()> {
        let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
        let addresses = ADDRESSES.map(|address| SanType::IpAddress(address.into()));
        params.subject_alt_names.extend(addresses);
        params.distinguished_name.push(DnType::CommonName, "kube-apiserver");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        let identity = self.sign(params)?;
        write(&folder.join("apiserver.crt"), &identity.certificate)?;
        write(&folder.join("apiserver.key"), &identity.key)
    }

    /// What lets somebody call as `user`, who may be one of a group.
    pub(crate) fn client(&self, user: &str, group: Option<&str>) -> Result<Identity> {
        let mut params = CertificateParams::new(Vec::new())?;
        params.distinguished_name.push(DnType::CommonName, user);
        if let Some(group) = group {
            params.distinguished_name.push(DnType::OrganizationName, group);
        }
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        self.sign(params)
    }

    fn sign(&self, mut params: CertificateParams) -> Result<Identity> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

/// Writes the keys that sign and check the tokens of service accounts: `service-accounts.key` and
/// `service-accounts.pub`.
pub(crate) fn service_accounts(folder: &Path) -> Result<()> {
    let key = KeyPair::generate()?;
    write(&folder.join("service-accounts.key"), &key.serialize_pem())?;
    write(&folder.join("service-accounts.pub"), &key.public_key_pem())
}

/// Writes a file that only its owner may read.
pub(crate) fn write(path: &Path, text: &str) -> Result<()> {
    use std::{io::Write, os::unix::fs::OpenOptionsExt};
    let mut options = fs::File::options();
    let file = options.create(true).write(true).truncate(true).mode(0o600).open(path);
    file.and_then(|mut file| file.write_all(text.as_bytes()))
        .with_context(|| format!("cannot write {}", path.display()))
}
