//! Masterships that end, or follow each other, in the middle of a message.

use doorward_engine::id::MastershipId;
use doorward_engine::messages::{Refusal, ServerAsk};
use doorward_engine::node::mastership::Mastership;

use super::*;

#[test]
fn a_node_that_loses_mastership_says_so_in_the_middle_of_a_request() {
    let mut node = node(false);
    let request = asks(0, &(0..100).collect::<Vec<_>>(), 1.0);
    let (outcome, calls) = client_with_others(&mut node, &request, at(1), |node| {
        node.handle_mastership(Mastership::Unknown, at(1));
    });
    assert_eq!(outcome, Outcome::NotMaster(Mastership::Unknown));
    assert_eq!(calls, 2);
    node.assert_consistent();
}

/// Mastership is lost, and won again.
fn win_again(node: &mut Node, epoch: u64, now: Time) {
    node.handle_mastership(Mastership::Unknown, now);
    node.handle_mastership(Mastership::Master { epoch: Some(epoch) }, now);
}

/// The same, after the first call.
fn once_wins_again(epoch: u64, now: Time) -> impl FnMut(&mut Node) {
    let mut epochs = epoch..=epoch;
    move |node| epochs.by_ref().for_each(|it| win_again(node, it, now))
}

/// The mastership that grants now.
fn grants_now(node: &mut Node, now: Time) -> Option<MastershipId> {
    let reply = served(node.handle_get_capacity(&asks(999, &[999], 1.0), now));
    reply.leases[0].granted_by
}

#[test]
fn a_new_mastership_in_the_middle_of_a_request_answers_all_of_it() {
    let mut node = node(false);
    let all: Vec<usize> = (0..100).collect();
    let request = asks(0, &all, 1.0);
    let (reply, calls) = client_with_others(&mut node, &request, at(1), once_wins_again(2, at(1)));
    let by = served(reply).leases.into_iter().map(|it| it.granted_by);
    assert!(by.eq([grants_now(&mut node, at(1)); 100]));
    assert_eq!(calls, 101, "the first one again");

    let request = child_asks("child", 100, 1.0);
    let mut answers = Answers::to_child(&request);
    let next =
        |node: &mut Node| node.answer_child_next(&request, Via::Stream, &mut answers, at(10));
    let (reply, _) = with_others(&mut node, next, once_wins_again(3, at(10)));
    let reply = served(reply.unwrap());
    let by = reply.leases.iter().map(|it| it.granted_by);
    assert!(by.eq([grants_now(&mut node, at(10)); 100]));
    node.assert_consistent();
}

#[test]
fn a_new_mastership_does_not_hear_what_was_refused_to_the_former() {
    let mut node = node(true);
    let all: Vec<usize> = (0..100).collect();
    node.handle_get_capacity(&asks(0, &all, 1.0), at(1));
    let request = node.poll_upstream_request(1, at(10)).unwrap();
    let refuse =
        |ask: &ServerAsk| Refusal::new(ask.resource.clone(), RefusalReason::UnknownResource);
    let reply = GetServerCapacityReply {
        refused: request.asks.iter().map(refuse).collect(),
        ..GetServerCapacityReply::default()
    };
    let mut epochs = 2..3;
    let (is_in_force, calls) = reply_with_others(&mut node, &reply, at(10), |node| {
        epochs.by_ref().for_each(|epoch| {
            win_again(node, epoch, at(10));
            node.handle_get_capacity(&asks(0, &all, 1.0), at(10));
        });
    });
    assert_eq!((is_in_force, calls), (false, 2));
    let request = node.poll_upstream_request(2, at(12)).unwrap();
    assert_eq!(request.asks.len(), 100, "it asks for all of them");
}

#[test]
fn a_new_mastership_in_the_middle_of_pushes_pushes_nothing_of_the_former() {
    let mut node = with_children(20, 5);
    let (pushes, calls) = pushes_with_others(&mut node, at(11), once_wins_again(2, at(11)));
    assert_eq!((pushes.len(), calls), (0, 2));
}

#[test]
fn another_mastership_in_the_middle_of_a_request_to_the_parent_leaves_nothing_of_it() {
    let mut node = node(true);
    let all: Vec<usize> = (0..100).collect();
    node.handle_get_capacity(&asks(0, &all, 1.0), at(1));
    let (request, calls) = request_with_others(&mut node, at(10), |node| {
        win_again(node, 2, at(10));
        node.handle_get_capacity(&asks(0, &all, 1.0), at(10));
    });
    assert_eq!((request, calls), (None, 2));
    let request = node.poll_upstream_request(2, at(20)).unwrap();
    assert_eq!(request.asks.len(), 100, "all is asked by the new one");
}
