//! Another process with the same client id: waited out as long as a restart takes.

use super::*;

/// Sends at that time, and another process has the lease; the server says when to ask again.
#[track_caller]
fn is_refused(client: &mut ClientState, now: f64) {
    let mut refused = refusal(RefusalKind::AnotherProcess);
    refused.refused[0].retry_in = Some(Duration::from_secs(6));
    exchange(client, now, now, &refused);
}

/// Whether waiting still makes sense.
fn passes(client: &ClientState) -> bool {
    client.resource(R).unwrap().trouble().unwrap().passes()
}

#[test]
fn it_passes_until_the_server_says_it_again_after_the_time_of_a_restart() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    for (now, expected) in [(5.0, true), (11.0, true), (17.0, false), (23.0, false)] {
        is_refused(&mut client, now);
        assert_eq!(passes(&client), expected, "at {now}");
        waits_until(&client, now, now + 6.0);
    }
    // The other one is gone.
    exchange(&mut client, 29.0, 29.0, &answer(granted(8.0, 60, 5)));
    check(&client, 29.0, 8.0, Source::Lease);
}

#[test]
fn another_answer_in_between_shows_that_it_was_not_the_same_restart() {
    for between in [answer(granted(8.0, 60, 5)), refusal(RefusalKind::NotReady)] {
        let mut client = client(Mode::Safe);
        is_refused(&mut client, 0.0);
        exchange(&mut client, 6.0, 6.0, &between);
        is_refused(&mut client, 12.0);
        assert!(passes(&client), "{between:?}");
    }
}

#[test]
fn an_answer_that_went_lost_changes_nothing() {
    let mut client = client(Mode::Safe);
    is_refused(&mut client, 0.0);
    let request = client.request(|_| 0.0, at(6.0));
    client.handle_failure(request.sequence, 0.0, at(11.0));
    is_refused(&mut client, 12.0);
    assert!(!passes(&client));
}

#[test]
fn who_says_that_there_is_no_restart_is_told_by_the_first_refusal() {
    let config = ClientConfig {
        restart_overlap: Duration::ZERO,
        ..ClientConfig::default()
    };
    let mut client = ClientState::new(config, 100);
    assert!(client.open(R, 0, Mode::Safe, 10.0, at(0.0)));
    is_refused(&mut client, 0.0);
    assert!(!passes(&client));
}
