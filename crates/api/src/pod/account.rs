//! What the ServiceAccount plugin does to a new pod: it can prove to the API server who it is.

use serde_json::{Value, json};

use super::{object_mut, objects_mut};
use crate::{
    json::{self, at, list},
    strategy::Json,
    tokens::SECONDS_IN_PODS,
};

/// Where programs look for the token, by agreement.
pub const TOKEN_FOLDER: &str = "/var/run/secrets/kubernetes.io/serviceaccount";

/// The ConfigMap of every namespace that has the certificate of the cluster's authority.
pub const ROOT_CA: &str = "kube-root-ca.crt";

/// What the names of the volumes with tokens begin with.
pub const TOKEN_VOLUME: &str = "kube-api-access-";

/// What generated names are made of: nothing that makes words.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Gives a new pod what its account brings along: the volume with the token, unless one of them
/// does not want it, and the account's pull secrets. `uid` is the pod's.
pub fn add_account(pod: &mut Json, account: &Json, uid: &str) {
    let Some(spec) = object_mut(pod, "spec") else { return };
    let wish = |of: &Json| at(of, &["automountServiceAccountToken"]).and_then(Value::as_bool);
    if wish(spec).or_else(|| wish(account)).unwrap_or(true) {
        mount_token(spec, uid);
    }
    let own = list(account, &["imagePullSecrets"]);
    if list(spec, &["imagePullSecrets"]).is_empty() && !own.is_empty() {
        spec.insert("imagePullSecrets".to_owned(), own.into());
    }
}

/// Mounts the token in every container that has nothing else at its place.
fn mount_token(spec: &mut Json, uid: &str) {
    let name = |volume: &Value| volume.get("name").and_then(Value::as_str).map(str::to_owned);
    let volumes = list(spec, &["volumes"]).iter().filter_map(name);
    let known = volumes.into_iter().find(|name| name.starts_with(TOKEN_VOLUME));
    let volume = known.clone().unwrap_or_else(|| format!("{TOKEN_VOLUME}{}", suffix(uid)));
    let mut is_needed = false;
    for kind in ["initContainers", "containers"] {
        for container in objects_mut(spec, kind) {
            let mounts = list(container, &["volumeMounts"]);
            let is_there = |mount: &Value| mount.get("mountPath") == Some(&TOKEN_FOLDER.into());
            if mounts.iter().any(is_there) {
                continue;
            }
            let mount = json!({"name": volume, "readOnly": true, "mountPath": TOKEN_FOLDER});
            push(container, "volumeMounts", mount);
            is_needed = true;
        }
    }
    if is_needed && known.is_none() {
        push(spec, "volumes", token_volume(&volume));
    }
}

fn push(object: &mut Json, key: &str, value: Value) {
    json::set_default(object, key, json!([]));
    if let Some(list) = object.get_mut(key).and_then(Value::as_array_mut) {
        list.push(value);
    }
}

fn token_volume(name: &str) -> Value {
    json!({
        "name": name,
        "projected": {
            "defaultMode": 0o644,
            "sources": [
                {"serviceAccountToken": {"expirationSeconds": SECONDS_IN_PODS, "path": "token"}},
                {"configMap": {
                    "name": ROOT_CA,
                    "items": [{"key": "ca.crt", "path": "ca.crt"}],
                }},
                {"downwardAPI": {"items": [{
                    "path": "namespace",
                    "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"},
                }]}},
            ],
        },
    })
}

/// Five letters made from the end of a uid: names of pods are made from other parts of it.
fn suffix(uid: &str) -> String {
    let last = uid.bytes().rev().filter(u8::is_ascii_alphanumeric).take(10).collect::<Vec<u8>>();
    let letter = |pair: &[u8]| {
        let number = pair.iter().fold(0, |sum, &byte| sum * 16 + usize::from(byte));
        char::from(ALPHABET[number % ALPHABET.len()])
    };
    last.chunks(2).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const UID: &str = "8f14e45f-ceea-467f-a7c2-0123456789ab";

    fn object(value: Value) -> Json {
        value.as_object().unwrap().clone()
    }

    fn admitted(spec: Value, account: Value) -> Value {
        let mut pod = object(json!({"spec": spec}));
        add_account(&mut pod, &object(account), UID);
        pod["spec"].clone()
    }

    #[test]
    fn every_container_finds_the_token_where_programs_look() {
        let spec = json!({"initContainers": [{"name": "i"}], "containers": [{"name": "c"}]});
        let got = admitted(spec, json!({}));
        let name = got["volumes"][0]["name"].as_str().unwrap().to_owned();
        assert!(name.starts_with("kube-api-access-") && name.len() == 21, "{name}");
        let mount = json!({"name": name, "readOnly": true, "mountPath": TOKEN_FOLDER});
        assert_eq!(got["initContainers"][0]["volumeMounts"], json!([mount]));
        assert_eq!(got["containers"][0]["volumeMounts"], json!([mount]));
        let sources = got["volumes"][0]["projected"]["sources"].as_array().unwrap();
        assert_eq!(sources.len(), 3);
        assert_eq!(sources[0]["serviceAccountToken"]["expirationSeconds"], 3607);
        let again = admitted(got.clone(), json!({}));
        assert_eq!(again, got, "nothing is added twice");
    }

    #[test]
    fn pods_and_accounts_may_do_without() {
        let no = json!({"automountServiceAccountToken": false});
        let yes = json!({"automountServiceAccountToken": true});
        let spec = |wish: &Value| {
            let mut spec = json!({"containers": [{"name": "c"}]});
            spec.as_object_mut().unwrap().extend(wish.as_object().unwrap().clone());
            spec
        };
        let cases = [
            ("nobody says", json!({}), json!({}), true),
            ("the account does not want it", json!({}), no.clone(), false),
            ("the pod does not", no.clone(), yes.clone(), false),
            ("the pod has the last word", yes, no, true),
        ];
        for (name, pod, account, want) in cases {
            let got = admitted(spec(&pod), account);
            assert_eq!(got.get("volumes").is_some(), want, "{name}");
        }
    }

    #[test]
    fn what_is_there_already_stays() {
        let other = json!({"name": "mine", "mountPath": TOKEN_FOLDER});
        let got = admitted(
            json!({"containers": [{"volumeMounts": [other]}], "volumes": [{"name": "mine"}]}),
            json!({"imagePullSecrets": [{"name": "s"}]}),
        );
        assert_eq!(got["volumes"], json!([{"name": "mine"}]), "nobody needs the volume");
        assert_eq!(got["imagePullSecrets"], json!([{"name": "s"}]));
        let own = json!({"name": "kube-api-access-own"});
        let got = admitted(json!({"containers": [{}], "volumes": [own]}), json!({}));
        assert_eq!(got["volumes"].as_array().unwrap().len(), 1);
        assert_eq!(got["containers"][0]["volumeMounts"][0]["name"], "kube-api-access-own");
    }
}
