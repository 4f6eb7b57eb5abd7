//! The ways from the replica to its transports.
//!
//! The replica's tasks are sorted into these channels while its lock is held, so that each transport gets its tasks in
//! the order in which the replica made them. A channel has no limit of its own. The replica answers one message of a
//! stream at a time, and pushes once a round. The task of a stream takes all of that as soon as its request is parsed and
//! decided, and leaves a child that does not read.

use std::collections::HashMap;
use std::sync::Arc;

use doorward_engine::id::HolderId;
use doorward_engine::messages::GetCapacityReply;
use doorward_engine::node::marks::MarkWrites;
use doorward_engine::node::mastership::Outcome;
use doorward_replica::{CallNumber, Output, Replica, ToChild, ToEtcd, ToParent};
use tokio::sync::{mpsc, oneshot};

use crate::replica_handle::pushes::Slots;

/// A task for the connection to the parent, with the trace of the call that caused it.
pub(crate) type CausedTask = (ToParent, Option<String>);

/// Senders to the transports.
#[derive(Debug, Default)]
pub(super) struct Transports {
    /// The connection to the parent.
    pub(super) parent: Option<mpsc::UnboundedSender<CausedTask>>,
    /// The connection to etcd.
    pub(super) etcd: Option<mpsc::UnboundedSender<ToEtcd>>,
    /// The state directory.
    pub(super) marks: Option<mpsc::UnboundedSender<(u64, MarkWrites)>>,
    /// The streams of child servers.
    pub(super) streams: HashMap<u64, mpsc::UnboundedSender<ToChild>>,
    /// Slots for pushes to clients with a stream.
    pub(super) clients: HashMap<HolderId, Arc<Slots>>,
    /// Clients' calls that wait for the parent.
    pub(super) calls: HashMap<CallNumber, oneshot::Sender<Outcome<GetCapacityReply>>>,
    /// The newest of them with its trace, until a request to the parent follows.
    pub(super) cause: Option<(CallNumber, String)>,
    /// Changes of templates that are not in force yet, by their number.
    pub(super) templates: Vec<(u64, oneshot::Sender<()>)>,
}

impl Transports {
    /// Passes on all tasks of the replica. A transport that has ended gets no more.
    pub(super) fn pass_on(&mut self, replica: &mut Replica) {
        while let Some(output) = replica.poll_output() {
            match output {
                Output::Parent(task) => {
                    if let Some(parent) = &self.parent {
                        let asks = matches!(&task, ToParent::Send(it) if !it.asks.is_empty());
                        let cause = self.cause.take_if(|_| asks);
                        let cause = cause.filter(|(number, _)| self.calls.contains_key(number));
                        let _ended = parent.send((task, cause.map(|(_, trace)| trace)));
                    }
                }
                Output::Etcd(task) => {
                    let _ended = self.etcd.as_ref().is_some_and(|it| it.send(task).is_err());
                }
                Output::Marks(number, batch) => {
                    drop(self.marks.as_ref().map(|it| it.send((number, batch))));
                }
                Output::Child(number, task) => {
                    let is_last = matches!(task, ToChild::End(_));
                    drop(self.streams.get(&number).map(|it| it.send(task)));
                    if is_last {
                        self.streams.remove(&number);
                    }
                }
                Output::Client(client, push) => {
                    if let Some(slots) = self.clients.get(&client) {
                        slots.put(client, push);
                    }
                }
                Output::Call(number, outcome) => {
                    drop(self.calls.remove(&number).map(|it| it.send(outcome)));
                }
                Output::TemplatesApplied(number) => {
                    for (_, applied) in self.templates.extract_if(.., |it| it.0 <= number) {
                        let _left = applied.send(());
                    }
                }
            }
        }
    }
}
