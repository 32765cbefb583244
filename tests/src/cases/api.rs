//! What the API server makes of JobSets by itself: defaults, rules, columns.

use anyhow::{Context, Result, bail, ensure};
use http::{Request, header};
use serde_json::{Value, json};

use super::cases;
use crate::world::{World, group, manifest, same, with};

cases!(the_schema_fills_in, the_schema_refuses, fields_stay_as_they_are, columns_are_printed);

async fn the_schema_fills_in(world: World) -> Result<()> {
    let plain = json!({"name": "a", "template": {"spec": {"template": {"spec": {
        "containers": [{"name": "main", "image": "none"}]}}}}});
    let spec = json!({"suspend": true, "replicatedJobs": [plain], "failurePolicy": {}});
    let made = world.create(manifest(spec)).await?;
    let job = &made["spec"]["replicatedJobs"][0];
    same("replicas", &job["replicas"], &json!(1))?;
    same("groupName", &job["groupName"], &json!("default"))?;
    let policy = &made["spec"]["failurePolicy"];
    same("restartStrategy", &policy["restartStrategy"], &json!("Recreate"))
}

async fn the_schema_refuses(world: World) -> Result<()> {
    let dependent =
        with(group("b", 1, 1), json!({"dependsOn": [{"name": "a", "status": "Ready"}]}));
    let cases = [
        (json!({"replicatedJobs": [group("a", -1, 1)]}), "should be greater than or equal to 0"),
        (json!({"successPolicy": {"operator": "Most"}}), "Unsupported value: \"Most\""),
        (
            json!({"startupPolicy": {"startupPolicyOrder": "InOrder"},
                "replicatedJobs": [group("a", 1, 1), dependent]}),
            "StartupPolicy and DependsOn APIs are mutually exclusive",
        ),
        (json!({"ttlSecondsAfterFinished": -1}), "should be greater than or equal to 0"),
    ];
    for (spec, want) in cases {
        let said = refusal(world.create(manifest(spec.clone())).await.map(drop), &spec)?;
        ensure!(said.contains(want), "{spec}: {said} does not say {want:?}");
    }
    Ok(())
}

async fn fields_stay_as_they_are(world: World) -> Result<()> {
    let spec = json!({"suspend": true, "replicatedJobs": [group("a", 1, 1)],
        "successPolicy": {"operator": "All"}, "failurePolicy": {"maxRestarts": 1},
        "network": {"enableDNSHostnames": true}});
    world.jobset(spec).await?;
    for change in [
        json!({"successPolicy": {"operator": "Any"}}),
        json!({"failurePolicy": {"maxRestarts": 2}}),
        json!({"network": {"enableDNSHostnames": false}}),
    ] {
        let said = refusal(world.patch("js", json!({"spec": change})).await, &change)?;
        ensure!(said.contains("Value is immutable"), "{change}: {said}");
    }
    world.patch("js", json!({"spec": {"ttlSecondsAfterFinished": 5}})).await?;
    Ok(())
}

async fn columns_are_printed(world: World) -> Result<()> {
    world.jobset(json!({"suspend": true, "replicatedJobs": [group("a", 1, 1)]})).await?;
    world.until_condition("js", ["Suspended", "True", "SuspendedJobs"]).await?;
    let path = format!("/apis/jobset.x-k8s.io/v1alpha2/namespaces/{}/jobsets/js", world.namespace);
    let request = Request::get(path)
        .header(header::ACCEPT, "application/json;as=Table;v=v1;g=meta.k8s.io")
        .body(Vec::new())?;
    let table: Value = world.client.request(request).await?;
    let columns = table["columnDefinitions"].as_array().context("there are no columns")?;
    let names: Vec<&str> = columns.iter().filter_map(|column| column["name"].as_str()).collect();
    let want = ["Name", "TerminalState", "Restarts", "Completed", "Suspended", "Age"];
    same("the header", names.as_slice(), &want)?;
    let cells = &table["rows"][0]["cells"];
    same("the name", &cells[0], &json!("js"))?;
    // The type of the column is string: servers print what is there as text, or as it is.
    same("Suspended", cells[4].to_string().trim_matches('"'), "true")
}

fn refusal(answer: kube::Result<()>, what: &Value) -> Result<String> {
    match answer {
        Ok(()) => bail!("{what} is accepted"),
        Err(kube::Error::Api(status)) => {
            same("the code", status.code, 422)?;
            Ok(status.message)
        }
        Err(error) => Err(error.into()),
    }
}
