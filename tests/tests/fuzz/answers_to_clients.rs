//! Answers, redirects and refusals of a broken or hostile server. The client uses no more than its
//! leases, and keeps asking.

use std::time::Duration;

use doorward::limiter::rate::{Burst, LeasedRate};
use doorward::state::{ClientConfig, ClientState, EpochFilter, FailureKind, Mode, Step};
use doorward::time::Time;
use doorward::{Capacity, Source, wire as convert};
use doorward_proto::doorman as wire;
use prost::Message;

use crate::conversation::{Conversation, Event, STEPS_MAX, WAIT_MAX_MS};
use crate::mutate::Format;
use crate::requests::{WALL, sent};
use crate::runner::fuzz;

/// Number of kinds in templates.
const RESOURCES: [(&str, Mode); 3] = [
    ("FAIR_SHARE/a", Mode::Safe),
    ("PRIORITY_BANDS/a", Mode::Pessimistic),
    ("STATIC/a", Mode::Optimistic),
];

const WANTS: f64 = 50.0;

#[test]
fn answers_to_clients() {
    fuzz!("answers_to_clients", Format::Wire, share: 14, play);
}

fn play(bytes: &[u8]) {
    let Ok(conversation) = Conversation::decode(bytes) else {
        return;
    };
    let mut now = Time::ZERO;
    let mut state = ClientState::new(ClientConfig::default(), 0);
    let mut epochs = EpochFilter::default();
    for (resource, mode) in RESOURCES {
        state.open(resource, 1, mode, WANTS, now);
    }
    let limiter = LeasedRate::new(Burst::default(), now);
    let mut sequence = None;
    for step in conversation.steps.into_iter().take(STEPS_MAX) {
        match step.event {
            Some(Event::Answer(bytes)) => {
                let asked = asked(&mut state, &mut sequence, now);
                answer(&mut state, &mut epochs, asked, &bytes, now);
                sequence = None;
            }
            Some(Event::Lost(_)) => {
                let asked = asked(&mut state, &mut sequence, now);
                state.handle_failure(asked, FailureKind::OutOfReach, 0.5, now);
                sequence = None;
            }
            Some(Event::Wait(millis)) => {
                now = now + Duration::from_millis(millis.min(WAIT_MAX_MS));
            }
            _ => continue,
        }
        check(&state, now);
        let allowance = state.allowance(RESOURCES[0].0, now);
        limiter.handle_allowance(allowance, now);
        if let Err(wait) = limiter.try_acquire(1.0, now) {
            let _ = format!("{wait:?}");
        }
    }
}

/// Returns the number of the request in flight, and sends one if there is none.
fn asked(state: &mut ClientState, under_way: &mut Option<u64>, now: Time) -> u64 {
    if let Some(sequence) = under_way {
        return *sequence;
    }
    let request = state.request(|_| 0.0, now);
    for ask in &request.asks {
        assert_eq!(ask.wants, WANTS);
        if let Some(has) = ask.has {
            assert!(has.capacity.is_finite() && has.capacity >= 0.0, "{has:?}");
        }
    }
    sent(&convert::request("client", 7, &request, WALL));
    *under_way = Some(request.sequence);
    request.sequence
}

fn answer(
    state: &mut ClientState,
    epochs: &mut EpochFilter,
    sequence: u64,
    bytes: &[u8],
    now: Time,
) {
    let Ok(response) = wire::GetCapacityResponse::decode(bytes) else {
        return state.handle_failure(sequence, FailureKind::OutOfReach, 0.1, now);
    };
    let Some(mastership) = &response.mastership else {
        let response = convert::response(response, WALL);
        assert!(state.handle_response(sequence, &response, 0.1, now));
        return;
    };
    let leases_last = || {
        state
            .leases_end(now)
            .map_or(Duration::ZERO, |end| end.since(now))
    };
    let accepted = mastership
        .epoch
        .map(|epoch| epochs.accept(epoch, leases_last));
    match accepted {
        Some(Err(_)) => state.handle_failure(sequence, FailureKind::Masterless, 0.9, now),
        _ if mastership.master_address.is_none() => {
            state.handle_failure(sequence, FailureKind::Masterless, 0.9, now)
        }
        _ => state.handle_redirect(sequence),
    }
}

fn check(state: &ClientState, now: Time) {
    for (name, resource) in state.resources() {
        if let Some(lease) = resource.lease(now) {
            assert!(
                lease.capacity.is_finite() && lease.capacity >= 0.0,
                "{name}: {lease:?}"
            );
            assert!(lease.expires_at > now, "{name}: {lease:?}");
        }
        let allowance = resource.allowance(now);
        for capacity in [allowance.capacity, allowance.then] {
            if let Capacity::Limited(capacity) = capacity {
                assert!(
                    capacity.is_finite() && capacity >= 0.0,
                    "{name}: {allowance:?}"
                );
            }
        }
        assert!(
            allowance.until.is_none_or(|until| until > now),
            "{name}: {allowance:?}"
        );
        if allowance.source == Source::Lease {
            assert!(resource.lease(now).is_some(), "{name}: {allowance:?}");
        }
    }
    // It never gives up.
    assert_ne!(state.next_step(now), Step::Wait(None));
}
