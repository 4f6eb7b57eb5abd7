//! Tables of valid and invalid requests.

use doorward_engine::messages::ClientLease;
use doorward_engine::templates::SafeCapacity;
use tonic::Code;

use super::*;

const WALL: Duration = Duration::from_millis(1_700_000_000_900);

fn asked(resource_id: &str, wants: f64) -> wire::ResourceRequest {
    wire::ResourceRequest {
        budget: None,
        resource_id: resource_id.to_owned(),
        priority: 0,
        has: None,
        wants,
    }
}

fn request(resource: Vec<wire::ResourceRequest>) -> wire::GetCapacityRequest {
    wire::GetCapacityRequest {
        incarnation: None,
        client_id: "client".to_owned(),
        resource,
        sequence: None,
    }
}

/// Converts an invalid ask beside a valid one. The valid one must always pass.
#[track_caller]
fn check_refused(bad: wire::ResourceRequest, message: &str) {
    let asks = vec![bad, asked("good", 1.0)];
    let (served, refused) = get_capacity(request(asks), None, WALL).expect("served in part");
    assert_eq!(served.asks.len(), 1, "{served:?}");
    assert_eq!(served.asks[0].resource.as_str(), "good");
    assert_eq!(refused.len(), 1, "{refused:?}");
    let reason = wire::refusal::Reason::InvalidRequest;
    assert_eq!(refused[0].reason(), reason, "{refused:?}");
    let said = refused[0].message();
    assert!(said.contains(message), "{said:?} does not say {message:?}");
}

#[test]
fn a_malformed_resource_id_is_refused_and_the_rest_is_served() {
    check_refused(asked("", 1.0), "resource_id is empty");
    check_refused(asked(&"x".repeat(257), 1.0), "the longest is 256");
    check_refused(asked("a\u{7}b", 1.0), "control character");
}

#[test]
fn malformed_wants_are_refused_and_the_rest_is_served() {
    check_refused(asked("r", f64::NAN), "r: wants is not a number");
    check_refused(asked("r", -1.0), "r: wants is -1, which is negative");
    check_refused(asked("r", f64::INFINITY), "above the largest amount");
    check_refused(asked("r", f64::NEG_INFINITY), "negative");
    check_refused(asked("r", 1e300), "above the largest amount");
}

#[test]
fn a_malformed_has_is_refused_and_the_rest_is_served() {
    for (capacity, message) in [
        (f64::NAN, "r: has.capacity is not a number"),
        (-0.5, "r: has.capacity is -0.5, which is negative"),
        (f64::INFINITY, "r: has.capacity is inf"),
        (1e16, "above the largest amount"),
    ] {
        let has = wire::Lease {
            capacity,
            ..wire::Lease::default()
        };
        let bad = wire::ResourceRequest {
            has: Some(has),
            ..asked("r", 1.0)
        };
        check_refused(bad, message);
    }
}

#[test]
fn a_resource_that_was_malformed_before_is_not_served_by_its_second_mention() {
    let asks = vec![asked("r", -1.0), asked("s", 1.0), asked("r", 1.0)];
    let (served, refused) = get_capacity(request(asks), None, WALL).expect("served in part");
    assert_eq!(served.asks.len(), 1);
    assert_eq!(served.asks[0].resource.as_str(), "s");
    assert_eq!(refused.len(), 2);
    assert!(refused[1].message().contains("more than once"));
}

#[test]
fn what_is_wrong_with_the_whole_request_is_an_invalid_argument() {
    let client = |client_id: &str| wire::GetCapacityRequest {
        client_id: client_id.to_owned(),
        ..request(vec![asked("r", 1.0)])
    };
    let many = (0..=RESOURCES_PER_REQUEST_MAX).map(|n| asked(&format!("r{n}"), 1.0));
    for (bad, message) in [
        (client(""), "client_id is empty"),
        (client(&"x".repeat(257)), "client_id is 257 bytes long"),
        (client("a\nb"), "client_id contains the control character"),
        (request(many.collect()), "names 1001 resources; at most"),
    ] {
        let error = get_capacity(bad, None, WALL).expect_err(message);
        assert_eq!(error.code(), Code::InvalidArgument);
        assert!(error.message().contains(message), "{error:?}");
    }
}

#[test]
fn the_ends_of_every_range_are_accepted() {
    for priority in [i64::MIN, -1, 0, i64::MAX] {
        let ask = wire::ResourceRequest {
            priority,
            ..asked("r", 0.0)
        };
        let (served, refused) = get_capacity(request(vec![ask]), None, WALL).expect("served");
        assert_eq!(refused, []);
        assert_eq!(served.asks[0].priority, priority);
    }
    let (served, _) = get_capacity(request(vec![asked("r", 1e15)]), None, WALL).expect("served");
    assert_eq!(served.asks[0].wants, Amount::MAX);
}

#[test]
fn how_long_a_lease_still_lasts_is_never_negative() {
    for (expires_in_ms, expiry_time, expected) in [
        (Some(1500), 1, Some(Duration::from_millis(1500))),
        (Some(u64::MAX), 0, Some(Duration::from_millis(u64::MAX))),
        (None, 0, None),
        (None, 1_700_000_010, Some(Duration::from_millis(9_100))),
        (None, 1_699_999_999, Some(Duration::ZERO)),
        (None, -5, Some(Duration::ZERO)),
        (None, i64::MIN, Some(Duration::ZERO)),
    ] {
        let lease = wire::Lease {
            expiry_time,
            expires_in_ms,
            ..wire::Lease::default()
        };
        let has = has(&lease, WALL).expect("valid");
        assert_eq!(has.expires_in, expected, "{lease:?}");
    }
}

#[test]
fn the_end_of_a_lease_is_rounded_down_and_its_refresh_is_at_least_a_second_for_old_peers() {
    let capacity = Amount::new(2.5).expect("an amount");
    let lease = |expires_in, refresh_in| lease_message(capacity, expires_in, refresh_in, WALL);
    let refresh_in = Duration::from_millis(5_999);
    let long = lease(Duration::from_micros(60_050_999), refresh_in);
    assert_eq!(long.expiry_time, 1_700_000_060);
    assert_eq!(long.expires_in_ms, Some(60_050));
    assert_eq!(long.refresh_interval, 5);
    assert_eq!(long.refresh_in_ms, Some(5_999));
    let short = lease(Duration::from_millis(50), Duration::from_millis(20));
    // WALL + 50 ms, rounded down.
    assert_eq!(short.expiry_time, 1_700_000_000);
    assert_eq!(short.refresh_interval, 1);
    assert_eq!(short.refresh_in_ms, Some(20));
}

#[test]
fn no_limit_is_minus_one_on_the_wire() {
    let answer = answered(ClientLease {
        limited_by: LimitedBy::Learning,
        learning_for: Some(Duration::from_micros(8_999_001)),
        safe_capacity: Some(SafeCapacity::Unlimited),
        ..nothing()
    });
    assert_eq!(answer.safe_capacity, Some(-1.0));
    assert_eq!(answer.limited_by(), wire::LimitedBy::Learning);
    assert_eq!(answer.learning_for_ms, Some(9_000), "rounded up");
    assert_eq!(answer.decided, Some(true));
}

/// Returns a lease of 0 capacity for two seconds.
fn nothing() -> ClientLease {
    ClientLease {
        budget: None,
        limited_by: LimitedBy::Wants,
        learning_for: None,
        decided: true,
        sequence: None,
        granted_by: None,
        resource: ResourceId::new("r").expect("an id"),
        capacity: Amount::ZERO,
        expires_in: Duration::from_secs(2),
        refresh_in: Duration::from_secs(1),
        safe_capacity: None,
    }
}

/// Returns the answer to the only client.
fn answered(lease: ClientLease) -> wire::ResourceResponse {
    let reply = GetCapacityReply {
        leases: vec![lease],
        refused: Vec::new(),
    };
    let response = get_capacity_response(reply, Vec::new(), WALL);
    assert_eq!(response.mastership, None);
    response.response.into_iter().next().expect("an answer")
}

#[test]
fn only_one_who_is_not_the_master_redirects() {
    let follower = Mastership::Elsewhere {
        master_address: "there:1".to_owned(),
        epoch: Some(3),
    };
    assert_eq!(redirection(&follower).master_address(), "there:1");
    assert_eq!(redirection(&Mastership::Unknown).master_address, None);
    let own = discovery_response(&Mastership::Master { epoch: Some(9) }, "here:1");
    assert!(own.is_master);
    assert_eq!(own.mastership.master_address(), "here:1");
    assert_eq!(own.mastership.epoch(), 9);
    assert!(!discovery_response(&follower, "here:1").is_master);
}

#[test]
fn a_release_passes_over_what_nobody_can_hold() {
    let release = wire::ReleaseCapacityRequest {
        budget: Vec::new(),
        incarnation: None,
        client_id: "client".to_owned(),
        resource_id: vec![String::new(), "r".to_owned(), "x".repeat(300)],
        sequence: Some(4),
    };
    let release = release_capacity(&release, None).expect("valid");
    assert_eq!(release.resources.len(), 1);
    assert_eq!(release.sequence, Some(4));
}

#[test]
fn of_wants_that_were_not_decided_about_nothing_is_said_to_be_all() {
    for (decided, limited_by, expected) in [
        (true, LimitedBy::Wants, Some(wire::LimitedBy::Wants)),
        (false, LimitedBy::Wants, None),
        (false, LimitedBy::Share, Some(wire::LimitedBy::Share)),
    ] {
        let response = answered(ClientLease {
            limited_by,
            decided,
            ..nothing()
        });
        let said = response.limited_by.map(|_| response.limited_by());
        assert_eq!((said, response.decided), (expected, Some(decided)));
    }
}
