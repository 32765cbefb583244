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

/// Lets somebody do what a rule says, in `default`.
async fn grant(api: &Api, user: &str, rule: Value) {
    let (roles, name) = (format!("{RBAC}/clusterroles"), format!("of-{user}"));
    let role = json!({"metadata": {"name": name}, "rules": [rule]});
    assert_eq!(api.post(&roles, &role).await.code, 201);
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    assert_eq!(api.post(&bindings, &binding(&name, &name, user)).await.code, 201);
}

fn rule(group: &str, resource: &str, verbs: &[&str], names: &[&str]) -> Value {
    json!({"apiGroups": [group], "resources": [resource], "verbs": verbs, "resourceNames": names})
}

#[tokio::test]
async fn who_may_change_objects_makes_no_new_ones() {
    let api = Api::start().await;
    let apply = async |user: &str, name: &str| {
        let body = config_map(name).to_string();
        let path = format!("{CONFIG_MAPS}/{name}?fieldManager=m&force=true");
        let request = Request::builder().method("PATCH").uri(path);
        let request = request.header("content-type", "application/apply-patch+yaml");
        let mut request = request.body(Body::from(body)).unwrap();
        request.extensions_mut().insert(User { name: user.to_owned(), ..User::default() });
        api.send(request).await
    };
    api.config_maps(&["there"]).await;
    grant(&api, "ann", rule("", "configmaps", &["patch"], &[])).await;
    assert_eq!(apply("ann", "there").await.code, 200);
    let refused = apply("ann", "new").await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert_eq!(
        refused.message(),
        "configmaps \"new\" is forbidden: User \"ann\" cannot create resource \"configmaps\" in \
         API group \"\" in the namespace \"default\""
    );
    grant(&api, "bob", rule("", "configmaps", &["patch", "create"], &[])).await;
    assert_eq!(apply("bob", "new").await.code, 201);

    // A Lease that is not there is created by an update.
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    let lease = json!({"metadata": {"name": "l"}, "spec": {}});
    grant(&api, "cid", rule("coordination.k8s.io", "leases", &["update"], &[])).await;
    let refused = ask(&api, "cid", "PUT", &format!("{leases}/l"), &lease).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert_eq!(api.put(&format!("{leases}/l"), &lease).await.code, 201);
    let lease = api.get(&format!("{leases}/l")).await.json();
    assert_eq!(ask(&api, "cid", "PUT", &format!("{leases}/l"), &lease).await.code, 200);
}

#[tokio::test]
async fn who_may_see_one_object_may_list_and_watch_it() {
    let api = Api::start().await;
    api.config_maps(&["mine", "other"]).await;
    grant(&api, "ann", rule("", "configmaps", &["get", "list", "watch"], &["mine"])).await;
    let list = |selector: &str| format!("{CONFIG_MAPS}?fieldSelector={selector}");
    let mine = ask(&api, "ann", "GET", &list("metadata.name%3Dmine"), &Value::Null).await;
    assert_eq!(mine.names(), ["mine"], "{}", mine.text);
    for selector in ["metadata.name%3Dother", "metadata.name!%3Dmine", ""] {
        let refused = ask(&api, "ann", "GET", &list(selector), &Value::Null).await;
        assert_eq!(refused.code, 403, "{selector}: {}", refused.text);
    }
}

#[tokio::test]
async fn connections_to_pods_take_the_right_to_create_them_and_no_other() {
    let api = Api::start().await;
    grant(&api, "ann", rule("", "pods/exec", &["get"], &[])).await;
    grant(&api, "bob", rule("", "pods/exec", &["create"], &[])).await;
    let path = "/api/v1/namespaces/default/pods/p/exec?command=true&stdout=true";
    let refused = ask(&api, "ann", "GET", path, &Value::Null).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(refused.message().contains("cannot create resource \"pods/exec\""));
    let no_pod = ask(&api, "bob", "GET", path, &Value::Null).await;
    assert_ne!(no_pod.code, 403, "{}", no_pod.text);
}

#[tokio::test]
async fn what_roles_gather_is_not_given_away_either() {
    let api = Api::start().await;
    let bindings = format!("{RBAC}/clusterrolebindings");
    let writer = json!({"metadata": {"name": "writer"}, "rules": [
        rule("rbac.authorization.k8s.io", "clusterroles", &["create", "update", "get"], &[]),
    ]});
    assert_eq!(api.post(&format!("{RBAC}/clusterroles"), &writer).await.code, 201);
    assert_eq!(api.post(&bindings, &binding("w", "writer", "ann")).await.code, 201);
    let gathering = json!({
        "metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{}]},
    });
    let refused = ask(&api, "ann", "POST", &format!("{RBAC}/clusterroles"), &gathering).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    assert!(
        refused
            .message()
            .ends_with("must have cluster-admin privileges to use the aggregationRule")
    );
    // More requests than can be compared one by one: not to be found out by trying.
    let many: Vec<String> = (0..1_000).map(|number| format!("r{number}")).collect();
    let rule = json!({"verbs": many, "apiGroups": many, "resources": many});
    let broad = json!({"metadata": {"name": "g"}, "rules": [rule]});
    let refused = ask(&api, "ann", "POST", &format!("{RBAC}/clusterroles"), &broad).await;
    assert_eq!(refused.code, 403);
}

#[tokio::test]
async fn what_was_gathered_is_kept_by_nobody_without_all_rights() {
    let api = Api::start().await;
    let roles = format!("{RBAC}/clusterroles");
    let writer = json!({"metadata": {"name": "writer"}, "rules": [
        rule("rbac.authorization.k8s.io", "clusterroles", &["patch"], &[]),
    ]});
    assert_eq!(api.post(&roles, &writer).await.code, 201);
    let bound = binding("w", "writer", "ann");
    assert_eq!(api.post(&format!("{RBAC}/clusterrolebindings"), &bound).await.code, 201);
    let gathering = json!({
        "metadata": {"name": "g"}, "aggregationRule": {"clusterRoleSelectors": [{}]},
    });
    assert_eq!(api.post(&roles, &gathering).await.code, 201);
    let refused = patch(&api, "ann", &format!("{roles}/g"), json!({"aggregationRule": null})).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
}

/// Merges as somebody who is no administrator.
async fn patch(api: &Api, user: &str, path: &str, body: Value) -> Answer {
    let request = Request::patch(path).header("content-type", "application/merge-patch+json");
    let mut request = request.body(Body::from(body.to_string())).unwrap();
    request.extensions_mut().insert(User { name: user.to_owned(), ..User::default() });
    api.send(request).await
}

#[tokio::test]
async fn who_owns_a_binding_may_be_changed_without_the_rights_it_gives() {
    let api = Api::start().await;
    let bindings = format!("{RBAC}/namespaces/default/rolebindings");
    assert_eq!(api.post(&bindings, &binding("b", "admin", "ann")).await.code, 201);
    assert_eq!(api.post(&bindings, &binding("all", "cluster-admin", "bob")).await.code, 201);
    assert_eq!(api.post(&bindings, &binding("lost", "missing", "bob")).await.code, 201);
    let held = json!({"metadata": {"finalizers": ["example.com/held"]}});
    let allowed = patch(&api, "ann", &format!("{bindings}/all"), held.clone()).await;
    assert_eq!(allowed.code, 200, "{}", allowed.text);
    let allowed = patch(&api, "ann", &format!("{bindings}/lost"), held.clone()).await;
    assert_eq!(allowed.code, 200, "{}", allowed.text);
    let subjects = binding("all", "cluster-admin", "ann")["subjects"].clone();
    let more = json!({"metadata": {"finalizers": ["example.com/more"]}, "subjects": subjects});
    let refused = patch(&api, "ann", &format!("{bindings}/all"), more.clone()).await;
    assert_eq!(refused.code, 403, "{}", refused.text);
    let missing = patch(&api, "ann", &format!("{bindings}/lost"), more).await;
    assert_eq!(missing.code, 404, "{}", missing.text);
}

#[tokio::test]
async fn roles_of_an_earlier_version_get_what_is_new() {
    let folder = tempfile::tempdir().unwrap();
    let options = || Options { data_dir: Some(folder.path().to_owned()), ..Options::default() };
    let roles = format!("{RBAC}/clusterroles");
    let bindings = format!("{RBAC}/clusterrolebindings");
    let before = Api::with_options(options()).await;
    let fresh = before.get(&format!("{roles}/system:discovery")).await.json();
    let kept = format!("{roles}/system:basic-user");
    let own = json!({"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]});
    let changes = [
        (format!("{roles}/system:discovery"), json!({"rules": [own]})),
        (format!("{bindings}/system:discovery"), json!({"subjects": null})),
        (
            kept.clone(),
            json!({"rules": [], "metadata": {"annotations": {
                "rbac.authorization.kubernetes.io/autoupdate": "false"}}}),
        ),
    ];
    for (path, change) in changes {
        let changed = before.patch(&path, "merge", &change.to_string()).await;
        assert_eq!(changed.code, 200, "{}", changed.text);
    }
    before.embedded.shutdown().await;
    let after = Api::with_options(options()).await;
    let path = "/openapi/v3";
    assert_eq!(ask(&after, "ann", "GET", path, &Value::Null).await.code, 200);
    let grown = after.get(&format!("{roles}/system:discovery")).await.json();
    let grown = grown["rules"].as_array().unwrap();
    assert_eq!(grown[0], own, "what somebody has added stays");
    assert_eq!(grown.len(), 1 + fresh["rules"][0]["nonResourceURLs"].as_array().unwrap().len());
    assert_eq!(after.get(&kept).await.json()["rules"], json!([]));
    let version = after.get(&format!("{roles}/edit")).await.json()["metadata"].clone();
    after.embedded.shutdown().await;
    let again = Api::with_options(options()).await;
    let same = again.get(&format!("{roles}/edit")).await.json();
    assert_eq!(same["metadata"]["resourceVersion"], version["resourceVersion"], "nothing is new");
    again.embedded.shutdown().await;
}

#[tokio::test]
async fn a_review_in_a_namespace_is_about_that_namespace() {
    let api = Api::start().await;
    let path = "/apis/authorization.k8s.io/v1/namespaces/default/localsubjectaccessreviews";
    let review = |meta: Value, namespace: &str| {
        let about = json!({"verb": "get", "resource": "pods", "namespace": namespace});
        json!({"metadata": meta, "spec": {"user": "ann", "resourceAttributes": about}})
    };
    let answer = api.post(path, &review(json!({}), "default")).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(answer.json()["metadata"]["namespace"], "default");
    let elsewhere = api.post(path, &review(json!({"namespace": "other"}), "other")).await;
    assert_eq!(elsewhere.code, 400, "{}", elsewhere.text);
    assert_eq!(api.post(path, &review(json!({}), "other")).await.code, 422);
}

#[tokio::test]
async fn who_acts_as_somebody_may_say_more_of_them_if_a_role_lets_him() {
    let api = Api::start().await;
    let path = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let role = json!({
        "metadata": {"name": "teacher"},
        "rules": [
            {"apiGroups": [""], "resources": ["users"], "verbs": ["impersonate"]},
            {
                "apiGroups": ["authentication.k8s.io"],
                "resources": ["userextras/known-languages"],
                "resourceNames": ["python"],
                "verbs": ["impersonate"],
            },
        ],
    });
    assert_eq!(api.post(&format!("{RBAC}/clusterroles"), &role).await.code, 201);
    let bound = binding("teacher", "teacher", "system:serviceaccount:default:default");
    assert_eq!(api.post(&format!("{RBAC}/clusterrolebindings"), &bound).await.code, 201);
    let token = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let token = api.post(token, &json!({"spec": {}})).await.json();
    let bearer = format!("Bearer {}", token["status"]["token"].as_str().unwrap());
    let ask = async |language: &str| {
        let request = Request::post(path)
            .header("host", "localhost")
            .header("authorization", &bearer)
            .header("content-type", "application/json")
            .header("impersonate-user", "jane-doe")
            .header("impersonate-extra-known-languages", language);
        api.send(request.body(Body::from("{}")).unwrap()).await
    };
    let allowed = ask("python").await;
    assert_eq!(allowed.code, 201, "{}", allowed.text);
    let user = &allowed.json()["status"]["userInfo"];
    assert_eq!(user["extra"], json!({"known-languages": ["python"]}));
    assert_eq!(user["username"], "jane-doe");
    let refused = ask("rust").await;
    assert_eq!(refused.code, 403);
    let words = "cannot impersonate resource \"userextras/known-languages\"";
    assert!(refused.message().contains(words), "{}", refused.message());
}
