//! Requests of clients and child servers in any order, with time passing and mastership changing in between. The
//! server's books add up, it promises at most the capacity, and its answers can be sent.

use std::fmt::Debug;
use std::sync::LazyLock;
use std::time::Duration;

use doorward_engine::id::Caller;
use doorward_engine::messages::{
    GetCapacity, GetCapacityReply, GetServerCapacity, GetServerCapacityReply, Via,
};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{Shrink, Templates};
use doorward_engine::time::Time;
use doorward_proto::doorman as wire;
use doorward_server::rpc::convert;
use doorward_server::rpc::convert::server_capacity::ReadRequest;
use prost::Message;
use tonic::Status;

use crate::conversation::{Conversation, Event, STEPS_MAX, WAIT_MAX_MS};
use crate::mutate::Format;
use crate::runner::fuzz;

/// Parses a child server's whole request. Returns it with the refusals of its invalid resources.
pub(crate) fn read_whole(
    message: &wire::GetServerCapacityRequest,
    caller: Option<Caller>,
    wall: Duration,
) -> Result<(GetServerCapacity, Vec<wire::Refusal>), Status> {
    let mut read = ReadRequest::begin(message, caller)?;
    read.read(&message.resource, wall);
    Ok((read.request, read.refused))
}

/// The wall clock at the start of a conversation: a day in 2026.
pub const WALL: Duration = Duration::from_secs(1_795_000_000);

/// Templates, at first and later: the same resources, with more and with less capacity.
static TEMPLATES: LazyLock<[Templates; 4]> = LazyLock::new(|| {
    let all = |capacity: u32, learning: &str| {
        let mut text = "resources:\n".to_owned();
        for kind in [
            "NO_ALGORITHM",
            "STATIC",
            "PROPORTIONAL_SHARE",
            "FAIR_SHARE",
            "PRIORITY_BANDS",
        ] {
            let shrinks = ["", ", parameters: [{name: shrink, value: immediate}]"];
            for (name, parameters) in ["", "now/"].iter().zip(shrinks) {
                text += &format!(
                    "- identifier_glob: {name}{kind}/*\n  capacity: {capacity}\n  algorithm: {{kind: {kind}, \
                     lease_length: 60, refresh_interval: 5{learning}{parameters}}}\n"
                );
            }
        }
        doorward_documents::parse_yaml(&text, "fuzz").unwrap()
    };
    [
        all(100, ", learning_mode_duration: 0"),
        all(100, ""),
        all(10, ", learning_mode_duration: 0"),
        Templates::default(),
    ]
});

/// A node, and the facts that are known from outside.
struct FuzzedServer {
    node: Node,
    now: Time,
    /// Whether the leases may exceed the capacity, because the capacity was larger before.
    was_lowered: bool,
}

#[test]
fn requests() {
    fuzz!("requests", Format::Wire, share: 24, play);
}

fn play(bytes: &[u8]) {
    let Ok(conversation) = Conversation::decode(bytes) else {
        return;
    };
    let mut world = FuzzedServer {
        node: Node::new(Config::default(), TEMPLATES[0].clone()),
        now: Time::ZERO,
        was_lowered: false,
    };
    world.win(1);
    for step in conversation.steps.into_iter().take(STEPS_MAX) {
        if let Some(event) = step.event {
            world.happen(event);
            world.check();
        }
    }
}

impl FuzzedServer {
    fn happen(&mut self, event: Event) {
        match event {
            Event::GetCapacity(bytes) => self.get_capacity(&bytes),
            Event::GetServerCapacity(bytes) => self.get_server_capacity(&bytes, Via::Poll),
            Event::OnStream(bytes) => self.get_server_capacity(&bytes, Via::Stream),
            Event::ReleaseCapacity(bytes) => self.release(&bytes),
            Event::Wait(millis) => self.wait(millis),
            Event::Mastership(0) => self.node.handle_mastership(Mastership::Unknown, self.now),
            Event::Mastership(epoch) => self.win(epoch),
            Event::Templates(number) => {
                let number = usize::try_from(number).unwrap_or(0) % TEMPLATES.len();
                self.was_lowered = true;
                self.node
                    .handle_templates(TEMPLATES[number].clone(), self.now);
            }
            Event::Answer(_) | Event::Lost(_) => {}
        }
        while self.node.poll_event().is_some() {}
        for (_, reply) in self.node.poll_pushes(self.now).children {
            send_to_server(reply);
        }
    }

    fn win(&mut self, epoch: u64) {
        let epoch = Some(epoch);
        self.node
            .handle_mastership(Mastership::Master { epoch }, self.now);
    }

    fn wait(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis.min(WAIT_MAX_MS));
        due(&mut self.node, self.now);
    }

    fn get_capacity(&mut self, bytes: &[u8]) {
        let Ok(message) = wire::GetCapacityRequest::decode(bytes) else {
            return;
        };
        let asked = message.resource.len();
        let Ok((request, refused)) = convert::get_capacity(message, caller(bytes), self.wall())
        else {
            return;
        };
        if let Outcome::Served(reply) = self.node.handle_get_capacity(&request, self.now) {
            let answered = reply.leases.len() + reply.refused.len() + refused.len();
            assert_eq!(answered, asked, "every resource is answered");
            check_leases(&request, &reply);
            sent(&convert::get_capacity_response(reply, refused, self.wall()));
        }
    }

    fn get_server_capacity(&mut self, bytes: &[u8], via: Via) {
        let Ok(message) = wire::GetServerCapacityRequest::decode(bytes) else {
            return;
        };
        let Ok((request, refused)) = read_whole(&message, caller(bytes), self.wall()) else {
            return;
        };
        if via == Via::Stream {
            let now = self.now;
            self.node.handle_subscription(&request.server, true, now);
        }
        let reply = self
            .node
            .handle_get_server_capacity(&request, via, self.now);
        if let Ok(Outcome::Served(reply)) = reply {
            for lease in &reply.leases {
                assert!(lease.refresh_in < lease.expires_in, "{lease:?}");
            }
            let response =
                convert::server_capacity::get_server_capacity_response(reply, refused, self.wall());
            sent(&response);
        }
    }

    fn release(&mut self, bytes: &[u8]) {
        let Ok(message) = wire::ReleaseCapacityRequest::decode(bytes) else {
            return;
        };
        let Ok(request) = convert::release_capacity(&message, caller(bytes)) else {
            return;
        };
        let outcome = self.node.handle_release_capacity(&request, self.now);
        sent(&convert::release_capacity_response(&request, outcome));
    }

    fn wall(&self) -> Duration {
        WALL + self.now.since(Time::ZERO)
    }

    fn check(&self) {
        self.node.assert_consistent();
        for resource in self.node.snapshots_after(None, usize::MAX, self.now) {
            let sums = [
                resource.wants,
                resource.granted,
                resource.reserved,
                resource.clients,
            ];
            assert!(
                sums.iter().all(|sum| sum.is_finite() && *sum >= 0.0),
                "{resource:?}"
            );
            assert!(resource.granted <= resource.reserved, "{resource:?}");
            // Capacity that shrinks at once may still be in use, as a child server reports it.
            let promises =
                resource.kind.promises_total() && resource.shrink == Shrink::Acknowledged;
            if promises && !self.was_lowered {
                assert!(resource.reserved <= resource.capacity, "{resource:?}");
            }
        }
    }
}

/// Does all work that is due at a time.
pub fn due(node: &mut Node, now: Time) {
    // Each call does a bounded amount of work, and there is little of it.
    for _ in 0..1_000 {
        match node.poll_timeout() {
            Some(due) if due <= now => node.handle_timeout(now),
            _ => return,
        }
    }
    panic!("what is due is due again: {:?}", node.poll_timeout());
}

/// Checks invariants of leases, for any request.
pub fn check_leases(request: &GetCapacity, reply: &GetCapacityReply) {
    for lease in &reply.leases {
        let ask = request
            .asks
            .iter()
            .find(|ask| ask.resource == lease.resource);
        let ask = ask.expect("what is answered was asked");
        assert!(
            !lease.decided || lease.capacity <= ask.wants,
            "{ask:?} {lease:?}"
        );
        assert!(lease.refresh_in < lease.expires_in, "{lease:?}");
    }
}

fn send_to_server(reply: GetServerCapacityReply) {
    let response = convert::server_capacity::get_server_capacity_response(reply, Vec::new(), WALL);
    sent(&response);
}

/// Checks that a message can be sent, and reads as the same one.
#[track_caller]
pub fn sent<T: Message + Default + PartialEq + Debug>(message: &T) {
    let bytes = message.encode_to_vec();
    let read = T::decode(bytes.as_slice());
    assert_eq!(read.as_ref(), Ok(message));
}

/// Returns one of three addresses of callers, or none.
fn caller(bytes: &[u8]) -> Option<Caller> {
    let number = bytes.len() % 4;
    (number > 0).then(|| Caller::new(number as u128))
}
