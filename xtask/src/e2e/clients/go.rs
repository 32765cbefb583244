//! The program that uses client-go, built from `tests/clients/go` and the published modules.

use std::{
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::PathBuf,
};

use anyhow::{Context, Result};

use crate::{
    go::{self, Program},
    shell,
};

/// Its source. The names of the modules and their versions are in `go.mod`.
const FILES: [(&str, &str); 8] = [
    ("definitions.go", include_str!("../../../../tests/clients/go/definitions.go")),
    ("go.mod", include_str!("../../../../tests/clients/go/go.mod")),
    ("informers.go", include_str!("../../../../tests/clients/go/informers.go")),
    ("main.go", include_str!("../../../../tests/clients/go/main.go")),
    ("objects.go", include_str!("../../../../tests/clients/go/objects.go")),
    ("report.go", include_str!("../../../../tests/clients/go/report.go")),
    ("rights.go", include_str!("../../../../tests/clients/go/rights.go")),
    ("streams.go", include_str!("../../../../tests/clients/go/streams.go")),
];

/// The path of the program, which is built when this very source is not in the cache.
pub(super) fn binary() -> Result<PathBuf> {
    let mut source = DefaultHasher::new();
    FILES.hash(&mut source);
    let all = shell::cache()?.join("go-client");
    let folder = all.join(format!("{:016x}", source.finish()));
    let program = Program {
        name: "client",
        folder: &folder,
        package: ".",
        linker: go::SMALL,
        effort: "a few minutes",
    };
    program.binary(|| {
        // Programs of earlier sources are of no use any more.
        if all.is_dir() {
            fs::remove_dir_all(&all).with_context(|| format!("cannot clear {}", all.display()))?;
        }
        Ok(FILES.map(|(name, text)| (name, text.to_owned())).to_vec())
    })
}
