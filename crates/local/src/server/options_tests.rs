use super::*;

#[test]
fn list_options_are_checked_with_upstream_words() {
    let prefix = "ListOptions.meta.k8s.io \"\" is invalid: ";
    let cases = [
        ("limit=x", false, "strconv.ParseInt: parsing \"x\": invalid syntax"),
        (
            "resourceVersionMatch=Exact",
            false,
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden unless \
             resourceVersion is provided",
        ),
        (
            "resourceVersionMatch=Exact&resourceVersion=0",
            false,
            "resourceVersionMatch: Forbidden: resourceVersionMatch \"exact\" is forbidden for \
             resourceVersion \"0\"",
        ),
        (
            "resourceVersionMatch=Newest&resourceVersion=1",
            false,
            "resourceVersionMatch: Unsupported value: \"Newest\": supported values: \"Exact\", \
             \"NotOlderThan\", \"\"",
        ),
        (
            "sendInitialEvents=true",
            false,
            "sendInitialEvents: Forbidden: sendInitialEvents is forbidden for list",
        ),
        (
            "sendInitialEvents=true",
            true,
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
             resourceVersionMatch to NotOlderThan",
        ),
        (
            "resourceVersionMatch=NotOlderThan&resourceVersion=1",
            true,
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless \
             sendInitialEvents is provided",
        ),
    ];
    for (query, is_watch, want) in cases {
        let error = ListOptions::read(&Query::parse(query), is_watch).unwrap_err();
        let got = error.message.strip_prefix(prefix).unwrap_or(&error.message);
        assert_eq!(got, want, "{query}");
    }
}

#[test]
fn freshness_follows_the_match_and_the_limit() {
    let cases = [
        ("", Freshness::Latest),
        ("resourceVersion=0", Freshness::Latest),
        ("resourceVersion=0&limit=5", Freshness::Latest),
        ("resourceVersion=7", Freshness::NotOlderThan(7)),
        ("resourceVersion=7&limit=5", Freshness::Exact(7)),
        ("resourceVersion=7&limit=5&resourceVersionMatch=NotOlderThan", Freshness::NotOlderThan(7)),
        ("resourceVersion=7&resourceVersionMatch=Exact", Freshness::Exact(7)),
    ];
    for (query, want) in cases {
        let options = ListOptions::read(&Query::parse(query), false).unwrap();
        assert_eq!(options.freshness().unwrap(), want, "{query}");
    }
    let options = ListOptions::read(&Query::parse("resourceVersion=-1"), false).unwrap();
    assert_eq!(options.freshness().unwrap_err().code, 400);
}

#[test]
fn mutation_options_are_checked_with_upstream_words() {
    let long = format!("fieldManager={}", "m".repeat(129));
    let cases = [
        ("dryRun=All&fieldValidation=Strict&fieldManager=me", ""),
        ("dryRun=Some", "dryRun: Unsupported value: [\"Some\"]: supported values: \"All\""),
        ("dryRun", "dryRun: Unsupported value: [\"\"]: supported values: \"All\""),
        (
            "fieldValidation=strict",
            "fieldValidation: Unsupported value: \"strict\": supported values: \"\", \"Ignore\", \
             \"Strict\", \"Warn\"",
        ),
        (&long, "fieldManager: Too long: may not be more than 128 bytes"),
        (
            "fieldManager=a%01",
            "fieldManager: Invalid value: \"a\\x01\": invalid character U+0001 (at position 1)",
        ),
    ];
    for (query, want) in cases {
        let got = MutationOptions::read(&Query::parse(query), "CreateOptions");
        let got = got.err().map(|status| status.message).unwrap_or_default();
        let got = got.strip_prefix("CreateOptions.meta.k8s.io \"\" is invalid: ").unwrap_or(&got);
        assert_eq!(got, want, "{query}");
    }
}

#[test]
fn delete_options_come_in_bodies_and_queries() {
    let body = br#"{"kind":"DeleteOptions","apiVersion":"v1","gracePeriodSeconds":3,
        "propagationPolicy":"Foreground","preconditions":{"uid":"u"},"dryRun":["All"]}"#;
    let options = DeleteRequest::from_body(body).unwrap();
    assert_eq!(options.grace_period_seconds, Some(3));
    assert_eq!(options.propagation(), Some(Propagation::Foreground));
    assert_eq!(options.uid(), Some("u"));
    assert!(options.is_dry_run());
    let query = Query::parse("gracePeriodSeconds=0&propagationPolicy=Orphan");
    let options = DeleteRequest::from_query(&query).unwrap();
    assert_eq!(options.propagation(), Some(Propagation::Orphan));
    assert!(!options.is_dry_run());
    assert_eq!(DeleteRequest::from_query(&Query::default()).unwrap().propagation(), None);
    for bad in ["propagationPolicy=Later", "orphanDependents=1&propagationPolicy=Orphan"] {
        assert_eq!(DeleteRequest::from_query(&Query::parse(bad)).unwrap_err().code, 422, "{bad}");
    }
    for bad in ["[]", "{\"kind\":\"Pod\"}", "{\"gracePeriodSeconds\":\"x\"}", "nonsense"] {
        assert_eq!(DeleteRequest::from_body(bad.as_bytes()).unwrap_err().code, 400, "{bad}");
    }
}
