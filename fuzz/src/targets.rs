//! What is fed, each in a file with what must hold of it.

pub(crate) mod apply;
pub(crate) mod create;
pub(crate) mod cron;
pub(crate) mod frames;
pub(crate) mod json;
pub(crate) mod jsonpath;
pub(crate) mod numbers;
pub(crate) mod pages;
pub(crate) mod patches;
pub(crate) mod protobuf;
pub(crate) mod regex;
pub(crate) mod requests;
pub(crate) mod selectors;
pub(crate) mod yaml;
