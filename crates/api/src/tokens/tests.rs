use serde_json::json;

use super::*;

struct Town(Vec<(Kind, &'static str, &'static str, &'static str, Option<i64>)>);

impl Objects for Town {
    fn find(&self, kind: Kind, namespace: &str, name: &str) -> Option<Found> {
        let is_meant = |one: &&(Kind, &str, &str, &str, Option<i64>)| {
            (one.0, one.1, one.2) == (kind, namespace, name)
        };
        let &(_, _, _, uid, deleted_at) = self.0.iter().find(is_meant)?;
        Some(Found { uid: uid.to_owned(), deleted_at: deleted_at.map(at) })
    }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(second).unwrap()
}

fn reference(name: &str, uid: &str) -> Reference {
    Reference { name: name.to_owned(), uid: uid.to_owned() }
}

fn pod() -> Bound {
    Bound::Pod { pod: reference("p", "pod-1"), node: Some(reference("n", "node-1")) }
}

fn grant(bound: Option<Bound>) -> Grant {
    Grant {
        namespace: "red".to_owned(),
        account: reference("bot", "sa-1"),
        bound,
        audiences: vec![ISSUER.to_owned()],
        seconds: 3600,
    }
}

fn claims(bound: Option<Bound>) -> Claims {
    Claims::new(grant(bound), "id".to_owned(), at(1_000_000))
}

#[test]
fn a_token_says_who_whom_for_and_until_when() {
    assert_eq!(
        serde_json::to_value(claims(Some(pod()))).unwrap(),
        json!({
            "aud": [ISSUER], "iss": ISSUER, "jti": "id",
            "iat": 1_000_000, "nbf": 1_000_000, "exp": 1_003_600,
            "sub": "system:serviceaccount:red:bot",
            "kubernetes.io": {
                "namespace": "red",
                "serviceaccount": {"name": "bot", "uid": "sa-1"},
                "pod": {"name": "p", "uid": "pod-1"},
                "node": {"name": "n", "uid": "node-1"},
            },
        })
    );
    let read: Claims =
        serde_json::from_str(&serde_json::to_string(&claims(None)).unwrap()).unwrap();
    assert_eq!(read, claims(None));
}

#[test]
fn only_the_volume_of_every_pod_gets_a_year() {
    let other = vec!["vault".to_owned()];
    let cases = [
        ("as pods ask", grant(Some(pod())), SECONDS_IN_PODS, SECONDS_EXTENDED),
        ("another time", grant(Some(pod())), 3600, 3600),
        ("no pod", grant(None), SECONDS_IN_PODS, SECONDS_IN_PODS),
        ("for others", Grant { audiences: other, ..grant(Some(pod())) }, 3607, 3607),
    ];
    for (name, grant, seconds, lives) in cases {
        let claims = Claims::new(Grant { seconds, ..grant }, String::new(), at(0));
        assert_eq!(claims.exp, lives, "{name}");
        let warns = (lives != seconds).then_some(seconds);
        assert_eq!(claims.kubernetes.warnafter, warns, "{name}");
    }
}

#[test]
fn times_that_cannot_be_are_refused_in_upstreams_words() {
    let cases = [
        (599, Some("may not specify a duration less than 10 minutes")),
        (600, None),
        (1 << 32, None),
        ((1 << 32) + 1, Some("may not specify a duration larger than 2^32 seconds")),
    ];
    for (seconds, want) in cases {
        let errors = validate_seconds(seconds);
        let want = want
            .map(|why| format!("spec.expirationSeconds: Invalid value: {seconds}: {why}"))
            .into_iter();
        assert_eq!(
            errors.iter().map(ToString::to_string).collect::<Vec<_>>(),
            want.collect::<Vec<_>>()
        );
    }
}

#[test]
fn a_token_counts_as_long_as_everything_it_speaks_of() {
    let now = 1_000_010;
    let account = (Kind::ServiceAccount, "red", "bot", "sa-1", None);
    let p = (Kind::Pod, "red", "p", "pod-1", None);
    let secret = || Some(Bound::Secret(reference("s", "secret-1")));
    let node = || Some(Bound::Node(reference("n", "node-1")));
    let gone = "service account token has been invalidated";
    let cases = [
        ("account", None, vec![account], now, None),
        ("no account", None, vec![], now, Some("serviceaccounts \"bot\" not found")),
        (
            "another account",
            None,
            vec![(Kind::ServiceAccount, "red", "bot", "sa-2", None)],
            now,
            Some("service account UID (sa-2) does not match claim (sa-1)"),
        ),
        (
            "account deleted just now",
            None,
            vec![(Kind::ServiceAccount, "red", "bot", "sa-1", Some(now - 60))],
            now,
            None,
        ),
        (
            "account deleted a while ago",
            None,
            vec![(Kind::ServiceAccount, "red", "bot", "sa-1", Some(now - 61))],
            now,
            Some("service account red/bot has been deleted"),
        ),
        ("expired, clocks differ", None, vec![account], 1_003_660, None),
        ("expired", None, vec![account], 1_003_661, Some("service account token has expired")),
        ("too early", None, vec![account], 999_939, Some("service account token is not valid yet")),
        ("pod", Some(pod()), vec![account, p], now, None),
        ("pod gone", Some(pod()), vec![account], now, Some(gone)),
        (
            "another pod",
            Some(pod()),
            vec![account, (Kind::Pod, "red", "p", "pod-2", None)],
            now,
            Some("pod UID (pod-2) does not match service account pod ref claim (pod-1)"),
        ),
        (
            "pod ending",
            Some(pod()),
            vec![account, (Kind::Pod, "red", "p", "pod-1", Some(now + 30))],
            now,
            None,
        ),
        (
            "pod that should have ended",
            Some(pod()),
            vec![account, (Kind::Pod, "red", "p", "pod-1", Some(now - 61))],
            now,
            Some(gone),
        ),
        ("secret gone", secret(), vec![account], now, Some(gone)),
        ("node", node(), vec![account, (Kind::Node, "", "n", "node-1", None)], now, None),
        ("node gone", node(), vec![account], now, Some(gone)),
    ];
    for (name, bound, objects, now, want) in cases {
        let got = claims(bound).identity(&[ISSUER], at(now), &Town(objects));
        assert_eq!(got.err().map(|error| error.to_string()).as_deref(), want, "{name}");
    }
}

#[test]
fn who_comes_is_the_account_and_its_pod() {
    let town = Town(vec![
        (Kind::ServiceAccount, "red", "bot", "sa-1", None),
        (Kind::Pod, "red", "p", "pod-1", None),
    ]);
    let got = claims(Some(pod())).identity(&["x", ISSUER], at(1_000_010), &town).unwrap();
    assert_eq!(got.audiences, [ISSUER]);
    assert_eq!(user_name(&got.namespace, &got.account.name), "system:serviceaccount:red:bot");
    let key = |name: &str| format!("authentication.kubernetes.io/{name}");
    let extra = [
        ("credential-id", "JTI=id"),
        ("node-name", "n"),
        ("node-uid", "node-1"),
        ("pod-name", "p"),
        ("pod-uid", "pod-1"),
    ];
    let extra = extra.map(|(name, value)| (key(name), vec![value.to_owned()]));
    assert_eq!(got.extra, BTreeMap::from(extra));
    let refused = claims(None).identity(&["vault", "x"], at(1_000_010), &town).unwrap_err();
    assert_eq!(
        refused.to_string(),
        format!(
            "token audiences [\"{ISSUER}\"] is invalid for the target audiences [\"vault\" \"x\"]"
        )
    );
}
