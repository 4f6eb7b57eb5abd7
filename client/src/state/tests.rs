//! Stories of a client's leases and requests, on a virtual clock.

mod agenda;
mod failures;
mod hostile;
mod modes;
mod news;
mod releases;
mod streams;

use super::*;
use crate::capacity::{Capacity, Source};
use crate::time::Tolerance;

const R: &str = "r";

fn at(seconds: f64) -> Time {
    Time::after_origin(Duration::from_secs_f64(seconds))
}

/// Creates a client with one resource, which wants 10 in the given mode.
fn client(mode: Mode) -> ClientState {
    let mut client = ClientState::new(ClientConfig::default(), 100);
    assert!(client.open(R, 0, mode, 10.0, at(0.0)));
    client
}

fn granted(capacity: f64, expires_in: u64, refresh_in: u64) -> Granted {
    Granted {
        budget: None,
        limited_by: None,
        learning_for: None,
        decided: None,
        sequence: None,
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

/// Sends at `sent` and gets the answer at `answered`. The client's random waits are the shortest.
#[track_caller]
fn exchange(client: &mut ClientState, sent: f64, answered: f64, response: &Response) -> Request {
    assert_eq!(client.next_step(at(sent)), Step::Send, "at {sent}");
    let request = client.request(|_| 0.0, at(sent));
    assert!(client.handle_response(request.sequence, response, 0.0, at(answered)));
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
    // Shorter by a thousandth: the server's clock may be that much faster.
    check(&client, 60.9, 8.0, Source::Lease);
    check(&client, 60.94, 0.0, Source::Mode);
    let allowance = client.allowance(R, at(3.0));
    assert_eq!(
        (allowance.until, allowance.then),
        (Some(at(60.94)), Capacity::NONE)
    );
}

#[test]
fn a_client_refreshes_at_its_interval_and_reports_its_lease() {
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

/// Checks the report of a request with an amount in flight: the reported amount and its remaining time. The answer is
/// lost.
#[track_caller]
fn check_told(client: &mut ClientState, in_flight: f64, now: f64, told: Option<(f64, f64)>) {
    let request = client.request(|_| in_flight, at(now));
    client.handle_failure(request.sequence, FailureKind::OutOfReach, 0.0, at(now));
    let has = request.asks[0].has;
    let has = has.map(|has| (has.capacity, has.expires_in.as_secs_f64()));
    assert_eq!(has, told, "at {now} s");
}

#[test]
fn work_in_flight_beyond_the_lease_is_reported_as_far_as_a_former_lease_allowed_it() {
    let mut client = client(Mode::Optimistic);
    exchange(&mut client, 0.0, 0.0, &answer(granted(20.0, 60, 5)));
    // It shrinks, by a shorter lease.
    exchange(&mut client, 5.0, 5.0, &answer(granted(8.0, 20, 5)));
    check_told(&mut client, 25.0, 10.0, Some((20.0, 49.94)));
    check_told(&mut client, 12.0, 11.0, Some((12.0, 48.94)));
    // After this report, no former lease counts for more.
    check_told(&mut client, 15.0, 12.0, Some((12.0, 47.94)));
    // The present lease is over, and the former one is not.
    check_told(&mut client, 15.0, 30.0, Some((12.0, 29.94)));
    check_told(&mut client, 0.0, 31.0, None);
    check_told(&mut client, 12.0, 32.0, None);
}

/// Checks the lease of a client that had 20, then `leased`, and 12 in flight, after a server confirmed it.
#[track_caller]
fn check_confirmed(mode: Mode, leased: f64, confirmed: Granted, lease: f64) {
    let mut client = client(mode);
    exchange(&mut client, 0.0, 0.0, &answer(granted(20.0, 60, 5)));
    exchange(&mut client, 5.0, 5.0, &answer(granted(leased, 60, 5)));
    let what = format!("{mode:?} {leased} {confirmed:?}");
    let request = client.request(|_| 12.0, at(10.0));
    assert_eq!(request.asks[0].has.map(|has| has.capacity), Some(12.0));
    assert!(client.handle_response(request.sequence, &answer(confirmed), 0.0, at(11.0)));
    let newest = client.resource(R).unwrap().lease(at(11.0));
    assert_eq!(newest.map(|it| it.capacity), Some(lease), "{what}");
    // As long as a former lease lasts, the client reports its work in flight as before.
    for (now, told) in [(20.0, lease.max(12.0)), (66.0, lease)] {
        let request = client.request(|_| 12.0, at(now));
        client.handle_failure(request.sequence, FailureKind::OutOfReach, 0.0, at(now));
        let has = request.asks[0].has.map(|it| it.capacity);
        assert_eq!(has, Some(told), "{now} {what}");
    }
}

#[test]
fn a_learning_servers_confirmation_of_former_work_is_no_lease() {
    let learning = |capacity| Granted {
        limited_by: Some(LimitedBy::Learning),
        learning_for: Some(Duration::from_secs(40)),
        ..granted(capacity, 60, 5)
    };
    for mode in [Mode::Optimistic, Mode::Pessimistic, Mode::Safe] {
        check_confirmed(mode, 8.0, learning(12.0), 8.0);
        check_confirmed(mode, 8.0, learning(7.0), 7.0);
        // A grant above the report counts in full, and so does the share of a server that is not learning.
        check_confirmed(mode, 8.0, learning(13.0), 13.0);
        check_confirmed(mode, 8.0, granted(12.0, 60, 5), 12.0);
    }
    check_confirmed(Mode::Pessimistic, 0.0, learning(12.0), 0.0);
    // With a lease of 0 the client would use its safe capacity in addition.
    check_confirmed(Mode::Safe, 0.0, learning(12.0), 12.0);
}

#[test]
fn work_that_the_mode_admitted_is_not_reported() {
    let mut client = client(Mode::Optimistic);
    check_told(&mut client, 9.0, 0.0, None);
    exchange(&mut client, 1.0, 1.0, &answer(granted(8.0, 20, 5)));
    check_told(&mut client, 12.0, 6.0, Some((8.0, 14.98)));
    // Its lease is over, so no lease covers the work in flight.
    check_told(&mut client, 8.0, 30.0, None);
}

#[test]
fn many_former_leases_count_as_a_few_and_never_as_less() {
    let mut client = client(Mode::Optimistic);
    for number in 0..40_u32 {
        let (now, capacity) = (f64::from(number) * 5.0, 100.0 - f64::from(number));
        // All of it is in flight, so no former lease counts for less.
        let request = client.request(|_| 100.0, at(now));
        let told = request.asks[0].has.map(|has| has.capacity);
        assert_eq!(told, (number > 0).then_some(100.0), "{number}");
        let answer = answer(granted(capacity, 600, 5));
        assert!(client.handle_response(request.sequence, &answer, 0.0, at(now)));
    }
}

#[test]
fn an_answer_to_an_older_request_changes_nothing() {
    let mut client = client(Mode::Pessimistic);
    let first = client.request(|_| 0.0, at(0.0));
    client.handle_failure(first.sequence, FailureKind::OutOfReach, 0.0, at(5.0));
    let second = client.request(|_| 0.0, at(5.0));
    assert!(!client.handle_response(first.sequence, &answer(granted(99.0, 60, 5)), 0.0, at(6.0)));
    check(&client, 6.0, 0.0, Source::Mode);
    assert!(client.handle_response(second.sequence, &answer(granted(4.0, 60, 5)), 0.0, at(6.0)));
    // Nor does it after the newest request.
    assert!(!client.handle_response(first.sequence, &answer(granted(99.0, 60, 5)), 0.0, at(7.0)));
    check(&client, 7.0, 4.0, Source::Lease);
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
        assert_eq!(trouble.kind == RefusalKind::Unknown, unknown, "{trouble:?}");
    }
}

#[test]
fn no_wait_is_longer_than_a_minute_whatever_a_server_says() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 7_200, 3_600)));
    waits_until(&client, 0.0, 60.0);
    for kind in [
        RefusalKind::Unknown,
        RefusalKind::NotReady,
        RefusalKind::Other,
    ] {
        let mut told = refusal(kind);
        told.refused[0].retry_in = Some(Duration::from_secs(3_600));
        exchange(&mut client, 60.0, 60.0, &told);
        waits_until(&client, 60.0, 120.0);
        client = self::client(Mode::Safe);
        exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 7_200, 3_600)));
    }
}

#[test]
fn a_refusal_with_a_time_is_obeyed() {
    let mut client = client(Mode::Safe);
    let mut told = refusal(RefusalKind::Other);
    told.refused[0].retry_in = Some(Duration::from_secs(20));
    exchange(&mut client, 0.0, 0.0, &told);
    waits_until(&client, 0.0, 20.0);
}

#[test]
fn a_client_knows_why_a_lease_is_not_larger_and_how_long_a_server_learns() {
    let mut client = client(Mode::Pessimistic);
    let learning = Granted {
        limited_by: Some(LimitedBy::Learning),
        learning_for: Some(Duration::from_secs(41)),
        ..granted(0.0, 60, 5)
    };
    exchange(&mut client, 1.0, 2.0, &answer(learning));
    let seen = |client: &ClientState, seconds: f64| {
        let state = client.resource(R).unwrap();
        (
            state.limited_by(at(seconds)),
            state.learning_until(at(seconds)),
        )
    };
    let learns = Some(LimitedBy::Learning);
    assert_eq!(seen(&client, 2.0), (learns, Some(at(43.0))));
    assert_eq!(seen(&client, 43.0), (learns, None));
    // The lease is over, so its reason is unknown.
    assert_eq!(seen(&client, 61.0), (None, None));
    // A refusal leaves the lease and its reason unchanged.
    exchange(&mut client, 7.0, 7.0, &refusal(RefusalKind::Other));
    assert_eq!(seen(&client, 8.0), (learns, Some(at(43.0))));
    exchange(&mut client, 12.0, 12.0, &answer(granted(5.0, 60, 5)));
    assert_eq!(seen(&client, 12.0), (None, None));
}

#[test]
fn the_next_answer_is_due_when_the_client_asks_next() {
    let mut client = client(Mode::Safe);
    assert_eq!(client.next_answer(R), Some(at(0.0)));
    assert_eq!(client.next_answer("other"), None);
    exchange(&mut client, 0.0, 0.0, &answer(granted(0.0, 60, 1)));
    assert_eq!(client.next_answer(R), Some(at(1.0)));
    let request = client.request(|_| 0.0, at(1.0));
    // The answer is on its way.
    assert_eq!(client.next_answer(R), Some(at(1.0)));
    client.handle_failure(request.sequence, FailureKind::OutOfReach, 1.0, at(2.0));
    assert_eq!(client.next_answer(R), Some(at(3.0)));
}

#[test]
fn the_next_answer_is_not_told_too_early_when_other_resources_ask_just_before() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &refusal(RefusalKind::NotReady));
    assert!(client.open("other", 0, Mode::Safe, 1.0, at(0.5)));
    let told = client.next_answer(R).unwrap();
    let refresh_at = told - Duration::from_millis(100);
    let request = client.request(|_| 0.0, refresh_at - Duration::from_millis(1));
    assert_eq!(request.asks.len(), 1);
    assert_eq!(request.asks[0].resource, "other");
    client.handle_response(request.sequence, &Response::default(), 0.0, refresh_at);
    let next = client.next_step(refresh_at);
    let due = told - Duration::from_millis(1);
    assert_eq!(next, Step::Wait(Some(due)));
}

#[test]
fn an_answer_for_another_resource_is_ignored() {
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
fn a_server_that_waits_for_its_parent_is_asked_again_soon_and_takes_nothing() {
    let mut client = client(Mode::Pessimistic);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 30)));
    exchange(&mut client, 30.0, 30.0, &refusal(RefusalKind::NotReady));
    check(&client, 30.5, 8.0, Source::Lease);
    let trouble = client.resource(R).unwrap().trouble().unwrap();
    assert_eq!(trouble.kind, RefusalKind::NotReady);
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
    assert!(client.handle_response(request.sequence, &answer, 0.0, at(1.0)));
    // Counted from when it was asked for, less a thousandth.
    assert_eq!(client.leases_end(at(30.0)), Some(at(40.96)));
    assert_eq!(client.leases_end(at(40.96)), None);
}

#[test]
fn a_clock_that_may_be_wrong_counts_less_and_tells_more() {
    let config = ClientConfig {
        clock_tolerance: Some(Tolerance::STEERED),
        ..ClientConfig::default()
    };
    let mut client = ClientState::new(config, 100);
    assert!(client.open(R, 0, Mode::Pessimistic, 10.0, at(0.0)));
    let request = client.request(|_| 0.0, at(0.0));
    assert!(client.handle_response(request.sequence, &answer(granted(8.0, 60, 5)), 0.0, at(1.0)));
    assert_eq!(client.leases_end(at(1.0)), Some(at(54.0)));
    let request = client.request(|_| 0.0, at(10.0));
    let has = request.asks[0].has.unwrap();
    // By a clock that is slow by a tenth, 44 s last that long.
    assert!(has.expires_in >= Duration::from_secs_f64(44.0 * 0.999 / 0.9));
}

#[test]
fn many_resources_are_asked_for_in_requests_that_servers_accept() {
    let mut client = ClientState::new(ClientConfig::default(), 100);
    for number in 0..2_500 {
        let length = if number < 1_000 { 256 } else { 8 };
        let id = format!("{number:0length$}");
        assert!(client.open(&id, 0, Mode::Safe, 1.0, at(0.0)));
    }
    let mut asked = Vec::new();
    while client.next_step(at(0.0)) == Step::Send {
        let request = client.request(|_| 0.0, at(0.0));
        let bytes: usize = request.asks.iter().map(|ask| ask.resource.len()).sum();
        assert!(bytes <= 128 * 1024, "{bytes}");
        asked.push(request.asks.len());
        let granted = request.asks.iter().map(|ask| Granted {
            resource: ask.resource.clone(),
            ..granted(1.0, 60, 5)
        });
        let response = Response {
            granted: granted.collect(),
            refused: Vec::new(),
        };
        assert!(client.handle_response(request.sequence, &response, 0.0, at(0.0)));
    }
    assert_eq!(asked, [512, 1_000, 988]);
}
