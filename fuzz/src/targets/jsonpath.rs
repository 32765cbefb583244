//! JSONPath, as the command line and the columns of definitions take it.

use std::sync::LazyLock;

use lockstep_api::jsonpath as template;
use serde_json::{Value, json};

use crate::bound::{bounded, bounded_and_stretched};

static OBJECT: LazyLock<Value> = LazyLock::new(|| {
    json!({
        "kind": "List",
        "items": [
            {
                "metadata": {"name": "a", "labels": {"x.io/y": "1", "b": ""}},
                "status": {"conditions": [{"type": "Ready", "status": "True"}], "n": 2},
            },
            {"metadata": {"name": "b"}, "spec": {"list": [1, 2, -3, 4.5, null, true, "t"]}},
        ],
    })
});

/// Takes a template.
pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parse = |bytes: &[u8]| template::Template::parse(&String::from_utf8_lossy(bytes));
    if let Ok(parsed) = bounded_and_stretched(bytes, parse) {
        let values = bounded(|| parsed.values(&OBJECT));
        let shown = bounded(|| parsed.render(&OBJECT));
        assert_eq!(values.is_ok(), shown.is_ok());
        if !parsed.has_expression() {
            assert_eq!(shown.as_deref(), Ok(text), "text stands for itself");
        }
    }
    if let Ok(parsed) = bounded(|| template::Template::relaxed(text)) {
        let _ = bounded(|| parsed.values(&OBJECT));
    }
}
