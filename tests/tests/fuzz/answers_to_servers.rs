//! Answers of a parent to a server below the root, and that server's answers to its own clients and child servers.

use std::sync::LazyLock;
use std::time::Duration;

use doorward_engine::messages::{GetServerCapacity, Via};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_proto::doorman as wire;
use doorward_server::rpc::convert;
use prost::Message;

use crate::conversation::{Conversation, Event, STEPS_MAX, WAIT_MAX_MS};
use crate::mutate::Format;
use crate::requests::{WALL, check_leases, due, read_whole, sent};
use crate::runner::fuzz;

static TEMPLATES: LazyLock<Templates> = LazyLock::new(|| doorward_documents::built_in().unwrap());

/// A node below the root.
struct FuzzedChild {
    node: Node,
    now: Time,
    /// Its last request to the parent.
    asked: Option<GetServerCapacity>,
}

#[test]
fn answers_to_servers() {
    fuzz!("answers_to_servers", Format::Wire, share: 14, play);
}

fn play(bytes: &[u8]) {
    let Ok(conversation) = Conversation::decode(bytes) else {
        return;
    };
    let config = Config {
        name: "leaf".to_owned(),
        has_parent: true,
        ..Config::default()
    };
    let mut world = FuzzedChild {
        node: Node::new(config, TEMPLATES.clone()),
        now: Time::from_secs(1),
        asked: None,
    };
    let master = Mastership::Master { epoch: Some(1) };
    world.node.handle_mastership(master, world.now);
    for step in conversation.steps.into_iter().take(STEPS_MAX) {
        if let Some(event) = step.event {
            world.happen(event);
            world.ask();
            world.check();
        }
    }
}

impl FuzzedChild {
    fn happen(&mut self, event: Event) {
        match event {
            Event::GetCapacity(bytes) => {
                let Ok(message) = wire::GetCapacityRequest::decode(bytes.as_slice()) else {
                    return;
                };
                let Ok((request, refused)) = convert::get_capacity(message, None, WALL) else {
                    return;
                };
                if let Outcome::Served(reply) = self.node.handle_get_capacity(&request, self.now) {
                    check_leases(&request, &reply);
                    sent(&convert::get_capacity_response(reply, refused, WALL));
                }
            }
            Event::GetServerCapacity(bytes) | Event::OnStream(bytes) => {
                let Ok(message) = wire::GetServerCapacityRequest::decode(bytes.as_slice()) else {
                    return;
                };
                let Ok((request, refused)) = read_whole(&message, None, WALL) else {
                    return;
                };
                let reply = self
                    .node
                    .handle_get_server_capacity(&request, Via::Stream, self.now);
                if let Ok(Outcome::Served(reply)) = reply {
                    let response = convert::server_capacity::get_server_capacity_response(
                        reply, refused, WALL,
                    );
                    sent(&response);
                }
            }
            Event::Answer(bytes) => self.answered(&bytes),
            Event::Wait(millis) => {
                self.now = self.now + Duration::from_millis(millis.min(WAIT_MAX_MS));
                due(&mut self.node, self.now);
            }
            Event::Lost(_) => self.node.handle_upstream_lost(self.now),
            Event::ReleaseCapacity(_) | Event::Mastership(_) | Event::Templates(_) => {}
        }
        while self.node.poll_event().is_some() {}
    }

    /// Applies a parent's answer. An answer to request 1 is taken as one to the newest request.
    fn answered(&mut self, bytes: &[u8]) {
        let Ok(mut response) = wire::GetServerCapacityResponse::decode(bytes) else {
            return;
        };
        let newest = self.asked.as_ref().and_then(|asked| asked.sequence);
        for answer in &mut response.response {
            if answer.sequence == Some(1) {
                answer.sequence = newest;
            }
        }
        let is_old = response
            .response
            .iter()
            .all(|answer| answer.sequence.is_none());
        let mut answer = convert::server_capacity::parents_answer(response, WALL);
        if let Some(asked) = self.asked.as_ref().filter(|_| is_old) {
            convert::server_capacity::refuse_unanswered(asked, &mut answer);
        }
        self.node.handle_upstream_reply(&answer.reply, self.now);
        for (resource, problem) in answer.nonsense {
            self.node
                .handle_invalid_upstream_answer(&resource, problem, self.now);
        }
    }

    /// Sends the requests that are due.
    fn ask(&mut self) {
        let micros = u64::try_from(self.now.since(Time::ZERO).as_micros()).unwrap();
        for _ in 0..100 {
            let Some(request) = self.node.poll_upstream_request(micros, self.now) else {
                return;
            };
            for part in convert::server_capacity::get_server_capacity_requests(&request, WALL) {
                sent(&part);
                // Another server reads the same message.
                let read = read_whole(&part, None, WALL).expect("it is ours");
                assert!(read.1.is_empty(), "{:?} of {part:?}", read.1);
            }
            self.asked = Some(request);
        }
        panic!("what was asked is due again at {:?}", self.now);
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
        }
    }
}
