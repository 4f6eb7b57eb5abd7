//! Calls without streams, compared with the same calls as tonic serves them.

use std::future::poll_fn;
use std::net::Ipv4Addr;
use std::pin::Pin;
use std::time::Duration;

use axum::body::Body as AxumBody;
use doorward::rules::Rules;
use doorward_door::Door;
use doorward_door::paths::Paths;
use doorward_door::visit::Visit;
use doorward_edge::records::Records;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::doorman as wire;
use doorward_proto::envoy::ratelimit::rate_limit_descriptor::Entry;
use doorward_proto::envoy::ratelimit::rate_limit_service_server::RateLimitServiceServer;
use doorward_proto::envoy::ratelimit::{RateLimitDescriptor, RateLimitRequest, RateLimitResponse};
use prost::Message;
use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;
use tonic::codegen::http::HeaderMap;

use super::*;
use crate::clock::Clock;
use crate::edge;
use crate::flags::LimitFlags;
use crate::replica_handle::ReplicaHandle;
use crate::rpc::bindings::Bindings;
use crate::status::ServerState;

#[test]
fn a_path_names_the_service_whole() {
    for (path, expected) in [
        ("/doorman.Capacity/GetCapacity", true),
        ("/doorman.Capacity/Unheard", true),
        ("/doorman.Capacity", false),
        ("/doorman.CapacityStream/Get", false),
        ("doorman.Capacity/GetCapacity", false),
        ("/grpc.health.v1.Health/Check", false),
    ] {
        assert_eq!(is_for_capacity(path), expected, "{path}");
    }
}

/// A limit whose state does not change with time, since it is full.
const RULES: &str =
    "{domain: api, descriptors: [{key: user, rate_limit: {rate: 5/s, algorithm: token_bucket}}]}";

/// A server with 100 of `db`, and a connection to it.
struct Fixture {
    services: Services,
    node: Arc<ReplicaHandle>,
    door: Arc<Door>,
}

/// An answer, as its caller sees it.
#[derive(Debug, PartialEq)]
struct Seen {
    headers: HeaderMap,
    data: Vec<u8>,
    trailers: Option<HeaderMap>,
}

impl Fixture {
    fn new() -> Self {
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("db".to_owned()),
            capacity: Some(100.0),
            kind: Some(AlgorithmKind::FairShare),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(Duration::from_secs(5)),
            ..TemplateSpec::default()
        }])
        .unwrap();
        let node = ReplicaHandle::new(
            doorward_engine::node::Config::default(),
            templates,
            Clock::start(),
        );
        let node = Arc::new(node);
        let text = String::new;
        let state = Arc::new(ServerState::new(text(), text(), text(), Arc::clone(&node)));
        let limits = state.limits();
        limits.set_bounds(&LimitFlags::default().of_door(20_000));
        let looking = Arc::new(Semaphore::new(1));
        let door = Door::new(limits.of_grpc(), Paths::default(), looking);
        let edge = edge::start(&state, Records::default());
        edge.set_rules(Rules::load(&[("api.yaml", RULES)]).unwrap());
        let rls = Rls::new(edge);
        let service = CapacityService {
            state,
            stop: CancellationToken::new(),
            names: Arc::new(Bindings::new(false, u64::MAX)),
        };
        let others = Routes::new(RateLimitServiceServer::new(rls.clone()));
        Self {
            services: Services::new(service, Some(rls), others),
            node,
            door,
        }
    }

    fn become_master(&self) {
        let master = Mastership::Master { epoch: None };
        self.node
            .change(|node, now| node.handle_mastership(master, now));
    }

    /// Returns a call that has arrived with this body.
    async fn body(&self, body: &[u8]) -> RequestBody<AxumBody> {
        let caller = CallerId::of(Ipv4Addr::LOCALHOST.into());
        let visit = Visit {
            door: Arc::clone(&self.door),
            connection: self.door.admit(caller, None).unwrap(),
        };
        let body = AxumBody::from(body.to_vec());
        let mut body = RequestBody::new(body, visit, false);
        poll_fn(|cx| body.poll_only(cx)).await.unwrap();
        body
    }

    /// Calls a method with this body. tonic answers a call that names an encoding, even `identity`.
    async fn call(&self, path: &str, body: &[u8], encoding: Option<&'static str>) -> Seen {
        let body = self.body(body).await;
        let mut request = Request::builder().uri(path).header(CLIENT, "envoy-1");
        if let Some(encoding) = encoding {
            request = request.header("grpc-encoding", encoding);
        }
        let response = self.services.answer(request.body(body).unwrap()).await;
        let (head, mut body) = response.into_parts();
        let mut seen = Seen {
            headers: head.headers,
            data: Vec::new(),
            trailers: None,
        };
        while let Some(frame) = poll_fn(|cx| Pin::new(&mut body).poll_frame(cx)).await {
            match frame.unwrap().into_data() {
                Ok(data) => seen.data.extend_from_slice(&data),
                Err(trailers) => seen.trailers = Some(trailers.into_trailers().unwrap()),
            }
        }
        seen
    }
}

/// Returns a message as it stands in a body.
fn framed(compressed: u8, message: &[u8]) -> Vec<u8> {
    let length = u32::try_from(message.len()).unwrap().to_be_bytes();
    [&[compressed], &length[..], message].concat()
}

/// Returns a client's request for some resources.
fn request(client: &str, resources: &[(&str, f64)]) -> Vec<u8> {
    let asks = resources
        .iter()
        .map(|(resource, wants)| wire::ResourceRequest {
            resource_id: (*resource).to_owned(),
            wants: *wants,
            ..wire::ResourceRequest::default()
        });
    let request = wire::GetCapacityRequest {
        client_id: client.to_owned(),
        resource: asks.collect(),
        ..wire::GetCapacityRequest::default()
    };
    request.encode_to_vec()
}

#[tokio::test]
async fn a_call_without_streams_is_answered_as_tonic_answers_it() {
    let lease = request("client", &[("db", 0.0)]);
    let unknown = request("client", &[("nosuch", 1.0), ("db", -1.0)]);
    let nobody = request("", &[("db", 1.0)]);
    /// Number of cases, from the first, that are answered without streams.
    const PLAIN: usize = 7;
    let cases = [
        ("a lease", framed(0, &lease)),
        ("refused resources", framed(0, &unknown)),
        ("an empty request", framed(0, &request("client", &[]))),
        ("a bad id", framed(0, &nobody)),
        ("no Protobuf", framed(0, b"\xff\xff\xff")),
        ("a text that is no UTF-8", framed(0, b"\x0a\x01\xff")),
        ("an empty message", framed(0, b"")),
        (
            "two messages",
            [framed(0, &lease), framed(0, &lease)].concat(),
        ),
        ("a compressed message", framed(1, &lease)),
        ("no message", Vec::new()),
    ];
    for is_master in [false, true] {
        let fixture = Fixture::new();
        if is_master {
            fixture.become_master();
        }
        for (place, (name, body)) in cases.iter().enumerate() {
            let taken = fixture.body(body).await.take_only_message();
            assert_eq!(taken.is_some(), place < PLAIN, "{name}");
            let by_tonic = fixture.call(GET_CAPACITY, body, Some("identity")).await;
            let seen = fixture.call(GET_CAPACITY, body, None).await;
            let by_tonic_again = fixture.call(GET_CAPACITY, body, Some("identity")).await;
            // All is equal except the times, which advance between the calls.
            let without_times = |seen: Seen| match seen.data.get(5..) {
                Some(message) => {
                    let mut answer = wire::GetCapacityResponse::decode(message).unwrap();
                    for response in &mut answer.response {
                        response.gets = wire::Lease::default();
                        response.learning_for_ms = None;
                    }
                    (seen.headers, seen.trailers, Some(answer))
                }
                None => (seen.headers, seen.trailers, None),
            };
            assert_eq!(seen.data.first(), by_tonic.data.first(), "{name}");
            let expected = without_times(by_tonic_again);
            assert_eq!(without_times(by_tonic), expected, "{name}");
            assert_eq!(without_times(seen), expected, "{name}, master: {is_master}");
        }
    }
}

#[tokio::test]
async fn a_request_of_envoy_is_answered_as_tonic_answers_it() {
    let request = |domain: &str, key: &str, hits: u64| {
        let entry = Entry {
            key: key.to_owned(),
            value: "ann".to_owned(),
        };
        let descriptor = RateLimitDescriptor {
            entries: vec![entry],
            hits_addend: Some(hits),
            ..RateLimitDescriptor::default()
        };
        let request = RateLimitRequest {
            domain: domain.to_owned(),
            descriptors: vec![descriptor],
            ..RateLimitRequest::default()
        };
        framed(0, &request.encode_to_vec())
    };
    let fixture = Fixture::new();
    // Without tonic's service, a call that is not answered without streams is refused.
    let mut alone = Fixture::new();
    alone.services.others = Routes::default();
    for (name, body, has_answer) in [
        ("a look", request("api", "user", 0), true),
        ("more than the burst", request("api", "user", 6), true),
        ("no rule", request("api", "group", 1), true),
        ("an unknown domain", request("nosuch", "user", 1), true),
        ("no domain", request("", "user", 1), false),
        ("no Protobuf", framed(0, b"\xff\xff\xff"), false),
    ] {
        let by_tonic = fixture
            .call(SHOULD_RATE_LIMIT, &body, Some("identity"))
            .await;
        let seen = alone.call(SHOULD_RATE_LIMIT, &body, None).await;
        let answer = seen.data.get(5..);
        assert_eq!(answer.is_some(), has_answer, "{name}");
        if let Some(message) = answer {
            let answer = RateLimitResponse::decode(message).unwrap();
            assert_eq!(answer.statuses.len(), 1, "{name}");
        }
        assert_eq!(seen, by_tonic, "{name}");
    }
}
