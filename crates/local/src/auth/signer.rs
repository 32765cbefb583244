//! The key that tokens of service accounts are signed with.
//!
//! A token is a JWT with an ES256 signature. Only what this very key signed is ever read, so the
//! header needs no reading: it is compared with the one header there is, and nobody can choose
//! another algorithm.

mod verified;

use std::{path::Path, sync::Arc};

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use lockstep_api::tokens::Claims;
use rcgen::{KeyPair, PublicKeyData};
use ring::{
    digest,
    rand::SystemRandom,
    signature::{
        ECDSA_P256_SHA256_FIXED, ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, UnparsedPublicKey,
    },
};
use serde_json::{Value, json};

use self::verified::Verified;
use crate::files::{self, FileError};

/// How tokens are signed, as JSON Web Algorithms call it.
pub const ALGORITHM: &str = "ES256";

/// Why there is no key to sign with.
#[derive(Debug, thiserror::Error)]
pub enum SignerError {
    /// Its file cannot be read or written.
    #[error(transparent)]
    File(#[from] FileError),
    /// No key can be made, or the one in the file makes no sense.
    #[error("cannot use the key of service account tokens")]
    Key(#[from] rcgen::Error),
    /// The library that signs refused the key.
    #[error("cannot sign with the key of service account tokens: {0}")]
    Rejected(ring::error::KeyRejected),
}

/// Signs tokens and knows its own again.
pub struct Signer {
    key: EcdsaKeyPair,
    public: UnparsedPublicKey<Vec<u8>>,
    /// The name of the key.
    id: String,
    /// The header of every token, encoded.
    header: String,
    random: SystemRandom,
    verified: Verified,
}

impl std::fmt::Debug for Signer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Signer(hidden)")
    }
}

impl Signer {
    /// A key that is forgotten at exit.
    ///
    /// # Errors
    /// When the system cannot make keys.
    pub fn ephemeral() -> Result<Self, SignerError> {
        Self::of(&KeyPair::generate()?)
    }

    /// The key of a data folder, made if there is none.
    ///
    /// # Errors
    /// When the file cannot be used. A key that makes no sense is not replaced: somebody put it
    /// there.
    pub fn open(file: &Path) -> Result<Self, SignerError> {
        if let Some(pem) = files::read_if_present(file)? {
            return Self::of(&KeyPair::from_pem(&pem)?);
        }
        let key = KeyPair::generate()?;
        files::write_private(file, key.serialize_pem().as_bytes())?;
        Self::of(&key)
    }

    fn of(pair: &KeyPair) -> Result<Self, SignerError> {
        let random = SystemRandom::new();
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let key = EcdsaKeyPair::from_pkcs8(algorithm, pair.serialized_der(), &random)
            .map_err(SignerError::Rejected)?;
        let public =
            UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, pair.public_key_raw().to_vec());
        let id = digest::digest(&digest::SHA256, &pair.subject_public_key_info());
        let id = URL_SAFE_NO_PAD.encode(id);
        let header = URL_SAFE_NO_PAD.encode(format!(r#"{{"alg":"{ALGORITHM}","kid":"{id}"}}"#));
        Ok(Self { key, public, id, header, random, verified: Verified::default() })
    }

    /// The public half of the key as a set of JSON Web Keys, by which others can check tokens.
    pub fn public_keys(&self) -> Value {
        // An uncompressed point: a mark, then both coordinates.
        let (x, y) = self.public.as_ref().get(1..).unwrap_or_default().split_at(32);
        let encoded = |part: &[u8]| URL_SAFE_NO_PAD.encode(part);
        json!({"keys": [{
            "use": "sig",
            "kty": "EC",
            "kid": self.id,
            "crv": "P-256",
            "alg": ALGORITHM,
            "x": encoded(x),
            "y": encoded(y),
        }]})
    }

    /// The token that says `claims`.
    ///
    /// # Panics
    /// When the operating system has no randomness to give: nothing safe could follow.
    pub fn sign(&self, claims: &Claims) -> String {
        let claims = serde_json::to_vec(claims).expect("claims are texts and numbers");
        let mut token = format!("{}.{}", self.header, URL_SAFE_NO_PAD.encode(claims));
        let signature = self.key.sign(&self.random, token.as_bytes());
        let signature = signature.expect("the system's random source works");
        token.push('.');
        URL_SAFE_NO_PAD.encode_string(signature, &mut token);
        token
    }

    /// What a token says, if this key signed it.
    pub fn read(&self, token: &str) -> Option<Arc<Claims>> {
        self.verified.read(token, || self.verify(token))
    }

    fn verify(&self, token: &str) -> Option<Claims> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if header != self.header {
            return None;
        }
        let signature = URL_SAFE_NO_PAD.decode(signature).ok()?;
        self.public.verify(signed.as_bytes(), &signature).ok()?;
        serde_json::from_slice(&URL_SAFE_NO_PAD.decode(claims).ok()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use jiff::Timestamp;
    use lockstep_api::tokens::{Grant, Reference};

    use super::*;

    fn claims() -> Claims {
        let grant = Grant {
            namespace: "red".to_owned(),
            account: Reference { name: "bot".to_owned(), uid: "1".to_owned() },
            bound: None,
            audiences: vec!["us".to_owned()],
            seconds: 600,
        };
        Claims::new(grant, "id".to_owned(), Timestamp::from_second(1_000_000).unwrap())
    }

    #[test]
    fn only_what_this_key_signed_is_read() {
        let signer = Signer::ephemeral().unwrap();
        let token = signer.sign(&claims());
        assert_eq!(signer.read(&token).as_deref(), Some(&claims()));
        assert_eq!(signer.read(&token).as_deref(), Some(&claims()), "and again");
        let parts: Vec<&str> = token.split('.').collect();
        let [header, said, signature] = parts[..] else { panic!("{token}") };
        let none = URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#);
        let other = Signer::ephemeral().unwrap().sign(&claims());
        let changed = serde_json::to_string(&claims()).unwrap().replace("red", "kube-system");
        let changed = URL_SAFE_NO_PAD.encode(changed);
        let cases = [
            ("another key", other),
            ("other claims", format!("{header}.{changed}.{signature}")),
            ("no algorithm", format!("{none}.{said}.{signature}")),
            ("no signature", format!("{none}.{said}.")),
            ("cut off", token[..token.len() - 2].to_owned()),
            ("no token", "abc".to_owned()),
            ("nothing", String::new()),
        ];
        for (name, token) in cases {
            assert_eq!(signer.read(&token), None, "{name}");
        }
    }

    /// What anybody does who knows nothing but what is published.
    #[test]
    fn tokens_can_be_checked_with_the_published_key() {
        let signer = Signer::ephemeral().unwrap();
        let token = signer.sign(&claims());
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let header = URL_SAFE_NO_PAD.decode(signed.split_once('.').unwrap().0).unwrap();
        let header: Value = serde_json::from_slice(&header).unwrap();
        let keys = signer.public_keys();
        let key = &keys["keys"][0];
        assert_eq!((&header["kid"], &header["alg"]), (&key["kid"], &key["alg"]));
        let coordinate = |name: &str| URL_SAFE_NO_PAD.decode(key[name].as_str().unwrap()).unwrap();
        let point = [vec![4], coordinate("x"), coordinate("y")].concat();
        let signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        let public = UnparsedPublicKey::new(&ECDSA_P256_SHA256_FIXED, point);
        public.verify(signed.as_bytes(), &signature).unwrap();
    }

    #[test]
    fn the_key_is_kept_in_its_file_and_closed_to_others() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sa.key");
        let token = Signer::open(&file).unwrap().sign(&claims());
        assert_eq!(Signer::open(&file).unwrap().read(&token).as_deref(), Some(&claims()));
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&file, "garbage").unwrap();
        assert!(Signer::open(&file).is_err(), "a broken key is not replaced");
    }
}
