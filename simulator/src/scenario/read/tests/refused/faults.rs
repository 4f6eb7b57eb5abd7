//! Faults.

use super::{Table, check};

/// The fault starts in column 3 of line 5; there are ten clients, a root and two leaves.
#[track_caller]
fn check_faults(table: &Table) {
    let tree = "tree: {root: {children: {leaf: {count: 2}}}}";
    let clients = "clients: [{count: 10, wants: 1}]";
    for (fault, expected) in table {
        let text = format!("SHARED{tree}\n{clients}\nfaults:\n- {fault}\n");
        check(&text, expected);
    }
}

#[test]
fn times_at_which_nothing_would_happen_are_refused() {
    check_faults(&[
        (
            "{}",
            &[
                "5:3: faults: has none of at, every, per_hour; give one",
                "5:3: faults: has none of kill, restart, stop, etcd, elect, depose, elections, freeze, isolate, etcd_link, redirect_loop, stale_addresses, partition, drift, jump, edit, crash, leave, close, twin, surge, demand; give one",
            ],
        ),
        (
            "{kill: root}",
            &["5:3: faults: has none of at, every, per_hour; give one"],
        ),
        (
            "{at: 5s}",
            &[
                "5:3: faults: has none of kill, restart, stop, etcd, elect, depose, elections, freeze, isolate, etcd_link, redirect_loop, stale_addresses, partition, drift, jump, edit, crash, leave, close, twin, surge, demand; give one",
            ],
        ),
        (
            "{at: 5s, every: 5s, kill: root}",
            &["5:3: faults: has both at and every; give one of them"],
        ),
        (
            "{at: 10m, kill: root}",
            &["5:8: faults.at: is 10m, but the simulation ends after 10m; nothing would happen"],
        ),
        (
            "{at: soon, kill: root}",
            &[r#"5:8: faults.at: is "soon"; give seconds, or a duration such as 15s or 2m"#],
        ),
        (
            "{at: , kill: root}",
            &["5:3: faults.at: is missing; give when it happens"],
        ),
        (
            "{at: 5s, from: 1s, kill: root}",
            &["5:12: faults.from: is unknown; known are kill, for, at"],
        ),
        (
            "{every: 0s, kill: root}",
            &[r#"5:11: faults.every: is "0s"; give at least 1ms"#],
        ),
        (
            "{every: 60s, from: 5m, until: 4m, kill: root}",
            &["5:33: faults.until: is before the first time; nothing would happen"],
        ),
        (
            "{every: 20m, kill: root}",
            &[
                "5:11: faults.every: is 20m, but the simulation ends after 10m; nothing would happen",
            ],
        ),
        (
            "{every: 5m, until: 4m, kill: root}",
            &["5:22: faults.until: is before the first time; nothing would happen"],
        ),
        (
            "{att: 5s, kill: root}",
            &["5:4: faults.att: is unknown; did you mean at?"],
        ),
        (
            "{per_hour: often, kill: root}",
            &[r#"5:14: faults.per_hour: is "often"; give a number from 0.000001 to 3600000"#],
        ),
        (
            "{per_hour: -1, kill: root}",
            &["5:14: faults.per_hour: is -1; give a number from 0.000001 to 3600000"],
        ),
        (
            "{per_hour: 1, from: 10m, kill: root}",
            &["5:23: faults.from: is 10m, but the simulation ends after 10m; nothing would happen"],
        ),
    ]);
}

#[test]
fn events_that_make_no_sense_are_refused() {
    check_faults(&[
        (
            "{at: 5s, kil: root}",
            &["5:12: faults.kil: is unknown; did you mean kill?"],
        ),
        (
            "{at: 5s, kill: root, elect: root}",
            &["5:3: faults: has both kill and elect; give one of them"],
        ),
        (
            "{at: 5s, kill: }",
            &["5:3: faults.kill: is missing; give what it happens to"],
        ),
        (
            "{at: 5s, elect: below_root, for: 5s}",
            &["5:31: faults.for: is unknown; known are elect, at"],
        ),
        (
            "{at: 5s, kill: laef-1}",
            &[r#"5:18: faults.kill: "laef-1" is no node; did you mean leaf-1?"#],
        ),
        (
            "{at: 5s, kill: nowhere}",
            &[
                r#"5:18: faults.kill: "nowhere" is no node; give one of root, leaf-1, leaf-2, or any or below_root or leaves"#,
            ],
        ),
        (
            "{at: 5s, kill: 5}",
            &["5:18: faults.kill: is the number 5; put a text in quotes"],
        ),
        (
            "{at: 5s, kill: root, for: [5s, 1s]}",
            &["5:29: faults.for: goes backwards; give the shorter one first"],
        ),
        (
            "{at: 5s, kill: root, fro: 5s}",
            &["5:24: faults.fro: is unknown; known are kill, for, at"],
        ),
        (
            "{at: 5s, kill: root, by: 5}",
            &["5:24: faults.by: is unknown; known are kill, for, at"],
        ),
        (
            "{at: 5s, kill: [leaf-1, leaf-3]}",
            &[r#"5:27: faults.kill: "leaf-3" is no node; did you mean leaf-1?"#],
        ),
        (
            "{at: 5s, kill: []}",
            &["5:18: faults.kill: is empty; give at least one node"],
        ),
        (
            "{at: 5s, restart: nowhere, for: soon}",
            &[
                r#"5:21: faults.restart: "nowhere" is no node; give one of root, leaf-1, leaf-2, or any or below_root or leaves"#,
                r#"5:35: faults.for: is "soon"; give seconds, or a duration such as 15s or 2m"#,
            ],
        ),
        (
            "{at: 5s, elections: root}",
            &[
                r#"5:23: faults.elections: is "root"; give seconds, or a duration such as 15s or 2m"#,
            ],
        ),
        (
            "{at: 5s, elections: [2s, 1s]}",
            &["5:23: faults.elections: goes backwards; give the shorter one first"],
        ),
        (
            "{at: 5s, freeze: root}",
            &["5:3: faults.for: is missing; give how long it lasts"],
        ),
        (
            "{at: 5s, isolate: root, for: 5s}",
            &[
                r#"5:21: faults.isolate: "root" has no other candidate, so there is no election; give it candidates: 2"#,
            ],
        ),
        (
            "{at: 5s, etcd_link: root, loss: 0.5, for: 5s}",
            &[
                r#"5:23: faults.etcd_link: "root" has no other candidate, so there is no election; give it candidates: 2"#,
            ],
        ),
        (
            "{at: 5s, redirect_loop: root, for: 5s}",
            &[
                r#"5:27: faults.redirect_loop: "root" has no other candidate, so there is no election; give it candidates: 2"#,
            ],
        ),
        (
            "{at: 5s, stale_addresses: root, for: 5s}",
            &[
                r#"5:29: faults.stale_addresses: "root" has no other candidate, so there is no election; give it candidates: 2"#,
            ],
        ),
        (
            "{at: 5s, redirect_loop: any}",
            &["5:3: faults.for: is missing; give how long it lasts"],
        ),
        (
            "{at: 5s, stale_addresses: any}",
            &["5:3: faults.for: is missing; give how long it lasts"],
        ),
        (
            "{at: 5s, isolate: any, servers: one, way: up, for: 5s}",
            &[
                r#"5:35: faults.servers: is "one"; give one of master, others, some, all"#,
                r#"5:45: faults.way: is "up"; give one of both, there, back"#,
            ],
        ),
        (
            "{at: 5s, partition: root, side: parent, for: 5s}",
            &["5:35: faults.side: is parent, and the root has none; give below or all"],
        ),
        (
            "{at: 5s, partition: root, side: above, for: 5s}",
            &[r#"5:35: faults.side: is "above"; give one of all, parent, below"#],
        ),
        (
            "{at: 5s, drift: root, speed: 0}",
            &["5:32: faults.speed: is 0; give a number from 0.01 to 100"],
        ),
        (
            "{at: 5s, drift: root}",
            &["5:3: faults.speed: is missing; give how fast it runs, as in 1.01"],
        ),
        (
            "{at: 5s, drift: {clients: 11}, speed: 1}",
            &["5:29: faults.drift.clients: is 11; give a whole number from 1 to 10"],
        ),
        (
            "{at: 5s, jump: root}",
            &["5:3: faults.by: is missing; give how far it jumps ahead"],
        ),
        (
            "{at: 5s, edit: bad.yaml}",
            &[
                r#"bad.yaml:2:3: template 1 ("a"): algorithm: is missing; say how the capacity is shared"#,
                r#"bad.yaml:3:13: template 1 ("a"): capacity: is "many"; give a number"#,
            ],
        ),
        (
            "{at: 5s, edit: nowhere.yaml}",
            &[
                r#"5:18: faults.edit: is "nowhere.yaml", which cannot be read: it is not in the library"#,
            ],
        ),
        (
            "{at: 5s, edit: {resources: 5}}",
            &["5:30: faults.edit.resources: is 5; give a list of templates"],
        ),
        (
            "{at: 5s, edit: []}",
            &[
                "5:18: faults.edit: is a list; give templates, as in {resources: […]}, or the name of a template file",
            ],
        ),
        (
            "{at: 5s, crash: 3}",
            &["5:19: faults.crash: is 3; give a map, as in {clients: 3}"],
        ),
        (
            "{at: 5s, crash: {client: 3}}",
            &[
                "5:19: faults.crash.clients: is missing; give how many",
                "5:20: faults.crash.client: is unknown; did you mean clients?",
            ],
        ),
        (
            "{at: 5s, crash: {clients: 3, of: clint}}",
            &[r#"5:36: faults.crash.of: "clint" is no group; did you mean client?"#],
        ),
        (
            "{at: 5s, crash: {clients: 3, of: nobody}}",
            &[r#"5:36: faults.crash.of: "nobody" is no group; give one of client"#],
        ),
        (
            "{at: 5s, crash: {clients: 6, of: client, at: leaf-1}}",
            &["5:29: faults.crash.clients: is 6; give a whole number from 1 to 5"],
        ),
        (
            "{at: 5s, crash: {clients: 1, at: root}}",
            &["5:19: faults.crash: is nobody: no such client is there"],
        ),
        (
            "{at: 5s, crash: {clients: 1, at: leef-1}}",
            &[r#"5:36: faults.crash.at: "leef-1" is no node; did you mean leaf-1?"#],
        ),
        (
            "{at: 5s, crash: {clients: 0}}",
            &["5:29: faults.crash.clients: is 0; give a whole number from 1 to 10"],
        ),
        (
            "{at: 5s, surge: {clients: 1}}",
            &["5:3: faults.by: is missing; give how much"],
        ),
        (
            "{at: 5s, surge: {clients: 1}, by: -5}",
            &[
                "5:37: faults.by: is -5, which is negative; give a finite number that is not negative",
            ],
        ),
        (
            "{at: 5s, demand: {clients: 1}, wants: {walk: 5}}",
            &["5:41: faults.wants: is a map; give a number"],
        ),
    ]);
}

#[test]
fn choices_that_are_none_are_refused() {
    check_faults(&[
        (
            "{at: 5s, one_of: []}",
            &["5:20: faults.one_of: has nothing that weighs anything; give one a weight above 0"],
        ),
        (
            "{at: 5s, one_of: 5}",
            &[
                "5:20: faults.one_of: is 5; give a list, as in [{weight: 3, kill: any}, {weight: 1, elect: any}]",
            ],
        ),
        (
            "{at: 5s, one_of: }",
            &[
                "5:3: faults.one_of: is missing; give a list, as in [{weight: 3, kill: any}, {weight: 1, elect: any}]",
            ],
        ),
        (
            "{at: 5s, one_of: [{weight: 0, kill: root}]}",
            &["5:20: faults.one_of: has nothing that weighs anything; give one a weight above 0"],
        ),
        (
            "{at: 5s, one_of: [{weight: -1, kill: root}]}",
            &["5:30: faults.one_of.weight: is -1; give a number from 0 to 1000000000"],
        ),
        (
            "{at: 5s, one_of: [{weight: 1}]}",
            &[
                "5:21: faults.one_of: has none of kill, restart, stop, etcd, elect, depose, elections, freeze, isolate, etcd_link, redirect_loop, stale_addresses, partition, drift, jump, edit, crash, leave, close, twin, surge, demand; give one",
            ],
        ),
        (
            "{at: 5s, one_of: [{at: 5s, kill: root}]}",
            &["5:22: faults.one_of.at: is unknown; known are kill, for, weight"],
        ),
        (
            "{at: 5s, one_of: [{kill: root}], kill: root}",
            &["5:36: faults.kill: is unknown; known are at, one_of"],
        ),
    ]);
}
