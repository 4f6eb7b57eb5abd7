//! Rows of servers: with a master, without one, with one that is not registered.

use doorward_etcd::directory::{self, Role, TermRecord, TreePlace};

use super::*;

fn registration(address: &str) -> Registration {
    Registration {
        node: "eu".into(),
        address: address.into(),
        pages: None,
        server: "s".into(),
        place: TreePlace {
            role: Role::Leaf,
            level: (address == "a:1").then_some(1),
        },
        highest_epoch: None,
        version: "0.1.0".into(),
    }
}

fn servers(master: Option<&str>, term: Option<u64>, addresses: &[&str]) -> Servers {
    let master = master.map(|address| directory::Master {
        address: address.into(),
        server: "s".into(),
        epoch_offset: 0,
    });
    Servers {
        master: master.map(|master| (master, 17)),
        term: term.map(|epoch| TermRecord {
            epoch,
            address: "a:1".into(),
            server: "s".into(),
            length: Duration::from_secs(5),
            ..TermRecord::default()
        }),
        servers: addresses.iter().map(|a| registration(a)).collect(),
    }
}

#[track_caller]
fn check(servers: Servers, rows: &[&str]) {
    let nodes = Nodes::from([("eu".to_owned(), servers)]);
    let mut out = Vec::new();
    table(&nodes, false, Palette { on: false })
        .write(&mut out)
        .unwrap();
    let text = String::from_utf8(out).unwrap();
    let squeezed = |line: &str| line.split_whitespace().collect::<Vec<_>>().join(" ");
    let found: Vec<String> = text.lines().skip(1).map(squeezed).collect();
    assert_eq!(found, rows, "{text}");
}

#[test]
fn a_row_is_a_server_and_the_master_comes_first() {
    check(
        servers(Some("b:1"), Some(17), &["a:1", "b:1"]),
        &[
            "eu b:1 leaf ? 0.1.0 master, epoch 17",
            "eu a:1 leaf 1 0.1.0 candidate",
        ],
    );
}

#[test]
fn a_node_without_a_master_says_since_when() {
    check(
        servers(None, Some(9), &["a:1"]),
        &[
            "eu no master since epoch 9",
            "eu a:1 leaf 1 0.1.0 candidate",
        ],
    );
    check(servers(None, Some(9), &[]), &["eu no master since epoch 9"]);
    check(
        servers(None, None, &["a:1"]),
        &[
            "eu no master, and there never was",
            "eu a:1 leaf 1 0.1.0 candidate",
        ],
    );
}

#[test]
fn a_master_that_is_not_registered_is_shown_all_the_same() {
    check(
        servers(Some("b:1"), None, &["a:1"]),
        &[
            "eu b:1 master, epoch 17; not registered",
            "eu a:1 leaf 1 0.1.0 candidate",
        ],
    );
}
