//! How many files this process may have open.

use std::sync::OnceLock;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// The limit this process was started with.
static ORIGINAL: OnceLock<Rlimit> = OnceLock::new();

/// Lets this process have as many files open as it may: each container takes three, and most
/// machines start programs with a limit of a thousand, which they may raise.
pub(super) fn raise() {
    ORIGINAL.get_or_init(|| {
        let original = getrlimit(Resource::Nofile);
        let raised = Rlimit { current: original.maximum, ..original };
        if let Err(error) = setrlimit(Resource::Nofile, raised) {
            tracing::warn!(%error, "the limit of open files stays {:?}", original.current);
        }
        original
    });
}

/// The limit containers get: the one this process was started with. Programs that go through all
/// descriptors there may be, or count on small numbers, take a limit of millions badly.
pub(super) fn for_containers() -> Option<u64> {
    ORIGINAL.get().and_then(|original| original.current)
}

/// Sets the limit again, in a shim, for itself and all it starts.
pub(crate) fn restore(current: Option<u64>) {
    let Some(current) = current else { return };
    let own = getrlimit(Resource::Nofile);
    // Lowering it is always allowed.
    let _ = setrlimit(Resource::Nofile, Rlimit { current: Some(current), ..own });
}
