//! Addresses of nodes in etcd that are understood, and what is said of those that are not.

use super::*;

fn place(text: &str) -> EtcdNode {
    NodeAddress::parse(text).unwrap().place(None).unwrap()
}

#[track_caller]
fn check_bad(text: &str, problem: &str) {
    let error = NodeAddress::parse(text)
        .and_then(|address| address.place(None))
        .unwrap_err()
        .to_string();
    assert!(error.contains(problem), "{text}: {error}");
}

#[test]
fn addresses_say_which_etcd_and_which_node() {
    for (text, endpoints, master) in [
        (
            "etcd://a:1/eu",
            &["http://a:1"][..],
            "/doorward/nodes/eu/master",
        ),
        (
            " etcd://a:1,[::1]:2/eu ",
            &["http://a:1", "http://[::1]:2"],
            "/doorward/nodes/eu/master",
        ),
        (
            "etcd://a:1/e%20u%C3%A9",
            &["http://a:1"],
            "/doorward/nodes/e ué/master",
        ),
        (
            "etcd://a:1/a%2Fb",
            &["http://a:1"],
            "/doorward/nodes/a%2Fb/master",
        ),
        ("etcd://a:1/eu?prefix=/x/", &["http://a:1"], "/x/eu/master"),
        (
            "etcd://a:1/eu?prefix=%2Fx%2Fy&",
            &["http://a:1"],
            "/x/y/eu/master",
        ),
    ] {
        let place = place(text);
        let found = place.etcd.config.endpoints.iter().map(Endpoint::as_str);
        assert_eq!(found.collect::<Vec<_>>(), endpoints, "{text}");
        assert_eq!(place.keys().master(), master, "{text}");
        assert_eq!(place.etcd.config.user, None);
    }
}

#[test]
fn an_invalid_address_is_refused_with_the_reason() {
    for (text, problem) in [
        ("127.0.0.1:6970", "give etcd://HOST:PORT/NODE"),
        ("etcd://a:1", "names no node"),
        ("etcd://a:1/", "names no node"),
        ("etcd://a:1/?prefix=/x", "names no node"),
        (
            "etcd://a/eu",
            "\"a\" is no host with a port; give HOST:PORT",
        ),
        ("etcd://a:1,/eu", "\"\" is no host"),
        ("etcd://a:1, b:2/eu", "\" b:2\" is no host"),
        ("etcd://http://a:1/eu", "a / in it is written %2F"),
        ("etcd://a:1/eu/us", "a / in it is written %2F"),
        ("etcd://a:1/e%2", "a % itself is written %25"),
        ("etcd://a:1/e%GG", "a % itself is written %25"),
        ("etcd://a:1/%FF", "UTF-8"),
        ("etcd://a:1/e%0A", "control characters"),
        (
            "etcd://a:1/eu?prefx=/x",
            "\"prefx\" means nothing; give prefix, ca",
        ),
        ("etcd://a:1/eu?prefix", "give KEY=VALUE"),
        ("etcd://a:1/eu?prefix=/", "give one, as in /doorward/nodes"),
        ("etcd://a:1/eu?prefix=/a&prefix=/b", "given twice"),
        ("etcd://a:1/eu?ca=", "ca is empty"),
        ("etcd://a:1/eu?cert=c&ca=a", "cert and key both, or neither"),
        ("etcd://a:1/eu?cert=c&key=k", "needs ca"),
        ("etcd://a:1/eu?user=ann", "user and password_file both"),
        (
            "etcd://a:1/eu?password=x",
            "give the password as password_file=FILE",
        ),
        ("etcd:///eu?user=ann&password_file=f", "not where it is"),
        ("etcd:///eu?ca=f", "not where it is"),
        (
            "etcd:///eu",
            "cannot be used: it does not say where etcd is; give --etcd-endpoints URL",
        ),
        ("etcd://a:1/eu?ca=/none", "cannot read /none"),
        (
            "etcd://a:1/eu?user=ann&password_file=/none",
            "cannot read the password from /none",
        ),
    ] {
        check_bad(text, problem);
    }
}

#[test]
fn a_password_where_none_belongs_is_not_repeated() {
    for text in [
        "etcd://ann:secret@a:1/eu",
        "etcd://a:1/eu?user=ann&password=secret",
    ] {
        let said = NodeAddress::parse(text).unwrap_err().to_string();
        assert!(said.contains("password_file=FILE"), "{said}");
        assert!(!said.contains("secret"), "{said}");
    }
}

#[test]
fn files_mean_tls_and_credentials() {
    let directory = tempfile::tempdir().unwrap();
    let at = |name: &str| directory.path().join(name).display().to_string();
    // It has a certificate and its key.
    let both = concat!(env!("CARGO_MANIFEST_DIR"), "/../tls/testdata/p384.pem");
    std::fs::copy(both, at("pem")).unwrap();
    std::fs::write(at("pass word"), "a b\r\n").unwrap();
    let (pem, password) = (at("pem"), at("pass%20word"));
    let text = format!(
        "etcd://a:1,b:2/eu?ca={pem}&cert={pem}&key={pem}&user=a%26b&password_file={password}"
    );
    let place = place(&text);
    let config = &place.etcd.config;
    assert!(config.endpoints.iter().all(Endpoint::is_tls));
    assert!(config.tls.ca.is_some() && config.tls.identity.is_some());
    let user = config.user.as_ref().unwrap();
    assert_eq!((user.name.as_str(), user.password.as_str()), ("a&b", "a b"));
    assert_eq!(place.to_string(), "etcd://a:1,b:2/eu");
}

#[test]
fn without_hosts_what_is_known_from_elsewhere_counts() {
    let elsewhere = Etcd {
        config: Arc::new(EtcdConfig::new(vec![Endpoint::parse("z:9").unwrap()])),
        prefix: "/z".to_owned(),
    };
    for (text, endpoint, prefix) in [
        ("etcd:///eu", "http://z:9", "/z"),
        ("etcd:///eu?prefix=/x", "http://z:9", "/x"),
        ("etcd://a:1/eu", "http://a:1", layout::DEFAULT_PREFIX),
    ] {
        let address = NodeAddress::parse(text).unwrap();
        let place = address.place(Some(&elsewhere)).unwrap();
        assert_eq!(place.etcd.config.endpoints[0].as_str(), endpoint, "{text}");
        assert_eq!(place.etcd.prefix, prefix, "{text}");
    }
}

#[test]
fn a_displayed_address_is_parsed_again() {
    for text in [
        "etcd://a:1,b:2/eu",
        "etcd:///eu",
        "etcd://a:1/a%2Fb%20%25%3F",
    ] {
        assert_eq!(NodeAddress::parse(text).unwrap().to_string(), text);
    }
}

#[test]
fn a_list_is_split_unless_it_is_a_node_in_etcd() {
    assert_eq!(split(" a:1, b:2,,"), ["a:1", "b:2"]);
    assert_eq!(split("etcd://a:1,b:2/eu "), ["etcd://a:1,b:2/eu"]);
    assert_eq!(split(""), [""; 0]);
}
