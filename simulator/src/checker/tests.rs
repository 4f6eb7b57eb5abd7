//! Tests of the checkers on histories of clients written by hand.

mod small_worlds;

use doorward_engine::templates::AlgorithmKind::{FairShare, NoAlgorithm, PriorityBands, Static};
use doorward_engine::templates::{TemplateSpec, Templates};

use super::*;
use crate::recording::{Checker, Figures, Verdict};
use crate::scenario::{Limits, forms};

/// Returns a template with leases of 60 s and a refresh interval of 5 s.
fn template(kind: AlgorithmKind, capacity: f64) -> Template {
    template_with(kind, capacity, &[])
}

fn template_with(kind: AlgorithmKind, capacity: f64, parameters: &[(&str, &str)]) -> Template {
    let parameter = |(name, value): &(&str, &str)| ((*name).to_owned(), Some((*value).to_owned()));
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some("shared".to_owned()),
        capacity: Some(capacity),
        kind: Some(kind),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        parameters: parameters.iter().map(parameter).collect(),
        ..TemplateSpec::default()
    }]);
    let templates = templates.unwrap();
    let found = templates.find(&ResourceId::new("shared").unwrap());
    found.unwrap().as_ref().clone()
}

/// Watches clients of these priorities, all at one node. Averages count from the start.
fn watched(template: &Template, priorities: &[i64]) -> Watched {
    let resource = ResourceId::new("shared").unwrap();
    let mut watched = Watched::new(resource, template, Time::ZERO);
    for priority in priorities {
        watched.join(*priority, 0);
    }
    watched
}

fn at(seconds: f64) -> Time {
    Time::ZERO + Duration::from_secs_f64(seconds)
}

fn verdict(watched: &Watched, checker: Checker) -> Verdict {
    let limits = Limits {
        overshoot: Some(forms::Amount(0.0)),
        nesting: Some(forms::Amount(0.0)),
        ..Limits::default()
    };
    let mut verdicts = judge(watched, &limits).into_iter();
    verdicts.find(|verdict| verdict.checker == checker).unwrap()
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-9, "{found}, not {expected}");
}

/// Plays two clients, of which one has twice its wants half of the time.
fn in_step(sampled_every: f64) -> Figures {
    let mut watched = watched(&template(FairShare, 100.0), &[0, 0]);
    watched.note_wants(0, 60.0, at(0.0));
    watched.note_wants(1, 20.0, at(0.0));
    watched.note_usable(1, 20.0, 0.0, at(0.0));
    let mut sampled = 0.0;
    for round in 0..10 {
        let from = f64::from(round) * 10.0;
        while sampled < from {
            watched.sample(at(sampled));
            sampled += sampled_every;
        }
        watched.note_usable(0, 60.0, 0.0, at(from + 1.0));
        watched.note_usable(0, 0.0, 0.0, at(from + 6.0));
    }
    watched.finish(at(100.0));
    watched.figures()
}

#[test]
fn averages_do_not_depend_on_the_sampling_interval() {
    for every in [0.1, 3.0, 5.0, 10.0] {
        let figures = in_step(every);
        close(figures.utilisation, 0.625);
        close(figures.granted_of_capacity, 0.5);
        close(figures.demand_met, 0.625);
        close(figures.clients_short, 0.25);
    }
}

#[test]
fn use_beyond_a_lowered_capacity_does_not_compensate_for_an_outage() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_wants(0, 100.0, at(0.0));
    watched.note_usable(0, 100.0, 0.0, at(0.0));
    watched.note_template(Some(&template(FairShare, 1.0)), at(10.0));
    watched.note_usable(0, 1.0, 0.0, at(20.0));
    // Without a master for a while.
    watched.note_usable(0, 0.0, 0.0, at(50.0));
    watched.finish(at(100.0));
    let figures = watched.figures();
    close(figures.utilisation, 0.5);
    close(figures.granted_of_capacity, 0.5);
    assert_eq!(figures.overshoot_s, 0.0);
    assert!(verdict(&watched, Checker::Overshoot).holds);
}

#[test]
fn grants_from_before_an_edit_must_be_gone_when_their_leases_end() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_wants(0, 100.0, at(0.0));
    watched.note_usable(0, 100.0, 0.0, at(0.0));
    watched.note_template(Some(&template(FairShare, 50.0)), at(10.0));
    // It gets the same amount again, and no event happens when its old lease had to end.
    watched.note_usable(0, 100.0, 0.0, at(60.0));
    watched.note_usable(0, 0.0, 0.0, at(75.0));
    watched.finish(at(100.0));
    close(watched.figures().overshoot_s, 5.0);
    let found = verdict(&watched, Checker::Overshoot);
    assert!(!found.holds);
    close(found.value, 1.0);
    assert_eq!(found.at_s, Some(70.0));
}

/// Plays a client that has 100 by a lease of 60 s. The capacity becomes 50 at 10 s, and the client
/// gives up the rest at `gone_at`. The root's clock changes to these speeds at these times.
#[track_caller]
fn cut_at_10_s(speeds: &[(f64, f64)], gone_at: f64, worst_at: Option<f64>) {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    let mut clock = LocalClock::default();
    watched.note_usable(0, 100.0, 0.0, at(0.0));
    let mut run_at = |watched: &mut Watched, from: f64, until: f64| {
        for (since, speed) in speeds.iter().filter(|it| (from..until).contains(&it.0)) {
            clock.run_at(*speed, at(*since));
            watched.note_clock(clock, at(*since));
        }
    };
    run_at(&mut watched, 0.0, 10.0);
    watched.note_template(Some(&template(FairShare, 50.0)), at(10.0));
    run_at(&mut watched, 10.0, 200.0);
    watched.note_usable(0, 50.0, 0.0, at(gone_at));
    watched.finish(at(200.0));
    let found = verdict(&watched, Checker::Overshoot);
    assert_eq!(found.holds, worst_at.is_none(), "{found:?}");
    if let (Some(found), Some(expected)) = (found.at_s.filter(|_| !found.holds), worst_at) {
        close((found * 1e6).round() / 1e6, expected);
    }
}

#[test]
fn grants_from_before_an_edit_may_be_used_for_a_lease_length_of_the_roots_clock() {
    cut_at_10_s(&[], 70.0, None);
    cut_at_10_s(&[], 70.1, Some(70.0));
    // A slow clock: 60 s of it are 75 s.
    cut_at_10_s(&[(5.0, 0.8)], 84.9, None);
    cut_at_10_s(&[(5.0, 0.8)], 85.1, Some(85.0));
    // A fast clock: 60 s of it are 48 s.
    cut_at_10_s(&[(5.0, 1.25)], 57.9, None);
    cut_at_10_s(&[(5.0, 1.25)], 58.1, Some(58.0));
    // A clock that slows down halfway: 30 s, and 30 s that take 60 s.
    let slows = [(40.0, 0.5)];
    cut_at_10_s(&slows, 99.9, None);
    cut_at_10_s(&slows, 100.1, Some(100.0));
}

#[test]
fn the_next_edit_hides_nothing_that_came_before_it() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_usable(0, 100.0, 0.0, at(0.0));
    watched.note_template(Some(&template(FairShare, 50.0)), at(10.0));
    watched.note_template(Some(&template(FairShare, 40.0)), at(80.0));
    watched.note_usable(0, 0.0, 0.0, at(90.0));
    watched.finish(at(100.0));
    assert!(!verdict(&watched, Checker::Overshoot).holds);
    assert_eq!(verdict(&watched, Checker::Overshoot).at_s, Some(70.0));
}

#[test]
fn without_a_promised_total_there_is_no_overshoot() {
    for kind in [NoAlgorithm, Static] {
        let mut watched = watched(&template(kind, 100.0), &[0; 6]);
        for client in 0..6 {
            watched.note_wants(client, 100.0, at(0.0));
            watched.note_usable(client, 100.0, 0.0, at(1.0));
        }
        // From now on there is a total, but earlier grants may stay in use until their leases end.
        watched.note_template(Some(&template(FairShare, 120.0)), at(150.0));
        for client in 0..6 {
            watched.note_usable(client, 20.0, 0.0, at(209.0));
        }
        watched.finish(at(300.0));
        let figures = watched.figures();
        assert_eq!((figures.overshoot_s, figures.peak_of_capacity), (0.0, 1.0));
        assert!(verdict(&watched, Checker::Overshoot).holds, "{kind:?}");
        // After that an excess counts.
        watched.note_usable(0, 140.0, 0.0, at(300.0));
        close(verdict(&watched, Checker::Overshoot).value, 1.0);
    }
}

#[test]
fn an_overshoot_with_shrink_immediate_is_measured_and_no_violation() {
    let immediate = &[("shrink", "immediate")];
    let mut watched = watched(&template_with(FairShare, 100.0, immediate), &[0, 0]);
    watched.note_usable(0, 100.0, 0.0, at(0.0));
    watched.note_usable(1, 50.0, 0.0, at(10.0));
    watched.note_usable(0, 50.0, 0.0, at(12.0));
    watched.finish(at(20.0));
    let figures = watched.figures();
    assert_eq!((figures.overshoot_s, figures.peak_of_capacity), (2.0, 1.5));
    assert!(verdict(&watched, Checker::Overshoot).holds);
}

#[test]
fn an_excess_over_no_capacity_is_a_finite_part() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_template(None, at(1.0));
    watched.note_usable(0, 50.0, 0.0, at(100.0));
    watched.note_nesting(50.0, 0.0, at(100.0));
    watched.finish(at(110.0));
    close(verdict(&watched, Checker::Overshoot).value, 0.5);
    close(verdict(&watched, Checker::Nesting).value, 1.0);
}

#[test]
fn nesting_is_a_finite_part_also_where_nothing_is_reserved() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_nesting(50.0, 0.0, at(100.0));
    watched.finish(at(110.0));
    let found = verdict(&watched, Checker::Nesting);
    close(found.value, 0.5);
    assert!(!found.holds);
    // JSON has no infinite numbers.
    let text = serde_json::to_string(&found).unwrap();
    assert_eq!(serde_json::from_str::<Verdict>(&text).unwrap(), found);
}

#[test]
fn rounding_is_no_violation_of_a_reservation_of_zero() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_nesting(3e-15, 0.0, at(100.0));
    assert!(verdict(&watched, Checker::Nesting).holds);
    watched.note_nesting(3e-9, 0.0, at(100.0));
    assert!(!verdict(&watched, Checker::Nesting).holds);
}

#[test]
fn a_root_may_know_nothing_only_while_it_learns() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    let unknown = |watched: &Watched, seconds: f64| watched.may_be_unknown(at(seconds));
    assert!(unknown(&watched, 60.0) && !unknown(&watched, 61.0));
    watched.note_learning(Duration::ZERO, at(200.0));
    assert!(unknown(&watched, 260.0) && !unknown(&watched, 261.0));
    // Leases remain of a resource that has no template any more.
    watched.note_template(None, at(300.0));
    assert!(unknown(&watched, 360.0) && !unknown(&watched, 361.0));
}

#[test]
fn use_without_a_lease_is_no_overshoot() {
    let mut watched = watched(&template(FairShare, 100.0), &[0, 0]);
    watched.note_usable(0, 50.0, 0.0, at(0.0));
    watched.note_usable(1, 0.0, 250.0, at(10.0));
    watched.finish(at(20.0));
    let figures = watched.figures();
    assert_eq!(figures.peak_of_capacity, 0.5);
    assert_eq!(figures.peak_with_fallback, 3.0);
    assert!(verdict(&watched, Checker::Overshoot).holds);
}

#[test]
fn a_run_that_never_rests_never_converges() {
    let mut watched = watched(&template(FairShare, 100.0), &[0, 0]);
    watched.note_wants(0, 100.0, at(0.0));
    watched.note_usable(0, 100.0, 0.0, at(1.0));
    watched.settle(at(2.0));
    // The other client comes and goes, and never gets anything.
    for round in 5..50 {
        let wants = if round % 2 == 0 { 0.0 } else { 60.0 };
        watched.note_wants(1, wants, at(f64::from(round) * 2.0));
        watched.note_usable(0, 80.0, 0.0, at(f64::from(round) * 2.0));
        watched.settle(at(f64::from(round) * 2.0 + 1.9));
        watched.look_at_all(at(f64::from(round) * 2.0 + 1.0));
    }
    watched.finish(at(100.0));
    let figures = watched.figures();
    assert_eq!(figures.shifts, 2);
    assert_eq!(
        (figures.convergence_max_s, figures.unfinished_s),
        (90.0, 90.0)
    );
    assert_eq!(figures.restless, 1.0);
}

#[test]
fn a_client_is_starved_only_while_there_is_capacity_for_its_priority() {
    let mut watched = watched(&template(PriorityBands, 100.0), &[1, 0]);
    watched.note_wants(0, 100.0, at(10.0));
    watched.note_usable(0, 100.0, 0.0, at(10.0));
    // The first client takes everything until 50 s; the rest arrives 2 s later.
    watched.note_wants(1, 50.0, at(20.0));
    watched.note_wants(0, 60.0, at(50.0));
    watched.note_usable(1, 40.0, 0.0, at(52.0));
    // The second client has no lease again. It waits for 5 s, until the first takes everything.
    watched.note_usable(1, 0.0, 0.0, at(60.0));
    watched.note_wants(0, 100.0, at(65.0));
    watched.note_usable(1, 1.0, 0.0, at(90.0));
    watched.finish(at(100.0));
    assert_eq!(watched.figures().starvation_max_s, 5.0);
}

#[test]
fn a_client_that_gives_up_was_starved_until_then() {
    let mut watched = watched(&template(FairShare, 100.0), &[0]);
    watched.note_wants(0, 10.0, at(10.0));
    watched.note_wants(0, 0.0, at(40.0));
    watched.finish(at(100.0));
    assert_eq!(watched.figures().starvation_max_s, 30.0);
}

#[test]
fn wants_count_up_to_the_maximum_of_the_template() {
    let without = template(FairShare, 100.0);
    let mut with = without.clone();
    with.holder_bounds.wants_max = Some(amount(20.0));
    let mut watched = watched(&with, &[0, 0]);
    watched.note_wants(0, 70.0, at(1.0));
    watched.note_wants(1, 10.0, at(1.0));
    close(watched.usable(), 30.0);
    watched.note_template(Some(&without), at(2.0));
    close(watched.usable(), 80.0);
    watched.note_template(Some(&with), at(3.0));
    close(watched.usable(), 30.0);
}
