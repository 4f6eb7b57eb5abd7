//! Trees that are lists, and what only files of chance say.

use super::*;

#[test]
fn a_list_of_nodes_has_each_node_after_its_parent() {
    let clients = "clients: [{wants: 1}]";
    for (tree, expected) in [
        ("[]", &["2:7: tree: makes 0 nodes; give 1 to 10000"][..]),
        (
            "[{name: root}, {name: a}]",
            &["2:22: tree: must have a parent among the nodes before it, unless it is the first"],
        ),
        (
            "[{name: root}, {name: b, parent: a}, {name: a, parent: root}]",
            &[
                "2:22: tree: must have a parent among the nodes before it, unless it is the first",
                r#"2:40: tree.parent: is "a", which is none of the nodes before it"#,
            ],
        ),
        (
            "[{name: root}, {name: root, parent: root}]",
            &[r#"2:22: tree: there are two nodes "root"; rename one"#],
        ),
        (
            "[{name: any}]",
            &["2:15: tree.name: cannot be the name of a node: it says which nodes are meant"],
        ),
        ("[{}]", &["2:8: tree.name: is missing; give a name"]),
    ] {
        check(&format!("SHAREDtree: {tree}\n{clients}"), expected);
    }
}

#[test]
fn a_backup_of_etcd_has_an_age_and_nothing_else_has() {
    check(
        "SHAREDclients: [{wants: 1}]\nfaults:\n- {at: 1s, etcd: restored}\n\
         - {at: 1s, etcd: wiped, back: 1s}\n- {at: 1s, etcd: lost}",
        &[
            "4:3: faults.back: is missing; give how old the backup is",
            "5:31: faults.back: is for etcd: restored; what is wiped is gone",
            r#"6:18: faults.etcd: is "lost"; give one of wiped, restored"#,
        ],
    );
}

#[test]
fn only_a_node_that_is_alone_has_a_second_process() {
    let message = "is the root, or has other candidates; give a node below the root that has none";
    check(
        "SHAREDclients: [{wants: 1}]\ntree: {root: {children: {a: {candidates: 2}}}}\nfaults:\n\
         - {at: 1s, twin: root, for: 1s}\n- {at: 1s, twin: a, for: 1s}",
        &[
            &format!("5:18: faults.twin: \"root\" {message}"),
            &format!("6:18: faults.twin: \"a\" {message}"),
        ],
    );
}

#[test]
fn nobody_need_be_right_after_the_end() {
    check(
        "SHAREDclients: [{wants: 1}]\nduration: 5m\nheal_at: 6m\nright_at: [1m, 6m]",
        &[
            "4:10: heal_at: is 6m, but the simulation ends after 5m; nothing would happen",
            "5:16: right_at: is 6m, but the simulation ends after 5m; nothing would happen",
        ],
    );
}
