//! Endpoints.

use super::*;

#[test]
fn endpoints_have_a_scheme_a_host_and_a_port() {
    for (text, endpoint) in [
        ("127.0.0.1:2379", "http://127.0.0.1:2379"),
        (" etcd-0.example:2379 ", "http://etcd-0.example:2379"),
        ("http://h:1/", "http://h:1"),
        ("https://h:1", "https://h:1"),
        ("[::1]:2379", "http://[::1]:2379"),
    ] {
        assert_eq!(Endpoint::parse(text).unwrap().as_str(), endpoint);
    }
    for bad in [
        "",
        "h",
        "h:",
        "h:0",
        "h:99999",
        "ftp://h:1",
        "h:1/x",
        "a b:1",
        ":1",
    ] {
        let error = Endpoint::parse(bad).unwrap_err().to_string();
        assert!(error.contains("give host:port"), "{bad}: {error}");
    }
}

#[test]
fn an_ipv6_endpoint_has_brackets_and_no_zone() {
    for (bad, advice) in [
        ("http://::1:2379", "give [ADDRESS]:PORT"),
        ("::1:2379", "give [ADDRESS]:PORT"),
        ("http://[fe80::1%lo]:2379", "a zone cannot"),
        ("[::1:2379", "give host:port"),
        ("[etcd-0]:2379", "give host:port"),
    ] {
        let error = Endpoint::parse(bad).unwrap_err().to_string();
        let advice = advice.replace("a zone", "IPv6 zone");
        assert!(error.contains(&advice), "{bad}: {error}");
    }
}

#[test]
fn loopback_is_known_by_its_name_and_by_its_addresses() {
    for here in [
        "127.0.0.1:1",
        "127.9.9.9:1",
        "[::1]:1",
        "[::ffff:127.0.0.1]:1",
        "localhost:1",
        "LOCALHOST.:1",
        "etcd.localhost:1",
    ] {
        assert!(is_loopback(here), "{here}");
    }
    for elsewhere in [
        "10.0.0.1:1",
        "[fe80::1]:1",
        "etcd-0:1",
        "localhost.example:1",
    ] {
        assert!(!is_loopback(elsewhere), "{elsewhere}");
    }
    assert!(Endpoint::parse("https://[::1]:2379").unwrap().is_loopback());
    assert!(!Endpoint::parse("10.0.0.1:2379").unwrap().is_loopback());
}
