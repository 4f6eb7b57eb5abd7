//! Each bug that is planted in the engine makes a test of the engine fail, or a world by chance
//! (`simulator/planted`).
//!
//! The tests are those beside this folder, built once more, all in this program, with the feature that makes bugs
//! possible. The program runs itself: one test for each bug, which must fail, and without any, when it must pass.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]
#![allow(missing_docs, reason = "a test")]

mod behaviours;

#[path = "../admission.rs"]
mod admission;
#[path = "../admission_children.rs"]
mod admission_children;
#[path = "../clocks.rs"]
mod clocks;
#[path = "../holder_bounds.rs"]
mod holder_bounds;
#[path = "../learning.rs"]
mod learning;
#[path = "../lies.rs"]
mod lies;
#[path = "../longer_leases.rs"]
mod longer_leases;
#[path = "../masterships.rs"]
mod masterships;
#[path = "../own_lease.rs"]
mod own_lease;
#[path = "../servers.rs"]
mod servers;
#[path = "../stories.rs"]
mod stories;
#[path = "../terms.rs"]
mod terms;
#[path = "../two_servers.rs"]
mod two_servers;
#[path = "../vectors.rs"]
mod vectors;
#[path = "../what_clients_live_through.rs"]
mod what_clients_live_through;
#[path = "../words.rs"]
mod words;

use std::collections::BTreeSet;
use std::process::Command;

use doorward_engine::planted::{Bug, VARIABLE};

/// A bug, and a test that finds it.
const FOUND: &[(Bug, &str)] = &[
    (Bug::OlderLeaseForgotten, STORIES),
    (Bug::AcknowledgementForgotten, STORIES),
    (
        Bug::ExpiresTooEarly,
        "clocks::a_fast_server_that_says_so_frees_no_lease_before_its_holder_has_stopped",
    ),
    (Bug::FormerProcessForgotten, STORIES),
    (Bug::SlotNotFreed, STORIES),
    (
        Bug::OlderEpochHeard,
        "behaviours::what_a_child_asks_by_an_older_epoch_does_not_count",
    ),
    (Bug::OlderRequestHeard, STORIES),
    (
        Bug::ClockMarginForgotten,
        "own_lease::the_last_lease_of_the_parent_ends_with_the_longest",
    ),
    (
        Bug::ClockToleranceForgotten,
        "clocks::no_lease_outlives_the_one_it_was_cut_from_whichever_clock_is_wrong",
    ),
    (
        Bug::TermWithoutEnd,
        "terms::a_term_that_is_over_when_it_is_told_is_none",
    ),
    (
        Bug::VacantSinceForgotten,
        "learning::a_root_learns_for_as_long_as_anything_may_be_out_and_says_why",
    ),
    (
        Bug::LongerLeasesForgotten,
        "learning::a_root_learns_for_as_long_as_anything_may_be_out_and_says_why",
    ),
    (
        Bug::MastershipIdsRepeat,
        "terms::a_mastership_that_is_confirmed_too_late_begins_anew",
    ),
    (Bug::PrioritiesForgotten, "vectors::priority_bands"),
    (Bug::GuaranteesForgotten, "vectors::priority_bands"),
    (Bug::LevelOfEqualShares, "vectors::fair_share"),
    (
        Bug::RoundingIsAShortage,
        "behaviours::a_capacity_that_is_one_rounding_short_is_enough_for_all",
    ),
    (
        Bug::EqualShareOfOwn,
        "behaviours::the_equal_share_is_that_of_the_whole_tree",
    ),
    (Bug::LeftIsRoundedUp, "vectors::fair_share"),
    (
        Bug::HolderBoundsForgotten,
        "holder_bounds::by_any_algorithm_nobody_has_more_than_one_client_can_have",
    ),
    (
        Bug::CurveTooCoarse,
        "admission_children::a_curve_that_may_not_grow_is_served_by_what_it_was",
    ),
    (
        Bug::PushesForgotten,
        "what_clients_live_through::a_leaf_says_that_it_asks_its_parent_before_it_speaks_of_shares",
    ),
    (
        Bug::CycleUnnoticed,
        "servers::a_server_that_is_its_own_ancestor_is_refused_and_takes_nothing",
    ),
    (Bug::InvitationsForgotten, STORIES),
    (
        Bug::RefreshAfterTheLease,
        "lies::who_is_gone_is_not_counted_any_more",
    ),
    (
        Bug::LimitsForgotten,
        "admission::counts_are_bounded_in_all_by_template_and_by_caller",
    ),
    (
        Bug::LeasesStayCounted,
        "admission::counts_are_bounded_in_all_by_template_and_by_caller",
    ),
];

/// All of `testdata/stories`.
const STORIES: &str = "stories::every_story_comes_out_as_it_is_told";

/// Whether a test of this program passes when a bug is planted.
fn passes(test: &str, bug: Option<Bug>) -> bool {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", test]).env_remove(VARIABLE);
    if let Some(bug) = bug {
        command.env(VARIABLE, format!("{bug:?}"));
    }
    let output = command.output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(said.contains("running 1 test"), "there is no test {test}");
    output.status.success()
}

#[test]
fn a_test_finds_every_planted_bug_that_worlds_by_chance_do_not() {
    for (bug, test) in FOUND {
        assert!(!passes(test, Some(*bug)), "{test} does not see {bug:?}");
    }
    let tests: BTreeSet<&str> = FOUND.iter().map(|(_, test)| *test).collect();
    for test in tests {
        assert!(passes(test, None), "{test} fails without a bug");
    }
    for bug in Bug::ALL {
        let is_found = FOUND.iter().any(|(found, _)| *found == bug);
        assert_ne!(is_found, Bug::BY_WORLDS.contains(&bug), "{bug:?}");
    }
}
