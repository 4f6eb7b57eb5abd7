//! A client on a stream: which pushes count, and what it tells at once.

use super::*;

/// Answers the client's first request at 0 s, on a stream.
fn streaming(capacity: f64) -> (ClientState, u64) {
    let mut client = client(Mode::Pessimistic);
    let request = client.request(|_| 0.0, at(0.0));
    client.handle_opening(at(0.0));
    client.set_streaming(true, at(0.0));
    let first = answer(granted(capacity, 60, 20));
    assert!(client.handle_response(request.sequence, &first, 0.0, at(0.0)));
    (client, request.sequence)
}

fn push(capacity: f64, sequence: u64) -> Response {
    answer(Granted {
        sequence: Some(sequence),
        ..granted(capacity, 30, 20)
    })
}

#[test]
fn a_push_changes_the_amount_of_the_lease_and_not_its_end() {
    let (mut client, sequence) = streaming(8.0);
    client.handle_push(&push(10.0, sequence), at(1.0));
    check(&client, 1.0, 10.0, Source::Lease);
    check(&client, 59.0, 10.0, Source::Lease);
    check(&client, 59.95, 0.0, Source::Mode);
    waits_until(&client, 1.0, 20.0);
}

#[test]
fn a_push_counts_only_if_it_knows_the_newest_request() {
    let (mut client, sequence) = streaming(8.0);
    for other in [sequence - 1, sequence + 1] {
        client.handle_push(&push(10.0, other), at(1.0));
        check(&client, 1.0, 8.0, Source::Lease);
    }
    client.handle_push(&answer(granted(10.0, 30, 20)), at(1.0));
    check(&client, 1.0, 8.0, Source::Lease);
    // The next request reports the lease, so a push before its answer must not enlarge it.
    let request = client.request(|_| 0.0, at(20.0));
    assert_eq!(request.asks[0].has.unwrap().capacity, 8.0);
    for sequence in [sequence, request.sequence] {
        client.handle_push(&push(10.0, sequence), at(20.0));
        check(&client, 20.0, 8.0, Source::Lease);
    }
}

#[test]
fn a_push_for_a_lease_that_has_ended_or_with_a_bad_amount_changes_nothing() {
    let (mut client, sequence) = streaming(8.0);
    client.handle_push(&push(f64::NAN, sequence), at(1.0));
    client.handle_push(&push(-1.0, sequence), at(1.0));
    check(&client, 1.0, 8.0, Source::Lease);
    client.handle_push(&push(10.0, sequence), at(60.0));
    check(&client, 60.0, 0.0, Source::Mode);
}

#[test]
fn a_shrink_is_acknowledged_at_once_and_again_while_work_in_flight_exceeds_it() {
    let (mut client, sequence) = streaming(8.0);
    client.handle_push(&push(3.0, sequence), at(1.0));
    check(&client, 1.0, 3.0, Source::Lease);
    assert_eq!(client.next_step(at(1.0)), Step::Send);
    let request = client.request(|_| 5.0, at(1.0));
    assert_eq!(
        request.asks[0].has.unwrap().capacity,
        5.0,
        "5 are in flight"
    );
    let same = answer(granted(3.0, 60, 20));
    assert!(client.handle_response(request.sequence, &same, 0.0, at(1.0)));
    waits_until(&client, 1.0, 2.0);
    let request = exchange(&mut client, 2.0, 2.0, &same);
    assert_eq!(request.asks[0].has.unwrap().capacity, 3.0);
    waits_until(&client, 2.0, 22.0);
}

#[test]
fn a_client_that_polls_acknowledges_at_its_refresh() {
    let mut client = client(Mode::Pessimistic);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    exchange(&mut client, 5.0, 5.0, &answer(granted(3.0, 60, 5)));
    waits_until(&client, 5.0, 10.0);
}

#[test]
fn a_broken_stream_is_followed_by_a_request_for_all_within_a_second() {
    for (chance, until) in [(0.0, 2.0), (0.5, 2.5), (1.0, 3.0)] {
        let (mut client, _) = streaming(8.0);
        client.open("other", 0, Mode::Safe, 1.0, at(0.5));
        let request = client.request(|_| 0.0, at(0.5));
        let other = answer(Granted {
            resource: "other".to_owned(),
            ..granted(1.0, 60, 20)
        });
        assert!(client.handle_response(request.sequence, &other, 0.0, at(0.5)));
        client.handle_disconnected(chance, at(2.0));
        if chance > 0.0 {
            waits_until(&client, 2.0, until);
        }
        let request = client.request(|_| 0.0, at(until));
        assert_eq!(request.asks.len(), 2, "a new stream hears of all");
    }
}

#[test]
fn a_stream_that_follows_polling_hears_of_all_resources_at_once() {
    let mut client = client(Mode::Pessimistic);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    client.set_streaming(true, at(1.0));
    assert_eq!(client.next_step(at(1.0)), Step::Send);
}

/// Asks at a time, and reaches no server. Returns whether the request goes on a stream.
fn asks(client: &mut ClientState, seconds: f64) -> bool {
    let request = client.request(|_| 0.0, at(seconds));
    client.handle_failure(request.sequence, FailureKind::OutOfReach, 0.0, at(seconds));
    request.on_stream
}

#[test]
fn a_server_that_refuses_streams_is_asked_by_calls_for_a_minute() {
    let mut client = client(Mode::Pessimistic);
    assert!(asks(&mut client, 0.0));
    client.handle_opening(at(0.0));
    client.set_streaming(false, at(0.0));
    for (seconds, on_stream) in [(1.0, false), (59.0, false), (60.0, true)] {
        assert_eq!(asks(&mut client, seconds), on_stream, "at {seconds}");
    }
}

#[test]
fn a_server_that_is_out_of_reach_refuses_no_streams() {
    let mut client = client(Mode::Pessimistic);
    for seconds in [0.0, 1.0, 2.0] {
        assert!(asks(&mut client, seconds), "at {seconds}");
    }
}

#[test]
fn a_stream_that_lasted_is_followed_by_another_one() {
    for (ends, on_stream) in [(9.0, false), (10.0, true)] {
        for is_told in [false, true] {
            let (mut client, _) = streaming(8.0);
            match is_told {
                true => client.handle_disconnected(0.0, at(ends)),
                false => client.set_streaming(false, at(ends)),
            }
            assert_eq!(asks(&mut client, ends), on_stream, "it lasted {ends} s");
        }
    }
}

#[test]
fn a_server_that_is_not_the_master_works_so_streams_go_on() {
    for redirects in [false, true] {
        let (mut client, _) = streaming(8.0);
        let request = client.request(|_| 0.0, at(1.0));
        match redirects {
            true => client.handle_redirect(request.sequence),
            false => {
                let kind = FailureKind::Masterless;
                client.handle_failure(request.sequence, kind, 0.0, at(1.0));
            }
        }
        assert!(asks(&mut client, 2.0));
    }
}

#[test]
fn settings_say_when_a_client_asks_on_streams() {
    for (streams, expected) in [
        (Streams::Always, [true, true]),
        (Streams::OnceLeased, [false, true]),
        (Streams::Never, [false, false]),
    ] {
        let config = ClientConfig {
            streams,
            ..ClientConfig::default()
        };
        let mut client = ClientState::new(config, 100);
        client.open(R, 0, Mode::Safe, 10.0, at(0.0));
        let first = exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 600, 100)));
        // A stream that is to follow a call opens at once.
        let opens_soon = client.next_step(at(1.0)) == Step::Send;
        assert_eq!(opens_soon, streams == Streams::OnceLeased);
        let second = client.request(|_| 0.0, at(100.0));
        assert_eq!([first.on_stream, second.on_stream], expected, "{streams:?}");
    }
}
