//! Each bug that is planted in the engine makes a test of the engine fail, or a world by chance
//! (`simulator/planted`).
//!
//! The feature `planted` makes bugs possible. The program runs itself: one test for each bug, which must fail, and
//! without any, when it must pass.

use std::collections::BTreeSet;
use std::process::Command;

use doorward_engine::planted::{Bug, VARIABLE};

/// A bug, and a test that finds it.
const FOUND: &[(Bug, &str)] = &[
    (Bug::OlderLeaseForgotten, STORIES),
    (Bug::AcknowledgementForgotten, STORIES),
    (Bug::ExpiresTooEarly, STORIES),
    (Bug::FormerProcessForgotten, STORIES),
    (Bug::SlotNotFreed, STORIES),
    (
        Bug::OlderEpochCounts,
        "behaviours::what_a_child_asks_by_an_older_epoch_does_not_count",
    ),
    (Bug::OlderRequestCounts, STORIES),
    (Bug::ClockMarginForgotten, STORIES),
    (Bug::ClockToleranceForgotten, STORIES),
    (Bug::TermWithoutEnd, STORIES),
    (
        Bug::VacantSinceForgotten,
        "lies::who_is_gone_is_not_counted_any_more",
    ),
    (Bug::LongerLeasesForgotten, STORIES),
    (Bug::MastershipIdsRepeat, STORIES),
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
    (Bug::LeftIsRoundedUp, "vectors::proportional_share"),
    (
        Bug::HolderBoundsForgotten,
        "bounded_holders::by_any_algorithm_nobody_has_more_than_one_client_can_have",
    ),
    (
        Bug::CurveTooCoarse,
        "limits_of_children::a_curve_that_may_not_grow_is_served_by_what_it_was",
    ),
    (Bug::PushesForgotten, STORIES),
    (Bug::CycleUnnoticed, STORIES),
    (Bug::InvitationsForgotten, STORIES),
    (
        Bug::RefreshAfterTheLease,
        "lies::who_is_gone_is_not_counted_any_more",
    ),
    (
        Bug::LimitsForgotten,
        "limits_of_clients::counts_are_bounded_in_all_by_template_and_by_caller",
    ),
    (
        Bug::LeasesStayCounted,
        "limits_of_clients::counts_are_bounded_in_all_by_template_and_by_caller",
    ),
    (
        Bug::LearningEndsTooSoon,
        "behaviours::what_runs_down_is_not_made_longer_while_a_server_learns",
    ),
    (Bug::LearningLastsTooLong, STORIES),
    (Bug::LearnedForgotten, STORIES),
    (Bug::LearnersAcknowledge, STORIES),
    (Bug::ReportsNotCounted, STORIES),
    (
        Bug::OthersForgotten,
        "behaviours::a_capacity_that_is_one_rounding_short_is_enough_for_all",
    ),
    (Bug::LoweringForgotten, STORIES),
    (
        Bug::RunsDownForgotten,
        "behaviours::what_runs_down_is_not_made_longer_while_a_server_learns",
    ),
    (Bug::LeaseOutlivesParents, STORIES),
    (Bug::OutstandingForgotten, STORIES),
    (
        Bug::OlderAnswerApplied,
        "behaviours::an_answer_to_an_older_request_does_not_count",
    ),
    (Bug::LeftoverKept, STORIES),
    (Bug::ReleaseOfAnybody, STORIES),
    (Bug::FloorForgotten, STORIES),
    (
        Bug::SafeNotDivided,
        "safe_capacity::safe_capacities_add_up_once_everybody_has_refreshed_since_the_last_one_joined",
    ),
    (
        Bug::FormerTemplateDecides,
        "reload::what_is_decided_does_not_depend_on_how_far_other_templates_have_got",
    ),
    (
        Bug::TemplateKept,
        "reload::a_resource_that_nobody_asks_for_hears_of_other_templates_as_well",
    ),
    (
        Bug::ClaimsApart,
        "reload::while_claims_are_put_in_other_bands_they_change_and_no_more_is_granted_than_there_is",
    ),
    (
        Bug::ClaimsLeftBehind,
        "priorities::the_claims_of_a_child_that_is_gone_go_a_few_at_a_time",
    ),
    (
        Bug::OldDecisionRepeated,
        "behaviours::what_is_asked_again_is_decided_anew_once_anything_has_changed",
    ),
];

/// All of `testdata/stories`.
const STORIES: &str = "stories::every_story_plays_as_written";

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
fn a_test_finds_every_planted_bug_but_for_what_only_worlds_by_chance_do() {
    for (bug, test) in FOUND {
        assert!(!passes(test, Some(*bug)), "{test} does not see {bug:?}");
    }
    let tests: BTreeSet<&str> = FOUND.iter().map(|(_, test)| *test).collect();
    for test in tests {
        assert!(passes(test, None), "{test} fails without a bug");
    }
    for bug in Bug::ALL {
        let is_found = FOUND.iter().any(|(found, _)| *found == bug);
        assert!(is_found || Bug::BY_WORLDS.contains(&bug), "{bug:?}");
    }
}
