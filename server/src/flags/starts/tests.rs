//! Starts that are a mistake.

use super::*;

fn endpoints(list: &[&str]) -> Vec<Endpoint> {
    let parsed = list.iter().map(|text| Endpoint::parse(text));
    parsed.collect::<Result<_, _>>().expect("valid")
}

#[test]
fn endpoints_of_the_command_line_are_not_those_of_a_server() {
    let given = |list| EtcdFlags {
        endpoints: endpoints(list),
        ..EtcdFlags::default()
    };
    let here: &[&str] = &["127.0.0.1:2379"];
    for (what, own, of_command_line, refused) in [
        ("neither", &[][..], None, false),
        ("only the other one", &[], Some("etcd-0:2379"), true),
        ("an empty one is none", &[], Some(""), false),
        ("its own", here, None, false),
        ("both", here, Some("etcd-0:2379"), false),
    ] {
        let checked = check_endpoints(&given(own), of_command_line.map(OsStr::new));
        assert_eq!(checked.is_err(), refused, "{what}");
    }
    let said = check_endpoints(&given(&[]), Some(OsStr::new("etcd-0:2379"))).unwrap_err();
    assert!(said.contains("DOORWARD_SERVER_ETCD_ENDPOINTS"), "{said}");
}

#[test]
fn a_candidate_is_found_under_its_address_by_all_who_read_it() {
    let (here, elsewhere) = (&["127.0.0.1:2379"][..], &["etcd-0:2379"][..]);
    let both = &["127.0.0.1:2379", "10.0.0.1:2379"][..];
    for (listen, advertise, etcd, refused) in [
        ("127.0.0.1:6970", None, here, None),
        ("[::1]:6970", None, &["localhost:2379"], None),
        ("127.0.0.1:6970", None, elsewhere, Some("etcd-0:2379")),
        ("[::1]:6970", None, elsewhere, Some("etcd-0:2379")),
        ("127.0.0.1:6970", None, both, Some("10.0.0.1:2379")),
        (
            "0.0.0.0:6970",
            Some("localhost:6970"),
            elsewhere,
            Some("localhost:6970"),
        ),
        ("127.0.0.1:6970", Some("eu-0:6970"), elsewhere, None),
        ("10.1.1.1:6970", None, elsewhere, None),
        ("0.0.0.0:6970", None, here, Some("give --advertise")),
        ("0.0.0.0:6970", Some("eu-0:6970"), elsewhere, None),
    ] {
        let listen = listen.parse().expect("an address");
        let checked = check_address(advertise, listen, &endpoints(etcd));
        let said = checked.err();
        match (refused, &said) {
            (None, None) => {}
            (Some(part), Some(said)) if said.contains(part) => {}
            _ => panic!("{listen} {advertise:?} {etcd:?}: {said:?}"),
        }
    }
}

#[test]
fn nobody_is_sent_to_all_addresses() {
    let listen = "127.0.0.1:6970".parse().expect("an address");
    for advertise in ["0.0.0.0:6970", "[::]:6970"] {
        let checked = check_address(Some(advertise), listen, &endpoints(&["http://etcd:2379"]));
        let said = checked.unwrap_err();
        assert!(said.contains(&format!("{advertise} is anywhere")), "{said}");
    }
}
