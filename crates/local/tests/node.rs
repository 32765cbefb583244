//! The node with real processes.

#[cfg(test)]
mod node {
    pub(crate) mod containers;
    pub(crate) mod limits;
    pub(crate) mod pace;
    pub(crate) mod support;
    pub(crate) mod survival;
    pub(crate) mod users;
    pub(crate) mod view;
}
