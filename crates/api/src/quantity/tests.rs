//! Tables for quantities; the expected texts come from the Go implementation.

use proptest::prelude::*;

use super::*;

#[test]
fn quantities_are_echoed_canonically() {
    let cases = [
        ("0", "0"),
        ("0Mi", "0"),
        ("0.5", "500m"),
        ("1.5", "1500m"),
        ("1.500", "1.500"),
        ("12.345", "12.345"),
        (".5", "500m"),
        ("1.", "1."),
        ("1", "1"),
        ("1000", "1k"),
        ("1000m", "1"),
        ("1024Mi", "1Gi"),
        ("1536Mi", "1536Mi"),
        ("100Mi", "100Mi"),
        ("64Mi", "64Mi"),
        ("8Gi", "8Gi"),
        ("0.5Gi", "512Mi"),
        ("0.5Ki", "512"),
        ("1.5Gi", "1536Mi"),
        ("0.0001Ki", "102400u"),
        ("15.625Ki", "16k"),
        ("3720367593.75Ki", "3809656416k"),
        ("1048576", "1048576"),
        ("1024Ki", "1Mi"),
        ("1e3", "1e3"),
        ("1000e3", "1e6"),
        ("1E3", "1E3"),
        ("100000000000", "100G"),
        ("-5m", "-5m"),
        ("-1000m", "-1"),
        ("0.0000000001", "1n"),
        ("9Ei", "9223372036854775807"),
        ("007", "007"),
        (" 5 ", "5"),
        ("5u", "5u"),
    ];
    for (text, want) in cases {
        assert_eq!(canonical(text).as_deref(), Ok(want), "{text}");
    }
}

#[test]
fn what_is_no_quantity_is_refused() {
    let cases = [
        ("", QuantityError::Format),
        ("abc", QuantityError::Format),
        ("1 Gi", QuantityError::Format),
        ("1Gi ib", QuantityError::Format),
        ("1.2.3", QuantityError::Format),
        ("1KB", QuantityError::Format),
        ("1mm", QuantityError::Suffix),
        ("1e", QuantityError::Suffix),
        ("1ki", QuantityError::Suffix),
    ];
    for (text, want) in cases {
        assert_eq!(canonical(text), Err(want), "{text}");
    }
}

fn q(text: &str) -> Quantity {
    Quantity::parse(text).unwrap()
}

#[test]
fn amounts_compare_and_add_exactly() {
    assert_eq!(q("1"), q("1000m"));
    assert_eq!(q("1Gi"), q("1073741824"));
    assert!(q("1G") < q("1Gi"));
    assert!(q("-1") < q("0") && q("-2") < q("-1") && q("1n") > q("0"));
    assert!(q("1e30") > q("9E"));
    assert!(q("1e2000000000") > q("1e1999999999"));
    assert_eq!(q("0.1").plus(&q("0.2")), q("0.3"));
    assert_eq!(q("1Gi").plus(&q("512Mi")).to_string(), "1536Mi");
    assert_eq!(Quantity::ZERO.plus(&q("1Gi")).to_string(), "1Gi");
    assert_eq!(q("2").minus(&q("500m")).to_string(), "1500m");
    assert_eq!(q("1Gi").minus(&q("1Gi")).to_string(), "0");
}

#[test]
fn rounding_is_away_from_zero() {
    assert_eq!(q("1500m").value(), 2);
    assert_eq!(q("-1500m").value(), -2);
    assert_eq!(q("1u").milli_value(), 1);
    assert_eq!(q("2").milli_value(), 2000);
    assert_eq!(q("1e30").value(), i64::MAX);
    assert!(q("1000m").is_whole() && !q("1001m").is_whole() && q("1e5").is_whole());
}

proptest! {
    #[test]
    fn any_text_is_parsed_or_refused(text in "[-+]?[0-9.]{0,40}[eEinumkKMGTP]{0,3}[-+]?[0-9]{0,12}") {
        if let Ok(q) = Quantity::parse(&text) {
            let shown = q.to_string();
            prop_assert_eq!(q, Quantity::parse(&shown).unwrap(), "{}", shown);
        }
    }

    #[test]
    fn canonical_forms_are_stable(value in -1_000_000_i64..1_000_000, suffix in "(n|u|m|k|M|G|Ki|Mi|Gi|e3|e-3)?") {
        let once = canonical(&format!("{value}{suffix}")).unwrap();
        prop_assert_eq!(&canonical(&once).unwrap(), &once);
    }

    #[test]
    fn order_agrees_with_integers(a in any::<i32>(), b in any::<i32>()) {
        let (x, y) = (Quantity::milli(a.into()), Quantity::milli(b.into()));
        prop_assert_eq!(x.cmp(&y), a.cmp(&b));
        prop_assert_eq!(x.plus(&y).milli_value(), i64::from(a) + i64::from(b));
    }
}
