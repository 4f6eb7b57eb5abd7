//! Tables: events of a finder, and the server that it asks then.

use super::*;

fn address(text: &str) -> Address {
    Address::parse(text).unwrap()
}

fn known(texts: &str) -> Arc<[Address]> {
    texts.split_whitespace().map(address).collect()
}

/// An event.
#[derive(Clone, Copy, Debug)]
enum FinderStep {
    /// etcd lists these servers, and perhaps a master with its epoch.
    EtcdNames(&'static str, Option<(&'static str, u64)>),
    /// The server answers that it is the master of an epoch, while leases last for that many seconds.
    Master(Option<u64>, u64),
    /// It answers a request as the master.
    Answers,
    /// It names another server, while leases last for that many seconds.
    Names(Option<&'static str>, Option<u64>, u64),
    /// It fails.
    Fails,
}

use FinderStep::{Answers, EtcdNames, Fails, Master, Names};

/// Writes the result: the returned value, and the next server to ask; `!` if another server named it.
fn play(finder: &mut MasterFinder, step: FinderStep) -> String {
    let seconds = Duration::from_secs;
    let result = |result: Result<Option<u64>, DeadEnd>| match result {
        Ok(None) => String::new(),
        Ok(Some(forgotten)) => format!("forgets {forgotten}: "),
        Err(lost) if lost.kind == FailureKind::Masterless => {
            format!("election, {}: ", kind(&lost.why))
        }
        Err(lost) => format!("{}: ", kind(&lost.why)),
    };
    let returned = match step {
        EtcdNames(addresses, master) => {
            let named = master.map(|(master, epoch)| (address(master), epoch));
            let is_new = finder.handle_addresses(known(addresses), named);
            String::from(if is_new { "new: " } else { "" })
        }
        Master(epoch, leases) => result(finder.handle_master(epoch, seconds(leases))),
        Answers => {
            finder.handle_answer();
            String::new()
        }
        Names(master, epoch, leases) => {
            result(finder.handle_redirect(master, epoch, seconds(leases)))
        }
        Fails => result(Err(finder.handle_failure())),
    };
    let target = finder.target().map_or("nobody".to_owned(), |target| {
        let mark = if finder.redirect.is_some() { "!" } else { "" };
        format!("{target}{mark}")
    });
    returned + &target
}

fn kind(why: &DeadEndReason) -> &'static str {
    match why {
        DeadEndReason::OutOfDate(_) => "out of date",
        DeadEndReason::NoMaster => "no master",
        DeadEndReason::BadAddress(_) => "bad address",
        DeadEndReason::TooManyRedirects { .. } => "loop",
        DeadEndReason::Failed => "failed",
    }
}

#[track_caller]
fn check(given: &str, steps: &[(FinderStep, &str)]) {
    let mut finder = MasterFinder::new(known(given));
    for (number, (step, expected)) in steps.iter().enumerate() {
        let came = play(&mut finder, *step);
        assert_eq!(&came, expected, "step {number}: {step:?}");
    }
}

#[test]
fn known_addresses_are_tried_in_turn() {
    check(
        "a:1 b:1",
        &[
            (Fails, "failed: b:1"),
            (Fails, "failed: a:1"),
            (Master(None, 0), "a:1"),
            (Answers, "a:1"),
            (Fails, "failed: b:1"),
        ],
    );
    check("", &[(Fails, "failed: nobody")]);
    let finder = |given| MasterFinder::new(known(given));
    let others = ["", "a:1", "a:1 b:1 c:1"].map(|given| finder(given).others());
    assert_eq!(others, [0, 0, 2]);
}

#[test]
fn the_master_comes_first_then_the_others_then_addresses_from_flags() {
    let (servers, given) = (known("a:1 b:1"), known("z:1 a:1"));
    for (named, order) in [(Some("b:1"), "b:1 a:1 z:1"), (None, "a:1 b:1 z:1")] {
        let named = named.map(address);
        let in_order = in_order(named.as_ref(), servers.iter(), given.iter());
        assert_eq!(in_order, known(order));
    }
    check(
        "z:1 a:1",
        &[
            (EtcdNames("b:1 a:1 z:1", Some(("b:1", 5))), "new: b:1"),
            (Fails, "failed: a:1"),
            (Fails, "failed: z:1"),
            (Fails, "failed: b:1"),
        ],
    );
}

#[test]
fn a_newly_named_master_is_asked_next() {
    check(
        "",
        &[
            (EtcdNames("a:1 b:1 c:1", Some(("a:1", 5))), "new: a:1"),
            // It fails before etcd knows that.
            (Fails, "failed: b:1"),
            (EtcdNames("a:1 b:1 c:1", Some(("a:1", 5))), "b:1"),
            (Fails, "failed: c:1"),
            (EtcdNames("b:1 c:1", None), "b:1"),
            (Fails, "failed: c:1"),
            (EtcdNames("c:1 b:1", Some(("c:1", 9))), "new: c:1"),
            (Fails, "failed: b:1"),
            // The same server, elected again.
            (EtcdNames("c:1 b:1", Some(("c:1", 12))), "new: c:1"),
            // The order of the list does not matter.
            (EtcdNames("b:1 c:1 d:1", Some(("d:1", 13))), "new: d:1"),
        ],
    );
}

#[test]
fn the_last_list_counts_while_etcd_lists_no_server() {
    check(
        "",
        &[
            (EtcdNames("", None), "nobody"),
            (EtcdNames("a:1 b:1", Some(("a:1", 5))), "new: a:1"),
            (Fails, "failed: b:1"),
            (EtcdNames("", None), "b:1"),
            (Fails, "failed: a:1"),
            (EtcdNames("a:1 b:1", Some(("a:1", 5))), "a:1"),
        ],
    );
}

#[test]
fn a_new_master_and_the_first_address_are_reported_as_new() {
    check(
        "",
        &[
            (EtcdNames("", None), "nobody"),
            (EtcdNames("a:1 b:1", None), "new: a:1"),
            (EtcdNames("a:1 b:1", Some(("a:1", 5))), "new: a:1"),
            (EtcdNames("a:1 b:1", None), "a:1"),
            (EtcdNames("b:1", None), "b:1"),
            (EtcdNames("b:1", Some(("b:1", 9))), "new: b:1"),
            (EtcdNames("b:1", Some(("b:1", 9))), "b:1"),
        ],
    );
}

#[test]
fn a_named_server_is_asked_before_the_next_address() {
    check(
        "a:1 b:1",
        &[
            (Names(Some("x:1"), None, 0), "x:1!"),
            (Names(Some("y:1"), None, 0), "y:1!"),
            (Master(None, 0), "y:1!"),
            (Answers, "y:1!"),
            // It is asked until it fails.
            (EtcdNames("b:1 a:1", None), "y:1!"),
            (Fails, "election, failed: a:1"),
            (Fails, "failed: b:1"),
        ],
    );
}

#[test]
fn a_master_that_etcd_names_comes_before_one_that_a_server_named() {
    check(
        "",
        &[
            (EtcdNames("a:1 b:1", Some(("a:1", 5))), "new: a:1"),
            (Names(Some("b:1"), Some(9), 60), "b:1!"),
            // The list from etcd is late.
            (EtcdNames("a:1 b:1", Some(("a:1", 5))), "b:1!"),
            (EtcdNames("b:1 a:1", Some(("b:1", 9))), "new: b:1"),
        ],
    );
}

#[test]
fn a_server_without_a_master_or_that_names_none_is_in_an_election() {
    for (master, kind) in [
        (None, "no master"),
        (Some(""), "no master"),
        (Some("here"), "bad address"),
        (Some("a\u{202e}:1"), "bad address"),
    ] {
        let left = format!("election, {kind}: b:1");
        check(
            "a:1 b:1",
            &[(Names(master, Some(7), 0), &left), (Fails, "failed: a:1")],
        );
    }
}

#[test]
fn a_loop_is_left_after_five_redirects_for_the_next_address() {
    let around = |left| {
        [
            (Names(Some("x:1"), None, 0), "x:1!"),
            (Names(Some("y:1"), None, 0), "y:1!"),
            (Names(Some("x:1"), None, 0), "x:1!"),
            (Names(Some("y:1"), None, 0), "y:1!"),
            // A master by Discovery does not count as an answer of a master.
            (Master(None, 0), "y:1!"),
            (Names(Some("x:1"), None, 0), "x:1!"),
            (Names(Some("y:1"), None, 0), left),
        ]
    };
    let mut steps = around("election, loop: b:1").to_vec();
    steps.extend(around("election, loop: a:1"));
    // An answer of a master restarts the count.
    steps.extend(&around("")[..6]);
    steps.push((Answers, "x:1!"));
    steps.extend(&around("")[..6]);
    check("a:1 b:1", &steps);
}

#[test]
fn an_older_epoch_is_refused_while_a_lease_is_valid() {
    let names_older = Names(Some("x:1"), Some(8), 60);
    check(
        "a:1 b:1",
        &[
            (Master(Some(9), 0), "a:1"),
            (Fails, "failed: b:1"),
            (Master(Some(8), 60), "election, out of date: a:1"),
            (names_older, "election, out of date: b:1"),
            // A master without an epoch is accepted.
            (Master(None, 60), "b:1"),
            (Names(Some("x:1"), None, 60), "x:1!"),
            (Master(Some(10), 60), "x:1!"),
            (Fails, "election, failed: a:1"),
            (Master(Some(9), 60), "election, out of date: b:1"),
        ],
    );
}

#[test]
fn an_epoch_is_forgotten_when_no_lease_is_left_and_that_is_returned_once() {
    check(
        "a:1 b:1",
        &[
            (Master(Some(9), 0), "a:1"),
            (Fails, "failed: b:1"),
            (Names(Some("x:1"), Some(2), 0), "forgets 9: x:1!"),
            (Master(Some(2), 0), "x:1!"),
            (Master(Some(1), 0), "forgets 2: x:1!"),
        ],
    );
}

#[test]
fn etcd_is_read_again_unless_other_servers_may_know_the_master() {
    let mut finder = MasterFinder::new(known("a:1"));
    let two = EtcdNames("a:1 b:1", Some(("a:1", 5)));
    let no_master = Names(None, None, 0);
    for (step, is_due) in [
        (Fails, true),
        // It did not answer.
        (EtcdNames("", None), true),
        (two, false),
        // Both servers are asked before etcd is.
        (no_master, false),
        (no_master, true),
        (two, false),
        (no_master, false),
        // The named server is asked at once.
        (Names(Some("x:1"), None, 0), false),
        // A named master that is down is about to get a successor. This counts as no master, too.
        (Fails, true),
        (two, false),
        (no_master, false),
        // Another kind of failure.
        (Fails, true),
        (two, false),
        (Master(None, 0), true),
        (two, false),
        (Fails, true),
    ] {
        play(&mut finder, step);
        assert_eq!(finder.is_look_due(), is_due, "{step:?}");
    }
}

#[test]
fn names_from_servers_are_shortened_and_escaped() {
    let mut finder = MasterFinder::new(known("a:1"));
    let mut problem = |master: &str| {
        let lost = finder.handle_redirect(Some(master), None, Duration::ZERO);
        lost.unwrap_err().to_string()
    };
    assert_eq!(
        problem("\u{1b}[2J\u{202e}"),
        r#"it names a master at "\u{1b}[2J\u{202e}", which is not host:port"#
    );
    assert!(problem(&"\u{202e}".repeat(10_000)).len() < 2_000);
    for _ in 0..REDIRECTS_MAX {
        let followed = finder.handle_redirect(Some("x:1"), None, Duration::ZERO);
        followed.unwrap();
    }
    let looped = finder.handle_redirect(Some("y:1"), None, Duration::ZERO);
    assert_eq!(
        looped.unwrap_err().to_string(),
        "its servers redirect to each other: more than 5 redirects in a row, the last to y:1"
    );
}

#[test]
fn a_finder_is_small() {
    // A million of them live in one simulation.
    assert!(size_of::<MasterFinder>() <= 80);
}
