//! GET of a collection: stored bytes, one after the other.

use std::sync::Arc;

use axum::{body::Body, response::Response};
use bytes::{BufMut, Bytes, BytesMut};
use http::{HeaderValue, StatusCode, header};
use lockstep_api::Status;
use lockstep_store::{Object, page::Page};
use serde_json::{Map, Value};

use crate::{
    cluster,
    server::{
        call::{Address, Call},
        negotiate::Encoding,
        options::{Freshness, ListOptions},
        present::Presenter,
        respond,
    },
};

/// How much is put together before it is sent.
const CHUNK_BYTES: usize = 64 * 1024;

/// Shows a collection, or a page of it.
pub(crate) async fn list(call: &Call, address: &Address) -> Result<Response, Status> {
    let presenter = Presenter::of_list(call, &address.resource)?;
    let options = ListOptions::read(&call.query, false)?;
    let filter = call.filter(address, &options)?;
    let (resource_version, is_exact) = match options.freshness()? {
        Freshness::Latest => (None, false),
        Freshness::NotOlderThan(revision) => (Some(revision), false),
        Freshness::Exact(revision) => (Some(revision), true),
    };
    let asked = cluster::ListOptions {
        // Who is content with whatever there is gets all of it, as caches upstream know no pages.
        limit: if resource_version == Some(0) { 0 } else { options.limit },
        continue_token: Some(options.continue_token),
        resource_version,
        is_exact,
    };
    let page = call.app.cluster.list(&filter, &asked).await?;
    Ok(shown(call, presenter, page))
}

/// The answer that shows a page of a list.
pub(crate) fn shown(call: &Call, presenter: Presenter, page: Page) -> Response {
    let mut head = BytesMut::with_capacity(1024);
    presenter.put_list_head(&mut head, &list_meta(&presenter, &page));
    let writer = ListWriter { presenter, items: page.items, at: 0, chunk: head, is_done: false };
    if call.output.encoding == Encoding::Yaml || call.output.is_pretty {
        let whole = writer.fold(BytesMut::new(), |mut whole, chunk| {
            whole.put_slice(&chunk);
            whole
        });
        return respond::json(StatusCode::OK, whole.freeze(), call.output);
    }
    streamed(writer)
}

/// The metadata of a list.
fn list_meta(presenter: &Presenter, page: &Page) -> Value {
    let mut meta = Map::new();
    meta.insert("resourceVersion".to_owned(), page.revision.to_string().into());
    if let Some(token) = &page.next {
        meta.insert("continue".to_owned(), token.encode().into());
    } else if presenter.shows_custom_objects() {
        meta.insert("continue".to_owned(), "".into());
    }
    if let Some(remaining) = page.remaining {
        meta.insert("remainingItemCount".to_owned(), remaining.into());
    }
    meta.into()
}

/// A long list is written while it is read, so that it is never in memory twice.
fn streamed(mut writer: ListWriter) -> Response {
    let first = writer.next().unwrap_or_default();
    let body = match writer.is_done {
        true => Body::from(first),
        false => {
            let chunks =
                std::iter::once(first).chain(writer).map(Ok::<_, std::convert::Infallible>);
            Body::from_stream(futures::stream::iter(chunks))
        }
    };
    let mut response = Response::new(body);
    let json = HeaderValue::from_static("application/json");
    response.headers_mut().insert(header::CONTENT_TYPE, json);
    response
}

/// Writes a list in chunks. Each chunk is a whole number of items, so that one large item makes one
/// large chunk and nothing is copied twice.
struct ListWriter {
    presenter: Presenter,
    items: Vec<Arc<Object>>,
    at: usize,
    chunk: BytesMut,
    is_done: bool,
}

impl Iterator for ListWriter {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        if self.is_done {
            return None;
        }
        while let Some(object) = self.items.get(self.at) {
            if self.at > 0 {
                self.chunk.put_u8(b',');
            }
            self.presenter.put_item(&mut self.chunk, object);
            self.at += 1;
            if self.chunk.len() >= CHUNK_BYTES {
                return Some(self.chunk.split().freeze());
            }
        }
        self.chunk.put_slice(b"]}");
        self.is_done = true;
        Some(self.chunk.split().freeze())
    }
}
