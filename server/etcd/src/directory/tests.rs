//! The keys of a node in etcd, read and written, also by older versions.

use std::time::Duration;

use super::*;

/// The term as servers of the previous version read and write it, so that both versions may be
/// candidates at once.
#[test]
fn a_term_without_lease_lengths_is_read_and_one_with_them_has_all_that_it_had() {
    let old = r#"{"epoch":7,"address":"a:1","server":"s","length_ms":2000,"resigned":false}"#;
    let mut term: TermRecord = serde_json::from_str(old).unwrap();
    assert_eq!(term.leases, None);
    assert_eq!(serde_json::to_string(&term).unwrap(), old);
    term.leases = Some(LeaseLengths {
        templates: "d".into(),
        longest: Duration::from_secs(5),
        older: Duration::from_secs(40),
    });
    let new = serde_json::to_string(&term).unwrap();
    assert!(new.starts_with(old.trim_end_matches('}')), "{new}");
    assert_eq!(serde_json::from_str::<TermRecord>(&new).unwrap(), term);
    let none_older = new.replace(",\"older_ms\":40000", "");
    let leases = serde_json::from_str::<TermRecord>(&none_older)
        .unwrap()
        .leases;
    assert_eq!(leases.unwrap().older, Duration::ZERO);
}

#[test]
fn the_master_is_asked_first_and_no_server_twice() {
    let registered = |address: &str| Registration {
        node: "eu".into(),
        address: address.into(),
        pages: None,
        server: "s".into(),
        place: TreePlace {
            role: Role::Root,
            level: None,
        },
        highest_epoch: None,
        version: "1".into(),
    };
    let master = Master {
        address: "b:1".into(),
        server: "s".into(),
        epoch_offset: 0,
    };
    let servers = Servers {
        master: Some((master, 5)),
        term: None,
        servers: vec![registered("a:1"), registered("b:1")],
    };
    let addresses = |texts: &[&str]| -> Vec<Address> {
        let parse = |text: &&str| Address::parse(text).unwrap();
        texts.iter().map(parse).collect()
    };
    assert_eq!(*servers.addresses(&[]), addresses(&["b:1", "a:1"]));
    let given = addresses(&["z:1", "a:1", "z:1"]);
    assert_eq!(
        *servers.addresses(&given),
        addresses(&["b:1", "a:1", "z:1"])
    );
    assert_eq!(servers.named(), Some(("b:1".to_owned(), 5)));
    assert_eq!(Servers::default().named(), None);
}

#[test]
fn names_of_nodes_are_read_back_from_their_keys() {
    for name in ["eu", "a/b", "50%", "%2F", "%25/"] {
        let keys = NodeKeys::new("/p", name);
        let key = keys.prefix().strip_prefix("/p/").unwrap();
        assert_eq!(name_of(key.trim_end_matches('/')), name);
    }
}
