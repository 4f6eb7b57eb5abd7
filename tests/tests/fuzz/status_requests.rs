//! Requests for the status, while the server serves requests of any kind.

use std::sync::Arc;

use doorward_documents::built_in;
use doorward_engine::messages::Via;
use doorward_engine::node::Config;
use doorward_engine::node::mastership::Mastership;
use doorward_proto::admin::v1 as admin;
use doorward_proto::doorman as wire;
use doorward_server::clock::Clock;
use doorward_server::replica_handle::ReplicaHandle;
use doorward_server::rpc::convert;
use doorward_server::status::{Query, ServerState};
use prost::Message;

use crate::conversation::{Conversation, Event, STEPS_MAX};
use crate::mutate::Format;
use crate::requests::{WALL, read_whole, sent};
use crate::runner::fuzz;

#[test]
fn status_requests() {
    fuzz!("status_requests", Format::Wire, share: 4, play);
}

fn play(bytes: &[u8]) {
    let Ok(conversation) = Conversation::decode(bytes) else {
        return;
    };
    let node = ReplicaHandle::new(Config::default(), built_in().unwrap(), Clock::start());
    let node = Arc::new(node);
    let master = Mastership::Master { epoch: None };
    node.change(|node, now| node.handle_mastership(master, now));
    let (name, place) = ("root".to_owned(), "127.0.0.1:1".to_owned());
    let state = ServerState::new(name, place, "built-in".to_owned(), Arc::clone(&node));
    for step in conversation.steps.into_iter().take(STEPS_MAX) {
        match step.event {
            Some(Event::GetCapacity(bytes)) => {
                let Ok(message) = wire::GetCapacityRequest::decode(bytes.as_slice()) else {
                    continue;
                };
                if let Ok((request, _)) = convert::get_capacity(message, None, WALL) {
                    node.change(|node, now| node.handle_get_capacity(&request, now));
                }
            }
            Some(Event::GetServerCapacity(bytes)) => {
                let Ok(message) = wire::GetServerCapacityRequest::decode(bytes.as_slice()) else {
                    continue;
                };
                if let Ok((request, _)) = read_whole(&message, None, WALL) {
                    // Its own name makes a cycle, which is refused.
                    let _ = node.change(|node, now| {
                        node.handle_get_server_capacity(&request, Via::Poll, now)
                    });
                }
            }
            Some(Event::Answer(bytes)) => ask(&state, &bytes),
            _ => {}
        }
    }
}

fn ask(state: &ServerState, bytes: &[u8]) {
    let Ok(request) = admin::GetStatusRequest::decode(bytes) else {
        return;
    };
    if let Ok(query) = Query::of(request) {
        sent(&state.answer(&query));
    }
}
