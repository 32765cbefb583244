//! Files generated from the published OpenAPI documents.

/// Options of `cargo xtask openapi`.
#[derive(clap::Args)]
pub(crate) struct Options {}

/// Writes the generated files.
pub(crate) fn run(_options: &Options) -> anyhow::Result<()> {
    println!("nothing is generated yet");
    Ok(())
}
