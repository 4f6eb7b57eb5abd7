//! The tree, and what there is one of.

use super::{Table, check};

#[test]
fn settings_that_make_no_sense_are_refused() {
    let table: &Table = &[
        (
            "duration: 0s",
            &[r#"3:11: duration: is "0s"; give at least 1ms"#],
        ),
        (
            "duration: long",
            &[r#"3:11: duration: is "long"; give seconds, or a duration such as 15s or 2m"#],
        ),
        (
            "duration: 400d",
            &[r#"3:11: duration: is "400d"; give at most 365 days"#],
        ),
        (
            "duration: 0.1ms",
            &[r#"3:11: duration: is "0.1ms"; give at least 1ms"#],
        ),
        (
            "sample_every: 11m",
            &["3:15: sample_every: is longer than the whole simulation; give less"],
        ),
        (
            "sample_every: 1ms\ntree: {root: {children: {leaf: {count: 100}}}}",
            &[
                "3:15: sample_every: gives 60600000 samples of 101 nodes together; at most 20000000: sample less often",
            ],
        ),
        (
            "settled_after: 10m",
            &["3:16: settled_after: is not before the end; give less, so that something is judged"],
        ),
        (
            "seed: -1",
            &["3:7: seed: is -1; give a whole number from 0 to 18446744073709551615"],
        ),
        (
            "seed: 1.5",
            &["3:7: seed: is 1.5; give a whole number from 0 to 18446744073709551615"],
        ),
        (
            "name: a/b",
            &[
                r#"3:7: name: is "a/b"; give letters, digits, '-', '_' and '.', and a letter or digit first: files are named for it"#,
            ],
        ),
        (
            "name: 5",
            &["3:7: name: is the number 5; put a text in quotes"],
        ),
        (
            "description: [a]",
            &["3:14: description: is a list; give a text"],
        ),
        (
            "durration: 5m",
            &["3:1: durration: is unknown; did you mean duration?"],
        ),
        (
            "whatever: 1",
            &[
                "3:1: whatever: is unknown; known are name, description, duration, seed, sample_every, heal_at, right_at, idle_faults, templates, tree, clients, network, servers, client_gaps, faults, settled_after, limits",
            ],
        ),
        (
            "seed: 1\nseed: 2",
            &["4:1: seed: is given twice; remove one"],
        ),
        (
            "network: 5ms",
            &[r#"3:10: network: is "5ms"; give a map, as in {clients: {…}, servers: {…}}"#],
        ),
        (
            "network: {client: {}}",
            &["3:11: network.client: is unknown; did you mean clients?"],
        ),
        (
            "network: {loss: 2}",
            &["3:17: network.loss: is 2; give a number from 0 to 1"],
        ),
        (
            "network: {loss: -0.1}",
            &["3:17: network.loss: is -0.1; give a number from 0 to 1"],
        ),
        (
            "network: {loss: .nan}",
            &["3:17: network.loss: is NaN; give a number from 0 to 1"],
        ),
        (
            "network: {latency: [1ms]}",
            &[
                "3:20: network.latency: is a list of 1; give one duration, or the shortest and the longest, as in [10s, 60s]",
            ],
        ),
        (
            "network: {latency: [5ms, 1ms]}",
            &["3:20: network.latency: goes backwards; give the shorter one first"],
        ),
        (
            "network: {latency: [1ms, soon]}",
            &[r#"3:26: network.latency: is "soon"; give seconds, or a duration such as 15s or 2m"#],
        ),
        (
            "network: {latency: {least: 1ms}}",
            &[
                "3:20: network.latency.mean: is missing; give the mean of what is added to the least",
            ],
        ),
        (
            "network: {clients: {jitter: 1ms}}",
            &["3:21: network.clients.jitter: is unknown; known are latency, loss, duplication"],
        ),
        (
            "network: {links: 5ms}",
            &[
                r#"3:18: network.links: is "5ms"; give a list, as in [{between: [root, leaf-1], latency: 80ms}]"#,
            ],
        ),
        (
            "network: {links: [{latency: 5ms}]}",
            &["3:19: network.links: has none of between, at; give one"],
        ),
        (
            "network: {links: [{at: root}]}",
            &["3:19: network.links: says nothing of the link; give a latency, loss or duplication"],
        ),
        (
            "network: {links: [{at: roof, loss: 2}]}",
            &[
                r#"3:24: network.links.at: "roof" is no node; did you mean root?"#,
                "3:36: network.links.loss: is 2; give a number from 0 to 1",
            ],
        ),
        (
            "network: {links: [{at: root, jitter: 5ms, loss: 0}]}",
            &["3:30: network.links.jitter: is unknown; known are latency, loss, duplication, at"],
        ),
        (
            "tree: {root: {children: {a: {children: [b]}}}}\nnetwork: {links: [{between: [root, b], loss: 0}]}",
            &[
                "4:29: network.links.between: has no link: neither is the parent of the other; give a node and its parent",
            ],
        ),
        (
            "network: {links: [{between: root, loss: 0}]}",
            &[r#"3:29: network.links.between: is "root"; give a list, as in [root, leaf-1]"#],
        ),
        (
            "network: {links: [{between: [root], loss: 0}]}",
            &[
                "3:29: network.links.between: is a list of 1; give a node and its parent, as in [root, leaf-1]",
            ],
        ),
        (
            "network: {links: [{between: [root, nowhere], loss: 0}]}",
            &[
                r#"3:36: network.links.between: "nowhere" is no node; give one of root, or leaves or all"#,
            ],
        ),
        (
            "servers: {parent_protocol: steam}",
            &[
                r#"3:28: servers.parent_protocol: is "steam"; give one of stream, poll; did you mean stream?"#,
            ],
        ),
        (
            "servers: {way_up: 1}",
            &["3:19: servers.way_up: is 1; give one of stream, poll"],
        ),
        (
            "servers: {election: [2s, 1s]}",
            &["3:21: servers.election: goes backwards; give the shorter one first"],
        ),
        (
            "servers: {refresh: 1s}",
            &[
                "3:11: servers.refresh: is unknown; known are refresh_floor, push_round, parent_protocol, election",
            ],
        ),
        (
            "client_gaps: 100ms",
            &[r#"3:14: client_gaps: is "100ms"; give a map, as in {news: 100ms}"#],
        ),
        (
            "client_gaps: {new: 1s, early: soon}",
            &[
                "3:15: client_gaps.new: is unknown; did you mean news?",
                r#"3:31: client_gaps.early: is "soon"; give seconds, or a duration such as 15s or 2m"#,
            ],
        ),
        (
            "limits: {comeback: 5, not_back: none}",
            &[r#"3:33: limits.not_back: is "none"; give a number"#],
        ),
        (
            "limits: {overshoot: -1}",
            &[
                "3:21: limits.overshoot: is -1, which is negative; give a finite number that is not negative",
            ],
        ),
        (
            "limits: {utilisation: 99}",
            &["3:23: limits.utilisation: is 99; give a number from 0 to 1"],
        ),
        (
            "limits: {utilization: 0.9}",
            &["3:10: limits.utilization: is unknown; did you mean utilisation?"],
        ),
        (
            "limits: {convergence: quick}",
            &[
                r#"3:23: limits.convergence: is "quick"; give seconds, or a duration such as 15s or 2m"#,
            ],
        ),
        (
            "limits: 0",
            &["3:9: limits: is 0; give a map, as in {overshoot: 0}"],
        ),
        (
            "faults: none",
            &[r#"3:9: faults: is "none"; give a list, as in [{at: 120s, kill: root, for: 20s}]"#],
        ),
        (
            "faults: [5]",
            &["3:10: faults: is 5; give a map, as in {at: 120s, kill: root}"],
        ),
    ];
    for (lines, expected) in table {
        check(
            &format!("SHAREDclients: [{{wants: 1}}]\n{lines}\n"),
            expected,
        );
    }
}

#[test]
fn trees_that_are_none_are_refused() {
    let table: &Table = &[
        (
            "tree: root",
            &[r#"3:7: tree: is "root"; give a map, as in {root: {children: [a, b]}}"#],
        ),
        (
            "tree: {}",
            &["3:7: tree: has 0 roots; give one, and all others as its children"],
        ),
        (
            "tree: {a: , b: }",
            &["3:7: tree: has 2 roots; give one, and all others as its children"],
        ),
        (
            "tree: {root: {count: 2}}",
            &["3:8: tree.root.count: there is only one root; remove it"],
        ),
        (
            "tree: {root: {count: 0}}",
            &["3:22: tree.root.count: is 0; give a whole number from 1 to 10000"],
        ),
        (
            "tree: {root: {candidates: 0}}",
            &["3:27: tree.root.candidates: is 0; give a whole number from 1 to 100"],
        ),
        (
            "tree: {root: {candidate: 3}}",
            &["3:15: tree.root.candidate: is unknown; did you mean candidates?"],
        ),
        (
            "tree: {root: {children: 3}}",
            &["3:25: tree.root.children: is 3; give a map of nodes, or a list of names"],
        ),
        (
            "tree: {root: {children: [a, a]}}",
            &[r#"3:29: tree.root.children.a: there are two nodes "a"; rename one"#],
        ),
        (
            "tree: {root: {children: [root]}}",
            &[
                r#"3:26: tree.root.children.root: the node "root" is below itself, which is a cycle; rename one"#,
            ],
        ),
        (
            "tree: {root: {children: {a: {children: [x]}, b: {children: [x]}}}}",
            &[r#"3:61: tree.root.children.b.children.x: there are two nodes "x"; rename one"#],
        ),
        (
            "tree: {root: {children: {a: {children: [root]}}}}",
            &[
                r#"3:41: tree.root.children.a.children.root: the node "root" is below itself, which is a cycle; rename one"#,
            ],
        ),
        (
            "tree: {root: {children: {a: , a: }}}",
            &[r#"3:31: tree.root.children.a: there are two nodes "a"; rename one"#],
        ),
        (
            "tree: {root: &r {children: {a: *r}}}",
            &["3:32: is a cycle: what this refers to contains it; write it out, without the alias"],
        ),
        (
            "tree: {root: {children: {a: &x {children: [b]}, c: *x}}}",
            &[r#"3:52: tree.root.children.c.children.b: there are two nodes "b"; rename one"#],
        ),
        (
            "tree: {root: {children: {any: , leaves: }}}",
            &[
                "3:26: tree.root.children.any: cannot be the name of a node: it says which nodes are meant",
                "3:33: tree.root.children.leaves: cannot be the name of a node: it says which nodes are meant",
            ],
        ),
        (
            "tree: {root: {children: {no: }}}",
            &[
                "3:26: tree.root.children.false: is a truth value to YAML, as on, off, yes and no are; put it in quotes",
            ],
        ),
        (
            "tree: {root: {children: [no]}}",
            &["3:26: tree.root.children: is the truth value false; put a text in quotes"],
        ),
        (
            "tree: {root: {children: {leaf: {count: 10000}}}}",
            &["3:8: tree.root: makes 10001 nodes; at most 10000"],
        ),
        (
            "tree: {root: {children: {a: {count: 5000, children: {b: {count: 5000, children: {c: {count: 5000}}}}}}}}",
            &["3:8: tree.root: makes 125025005001 nodes; at most 10000"],
        ),
        (
            r#"tree: {"": }"#,
            &["3:8: tree.: the name of a node is empty; give it a name"],
        ),
    ];
    for (lines, expected) in table {
        check(
            &format!("SHAREDclients: [{{wants: 1}}]\n{lines}\n"),
            expected,
        );
    }
}
