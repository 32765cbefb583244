//! Watchers, reflectors and controllers.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use futures::{FutureExt, StreamExt, TryStreamExt, pin_mut};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api, Client, ResourceExt,
    api::{
        DeleteParams, PartialObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams,
    },
    runtime::{
        Controller, WatchStreamExt,
        controller::Action,
        finalizer::{Event, finalizer},
        reflector,
        watcher::{self, watcher},
    },
};
use serde_json::json;

use super::{
    objects::map,
    report::{Outcome, Report, same},
};

/// All of them.
pub(crate) async fn checks(report: &mut Report, client: &Client) {
    let maps: Api<ConfigMap> = Api::default_namespaced(client.clone());
    report.check("42 a watch from a version", events(&maps).boxed()).await;
    report.check("44 a watch ends in time", ends(&maps).boxed()).await;
    let listed = watcher::Config::default();
    report.check("65 a watcher that lists", follow(&maps, listed.clone()).boxed()).await;
    report
        .check("65 a watcher that streams", follow(&maps, listed.streaming_lists()).boxed())
        .await;
    report.check("65 a reflector of metadata", reflect(client, &maps).boxed()).await;
    report.check("65 a controller with a finalizer", control(&maps).boxed()).await;
}

async fn events(maps: &Api<ConfigMap>) -> Outcome {
    let since = maps.list(&Default::default()).await?.metadata.resource_version;
    let since = since.ok_or("a list without a version")?;
    maps.create(&PostParams::default(), &map("watched")).await?;
    let patch = Patch::Merge(json!({"data": {"k": "w"}}));
    maps.patch("watched", &PatchParams::default(), &patch).await?;
    maps.delete("watched", &DeleteParams::default()).await?;
    let params = WatchParams::default().fields("metadata.name=watched").timeout(20);
    let stream = maps.watch(&params, &since).await?;
    pin_mut!(stream);
    let mut seen = Vec::new();
    while seen.len() < 3 {
        seen.push(match stream.try_next().await?.ok_or("it ended")? {
            WatchEvent::Added(_) => "added",
            WatchEvent::Modified(_) => "modified",
            WatchEvent::Deleted(_) => "deleted",
            WatchEvent::Bookmark(_) | WatchEvent::Error(_) => "other",
        });
    }
    same(seen, vec!["added", "modified", "deleted"])
}

async fn ends(maps: &Api<ConfigMap>) -> Outcome {
    let params = WatchParams::default().labels("nobody=1").timeout(2);
    let stream = maps.watch(&params, "0").await?;
    pin_mut!(stream);
    while let Some(event) = stream.try_next().await? {
        if !matches!(event, WatchEvent::Bookmark(_)) {
            return Err(format!("{event:?} of nobody").into());
        }
    }
    Ok(())
}

async fn follow(maps: &Api<ConfigMap>, config: watcher::Config) -> Outcome {
    maps.create(&PostParams::default(), &map("first")).await?;
    let stream = watcher(maps.clone(), config.labels("of=kube")).applied_objects();
    pin_mut!(stream);
    let next = stream.try_next().await?.map(|map| map.name_any());
    same(next.as_deref(), Some("first"))?;
    maps.create(&PostParams::default(), &map("second")).await?;
    let next = stream.try_next().await?.map(|map| map.name_any());
    same(next.as_deref(), Some("second"))?;
    for name in ["first", "second"] {
        maps.delete(name, &DeleteParams::default()).await?;
    }
    Ok(())
}

async fn reflect(client: &Client, maps: &Api<ConfigMap>) -> Outcome {
    maps.create(&PostParams::default(), &map("reflected")).await?;
    let (reader, writer) = reflector::store();
    let config = watcher::Config::default().labels("of=kube");
    let metadata: Api<PartialObjectMeta<ConfigMap>> = Api::default_namespaced(client.clone());
    let stream = watcher(metadata, config).default_backoff().reflect(writer);
    let reflecting = tokio::spawn(stream.for_each(|_| std::future::ready(())));
    reader.wait_until_ready().await?;
    same(reader.state().len(), 1)?;
    maps.delete("reflected", &DeleteParams::default()).await?;
    while !reader.is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    reflecting.abort();
    Ok(())
}

/// A controller that guards its objects with a finalizer, from their creation to their end.
async fn control(maps: &Api<ConfigMap>) -> Outcome {
    type Failure = kube::runtime::finalizer::Error<kube::Error>;
    let cleaned = Arc::new(AtomicUsize::new(0));
    let reconcile = |object: Arc<ConfigMap>, context: Arc<(Api<ConfigMap>, Arc<AtomicUsize>)>| async move {
        let (api, cleaned) = &*context;
        let pass = |event| async move {
            if let Event::Cleanup(_) = event {
                cleaned.fetch_add(1, Ordering::Relaxed);
            }
            Ok(Action::await_change())
        };
        finalizer(api, "lockstep.dev/checked", object, pass).await
    };
    let again = |_: Arc<ConfigMap>, _: &Failure, _| Action::requeue(Duration::from_millis(100));
    let context = Arc::new((maps.clone(), cleaned.clone()));
    let controller = Controller::new(maps.clone(), watcher::Config::default().labels("of=kube"));
    let running = controller.run(reconcile, again, context);
    let running = tokio::spawn(running.for_each(|_| std::future::ready(())));
    maps.create(&PostParams::default(), &map("controlled")).await?;
    while maps.get("controlled").await?.finalizers().is_empty() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    maps.delete("controlled", &DeleteParams::default()).await?;
    while maps.get_opt("controlled").await?.is_some() {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    running.abort();
    same(cleaned.load(Ordering::Relaxed), 1)
}
