//! Kinds of a few lines: Secret, ConfigMap, PriorityClass, Namespace, ServiceAccount.

use serde_json::Value;

use super::{
    object_head,
    template::list,
    text::{Text, scalar},
};
use crate::table::pairs;

/// Describes a Secret: how much, never what.
pub(super) fn secret(object: &Value, text: &mut Text) {
    object_head(object, text);
    text.line(0, "");
    text.field(0, "Type", scalar(&object["type"]));
    text.line(0, "");
    text.line(0, "Data");
    text.line(0, "====");
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        text.line(0, &format!("{key}:\t{} bytes", decoded_length(value)));
    }
}

/// Describes a ConfigMap: the texts themselves.
pub(super) fn config_map(object: &Value, text: &mut Text) {
    object_head(object, text);
    text.line(0, "");
    text.line(0, "Data");
    text.line(0, "====");
    for (key, value) in object["data"].as_object().into_iter().flatten() {
        text.line(0, &format!("{key}:"));
        text.line(0, "----");
        scalar(value).split('\n').for_each(|line| text.line(0, line));
        text.line(0, "");
    }
    text.line(0, "");
    text.line(0, "BinaryData");
    text.line(0, "====");
    for (key, value) in object["binaryData"].as_object().into_iter().flatten() {
        text.line(0, &format!("{key}: {} bytes", decoded_length(value)));
    }
    text.line(0, "");
}

/// How many bytes a text in base64 stands for.
fn decoded_length(value: &Value) -> usize {
    let encoded = value.as_str().unwrap_or_default();
    let padding = encoded.bytes().rev().take_while(|&byte| byte == b'=').count();
    (encoded.len() / 4 * 3).saturating_sub(padding)
}

/// Describes a PriorityClass.
pub(super) fn priority_class(class: &Value, text: &mut Text) {
    text.field(0, "Name", scalar(&class["metadata"]["name"]));
    text.field(0, "Value", scalar(&class["value"]));
    text.field(0, "GlobalDefault", (class["globalDefault"] == true).to_string());
    text.field(0, "PreemptionPolicy", scalar(&class["preemptionPolicy"]));
    text.field(0, "Description", scalar(&class["description"]));
    text.field(0, "Annotations", pairs(&class["metadata"]["annotations"]));
}

/// Describes a Namespace.
pub(super) fn namespace(namespace: &Value, text: &mut Text) {
    object_head(namespace, text);
    text.field(0, "Status", scalar(&namespace["status"]["phase"]));
    let conditions = list(&namespace["status"]["conditions"]);
    if !conditions.is_empty() {
        text.line(0, "Conditions:");
        text.line(1, "Type\tStatus\tLastTransitionTime\tReason\tMessage");
        text.line(1, "----\t------\t------------------\t------\t-------");
    }
    for condition in conditions {
        let cells = [
            scalar(&condition["type"]),
            scalar(&condition["status"]),
            super::moment(&condition["lastTransitionTime"]),
            scalar(&condition["reason"]),
            scalar(&condition["message"]),
        ];
        text.line(1, &cells.join("\t"));
    }
}

/// Describes a ServiceAccount.
pub(super) fn service_account(account: &Value, text: &mut Text) {
    object_head(account, text);
    let names = list(&account["imagePullSecrets"]).iter().map(|secret| scalar(&secret["name"]));
    text.list(0, "Image pull secrets", &names.collect::<Vec<_>>());
}
