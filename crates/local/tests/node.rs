//! The node with real processes.

mod node {
    pub(crate) mod containers;
    pub(crate) mod support;
}
