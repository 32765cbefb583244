//! The files of volumes that show objects of the API. Pure.

use std::collections::BTreeMap;
use std::path::{Component, Path};

use k8s_openapi::api::core::v1::{
    ConfigMap, DownwardAPIVolumeFile, KeyToPath, Pod, Secret, Volume, VolumeProjection,
};

use crate::node::env::field;
use crate::node::sources::{Sources, TOKEN_SECONDS_DEFAULT};

const MODE_DEFAULT: i32 = 0o644;

/// Files by their path in the volume.
pub(super) type Payload = BTreeMap<String, FileContent>;

/// One file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FileContent {
    pub(super) data: Vec<u8>,
    pub(super) mode: u32,
}

/// What `volume` should contain; `None` if it does not show objects.
pub(super) fn of(pod: &Pod, volume: &Volume, sources: &Sources) -> Result<Option<Payload>, String> {
    let mut payload = Payload::new();
    if let Some(source) = &volume.config_map {
        let wanted = Wanted::new(source.items.as_deref(), source.default_mode, source.optional);
        add_config_map(&mut payload, &source.name, &wanted, sources)?;
    } else if let Some(source) = &volume.secret {
        let wanted = Wanted::new(source.items.as_deref(), source.default_mode, source.optional);
        let name = source.secret_name.as_deref().unwrap_or_default();
        add_secret(&mut payload, name, &wanted, sources)?;
    } else if let Some(source) = &volume.downward_api {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        add_fields(&mut payload, pod, source.items.iter().flatten(), mode, sources)?;
    } else if let Some(source) = &volume.projected {
        let mode = source.default_mode.unwrap_or(MODE_DEFAULT);
        for projection in source.sources.iter().flatten() {
            add_projection(&mut payload, pod, projection, mode, sources)?;
        }
    } else {
        return Ok(None);
    }
    for path in payload.keys() {
        let is_plain = |part| matches!(part, Component::Normal(name) if name != "..data");
        if path.is_empty() || !Path::new(path).components().all(is_plain) {
            return Err(format!("invalid path {path:?}"));
        }
    }
    Ok(Some(payload))
}

/// Which keys go where.
struct Wanted<'a> {
    items: Option<&'a [KeyToPath]>,
    mode: i32,
    optional: bool,
}

impl<'a> Wanted<'a> {
    fn new(items: Option<&'a [KeyToPath]>, mode: Option<i32>, optional: Option<bool>) -> Self {
        Self {
            items: items.filter(|items| !items.is_empty()),
            mode: mode.unwrap_or(MODE_DEFAULT),
            optional: optional == Some(true),
        }
    }

    /// Adds the wanted ones of `all`; `missing` names a key that is not there.
    fn add(
        &self,
        payload: &mut Payload,
        all: &BTreeMap<&str, &[u8]>,
        missing: &str,
    ) -> Result<(), String> {
        let Some(items) = self.items else {
            payload
                .extend(all.iter().map(|(key, data)| ((*key).to_owned(), file(data, self.mode))));
            return Ok(());
        };
        for item in items {
            match all.get(item.key.as_str()) {
                Some(data) => {
                    let content = file(data, item.mode.unwrap_or(self.mode));
                    payload.insert(item.path.clone(), content);
                }
                None if self.optional => {}
                None => return Err(format!("{missing}: {}", item.key)),
            }
        }
        Ok(())
    }
}

fn add_config_map(
    payload: &mut Payload,
    name: &str,
    wanted: &Wanted<'_>,
    sources: &Sources,
) -> Result<(), String> {
    let empty = ConfigMap::default();
    let object = match sources.config_maps.get(name) {
        Some(object) => object,
        None if wanted.optional => &empty,
        None => return Err(format!("configmap \"{name}\" not found")),
    };
    let text = object.data.iter().flatten().map(|(key, data)| (key.as_str(), data.as_bytes()));
    let binary =
        object.binary_data.iter().flatten().map(|(key, data)| (key.as_str(), data.0.as_slice()));
    let all = text.chain(binary).collect();
    wanted.add(payload, &all, "configmap references non-existent config key")
}

fn add_secret(
    payload: &mut Payload,
    name: &str,
    wanted: &Wanted<'_>,
    sources: &Sources,
) -> Result<(), String> {
    let empty = Secret::default();
    let object = match sources.secrets.get(name) {
        Some(object) => object,
        None if wanted.optional => &empty,
        None => return Err(format!("secret \"{name}\" not found")),
    };
    let all = object.data.iter().flatten().map(|(key, data)| (key.as_str(), data.0.as_slice()));
    wanted.add(payload, &all.collect(), "references non-existent secret key")
}

fn add_fields<'a>(
    payload: &mut Payload,
    pod: &Pod,
    items: impl Iterator<Item = &'a DownwardAPIVolumeFile>,
    mode: i32,
    sources: &Sources,
) -> Result<(), String> {
    for item in items {
        let value = match (&item.field_ref, &item.resource_field_ref) {
            (Some(field), _) => field::of_pod(pod, &field.field_path, sources),
            (None, Some(resource)) => field::of_resources(pod, None, resource, &sources.node),
            (None, None) => continue,
        };
        let value = value.map_err(|error| error.to_string())?;
        payload.insert(item.path.clone(), file(value.as_bytes(), item.mode.unwrap_or(mode)));
    }
    Ok(())
}

fn add_projection(
    payload: &mut Payload,
    pod: &Pod,
    projection: &VolumeProjection,
    mode: i32,
    sources: &Sources,
) -> Result<(), String> {
    if let Some(source) = &projection.config_map {
        let wanted = Wanted::new(source.items.as_deref(), Some(mode), source.optional);
        add_config_map(payload, &source.name, &wanted, sources)
    } else if let Some(source) = &projection.secret {
        let wanted = Wanted::new(source.items.as_deref(), Some(mode), source.optional);
        add_secret(payload, &source.name, &wanted, sources)
    } else if let Some(source) = &projection.downward_api {
        add_fields(payload, pod, source.items.iter().flatten(), mode, sources)
    } else if let Some(source) = &projection.service_account_token {
        let seconds = source.expiration_seconds.unwrap_or(TOKEN_SECONDS_DEFAULT);
        let audience = source.audience.clone().unwrap_or_default();
        let account = pod.spec.as_ref().and_then(|spec| spec.service_account_name.as_deref());
        let token = sources.tokens.get(&(audience, seconds)).ok_or_else(|| {
            format!("failed to fetch token: no token for {}", account.unwrap_or("default"))
        })?;
        payload.insert(source.path.clone(), file(token.as_bytes(), mode));
        Ok(())
    } else {
        Err("a projected source is not supported by this node".to_owned())
    }
}

fn file(data: &[u8], mode: i32) -> FileContent {
    FileContent { data: data.to_vec(), mode: mode.unsigned_abs() & 0o777 }
}
