//! Which leases a client gives back, and when.

use super::*;

/// Returns a client with a lease of one resource from 0 s on.
fn leased() -> ClientState {
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &answer(granted(8.0, 60, 5)));
    client
}

#[track_caller]
fn check_release(client: &mut ClientState, seconds: f64) -> u64 {
    assert_eq!(client.next_step(at(seconds)), Step::Release);
    let release = client.release();
    assert_eq!(release.resources, [R.into()]);
    assert_eq!(client.next_step(at(seconds)), Step::Wait(None));
    release.sequence
}

#[test]
fn a_resource_that_is_closed_is_released_if_it_has_a_lease() {
    let mut client = leased();
    client.close(R, at(1.0));
    let sequence = check_release(&mut client, 1.0);
    assert!(!client.handle_released(sequence - 1));
    assert!(client.handle_released(sequence));
    assert_eq!(client.next_step(at(1.0)), Step::Wait(None));
}

#[test]
fn without_a_lease_there_is_nothing_to_release() {
    let mut never = client(Mode::Safe);
    never.close(R, at(0.0));
    let mut ended = leased();
    ended.close(R, at(60.0));
    let mut all = client(Mode::Safe);
    all.close_all(|_| 0.0, at(0.0));
    for client in [never, ended, all] {
        assert_eq!(client.next_step(at(60.0)), Step::Wait(None));
    }
}

#[test]
fn a_lease_that_may_be_under_way_is_released_after_the_answer() {
    let mut client = client(Mode::Safe);
    let request = client.request(|_| 0.0, at(0.0));
    client.close(R, at(0.0));
    assert_eq!(client.next_step(at(0.0)), Step::Wait(None));
    client.handle_response(request.sequence, &answer(granted(8.0, 60, 5)), 0.0, at(1.0));
    check_release(&mut client, 1.0);
}

#[test]
fn a_request_waits_for_the_end_of_a_release() {
    let mut client = leased();
    client.close(R, at(1.0));
    let sequence = check_release(&mut client, 1.0);
    client.open(R, 0, Mode::Safe, 10.0, at(1.0));
    assert_eq!(client.next_step(at(1.0)), Step::Wait(None));
    client.handle_released(sequence);
    assert_eq!(client.next_step(at(1.1)), Step::Send);
}

#[test]
fn a_resource_that_opens_again_keeps_its_lease_at_the_server() {
    let mut client = leased();
    client.close(R, at(1.0));
    client.open(R, 0, Mode::Safe, 10.0, at(1.0));
    assert_eq!(client.next_step(at(1.1)), Step::Send);
}

#[test]
fn a_client_that_ends_releases_what_is_not_in_use() {
    for (in_flight, step) in [(0.0, Step::Release), (0.5, Step::Wait(None))] {
        let mut client = leased();
        client.close_all(|_| in_flight, at(1.0));
        assert_eq!(client.next_step(at(1.0)), step, "{in_flight} in flight");
    }
}

#[test]
fn one_message_has_at_most_800_ids() {
    let mut client = ClientState::new(ClientConfig::default(), 100);
    for number in 0..1_000 {
        let id = format!("{number:04}");
        client.open(&id, 0, Mode::Safe, 1.0, at(0.0));
    }
    client.request(|_| 0.0, at(0.0));
    for number in 0..1_000 {
        client.close(&format!("{number:04}"), at(0.0));
    }
    client.handle_failure(101, FailureKind::OutOfReach, 0.0, at(0.0));
    let first = client.release();
    assert_eq!(
        (first.resources.len(), &*first.resources[799]),
        (800, "0799")
    );
    client.handle_released(first.sequence);
    assert_eq!(client.release().resources.len(), 200);
}
