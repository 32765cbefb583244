//! The API over HTTP, in-process: what clients send and what they get, to the letter.
#![expect(clippy::unwrap_used, clippy::panic, reason = "helpers of tests fail tests")]

mod api {
    mod apply;
    mod clients;
    mod cronjobs;
    mod defined;
    mod definitions;
    mod errors;
    mod fuzz;
    mod jobs;
    mod jobsets;
    mod lists;
    mod queues;
    mod refused;
    mod roles;
    mod scaled;
    mod shapes;
    mod subresources;
    mod support;
    mod tokens;
    mod watches;
    mod writes;
}
