//! The server that a session asks next, and the time: addresses in turn, redirects, masters named by etcd, waits.

use super::*;

#[test]
fn a_server_that_is_not_the_master_redirects_to_it() {
    let mut story = Story::new(&["a:1", "b:1"]);
    story.connects().does();
    story.discovers(elsewhere(Some("m:1"), Some(5)));
    story.check("close, from a:1 to m:1, connect m:1 Stream, connecting");
    // A redirect on a stream has the same effect.
    story.streams_for(60.0);
    let reply = Reply {
        not_master: Some(elsewhere(Some("b:1"), Some(6))),
        ..Reply::default()
    };
    assert_eq!(story.replies(&reply), Disposition::Drop);
    story.check("close, from m:1 to b:1, connect b:1 Stream, connecting");
}

#[test]
fn a_loop_of_redirects_ends() {
    let mut story = Story::new(&["a:1"]);
    for _ in 0..5 {
        story.connects().discovers(elsewhere(Some("a:1"), None));
    }
    story.does();
    story.connects().discovers(elsewhere(Some("a:1"), None));
    let done = story.does();
    assert!(done.contains("redirects in a row"), "{done}");
    assert!(done.ends_with("waiting"), "{done}");
}

#[test]
fn the_other_addresses_are_tried_at_once_and_then_waits_grow() {
    let mut story = Story::new(&["a:1", "b:1"]);
    story.does();
    let unreachable = ConnectionEnd::Unreachable;
    story.is_closed(unreachable);
    story.check("close, down (the connection ended)!, connect b:1 Stream, connecting");
    for (wait, next) in [
        (200, "a"),
        (400, "b"),
        (800, "a"),
        (1_000, "b"),
        (1_000, "a"),
    ] {
        story.is_closed(unreachable);
        story.check("close, down (the connection ended), waiting");
        story.waits(wait).is_late();
        story.check(&format!("connect {next}:1 Stream, connecting"));
    }
    story.is_closed(unreachable).waits(1_000).is_late();
    // An answer resets the backoff.
    story.streams_for(60.0).is_closed(ConnectionEnd::Failed);
    story.is_closed(unreachable).waits(200);
}

#[test]
fn while_the_parent_elects_a_master_no_wait_is_longer_than_a_second() {
    let mut story = Story::new(&["a:1"]);
    for _ in 0..8 {
        story.connects().discovers(elsewhere(None, None)).does();
        let waits = story.session.poll_timeout().unwrap().since(story.now);
        assert!(waits <= Duration::from_secs(1), "{waits:?}");
        story.is_late().does();
    }
}

#[test]
fn a_master_of_an_older_epoch_is_refused_while_a_lease_lasts() {
    let older = MasterInfo {
        epoch: Some(4),
        ..MASTER
    };
    let mut story = Story::new(&["a:1"]);
    story.streams_for(60.0).is_closed(ConnectionEnd::Failed);
    story.is_late().connects().does();
    story.discovers_with_leases(older, Duration::from_secs(9));
    let done = story.does();
    assert!(done.contains("out of date"), "{done}");
    story.is_late().connects().does();
    story.discovers(older);
    story.check("forgot 5 for 4, open, opening");
}

#[test]
fn a_newly_named_master_ends_a_wait_and_the_connection_to_another_server() {
    let mut story = Story::new(&["a:1", "b:1"]);
    story.etcd_names(Some(("a:1", 5))).streams_for(60.0);
    story.etcd_names(None).etcd_names(Some(("a:1", 6)));
    story.check("streaming");
    story.etcd_names(Some(("b:1", 7)));
    story.check("close, from a:1 to b:1, connect b:1 Stream, connecting");
    let unreachable = ConnectionEnd::Unreachable;
    story.is_closed(unreachable).is_closed(unreachable).does();
    story.check("waiting");
    story.etcd_names(Some(("b:1", 7))).check("waiting");
    story.etcd_names(Some(("b:1", 8)));
    story.check("connect b:1 Stream, connecting");
}

#[test]
fn without_an_address_the_session_waits_for_one() {
    let mut story = Story::new(&[]);
    story.check("down (no address is known)!, waiting");
    story.is_late().check("down (no address is known), waiting");
    story.etcd_names(None);
    story.check("connect a:1 Stream, connecting");
}

#[test]
fn a_session_comes_back_after_the_retry_delay_of_an_overloaded_parent() {
    let mut story = Story::new(&["a:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(ConnectionEnd::Overloaded(Duration::from_secs(8)));
    story.check("close, down (the connection ended)!, waiting");
    // No wait is longer than the longest backoff, or the leases would run out.
    story.waits(6_250);
    // Another server may be less loaded.
    let mut story = Story::new(&["a:1", "b:1"]);
    story.connects().discovers(MASTER).does();
    story.is_closed(ConnectionEnd::Overloaded(Duration::from_secs(8)));
    story.check("close, down (the connection ended)!, connect b:1 Stream, connecting");
}

#[test]
fn a_parent_that_refuses_is_reported_apart_from_an_unreachable_one() {
    let mut story = Story::new(&["a:1"]);
    let cycle = ConnectionEnd::ByParent(CloseReason::Cycle);
    for (closed, is_news) in [
        (ConnectionEnd::Unreachable, "!"),
        (ConnectionEnd::Unreachable, ""),
        (cycle, "!"),
        (cycle, ""),
        (ConnectionEnd::Unreachable, ""),
        (cycle, "!"),
    ] {
        story.connects().does();
        story.is_closed(closed);
        let expected = format!("close, down (the connection ended){is_news}, waiting");
        story.check(&expected).is_late();
    }
}

#[test]
fn a_report_names_the_server_that_failed_although_the_next_one_is_asked_already() {
    let mut story = Story::new(&["a:1", "b:1"]);
    story.streams_for(60.0).does();
    story.is_closed(ConnectionEnd::Failed);
    let mut reported = Vec::new();
    while let Some(action) = story.session.poll_action() {
        if let ParentAction::Report(ParentReport::Down { parent, .. }) = action {
            reported.extend(parent.map(|it| it.to_string()));
        }
    }
    assert_eq!(reported, ["a:1"]);
    let asked = story.session.address().map(ToString::to_string);
    assert_eq!(asked.as_deref(), Some("b:1"));
}
