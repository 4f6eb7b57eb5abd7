//! The tree on the pages.

use askama::Template;
use doorward_engine::messages::GetServerCapacityReply;
use doorward_server::status::ParentLink;
use doorward_server::web::pages::{Index, ResourcePage};

use crate::family::{Family, WORD, Word, root_with_a_child};
use crate::running::page;

/// Report of a Doorman server, which sends counts and sums only.
const OLD: Word = Word {
    wants: 30.0,
    clients: 2.0,
    outstanding: None,
    learning: true,
    curve: false,
};

fn busy() -> Family {
    let mut family = Family::new();
    family.child_asks("leaf-a", "fair/x", WORD);
    family.child_asks("leaf-b", "fair/x", OLD);
    family.client_asks("web", "fair/x", 5.0);
    family
}

fn front(family: &Family) -> String {
    let status = family.eu.status(None, 0);
    Index::new(&status, true).render().unwrap()
}

fn resource(family: &Family, number: usize) -> String {
    let status = family.eu.status(None, 100);
    let page = ResourcePage::new(&status, &status.resources[number]);
    page.render().unwrap()
}

/// Checks that the page has all texts, in that order.
#[track_caller]
fn check_in_order(page: &str, texts: &[&str]) {
    let mut rest = page;
    for text in texts {
        let Some((_, after)) = rest.split_once(text) else {
            panic!("no {text:?} in its place in\n{page}");
        };
        rest = after;
    }
}

#[test]
fn the_front_page_shows_the_parent_and_children_under_their_resource() {
    let family = busy();
    family.child_streams(3);
    check_in_order(
        &front(&family),
        &[
            "<h2>Parent</h2>",
            "<b>root</b> at root-0:6970",
            "pill good\">stream for",
            "root → eu, this node",
            "also at root-1:6970",
            "/resource?id=fair%2Fx",
            "<tr class=\"child\">",
            "<b>leaf-a</b>",
            "<b>leaf-b</b>",
            "learning",
            "Doorman server",
            "parent at root-0:6970 (stream)",
            "parent session: streaming",
            "child streams: 3 open",
        ],
    );
    family.post(ParentLink::Poll, Some("it is an old server"));
    let polls = ["pill warn\">poll for", "it is an old server"];
    check_in_order(&front(&family), &polls);
}

#[test]
fn the_page_of_a_resource_shows_the_own_lease_child_servers_and_clients() {
    let family = busy();
    let text = resource(&family, 0);
    check_in_order(
        &text,
        &[
            "FAIR_SHARE as the parent says",
            "<h2>Own lease",
            "Share, once others have shrunk",
            "<h2>Child servers</h2>",
            "<b>leaf-a</b>",
            "a leaf, demand curve of",
            "keeps an earlier, larger grant",
            "<b>leaf-b</b>",
            "sends counts and sums only",
            "not reported",
            "<h2>Clients of this server itself</h2>",
            "<b>web</b>",
        ],
    );
    assert_eq!(text.matches("<b>leaf-a</b>").count(), 1, "{text}");
    assert!(!text.contains("template gone"), "only the root has it");
}

#[test]
fn every_page_tells_that_the_parent_is_out_of_reach_and_why() {
    let family = busy();
    family.post(ParentLink::Down, Some("connection <refused>"));
    for text in [front(&family), resource(&family, 0)] {
        let problem = "connection &#60;refused&#62;";
        check_in_order(
            &text,
            &["The parent is out of reach", "root-0:6970", problem],
        );
    }
}

#[test]
fn a_resource_that_the_parent_refuses_says_so() {
    let mut family = busy();
    family.client_asks("web", "nowhere", 1.0);
    assert!(front(&family).contains("waits for the parent"));
    family.ask_up();
    assert!(front(&family).contains("refused by the parent"));
    check_in_order(
        &resource(&family, 1),
        &[
            "The parent refuses this resource:",
            "no template of the root matches it",
            "no lease",
        ],
    );
}

#[test]
fn a_bar_has_the_part_of_the_capacity_and_of_the_wants_and_a_lease_of_0_is_named() {
    let mut status = busy().eu.status(None, 0);
    for (capacity, wants, text) in [
        (15.0, 15.0, "<span>100 %</span>"),
        (3.0, 137.0, "<span>100 %; 2.19 % of wants</span>"),
        (0.0, 137.0, "<span class=\"sub\">lease of 0</span>"),
    ] {
        let resource = &mut status.resources[0];
        resource.children.clear();
        (resource.capacity, resource.wants, resource.granted) = (capacity, wants, capacity);
        let front = Index::new(&status, true).render().unwrap();
        check_in_order(&front, &["Granted of capacity", text]);
        assert!(!front.contains("no total"), "{front}");
    }
}

#[test]
fn learning_mode_below_the_root_has_its_most_and_a_safe_capacity_is_known_or_not() {
    let mut status = busy().eu.status(None, 0);
    let resource = &mut status.resources[0];
    (resource.learning_remaining_ms, resource.safe_capacity) = (Some(54_000), Some(0.0));
    let page = ResourcePage::new(&status, &status.resources[0]);
    let texts = [
        "learning mode, at most 54 s left",
        "safe capacity 0 in learning mode",
    ];
    check_in_order(&page.render().unwrap(), &texts);
    status.resources[0].safe_capacity = None;
    let page = ResourcePage::new(&status, &status.resources[0]);
    let unknown = "safe capacity not known without a lease from the parent";
    check_in_order(&page.render().unwrap(), &[unknown]);
}

#[test]
fn every_page_tells_that_the_node_is_its_own_ancestor() {
    let family = busy();
    let reply = GetServerCapacityReply {
        ancestors: vec!["root".to_owned(), "eu".to_owned()],
        ..GetServerCapacityReply::default()
    };
    let node = family.eu.node();
    node.change(|node, now| node.handle_upstream_reply(&reply, now));
    for text in [front(&family), resource(&family, 0)] {
        assert!(text.contains("This node is its own ancestor."), "{text}");
    }
}

#[test]
fn many_children_are_on_the_page_of_their_resource() {
    let mut family = Family::new();
    for number in 0..8 {
        family.child_asks(&format!("leaf-{number}"), "fair/x", WORD);
    }
    let listed = ["leaf-0", "leaf-4", "3 more child servers"];
    check_in_order(&front(&family), &listed);
    assert!(!front(&family).contains("leaf-5"));
    assert!(resource(&family, 0).contains("leaf-7"));
}

#[tokio::test]
async fn the_root_says_that_it_is_the_root() {
    let server = root_with_a_child().await;
    let (_, _, text) = page(&server, "/").await;
    check_in_order(&text, &["<h2>Root</h2>", "no parent", "<b>eu</b>"]);
    let (_, _, text) = page(&server, "/resource?id=fair%2Fx").await;
    assert!(!text.contains("Own lease"), "{text}");
    check_in_order(&text, &["<h2>Child servers</h2>", "<b>eu</b>"]);
    assert!(!text.contains("Clients of this server"), "{text}");
}
