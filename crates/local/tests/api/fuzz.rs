//! Whatever is sent, something sensible comes back.

use proptest::prelude::*;

use super::support::{Api, request};

fn path() -> impl Strategy<Value = String> {
    let step = prop_oneof![
        Just("api".to_owned()),
        Just("apis".to_owned()),
        Just("v1".to_owned()),
        Just("batch".to_owned()),
        Just("namespaces".to_owned()),
        Just("default".to_owned()),
        Just("pods".to_owned()),
        Just("configmaps".to_owned()),
        Just("status".to_owned()),
        Just("log".to_owned()),
        Just("watch".to_owned()),
        Just("openapi".to_owned()),
        Just("v3".to_owned()),
        Just("a".to_owned()),
        Just(String::new()),
        "[a-zA-Z0-9%._~:-]{0,8}",
    ];
    prop::collection::vec(step, 0..8).prop_map(|steps| format!("/{}", steps.join("/")))
}

fn query() -> impl Strategy<Value = String> {
    let key = prop_oneof![
        Just("limit"),
        Just("continue"),
        Just("labelSelector"),
        Just("fieldSelector"),
        Just("resourceVersion"),
        Just("resourceVersionMatch"),
        Just("dryRun"),
        Just("pretty"),
        Just("fieldValidation"),
        Just("fieldManager"),
        Just("gracePeriodSeconds"),
        Just("propagationPolicy"),
        Just("includeObject"),
        Just("sendInitialEvents"),
        Just("allowWatchBookmarks"),
        Just("hash"),
        Just("container"),
        Just("tailLines"),
    ];
    let value = prop_oneof![
        "[a-zA-Z0-9%=!,()+._-]{0,12}",
        Just("true".to_owned()),
        Just("0".to_owned()),
        Just("1".to_owned()),
        Just("All".to_owned()),
        Just("Exact".to_owned()),
    ];
    prop::collection::vec((key, value), 0..4)
        .prop_map(|pairs| pairs.iter().map(|(key, value)| format!("&{key}={value}")).collect())
}

fn body() -> impl Strategy<Value = String> {
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1".to_owned()),
        Just("\"a\"".to_owned()),
        Just("true".to_owned()),
        Just("-1.5e3".to_owned()),
        Just("\"default\"".to_owned()),
    ];
    let json = leaf.prop_recursive(4, 24, 4, |inner| {
        let key = prop_oneof![
            Just("metadata"),
            Just("name"),
            Just("namespace"),
            Just("labels"),
            Just("spec"),
            Just("containers"),
            Just("status"),
            Just("data"),
            Just("kind"),
            Just("apiVersion"),
            Just("op"),
            Just("path"),
            Just("value"),
            Just("$patch"),
            Just("generateName"),
            Just("finalizers"),
            Just("ownerReferences"),
            Just("template"),
        ];
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4)
                .prop_map(|items| format!("[{}]", items.join(","))),
            prop::collection::vec((key, inner), 0..5).prop_map(|members| {
                let members: Vec<String> =
                    members.iter().map(|(key, value)| format!("\"{key}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
        ]
    });
    prop_oneof![4 => json, 1 => ".{0,40}"]
}

fn method() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just("GET"),
        Just("POST"),
        Just("PUT"),
        Just("PATCH"),
        Just("DELETE"),
        Just("HEAD"),
        Just("OPTIONS"),
    ]
}

fn content_type() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(""),
        Just("application/json"),
        Just("application/yaml"),
        Just("application/json-patch+json"),
        Just("application/merge-patch+json"),
        Just("application/strategic-merge-patch+json"),
        Just("x/y"),
    ]
}

#[test]
fn nothing_a_client_sends_is_the_servers_fault() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let api = runtime.block_on(async {
        let api = Api::start().await;
        api.config_maps(&["a"]).await;
        api
    });
    let config = ProptestConfig { cases: 400, failure_persistence: None, ..Default::default() };
    proptest!(config, |(
        method in method(), path in path(), query in query(), body in body(),
        content_type in content_type(),
    )| {
        let uri = format!("{path}?{query}");
        prop_assume!(uri.parse::<http::Uri>().is_ok());
        // A revision of the far future is waited for; that is tested elsewhere.
        prop_assume!(!query.contains("resourceVersion="));
        let headers = [("content-type", content_type)];
        let request = request(method, &uri, &headers, &body);
        let answer = runtime.block_on(async {
            let limit = std::time::Duration::from_secs(5);
            let answered = tokio::time::timeout(limit, async {
                use tower::ServiceExt;
                api.embedded.server().router().oneshot(request).await.unwrap().status().as_u16()
            });
            answered.await
        });
        let code = answer.expect("no request hangs");
        prop_assert!(code < 500, "{method} {uri} {content_type} {body}: {code}");
    });
}
