//! Objects: typed, dynamic, applied; and who may do what.

use futures::FutureExt;
use k8s_openapi::api::{
    authentication::v1::{SelfSubjectReview, TokenRequest},
    authorization::v1::SelfSubjectAccessReview,
    batch::v1::Job,
    core::v1::{ConfigMap, Event, Namespace, Node, Pod, ServiceAccount},
};
use kube::{
    Api, Client, Discovery, Resource, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, ListParams, Patch, PatchParams,
        PostParams, Preconditions, PropagationPolicy, ValidationDirective,
    },
    discovery,
    runtime::{
        events::{self, EventType, Recorder, Reporter},
        wait::{await_condition, conditions},
    },
};
use serde_json::json;

use super::report::{Outcome, Report, refused, same};

/// All of them.
pub(crate) async fn checks(report: &mut Report, client: &Client) {
    report.check("1 version and discovery", server(client).boxed()).await;
    report.check("7 a node is ready", node(client).boxed()).await;
    report.check("12-13 create, twice, and with a typo", create(client).boxed()).await;
    report.check("31-33 replace and patches", change(client).boxed()).await;
    report.check("24-26 server-side apply", apply(client).boxed()).await;
    report.check("28 a JobSet, dynamically", jobset(client).boxed()).await;
    report.check("37-39 selectors, pages, metadata", lists(client).boxed()).await;
    report.check("46 an event", event(client).boxed()).await;
    report.check("51-55 deletion", delete(client).boxed()).await;
    report.check("54 a namespace", namespace(client).boxed()).await;
    report.check("62 who may do what", rights(client).boxed()).await;
}

pub(crate) fn map(name: &str) -> ConfigMap {
    let map = json!({"metadata": {"name": name, "labels": {"of": "kube"}}, "data": {"k": "v"}});
    serde_json::from_value(map).expect("a ConfigMap")
}

async fn server(client: &Client) -> Outcome {
    same(client.apiserver_version().await?.major, "1".to_owned())?;
    for discovered in [
        Discovery::new(client.clone()).run().await?,
        Discovery::new(client.clone()).run_aggregated().await?,
    ] {
        for (group, version, kind, plural) in [
            ("", "v1", "Pod", "pods"),
            ("batch", "v1", "Job", "jobs"),
            ("jobset.x-k8s.io", "v1alpha2", "JobSet", "jobsets"),
        ] {
            let gvk = GroupVersionKind::gvk(group, version, kind);
            let (resource, capabilities) = discovered.resolve_gvk(&gvk).ok_or(kind)?;
            same(resource.plural.as_str(), plural)?;
            same(capabilities.supports_operation("watch"), true)?;
        }
    }
    Ok(())
}

async fn node(client: &Client) -> Outcome {
    let nodes: Api<Node> = Api::all(client.clone());
    for _ in 0..300 {
        let list = nodes.list(&ListParams::default()).await?;
        let ready = list.items.iter().flat_map(|node| node.status.iter()).any(|status| {
            let mut conditions = status.conditions.iter().flatten();
            conditions.any(|condition| condition.type_ == "Ready" && condition.status == "True")
        });
        if ready {
            let name = list.items[0].name_any();
            nodes.cordon(&name).await?;
            let node = nodes.uncordon(&name).await?;
            return same(node.spec.and_then(|spec| spec.unschedulable).unwrap_or(false), false);
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    Err("no node is ready".into())
}

async fn create(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let post = PostParams::default();
    let created = maps.create(&post, &map("kube")).await?;
    same(maps.get("kube").await?, created)?;
    same(maps.get_opt("nope").await?, None)?;
    refused(maps.create(&post, &map("kube")).await, 409, "configmaps \"kube\" already exists")?;
    refused(maps.get("nope").await, 404, "configmaps \"nope\" not found")?;
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    maps.create(&dry, &map("dry")).await?;
    same(maps.get_opt("dry").await?, None)?;
    let strict = PatchParams {
        field_validation: Some(ValidationDirective::Strict),
        ..PatchParams::default()
    };
    let typo = Patch::Merge(json!({"foo": 1}));
    let answer = maps.patch("kube", &strict, &typo).await;
    refused(answer, 422, "strict decoding error: unknown field \"foo\"")?;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let always = json!({
        "metadata": {"name": "always"},
        "spec": {"template": {"spec": {
            "restartPolicy": "Always", "containers": [{"name": "c", "image": "i"}],
        }}},
    });
    let answer = jobs.create(&post, &serde_json::from_value(always)?).await;
    refused(answer, 422, "spec.template.spec.restartPolicy")
}

async fn change(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let old = maps.get("kube").await?;
    let none = PatchParams::default();
    for (patch, want) in [
        (Patch::Merge(json!({"data": {"k": "merge"}})), "merge"),
        (Patch::Strategic(json!({"data": {"k": "strategic"}})), "strategic"),
    ] {
        let got = maps.patch("kube", &none, &patch).await?;
        same(got.data.unwrap_or_default()["k"].as_str(), want)?;
    }
    let replaced = maps.replace("kube", &PostParams::default(), &old).await;
    refused(replaced, 409, "the object has been modified")?;
    let mut entry = maps.entry("kube").await?.and_modify(|map| {
        map.data.get_or_insert_default().insert("k".to_owned(), "entry".to_owned());
    });
    let kube::api::entry::Entry::Occupied(ref mut entry) = entry else {
        return Err("it is gone".into());
    };
    entry.commit(&PostParams::default()).await?;
    let got = maps.get("kube").await?.data.unwrap_or_default();
    same(got["k"].as_str(), "entry")?;
    let found = maps.get_metadata("kube").await?;
    same(found.labels()["of"].as_str(), "kube")
}

async fn apply(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let wanted = |data: serde_json::Value| {
        let metadata = json!({"name": "ssa"});
        let object =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        Patch::Apply(object)
    };
    let one = PatchParams::apply("one");
    let made = maps.patch("ssa", &one, &wanted(json!({"a": "1", "b": "1"}))).await?;
    same(made.managed_fields()[0].manager.as_deref(), Some("one"))?;
    let two = PatchParams::apply("two");
    let conflict = maps.patch("ssa", &two, &wanted(json!({"a": "2"}))).await;
    let words = "Apply failed with 1 conflict: conflict with \"one\": .data.a";
    refused(conflict, 409, words)?;
    maps.patch("ssa", &two.force(), &wanted(json!({"a": "2"}))).await?;
    let left = maps.patch("ssa", &one, &wanted(json!({}))).await?;
    same(left.data.unwrap_or_default(), [("a".to_owned(), "2".to_owned())].into())?;
    maps.delete("ssa", &DeleteParams::default()).await?;
    Ok(())
}

async fn jobset(client: &Client) -> Outcome {
    let gvk = GroupVersionKind::gvk("jobset.x-k8s.io", "v1alpha2", "JobSet");
    let (resource, _) = discovery::pinned_kind(client, &gvk).await?;
    let sets: Api<DynamicObject> = Api::default_namespaced_with(client.clone(), &resource);
    let pod = json!({"restartPolicy": "Never", "containers": [
        {"name": "main", "image": "busybox", "command": ["true"]},
    ]});
    let template = json!({"spec": {"template": {"spec": pod}}});
    let data = json!({"spec": {"replicatedJobs": [
        {"name": "w", "replicas": 1, "template": template},
    ]}});
    let set = DynamicObject::new("kube", &resource).data(data);
    sets.create(&PostParams::default(), &set).await?;
    let label = Patch::Merge(json!({"metadata": {"labels": {"x": "y"}}}));
    let patched = sets.patch("kube", &PatchParams::default(), &label).await?;
    same(patched.labels()["x"].as_str(), "y")?;
    let completed = |set: Option<&DynamicObject>| {
        set.is_some_and(|set| set.data["status"]["terminalState"] == "Completed")
    };
    await_condition(sets.clone(), "kube", completed).await?;
    sets.delete("kube", &DeleteParams::foreground()).await?;
    Ok(())
}

async fn lists(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    for name in ["kube-b", "kube-c"] {
        maps.create(&PostParams::default(), &map(name)).await?;
    }
    let mut params = ListParams::default().labels("of in (kube),!other").limit(2);
    let mut names = Vec::new();
    loop {
        let page = maps.list(&params).await?;
        names.extend(page.items.iter().map(ResourceExt::name_any));
        match page.metadata.continue_.filter(|token| !token.is_empty()) {
            Some(token) => params = params.continue_token(&token),
            None => break,
        }
    }
    same(names, ["kube", "kube-b", "kube-c"].map(ToOwned::to_owned).to_vec())?;
    let by_field = ListParams::default().fields("metadata.name=kube-b");
    same(maps.list_metadata(&by_field).await?.items.len(), 1)?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let wrong = pods.list(&ListParams::default().fields("foo=bar")).await;
    refused(wrong, 400, "field label not supported: foo")
}

async fn event(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let about = maps.get("kube").await?.object_ref(&());
    let recorder = Recorder::new(client.clone(), Reporter::from("kube-client"));
    let event = events::Event {
        type_: EventType::Normal,
        reason: "Checked".into(),
        note: Some("all is well".into()),
        action: "Checking".into(),
        secondary: None,
    };
    for _ in 0..2 {
        recorder.publish(&event, &about).await?;
    }
    let events: Api<Event> = Api::default_namespaced(client.clone());
    let found = events.list(&ListParams::default().fields("reason=Checked")).await?;
    same(found.items.len(), 1)?;
    same(found.items[0].message.as_deref(), Some("all is well"))
}

async fn delete(client: &Client) -> Outcome {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    let other = Preconditions { uid: Some("other".to_owned()), ..Preconditions::default() };
    let guarded = DeleteParams::default().preconditions(other);
    refused(maps.delete("kube", &guarded).await, 409, "the UID in the precondition")?;
    let all = ListParams::default().labels("of=kube");
    maps.delete_collection(&DeleteParams::default(), &all).await?;
    same(maps.list(&all).await?.items.len(), 0)?;
    let jobs: Api<Job> = Api::default_namespaced(client.clone());
    let job = json!({
        "metadata": {"name": "kube-owner"},
        "spec": {"template": {"spec": {"restartPolicy": "Never", "containers": [
            {"name": "c", "image": "busybox", "command": ["sleep", "60"]},
        ]}}},
    });
    jobs.create(&PostParams::default(), &serde_json::from_value(job)?).await?;
    let pods: Api<Pod> = Api::default_namespaced(client.clone());
    let mine = ListParams::default().labels("job-name=kube-owner");
    while pods.list(&mine).await?.items.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    let background = DeleteParams {
        propagation_policy: Some(PropagationPolicy::Background),
        ..DeleteParams::default()
    };
    jobs.delete("kube-owner", &background).await?;
    while !pods.list(&mine).await?.items.is_empty() {
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    Ok(())
}

async fn namespace(client: &Client) -> Outcome {
    let spaces: Api<Namespace> = Api::all(client.clone());
    let space = serde_json::from_value(json!({"metadata": {"name": "kube-space"}}))?;
    let made = spaces.create(&PostParams::default(), &space).await?;
    let accounts: Api<ServiceAccount> = Api::namespaced(client.clone(), "kube-space");
    await_condition(accounts, "default", conditions::is_created()).await?;
    let inside: Api<ConfigMap> = Api::namespaced(client.clone(), "kube-space");
    inside.create(&PostParams::default(), &map("inside")).await?;
    spaces.delete("kube-space", &DeleteParams::default()).await?;
    let uid = made.uid().unwrap_or_default();
    await_condition(spaces, "kube-space", conditions::is_deleted(&uid)).await?;
    refused(inside.create(&PostParams::default(), &map("late")).await, 404, "\"kube-space\"")
}

async fn rights(client: &Client) -> Outcome {
    let post = PostParams::default();
    let review: Api<SelfSubjectReview> = Api::all(client.clone());
    let me = review.create(&post, &SelfSubjectReview::default()).await?;
    let me = me.status.and_then(|status| status.user_info).and_then(|user| user.username);
    same(me.is_some(), true)?;
    let access: Api<SelfSubjectAccessReview> = Api::all(client.clone());
    let question = json!({"spec": {"resourceAttributes": {"verb": "list", "resource": "pods"}}});
    let answer = access.create(&post, &serde_json::from_value(question)?).await?;
    same(answer.status.map(|status| status.allowed), Some(true))?;
    let accounts: Api<ServiceAccount> = Api::default_namespaced(client.clone());
    let request: TokenRequest = serde_json::from_value(json!({"spec": {"audiences": []}}))?;
    let token = accounts.create_token_request("default", &post, &request).await?;
    let token = token.status.and_then(|status| status.token).unwrap_or_default();
    same(token.split('.').count(), 3)?;
    let erased = ApiResource::erase::<Pod>(&());
    same(Pod::plural(&()).to_string(), erased.plural)
}
