//! Golden files: what a screen looks like, kept beside the tests.

use std::{fs, path::Path};

/// Compares `actual` with `tests/golden/<name>`; `UPDATE_GOLDEN=1` rewrites the file instead.
pub(crate) fn check(name: &str, actual: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join("golden").join(name);
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        fs::create_dir_all(path.parent().expect("a file lies in a folder")).expect("a folder");
        fs::write(&path, actual).expect("written");
        return;
    }
    let wanted = fs::read_to_string(&path).unwrap_or_default();
    let differs = wanted.lines().zip(actual.lines()).position(|(want, got)| want != got);
    let line = differs.unwrap_or_else(|| wanted.lines().count().min(actual.lines().count()));
    assert!(
        wanted == actual,
        "{} differs from line {}\n--- wanted\n{wanted}\n--- got\n{actual}\n\
         (UPDATE_GOLDEN=1 accepts it)",
        path.display(),
        line + 1
    );
}
