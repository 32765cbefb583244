//! What lies below objects, and what is asked but never stored.

use lockstep_local::auth::User;
use serde_json::{Value, json};

use super::support::{Api, PODS, pod, request};

fn binding(name: &str, node: &str) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Binding",
        "metadata": {"name": name},
        "target": {"kind": "Node", "name": node},
    })
}

#[tokio::test]
async fn bindings_give_pods_their_node() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    api.post(PODS, &pod("q")).await;
    let path = format!("{PODS}/p/binding");
    let bound = api.post(&path, &binding("p", "n1")).await;
    assert_eq!((bound.code, &bound.json()["status"]), (201, &json!("Success")), "{}", bound.text);
    let pod = api.get(&format!("{PODS}/p")).await.json();
    assert_eq!(pod["spec"]["nodeName"], "n1");
    assert_eq!(pod["status"]["conditions"][0]["type"], "PodScheduled");
    let again = api.post(&path, &binding("p", "n2")).await;
    assert_eq!(again.code, 409, "{}", again.text);
    let other = api.post(&path, &binding("q", "n1")).await;
    assert_eq!(other.code, 400, "{}", other.text);
    let by_body = "/api/v1/namespaces/default/bindings";
    assert_eq!(api.post(by_body, &binding("q", "n1")).await.code, 201);
    assert_eq!(api.post(by_body, &binding("none", "n1")).await.code, 404);
}

#[tokio::test]
async fn evictions_delete_pods_and_say_why() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    api.post(&format!("{PODS}/p/binding"), &binding("p", "n1")).await;
    let path = format!("{PODS}/p/eviction");
    let eviction = |name: &str| {
        let metadata = json!({"name": name});
        json!({"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata})
    };
    let mismatch = api.post(&path, &eviction("q")).await;
    assert_eq!(mismatch.message(), "name in URL does not match name in Eviction object");
    let dry = api.post(&format!("{path}?dryRun=All"), &eviction("p")).await;
    assert_eq!(dry.code, 201, "{}", dry.text);
    assert_eq!(
        api.get(&format!("{PODS}/p")).await.json()["metadata"].get("deletionTimestamp"),
        None
    );
    let evicted = api.post(&path, &eviction("p")).await;
    assert_eq!(evicted.code, 201, "{}", evicted.text);
    let pod = api.get(&format!("{PODS}/p")).await.json();
    assert!(pod["metadata"]["deletionTimestamp"].is_string());
    let conditions = pod["status"]["conditions"].as_array().unwrap();
    assert!(conditions.iter().any(|c| c["type"] == "DisruptionTarget"), "{conditions:?}");
}

#[tokio::test]
async fn logs_say_which_container_is_meant() {
    let api = Api::start().await;
    let mut two = pod("two");
    two["spec"]["containers"] = json!([{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]);
    two["spec"]["initContainers"] = json!([{"name": "i", "image": "i"}]);
    assert_eq!(api.post(PODS, &two).await.code, 201);
    api.post(PODS, &pod("one")).await;
    let cases = [
        ("two/log", 400, "a container name must be specified for pod two, choose one of: [i a b]"),
        ("two/log?container=x", 400, "container x is not valid for pod two"),
        ("none/log", 404, "pods \"none\" not found"),
        (
            "one/log?tailLines=-1",
            422,
            "PodLogOptions \"one\" is invalid: tailLines: Invalid value: -1: must be greater than \
             or equal to 0",
        ),
        (
            "one/log?limitBytes=0",
            422,
            "PodLogOptions \"one\" is invalid: limitBytes: Invalid value: 0: must be greater \
             than 0",
        ),
        ("one/log?tailLines=x", 400, "strconv.ParseInt: parsing \"x\": invalid syntax"),
    ];
    for (path, code, message) in cases {
        let answer = api.get(&format!("{PODS}/{path}")).await;
        assert_eq!((answer.code, answer.message().as_str()), (code, message), "{path}");
    }
    let headers = [("accept", "text/plain")];
    let unscheduled = api.with("GET", &format!("{PODS}/one/log"), &headers, "").await;
    assert_eq!((unscheduled.code, unscheduled.text.as_str()), (200, ""));
}

#[tokio::test]
async fn reviews_are_answered_and_not_stored() {
    let api = Api::start().await;
    let base = "/apis/authorization.k8s.io/v1";
    let review = json!({
        "kind": "SelfSubjectAccessReview",
        "apiVersion": "authorization.k8s.io/v1",
        "spec": {"resourceAttributes": {"verb": "create", "resource": "pods"}},
    });
    let answer = api.post(&format!("{base}/selfsubjectaccessreviews"), &review).await;
    assert_eq!(answer.code, 201, "{}", answer.text);
    assert_eq!(answer.json()["status"]["allowed"], true);
    assert_eq!(answer.json()["spec"], review["spec"]);
    let here = json!({"spec": {"namespace": "default"}});
    let rules = api.post(&format!("{base}/selfsubjectrulesreviews"), &here).await.json();
    assert_eq!(rules["status"]["resourceRules"][0]["verbs"][0], "*");
    let who = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
    let who = api.post(who, &json!({})).await.json();
    assert_eq!(who["status"]["userInfo"]["username"], "kubernetes-admin");
    let token = json!({"spec": {"token": "wrong"}});
    let token = api.post("/apis/authentication.k8s.io/v1/tokenreviews", &token).await.json();
    assert_eq!(token["status"].get("authenticated"), None);
    assert_eq!(api.get(&format!("{base}/selfsubjectaccessreviews")).await.code, 405);
    assert_eq!(api.post(&format!("{base}/subjectaccessreviews"), &json!([])).await.code, 400);
}

#[tokio::test]
async fn reviews_are_read_as_other_objects_are() {
    let api = Api::start().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let ask = async |more: Value, query: &str, accept: &str| {
        let mut review =
            json!({"spec": {"resourceAttributes": {"verb": "get", "resource": "pods"}}});
        review["spec"].as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let headers = [("content-type", "application/json"), ("accept", accept)];
        api.with("POST", &format!("{path}?{query}"), &headers, &review.to_string()).await
    };
    let json = "application/json";
    let null = ask(json!({"nonResourceAttributes": null}), "", json).await;
    assert_eq!(null.code, 201, "{}", null.text);
    let unknown = ask(json!({"verbs": "get"}), "fieldValidation=Strict", json).await;
    assert_eq!(unknown.code, 400, "{}", unknown.text);
    let warned = ask(json!({"verbs": "get"}), "", json).await;
    assert!(warned.header("warning").contains("unknown field"), "{:?}", warned.headers);
    // There are no tables of answers.
    let table = "application/json;as=Table;v=v1;g=meta.k8s.io";
    assert_eq!(ask(json!({}), "", table).await.code, 406);
    assert_eq!(ask(json!({}), "", &format!("{table},{json}")).await.code, 201);
    let other = json!({"kind": "SubjectAccessReview", "apiVersion": "authorization.k8s.io/v1"});
    let other = api.post(path, &other).await;
    assert_eq!(other.code, 400, "{}", other.text);
}

#[tokio::test]
async fn reviews_that_ask_nothing_are_refused() {
    let api = Api::start().await;
    let about = json!({"verb": "get", "resource": "pods", "namespace": "other"});
    let path = json!({"path": "/x", "verb": "get"});
    let mut local = json!({"spec": {"user": "ann", "resourceAttributes": about}});
    local["metadata"] = json!({"namespace": "default"});
    let cases = [
        ("selfsubjectaccessreviews", json!({"spec": {}}), 422, "exactly one of"),
        (
            "selfsubjectaccessreviews",
            json!({"spec": {"resourceAttributes": about, "nonResourceAttributes": path}}),
            422,
            "cannot be specified in combination with resourceAttributes",
        ),
        (
            "subjectaccessreviews",
            json!({"spec": {"resourceAttributes": about}}),
            422,
            "at least one of user or group must be specified",
        ),
        (
            "namespaces/default/localsubjectaccessreviews",
            local,
            422,
            "must match metadata.namespace",
        ),
        ("selfsubjectrulesreviews", json!({}), 400, "no namespace on request"),
    ];
    for (resource, review, code, words) in cases {
        let answer = api.post(&format!("/apis/authorization.k8s.io/v1/{resource}"), &review).await;
        assert_eq!(answer.code, code, "{}", answer.text);
        assert!(answer.message().contains(words), "{}", answer.text);
    }
}

#[tokio::test]
async fn connections_need_a_pod_that_runs_and_an_upgrade() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let host = "pod p does not have a host assigned";
    for sub in ["exec", "attach", "portforward"] {
        for method in ["GET", "POST"] {
            let path = format!("{PODS}/p/{sub}?command=date&stdout=1");
            let answer = api.with(method, &path, &[("accept", "*/*")], "").await;
            assert_eq!((answer.code, answer.message().as_str()), (400, host), "{method} {sub}");
        }
        assert_eq!(api.get(&format!("{PODS}/none/{sub}")).await.code, 404);
        assert_eq!(api.with("PUT", &format!("{PODS}/p/{sub}"), &[], "{}").await.code, 405);
    }
    api.post(&format!("{PODS}/p/binding"), &binding("p", "n1")).await;
    let upgrade = "Upgrade request required";
    for sub in ["exec", "attach", "portforward"] {
        let answer = api.get(&format!("{PODS}/p/{sub}?command=date&stdout=1")).await;
        assert_eq!((answer.code, answer.message().as_str()), (400, upgrade), "{sub}");
        let listed = api.get("/api/v1").await.json();
        let listed = listed["resources"].as_array().unwrap().clone();
        let listed = listed.iter().find(|it| it["name"] == format!("pods/{sub}")).unwrap().clone();
        assert_eq!(listed["verbs"], json!(["create", "get"]));
    }
    assert_eq!(api.get(&format!("{PODS}/p/other")).await.code, 404);
}

/// Who upgrades can only GET: the right to look is not enough.
#[tokio::test]
async fn connections_need_the_right_to_create_them() {
    let api = Api::start().await;
    api.post(PODS, &pod("p")).await;
    let base = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";
    let rule = |verb: &str| {
        json!({"metadata": {"name": "r"}, "rules": [
            {"apiGroups": [""], "resources": ["pods/exec"], "verbs": [verb, "get"]}]})
    };
    let bound = json!({
        "metadata": {"name": "b"},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "r"},
        "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "ann"}],
    });
    assert_eq!(api.post(&format!("{base}/roles"), &rule("get")).await.code, 201);
    assert_eq!(api.post(&format!("{base}/rolebindings"), &bound).await.code, 201);
    let ask = async || {
        let mut request = request("GET", &format!("{PODS}/p/exec?command=date"), &[], "");
        let groups = vec!["system:authenticated".to_owned()];
        let ann = User { name: "ann".to_owned(), groups, ..User::default() };
        request.extensions_mut().insert(ann);
        api.send(request).await
    };
    let refused = ask().await;
    assert_eq!(refused.code, 403);
    let why = "User \"ann\" cannot create resource \"pods/exec\" in API group \"\"";
    assert!(refused.message().contains(why), "{}", refused.text);
    assert_eq!(api.put(&format!("{base}/roles/r"), &rule("create")).await.code, 200);
    assert_eq!(ask().await.code, 400);
}
