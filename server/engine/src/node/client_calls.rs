//! What clients ask of a node: capacity, and to take it back. Each may name many resources, and is done in
//! [parts](super::parts).

use std::borrow::Borrow;

use crate::id::HolderId;
use crate::lease_table::Asker;
use crate::node::asking::Progress;
use crate::node::mastership::Outcome;
use crate::node::parts::{DoneIn, InParts, STEPS_PER_RESOURCE};
use crate::node::{Entry, Node};
use crate::request::{ClientLease, GetCapacity, GetCapacityReply, ReleaseCapacity, Released};
use crate::time::Time;

/// A client asks for capacity. Every ask is answered by a lease or refused by name, each on its
/// own; a refused ask changes nothing.
#[derive(Debug)]
pub struct GetCapacityCall<R> {
    request: R,
    progress: Progress<ClientLease>,
    done_in: DoneIn,
}

impl<R: Borrow<GetCapacity>> GetCapacityCall<R> {
    /// Nothing is answered yet.
    pub fn new(request: R) -> Self {
        let progress = Progress::of_request(request.borrow().asks.len());
        Self {
            request,
            progress,
            done_in: DoneIn::default(),
        }
    }

    /// What is asked.
    pub fn request(&self) -> &GetCapacity {
        self.request.borrow()
    }
}

impl<R: Borrow<GetCapacity>> InParts for GetCapacityCall<R> {
    type Answer = Outcome<GetCapacityReply>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        if let Err(mastership) = node.check_master(now) {
            node.counters.redirected += 1;
            return Some(Outcome::NotMaster(mastership));
        }
        node.begin_part();
        let request = self.request.borrow();
        if self.done_in.is_another(node) {
            self.progress = Progress::of_request(request.asks.len());
        }
        let asker = Asker::new(HolderId::client(request.client.clone()));
        let is_done = node.answer_some(
            &mut self.progress,
            &request.asks,
            |ask| &ask.resource,
            |node, asked| node.handle_client_ask(&asker, request, asked, now),
        );
        is_done.then(|| {
            let (leases, mut refused) = self.progress.take();
            node.retries.tell(&mut refused);
            Outcome::Served(GetCapacityReply { leases, refused })
        })
    }
}

/// A client gives back what it holds. The answer says of each resource, in the order of the request, what
/// became of it.
#[derive(Debug)]
pub struct ReleaseCall<'a> {
    request: &'a ReleaseCapacity,
    released: Vec<Released>,
}

impl<'a> ReleaseCall<'a> {
    /// Nothing is given back yet.
    pub fn new(request: &'a ReleaseCapacity) -> Self {
        Self {
            request,
            released: Vec::with_capacity(request.resources.len()),
        }
    }
}

impl InParts for ReleaseCall<'_> {
    type Answer = Outcome<Vec<Released>>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        if let Err(mastership) = node.check_master(now) {
            node.counters.redirected += 1;
            return Some(Outcome::NotMaster(mastership));
        }
        node.begin_part();
        let holder = HolderId::client(self.request.client.clone());
        let caller = node.admission.find_caller(self.request.caller);
        while let Some(id) = self.request.resources.get(self.released.len()) {
            if !node.has_steps_left() {
                return None;
            }
            node.bring_up_to_date(id, now);
            node.note_steps(STEPS_PER_RESOURCE);
            let slot = node.resources.find(id);
            let found = slot.and_then(|slot| Some((slot, node.resources.at_mut(slot)?)));
            let Some((slot, Entry { resource, .. })) = found else {
                self.released.push(Released::NotThere);
                continue;
            };
            let (process, sequence) = (self.request.incarnation, self.request.sequence);
            let result = resource.handle_release(&holder, process, sequence, caller, now);
            match result {
                Released::Freed => node.counters.released += 1,
                Released::OutOfOrder => node.counters.out_of_order += 1,
                Released::UnlessHeard(_) | Released::NotThere => {}
            }
            self.released.push(result);
            node.settle_at(slot);
        }
        Some(Outcome::Served(std::mem::take(&mut self.released)))
    }
}

impl Node {
    /// A client asks for capacity: a [`GetCapacityCall`], all at once.
    pub fn handle_get_capacity(
        &mut self,
        request: &GetCapacity,
        now: Time,
    ) -> Outcome<GetCapacityReply> {
        self.do_all(GetCapacityCall::new(request), now)
    }

    /// A client gives back what it holds: a [`ReleaseCall`], all at once.
    pub fn handle_release_capacity(
        &mut self,
        request: &ReleaseCapacity,
        now: Time,
    ) -> Outcome<Vec<Released>> {
        self.do_all(ReleaseCall::new(request), now)
    }
}
