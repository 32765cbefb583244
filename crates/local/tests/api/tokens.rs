//! Service accounts: their tokens, who they are with them, and what pods get of them.

use base64::{Engine, engine::general_purpose::STANDARD};
use lockstep_local::{embedded::Options, node::fake::FakeOptions};
use serde_json::{Value, json};

use super::support::{Answer, Api, PODS, pod, request};

const ACCOUNTS: &str = "/api/v1/namespaces/default/serviceaccounts";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";

async fn token(api: &Api, account: &str, spec: Value) -> Answer {
    api.post(&format!("{ACCOUNTS}/{account}/token"), &json!({"spec": spec})).await
}

fn secret(answer: &Answer) -> String {
    assert_eq!(answer.code, 201, "{}", answer.text);
    answer.json()["status"]["token"].as_str().unwrap().to_owned()
}

/// Asks over the network, so to say: with nothing but a token.
async fn ask(api: &Api, token: &str, method: &str, path: &str, body: &str) -> Answer {
    let bearer = format!("Bearer {token}");
    let headers = [
        ("authorization", bearer.as_str()),
        ("host", "localhost"),
        ("content-type", "application/json"),
    ];
    let mut request = request(method, path, &headers, body);
    request.extensions_mut().clear();
    api.send(request).await
}

async fn whoami(api: &Api, token: &str) -> Answer {
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    ask(api, token, "POST", path, "{}").await
}

#[tokio::test]
async fn a_token_says_who_comes_with_it() {
    let api = Api::start().await;
    let answer = token(&api, "default", json!({})).await;
    let issued = answer.json();
    assert_eq!(issued["kind"], "TokenRequest");
    assert_eq!(
        issued["spec"],
        json!({"audiences": [ISSUER], "expirationSeconds": 3600, "boundObjectRef": null})
    );
    assert_eq!(issued["metadata"]["name"], "default");
    let answer = whoami(&api, &secret(&answer)).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    let user = &answer.json()["status"]["userInfo"];
    assert_eq!(user["username"], "system:serviceaccount:default:default");
    assert_eq!(user["uid"], issued["metadata"]["uid"]);
    assert_eq!(
        user["groups"],
        json!(["system:serviceaccounts", "system:serviceaccounts:default", "system:authenticated"])
    );
    let id = user["extra"]["authentication.kubernetes.io/credential-id"][0].as_str().unwrap();
    assert!(id.starts_with("JTI="), "{id}");
}

#[tokio::test]
async fn accounts_learn_by_which_key_their_tokens_are_signed() {
    let api = Api::start().await;
    let made = secret(&token(&api, "default", json!({})).await);
    let issuer = ask(&api, &made, "GET", "/.well-known/openid-configuration", "").await;
    assert_eq!(issuer.code, 200, "{}", issuer.text);
    assert_eq!(issuer.json()["issuer"], "https://kubernetes.default.svc.cluster.local");
    let uri = issuer.json()["jwks_uri"].as_str().unwrap().to_owned();
    assert!(uri.ends_with("/openid/v1/jwks"), "{uri}");
    let keys = ask(&api, &made, "GET", "/openid/v1/jwks", "").await;
    assert_eq!(keys.header("content-type"), "application/jwk-set+json");
    assert_eq!(keys.json()["keys"][0]["alg"], "ES256");
}

#[tokio::test]
async fn an_account_may_do_what_its_roles_say() {
    let api = Api::start().await;
    let token = secret(&token(&api, "default", json!({})).await);
    let refused = ask(&api, &token, "GET", PODS, "").await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            403,
            "pods is forbidden: User \"system:serviceaccount:default:default\" cannot list \
             resource \"pods\" in API group \"\" in the namespace \"default\""
        )
    );
    let binding = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
        "subjects": [{"kind": "ServiceAccount", "name": "default", "namespace": "default"}],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/namespaces/default/rolebindings";
    assert_eq!(api.post(bindings, &binding).await.code, 201);
    assert_eq!(ask(&api, &token, "GET", PODS, "").await.code, 200, "the role counts at once");
    assert_eq!(ask(&api, &token, "DELETE", &format!("{PODS}/x"), "").await.code, 403);
    assert_eq!(api.delete(&format!("{bindings}/b"), "").await.code, 200);
    assert_eq!(
        ask(&api, &token, "GET", PODS, "").await.code,
        403,
        "and no longer than it is there"
    );
}

#[tokio::test]
async fn what_cannot_be_is_refused_in_upstreams_words() {
    let api = Api::start().await;
    assert_eq!(api.post(PODS, &pod("p")).await.code, 201);
    let other = json!({"metadata": {"name": "other"}});
    assert_eq!(api.post(ACCOUNTS, &other).await.code, 201);
    let bind = |kind: &str, name: &str, uid: &str| {
        let api_version = if kind == "Job" { "batch/v1" } else { "v1" };
        json!({"boundObjectRef": {"apiVersion": api_version, "kind": kind, "name": name, "uid": uid}})
    };
    let cases = [
        (
            "default",
            json!({"expirationSeconds": 599}),
            422,
            "TokenRequest.authentication.k8s.io \"\" is invalid: spec.expirationSeconds: Invalid \
             value: 599: may not specify a duration less than 10 minutes",
        ),
        ("nope", json!({}), 404, "serviceaccounts \"nope\" not found"),
        ("default", bind("Pod", "nope", ""), 404, "pods \"nope\" not found"),
        (
            "other",
            bind("Pod", "p", ""),
            400,
            "cannot bind token for serviceaccount \"other\" to pod running with different \
             serviceaccount name.",
        ),
        (
            "default",
            bind("Pod", "p", "x"),
            409,
            "Operation cannot be fulfilled on Pod \"p\": the UID in the bound object reference \
             (x) does not match the UID in record. The object might have been deleted and then \
             recreated",
        ),
        (
            "default",
            bind("Job", "j", ""),
            400,
            "cannot bind token to object of type batch/v1, Kind=Job",
        ),
    ];
    for (account, spec, code, message) in cases {
        let answer = token(&api, account, spec).await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message));
    }
    let path = format!("{ACCOUNTS}/default/token");
    let body = json!({"metadata": {"name": "other"}});
    let answer = api.post(&path, &body).await;
    let want = "metadata.name: Invalid value: \"other\": must match the service account name if \
                specified";
    assert!(answer.message().contains(want), "{}", answer.text);
    assert_eq!(api.get(&path).await.code, 405);
}

#[tokio::test]
async fn a_token_ends_with_what_it_is_bound_to() {
    let api = Api::start().await;
    let created = api.post(PODS, &pod("p")).await.json();
    let bound = json!({"boundObjectRef": {"apiVersion": "v1", "kind": "Pod", "name": "p"}});
    let of_pod = secret(&token(&api, "default", bound).await);
    let user = whoami(&api, &of_pod).await.json()["status"]["userInfo"].clone();
    let extra = |name: &str| user["extra"][format!("authentication.kubernetes.io/{name}")].clone();
    assert_eq!(extra("pod-name"), json!(["p"]));
    assert_eq!(extra("pod-uid"), json!([created["metadata"]["uid"]]));
    assert_eq!(api.delete(&format!("{PODS}/p"), "").await.code, 200);
    let refused = whoami(&api, &of_pod).await;
    assert_eq!((refused.code, refused.message().as_str()), (401, "Unauthorized"));
    let bot = json!({"metadata": {"name": "bot"}});
    assert_eq!(api.post(ACCOUNTS, &bot).await.code, 201);
    let of_account = secret(&token(&api, "bot", json!({})).await);
    assert_eq!(whoami(&api, &of_account).await.code, 201);
    assert_eq!(api.delete(&format!("{ACCOUNTS}/bot"), "").await.code, 200);
    assert_eq!(whoami(&api, &of_account).await.code, 401);
    assert_eq!(api.post(ACCOUNTS, &bot).await.code, 201);
    assert_eq!(whoami(&api, &of_account).await.code, 401, "another one of the same name");
    let review = api.post(REVIEWS, &json!({"spec": {"token": of_account}})).await.json();
    let error = review["status"]["error"].as_str().unwrap();
    assert!(error.contains("does not match claim"), "{review}");
    for nonsense in ["", "x", "a.b.c"] {
        assert_eq!(whoami(&api, nonsense).await.code, 401, "{nonsense:?}");
    }
}

#[tokio::test]
async fn reviews_tell_whom_a_token_is_for() {
    let api = Api::start().await;
    let vault = secret(&token(&api, "default", json!({"audiences": ["vault"]})).await);
    let review = async |token: &str, audiences: Value| {
        let body = json!({"spec": {"token": token, "audiences": audiences}});
        api.post(REVIEWS, &body).await.json()["status"].clone()
    };
    let status = review(&vault, json!(["x", "vault"])).await;
    assert_eq!(status["authenticated"], true);
    assert_eq!(status["audiences"], json!(["vault"]));
    assert_eq!(status["user"]["username"], "system:serviceaccount:default:default");
    let status = review(&vault, json!([])).await;
    assert_eq!(status.get("authenticated"), None);
    let why =
        format!("token audiences [\"vault\"] is invalid for the target audiences [\"{ISSUER}\"]");
    assert!(status["error"].as_str().unwrap().contains(&why), "{status}");
    assert_eq!(whoami(&api, &vault).await.code, 401, "the server is not the vault");
    let own = secret(&token(&api, "default", json!({})).await);
    assert_eq!(review(&own, json!([])).await["audiences"], json!([ISSUER]));
    let empty = api.post(REVIEWS, &json!({"spec": {}})).await;
    assert_eq!(empty.code, 400, "{}", empty.text);
}

#[tokio::test]
async fn every_pod_has_an_account_that_is_there() {
    let api = Api::start().await;
    let created = api.post(PODS, &pod("p")).await.json();
    let volume = &created["spec"]["volumes"][0];
    let name = volume["name"].as_str().unwrap();
    assert!(name.starts_with("kube-api-access-"), "{created}");
    let mount = &created["spec"]["containers"][0]["volumeMounts"][0];
    assert_eq!(mount["mountPath"], "/var/run/secrets/kubernetes.io/serviceaccount");
    assert_eq!(mount["readOnly"], true);
    let mut other = pod("q");
    other["spec"]["serviceAccountName"] = "nope".into();
    let refused = api.post(PODS, &other).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (
            403,
            "pods \"q\" is forbidden: error looking up service account default/nope: \
             serviceaccount \"nope\" not found"
        )
    );
    other["spec"]["serviceAccountName"] = "default".into();
    other["spec"]["automountServiceAccountToken"] = false.into();
    let created = api.post(PODS, &other).await.json();
    assert_eq!(created["spec"].get("volumes"), None, "{created}");
}

#[tokio::test]
async fn a_page_that_was_given_a_token_may_use_it() {
    let api = Api::start().await;
    let token = secret(&token(&api, "default", json!({})).await);
    let bearer = format!("Bearer {token}");
    for header in [("origin", "http://localhost"), ("host", "proxy.example")] {
        let headers = [("authorization", bearer.as_str()), header];
        let mut request = request("GET", "/apis", &headers, "");
        request.extensions_mut().clear();
        let answer = api.send(request).await;
        assert_eq!(answer.code, 200, "{}", answer.text);
    }
}

#[tokio::test]
async fn a_secret_gets_the_token_it_asks_for_and_goes_with_the_account() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let api = Box::pin(with_a_node()).await;
    let asked = |name: &str, account: &str| {
        let annotations = json!({"kubernetes.io/service-account.name": account});
        let metadata = json!({"name": name, "annotations": annotations});
        json!({"type": "kubernetes.io/service-account-token", "metadata": metadata})
    };
    let bot = json!({"metadata": {"name": "bot"}});
    let bot = api.post(ACCOUNTS, &bot).await.json();
    assert_eq!(api.post(SECRETS, &asked("t", "bot")).await.code, 201);
    let filled = api.until(&format!("{SECRETS}/t"), |it| it["data"]["token"].is_string()).await;
    assert!(filled["data"]["ca.crt"].is_string(), "{filled}");
    assert_eq!(filled["data"]["namespace"], "ZGVmYXVsdA==");
    let uid = &filled["metadata"]["annotations"]["kubernetes.io/service-account.uid"];
    assert_eq!(*uid, bot["metadata"]["uid"]);
    let token = STANDARD.decode(filled["data"]["token"].as_str().unwrap()).unwrap();
    let token = String::from_utf8(token).unwrap();
    let user = whoami(&api, &token).await.json();
    assert_eq!(user["status"]["userInfo"]["username"], "system:serviceaccount:default:bot");
    // What somebody takes out comes back.
    let emptied = json!({"data": null}).to_string();
    let merge = [("content-type", "application/merge-patch+json")];
    assert_eq!(api.with("PATCH", &format!("{SECRETS}/t"), &merge, &emptied).await.code, 200);
    api.until(&format!("{SECRETS}/t"), |it| it["data"]["token"].is_string()).await;
    // One of an account that is not there goes, and so does one whose account goes.
    assert_eq!(api.post(SECRETS, &asked("lost", "nobody")).await.code, 201);
    api.until(&format!("{SECRETS}/lost"), |it| it["code"] == 404).await;
    assert_eq!(api.with("DELETE", &format!("{ACCOUNTS}/bot"), &[], "").await.code, 200);
    api.until(&format!("{SECRETS}/t"), |it| it["code"] == 404).await;
    assert_eq!(whoami(&api, &token).await.code, 401);
}

#[tokio::test]
async fn a_secret_that_cannot_be_filled_holds_up_no_other() {
    const SECRETS: &str = "/api/v1/namespaces/default/secrets";
    let api = Box::pin(with_a_node()).await;
    let asked = |name: &str, more: Value| {
        let annotations = json!({"kubernetes.io/service-account.name": "default"});
        let metadata = json!({"name": name, "annotations": annotations});
        let mut secret =
            json!({"type": "kubernetes.io/service-account-token", "metadata": metadata});
        secret.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        secret
    };
    // So many that trying each a few times would take longer than anybody waits here.
    for index in 0..14 {
        let fixed = asked(&format!("fixed-{index}"), json!({"immutable": true}));
        assert_eq!(api.post(SECRETS, &fixed).await.code, 201);
    }
    // What is empty is filled; a namespace that is named stays.
    let data = json!({"token": "", "namespace": "eA==", "ca.crt": "eA=="});
    assert_eq!(api.post(SECRETS, &asked("last", json!({"data": data}))).await.code, 201);
    let is_filled = |it: &Value| it["data"]["token"].as_str().is_some_and(|it| !it.is_empty());
    let filled = api.until(&format!("{SECRETS}/last"), is_filled).await;
    assert_eq!(filled["data"]["namespace"], "eA==");
    assert_ne!(filled["data"]["ca.crt"], "eA==");
}

/// A cluster in which pods run, so to say: only such ones have what pods need.
async fn with_a_node() -> Api {
    let fake_nodes = Some(FakeOptions::new(1));
    Api::with_options(Options { fake_nodes, ..Options::default() }).await
}

#[tokio::test]
async fn a_namespace_has_what_pods_need_before_they_come() {
    let api = Box::pin(with_a_node()).await;
    for index in 0..20 {
        let name = format!("n{index}");
        let space = json!({"metadata": {"name": name}});
        assert_eq!(api.post("/api/v1/namespaces", &space).await.code, 201);
        let pods = format!("/api/v1/namespaces/{name}/pods");
        let created = api.post(&pods, &pod("p")).await;
        assert_eq!(created.code, 201, "{}", created.text);
        let map = format!("/api/v1/namespaces/{name}/configmaps/kube-root-ca.crt");
        let map = api.get(&map).await.json();
        let pem = map["data"]["ca.crt"].as_str().unwrap();
        assert!(pem.starts_with("-----BEGIN CERTIFICATE-----"), "{map}");
    }
}

#[tokio::test]
async fn the_certificate_is_put_back() {
    let api = Box::pin(with_a_node()).await;
    let path = "/api/v1/namespaces/default/configmaps/kube-root-ca.crt";
    let before = api.get(path).await.json()["data"].clone();
    let is_back = async || {
        for _ in 0..200 {
            if api.get(path).await.json()["data"] == before {
                return true;
            }
            tokio::time::sleep(std::time::Duration::from_millis(25)).await;
        }
        false
    };
    assert_eq!(api.delete(path, "").await.code, 200);
    assert!(is_back().await, "deleted");
    assert_eq!(api.patch(path, "merge", r#"{"data": {"ca.crt": "x"}}"#).await.code, 200);
    assert!(is_back().await, "changed");
}
