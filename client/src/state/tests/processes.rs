//! Another process with the same client id: the client waits as long as a restart takes.

use super::*;

/// Sends a request at that time; the server refuses it because of another process, with a time.
#[track_caller]
fn is_refused(client: &mut ClientState, now: f64) {
    let mut refused = refusal(RefusalKind::AnotherProcess);
    refused.refused[0].retry_in = Some(Duration::from_secs(6));
    exchange(client, now, now, &refused);
}

/// Returns whether waiting still makes sense.
fn passes(client: &ClientState) -> bool {
    client.resource(R).unwrap().trouble().unwrap().passes()
}

#[test]
fn a_conflict_is_waited_out_for_the_time_of_a_restart() {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    // Ten seconds of a restart, and six in which the other process may have ended unnoticed.
    for (now, expected) in [(5.0, true), (11.0, true), (17.0, true), (23.0, false)] {
        is_refused(&mut client, now);
        assert_eq!(passes(&client), expected, "at {now}");
        waits_until(&client, now, now + 6.0);
    }
    // The other process has ended.
    exchange(&mut client, 29.0, 29.0, &answer(granted(8.0, 60, 5)));
    check(&client, 29.0, 8.0, Source::Lease);
}

#[test]
fn a_restart_that_is_over_is_no_mistake_however_rarely_the_processes_ask() {
    // The former process asked last at 0, and was killed then. The server misses it after a refresh interval and a
    // quarter.
    for refresh in [5.0_f64, 20.0, 60.0, 300.0] {
        let mut client = client(Mode::Safe);
        let (missed, wait) = (refresh * 1.25, refresh.min(60.0));
        let mut now = 0.1;
        // Beyond a minute, processes need not wait for one another: an operator who sets such an interval also sets an
        // overlap.
        while now < missed.min(70.0) {
            let mut refused = refusal(RefusalKind::AnotherProcess);
            refused.refused[0].retry_in = Some(Duration::from_secs_f64(wait));
            exchange(&mut client, now, now, &refused);
            assert!(passes(&client), "{refresh}, at {now}");
            now += wait;
        }
    }
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
    is_refused(&mut client, 17.0);
    assert!(!passes(&client));
}

#[test]
fn without_a_restart_overlap_the_first_refusal_counts() {
    let config = ClientConfig {
        restart_overlap: Duration::ZERO,
        ..ClientConfig::default()
    };
    let mut client = ClientState::new(config, 100);
    assert!(client.open(R, 0, Mode::Safe, 10.0, at(0.0)));
    is_refused(&mut client, 0.0);
    assert!(!passes(&client));
}
