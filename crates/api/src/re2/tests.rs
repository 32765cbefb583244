//! What Go says of the same expressions: all of this was seen to be so with its package `regexp`.

use super::*;

#[track_caller]
fn check(cases: &[(&str, &[&str], &[&str])]) {
    for (pattern, found, not_found) in cases {
        let compiled = Pattern::new(pattern).unwrap_or_else(|fault| panic!("{pattern}: {fault}"));
        for text in *found {
            assert!(compiled.is_found_in(text), "{pattern} is in {text:?}");
        }
        for text in *not_found {
            assert!(!compiled.is_found_in(text), "{pattern} is not in {text:?}");
        }
    }
}

#[test]
fn a_brace_that_begins_no_repetition_is_text() {
    check(&[
        (r#"{"code": 5}"#, &[r#"x {"code": 5}"#], &["code: 5"]),
        ("a{,3}", &["a{,3}"], &["aaa"]),
        ("a{01}", &["a{01}"], &["a"]),
        ("a{2", &["a{2"], &["aa"]),
        ("^a{2}$", &["aa"], &["a", "aaa", "a{2}"]),
        ("^a{2,}$", &["aa", "aaa"], &["a"]),
        ("^a{0,1}$", &["", "a"], &["aa"]),
        ("^a{1000}$", &[], &["a"]),
        ("^(a{500}){0}{x$", &["{x"], &["a"]),
    ]);
}

#[test]
fn a_class_has_no_classes_in_it() {
    check(&[
        ("^[[a]$", &["[", "a"], &["b"]),
        ("^[[a]]$", &["[]", "a]"], &["a"]),
        ("^[a&&b]$", &["a", "b", "&"], &["c"]),
        ("^[+--]$", &["+", ",", "-"], &["."]),
        ("^[a~~b]$", &["~"], &["c"]),
        ("^[]a]$", &["]", "a"], &["b"]),
        ("^[^]a]$", &["b"], &["]", "a"]),
        (r"^[\d-z]$", &["5", "-", "z"], &["y"]),
        ("^[[:alpha:]_]$", &["a", "Z", "_"], &["é", "1", ":"]),
        ("^[[:^alpha:]]$", &["é", "1"], &["a"]),
        ("^[[:alpha]$", &["[", ":", "a"], &["b"]),
        ("^[[.a.]$", &["[", ".", "a"], &["b"]),
        (r"^[\P{Any}]$", &[], &["a", ""]),
        (r"^[^\x{D800}]$", &["a", "\n"], &[""]),
        (r"^[\x{D000}-\x{E000}]$", &["\u{D7FF}", "\u{E000}"], &["\u{E001}"]),
    ]);
}

#[test]
fn escapes_are_of_ascii() {
    check(&[
        (r"^\d$", &["5"], &["٣"]),
        (r"^\w$", &["a", "_", "5"], &["é"]),
        (r"^\W$", &["é", " "], &["a"]),
        (r"^\s$", &[" ", "\t", "\u{c}"], &["\u{b}", "\u{a0}"]),
        (r"é\b", &["éa"], &["é", "é "]),
        (r"\W|\B", &["a😀a"], &["a"]),
        (r"^é\B$", &["é"], &["éa"]),
        (r"(?i)^\w$", &["ſ", "\u{212A}"], &["é"]),
        (r"(?i)^[\W]$", &["é"], &["ſ", "k"]),
    ]);
}

#[test]
fn escapes_stand_for_what_go_says() {
    check(&[
        (r"^\Qa.b\E$", &["a.b"], &["axb"]),
        (r"^\Qa.*$", &["a.*$"], &["aa"]),
        (r"^\Qab\E*$", &["a", "abb"], &["abab"]),
        (r"^a*\Q\E*$", &["", "aa"], &["b"]),
        (r"a\z", &["ba"], &["a\n"]),
        (r"\Aa$", &["a"], &["ba", "a\n"]),
        (r"^\101\x41\x{41}\a\v$", &["AAA\u{7}\u{b}"], &["AAA"]),
        (r"^\777$", &["\u{1FF}"], &["?7"]),
        (r"\<a\>\_\-", &["<a>_-"], &["a"]),
        (r"\x{D800}", &[], &["\u{FFFD}", ""]),
        (r"^\pN\PN$", &["5a"], &["a5"]),
        (r"^\p{Greek}\p{^Greek}\P{^greek}$", &["αaα"], &["aaα"]),
        (r"^\p{lowercase letter}\p{Cs}*$", &["a"], &["A"]),
        (r"^\p{Old_Italic}\p{signwriting}$", &["\u{10300}\u{1D800}"], &["a"]),
    ]);
}

#[test]
fn flags_and_groups_reach_as_far_as_in_go() {
    check(&[
        ("a.b", &["axb"], &["a\nb"]),
        ("(?s)a.b", &["a\nb"], &["ab"]),
        ("(?m)^b$", &["a\nb\nc"], &["abc"]),
        ("(?U)^a+$", &["aa"], &["b"]),
        ("(?)(?-s)^a$", &["a"], &["A"]),
        ("^(?:a(?i)b|c)d$", &["aBd", "Cd"], &["AbD", "CD"]),
        ("^(?i:a(?-i)b)c$", &["Abc"], &["ABc", "AbC"]),
        ("(?P<n>a)(?<m>b)(?P<n>c)", &["abc"], &["ab"]),
        ("^a(?i)*$", &["", "aa"], &["A"]),
        ("^a*(?i)*$", &["", "aa"], &["b"]),
        ("(?i)^[^k]$", &["a"], &["k", "K", "\u{212A}"]),
        (r"(?i)^\P{Lu}$", &["1"], &["a", "A"]),
        ("^ #$", &[" #"], &[""]),
        ("^(|a)$", &["", "a"], &["b"]),
    ]);
}

#[test]
fn what_go_refuses_is_refused_with_its_words() {
    let cases = [
        ("a(b", "missing closing ): `a(b`"),
        ("a)b", "unexpected ): `a)b`"),
        ("x[a-", "missing closing ]: `[a-`"),
        ("[z-a]", "invalid character class range: `z-a`"),
        ("[a--c]", "invalid character class range: `a--`"),
        ("[[:foo:]]", "invalid character class range: `[:foo:]`"),
        (r"[a-\d]", r"invalid escape sequence: `\d`"),
        (r"[\b]", r"invalid escape sequence: `\b`"),
        (r"\p{Grek}", r"invalid character class range: `\p{Grek}`"),
        (r"\p{Alphabetic}", r"invalid character class range: `\p{Alphabetic}`"),
        (r"x\p{sc", r"invalid character class range: `\p{sc`"),
        (r"\p", r"invalid character class range: `\p`"),
        ("*a", "missing argument to repetition operator: `*`"),
        ("a|+?", "missing argument to repetition operator: `+?`"),
        ("({2})", "missing argument to repetition operator: `{2}`"),
        ("(?i)*", "missing argument to repetition operator: `*`"),
        ("a**", "invalid nested repetition operator: `**`"),
        ("a*?{2}?b", "invalid nested repetition operator: `*?{2}?`"),
        ("a{1001}", "invalid repeat count: `{1001}`"),
        ("a{2,1}", "invalid repeat count: `{2,1}`"),
        ("a{1,99999999999}", "invalid repeat count: `{1,99999999999}`"),
        ("(a{100}){11}?", "invalid repeat count: `{11}?`"),
        ("(?x)a", "invalid or unsupported Perl syntax: `(?x`"),
        ("(?i-)a", "invalid or unsupported Perl syntax: `(?i-)`"),
        ("(?=a)", "invalid or unsupported Perl syntax: `(?=`"),
        ("(?<=a)b", "invalid named capture: `(?<=a)b`"),
        ("(?P<é>a)", "invalid named capture: `(?P<é>`"),
        (r"\C", r"invalid escape sequence: `\C`"),
        (r"\Z", r"invalid escape sequence: `\Z`"),
        (r"a\E", r"invalid escape sequence: `\E`"),
        (r"(a)\1", r"invalid escape sequence: `\1`"),
        (r"\u0041", r"invalid escape sequence: `\u`"),
        (r"\x{110000}", r"invalid escape sequence: `\x{110000`"),
        (r"\x4", r"invalid escape sequence: `\x4`"),
        ("a\\", "trailing backslash at end of expression: ``"),
        ("[[:alpha][[:digit:]]", "invalid character class range: `[:alpha][[:digit:]`"),
    ];
    for (pattern, want) in cases {
        let told = Pattern::new(pattern).err().map(|fault| fault.to_string());
        assert_eq!(told.as_deref(), Some(want), "{pattern}");
    }
}

#[test]
fn expressions_that_would_take_too_much_are_refused() {
    let deep = format!("{}a{}", "(".repeat(2000), ")".repeat(2000));
    let fault = Pattern::new(&deep).unwrap_err();
    assert_eq!(fault.to_string(), format!("expression nests too deeply: `{deep}`"));
    let fault = Pattern::new(r"\pL{1000}").unwrap_err();
    assert_eq!(fault.to_string(), r"expression too large: `\pL{1000}`");
    let long = "a".repeat(LENGTH_MAX);
    assert!(Pattern::new(&long).is_ok());
    let fault = Pattern::new(&format!("{long}a")).unwrap_err();
    assert_eq!(fault.to_string(), format!("expression too large: `{long}a`"));
    let long = "(?i)*".repeat(1500);
    let fault = Pattern::new(&format!("a{long}")).unwrap_err();
    assert_eq!(fault.to_string(), format!("expression nests too deeply: `a{long}`"));
}
