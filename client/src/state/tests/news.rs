//! Changed wants: the time of their request, and the server's decision.

use super::*;

#[test]
fn changed_wants_are_sent_early_but_not_faster_than_the_gap() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    client.ask(R, 20.0);
    waits_until(&client, 0.2, 1.1);
    client.ask(R, 30.0);
    let request = exchange(&mut client, 1.1, 1.1, &answer(granted(8.0, 60, 5)));
    assert_eq!(request.asks[0].wants, 30.0);
    waits_until(&client, 1.1, 6.1);
    // Much later there is no gap to wait for.
    client.ask(R, 5.0);
    assert_eq!(client.next_step(at(3.0)), Step::Send);
}

/// Returns an answer of a server that sends `decided`.
fn told(decided: bool, refresh_in: f64) -> Response {
    answer(Granted {
        decided: Some(decided),
        refresh_in: Duration::from_secs_f64(refresh_in),
        ..granted(8.0, 60, 5)
    })
}

#[track_caller]
fn answered(client: &ClientState, wants: f64) {
    assert_eq!(client.resource(R).unwrap().answered(), Some(wants));
}

#[test]
fn a_server_that_sends_decided_gets_changed_wants_at_once() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.02, &told(true, 5.0));
    client.ask(R, 20.0);
    waits_until(&client, 0.03, 0.1);
    exchange(&mut client, 0.1, 0.12, &told(true, 5.0));
    answered(&client, 20.0);
    // As often as they change, but not faster than the gap.
    for step in 1..50 {
        let now = 0.1 * f64::from(step);
        client.ask(R, 20.0 + now);
        waits_until(&client, now + 0.03, now + 0.1);
        exchange(&mut client, now + 0.1, now + 0.12, &told(true, 5.0));
    }
    // Much later there is no gap to wait for.
    client.ask(R, 5.0);
    assert_eq!(client.next_step(at(8.0)), Step::Send);
}

#[test]
fn less_measured_demand_waits_for_the_refresh_unless_it_frees_something() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    // The lease is 8.
    for (wants, sent_at) in [(9.0, 5.0), (12.0, 0.1), (9.0, 5.0), (7.0, 0.1)] {
        client.ask_measured(R, wants, at(0.05));
        waits_until(&client, 0.05, sent_at);
    }
    client.ask_measured(R, 9.5, at(0.05));
    client.ask_measured(R, 9.0, at(0.05));
    let request = exchange(&mut client, 5.0, 5.0, &told(true, 5.0));
    assert_eq!(request.asks[0].wants, 9.0);
    // A program that sets its wants is not measured.
    client.ask(R, 8.5);
    waits_until(&client, 5.05, 5.1);
}

#[test]
fn undecided_wants_are_unanswered_and_sent_again_at_the_servers_time() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    client.ask(R, 20.0);
    exchange(&mut client, 0.2, 0.2, &told(false, 0.8));
    answered(&client, 10.0);
    waits_until(&client, 0.3, 1.0);
    // Later wants do not come earlier either.
    client.ask(R, 30.0);
    waits_until(&client, 0.5, 1.0);
    let request = exchange(&mut client, 1.0, 1.0, &told(true, 5.0));
    assert_eq!(request.asks[0].wants, 30.0);
    answered(&client, 30.0);
    waits_until(&client, 1.0, 6.0);
}

#[test]
fn wants_that_went_back_before_they_were_heard_are_no_news() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    client.ask(R, 20.0);
    exchange(&mut client, 0.2, 0.2, &told(false, 0.8));
    client.ask(R, 10.0);
    let request = exchange(&mut client, 1.0, 1.0, &told(true, 5.0));
    assert_eq!(request.asks[0].wants, 10.0);
    waits_until(&client, 1.0, 6.0);
}

#[test]
fn a_request_without_news_that_was_not_decided_holds_no_later_news_back() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 0.5));
    exchange(&mut client, 0.5, 0.5, &told(false, 4.0));
    answered(&client, 10.0);
    waits_until(&client, 0.5, 4.5);
    client.ask(R, 20.0);
    waits_until(&client, 0.55, 0.6);
}

#[test]
fn news_that_come_while_a_request_is_under_way_are_not_taken_for_answered() {
    let mut client = client(Mode::Safe);
    let request = client.request(|_| 0.0, at(0.0));
    client.ask(R, 20.0);
    client.handle_response(request.sequence, &told(true, 5.0), 0.0, at(0.3));
    answered(&client, 10.0);
    assert_eq!(client.next_step(at(0.3)), Step::Send);
}

#[test]
fn a_server_that_never_decides_and_names_no_time_is_not_asked_in_a_busy_loop() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    client.ask(R, 20.0);
    for step in 1..20 {
        let now = 0.1 * f64::from(step);
        exchange(&mut client, now, now, &told(false, 0.0));
        waits_until(&client, now, now + 0.1);
        client.ask(R, 20.0 + now);
    }
}

#[test]
fn a_held_back_resource_joins_no_request_before_its_time() {
    let mut client = client(Mode::Safe);
    client.open("other", 0, Mode::Safe, 1.0, at(0.0));
    let both = |decided, refresh_in| {
        let mut response = told(decided, refresh_in);
        response.granted.push(Granted {
            resource: "other".to_owned(),
            decided: Some(true),
            ..granted(1.0, 60, 5)
        });
        response
    };
    exchange(&mut client, 0.0, 0.0, &both(true, 5.0));
    client.ask(R, 20.0);
    exchange(&mut client, 0.2, 0.2, &told(false, 0.8));
    client.ask("other", 2.0);
    // The other resource has news that may be sent at once.
    let asked = |request: &Request| -> Vec<String> {
        let asks = request.asks.iter();
        asks.map(|ask| ask.resource.clone()).collect()
    };
    let mut other = both(true, 5.0);
    other.granted.remove(0);
    let request = exchange(&mut client, 0.3, 0.3, &other);
    assert_eq!(asked(&request), ["other"]);
    // And again: a held-back resource keeps its time, and joins a request after it.
    client.ask("other", 3.0);
    waits_until(&client, 0.3, 0.4);
    let request = exchange(&mut client, 0.95, 0.95, &other);
    assert_eq!(asked(&request), ["other"]);
    client.ask("other", 4.0);
    let request = exchange(&mut client, 1.05, 1.05, &both(true, 5.0));
    assert_eq!(asked(&request), ["other", R]);
}

#[test]
fn the_gap_is_the_longer_one_towards_a_server_that_does_not_send_decided() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    // Another server of the node, of an older version.
    exchange(&mut client, 5.0, 5.0, &answer(granted(8.0, 60, 5)));
    client.ask(R, 20.0);
    waits_until(&client, 5.2, 6.1);
    exchange(&mut client, 6.1, 6.1, &answer(granted(8.0, 60, 5)));
    answered(&client, 20.0);
}

#[test]
fn wants_that_change_while_a_resource_is_refused_keep_the_longer_gap() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(true, 5.0));
    exchange(&mut client, 5.0, 5.0, &refusal(RefusalKind::Other));
    client.ask(R, 20.0);
    waits_until(&client, 5.0, 6.1);
}

#[test]
fn a_first_answer_without_a_decision_is_followed_at_its_time() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &told(false, 0.8));
    assert_eq!(client.resource(R).unwrap().answered(), None);
    check(&client, 0.1, 8.0, Source::Lease);
    waits_until(&client, 0.1, 0.8);
    exchange(&mut client, 0.8, 0.8, &told(true, 5.0));
    answered(&client, 10.0);
}

#[test]
fn the_state_of_a_resource_is_readable() {
    let mut client = client(Mode::Safe);
    let state = |client: &ClientState| {
        let state = client.resource(R).unwrap();
        (state.wants(), state.is_held(), state.safe_capacity())
    };
    assert_eq!(state(&client), (10.0, false, None));
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let safe = Some(Capacity::Limited(3.0));
    assert_eq!(state(&client), (10.0, false, safe));
    client.ask(R, 20.0);
    let held = Granted {
        decided: Some(false),
        ..granted(8.0, 60, 5)
    };
    exchange(&mut client, 5.0, 5.0, &answer(held));
    assert_eq!(state(&client), (20.0, true, safe));
}

#[test]
fn a_resource_that_is_opened_is_asked_for_at_once_whatever_was_asked_a_moment_ago() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    assert!(client.open("s", 0, Mode::Safe, 10.0, at(0.001)));
    assert_eq!(client.next_step(at(0.001)), Step::Send);
}

#[test]
fn a_refused_resource_is_no_longer_held_back() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    client.ask(R, 20.0);
    let held = Granted {
        decided: Some(false),
        ..granted(8.0, 60, 5)
    };
    exchange(&mut client, 5.0, 5.0, &answer(held));
    exchange(&mut client, 10.0, 10.0, &refusal(RefusalKind::Other));
    assert!(!client.resource(R).unwrap().is_held());
    client.ask(R, 30.0);
    let Step::Wait(Some(until)) = client.next_step(at(10.0)) else {
        panic!("asks at once")
    };
    assert!(until < at(12.0), "{until:?}");
}
