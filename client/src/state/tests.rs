//! What a client holds and when it asks, told as short stories on a virtual clock.

use super::*;
use crate::capacity::{Capacity, Source};

const R: &str = "r";

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

/// A client with one resource, wanting 10 in the given mode.
fn client(mode: Mode) -> ClientState {
    let mut client = ClientState::new(Config::default(), 100);
    assert!(client.open(R, 0, mode, 10.0, at(0.0)));
    client
}

fn granted(capacity: f64, expires_in: u64, refresh_in: u64) -> Granted {
    Granted {
        limited_by: None,
        learning_for: None,
        decided: None,
        granted_by: None,
        resource: R.to_owned(),
        capacity,
        expires_in: Duration::from_secs(expires_in),
        refresh_in: Duration::from_secs(refresh_in),
        safe_capacity: Some(Capacity::Limited(3.0)),
    }
}

fn answer(granted: Granted) -> Response {
    Response {
        granted: vec![granted],
        refused: Vec::new(),
    }
}

fn refusal(kind: RefusalKind) -> Response {
    let refused = Refused {
        retry_in: None,
        resource: R.to_owned(),
        kind,
        message: "no".to_owned(),
    };
    Response {
        granted: Vec::new(),
        refused: vec![refused],
    }
}

/// Sends at `sent` and gets the answer at `answered`.
#[track_caller]
fn exchange(client: &mut ClientState, sent: f64, answered: f64, response: &Response) -> Request {
    assert_eq!(client.next_step(at(sent)), Step::Send, "at {sent}");
    let request = client.request(|_| 0.0, at(sent));
    assert!(client.handle_response(request.sequence, response, at(answered)));
    request
}

#[track_caller]
fn check(client: &ClientState, seconds: f64, capacity: f64, source: Source) {
    let allowance = client.allowance(R, at(seconds));
    assert_eq!(
        (allowance.capacity.get(), allowance.source),
        (capacity, source),
        "at {seconds}"
    );
}

#[track_caller]
fn waits_until(client: &ClientState, now: f64, until: f64) {
    assert_eq!(
        client.next_step(at(now)),
        Step::Wait(Some(at(until))),
        "at {now}"
    );
}

#[test]
fn a_lease_counts_from_when_the_request_was_sent() {
    let mut client = client(Mode::Pessimistic);
    let request = exchange(&mut client, 1.0, 3.0, &answer(granted(8.0, 60, 5)));
    assert_eq!(
        (request.sequence, request.asks[0].wants, request.asks[0].has),
        (101, 10.0, None)
    );
    // Less a thousandth: the server's clock may be that much faster.
    check(&client, 60.9, 8.0, Source::Lease);
    check(&client, 60.94, 0.0, Source::Mode);
    let allowance = client.allowance(R, at(3.0));
    assert_eq!(
        (allowance.until, allowance.then),
        (Some(at(60.94)), Capacity::NONE)
    );
}

#[test]
fn it_refreshes_when_told_and_says_what_it_has() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    waits_until(&client, 0.0, 5.0);
    assert_eq!(client.next_step(at(5.0)), Step::Send);
    let request = client.request(|_| 0.0, at(5.0));
    let has = Has {
        granted_by: None,
        capacity: 8.0,
        expires_in: Duration::from_millis(54_940),
    };
    assert_eq!(request.asks[0].has, Some(has));
}

#[test]
fn what_is_in_flight_beyond_the_lease_counts_as_had() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let request = client.request(|_| 12.0, at(5.0));
    assert_eq!(request.asks[0].has.unwrap().capacity, 12.0);
}

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
fn an_answer_to_an_older_request_changes_nothing() {
    let mut client = client(Mode::Pessimistic);
    let first = client.request(|_| 0.0, at(0.0));
    client.handle_failure(first.sequence, 0.0, at(5.0));
    let second = client.request(|_| 0.0, at(5.0));
    assert!(!client.handle_response(first.sequence, &answer(granted(99.0, 60, 5)), at(6.0)));
    check(&client, 6.0, 0.0, Source::Mode);
    assert!(client.handle_response(second.sequence, &answer(granted(4.0, 60, 5)), at(6.0)));
    // And not after the newest either.
    assert!(!client.handle_response(first.sequence, &answer(granted(99.0, 60, 5)), at(7.0)));
    check(&client, 7.0, 4.0, Source::Lease);
}

#[test]
fn other_wants_are_sent_early_but_not_faster_than_the_gap() {
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

#[test]
fn a_refused_or_malformed_answer_never_replaces_a_valid_lease() {
    let malformed = [
        granted(f64::NAN, 60, 5),
        granted(-1.0, 60, 5),
        granted(f64::INFINITY, 60, 5),
        granted(8.0, 0, 0),
        Granted {
            safe_capacity: Some(Capacity::Limited(f64::NAN)),
            ..granted(8.0, 60, 5)
        },
    ];
    let mut responses: Vec<Response> = malformed.map(answer).into();
    responses.extend([
        refusal(RefusalKind::Unknown),
        refusal(RefusalKind::Other),
        Response::default(),
    ]);
    for response in responses {
        let mut client = client(Mode::Pessimistic);
        exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
        exchange(&mut client, 5.0, 5.0, &response);
        check(&client, 6.0, 8.0, Source::Lease);
        assert!(
            client.resource(R).unwrap().trouble().is_some(),
            "{response:?}"
        );
        waits_until(&client, 5.0, 10.0);
        exchange(&mut client, 10.0, 10.0, &answer(granted(7.0, 60, 5)));
        assert_eq!(client.resource(R).unwrap().trouble(), None);
    }
}

#[test]
fn an_unknown_resource_is_told_from_a_refused_one() {
    for (response, unknown) in [
        (refusal(RefusalKind::Unknown), true),
        (refusal(RefusalKind::Other), false),
        (Response::default(), true),
    ] {
        let mut client = client(Mode::Safe);
        exchange(&mut client, 0.0, 0.0, &response);
        let trouble = client.resource(R).unwrap().trouble().unwrap().clone();
        assert_eq!(
            matches!(trouble, Trouble::UnknownResource(_)),
            unknown,
            "{trouble:?}"
        );
    }
}

#[test]
fn an_answer_for_what_was_not_asked_is_passed_over() {
    let mut client = client(Mode::Safe);
    let mut response = answer(granted(8.0, 60, 5));
    response.granted.push(Granted {
        resource: "other".to_owned(),
        ..granted(9.0, 60, 5)
    });
    response.granted.push(granted(99.0, 60, 5));
    exchange(&mut client, 0.0, 0.0, &response);
    check(&client, 1.0, 8.0, Source::Lease);
    assert!(client.resource("other").is_none());
}

#[test]
fn a_refresh_interval_as_long_as_the_lease_is_cut_short() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 8, 60)));
    waits_until(&client, 0.0, 7.0 * 0.999);
}

#[test]
fn failures_back_off_but_never_past_the_end_of_a_lease() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let mut now = 5.0;
    let mut waits = Vec::new();
    for _ in 0..8 {
        let request = client.request(|_| 0.0, at(now));
        client.handle_failure(request.sequence, 1.0, at(now));
        let Step::Wait(Some(until)) = client.next_step(at(now)) else {
            panic!("sends at once")
        };
        waits.push((until.since(at(now)).as_secs_f64() * 10.0).round() / 10.0);
        now = until.since_origin().as_secs_f64();
    }
    // Doubling, until half of what is left of the lease is less.
    assert_eq!(waits, [1.0, 2.0, 4.0, 8.0, 16.0, 12.0, 6.0, 3.0]);
}

#[test]
fn without_a_master_it_asks_about_every_second_and_keeps_its_lease() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    let mut now = 5.0;
    for _ in 0..5 {
        let request = client.request(|_| 0.0, at(now));
        client.handle_masterless(request.sequence, 0.5, at(now));
        check(&client, now, 8.0, Source::Lease);
        waits_until(&client, now, now + 1.0);
        now += 1.0;
    }
    // And again once there is one.
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
fn resources_that_are_due_about_the_same_time_share_a_request() {
    let mut client = client(Mode::Safe);
    client.open("s", 0, Mode::Safe, 1.0, at(0.0));
    client.open("t", 0, Mode::Safe, 1.0, at(0.0));
    let of = |resource: &str, refresh_in| Granted {
        resource: resource.to_owned(),
        ..granted(1.0, 60, refresh_in)
    };
    let response = Response {
        granted: vec![of(R, 8), of("s", 9), of("t", 30)],
        refused: Vec::new(),
    };
    assert_eq!(exchange(&mut client, 0.0, 0.0, &response).asks.len(), 3);
    let asked: Vec<String> = client
        .request(|_| 0.0, at(8.0))
        .asks
        .into_iter()
        .map(|ask| ask.resource)
        .collect();
    assert_eq!(asked, [R, "s"]);
}

#[test]
fn a_resource_that_is_closed_is_released_if_a_lease_is_held_or_may_come() {
    let mut client = client(Mode::Safe);
    assert!(!client.clone().close(R, at(0.0)));
    let request = client.request(|_| 0.0, at(0.0));
    assert!(client.clone().close(R, at(0.0)));
    client.handle_response(request.sequence, &answer(granted(8.0, 60, 5)), at(0.0));
    assert!(client.close(R, at(1.0)));
    assert_eq!(client.next_step(at(1.0)), Step::Wait(None));
}

#[test]
fn a_server_that_waits_for_its_parent_is_asked_again_soon_and_takes_nothing() {
    let mut client = client(Mode::Pessimistic);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 30)));
    exchange(&mut client, 30.0, 30.0, &refusal(RefusalKind::NotReady));
    check(&client, 30.5, 8.0, Source::Lease);
    assert!(client.resource(R).unwrap().trouble().unwrap().passes());
    waits_until(&client, 30.0, 31.0);
}

#[test]
fn the_last_lease_ends_with_the_longest_that_is_valid() {
    let mut client = client(Mode::Safe);
    assert!(client.open("other", 0, Mode::Safe, 1.0, at(0.0)));
    assert_eq!(client.leases_end(at(0.0)), None);
    let request = client.request(|_| 0.0, at(1.0));
    let other = Granted {
        resource: "other".to_owned(),
        ..granted(1.0, 40, 5)
    };
    let answer = Response {
        granted: vec![granted(5.0, 20, 5), other],
        refused: Vec::new(),
    };
    assert!(client.handle_response(request.sequence, &answer, at(1.0)));
    // Counted from when it was asked for, less a thousandth.
    assert_eq!(client.leases_end(at(30.0)), Some(at(40.96)));
    assert_eq!(client.leases_end(at(40.96)), None);
}

#[test]
fn a_clock_that_may_be_wrong_counts_less_and_tells_more() {
    let config = Config {
        clock_tolerance: Some(Tolerance::STEERED),
        ..Config::default()
    };
    let mut client = ClientState::new(config, 100);
    assert!(client.open(R, 0, Mode::Pessimistic, 10.0, at(0.0)));
    let request = client.request(|_| 0.0, at(0.0));
    assert!(client.handle_response(request.sequence, &answer(granted(8.0, 60, 5)), at(1.0)));
    assert_eq!(client.leases_end(at(1.0)), Some(at(54.0)));
    let request = client.request(|_| 0.0, at(10.0));
    let has = request.asks[0].has.unwrap();
    // By a clock that is a tenth slow, 44 s last so long.
    assert!(has.expires_in >= Duration::from_secs_f64(44.0 * 0.999 / 0.9));
}
