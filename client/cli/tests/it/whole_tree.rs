//! `tree`, `explain` and `status --client`: what is known of all servers, and of one client.

use doorward_proto::admin::v1::{
    ChildServerStatus, ChildStatus, GetStatusRequest, LeaseStatus, OwnLeaseStatus, ParentStatus,
    ResourceStatus, TemplateMatch,
};

use crate::fake_server::{Asked, FakeServer, Master, Play};
use crate::{check_exit, check_failure, json, nowhere, printed, run, stderr, stdout};

fn child_server(child: &str, address: Option<String>, state: &str) -> ChildServerStatus {
    ChildServerStatus {
        child: child.to_owned(),
        address,
        state: state.to_owned(),
        state_age_ms: 80_000,
        heard_age_ms: 1_000,
        height: 1,
        leases_remaining_ms: Some(12_000),
        clients_count: 3.0,
        ..ChildServerStatus::default()
    }
}

fn child_lease(child: &str, granted: f64) -> ChildStatus {
    ChildStatus {
        child: child.to_owned(),
        clients_count: 3.0,
        wants: 90.0,
        share: granted,
        granted,
        reserved: granted,
        expires_in_ms: 12_000,
        why: "fair share".to_owned(),
        ..ChildStatus::default()
    }
}

fn lease(client: &str, wants: f64, granted: f64) -> LeaseStatus {
    LeaseStatus {
        holder: client.to_owned(),
        kind: "client".to_owned(),
        wants,
        share: granted,
        granted,
        reserved: granted,
        expires_in_ms: 9_000,
        why: "fair share: 30 per client".to_owned(),
        ..LeaseStatus::default()
    }
}

fn resource(capacity: f64, wants: f64) -> ResourceStatus {
    ResourceStatus {
        resource_id: "shared".to_owned(),
        algorithm: Some("FAIR_SHARE".to_owned()),
        capacity,
        wants,
        granted: capacity,
        reserved: capacity,
        leases_count: 3,
        clients_count: 6,
        lease_length_ms: 60_000,
        ..ResourceStatus::default()
    }
}

/// A leaf with two clients of that resource.
fn leaf(node: &'static str) -> FakeServer {
    FakeServer::with(|play| {
        play.node = node;
        play.resources = vec![ResourceStatus {
            leases: vec![lease("web-1", 70.0, 30.0), lease("web-2", 10.0, 10.0)],
            own_lease: Some(OwnLeaseStatus {
                expires_in_ms: Some(12_000),
                ..OwnLeaseStatus::default()
            }),
            ..resource(40.0, 80.0)
        }];
    })
}

/// A root above those child servers.
fn root(children: Vec<ChildServerStatus>) -> Play {
    let leases = children.iter().map(|it| child_lease(&it.child, 40.0));
    Play {
        node: "root",
        resources: vec![ResourceStatus {
            template: Some("shar*".to_owned()),
            children: leases.collect(),
            ..resource(100.0, 230.0)
        }],
        children,
        ..Play::default()
    }
}

#[test]
fn a_tree_shows_each_server_with_its_state_or_the_reason_why_it_is_not_known() {
    let leaf = leaf("leaf");
    let nowhere = nowhere();
    let at = |address: &str| Some(address.to_owned());
    let root = FakeServer::start_with(|own| {
        root(vec![
            child_server("again", at(own), "streaming"),
            child_server("cut", at(&nowhere), "polling"),
            child_server("dead", at("127.0.0.1:1"), "gone"),
            child_server("leaf", at(&leaf.address), "streaming"),
            child_server("old", None, "streaming"),
        ])
    });
    let text = printed(&root.address, &["tree"]);
    let says = |words: &[&str]| {
        let is_it = |line: &&str| words.iter().all(|word| line.contains(word));
        assert_eq!(text.lines().filter(is_it).count(), 1, "{words:?}\n{text}");
    };
    says(&["root ", &root.address, "1.2.3", "asked first"]);
    says(&["  again", "the node root is at its address"]);
    says(&[
        "  cut",
        &nowhere,
        "polling for 1m 20s; ",
        "Connection refused",
    ]);
    says(&[
        "  dead",
        "127.0.0.1:1",
        "?",
        "3",
        "GONE for 1m 20s; its leases last 12s more",
    ]);
    says(&["  leaf", &leaf.address, "1.2.3", "streaming for 1m 20s"]);
    says(&[
        "  old",
        "?",
        "streaming for 1m 20s; address unknown: it is of an earlier release",
    ]);
    assert_eq!(text.lines().count(), 7, "{text}");

    let names = printed(&root.address, &["tree", "-o", "name"]);
    assert_eq!(names, "root\nagain\ncut\ndead\nleaf\nold\n");
    let wide = printed(&root.address, &["tree", "shared", "-o", "wide"]);
    assert!(
        wide.contains("reserved  levels  epoch  up for  heard ago"),
        "{wide}"
    );
    let row = wide.lines().find(|line| line.contains("  leaf")).unwrap();
    assert!(row.contains("90       40     40        40"), "{row}");
    let all = json(&run(&root.address, &["tree", "shared", "-o", "json"]));
    assert_eq!(all[4]["above"], serde_json::json!(["root"]));
    assert_eq!(all[4]["status"]["resources"][0]["capacity"], 40.0);
    let problem = all[3]["problem"].as_str().unwrap();
    assert!(problem.contains("refused"), "{problem}");
    let none = run(&root.address, &["tree", "other"]);
    check_failure(&none, 1, "no leases of other are out there");
}

#[test]
fn a_cycle_of_servers_ends() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    let below = FakeServer::with(|play| {
        play.node = "below";
        play.children = vec![child_server("root", Some(address.clone()), "streaming")];
    });
    let children = vec![child_server(
        "below",
        Some(below.address.clone()),
        "streaming",
    )];
    let root = FakeServer::start_on(listener, |_| root(children));
    let text = printed(&root.address, &["tree"]);
    assert!(
        text.contains("    root") && text.contains("is elsewhere in the tree, too"),
        "{text}"
    );
}

#[test]
fn a_parent_of_the_previous_release_names_its_children_by_their_leases() {
    let mut play = root(vec![child_server("leaf", None, "")]);
    play.children.clear();
    play.is_previous = true;
    let root = FakeServer::start(play);
    let text = printed(&root.address, &["tree"]);
    let row = text.lines().find(|line| line.contains("  leaf")).unwrap();
    let said =
        "its leases last 12s more; address unknown: it is of an earlier release, or has none";
    assert!(row.ends_with(said), "{text}");
    let output = run(&root.address, &["explain", "shared", "web-1"]);
    check_exit(&output, 1);
    let text = stderr(&output);
    let said = "not asked: leaf: address unknown: it is of an earlier release, or has none; its parent grants it 40 \
                for 3 clients";
    assert!(text.contains(said), "{text}");
}

#[test]
fn a_client_is_explained_from_the_template_to_its_number() {
    let leaf = leaf("leaf");
    let old = child_server("old", None, "polling");
    let children = vec![
        child_server("leaf", Some(leaf.address.clone()), "streaming"),
        old,
    ];
    let root = FakeServer::start(root(children));
    let text = printed(&root.address, &["explain", "shared", "web-1"]);
    let (at_root, at_leaf) = (&root.address, &leaf.address);
    let expected = [
        &format!(
            "root at {at_root}: 100 from the template \"shar*\", divided by FAIR_SHARE; its holders want 230"
        ),
        "  server leaf: 40 of 90 for 12s, share 40, reserved 40: fair share",
        &format!(
            "leaf at {at_leaf}: 40 from its parent, divided by FAIR_SHARE; its holders want 80"
        ),
        "  client web-1: 30 of 70 for 9s, share 30, reserved 30: fair share: 30 per client",
        "limited by: the division at root: its holders want 230 of 100",
        "what helps: a larger capacity in the template shar*, or less demand: doorward status shared",
        "not asked: old: address unknown: it is of an earlier release, or has none; its parent grants it 40 for 3 clients",
    ];
    assert_eq!(text.lines().collect::<Vec<_>>(), expected, "{text}");
    let text = printed(&root.address, &["explain", "shared", "web-2"]);
    assert!(
        text.contains("\nlimited by: nothing; it has all that it wants\n"),
        "{text}"
    );
    let found = json(&run(
        &root.address,
        &["explain", "shared", "web-1", "-o", "json"],
    ));
    assert_eq!(found[0]["lease"]["granted"], 30.0);
    assert_eq!(found[0]["path"][1]["node"], "leaf");
    check_exit(&run(&root.address, &["explain", "shared", "nobody"]), 1);
}

#[test]
fn learning_a_refusal_and_leases_of_others_are_named_before_the_division() {
    let limited_by = |change: fn(&mut ResourceStatus)| {
        let server = FakeServer::with(|play| {
            let mut resource = ResourceStatus {
                leases: vec![lease("web", 70.0, 0.0)],
                ..resource(40.0, 80.0)
            };
            resource.template = Some("shar*".to_owned());
            change(&mut resource);
            play.resources = vec![resource];
        });
        let text = printed(&server.address, &["explain", "shared", "web"]);
        let line = text
            .lines()
            .find_map(|line| line.strip_prefix("limited by: "));
        line.unwrap().to_owned()
    };
    assert_eq!(
        limited_by(|it| it.learning_remaining_ms = Some(5_000)),
        "learning mode, 5s left at most"
    );
    assert_eq!(
        limited_by(|it| it.template = None),
        "no template matches the resource: it is refused, and leases run down"
    );
    assert_eq!(
        limited_by(|it| it.own_lease = Some(OwnLeaseStatus::default())),
        "fake has no lease from its parent"
    );
    assert_eq!(
        limited_by(|it| {
            it.leases[0].granted = it.leases[0].wants;
            it.leases[0].wants_more = true;
        }),
        "wants_max: it wants more than counts"
    );
    assert_eq!(
        limited_by(|it| {
            it.own_lease = Some(OwnLeaseStatus {
                refusal: Some("no template".to_owned()),
                ..OwnLeaseStatus::default()
            });
        }),
        "a parent refuses the resource: no template"
    );
    assert_eq!(
        limited_by(|it| it.leases[0].share = 20.0),
        "leases of others at fake; web gets its share, 20, once they shrink"
    );
}

#[test]
fn a_missing_template_a_broken_link_and_a_cut_demand_are_named_before_the_division() {
    let explained = |change: fn(&mut Play), change_leaf: fn(&mut Play)| {
        let leaf = FakeServer::with(|play| {
            play.node = "leaf";
            play.resources = vec![ResourceStatus {
                leases: vec![lease("web-1", 70.0, 30.0)],
                own_lease: Some(OwnLeaseStatus {
                    expires_in_ms: Some(12_000),
                    ..OwnLeaseStatus::default()
                }),
                ..resource(40.0, 80.0)
            }];
            change_leaf(play);
        });
        let child = child_server("leaf", Some(leaf.address.clone()), "streaming");
        let mut play = root(vec![child]);
        change(&mut play);
        let root = FakeServer::start(play);
        printed(&root.address, &["explain", "shared", "web-1"])
    };
    let text = explained(
        |root| {
            root.resources.clear();
            root.template_match = Some(TemplateMatch { glob: None });
        },
        |leaf| {
            leaf.resources[0].algorithm = None;
            leaf.resources[0].own_lease = Some(OwnLeaseStatus::default());
        },
    );
    let limit = "limited by: no template matches the resource: it is refused, and leases run down";
    assert!(text.contains(limit), "{text}");
    assert!(
        text.contains("40 from its parent, divided by what its parent has not sent;"),
        "{text}"
    );
    let text = explained(
        |_| {},
        |leaf| {
            leaf.parent = Some(ParentStatus {
                link: "down".to_owned(),
                ..ParentStatus::default()
            });
        },
    );
    let limit = "limited by: leaf cannot reach its parent, and divides what it has\n\
                 what helps: the link between them: doorward tree";
    assert!(text.contains(limit), "{text}");
    let text = explained(
        |root| root.resources[0].children[0].wants_more = true,
        |_| {},
    );
    let limit = "limited by: subclients_max at root: only 3 clients of leaf count";
    assert!(text.contains(limit), "{text}");
}

#[test]
fn a_server_without_a_master_says_so_instead_of_knowing_nothing() {
    let server = FakeServer::with(|play| play.master = Master::Unknown);
    let output = run(&server.address, &["explain", "shared", "web"]);
    check_failure(&output, 1, "no master is known at fake");
    for arguments in [&["tree", ""][..], &["explain", "", "web"]] {
        check_exit(&run(&server.address, arguments), 2);
    }
    let output = run(&server.address, &["status", "--client", "a\nb"]);
    check_failure(&output, 1, r"no client a\u{a}b holds");
}

#[test]
fn leases_of_a_client_are_found_also_at_a_server_that_does_not_search() {
    let leaf = leaf("leaf");
    let text = printed(&leaf.address, &["status", "--client", "web-*"]);
    assert_eq!(text.lines().count(), 3, "{text}");
    let text = printed(&leaf.address, &["status", "--client", "web-2"]);
    let row = text.lines().nth(1).unwrap();
    assert!(
        row.starts_with("shared    web-2          0     10     10       10"),
        "{text}"
    );
    let asked = leaf.asked();
    let holder = |asked: &Asked| match asked {
        Asked::Status(GetStatusRequest { holder, .. }) => Some(holder.clone()),
        _ => None,
    };
    let asked: Vec<_> = asked.iter().filter_map(holder).collect();
    assert_eq!(asked, ["web-", "web-2"]);
    let nobody = run(&leaf.address, &["status", "--client", "web"]);
    check_failure(&nobody, 1, "no client web holds anything at leaf");
}

#[test]
fn yaml_is_the_json_in_another_notation() {
    let leaf = leaf("leaf");
    let text = printed(&leaf.address, &["status", "-o", "yaml"]);
    assert!(
        text.starts_with("---\nschema_version: 1\nnode: leaf\n"),
        "{text}"
    );
    assert_eq!(
        printed(&leaf.address, &["status", "-o", "name"]),
        "shared\n"
    );
    let wide = stdout(&run(&leaf.address, &["status", "-o", "wide"]));
    assert!(wide.contains("leases  template  lease length"), "{wide}");
}
