//! Quantities, durations, names and what else is a word in an object.

use std::cmp::Ordering;

use lockstep_api::{cron, duration, job, names, pod, quantity, quantity::Quantity, quote};

use crate::bound::bounded_and_stretched;

/// Takes a word.
pub fn feed(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let parse = |bytes: &[u8]| Quantity::parse(&String::from_utf8_lossy(bytes));
    if let Ok(quantity) = bounded_and_stretched(bytes, parse) {
        is_itself(text, &quantity);
    }
    let parse = |bytes: &[u8]| duration::parse_go(&String::from_utf8_lossy(bytes));
    if let Some(duration) = bounded_and_stretched(bytes, parse) {
        let shown = format!("{}ns", duration.as_nanos());
        assert_eq!(duration::parse_go(&shown), Some(duration), "{text}");
        duration::human(duration.as_secs());
    }
    let words = |bytes: &[u8]| feed_words(&String::from_utf8_lossy(bytes));
    bounded_and_stretched(bytes, words);
}

fn is_itself(text: &str, quantity: &Quantity) {
    let shown = quantity::canonical(text).unwrap_or_else(|why| panic!("{text}: {why}"));
    let again = Quantity::parse(&shown).unwrap_or_else(|why| panic!("{text} is {shown}: {why}"));
    assert_eq!(again.cmp(quantity), Ordering::Equal, "{text} is {shown}");
    assert_eq!(quantity::canonical(&shown).as_ref(), Ok(&shown), "{text} is {shown}");
    assert_eq!((again.value(), again.milli_value()), (quantity.value(), quantity.milli_value()));
    assert_eq!(again.is_zero(), again.sign() == 0);
    let zero = quantity.minus(quantity);
    assert!(zero.is_zero(), "{text}: {zero}");
    // Sums that no number has room for end at the largest one.
    let double = quantity.plus(quantity);
    assert_eq!(double.sign(), quantity.sign(), "{text}");
    let _ = quantity.rounded(-3);
    quantity.scaled(6);
}

fn feed_words(text: &str) {
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    names::dns1123_label(first);
    names::dns1123_subdomain_with_underscore(first);
    names::dns1035_label(first);
    names::env_var_name(first);
    names::config_map_key(first);
    names::port_name(first);
    names::http_header_name(first);
    names::c_identifier(first);
    names::percent(first);
    names::path_segment(first, true);
    names::label_value(first);
    if names::qualified_name(first).is_empty() {
        assert!(first.is_ascii() && !first.is_empty(), "{first}");
    }
    if names::dns1123_subdomain(first).is_empty() {
        let generated = names::generated(first, 7);
        assert!(generated.len() <= 63, "{generated}");
    }
    pod::image_tag(first);
    cron::zone(first);
    let quoted = quote::quoted(first);
    assert!(quoted.starts_with('"') && quoted.ends_with('"'), "{quoted}");
    let _ = job::indexes::validate_list(first, 1_000);
    job::indexes::first_overlap(first, rest, 1_000);
}
