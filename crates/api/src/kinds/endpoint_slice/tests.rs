use serde_json::json;

use super::*;

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn slices_hold_addresses_of_one_kind() {
    let cases = [
        (
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["127.33.0.1"]}],
                "ports": [{"port": 80}]}),
            vec![],
        ),
        (json!({}), vec!["addressType: Required value"]),
        (
            json!({"addressType": "IP"}),
            vec![
                "addressType: Unsupported value: \"IP\": supported values: \"FQDN\", \"IPv4\", \
                 \"IPv6\"",
            ],
        ),
        (
            json!({"addressType": "IPv4", "endpoints": [{"addresses": []}],
                "ports": [{"port": 80}, {"port": 81}]}),
            vec![
                "ports[1].name: Duplicate value: \"\"",
                "endpoints[0].addresses: Required value: must contain at least 1 address",
            ],
        ),
        (
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["::1"]}]}),
            vec!["endpoints[0].addresses: Invalid value: \"::1\": must be an IPv4 address"],
        ),
        (
            json!({"addressType": "IPv6", "endpoints": [{"addresses": ["0::1"]}]}),
            vec![
                "endpoints[0].addresses[0]: Invalid value: \"0::1\": must be in canonical form \
                 (\"::1\")",
            ],
        ),
        (
            json!({"addressType": "FQDN", "endpoints": [{"addresses": ["a.b.", "a"]}]}),
            vec![
                "endpoints[0].addresses[1]: Invalid value: \"a\": should be a domain with at \
                 least two segments separated by dots",
            ],
        ),
        (
            json!({"addressType": "IPv4", "endpoints": [{"addresses": ["10.0.0.1"], "hints": {
                "forZones": [{"name": "a"}, {"name": "a"}]}}]}),
            vec!["endpoints[0].hints.forZones[1].name: Duplicate value: \"a\""],
        ),
    ];
    for (slice, want) in cases {
        let mut object = slice.as_object().unwrap().clone();
        EndpointSliceStrategy.fill_defaults(&mut object);
        assert_eq!(texts(&EndpointSliceStrategy.validate_create(&object)), want, "{slice}");
    }
}

#[test]
fn the_kind_of_addresses_never_changes() {
    let old = json!({"addressType": "IPv4", "endpoints": [{"addresses": ["x"]}]});
    let new = json!({"addressType": "FQDN", "endpoints": [{"addresses": ["x"]}]});
    let errors =
        EndpointSliceStrategy.validate_update(new.as_object().unwrap(), old.as_object().unwrap());
    assert_eq!(texts(&errors), ["addressType: Invalid value: \"FQDN\": field is immutable"]);
}

#[test]
fn a_row_shows_ports_and_addresses() {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let cases = [
        (json!({"addressType": "IPv4"}), ["IPv4", "<unset>", "<unset>"]),
        (
            json!({"addressType": "IPv4", "ports": [{"port": 80}, {"name": "x"}, {}],
                "endpoints": [{"addresses": ["a", "b"]}, {"addresses": ["c", "d"]}]}),
            ["IPv4", "80,x,*", "a,b,c + 1 more..."],
        ),
    ];
    for (slice, want) in cases {
        let cells = EndpointSliceStrategy.row(slice.as_object().unwrap(), now);
        assert_eq!(cells[1..4], want, "{slice}");
    }
}
