//! Fallbacks of a client, and their durations.

use super::*;

#[test]
fn each_mode_has_its_own_fallback_once_the_lease_is_over() {
    for (mode, before, after) in [
        (Mode::Pessimistic, 0.0, 0.0),
        (Mode::Optimistic, 10.0, 10.0),
        (Mode::Safe, 0.0, 3.0),
    ] {
        let mut client = client(mode);
        check(&client, 0.0, before, Source::Mode);
        exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
        check(&client, 59.0, 8.0, Source::Lease);
        check(&client, 60.0, after, Source::Mode);
    }
}

#[test]
fn a_safe_capacity_without_limit_is_no_limit() {
    let mut client = client(Mode::Safe);
    let unlimited = Granted {
        safe_capacity: Some(Capacity::Unlimited),
        ..granted(8.0, 60, 5)
    };
    exchange(&mut client, 0.0, 0.0, &answer(unlimited));
    check(&client, 60.0, f64::INFINITY, Source::Mode);
}

#[test]
fn a_safe_capacity_is_used_up_to_what_is_wanted() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    client.ask(R, 2.0);
    check(&client, 60.0, 2.0, Source::Mode);
    client.ask(R, 20.0);
    check(&client, 60.0, 3.0, Source::Mode);
    let before = client.allowance(R, at(59.0));
    assert_eq!(before.then, Capacity::Limited(3.0));
}

#[test]
fn a_safe_capacity_is_halved_a_lease_length_after_its_lease_ended_and_each_further_one() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 100, 5)));
    // A lease of 100 s counts as 99.9 s.
    for (seconds, left) in [
        (99.9, 3.0),
        (199.7, 3.0),
        (199.8, 1.5),
        (299.6, 1.5),
        (299.7, 0.75),
        (399.6, 0.375),
        (1e9, 0.0),
    ] {
        check(&client, seconds, left, Source::Mode);
    }
    let allowance = client.allowance(R, at(120.0));
    assert_eq!(
        (allowance.until, allowance.then),
        (Some(at(199.8)), Capacity::Limited(1.5))
    );
    // The halved amount is the safe capacity, not the wants.
    client.ask(R, 2.0);
    check(&client, 150.0, 2.0, Source::Mode);
    check(&client, 200.0, 1.5, Source::Mode);
    assert_eq!(client.allowance(R, at(1e9)).until, None);
}

#[test]
fn leases_that_shorten_towards_one_end_do_not_make_a_safe_capacity_decay_faster() {
    let mut client = client(Mode::Safe);
    let mut leases = vec![(0.0, 100)];
    // The server has lost its parent: none of its leases outlasts its own lease.
    leases.extend([(50.0, 50), (75.0, 25), (90.0, 10), (95.0, 5), (99.0, 1)]);
    for (sent, length) in leases {
        exchange(&mut client, sent, sent, &answer(granted(8.0, length, 1)));
    }
    check(&client, 100.0, 3.0, Source::Mode);
    check(&client, 199.0, 3.0, Source::Mode);
    check(&client, 200.0, 1.5, Source::Mode);
    // Later shorter leases count as such after as much time.
    let mut now = 200.0;
    for _ in 0..40 {
        exchange(&mut client, now, now, &answer(granted(8.0, 10, 4)));
        now += 4.0;
    }
    let end = now + 6.0;
    check(&client, end, 3.0, Source::Mode);
    check(&client, end + 9.9, 3.0, Source::Mode);
    check(&client, end + 10.0, 1.5, Source::Mode);
}

#[test]
fn a_client_wakes_for_each_halving_until_nothing_is_left() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 10, 5)));
    // No server answers, after one has asked the client to stay away for long.
    let request = client.request(|_| 0.0, at(5.0));
    client.handle_overloaded(request.sequence, Duration::from_secs(48), 0.0, at(5.0));
    for (now, until) in [
        (5.0, 9.99),
        (9.99, 19.98),
        (19.98, 29.97),
        (29.97, 39.96),
        (49.95, 53.0),
    ] {
        waits_until(&client, now, until);
    }
    assert_eq!(client.next_step(at(53.0)), Step::Send);
    // In the end there is nothing left to halve, and the client waits for the server alone.
    let request = client.request(|_| 0.0, at(5_000.0));
    assert_eq!(client.next_step(at(5_000.0)), Step::Wait(None));
    client.handle_failure(request.sequence, FailureKind::OutOfReach, 1.0, at(5_000.0));
    waits_until(&client, 5_000.0, 5_001.0);
}

fn learning(capacity: f64, safe: Option<f64>) -> Granted {
    Granted {
        limited_by: Some(LimitedBy::Learning),
        learning_for: Some(Duration::from_secs(40)),
        safe_capacity: safe.map(Capacity::Limited),
        ..granted(capacity, 60, 5)
    }
}

#[test]
fn while_a_server_learns_a_client_without_a_lease_uses_its_safe_capacity_and_reports_none() {
    for limit in [LimitedBy::Learning, LimitedBy::ParentLearning] {
        let mut client = client(Mode::Safe);
        let granted = Granted {
            limited_by: Some(limit),
            ..learning(0.0, Some(4.0))
        };
        exchange(&mut client, 0.0, 0.0, &answer(granted));
        check(&client, 1.0, 4.0, Source::Mode);
        client.ask(R, 1.0);
        check(&client, 1.0, 1.0, Source::Mode);
        client.ask(R, 10.0);
        let allowance = client.allowance(R, at(1.0));
        assert_eq!(allowance.until, Some(at(59.94)));
        assert_eq!(allowance.then, Capacity::Limited(4.0));
        let request = client.request(|_| 0.0, at(5.0));
        let has = request.asks[0].has.unwrap();
        assert_eq!(has.capacity, 0.0, "what is safe is not had");
        // The lease ends, and the safe capacity halves as always.
        check(&client, 60.0, 4.0, Source::Mode);
        check(&client, 119.88, 2.0, Source::Mode);
    }
}

#[test]
fn a_lease_of_a_learning_server_is_obeyed_in_all_other_cases() {
    let with = |limited_by| Granted {
        limited_by,
        ..learning(0.0, Some(4.0))
    };
    for (mode, granted, capacity) in [
        (Mode::Pessimistic, learning(0.0, Some(4.0)), 0.0),
        (Mode::Optimistic, learning(0.0, Some(4.0)), 0.0),
        // The client has a lease above 0.
        (Mode::Safe, learning(1.0, Some(4.0)), 1.0),
        // A computed safe capacity is 0 then, or absent.
        (Mode::Safe, learning(0.0, Some(0.0)), 0.0),
        (Mode::Safe, learning(0.0, None), 0.0),
        // No server is learning, or an older server does not send the reason.
        (Mode::Safe, with(Some(LimitedBy::Share)), 0.0),
        (Mode::Safe, with(None), 0.0),
    ] {
        let mut client = client(mode);
        exchange(&mut client, 0.0, 0.0, &answer(granted.clone()));
        let allowance = client.allowance(R, at(1.0));
        assert_eq!(
            (allowance.capacity, allowance.source),
            (Capacity::Limited(capacity), Source::Lease),
            "{mode:?} {granted:?}"
        );
    }
}

#[test]
fn work_in_flight_by_the_safe_capacity_is_not_reported() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(3.0, 60, 5)));
    exchange(&mut client, 5.0, 5.0, &answer(learning(0.0, Some(10.0))));
    check(&client, 6.0, 10.0, Source::Mode);
    // Work in flight beyond it belongs to a former lease, as far as that allowed it.
    for (in_flight, expected) in [(1.0, 0.0), (10.0, 0.0), (12.0, 2.0), (20.0, 3.0)] {
        let request = client.clone().request(|_| in_flight, at(10.0));
        let has = request.asks[0].has.expect("a lease of 0");
        assert_eq!(has.capacity, expected, "{in_flight} in flight");
    }
}
