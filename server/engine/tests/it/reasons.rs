//! Every reason, in one table: the situation that makes it, and its text in the status.
//!
//! Each row plays commands of [stories](crate::stories), and reads the lease of one holder at one node.

use std::collections::BTreeSet;
use std::time::Duration;

use doorward_engine::division::{Bound, Reason};
use doorward_engine::messages::ResourceSnapshot;

use crate::asking::resource;
use crate::story::player::Player;
use crate::whole::Whole as _;

/// Commands with `; ` between them, the node and the holder to look at, and the text that its lease has.
type Row = (&'static str, &'static str, &'static str, &'static str);

/// Words of rows for longer commands.
const WORDS: [(&str, &str); 7] = [
    ("NEW", "node root"),
    ("FAIR", "template r FAIR_SHARE 100"),
    ("BANDS", "template r PRIORITY_BANDS 100 min_share.0=0.2"),
    ("LEARNS", "template r FAIR_SHARE 100 learning=lease"),
    (
        "MARKS",
        "elect root epoch=1 vacant-since=long until=1000s marks",
    ),
    ("EU", "node eu parent=root"),
    ("ELECTED", "node eu parent=root epoch=2"),
];

const ROWS: &[Row] = &[
    (
        "NEW; FAIR; advance 1s; ask a wants=30",
        "root",
        "a",
        "there is enough for everyone",
    ),
    (
        "NEW; template r NO_ALGORITHM 0; advance 1s; ask a wants=30",
        "root",
        "a",
        "everyone gets what it wants (NO_ALGORITHM)",
    ),
    (
        "NEW; template r STATIC 10; advance 1s; ask a wants=30",
        "root",
        "a",
        "at most 10 per client (STATIC)",
    ),
    (
        "NEW; template r PROPORTIONAL_SHARE 100; advance 1s; ask a wants=30; ask b wants=130",
        "root",
        "b",
        "an equal share of 50 per client and 25 % of what is wanted beyond it",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=30; ask b wants=90",
        "root",
        "b",
        "fair share: everyone gets at most 70 per client",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=90; ask b wants=90",
        "root",
        "b",
        "fair share: everyone gets at most 50 per client; \
         the rest is held by others until they have shrunk",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=90; ask b wants=90",
        "root",
        "a",
        "fair share: everyone gets at most 50 per client; it keeps an earlier, larger grant until it refreshes or \
         expires",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=90; ask b wants=90; release a",
        "root",
        "b",
        "there is enough for everyone; it gets the rest when it asks next",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=70; ask b wants=30; template r FAIR_SHARE 40; \
         advance 1s; ask c wants=10",
        "root",
        "c",
        "fair share: everyone gets at most 15 per client; the capacity was lowered below what is out, so everyone \
         shrinks first",
    ),
    // Priorities: no higher one, a guarantee alone, a guarantee and more, and nothing.
    (
        "NEW; BANDS; advance 1s; ask a wants=90 priority=1; ask b wants=30",
        "root",
        "a",
        "its priority gets 80: at most 80 per client; \
         it keeps an earlier, larger grant until it refreshes or expires",
    ),
    (
        "NEW; BANDS; advance 1s; ask b wants=20; ask c wants=30; ask a wants=90 priority=1",
        "root",
        "b",
        "higher priorities get 80; its priority gets 20, all of it guaranteed: at most 10 per client; it keeps an \
         earlier, larger grant until it refreshes or expires",
    ),
    (
        "NEW; BANDS; advance 1s; ask a wants=50 priority=1; ask b wants=60",
        "root",
        "b",
        "higher priorities get 50; \
         its priority gets 50, 20 of it guaranteed: at most 50 per client",
    ),
    (
        "NEW; BANDS; advance 1s; ask a wants=95 priority=1; ask b wants=5; \
         ask c wants=9 priority=-1",
        "root",
        "c",
        "higher priorities get 100; its priority gets 0: at most 0 per client",
    ),
    (
        "NEW; BANDS; advance 1s; ask a wants=50 priority=1; ask b wants=60",
        "root",
        "a",
        "there is enough for everyone of its priority",
    ),
    (
        "NEW; EU; BANDS; advance 1s; ask a at=eu wants=90 priority=1; ask b at=eu wants=30; \
         run 10s",
        "root",
        "eu",
        "priority 1 gets 80 of 90, priority 0 gets 20 of 30",
    ),
    (
        "NEW; EU; BANDS; advance 1s; ask a at=eu wants=90 priority=1; ask b at=eu wants=30; \
         run 10s",
        "eu",
        "b",
        "higher priorities get 80; \
         its priority gets 20, all of it as the parent divides: at most 20 per client",
    ),
    (
        "node leaf parent=root; advance 1s; get-capacity client=a resource=r wants=10",
        "leaf",
        "a",
        "this server waits for its parent, and decides nothing before",
    ),
    (
        "node root standby; FAIR; MARKS; marks root held; ask a wants=50",
        "root",
        "a",
        "this server waits for its mark to be stored",
    ),
    (
        "node root standby; FAIR; MARKS; ask a wants=50; ask a; marks root held; ask a wants=90",
        "root",
        "a",
        "there is enough for everyone; the rest comes once a larger mark is stored",
    ),
    (
        "node root standby; FAIR; MARKS; ask a wants=50; ask a; advance 1s; depose root; \
         elect root epoch=2 vacant-since=1s until=1000s marks; ask b wants=90; ask b",
        "root",
        "b",
        "there is enough for everyone; \
         holders that have not reported since the master changed may use the rest",
    ),
    (
        "NEW; LEARNS; ask a wants=50 has=30 lasts=20s",
        "root",
        "a",
        "learning mode: the server only confirms what is out; \
         it gets as much as it reports to have",
    ),
    (
        "NEW; LEARNS; ask a wants=90 has=80 lasts=50s; ask b wants=90 has=80 lasts=50s",
        "root",
        "b",
        "learning mode: the server only confirms what is out; \
         it claims more, but no more is left of the capacity",
    ),
    // A leaf that learns, and whose parent knows the rest, divides as ever.
    (
        "NEW; ELECTED; LEARNS; advance 100s; ask a at=eu wants=30; run 5s; restart eu epoch=3; \
         run 10s; ask b at=eu wants=200; run 5s",
        "eu",
        "b",
        "fair share: everyone gets at most 70 per client",
    ),
    (
        "NEW; FAIR; advance 1s; child-asks eu wants=50 sequence=1; \
         child-asks eu wants=10 has=50 outstanding=50 learning sequence=2",
        "root",
        "eu",
        "it is in learning mode: meanwhile the lease of its node does not shrink",
    ),
    (
        "NEW; FAIR; advance 1s; get-capacity client=a resource=r wants=20 process=1 sequence=1; \
         get-capacity client=a resource=r wants=20 process=2 sequence=1; \
         get-capacity client=a resource=r wants=20 process=3 sequence=1",
        "root",
        "a",
        "a later process of its name has asked, and this one has not since; \
         its lease counts until it ends",
    ),
    (
        "NEW; FAIR; advance 1s; ask a wants=30; templates",
        "root",
        "a",
        "its template is gone; the lease runs down",
    ),
    (
        "NEW; template r NO_ALGORITHM 0 lease=20s; ask a wants=80; ask b wants=80; \
         template r FAIR_SHARE 100 lease=20s learning=20s",
        "root",
        "a",
        "by the division when it last asked, whose numbers are not kept",
    ),
];

/// Returns the name of a reason. A new one needs a row.
fn name_of(reason: &Reason) -> &'static str {
    match reason {
        Reason::EnoughForAll => "EnoughForAll",
        Reason::NoAlgorithm => "NoAlgorithm",
        Reason::PerClient { .. } => "PerClient",
        Reason::Proportional { .. } => "Proportional",
        Reason::FairLevel { .. } => "FairLevel",
        Reason::BandLevel(_) => "BandLevel",
        Reason::BandSatisfied => "BandSatisfied",
        Reason::ByBand(_) => "ByBand",
        Reason::DividedBefore => "DividedBefore",
        Reason::Headroom { .. } => "Headroom",
        Reason::TemplateGone => "TemplateGone",
        Reason::Learning => "Learning",
        Reason::WaitsForParent => "WaitsForParent",
        Reason::WaitsForMark => "WaitsForMark",
        Reason::ChildLearns => "ChildLearns",
        Reason::Replaced => "Replaced",
    }
}

const REASONS: usize = 15;

fn name_of_bound(bound: Bound) -> &'static str {
    match bound {
        Bound::Share => "Share",
        Bound::OthersHold => "OthersHold",
        Bound::Unreported => "Unreported",
        Bound::SaysItHas => "SaysItHas",
        Bound::LearningLeft => "LearningLeft",
        Bound::CapacityLowered => "CapacityLowered",
        Bound::MarkRises => "MarkRises",
        Bound::NotAskedYet => "NotAskedYet",
        Bound::ShrinksNext => "ShrinksNext",
    }
}

const BOUNDS: usize = 9;

fn played(commands: &str) -> (Player, String) {
    let mut player = Player::default();
    let said = commands.split("; ").map(|command| {
        let known = WORDS.iter().find(|(word, _)| *word == command);
        player.play(known.map_or(command, |(_, line)| line))
    });
    let said = said.collect();
    (player, said)
}

/// Returns the state of the resource at a node.
fn at(player: &Player, node: &str) -> ResourceSnapshot {
    let number = player.server(node).unwrap();
    let now = player.world.shown(number);
    let node = &player.world.servers[number].node;
    node.snapshots_after(None, 1, now).remove(0)
}

#[test]
fn each_reason_and_each_bound_has_a_situation_and_its_text() {
    let (mut reasons, mut bounds) = (BTreeSet::new(), BTreeSet::new());
    for (commands, node, holder, text) in ROWS {
        let (player, said) = played(commands);
        let number = player.server(node).unwrap();
        let now = player.world.shown(number);
        let leases = player.world.servers[number]
            .node
            .lease_snapshots(&resource("r"), 100, now);
        let own = leases
            .iter()
            .filter(|lease| lease.holder.name.as_str() == *holder);
        let own: Vec<_> = own.collect();
        let found = own.iter().find(|lease| lease.why.to_string() == *text);
        let texts: Vec<_> = own.iter().map(|lease| lease.why.to_string()).collect();
        let Some(found) = found else {
            panic!("{commands:?}: {holder} has {texts:#?}\nand not {text:?}\n{said}");
        };
        reasons.insert(name_of(&found.why.reason));
        bounds.insert(name_of_bound(found.why.bound));
    }
    assert_eq!(reasons.len(), REASONS, "{reasons:?}");
    assert_eq!(bounds.len(), BOUNDS, "{bounds:?}");
}

/// Checks what the last answer of some commands says about the size of the lease.
#[track_caller]
fn check_limit(commands: &str, limited_by: &str) {
    let (_, said) = played(commands);
    let last = said.lines().rfind(|line| line.contains(" gets ")).unwrap();
    let expected = format!("limited by {limited_by}");
    let is_said = match limited_by {
        "Wants" => !last.contains("limited by"),
        _ => last.split(", ").any(|part| part == expected),
    };
    assert!(is_said, "{limited_by}: {said}");
}

#[test]
fn each_answer_says_what_limits_the_lease() {
    for (commands, limited_by) in [
        ("NEW; FAIR; ask a wants=30", "Wants"),
        ("NEW; FAIR; ask a wants=300", "Share"),
        ("NEW; FAIR; ask a wants=90; ask b wants=90", "Others"),
        ("NEW; LEARNS; ask a wants=90", "Learning"),
        (
            "NEW; FAIR; ask a wants=70; template r FAIR_SHARE 40; ask b wants=9",
            "CapacityLowered",
        ),
        (
            "NEW; EU; FAIR; advance 1s; ask a at=eu wants=9; run 5s; ask b at=eu wants=9",
            "Parent",
        ),
        (
            "NEW; EU; LEARNS; advance 100s; ask a at=eu wants=30; run 5s; restart root; run 5s; \
             ask b at=eu wants=90",
            "ParentLearning",
        ),
    ] {
        check_limit(commands, limited_by);
    }
}

#[test]
fn learning_that_divides_already_limits_no_lease() {
    let restarted = "NEW; ELECTED; LEARNS; advance 100s; ask a at=eu wants=30; run 5s; restart eu epoch=3; run 10s; \
                     ask b at=eu wants=200";
    // Its parent is asked, answers, and the share is all there is. Learning mode lasts for 30 s more.
    check_limit(restarted, "Parent");
    let later = format!("{restarted}; run 10s; ask b at=eu wants=200");
    check_limit(&later, "Share");
    let eu = at(&played(&later).0, "eu");
    assert!(eu.grows && eu.learning_remaining > Some(Duration::from_secs(30)));
}

#[test]
fn the_rest_of_learning_mode_at_the_root_is_what_is_left() {
    let (mut player, _) = played("NEW; LEARNS; ask a wants=30 has=30 lasts=20s; run 6s");
    for (then, left) in [
        ("run 53s", Some(Duration::from_secs(54))),
        ("run 1s", Some(Duration::from_secs(1))),
        ("run 1s", None),
    ] {
        let root = at(&player, "root");
        assert_eq!((root.learning_remaining, root.grows), (left, false));
        player.play(then);
    }
}

#[test]
fn what_is_not_reported_is_kept_until_its_holders_report() {
    let (mut player, _) = played(
        "node root standby; FAIR; MARKS; ask a wants=50; ask a; advance 1s; depose root; \
         elect root epoch=2 vacant-since=1s until=1000s marks; ask b wants=90",
    );
    assert!(at(&player, "root").unreported >= 50.0);
    player.play("ask a");
    assert_eq!(at(&player, "root").unreported, 0.0);
}

#[test]
fn a_safe_capacity_is_absent_until_the_parent_says_it() {
    let (mut player, _) = played("NEW; EU; FAIR; advance 1s; ask a at=eu wants=9");
    let safe = |player: &Player| at(player, "eu").safe_capacity.map(f64::from);
    assert_eq!(safe(&player), None);
    player.play("run 2s");
    assert_eq!(safe(&player), Some(100.0));
}

#[test]
fn clients_below_the_floor_are_counted_in_the_whole_tree() {
    let three = "ask a wants=60; ask b wants=60; ask c wants=10";
    let by_priority = "ask a wants=90 priority=1; ask b wants=60; ask c wants=30";
    let at_eu = "EU; advance 1s; ask a at=eu wants=60; ask b at=eu wants=60; run 10s";
    for (template, commands, expected) in [
        // The level is 45, and `c` has what it wants.
        ("FAIR_SHARE 100", three, None),
        ("FAIR_SHARE 100 share_floor=45", three, Some(0.0)),
        ("FAIR_SHARE 100 share_floor=50", three, Some(2.0)),
        ("FAIR_SHARE 1000 share_floor=50", three, Some(0.0)),
        ("STATIC 40 share_floor=50", three, Some(2.0)),
        ("NO_ALGORITHM 0 share_floor=50", three, Some(0.0)),
        // 35 each.
        ("PROPORTIONAL_SHARE 80 share_floor=40", three, Some(2.0)),
        ("PROPORTIONAL_SHARE 80 share_floor=30", three, Some(0.0)),
        (
            "PRIORITY_BANDS 100 min_share.0=0.2 share_floor=20",
            by_priority,
            Some(2.0),
        ),
        ("FAIR_SHARE 100 share_floor=55", at_eu, Some(2.0)),
        ("FAIR_SHARE 100 share_floor=50", at_eu, Some(0.0)),
    ] {
        let (player, said) = played(&format!("NEW; template r {template}; {commands}"));
        let below = at(&player, "root").below_floor;
        let below = below.map(|below| (below * 1e6).round() / 1e6);
        assert_eq!(below, expected, "{template}: {said}");
    }
}
