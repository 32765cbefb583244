//! The certificates of the API server: a CA of the cluster's own that lives as long as its data
//! folder, and a serving certificate that is made anew at every start and never written down.

use std::{net::IpAddr, path::Path, sync::Arc};

use jiff::{SignedDuration, Timestamp, tz::TimeZone};
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType,
};
use rustls::{
    ServerConfig,
    pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer},
};

use crate::files::{self, FileError};

const CA_NAME: &str = "lockstep-ca";
const CA_DAYS: i64 = 3650;
/// Some TLS stacks refuse serving certificates that are valid for more than 398 days.
const SERVING_DAYS: i64 = 365;
/// Names under which clients inside and outside of pods reach the server.
const NAMES: [&str; 5] = [
    "localhost",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
];

/// Why there is no certificate to serve with.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// A file of the CA cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// A certificate cannot be made, or the CA's key makes no sense.
    #[error("cannot make the server's certificate")]
    Certificate(#[from] rcgen::Error),
    /// The TLS library refused the certificate.
    #[error("cannot use the server's certificate")]
    Config(#[from] rustls::Error),
}

/// The cluster's own certificate authority.
pub struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// A CA that is forgotten at exit.
    pub fn ephemeral(now: Timestamp) -> Result<Self, TlsError> {
        let key = KeyPair::generate()?;
        let params = ca_params(now)?;
        let pem = params.self_signed(&key)?.pem();
        Ok(Self { pem, issuer: Issuer::new(params, key) })
    }

    /// The CA of a data folder, made if there is none.
    pub fn open(folder: &Path, now: Timestamp) -> Result<Self, TlsError> {
        let (certificate_file, key_file) = (folder.join("ca.crt"), folder.join("ca.key"));
        let certificate = files::read_if_present(&certificate_file)?;
        let key = files::read_if_present(&key_file)?;
        if let (Some(pem), Some(key)) = (certificate, key) {
            return Self::from_pem(pem, &key, now);
        }
        let new = Self::ephemeral(now)?;
        files::private_folder(folder)?;
        files::write_private(&key_file, new.key_pem().as_bytes())?;
        files::write_private(&certificate_file, new.pem.as_bytes())?;
        Ok(new)
    }

    /// A CA that was kept somewhere: its certificate and its key.
    pub fn from_pem(pem: String, key: &str, now: Timestamp) -> Result<Self, TlsError> {
        // Only the name and the key of the CA go into what it signs; both are known.
        let issuer = Issuer::new(ca_params(now)?, KeyPair::from_pem(key)?);
        Ok(Self { pem, issuer })
    }

    /// The CA's key, to be kept secret.
    pub fn key_pem(&self) -> String {
        self.issuer.key().serialize_pem()
    }

    /// The CA's certificate, for clients to trust.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// What the server presents to clients: valid for the fixed names, `hosts` and `addresses`.
    pub fn server_config(
        &self,
        hosts: &[String],
        addresses: &[IpAddr],
        now: Timestamp,
    ) -> Result<Arc<ServerConfig>, TlsError> {
        let key = KeyPair::generate()?;
        let certificate = serving_params(hosts, addresses, now)?.signed_by(&key, &self.issuer)?;
        let chain: Vec<CertificateDer<'static>> = vec![certificate.der().clone()];
        let key = PrivateKeyDer::Pkcs8(PrivatePkcs8KeyDer::from(key.serialize_der()));
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let mut config = ServerConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_no_client_auth()
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Arc::new(config))
    }
}

fn ca_params(now: Timestamp) -> Result<CertificateParams, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name.push(DnType::CommonName, CA_NAME);
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![
        KeyUsagePurpose::KeyCertSign,
        KeyUsagePurpose::DigitalSignature,
        KeyUsagePurpose::CrlSign,
    ];
    set_validity(&mut params, now, CA_DAYS);
    Ok(params)
}

fn serving_params(
    hosts: &[String],
    addresses: &[IpAddr],
    now: Timestamp,
) -> Result<CertificateParams, rcgen::Error> {
    let mut names: Vec<String> = NAMES.iter().map(|&name| name.to_owned()).collect();
    names.extend(hosts.iter().cloned());
    names.sort();
    names.dedup();
    let mut params = CertificateParams::new(names)?;
    let fixed = [IpAddr::from([127, 0, 0, 1]), IpAddr::from([0, 0, 0, 0, 0, 0, 0, 1])];
    for &address in fixed.iter().chain(addresses.iter().filter(|address| !fixed.contains(address)))
    {
        params.subject_alt_names.push(SanType::IpAddress(address));
    }
    params.distinguished_name.push(DnType::CommonName, "lockstep-apiserver");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature, KeyUsagePurpose::KeyEncipherment];
    params.use_authority_key_identifier_extension = true;
    set_validity(&mut params, now, SERVING_DAYS);
    Ok(params)
}

/// Valid from yesterday, so that a client whose clock is a little behind accepts it.
fn set_validity(params: &mut CertificateParams, now: Timestamp, days: i64) {
    let date = |offset: i64| {
        let day = now
            .saturating_add(SignedDuration::from_hours(24 * offset))
            .unwrap_or(Timestamp::MAX)
            .to_zoned(TimeZone::UTC)
            .date();
        let month = u8::try_from(day.month()).expect("months are 1 to 12");
        let day_of_month = u8::try_from(day.day()).expect("days are 1 to 31");
        rcgen::date_time_ymd(i32::from(day.year()), month, day_of_month)
    };
    params.not_before = date(-1);
    params.not_after = date(days - 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn authority_survives_in_its_folder() {
        let folder = tempfile::tempdir().unwrap();
        let now = Timestamp::now();
        let first = Authority::open(folder.path(), now).unwrap();
        let again = Authority::open(folder.path(), now).unwrap();
        assert_eq!(first.pem(), again.pem());
        let hosts = ["my-node".to_owned(), "localhost".to_owned()];
        again.server_config(&hosts, &[IpAddr::from([10, 0, 0, 1])], now).unwrap();
    }

    #[test]
    fn broken_key_is_an_error_not_a_new_authority() {
        let folder = tempfile::tempdir().unwrap();
        Authority::open(folder.path(), Timestamp::now()).unwrap();
        std::fs::write(folder.path().join("ca.key"), "garbage").unwrap();
        assert!(Authority::open(folder.path(), Timestamp::now()).is_err());
    }
}
