//! What an object costs when there are many.

use std::{fs, time::Instant};

use futures::StreamExt;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::{
    Api,
    api::{ListParams, PostParams},
};
use lockstep_local::embedded::{Embedded, Options};

use super::writes::config;
use crate::report::{Budget, Report};

/// Measures memory, creation, get and list at growing sizes.
pub(crate) async fn measure(report: &mut Report) {
    let embedded = Embedded::start(Options::default()).await.unwrap();
    let api: Api<ConfigMap> = Api::namespaced(embedded.client(), "default");
    let empty = resident("self");
    let mut made = 0_u32;
    for (size, shown) in [(1_000_u32, "1k"), (10_000, "10k"), (100_000, "100k")] {
        let begun = Instant::now();
        let new = size - made;
        futures::stream::iter(made..size)
            .for_each_concurrent(64, |nth| {
                let api = api.clone();
                async move {
                    let object = config(&format!("o-{nth}"), 0);
                    api.create(&PostParams::default(), &object).await.unwrap();
                }
            })
            .await;
        let create = begun.elapsed().as_secs_f64() * 1e6 / f64::from(new);
        made = size;
        // At a thousand the allocator's slack is larger than the objects.
        if size > 1_000 {
            let memory = (resident("self") - empty) / f64::from(size) / 1024.0;
            report.add(&format!("memory per 2 KB object at {shown}"), memory, "KiB", Budget::None);
        }
        report.add(&format!("create at {shown}"), create, "µs", Budget::None);
        let begun = Instant::now();
        for nth in 0..1000 {
            api.get(&format!("o-{}", nth * size / 1000)).await.unwrap();
        }
        report.add(
            &format!("get at {shown}"),
            begun.elapsed().as_secs_f64() * 1e3,
            "µs",
            Budget::None,
        );
        let begun = Instant::now();
        let mut params = ListParams::default().limit(500);
        loop {
            let page = api.list(&params).await.unwrap();
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => params = ListParams::default().limit(500).continue_token(&token),
                None => break,
            }
        }
        let list = begun.elapsed().as_secs_f64() * 1e6 / f64::from(size);
        report.add(&format!("list in pages, per object, at {shown}"), list, "µs", Budget::None);
    }
    embedded.shutdown().await;
}

/// The memory a process holds, in bytes.
pub(crate) fn resident(process: &str) -> f64 {
    let text = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = text.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kilobytes =
        line.and_then(|line| line.split_whitespace().next()).and_then(|n| n.parse::<f64>().ok());
    kilobytes.unwrap_or_default() * 1024.0
}
