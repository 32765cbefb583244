//! The API over HTTP, in-process: what clients send and what they get, to the letter.

mod api {
    mod clients;
    mod errors;
    mod fuzz;
    mod lists;
    mod shapes;
    mod support;
    mod watches;
    mod writes;
}
