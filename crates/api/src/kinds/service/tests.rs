use std::net::Ipv4Addr;

use serde_json::{Value, json};

use super::*;

fn context() -> WriteContext {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    WriteContext { now, uid: "u".into(), user: "me".into() }
}

/// A service as it is after defaulting and preparation.
fn created(spec: Value) -> Json {
    let mut service = json!({"metadata": {"name": "s"}, "spec": spec}).as_object().unwrap().clone();
    ServiceStrategy.fill_defaults(&mut service);
    ServiceStrategy.prepare_create(&mut service, &context());
    service
}

fn updated(old: &Json, spec: Value) -> Json {
    let mut service = json!({"metadata": {"name": "s"}, "spec": spec}).as_object().unwrap().clone();
    ServiceStrategy.fill_defaults(&mut service);
    ServiceStrategy.prepare_update(&mut service, old, &context());
    service
}

fn texts(errors: &ErrorList) -> Vec<String> {
    errors.iter().map(ToString::to_string).collect()
}

#[test]
fn what_is_left_out_is_filled_in() {
    let service = created(json!({"ports": [{"port": 80}]}));
    assert_eq!(
        service["spec"],
        json!({
            "type": "ClusterIP",
            "sessionAffinity": "None",
            "internalTrafficPolicy": "Cluster",
            "ipFamilies": ["IPv4"],
            "ipFamilyPolicy": "SingleStack",
            "ports": [{"port": 80, "protocol": "TCP", "targetPort": 80}],
        })
    );
    let sticky = created(json!({"ports": [{"port": 80}], "sessionAffinity": "ClientIP"}));
    assert_eq!(
        sticky["spec"]["sessionAffinityConfig"],
        json!({"clientIP": {"timeoutSeconds": 10800}})
    );
}

#[test]
fn defaulting_twice_changes_nothing() {
    for spec in [
        json!({}),
        json!({"type": "LoadBalancer", "ports": [{"port": 1}]}),
        json!({"type": "ExternalName", "externalName": "x"}),
        json!({"clusterIP": "None", "sessionAffinity": "ClientIP"}),
    ] {
        let mut once = json!({"spec": spec}).as_object().unwrap().clone();
        ServiceStrategy.fill_defaults(&mut once);
        let mut twice = once.clone();
        ServiceStrategy.fill_defaults(&mut twice);
        assert_eq!(once, twice);
    }
}

#[test]
fn a_headless_service_without_selector_may_have_both_families() {
    let free = created(json!({"clusterIP": "None"}));
    assert_eq!(free["spec"]["ipFamilies"], json!(["IPv4", "IPv6"]));
    assert_eq!(free["spec"]["ipFamilyPolicy"], "RequireDualStack");
    assert_eq!(texts(&ServiceStrategy.validate_create(&free)), [""; 0]);
    let bound = created(json!({"clusterIP": "None", "selector": {"a": "b"}}));
    assert_eq!(bound["spec"]["ipFamilies"], json!(["IPv4"]));
    assert_eq!(bound["spec"]["clusterIPs"], json!(["None"]));
    assert_eq!(texts(&ServiceStrategy.validate_create(&bound)), [""; 0]);
}

#[test]
fn addresses_are_asked_for_when_needed() {
    let any = created(json!({"ports": [{"port": 80}]}));
    assert_eq!(cluster_ip_wanted(&any, None), Ok(ClusterIp::Any));
    let exact = created(json!({"clusterIP": "127.32.0.9", "ports": [{"port": 80}]}));
    let ip = Ipv4Addr::new(127, 32, 0, 9);
    assert_eq!(cluster_ip_wanted(&exact, None), Ok(ClusterIp::Exactly(ip)));
    assert_eq!(cluster_ip_wanted(&exact, Some(&exact)), Ok(ClusterIp::Unneeded));
    for spec in [
        json!({"clusterIP": "None"}),
        json!({"type": "ExternalName", "externalName": "x.y"}),
        json!({"clusterIP": "x"}),
    ] {
        assert_eq!(cluster_ip_wanted(&created(spec), None), Ok(ClusterIp::Unneeded));
    }
    for outside in ["10.0.0.1", "127.32.0.0", "127.32.255.255", "127.33.0.1"] {
        let service = created(json!({"clusterIP": outside}));
        let errors = cluster_ip_wanted(&service, None).unwrap_err();
        assert_eq!(
            texts(&errors),
            [format!(
                "spec.clusterIPs: Invalid value: [\"{outside}\"]: failed to allocate IP {outside}: \
                 the provided IP ({outside}) is not in the valid range. The range of valid IPs is \
                 127.32.0.0/16"
            )]
        );
    }
    assert_eq!(service_addresses().next(), Some(Ipv4Addr::new(127, 32, 0, 1)));
    assert_eq!(service_addresses().last(), Some(Ipv4Addr::new(127, 32, 255, 254)));
}

#[test]
fn bad_services_are_refused_with_the_usual_words() {
    let port = json!([{"port": 80}]);
    let cases = [
        (json!({"ports": port}), vec![]),
        (json!({}), vec!["spec.ports: Required value"]),
        (
            json!({"ports": [{"port": 80}, {"port": 81}]}),
            vec!["spec.ports[0].name: Required value", "spec.ports[1].name: Required value"],
        ),
        (
            json!({"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "a"}]}),
            vec![
                "spec.ports[1].name: Duplicate value: \"a\"",
                "spec.ports[1]: Duplicate value: {\"Name\":\"\",\"Protocol\":\"TCP\",\
                 \"AppProtocol\":null,\"Port\":80,\"TargetPort\":0,\"NodePort\":0}",
            ],
        ),
        (
            json!({"ports": [{"port": 0, "targetPort": 1}]}),
            vec!["spec.ports[0].port: Invalid value: 0: must be between 1 and 65535, inclusive"],
        ),
        (
            json!({"ports": [{"port": 80, "protocol": "X"}]}),
            vec![
                "spec.ports[0].protocol: Unsupported value: \"X\": supported values: \"SCTP\", \
                 \"TCP\", \"UDP\"",
            ],
        ),
        (
            json!({"ports": [{"port": 80, "nodePort": 30000}]}),
            vec!["spec.ports[0].nodePort: Forbidden: may not be used when `type` is 'ClusterIP'"],
        ),
        (
            json!({"ports": port, "type": "Odd"}),
            vec![
                "spec.type: Unsupported value: \"Odd\": supported values: \"ClusterIP\", \
                 \"ExternalName\", \"LoadBalancer\", \"NodePort\"",
            ],
        ),
        (
            json!({"type": "ExternalName", "clusterIP": "None"}),
            vec![
                "spec.clusterIPs: Forbidden: may not be set for ExternalName services",
                "spec.externalName: Required value",
            ],
        ),
    ];
    for (spec, want) in cases {
        let service = created(spec.clone());
        assert_eq!(texts(&ServiceStrategy.validate_create(&service)), want, "{spec}");
    }
}

#[test]
fn addresses_and_policies_fit_together() {
    let port = json!([{"port": 80}]);
    let cases = [
        (
            json!({"ports": port, "clusterIP": "x"}),
            vec![
                "spec.clusterIPs[0]: Invalid value: \"x\": must be a valid IP address, (e.g. \
                 10.9.8.7 or 2001:db8::ffff)",
            ],
        ),
        (
            json!({"ports": port, "ipFamilyPolicy": "RequireDualStack"}),
            vec![
                "spec.ipFamilyPolicy: Invalid value: \"RequireDualStack\": this cluster is not \
                 configured for dual-stack services",
            ],
        ),
        (
            json!({"ports": port, "ipFamilies": ["IPv6"]}),
            vec!["spec.ipFamilies[0]: Invalid value: \"IPv6\": not configured on this cluster"],
        ),
        (
            json!({"ports": port, "clusterIP": "fd00::1"}),
            vec![
                "spec.clusterIPs[0]: Invalid value: [\"fd00::1\"]: IPv6 is not configured on this \
                 cluster",
            ],
        ),
        (
            json!({"ports": port, "type": "NodePort", "clusterIP": "None"}),
            vec![
                "spec.clusterIPs[0]: Invalid value: \"None\": may not be set to 'None' for \
                 NodePort services",
            ],
        ),
        (
            json!({"ports": port, "sessionAffinity": "ClientIP",
                   "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 0}}}),
            vec![
                "spec.sessionAffinityConfig.clientIP.timeoutSeconds: Invalid value: 0: must be \
                 greater than 0 and less than 86400",
            ],
        ),
        (
            json!({"ports": port, "externalTrafficPolicy": "Local"}),
            vec![
                "spec.externalTrafficPolicy: Invalid value: \"Local\": may only be set for \
                 externally-accessible services",
            ],
        ),
        (
            json!({"ports": port, "loadBalancerClass": "a/b"}),
            vec![
                "spec.loadBalancerClass: Forbidden: may only be used when `type` is 'LoadBalancer'",
            ],
        ),
    ];
    for (spec, want) in cases {
        let service = created(spec.clone());
        assert_eq!(texts(&ServiceStrategy.validate_create(&service)), want, "{spec}");
    }
}

#[test]
fn an_update_keeps_the_address() {
    let mut old = created(json!({"ports": [{"port": 80}]}));
    set_cluster_ip(&mut old, Ipv4Addr::new(127, 32, 0, 7));
    let new = updated(&old, json!({"ports": [{"port": 81}]}));
    assert_eq!(new["spec"]["clusterIP"], "127.32.0.7");
    assert_eq!(new["spec"]["clusterIPs"], json!(["127.32.0.7"]));
    assert_eq!(texts(&ServiceStrategy.validate_update(&new, &old)), [""; 0]);
    assert_eq!(cluster_ip_wanted(&new, Some(&old)), Ok(ClusterIp::Unneeded));
    let moved = updated(&old, json!({"ports": [{"port": 80}], "clusterIP": "127.32.0.8"}));
    assert_eq!(
        texts(&ServiceStrategy.validate_update(&moved, &old)),
        ["spec.clusterIPs[0]: Invalid value: [\"127.32.0.8\"]: may not change once set"]
    );
    let alias = updated(
        &old,
        json!({"type": "ExternalName", "externalName": "x.y", "clusterIP": "127.32.0.7",
               "clusterIPs": ["127.32.0.7"], "ipFamilies": ["IPv4"],
               "ipFamilyPolicy": "SingleStack"}),
    );
    assert_eq!(alias["spec"].get("clusterIP"), None);
    assert_eq!(texts(&ServiceStrategy.validate_update(&alias, &old)), [""; 0]);
}

#[test]
fn rows_show_addresses_and_ports() {
    let now = "2026-11-15T12:00:00Z".parse().unwrap();
    let cases = [
        (
            json!({"type": "ClusterIP", "clusterIPs": ["127.32.0.1"], "selector": {"a": "b"},
                   "ports": [{"port": 80, "protocol": "TCP"}, {"port": 53, "protocol": "UDP"}]}),
            ["ClusterIP", "127.32.0.1", "<none>", "80/TCP,53/UDP", "<unknown>", "a=b"],
        ),
        (
            json!({"type": "NodePort", "ports": [{"port": 80, "nodePort": 30080, "protocol": "TCP"}]}),
            ["NodePort", "<none>", "<none>", "80:30080/TCP", "<unknown>", "<none>"],
        ),
        (
            json!({"type": "LoadBalancer", "clusterIPs": ["127.32.0.1"]}),
            ["LoadBalancer", "127.32.0.1", "<pending>", "<none>", "<unknown>", "<none>"],
        ),
        (
            json!({"type": "ExternalName", "externalName": "x.y"}),
            ["ExternalName", "<none>", "x.y", "<none>", "<unknown>", "<none>"],
        ),
    ];
    for (spec, want) in cases {
        let service = json!({"metadata": {"name": "s"}, "spec": spec});
        assert_eq!(ServiceStrategy.row(service.as_object().unwrap(), now)[1..], want, "{spec}");
    }
}

#[test]
fn ingress_belongs_to_load_balancers() {
    let status = json!({"loadBalancer": {"ingress": [{"ip": "10.0.0.1"}]}});
    let cases = [
        (
            "ClusterIP",
            "status.loadBalancer.ingress: Forbidden: may only be used when `spec.type` is \
                       'LoadBalancer'",
        ),
        (
            "LoadBalancer",
            "status.loadBalancer.ingress[0].ipMode: Required value: must be specified \
                          when `ip` is set",
        ),
    ];
    for (kind, want) in cases {
        let service = json!({"spec": {"type": kind}, "status": status});
        let service = service.as_object().unwrap();
        let old = Json::new();
        assert_eq!(texts(&ServiceStrategy.validate_status_update(service, &old)), [want]);
    }
}
