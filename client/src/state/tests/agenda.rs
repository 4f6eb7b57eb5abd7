//! The agenda against a scan of all resources.

use proptest::prelude::*;

use super::*;

const KINDS: [RefusalKind; 3] = [
    RefusalKind::Unknown,
    RefusalKind::NotReady,
    RefusalKind::Other,
];

/// Returns what a handle sees of each resource.
fn views(client: &ClientState, now: Time) -> BTreeMap<String, String> {
    let view = |(id, state): (&str, &ResourceState)| {
        let allowance = state.allowance(now);
        let seen = (allowance, state.lease(now), state.trouble(), state.wants());
        (id.to_owned(), format!("{seen:?} {:?}", state.answered()))
    };
    client.resources().map(view).collect()
}

/// Checks the next step, the end of all leases and the changed resources.
fn check_scan(client: &mut ClientState, seen: &mut BTreeMap<String, String>, now: Time) {
    if client.next_step(now) == Step::Release {
        let release = client.release();
        assert!(client.handle_released(release.sequence));
    }
    let all = || client.resources.values();
    let changes = all().filter_map(|state| state.changes_at(now)).min();
    let due = all().map(|state| {
        let kind = state.kind();
        kind.due(state.refresh_at, client.last_sent, &client.config)
    });
    let due = due.min().map(|due| client.not_before(due));
    let expected = match due {
        _ if client.is_asking() => Step::Wait(changes),
        Some(due) if due <= now => Step::Send,
        due => Step::Wait(due.into_iter().chain(changes).min()),
    };
    assert_eq!(client.next_step(now), expected);
    let ends = all().filter_map(|state| state.expiry(now));
    assert_eq!(client.leases_end(now), ends.max());

    let changed = client.take_changed(now);
    let after = views(client, now);
    for (id, view) in &after {
        let is_known = seen.get(id) == Some(view);
        assert!(is_known || changed.iter().any(|it| **it == **id), "{id}");
    }
    *seen = after;
    assert_eq!(client.next_step(now), expected, "once more");
}

fn answer_of(request: &Request, which: u8, seconds: u64) -> Response {
    let mut response = Response::default();
    for (number, ask) in request.asks.iter().enumerate() {
        let kind = usize::from(which) + number;
        match kind % 7 {
            0 => {}
            1 => response.refused.push(Refused {
                resource: ask.resource.clone(),
                kind: KINDS[kind / 7 % 4],
                message: String::new(),
                retry_in: (kind % 2 == 0).then_some(Duration::from_secs(seconds)),
            }),
            _ => response.granted.push(Granted {
                resource: ask.resource.clone(),
                decided: [None, Some(true), Some(false)][kind % 3],
                ..granted((kind % 3) as f64, seconds * 2, seconds % 5)
            }),
        }
    }
    response
}

proptest! {
    #[test]
    fn the_agenda_is_a_scan_of_all_resources(
        steps in prop::collection::vec((0..8_u8, 0..12_u8, 1..30_u64), 1..120),
    ) {
        let mut client = ClientState::new(ClientConfig::default(), 100);
        let (mut now, mut seen, mut request) = (at(1.0), BTreeMap::new(), None::<Request>);
        for (step, which, length) in steps {
            let id = format!("r{}", which % 6);
            let mode = [Mode::Safe, Mode::Optimistic, Mode::Pessimistic][usize::from(which % 3)];
            match (step, request.take()) {
                (0, kept) => {
                    client.open(&id, 0, mode, f64::from(which), now);
                    request = kept;
                }
                (1, kept) => {
                    client.close(&id, now);
                    seen.remove(&id);
                    request = kept;
                }
                (2, kept) => {
                    client.ask(&id, f64::from(which / 2));
                    request = kept;
                }
                (3, kept) => {
                    now = now + Duration::from_millis(length * length * 40);
                    request = kept;
                }
                (4, Some(sent)) => client.handle_failure(sent.sequence, FailureKind::OutOfReach, 0.5, now),
                (5, Some(sent)) => {
                    let wait = Duration::from_secs(length);
                    client.handle_overloaded(sent.sequence, wait, 0.5, now);
                }
                (_, Some(sent)) => {
                    let response = answer_of(&sent, which, length);
                    client.handle_response(sent.sequence, &response, 0.5, now);
                }
                (_, None) if client.next_step(now) == Step::Send => {
                    request = Some(client.request(|_| 0.0, now));
                }
                (_, None) => {}
            }
            check_scan(&mut client, &mut seen, now);
        }
    }
}

#[test]
fn a_pass_visits_only_resources_with_news() {
    let mut client = ClientState::new(ClientConfig::default(), 100);
    let open = |client: &mut ClientState, id: &str| {
        assert!(client.open(id, 0, Mode::Safe, 1.0, at(0.0)));
    };
    for number in 0..1_000 {
        open(&mut client, &format!("{number:04}"));
    }
    assert_eq!(client.take_changed(at(0.0)).len(), 1_000);
    assert_eq!(client.take_changed(at(0.0)).len(), 0);
    let request = client.request(|_| 0.0, at(0.0));
    assert_eq!(
        client.take_changed(at(0.0)).len(),
        1_000,
        "all are asked for"
    );
    let granted = request.asks.iter().map(|ask| Granted {
        resource: ask.resource.clone(),
        ..granted(1.0, 60, 20)
    });
    let response = Response {
        granted: granted.collect(),
        refused: Vec::new(),
    };
    assert!(client.handle_response(request.sequence, &response, 0.0, at(0.0)));
    assert_eq!(client.take_changed(at(0.0)).len(), 1_000);
    open(&mut client, "new");
    client.ask("0007", 5.0);
    let changed = client.take_changed(at(1.0));
    assert_eq!(changed, [Arc::from("0007"), Arc::from("new")]);
    // The others are not due, so they are not asked for either.
    let request = client.request(|_| 0.0, at(2.0));
    let asked: Vec<_> = request.asks.iter().map(|ask| &*ask.resource).collect();
    assert_eq!(asked, ["0007", "new"]);
    assert_eq!(client.take_changed(at(2.0)).len(), 2);
    assert_eq!(client.take_changed(at(70.0)).len(), 1_000, "leases end");
}
