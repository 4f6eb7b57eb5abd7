//! A node's child servers: their requests, and pushes to them, both in [parts](super::parts).

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::time::Duration;

use crate::id::{HolderId, HolderName, Incarnation, ResourceId};
use crate::lease_table::Asker;
use crate::node::Node;
use crate::node::ancestry::Cycle;
use crate::node::asking::Progress;
use crate::node::event::NodeEvent;
use crate::node::mastership::Outcome;
use crate::node::parts::{DoneIn, InParts, STEPS_PER_RESOURCE};
use crate::node::spans::Spans;
use crate::request::server::{GetServerCapacity, GetServerCapacityReply, ServerLease, Via};
use crate::resource::Resource;
use crate::snapshot::LeaseSnapshot;
use crate::time::Time;

/// What is to be pushed to child servers.
#[derive(Debug, Default)]
pub struct Children {
    /// Those that have a stream open.
    subscribed: BTreeSet<HolderName>,
    /// Resources of which they may get something else now.
    unsettled: BTreeSet<ResourceId>,
    /// How far that has got around: those after it are next, and then the first ones again.
    place: PushPlace,
    /// Whether any has asked for anything, of this master.
    known: bool,
    /// Those that were refused as ancestors: each is logged once.
    refused: BTreeSet<HolderName>,
}

/// How far pushes have got around.
#[derive(Debug, Default)]
enum PushPlace {
    /// Nowhere yet.
    #[default]
    First,
    /// All of that resource is done.
    After(ResourceId),
    /// Of that resource, all children are done up to that one.
    Within(ResourceId, HolderName),
}

/// Refused ancestors that are remembered.
const REFUSED_MAX: usize = 1_000;

/// How long a process is refused a stream after it was seen that it came later than another one that
/// lives. The other one's stream, if it has one, must be there still.
const REFUSED_LENGTH: Duration = Duration::from_secs(60);

/// Leases of child servers that are looked at by one call, at most, in all its parts.
const LEASES_PER_POLL: usize = 2_000;

/// Leases of one resource that are looked at before its place in the node is settled.
const LEASES_AT_ONCE: usize = 4;

impl Children {
    pub(super) fn note_unsettled(&mut self, id: &ResourceId, resource: &Resource) {
        if !self.subscribed.is_empty() && resource.children().next().is_some() {
            self.unsettled.insert(id.clone());
        }
    }

    /// Mastership changed. Returns what was to be pushed.
    pub(super) fn forget(&mut self) -> BTreeSet<ResourceId> {
        self.known = false;
        self.place = PushPlace::First;
        std::mem::take(&mut self.unsettled)
    }

    /// The resource that is next, and after which of its children to go on.
    fn next_unsettled(&mut self) -> Option<(ResourceId, Option<HolderName>)> {
        let after = match std::mem::take(&mut self.place) {
            PushPlace::Within(id, name) => return Some((id, Some(name))),
            PushPlace::After(id) => Some(id),
            PushPlace::First => None,
        };
        let next = after.and_then(|id| {
            let later = (Bound::Excluded(id), Bound::Unbounded);
            self.unsettled.range(later).next().cloned()
        });
        let next = match next {
            Some(next) => self.unsettled.take(&next),
            None => self.unsettled.pop_first(),
        };
        Some((next?, None))
    }

    fn unsettled_count(&self) -> usize {
        self.unsettled.len() + usize::from(matches!(self.place, PushPlace::Within(..)))
    }
}

/// A child server asks for capacity, on behalf of its holders. It is refused as a whole if it is an ancestor of this
/// node. Parts that were done before that was known stay done.
#[derive(Debug)]
pub struct GetServerCapacityCall<'a> {
    request: &'a GetServerCapacity,
    via: Via,
    progress: Progress<ServerLease>,
    done_in: DoneIn,
}

impl<'a> GetServerCapacityCall<'a> {
    /// Nothing is answered yet.
    pub fn new(request: &'a GetServerCapacity, via: Via) -> Self {
        Self {
            request,
            via,
            progress: Progress::of_request(request.asks.len()),
            done_in: DoneIn::default(),
        }
    }
}

impl InParts for GetServerCapacityCall<'_> {
    type Answer = Result<Outcome<GetServerCapacityReply>, Cycle>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        let request = self.request;
        if let Err(cycle) = node.check_cycle(&request.server) {
            if node.children.refused.len() < REFUSED_MAX
                && node.children.refused.insert(request.server.clone())
            {
                node.push_event(NodeEvent::CycleRefused(cycle.clone()));
            }
            return Some(Err(cycle));
        }
        node.children.refused.remove(&request.server);
        if let Err(mastership) = node.check_master(now) {
            node.counters.redirected += 1;
            return Some(Ok(Outcome::NotMaster(mastership)));
        }
        node.begin_part();
        if self.done_in.is_another(node) {
            self.progress = Progress::of_request(request.asks.len());
        }
        node.children.known = true;
        let asker = Asker::new(HolderId::server(request.server.clone()));
        let is_done = node.answer_some(
            &mut self.progress,
            &request.asks,
            |ask| &ask.resource,
            |node, asked| node.handle_server_ask(&asker, request, asked, self.via, now),
        );
        is_done.then(|| {
            let (leases, refused) = self.progress.take();
            Ok(Outcome::Served(GetServerCapacityReply {
                leases,
                refused,
                ..node.empty_reply()
            }))
        })
    }
}

/// Asks what child servers with a stream get from now on, where that differs from their last answer. All parts together
/// do a bounded amount of work; there may be more to push.
#[derive(Debug, Default)]
pub struct PushesCall {
    replies: BTreeMap<HolderName, GetServerCapacityReply>,
    looked_at: usize,
    /// Resources that are to be looked at still, by how many there were in the beginning: what changes meanwhile is for
    /// the next call. Absent: nobody has counted them yet.
    left: Option<usize>,
    done_in: DoneIn,
}

impl PushesCall {
    /// A resource was looked at.
    fn note_done(&mut self) {
        self.left = self.left.map(|left| left.saturating_sub(1));
    }
}

impl InParts for PushesCall {
    type Answer = Vec<(HolderName, GetServerCapacityReply)>;

    fn next_part(&mut self, node: &mut Node, now: Time) -> Option<Self::Answer> {
        let mut is_done = node.check_master(now).is_err();
        if self.done_in.is_another(node) || is_done {
            // What was granted is not this mastership's.
            self.replies.clear();
            self.left = None;
        }
        node.begin_part();
        self.left
            .get_or_insert_with(|| node.children.unsettled_count());
        while !is_done && node.has_steps_left() {
            is_done = self.left == Some(0)
                || self.looked_at >= LEASES_PER_POLL
                || !node.push_some(self, now);
        }
        is_done.then(|| std::mem::take(&mut self.replies).into_iter().collect())
    }
}

impl Node {
    /// A child server asks for capacity: a [`GetServerCapacityCall`], all at once.
    ///
    /// # Errors
    ///
    /// If the child is an ancestor of this node; nothing is changed then.
    pub fn handle_get_server_capacity(
        &mut self,
        request: &GetServerCapacity,
        via: Via,
        now: Time,
    ) -> Result<Outcome<GetServerCapacityReply>, Cycle> {
        self.do_all(GetServerCapacityCall::new(request, via), now)
    }

    /// Whether a process that asks as a child server was refused lately, since another live process of
    /// that name was there first.
    pub fn is_refused(&self, server: &HolderName, process: Option<Incarnation>, now: Time) -> bool {
        let holder = HolderId::server(server.clone());
        let ago = self.conflicts.refused_ago(&holder, process, now);
        ago.is_some_and(|ago| ago < REFUSED_LENGTH)
    }

    /// A child server has a stream open, or has it no more.
    pub fn handle_subscription(&mut self, server: &HolderName, open: bool) {
        if open {
            self.children.subscribed.insert(server.clone());
        } else {
            self.children.subscribed.remove(server);
        }
    }

    /// Whether child servers have asked for anything since this node became master.
    pub fn has_child_servers(&self) -> bool {
        self.children.known
    }

    /// Whether [`Node::poll_pushes`] may have a push.
    pub fn has_pushes(&self) -> bool {
        self.children.unsettled_count() > 0
    }

    /// What child servers with a stream get from now on: a [`PushesCall`], all at once.
    pub fn poll_pushes(&mut self, now: Time) -> Vec<(HolderName, GetServerCapacityReply)> {
        self.do_all(PushesCall::default(), now)
    }

    /// Looks at a few children of the next resource of which they may get something else. Returns whether there was one.
    fn push_some(&mut self, pushes: &mut PushesCall, now: Time) -> bool {
        let Some((id, after)) = self.children.next_unsettled() else {
            return false;
        };
        self.bring_up_to_date(&id, now);
        self.note_steps(STEPS_PER_RESOURCE);
        let tolerance = self.config.clock_tolerance;
        let resource = self.resources.get_mut(&id).map(|entry| &mut entry.resource);
        let Some(resource) = resource else {
            self.children.place = PushPlace::After(id);
            pushes.note_done();
            return true;
        };
        let mut children: Vec<_> = resource
            .children_after(after.as_ref())
            .take(LEASES_AT_ONCE + 1)
            .map(|(name, slot)| (name.clone(), slot))
            .collect();
        let has_more = children.len() > LEASES_AT_ONCE;
        children.truncate(LEASES_AT_ONCE);
        pushes.looked_at += children.len().max(1);
        // To decide about a child takes what any request takes.
        let steps = children.len() * STEPS_PER_RESOURCE;
        let mut leases = Vec::new();
        for (name, slot) in &children {
            if self.children.subscribed.contains(name) {
                let lease = resource
                    .regrant(*slot, now)
                    .and_then(|answer| resource.pushed_lease(name, &answer, now));
                leases.extend(lease.map(|lease| (name.clone(), tolerance.server_lease(lease))));
            }
        }
        // What changed since it was taken up is a reason to look again, and what was granted just now is none.
        let is_unsettled = self.children.unsettled.contains(&id);
        self.settle(&id);
        self.note_steps(steps);
        if !is_unsettled {
            self.children.unsettled.remove(&id);
        }
        self.children.place = match children.pop() {
            Some((last, _)) if has_more => PushPlace::Within(id, last),
            _ => {
                pushes.note_done();
                PushPlace::After(id)
            }
        };
        for (name, lease) in leases {
            let reply = pushes.replies.entry(name);
            let reply = reply.or_insert_with(|| self.empty_reply());
            reply.leases.push(lease);
        }
        true
    }

    /// The child servers that hold something of a resource.
    pub fn child_snapshots(&self, resource: &ResourceId, now: Time) -> Vec<LeaseSnapshot> {
        self.resources
            .get(resource)
            .map_or_else(Vec::new, |entry| entry.resource.child_snapshots(now))
    }

    fn empty_reply(&self) -> GetServerCapacityReply {
        let own = std::iter::once(self.config.name.clone());
        GetServerCapacityReply {
            ancestors: own.chain(self.ancestors().iter().cloned()).collect(),
            ..GetServerCapacityReply::default()
        }
    }
}
