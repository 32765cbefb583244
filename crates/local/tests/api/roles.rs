//! What users with fewer rights may do.

use axum::body::Body;
use http::Request;
use lockstep_local::{auth::User, embedded::Options, node::fake::FakeOptions};
use serde_json::{Value, json};

use super::support::{Answer, Api, CONFIG_MAPS, config_map};

const RBAC: &str = "/apis/rbac.authorization.k8s.io/v1";

/// Asks as somebody who is no administrator.
async fn ask(api: &Api, user: &str, method: &str, path: &str, body: &Value) -> Answer {
    let body = if body.is_null() { String::new() } else { body.to_string() };
    let request = Request::builder().method(method).uri(path);
    let request = request.header("content-type", "application/json");
    let mut request = request.body(Body::from(body)).unwrap();
    let groups = vec!["system:authenticated".to_owned()];
    request.extensions_mut().insert(User { name: user.to_owned(), groups, ..User::default() });
    api.send(request).await
}

fn binding(name: &str, role: &str, user: &str) -> Value {
    json!({
        "metadata": {"name": name},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role},
        "subjects": [{"kind": "User", "name": user}],
    })
}

#[tokio::test]
async fn who_has_no_role_is_refused_and_told_what_was_missing() {
    let api = Api::start().await;
    let refused = ask(&api, "ann", "GET", CONFIG_MAPS, &Value::Null).await;
    assert_eq!((refused.code, refused.json()["reason"].clone()), (403, json!("Forbidden")));
    assert_eq!(
        refused.message(),
        "configmaps is forbidden: User \"ann\" cannot list resource \"configmaps\" in API group \
         \"\" in the namespace \"default\""
    );
    let refused = ask(&api, "ann", "DELETE", "/api/v1/nodes/n", &Value::Null).await;
    assert_eq!(
        refused.message(),
        "nodes \"n\" is forbidden: User \"ann\" cannot delete resource \"nodes\" in API group \
         \"\" at the cluster scope"
    );
    let refused = ask(&api, "ann", "GET", "/metrics", &Value::Null).await;
    assert_eq!(
        (refused.code, refused.message().as_str()),
        (403, "forbidden: User \"ann\" cannot get path \"/metrics\"")
    );
    // Everybody who is known may look around and ask about themselves.
    for path in ["/version", "/apis", "/apis/batch/v1", "/openapi/v3"] {
        assert_eq!(ask(&api, "ann", "GET", path, &Value::Null).await.code, 200, "{path}");
    }
    let review = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let answer = ask(&api, "ann", "POST", path, &review).await;
    assert_eq!(answer.json()["status"], json!({"allowed": false}), "{}", answer.text);
}

#[tokio::test]
async fn a_role_lets_its_holders_do_what_it_says_and_no_more() {
    let api = Api::start().await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    assert_eq!(api.post(&bindings, &binding("b", "edit", "ann")).await.code, 201);
    let created = ask(&api, "ann", "POST", CONFIG_MAPS, &config_map("c")).await;
    assert_eq!(created.code, 201, "{}", created.text);
    // Through the role `view`, which `edit` is put together from.
    assert_eq!(ask(&api, "ann", "GET", CONFIG_MAPS, &Value::Null).await.code, 200);
    let elsewhere = CONFIG_MAPS.replace("default", "kube-system");
    assert_eq!(ask(&api, "ann", "GET", &elsewhere, &Value::Null).await.code, 403);
    assert_eq!(ask(&api, "ann", "GET", &bindings, &Value::Null).await.code, 403);
    let review = json!({"spec": {"user": "ann", "resourceAttributes": {
        "verb": "create", "resource": "configmaps", "namespace": "default"}}});
    let reviews = "/apis/authorization.k8s.io/v1/subjectaccessreviews";
    let answer = api.post(reviews, &review).await.json();
    assert_eq!(
        answer["status"],
        json!({"allowed": true, "reason":
            "RBAC: allowed by RoleBinding \"b/default\" of ClusterRole \"edit\" to User \"ann\""})
    );
    assert_eq!(api.delete(&format!("{bindings}/b"), "").await.code, 200);
    assert_eq!(ask(&api, "ann", "GET", CONFIG_MAPS, &Value::Null).await.code, 403);
}

#[tokio::test]
async fn nobody_gives_away_more_than_they_have() {
    let api = Api::start().await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    let roles = format!("{RBAC}/namespaces/default/roles");
    assert_eq!(api.post(&bindings, &binding("b", "admin", "ann")).await.code, 201);
    let mine = ask(&api, "ann", "POST", &bindings, &binding("c", "view", "bob")).await;
    assert_eq!(mine.code, 201, "{}", mine.text);
    let more = ask(&api, "ann", "POST", &bindings, &binding("d", "cluster-admin", "bob")).await;
    assert_eq!(more.code, 403, "{}", more.text);
    assert!(more.message().contains("is attempting to grant RBAC permissions not currently held"));
    let role = |verb: &str| {
        let rule = json!({"apiGroups": [""], "resources": ["nodes"], "verbs": [verb]});
        json!({"metadata": {"name": "r"}, "rules": [rule]})
    };
    let refused = ask(&api, "ann", "POST", &roles, &role("delete")).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        refused
            .message()
            .ends_with("{APIGroups:[\"\"], Resources:[\"nodes\"], Verbs:[\"delete\"]}")
    );
    assert_eq!(api.post(&roles, &role("delete")).await.code, 201, "administrators may");
}

#[tokio::test]
async fn roles_are_put_together_from_those_their_selectors_match() {
    // Controllers come with nodes.
    let fake_nodes = Some(FakeOptions::new(1));
    let api = Api::with_options(Options { fake_nodes, ..Options::default() }).await;
    let roles = format!("{RBAC}/clusterroles");
    let part = json!({
        "metadata": {"name": "more", "labels": {
            "rbac.authorization.k8s.io/aggregate-to-view": "true"}},
        "rules": [{"apiGroups": ["example.com"], "resources": ["things"], "verbs": ["get"]}],
    });
    assert_eq!(api.post(&roles, &part).await.code, 201);
    let has_it = async || {
        let view = api.get(&format!("{roles}/view")).await.json();
        view["rules"].as_array().unwrap().contains(&part["rules"][0])
    };
    for _ in 0..500 {
        if has_it().await {
            return;
        }
        tokio::time::sleep(std::time::Duration::from_millis(10)).await;
    }
    panic!("the role `view` never got the rules of the new one");
}
