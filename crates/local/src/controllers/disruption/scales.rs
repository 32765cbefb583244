//! How many pods those who control them should have.

use std::collections::BTreeMap;

use kube::{
    Api, Client,
    core::{DynamicObject, GroupVersionKind},
    discovery,
};
use lockstep_control::plan::disruption::{Owner, Scale, Tally};

/// Asks all who control pods of a budget.
///
/// # Errors
/// When nobody answers; that somebody cannot tell is an answer.
pub(super) async fn of(
    client: &Client,
    namespace: &str,
    tally: &Tally,
) -> kube::Result<BTreeMap<String, Scale>> {
    let mut scales = BTreeMap::new();
    for (uid, owned) in tally.owners() {
        let scale = ask(client, namespace, &owned.owner).await?;
        let is_known = matches!(scale, Scale::Of(_));
        scales.insert(uid.clone(), scale);
        // One who cannot tell is enough for nobody to be able to.
        if !is_known {
            break;
        }
    }
    Ok(scales)
}

async fn ask(client: &Client, namespace: &str, owner: &Owner) -> kube::Result<Scale> {
    let (group, version) = owner.api_version.split_once('/').unwrap_or(("", &owner.api_version));
    let kind = GroupVersionKind::gvk(group, version, &owner.kind);
    let (resource, capabilities) = match discovery::pinned_kind(client, &kind).await {
        Ok(found) => found,
        Err(kube::Error::Api(status)) if status.code == 404 => return Ok(unknown(owner)),
        Err(kube::Error::Discovery(_)) => return Ok(unknown(owner)),
        Err(error) => return Err(error),
    };
    let has_scale = capabilities.subresources.iter().any(|(sub, _)| sub.plural == "scale");
    if !has_scale {
        let dot = if group.is_empty() { "" } else { "." };
        let why =
            format!("{}{dot}{group} does not implement the scale subresource", resource.plural);
        return Ok(Scale::Unknown(why));
    }
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &resource);
    match api.get_scale(&owner.name).await {
        Ok(scale) if scale.metadata.uid.as_deref() == Some(&*owner.uid) => {
            let replicas = scale.spec.and_then(|spec| spec.replicas);
            Ok(Scale::Of(replicas.unwrap_or_default()))
        }
        Ok(_) => Ok(Scale::Gone),
        Err(kube::Error::Api(status)) if status.code == 404 => Ok(Scale::Gone),
        Err(error) => Err(error),
    }
}

fn unknown(owner: &Owner) -> Scale {
    let (version, kind) = (&owner.api_version, &owner.kind);
    Scale::Unknown(format!("no matches for kind {kind:?} in version {version:?}"))
}
