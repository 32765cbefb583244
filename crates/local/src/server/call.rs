//! What the verbs know about a request.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::{HeaderMap, header};
use hyper::upgrade::OnUpgrade;
use lockstep_api::{
    Resource, Status, decode,
    selector::{FieldSelector, LabelSelector},
};
use lockstep_store::{object::Selectors, watch::Filter};

use super::{
    App, authorize,
    body::yaml_to_json,
    limits::read_body,
    negotiate::{self, Input, Output, Shape},
    options::{FIELD_MANAGER_LENGTH_MAX, ListOptions, MutationOptions},
    query::Query,
};
use crate::{auth::User, cluster::WriteOptions};

/// A request whose caller is known.
pub(crate) struct Call {
    pub(crate) app: Arc<App>,
    pub(crate) user: User,
    /// The part of this process that is calling, if one is.
    pub(crate) component: Option<String>,
    pub(crate) query: Query,
    pub(crate) headers: HeaderMap,
    pub(crate) output: Output,
    /// How to go on with the connection as something else than HTTP, where that can be.
    pub(crate) upgrade: Option<OnUpgrade>,
}

/// Which objects of a resource a request is about.
#[derive(Clone)]
pub(crate) struct Address {
    /// The resource.
    pub(crate) resource: Arc<Resource>,
    /// The namespace: absent for cluster-scoped kinds and for all namespaces.
    pub(crate) namespace: Option<String>,
    /// The object's name; empty for a collection.
    pub(crate) name: String,
}

impl Address {
    /// The namespace, empty when there is none.
    pub(crate) fn namespace(&self) -> &str {
        self.namespace.as_deref().unwrap_or_default()
    }

    /// Namespace and name.
    pub(crate) fn key(&self) -> (&str, &str) {
        (self.namespace(), &self.name)
    }
}

impl Call {
    /// The body as JSON; YAML and protobuf are turned into it.
    pub(crate) async fn json_body(&self, body: Body) -> Result<Bytes, Status> {
        let input = negotiate::input(&self.headers)?;
        let bytes = read_body(body).await?;
        match input {
            _ if bytes.is_empty() => Ok(bytes),
            Input::Json => Ok(bytes),
            Input::Yaml => yaml_to_json(&bytes),
            Input::Protobuf => decode::protobuf_to_json(&bytes).map(Bytes::from),
        }
    }

    /// How to answer with what can only be shown as it is.
    ///
    /// # Errors
    /// 406 when the client would only take something else.
    pub(crate) fn plain_output(&self) -> Result<Output, Status> {
        match self.output.shape {
            Shape::Object => Ok(self.output),
            _ => negotiate::plain_output(&self.headers, &self.query),
        }
    }

    /// Who writes, and how.
    pub(crate) fn write_options(&self, options: &MutationOptions) -> WriteOptions {
        WriteOptions {
            dry_run: options.is_dry_run,
            user: self.user.name.clone(),
            field_manager: self.manager(&options.field_manager),
            field_validation: options.field_validation,
            guard: authorize::guard(&self.app, &self.user),
        }
    }

    /// Who comes to own what is written, given who the request says that is.
    fn manager(&self, given: &str) -> String {
        match &self.component {
            _ if !given.is_empty() => given.to_owned(),
            // Parts have the names that upstream's programs give themselves.
            Some(component) if component.starts_with("node:") => "kubelet".to_owned(),
            Some(component) if component == "apiserver" => "kube-apiserver".to_owned(),
            Some(component) => component.clone(),
            None => manager_of_agent(&self.headers),
        }
    }

    /// Which objects of a collection are meant.
    pub(crate) fn filter(
        &self,
        address: &Address,
        options: &ListOptions,
    ) -> Result<Filter, Status> {
        let resource = &address.resource;
        let selectors = Selectors {
            labels: LabelSelector::parse(&options.label_selector)?,
            fields: FieldSelector::parse(&options.field_selector, &*resource.strategy)?,
        };
        // Kinds with fields of their own list the namespace only if they have one.
        let has_own =
            !resource.strategy.selectable_fields().is_empty() || resource.strategy.is_custom();
        if has_own && !resource.is_namespaced() && selectors.fields.names("metadata.namespace") {
            let why = resource.strategy.unsupported_field("metadata.namespace");
            return Err(Status::bad_request(why));
        }
        Ok(Filter::new(resource, address.namespace.as_deref(), selectors))
    }
}

/// The name a client goes by as a manager: what its `User-Agent` has before the version.
fn manager_of_agent(headers: &HeaderMap) -> String {
    let agent = headers.get(header::USER_AGENT).map(|value| value.as_bytes());
    let agent = String::from_utf8_lossy(agent.unwrap_or_default());
    let name = agent.split('/').next().unwrap_or_default();
    let mut manager = String::new();
    for character in name.chars().filter(|c| !c.is_control()) {
        if manager.len() + character.len_utf8() > FIELD_MANAGER_LENGTH_MAX {
            break;
        }
        manager.push(character);
    }
    manager
}
