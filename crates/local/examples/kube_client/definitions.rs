//! A kind of one's own: its definition, its objects, and a watcher of them.

use futures::{FutureExt, StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::{
    Api, Client, ResourceExt,
    api::{
        ApiResource, DeleteParams, DynamicObject, GroupVersionKind, Patch, PatchParams, PostParams,
    },
    runtime::{
        WatchStreamExt,
        wait::{await_condition, conditions},
        watcher::{self, watcher},
    },
};
use serde_json::json;

use super::report::{Outcome, Report, refused, same};

/// What the definition is called.
const NAME: &str = "sails.kube.lockstep.dev";

/// All of it.
pub(crate) async fn checks(report: &mut Report, client: &Client) {
    report.check("65 a definition is established", define(client).boxed()).await;
    report.check("65 objects of its kind", objects(client).boxed()).await;
    report.check("65 a watcher of its kind", follow(client).boxed()).await;
    report.check("65 its end", end(client).boxed()).await;
}

fn sails(client: &Client) -> Api<DynamicObject> {
    let gvk = GroupVersionKind::gvk("kube.lockstep.dev", "v1", "Sail");
    let resource = ApiResource::from_gvk_with_plural(&gvk, "sails");
    Api::default_namespaced_with(client.clone(), &resource)
}

fn sail(name: &str, area: i64) -> DynamicObject {
    let object = json!({
        "apiVersion": "kube.lockstep.dev/v1", "kind": "Sail",
        "metadata": {"name": name}, "spec": {"area": area},
    });
    serde_json::from_value(object).expect("an object")
}

async fn define(client: &Client) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let area = json!({"type": "integer", "minimum": 1});
    let spec = json!({"type": "object", "required": ["area"], "properties": {
        "area": area, "cloth": {"type": "string", "default": "linen"},
    }});
    let schema = json!({"type": "object", "properties": {
        "spec": spec,
        "status": {"type": "object", "properties": {"set": {"type": "boolean"}}},
    }});
    let version = json!({
        "name": "v1", "served": true, "storage": true, "subresources": {"status": {}},
        "schema": {"openAPIV3Schema": schema},
    });
    let definition = json!({
        "metadata": {"name": NAME},
        "spec": {
            "group": "kube.lockstep.dev", "scope": "Namespaced", "versions": [version],
            "names": {"kind": "Sail", "plural": "sails"},
        },
    });
    let definition = serde_json::from_value(definition)?;
    definitions.create(&PostParams::default(), &definition).await?;
    await_condition(definitions, NAME, conditions::is_crd_established()).await?;
    Ok(())
}

async fn objects(client: &Client) -> Outcome {
    let sails = sails(client);
    let post = PostParams::default();
    let made = sails.create(&post, &sail("jib", 20)).await?;
    same(made.data["spec"].clone(), json!({"area": 20, "cloth": "linen"}))?;
    let small = sails.create(&post, &sail("small", 0)).await;
    refused(small, 422, "spec.area in body should be greater than or equal to 1")?;
    let merge = Patch::Merge(json!({"spec": {"area": 30}, "status": {"set": true}}));
    let status = sails.patch_status("jib", &PatchParams::default(), &merge).await?;
    same(status.data["status"].clone(), json!({"set": true}))?;
    same(status.data["spec"]["area"].clone(), json!(20))?;
    let mut applied = sail("jib", 25);
    applied.data["spec"]["cloth"] = json!("canvas");
    let force = PatchParams::apply("one").force();
    let applied = sails.patch("jib", &force, &Patch::Apply(&applied)).await?;
    same(applied.data["spec"].clone(), json!({"area": 25, "cloth": "canvas"}))
}

async fn follow(client: &Client) -> Outcome {
    let sails = sails(client);
    let stream = watcher(sails.clone(), watcher::Config::default()).applied_objects();
    pin_mut!(stream);
    let next = stream.try_next().await?.map(|sail| sail.name_any());
    same(next.as_deref(), Some("jib"))?;
    sails.create(&PostParams::default(), &sail("spinnaker", 80)).await?;
    let next = stream.next().await.transpose()?;
    same(next.map(|sail| sail.data["spec"]["area"].clone()), Some(json!(80)))
}

async fn end(client: &Client) -> Outcome {
    let definitions: Api<CustomResourceDefinition> = Api::all(client.clone());
    let uid = definitions.get(NAME).await?.uid().ok_or("no UID")?;
    definitions.delete(NAME, &DeleteParams::default()).await?;
    await_condition(definitions, NAME, conditions::is_deleted(&uid)).await?;
    refused(sails(client).get("jib").await, 404, "not found")
}
