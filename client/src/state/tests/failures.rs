//! Servers that do not answer, and servers that send a time to come back.

use super::*;

#[test]
fn failures_back_off_but_never_past_the_end_of_a_lease() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let mut now = 5.0;
    let mut waits = Vec::new();
    for _ in 0..8 {
        let request = client.request(|_| 0.0, at(now));
        client.handle_failure(request.sequence, FailureKind::OutOfReach, 1.0, at(now));
        let Step::Wait(Some(until)) = client.next_step(at(now)) else {
            panic!("sends at once")
        };
        waits.push((until.since(at(now)).as_secs_f64() * 10.0).round() / 10.0);
        now = until.since_origin().as_secs_f64();
    }
    // The wait doubles, until half of the lease's remaining time is shorter.
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 12.0, 6.0, 3.0]);
}

#[test]
fn without_a_master_a_client_asks_about_every_second_and_keeps_its_lease() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let mut now = 5.0;
    for _ in 0..5 {
        let request = client.request(|_| 0.0, at(now));
        client.handle_failure(request.sequence, FailureKind::Masterless, 0.5, at(now));
        check(&client, now, 8.0, Source::Lease);
        waits_until(&client, now, now + 1.0);
        now += 1.0;
    }
    // And again after a master was there.
    exchange(&mut client, now, now, &answer(granted(9.0, 60, 5)));
    check(&client, now, 9.0, Source::Lease);
}

#[test]
fn a_redirect_is_followed_at_once() {
    let mut client = client(Mode::Safe);
    let request = client.request(|_| 0.0, at(0.0));
    assert_eq!(client.next_step(at(0.0)), Step::Wait(None));
    client.handle_redirect(request.sequence);
    assert_eq!(client.next_step(at(0.0)), Step::Send);
}

#[test]
fn a_redirect_is_followed_at_once_even_after_a_recent_request() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    // The wants change: asked early, and never twice within the gap for news.
    client.ask(R, 20.0);
    let request = client.request(|_| 0.0, at(1.0));
    client.handle_redirect(request.sequence);
    assert_eq!(client.next_step(at(1.0)), Step::Send);
    // A redirect of an older request has no effect.
    let request = client.request(|_| 0.0, at(1.0));
    client.handle_redirect(request.sequence - 1);
    assert!(matches!(client.next_step(at(1.0)), Step::Wait(_)));
    assert!(client.is_asking() && client.is_asking_by(request.sequence));
    assert!(!client.is_asking_by(request.sequence - 1));
    client.handle_redirect(request.sequence);
    assert!(!client.is_asking() && !client.is_asking_by(request.sequence));
}

#[test]
fn failures_are_counted_until_a_server_answers() {
    let mut client = client(Mode::Safe);
    for failures in 0..3 {
        assert_eq!(client.failures(), failures);
        let now = f64::from(failures) * 10.0;
        wait_after_failure(&mut client, now);
    }
    exchange(&mut client, 40.0, 40.0, &answer(granted(8.0, 60, 5)));
    assert_eq!(client.failures(), 0);
}

#[test]
fn a_refused_client_with_a_lease_asks_no_more_often_than_at_its_refreshes() {
    for (left, refresh_in, waits) in [(true, 16, 16.0), (true, 1, 5.0), (false, 16, 5.0)] {
        let mut client = client(Mode::Safe);
        let lasts = if left { 60 } else { 16 };
        exchange(
            &mut client,
            0.0,
            0.0,
            &answer(granted(8.0, lasts, refresh_in)),
        );
        let now = if left { refresh_in as f64 } else { 30.0 };
        // Its wants change too, and the refusal answers that.
        client.ask(R, 30.0);
        exchange(&mut client, now, now, &refusal(RefusalKind::Unknown));
        assert_eq!(wait(&client, now), waits, "{left} {refresh_in}");
    }
}

#[test]
fn a_wait_after_a_refusal_does_not_lengthen_the_next_one() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 1)));
    let mut now = 1.0;
    for (chance, waits) in [(1.0, 6.25), (0.0, 5.0), (0.5, 5.625)] {
        assert_eq!(client.next_step(at(now)), Step::Send, "at {now}");
        let request = client.request(|_| 0.0, at(now));
        let refused = refusal(RefusalKind::Other);
        assert!(client.handle_response(request.sequence, &refused, chance, at(now)));
        assert_eq!(wait(&client, now), waits, "with a chance of {chance}");
        now += waits;
    }
}

/// Returns the client's wait after the request that is due fails.
#[track_caller]
fn wait_after_failure(client: &mut ClientState, now: f64) -> f64 {
    assert_eq!(client.next_step(at(now)), Step::Send, "at {now}");
    let request = client.request(|_| 0.0, at(now));
    client.handle_failure(request.sequence, FailureKind::OutOfReach, 1.0, at(now));
    wait(client, now)
}

#[track_caller]
fn wait(client: &ClientState, now: f64) -> f64 {
    let next = client.next_answer(R).unwrap();
    (next.since(at(now)).as_secs_f64() * 1000.0).round() / 1000.0
}

#[test]
fn a_client_without_a_lease_tries_again_within_five_seconds() {
    let mut client = client(Mode::Safe);
    let mut now = 0.0;
    let mut waits = Vec::new();
    for _ in 0..6 {
        let wait = wait_after_failure(&mut client, now);
        waits.push(wait);
        now += wait;
    }
    assert_eq!(waits, [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]);
}

#[test]
fn a_lease_of_0_or_of_another_resource_does_not_make_a_client_patient() {
    let long = |resource: &str, capacity| Granted {
        resource: resource.to_owned(),
        ..granted(capacity, 3_600, 5)
    };
    for (capacity, other, expected) in [(8.0, 8.0, 16.0), (0.0, 8.0, 5.0), (8.0, 0.0, 5.0)] {
        let mut client = client(Mode::Safe);
        client.open("other", 0, Mode::Safe, 1.0, at(0.0));
        let response = Response {
            granted: vec![long(R, capacity), long("other", other)],
            refused: Vec::new(),
        };
        exchange(&mut client, 0.0, 0.0, &response);
        let mut now = 5.0;
        for _ in 0..4 {
            now += wait_after_failure(&mut client, now);
        }
        assert_eq!(wait_after_failure(&mut client, now), expected);
    }
}

#[test]
fn a_resource_that_is_opened_while_others_are_patient_is_asked_for_within_five_seconds() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 3_600, 5)));
    let mut now = 5.0;
    for _ in 0..5 {
        now += wait_after_failure(&mut client, now);
    }
    assert_eq!(wait_after_failure(&mut client, now), 32.0);
    client.open("other", 0, Mode::Safe, 1.0, at(now + 1.0));
    waits_until(&client, now + 1.0, now + 6.0);
}

#[test]
fn the_backoff_starts_over_after_a_success() {
    let mut client = client(Mode::Safe);
    let mut now = 0.0;
    for _ in 0..6 {
        now += wait_after_failure(&mut client, now);
    }
    exchange(&mut client, now, now, &answer(granted(8.0, 60, 5)));
    assert_eq!(client.failures(), 0);
    waits_until(&client, now, now + 5.0);
    assert_eq!(wait_after_failure(&mut client, now + 5.0), 1.0);
}

#[test]
fn an_overloaded_servers_time_is_obeyed() {
    for (told, chance, expected) in [
        (2_000, 0.0, 2.0),
        (2_000, 1.0, 2.5),
        // Sooner than the backoff, and later.
        (0, 0.0, 0.5),
        (30_000, 0.0, 30.0),
        (3_600_000, 1.0, 60.0),
    ] {
        let mut client = client(Mode::Safe);
        let mut now = 0.0;
        for _ in 0..4 {
            now += wait_after_failure(&mut client, now);
        }
        let request = client.request(|_| 0.0, at(now));
        let told = Duration::from_millis(told);
        client.handle_overloaded(request.sequence, told, chance, at(now));
        assert_eq!(wait(&client, now), expected, "{told:?}");
        assert_eq!(client.failures(), 0, "it is there");
        // A resource that is opened meanwhile does not make the server less busy.
        client.open("other", 0, Mode::Safe, 1.0, at(now));
        assert_eq!(wait(&client, now), expected, "{told:?}");
        // A failure after that is the first one.
        assert_eq!(wait_after_failure(&mut client, now + expected), 1.0);
    }
}

#[test]
fn an_overloaded_server_is_obeyed_though_a_lease_ends() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 10, 5)));
    let request = client.request(|_| 0.0, at(5.0));
    client.handle_overloaded(request.sequence, Duration::from_secs(20), 0.0, at(5.0));
    assert_eq!(wait(&client, 5.0), 20.0);
    check(&client, 9.0, 8.0, Source::Lease);
    // A late answer to a request that was given up changes nothing.
    assert!(!client.handle_response(request.sequence, &answer(granted(9.0, 60, 5)), 0.0, at(6.0)));
    client.handle_overloaded(request.sequence, Duration::ZERO, 0.0, at(6.0));
    assert_eq!(wait(&client, 5.0), 20.0);
}

#[test]
fn wants_that_an_overloaded_server_missed_are_sent_at_its_time() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 30)));
    client.ask(R, 20.0);
    let request = client.request(|_| 0.0, at(2.0));
    client.handle_overloaded(request.sequence, Duration::from_secs(3), 0.0, at(2.0));
    waits_until(&client, 2.0, 5.0);
    let request = exchange(&mut client, 5.0, 5.0, &answer(granted(8.0, 60, 30)));
    assert_eq!(request.asks[0].wants, 20.0);
}

/// Returns the times at which clients return that a server without `retry_in_ms` refused at time 0, and whose wants
/// change at once.
fn back_after(kind: RefusalKind) -> Vec<f64> {
    let returns = |number: u32| {
        let mut client = client(Mode::Safe);
        let request = client.request(|_| 0.0, at(0.0));
        let chance = f64::from(number) / 1_000.0;
        assert!(client.handle_response(request.sequence, &refusal(kind), chance, at(0.0)));
        if kind == RefusalKind::NotReady {
            client.ask(R, 20.0);
        }
        wait(&client, 0.0)
    };
    (0..1_000).map(returns).collect()
}

#[test]
fn clients_that_an_older_server_refuses_together_do_not_come_back_together() {
    for (kind, least, most) in [
        (RefusalKind::NotReady, 1.0, 2.0),
        (RefusalKind::Other, 5.0, 6.25),
        (RefusalKind::Unknown, 5.0, 6.25),
    ] {
        let mut tenths = [0; 10];
        for back in back_after(kind) {
            assert!((least..most).contains(&back), "{kind:?}: {back}");
            let tenth = ((back - least) / (most - least) * 10.0) as usize;
            tenths[tenth] += 1;
        }
        assert!(
            tenths.iter().all(|count| (90..=110).contains(count)),
            "{kind:?}: {tenths:?}"
        );
    }
}

#[test]
fn resources_refused_in_one_answer_are_asked_for_again_in_one_request() {
    let mut client = client(Mode::Safe);
    assert!(client.open("other", 0, Mode::Safe, 1.0, at(0.0)));
    let request = client.request(|_| 0.0, at(0.0));
    let mut told = refusal(RefusalKind::NotReady);
    told.refused.push(Refused {
        resource: "other".to_owned(),
        ..told.refused[0].clone()
    });
    assert!(client.handle_response(request.sequence, &told, 0.7, at(0.0)));
    let back = wait(&client, 0.0);
    assert_eq!(client.request(|_| 0.0, at(back)).asks.len(), 2);
}
