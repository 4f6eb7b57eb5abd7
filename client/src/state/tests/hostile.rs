//! Answers of broken or hostile servers.

use proptest::prelude::*;

use super::*;

/// Sends a request as soon as one is due, for a number of seconds, each answered at once. Returns their number.
fn requests(client: &mut ClientState, seconds: f64, answer: impl Fn() -> Response) -> u32 {
    let (mut now, mut count) = (at(0.0), 0);
    while now < at(seconds) {
        match client.next_step(now) {
            Step::Send => {
                let request = client.request(|_| 0.0, now);
                client.handle_response(request.sequence, &answer(), 0.0, now);
                count += 1;
                assert_ne!(client.next_step(now), Step::Send, "it asks in a busy loop");
            }
            Step::Release => unreachable!("nothing is closed"),
            Step::Wait(until) => {
                let until = until.expect("there is something to wait for");
                assert!(until > now, "it wakes in a busy loop");
                now = until;
            }
        }
    }
    count
}

fn with_spans(expires_in: Duration, refresh_in: Duration) -> Granted {
    Granted {
        expires_in,
        refresh_in,
        ..granted(8.0, 1, 1)
    }
}

const MILLISECOND: Duration = Duration::from_millis(1);

#[test]
fn leases_of_a_millisecond_are_refreshed_ten_times_a_second_and_no_more() {
    for refresh_in in [Duration::ZERO, MILLISECOND, Duration::from_secs(3)] {
        let mut client = client(Mode::Safe);
        let told = || answer(with_spans(MILLISECOND, refresh_in));
        assert_eq!(requests(&mut client, 10.0, told), 100, "{refresh_in:?}");
    }
}

#[test]
fn many_resources_with_refreshes_of_their_own_ask_no_more_often_than_one() {
    let mut client = client(Mode::Safe);
    for number in 0..50 {
        client.open(&format!("r{number}"), 0, Mode::Safe, 1.0, at(0.0));
    }
    let told = || {
        let of = |number: u64| Granted {
            resource: format!("r{number}"),
            refresh_in: Duration::from_millis(100 + 7 * number),
            ..granted(1.0, 60, 0)
        };
        Response {
            granted: (0..50).map(of).collect(),
            refused: Vec::new(),
        }
    };
    assert!(requests(&mut client, 10.0, told) <= 100);
}

#[test]
fn a_lower_floor_is_the_users_own_choice() {
    let config = ClientConfig {
        refresh_floor: Duration::ZERO,
        ..ClientConfig::default()
    };
    let mut client = ClientState::new(config, 100);
    client.open(R, 0, Mode::Safe, 10.0, at(0.0));
    let told = || answer(with_spans(MILLISECOND, Duration::ZERO));
    assert_eq!(requests(&mut client, 1.0, told), 100);
}

#[test]
fn a_lease_of_ages_counts_as_the_longest_that_a_template_allows() {
    let mut client = client(Mode::Pessimistic);
    let ages = Duration::from_millis(u64::MAX);
    let told = Granted {
        learning_for: Some(ages),
        ..with_spans(ages, ages)
    };
    exchange(&mut client, 0.0, 0.0, &answer(told));
    let week = 7.0 * 24.0 * 3600.0;
    let lease = client.resource(R).unwrap().lease(at(0.0)).unwrap();
    assert_eq!(lease.expires_at, at(week * 0.999));
    let learns = client.resource(R).unwrap().learning_until(at(0.0));
    assert_eq!(learns, Some(at(week)));
    check(&client, week, 0.0, Source::Mode);
    // The client asks again after the longest usual wait.
    waits_until(&client, 0.0, 60.0);
}

#[test]
fn amounts_that_no_server_may_give_are_refused_by_name() {
    let safe = |amount| Granted {
        safe_capacity: Some(Capacity::Limited(amount)),
        ..granted(8.0, 60, 5)
    };
    for amount in [
        f64::NAN,
        f64::INFINITY,
        f64::NEG_INFINITY,
        -1e-300,
        -1.5,
        1.000_001e15,
        f64::MAX,
    ] {
        for (told, what) in [
            (granted(amount, 60, 5), "the lease's capacity"),
            (safe(amount), "the safe capacity"),
        ] {
            let mut client = client(Mode::Safe);
            exchange(&mut client, 0.0, 0.0, &answer(granted(4.0, 60, 5)));
            exchange(&mut client, 5.0, 5.0, &answer(told));
            let expected = format!("{what} is {amount}; expected a number from 0 to 10^15");
            let trouble = client.resource(R).unwrap().trouble().cloned();
            assert_eq!(
                trouble,
                Some(Trouble {
                    kind: RefusalKind::Other,
                    message: expected
                })
            );
            // The previous lease is still valid.
            check(&client, 6.0, 4.0, Source::Lease);
        }
    }
    for amount in [0.0, 5e-324, 1e15] {
        let mut client = client(Mode::Safe);
        exchange(&mut client, 0.0, 0.0, &answer(granted(amount, 60, 5)));
        check(&client, 1.0, amount, Source::Lease);
    }
}

fn too_many(retry_in: Option<Duration>) -> Response {
    let mut response = refusal(RefusalKind::Other);
    for refused in &mut response.refused {
        refused.retry_in = retry_in;
    }
    response
}

#[test]
fn a_refusal_with_a_time_is_obeyed_even_if_the_wants_change() {
    for kind in [
        RefusalKind::Other,
        RefusalKind::NotReady,
        RefusalKind::Unknown,
    ] {
        let mut client = client(Mode::Safe);
        let mut told = too_many(Some(Duration::from_secs(20)));
        told.refused[0].kind = kind;
        exchange(&mut client, 0.0, 0.0, &told);
        client.ask(R, 11.0);
        waits_until(&client, 2.0, 20.0);
        exchange(&mut client, 20.0, 20.0, &answer(granted(5.0, 60, 5)));
        client.ask(R, 12.0);
        waits_until(&client, 20.0, 21.1);
    }
    // A refusal without a time does not hold changed wants back.
    let mut client = client(Mode::Safe);
    exchange(&mut client, 0.0, 0.0, &too_many(None));
    client.ask(R, 11.0);
    waits_until(&client, 0.5, 1.1);
}

#[test]
fn a_retry_delay_of_centuries_counts_as_a_minute() {
    for retry_in in [Duration::from_secs(500 * 365 * 86_400), Duration::MAX] {
        let mut client = client(Mode::Safe);
        exchange(&mut client, 0.0, 0.0, &too_many(Some(retry_in)));
        waits_until(&client, 0.0, 60.0);
    }
    let mut client = client(Mode::Safe);
    let request = client.request(|_| 0.0, at(0.0));
    client.handle_overloaded(request.sequence, Duration::MAX, 1.0, at(0.0));
    waits_until(&client, 0.0, 60.0);
}

fn any_span() -> impl Strategy<Value = Duration> {
    prop_oneof![
        Just(Duration::ZERO),
        (0..5_000_u64).prop_map(Duration::from_millis),
        (0..1_000_000_u64).prop_map(Duration::from_secs),
        any::<u64>().prop_map(Duration::from_millis),
        Just(Duration::MAX),
    ]
}

fn any_amount() -> impl Strategy<Value = f64> {
    prop_oneof![any::<f64>(), 0.0..100.0_f64, Just(1e15), Just(f64::NAN)]
}

prop_compose! {
    fn any_granted()(
        spans in (any_span(), any_span(), proptest::option::of(any_span())),
        capacity in any_amount(),
        safe in proptest::option::of(prop_oneof![
            Just(Capacity::Unlimited),
            any_amount().prop_map(Capacity::Limited),
        ]),
        decided in any::<Option<bool>>(),
        learns in any::<bool>(),
        // Of another resource, too.
        resource in "r|q",
    ) -> Granted {
        Granted { budget: None,
            resource,
            capacity,
            sequence: None,
            expires_in: spans.0,
            refresh_in: spans.1,
            learning_for: spans.2,
            safe_capacity: safe,
            limited_by: learns.then_some(LimitedBy::Learning),
            decided,
            granted_by: None,
        }
    }
}

prop_compose! {
    fn any_refused()(
        retry_in in proptest::option::of(any_span()),
        kind in proptest::sample::select(vec![
            RefusalKind::Unknown,
            RefusalKind::NotReady,
            RefusalKind::Other,
        ]),
    ) -> Refused {
        Refused { resource: R.to_owned(), kind, message: "no".to_owned(), retry_in }
    }
}

prop_compose! {
    fn any_response()(
        granted in proptest::collection::vec(any_granted(), 0..4),
        refused in proptest::collection::vec(any_refused(), 0..2),
    ) -> Response {
        Response { granted, refused }
    }
}

proptest! {
    /// With any answers, a client asks at most ten times a second and at least once a minute, wakes only a few times
    /// between, and allows no invalid amount.
    #[test]
    fn no_answers_make_a_client_ask_all_the_time_or_never(
        answers in proptest::collection::vec(any_response(), 1..40),
        mode in proptest::sample::select(vec![Mode::Safe, Mode::Optimistic, Mode::Pessimistic]),
        chance in 0.0..1.0_f64,
    ) {
        let mut client = ClientState::new(ClientConfig::default(), 100);
        client.open(R, 0, mode, 10.0, at(0.0));
        let mut now = at(0.0);
        let mut sent: Option<Time> = None;
        for response in &answers {
            let mut wakes = 0;
            while let Step::Wait(until) = client.next_step(now) {
                let until = until.expect("it asks again");
                prop_assert!(until > now);
                now = until;
                wakes += 1;
                prop_assert!(wakes < 700, "it wakes all the time");
            }
            if let Some(sent) = sent {
                let waited = now.since(sent);
                prop_assert!(waited >= Duration::from_millis(100), "{waited:?}");
                prop_assert!(waited <= Duration::from_secs(61), "{waited:?}");
            }
            sent = Some(now);
            let request = client.request(|_| 0.0, now);
            client.handle_response(request.sequence, response, chance, now);
            let allowed = client.allowance(R, now);
            if let Capacity::Limited(amount) = allowed.capacity {
                prop_assert!((0.0..=AMOUNT_MAX).contains(&amount), "{amount}");
            }
        }
    }
}
