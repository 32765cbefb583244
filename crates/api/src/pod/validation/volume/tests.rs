//! Tables for volumes.

use serde_json::{Value, json};

use super::super::tests::{assert_spec, errors_of};

fn check(volume: Value, want: &[&str]) {
    let mut volume = volume;
    volume["name"] = json!("v");
    let spec = json!({"volumes": [volume], "containers": [{"name": "c", "image": "i"}]});
    assert_spec(spec, want);
}

#[test]
fn a_volume_has_one_source() {
    check(json!({}), &[]);
    check(
        json!({"hostPath": {"path": "/x"}, "emptyDir": {}, "configMap": {"name": "m"}}),
        &[
            "spec.volumes[0].hostPath: Forbidden: may not specify more than 1 volume type",
            "spec.volumes[0].configMap: Forbidden: may not specify more than 1 volume type",
        ],
    );
    // Without defaulting there may be no source at all.
    let spec = serde_json::from_value(json!({
        "volumes": [{"name": "v"}], "containers": [{"name": "c", "image": "i"}],
    }))
    .unwrap();
    let errors = super::super::validate_pod_spec(
        &spec,
        &crate::field::Path::new("spec"),
        super::super::PodKind::Pod,
    );
    assert!(
        errors.iter().any(|e| e.to_string()
            == "spec.volumes[0]: Required value: must specify a volume type"),
        "{errors:?}"
    );
}

#[test]
fn names_are_unique_labels() {
    assert_spec(
        json!({
            "volumes": [{"name": "v"}, {"name": "v"}, {"name": ""}, {"name": "V"}],
            "containers": [{"name": "c", "image": "i"}],
        }),
        &[
            "spec.volumes[1].name: Duplicate value: \"v\"",
            "spec.volumes[2].name: Required value",
            "spec.volumes[3].name: Invalid value: \"V\": a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')",
        ],
    );
}

#[test]
fn file_sources() {
    let v = "spec.volumes[0]";
    let cases: [(Value, Vec<String>); 10] = [
        (
            json!({"emptyDir": {"sizeLimit": "-1"}}),
            vec![format!(
                "{v}.emptyDir.sizeLimit: Forbidden: SizeLimit field must be a valid resource quantity"
            )],
        ),
        (json!({"hostPath": {"path": ""}}), vec![format!("{v}.hostPath.path: Required value")]),
        (
            json!({"hostPath": {"path": "/a/../b", "type": "Disk"}}),
            vec![
                format!("{v}.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"),
                format!(
                    "{v}.hostPath.type: Unsupported value: \"Disk\": supported values: \"\", \"BlockDevice\", \"CharDevice\", \"Directory\", \"DirectoryOrCreate\", \"File\", \"FileOrCreate\", \"Socket\""
                ),
            ],
        ),
        (
            json!({"secret": {"defaultMode": 512, "items": [{"key": "", "path": "/a", "mode": -1}]}}),
            vec![
                format!("{v}.secret.secretName: Required value"),
                format!(
                    "{v}.secret.defaultMode: Invalid value: 512: must be a number between 0 and 0777 (octal), both inclusive"
                ),
                format!("{v}.secret.items[0].key: Required value"),
                format!("{v}.secret.items[0].path: Invalid value: \"/a\": must be a relative path"),
                format!(
                    "{v}.secret.items[0].mode: Invalid value: -1: must be a number between 0 and 0777 (octal), both inclusive"
                ),
            ],
        ),
        (
            json!({"configMap": {"name": "", "items": [{"key": "k", "path": "..a"}]}}),
            vec![
                format!("{v}.configMap.name: Required value"),
                format!(
                    "{v}.configMap.items[0].path: Invalid value: \"..a\": must not start with '..'"
                ),
            ],
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "p"}]}}),
            vec![format!(
                "{v}.downwardAPI: Required value: one of fieldRef and resourceFieldRef is required"
            )],
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "p", "resourceFieldRef": {"resource": "limits.cpu"}}]}}),
            vec![format!("{v}.downwardAPI.resourceFieldRef.containerName: Required value")],
        ),
        (
            json!({"downwardAPI": {"items": [{"path": "p", "fieldRef": {"fieldPath": "spec.nodeName"}}]}}),
            vec![format!(
                "{v}.downwardAPI.fieldRef.fieldPath: Unsupported value: \"spec.nodeName\": supported values: \"metadata.annotations\", \"metadata.labels\", \"metadata.name\", \"metadata.namespace\", \"metadata.uid\""
            )],
        ),
        (
            json!({"persistentVolumeClaim": {"claimName": ""}}),
            vec![format!("{v}.persistentVolumeClaim.claimName: Required value")],
        ),
        (json!({"image": {}}), vec![format!("{v}.image.reference: Required value")]),
    ];
    for (volume, want) in cases {
        let want: Vec<&str> = want.iter().map(String::as_str).collect();
        check(volume, &want);
    }
}

#[test]
fn projected_sources_do_not_collide() {
    let v = "spec.volumes[0].projected";
    let item = json!({"key": "k", "path": "p"});
    check(
        json!({"projected": {"sources": [
            {"secret": {"name": "s", "items": [item]}},
            {"configMap": {"name": "m", "items": [item]}, "downwardAPI": {}},
            {"serviceAccountToken": {"path": "", "expirationSeconds": 60}},
            {"clusterTrustBundle": {"path": "c"}},
        ]}}),
        &[
            &format!("{v}: Invalid value: \"m\": conflicting duplicate paths"),
            &format!(
                "{v}.sources[1]: Forbidden: may not specify more than 1 volume type per source"
            ),
            &format!(
                "{v}.sources[2].serviceAccountToken.expirationSeconds: Invalid value: 60: may not specify a duration less than 10 minutes"
            ),
            &format!("{v}.path: Required value"),
            &format!(
                "{v}.sources[3].clusterTrustBundle: Required value: either name or signerName must be specified"
            ),
            &format!(
                "{v}.sources[2].serviceAccountToken: Forbidden: must not be specified when serviceAccountName is not set"
            ),
        ],
    );
}

#[test]
fn claims_made_with_the_pod() {
    let v = "spec.volumes[0].ephemeral.volumeClaimTemplate";
    check(json!({"ephemeral": {}}), &[&format!("{v}: Required value")]);
    check(
        json!({"ephemeral": {"volumeClaimTemplate": {"metadata": {"name": "n"}, "spec": {"accessModes": ["ReadWriteOncePod", "ReadWriteOnce", "X"]}}}}),
        &[
            &format!("{v}.metadata.name: Forbidden: cannot be set"),
            &format!(
                "{v}.spec.accessModes: Unsupported value: \"X\": supported values: \"ReadOnlyMany\", \"ReadWriteMany\", \"ReadWriteOnce\", \"ReadWriteOncePod\""
            ),
            &format!(
                "{v}.spec.accessModes: Forbidden: may not use ReadWriteOncePod with other access modes"
            ),
            &format!("{v}.spec.resources[storage]: Required value"),
        ],
    );
}

#[test]
fn remote_sources_need_their_fields() {
    let cases = [
        (json!({"nfs": {"server": "", "path": "x"}}), 2),
        (json!({"iscsi": {"targetPortal": "t", "iqn": "iqn.2001-04.com.example:a", "lun": 0}}), 0),
        (json!({"iscsi": {"targetPortal": "t", "iqn": "iqn.x", "lun": 256}}), 2),
        (json!({"iscsi": {"targetPortal": "", "iqn": "é", "lun": 0, "chapAuthSession": true}}), 3),
        (json!({"glusterfs": {"endpoints": "", "path": ""}}), 2),
        (json!({"gcePersistentDisk": {"pdName": "", "partition": 256}}), 2),
        (json!({"awsElasticBlockStore": {"volumeID": ""}}), 1),
        (json!({"rbd": {"monitors": [], "image": ""}}), 2),
        (json!({"cinder": {"volumeID": "", "secretRef": {}}}), 2),
        (json!({"cephfs": {"monitors": []}}), 1),
        (json!({"quobyte": {"registry": "x", "volume": ""}}), 2),
        (json!({"fc": {}}), 1),
        (json!({"flexVolume": {"driver": "", "options": {"k8s.io/x": "1"}}}), 2),
        (json!({"azureFile": {"secretName": "", "shareName": ""}}), 2),
        (json!({"azureDisk": {"diskName": "", "diskURI": ""}}), 3),
        (json!({"storageos": {"volumeName": "A", "secretRef": {}}}), 2),
        (json!({"scaleIO": {"gateway": "", "system": "", "secretRef": {}}}), 3),
        (json!({"csi": {"driver": "", "nodePublishSecretRef": {}}}), 2),
        (json!({"flocker": {}}), 1),
        (json!({"vsphereVolume": {"volumePath": ""}}), 1),
        (json!({"photonPersistentDisk": {"pdID": ""}}), 1),
        (json!({"portworxVolume": {"volumeID": ""}}), 1),
        (json!({"gitRepo": {"repository": "", "directory": "../x"}}), 2),
    ];
    for (volume, want) in cases {
        let mut named = volume.clone();
        named["name"] = json!("v");
        let got =
            errors_of(json!({"volumes": [named], "containers": [{"name": "c", "image": "i"}]}));
        assert_eq!(got.len(), want, "{volume}: {got:#?}");
    }
}
