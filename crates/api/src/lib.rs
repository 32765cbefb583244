//! The nouns of Lockstep: which kinds there are, what they are called, what is filled in when a
//! user leaves it out, what is refused and with which words.
//!
//! Everything here is a plain function of its arguments. This crate knows nothing of storage,
//! requests or processes; time, when it matters, comes in as an argument.
#![forbid(unsafe_code)]
#![warn(clippy::wildcard_enum_match_arm, clippy::iter_over_hash_type)]

pub mod amounts;
mod annotations;
pub mod builtin;
pub mod cron;
pub mod custom;
pub mod decode;
pub mod definition;
pub mod discovery;
pub mod duration;
pub mod field;
pub mod gates;
pub mod job;
pub mod jobset;
pub mod json;
pub mod jsonpath;
pub mod kinds;
pub mod kueue;
pub mod labels;
pub mod meta;
pub mod names;
pub mod openapi;
pub mod pod;
pub mod quantity;
pub mod quota;
pub mod quote;
pub mod rbac;
pub mod re2;
pub mod reasons;
pub mod refused;
pub mod resource;
pub mod schema;
pub mod selector;
pub mod status;
pub mod strategy;
pub mod table;
pub mod tokens;

pub use field::{ErrorKind, ErrorList, FieldError, Path};
pub use gates::Gates;
pub use resource::{Registry, Resource, Scope};
pub use status::Status;
pub use strategy::Strategy;

/// The Kubernetes release whose API this crate follows.
pub const KUBERNETES_VERSION: &str = "v1.36.4";
