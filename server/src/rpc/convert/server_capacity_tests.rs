//! Requests and answers survive the way over the wire unchanged; the server names each invalid field that it refuses.

use std::sync::Arc;

use doorward_engine::claims::{DemandCurve, ServerDemand};
use doorward_engine::messages::Has;
use doorward_engine::templates::{Algorithm, AlgorithmKind, Shrink};
use tonic::Status as RpcStatus;

use super::*;

const WALL: Duration = Duration::from_secs(1_700_000_000);

fn amount(value: f64) -> Amount {
    Amount::new(value).expect("an amount")
}

/// Reads a child server's whole request. Returns it with the refusals of its invalid resources.
fn get_server_capacity(
    message: &wire::GetServerCapacityRequest,
) -> Result<(GetServerCapacity, Vec<wire::Refusal>), RpcStatus> {
    let mut read = ReadRequest::begin(message, None)?;
    read.read(&message.resource, WALL);
    Ok((read.request, read.refused))
}

fn resource() -> ResourceId {
    ResourceId::new("db").expect("an id")
}

/// Returns a report of a lease that lasts for `expires_in` ms.
fn has(capacity: f64, expires_in: u64) -> Option<Has> {
    Some(Has {
        expires_in: Some(Duration::from_millis(expires_in)),
        ..Has::untimed(amount(capacity))
    })
}

/// Returns a parent's answer about these resources.
fn answered(
    response: Vec<wire::ServerCapacityResourceResponse>,
) -> wire::GetServerCapacityResponse {
    wire::GetServerCapacityResponse {
        response,
        ..wire::GetServerCapacityResponse::default()
    }
}

fn algorithm(kind: i32, lease_length: i64) -> wire::Algorithm {
    wire::Algorithm {
        kind,
        lease_length,
        refresh_interval: 5,
        ..wire::Algorithm::default()
    }
}

fn request() -> GetServerCapacity {
    let (wants, clients) = (amount(1009.0), 10.0);
    let curve = DemandCurve::parse(&[1.0, 1000.0], &[10.0, 1009.0], wants, clients);
    let band = BandDemand {
        priority: 3,
        clients,
        wants,
        curve: curve.expect("a curve"),
    };
    GetServerCapacity {
        caller: None,
        incarnation: None,
        mastership: None,
        epoch: Some(7),
        server: HolderName::new("eu").expect("a name"),
        sequence: Some(7),
        height: 2,
        address: Some("10.0.0.7:6970".into()),
        asks: vec![ServerAsk {
            budget: None,
            unreported: Amount::ZERO,
            reported: Vec::new(),
            resource: resource(),
            demand: Arc::new(ServerDemand::new(vec![band])),
            has: has(40.0, 1234),
            outstanding: has(50.0, 777),
            learning: true,
        }],
    }
}

#[test]
fn a_request_arrives_as_it_was_sent() {
    let sent = request();
    let message = get_server_capacity_request(&sent, WALL);
    let (got, refused) = get_server_capacity(&message).expect("valid");
    assert_eq!(got, sent);
    assert_eq!(refused, []);
}

#[test]
fn a_part_of_a_client_counts_as_one_and_a_rounding_does_not() {
    for (clients, counted) in [(0.3, 1), (1.3, 2), (3.000_000_000_1, 3), (1e-12, 0)] {
        let mut sent = request();
        let wants = amount(5.0);
        let band = BandDemand {
            priority: 0,
            clients,
            wants,
            curve: DemandCurve::of_equals(wants, clients),
        };
        sent.asks[0].demand = Arc::new(ServerDemand::new(vec![band]));
        let message = get_server_capacity_request(&sent, WALL);
        assert_eq!(message.resource[0].wants[0].num_clients, counted);
        let (_, refused) = get_server_capacity(&message).expect("valid");
        assert_eq!(refused.is_empty(), counted > 0, "{clients}: {refused:?}");
    }
}

#[test]
fn a_request_that_is_too_large_goes_in_parts() {
    let asks = (0..10).map(|number| ServerAsk {
        resource: ResourceId::new(&format!("db/{number}")).expect("an id"),
        ..request().asks.remove(0)
    });
    let sent = GetServerCapacity {
        asks: asks.collect(),
        ..request()
    };
    let whole = get_server_capacity_request(&sent, WALL);
    assert_eq!(split(whole.clone(), usize::MAX), vec![whole.clone()]);
    for bytes_max in [1, 200, 300, whole.encoded_len() - 1] {
        let parts = split(whole.clone(), bytes_max);
        assert!(parts.len() > 1, "{bytes_max} bytes");
        for part in &parts {
            let fits = part.encoded_len() <= bytes_max || part.resource.len() == 1;
            assert!(fits, "{} of {bytes_max} bytes", part.encoded_len());
            assert_eq!((part.sequence, part.height), (Some(7), Some(2)));
            assert_eq!(part.server_id, "eu");
        }
        let resources = parts.into_iter().flat_map(|part| part.resource);
        assert!(resources.eq(whole.resource.iter().cloned()));
    }
}

#[test]
fn an_answer_arrives_as_it_was_sent() {
    let lease = ServerLease {
        budget: None,
        decided: Some(true),
        granted_by: None,
        resource: resource(),
        capacity: amount(40.0),
        expires_in: Duration::from_millis(60_001),
        refresh_in: Duration::from_millis(1_250),
        algorithm: Some(Algorithm {
            budget: None,
            kind: AlgorithmKind::PriorityBands,
            lease_length: Duration::from_millis(60_500),
            refresh_interval: Duration::from_millis(250),
            learning_mode_duration: Duration::ZERO,
            shrink: Shrink::Immediate,
            decay_factor: 0.3,
            min_shares: [(-4, 0.25)].into(),
        }),
        terms: ParentTerms {
            learning_for: Some(Duration::from_secs(9)),
            safe_is_static: true,
            predecessor_for: None,
            accounted: Vec::new(),
            inherited: None,
            share: amount(60.0),
            bands: vec![(0, amount(15.0)), (9, amount(25.0))],
            per_client: Some(amount(1.5)),
            learning: true,
            reserved: Some(amount(55.0)),
            reserved_for: Some(Duration::from_millis(70_000)),
            inherited_for: Some(Duration::from_millis(12_345)),
            safe_capacity: Some(SafeCapacity::Unlimited),
            holder_bounds: HolderBounds {
                wants_max: Some(amount(7.5)),
                subclients_max: Subclients::new(500.0).ok(),
            },
        },
        sequence: Some(8),
    };
    let sent = GetServerCapacityReply {
        leases: vec![lease],
        refused: vec![Refusal::new(resource(), RefusalReason::NotReady)],
        ancestors: vec!["eu".to_owned(), "root".to_owned()],
    };
    let message = get_server_capacity_response(sent.clone(), Vec::new(), WALL);
    let got = parents_answer(message, WALL);
    assert_eq!(got.reply, sent);
    assert_eq!(got.nonsense, []);
}

#[test]
fn a_child_of_the_old_kind_is_taken_for_so_many_equals() {
    let wants = |priority, num_clients, wants| wire::PriorityBandAggregate {
        priority,
        num_clients,
        wants,
        ..wire::PriorityBandAggregate::default()
    };
    let message = wire::GetServerCapacityRequest {
        server_id: "old".to_owned(),
        resource: vec![wire::ServerCapacityResourceRequest {
            resource_id: "db".to_owned(),
            wants: vec![wants(0, 4, 100.0), wants(1, 0, 5.0)],
            ..wire::ServerCapacityResourceRequest::default()
        }],
        ..wire::GetServerCapacityRequest::default()
    };
    let (got, refused) = get_server_capacity(&message).expect("valid");
    assert_eq!(refused, []);
    assert_eq!(got.height, 1);
    let ask = &got.asks[0];
    assert_eq!((ask.has, ask.outstanding), (None, None));
    assert!(!ask.learning);
    assert_eq!(ask.demand.clients(), 5.0);
    assert_eq!(ask.demand.bands()[0].curve.demand_at(10.0), 40.0);
}

#[test]
fn what_a_child_cannot_mean_is_refused_by_name() {
    type Change = fn(&mut wire::ServerCapacityResourceRequest);
    let cases: [(Change, &str); 7] = [
        (|r| r.resource_id.clear(), "resource_id is empty"),
        (|r| r.outstanding = Some(f64::NAN), "outstanding is not"),
        (|r| r.wants[0].wants = -1.0, "priority 3: wants is -1"),
        (|r| r.wants[0].num_clients = -1, "num_clients is -1"),
        (|r| r.wants[0].level[0] = 5000.0, "levels must rise"),
        (|r| r.wants[0].num_clients = 1, "more than 1 clients can"),
        (|r| r.wants.push(r.wants[0].clone()), "3 is given twice"),
    ];
    for (change, message) in cases {
        let mut request = get_server_capacity_request(&request(), WALL);
        change(&mut request.resource[0]);
        let (got, refused) = get_server_capacity(&request).expect("the rest is valid");
        assert_eq!(got.asks, []);
        assert!(refused[0].message().contains(message), "{:?}", refused[0]);
    }
    let nobody = wire::GetServerCapacityRequest::default();
    assert!(get_server_capacity(&nobody).is_err());
}

#[test]
fn a_parent_of_the_old_kind_is_understood() {
    let message = answered(vec![wire::ServerCapacityResourceResponse {
        resource_id: "db".to_owned(),
        gets: wire::Lease {
            expiry_time: 1_700_000_060,
            refresh_interval: 8,
            capacity: 12.5,
            ..wire::Lease::default()
        },
        ..wire::ServerCapacityResourceResponse::default()
    }]);
    let mut asked = request();
    let mut unknown = asked.asks[0].clone();
    unknown.resource = ResourceId::new("nobody-knows").expect("an id");
    asked.asks.push(unknown.clone());
    let mut answer = parents_answer(message, WALL);
    refuse_unanswered(&asked, &mut answer);
    let lease = &answer.reply.leases[0];
    assert_eq!(lease.expires_in, Duration::from_secs(60));
    assert_eq!(lease.refresh_in, Duration::from_secs(8));
    assert_eq!([lease.capacity, lease.terms.share], [amount(12.5); 2]);
    assert_eq!(lease.algorithm, None);
    let refusal = Refusal::new(unknown.resource, RefusalReason::UnknownResource);
    assert_eq!(answer.reply.refused, [refusal]);
}

#[test]
fn what_a_parent_cannot_mean_is_named_and_changes_nothing() {
    type Change = fn(&mut wire::ServerCapacityResourceResponse);
    const NOT_A_NUMBER: wire::PriorityBandGrant = wire::PriorityBandGrant {
        priority: 1,
        capacity: f64::NAN,
    };
    let cases: [(Change, &str); 7] = [
        (|r| r.gets.capacity = -5.0, "gets.capacity is -5"),
        (|r| r.gets.capacity = f64::NAN, "gets.capacity is not"),
        (|r| r.gets.capacity = f64::INFINITY, "gets.capacity is inf"),
        (|r| r.share = Some(f64::INFINITY), "share is inf"),
        (|r| r.band.push(NOT_A_NUMBER), "band 1"),
        (
            |r| r.algorithm = Some(algorithm(77, 60)),
            "kind 77 is unknown",
        ),
        (|r| r.algorithm = Some(algorithm(3, -1)), "lease_length"),
    ];
    for (change, message) in cases {
        let mut answer = wire::ServerCapacityResourceResponse {
            resource_id: "db".to_owned(),
            ..wire::ServerCapacityResourceResponse::default()
        };
        change(&mut answer);
        let answer = parents_answer(answered(vec![answer]), WALL);
        assert_eq!(answer.reply.leases, []);
        let (_, problem) = &answer.nonsense[0];
        assert!(problem.contains(message), "{problem}");
    }
}

#[test]
fn what_a_parent_tells_is_bounded() {
    let ages = Some(u64::MAX);
    let mut names: Vec<String> = (0..70).map(|number| format!("n{number}")).collect();
    names[1] = "x".repeat(1_000_000);
    names[2] = "\u{1b}[2J".to_owned();
    let message = wire::GetServerCapacityResponse {
        response: vec![
            wire::ServerCapacityResourceResponse {
                resource_id: "db".to_owned(),
                gets: wire::Lease {
                    expires_in_ms: ages,
                    refresh_in_ms: ages,
                    capacity: 1.0,
                    ..wire::Lease::default()
                },
                reserved_for_ms: ages,
                inherited_for_ms: ages,
                predecessor_for_ms: ages,
                learning_for_ms: ages,
                ..wire::ServerCapacityResourceResponse::default()
            },
            wire::ServerCapacityResourceResponse {
                resource_id: "old".to_owned(),
                gets: wire::Lease {
                    expiry_time: i64::MAX,
                    refresh_interval: i64::MAX,
                    capacity: 1.0,
                    ..wire::Lease::default()
                },
                algorithm: Some(wire::Algorithm {
                    parameters: vec![wire::NamedParameter {
                        name: format!("min_share.\u{202e}{}", "x".repeat(1_000_000)),
                        value: Some("1".to_owned()),
                    }],
                    ..algorithm(wire::algorithm::Kind::PriorityBands.into(), 60)
                }),
                ..wire::ServerCapacityResourceResponse::default()
            },
        ],
        ancestor: names,
        ..wire::GetServerCapacityResponse::default()
    };
    let answer = parents_answer(message, WALL);
    let week = Duration::from_secs(7 * 24 * 3600);
    let lease = &answer.reply.leases[0];
    assert_eq!(lease.expires_in, week);
    let terms = &lease.terms;
    assert_eq!([terms.reserved_for, terms.inherited_for], [Some(week); 2]);
    assert_eq!([terms.predecessor_for, terms.learning_for], [Some(week); 2]);
    let expected = [0].into_iter().chain(3..64).map(|it| format!("n{it}"));
    assert!(expected.eq(answer.reply.ancestors));
    let problem = &answer.nonsense[0].1;
    assert!(problem.len() < 2_000, "it is cut");
    assert!(!problem.contains('\u{202e}'), "{problem}");
}
