//! Continue tokens, and the lists that go on from them.

use std::sync::LazyLock;

use base64::{Engine, engine::general_purpose::URL_SAFE_NO_PAD};
use lockstep_api::strategy::Json;
use lockstep_store::{
    Snapshot,
    object::Selectors,
    page::{self, Token},
    rest,
    watch::Filter,
};
use serde_json::json;

use crate::{
    bound::bounded_and_stretched,
    kinds::CATALOG,
    world::{NAMESPACE, World},
};

/// Some objects to walk through.
static OBJECTS: LazyLock<Snapshot> = LazyLock::new(|| {
    let mut world = World::new();
    let maps = CATALOG.registry().get("", "v1", "configmaps").expect("they are served");
    for name in ["a", "a.b", "a-b", "b", "b0", "c", "zz"] {
        let object: Json =
            json!({"metadata": {"name": name}}).as_object().cloned().unwrap_or_default();
        let place = (&**maps, NAMESPACE);
        world.write(place, "setup", |scene| rest::create(scene, object)).expect("it is made");
    }
    world.store.published().clone()
});

/// The bytes are what a token has inside, and, as they are, a token.
pub fn feed(bytes: &[u8]) {
    let decode = |bytes: &[u8]| Token::decode(&String::from_utf8_lossy(bytes));
    let _ = bounded_and_stretched(bytes, decode);
    let inside = |bytes: &[u8]| Token::decode(&URL_SAFE_NO_PAD.encode(bytes));
    let Ok(token) = bounded_and_stretched(bytes, inside) else { return };
    let again = Token::decode(&token.encode());
    assert_eq!(again.unwrap_or_else(|status| panic!("{status:?}")), token);
    let fresh = token.expired().metadata.continue_token;
    let fresh = Token::decode(&fresh).unwrap_or_else(|status| panic!("{status:?}"));
    assert_eq!((fresh.revision, &fresh.start), (None, &token.start));
    let maps = CATALOG.registry().get("", "v1", "configmaps").expect("they are served");
    for namespace in [Some(NAMESPACE), None] {
        let filter = Filter::new(maps, namespace, Selectors::default());
        walk(&filter, &token);
    }
}

/// Pages of any size are the rest of the list, in order and without gaps.
fn walk(filter: &Filter, token: &Token) {
    let names = |page: &page::Page| -> Vec<String> {
        page.items.iter().map(|object| object.meta.name.to_string()).collect()
    };
    let all = names(&page::list(&OBJECTS, filter, Some(token), None));
    let mut walked = Vec::new();
    let mut next = Some(token.clone());
    while let Some(token) = next {
        let page = page::list(&OBJECTS, filter, Some(&token), Some(2));
        assert!(page.items.len() <= 2 && walked.len() <= all.len(), "more than there is");
        walked.extend(names(&page));
        next = page.next;
    }
    assert_eq!(walked, all);
}
