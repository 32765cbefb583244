//! The container shim as an executable of its own, for tests that cannot re-execute themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    lockstep_local::node::shim::main()
}
