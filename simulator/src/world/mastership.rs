//! What begins and ends with a mastership, whoever says so: the election, or the node by its clock; and whether
//! only masters decide.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::template::Templates;
use doorward_engine::time::Time;

use crate::checker::{MasterClaim, may_decide};
use crate::world::World;
use crate::world::message::ServerId;

impl World<'_> {
    /// If a server is the master since now, it begins: it looks for its parent, and learns. Leases of that
    /// length may be out by templates of before.
    pub(super) fn begin_term_if_master(&mut self, id: ServerId, longer_leases: Duration) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        if !server.node.mastership(local).is_master() {
            return;
        }
        server.leads = true;
        if !server.is_twin {
            place.up_since = now;
        }
        self.note(2, id.place.into(), id.term as f64);
        if id.place == 0 {
            for watched in &mut self.watched {
                watched.note_learning(longer_leases, now);
            }
        }
        self.tend_link(id);
        self.plan(id.place);
    }

    /// A server's term is over: it has no use for its parent, and those below have to look for another one.
    pub(super) fn end_term(&mut self, id: ServerId) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let Some(server) = server.filter(|server| server.leads) else {
            return;
        };
        server.leads = false;
        self.note_templates_waiting(id);
        self.hang_up(id);
        self.break_children(id.place, id.term);
    }

    /// If templates wait, a root has granted by those before until now.
    pub(super) fn note_templates_waiting(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place).filter(|_| id.place == 0) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let candidacy = server.candidacy.as_ref();
        if candidacy.is_some_and(|it| !it.waiting.is_empty()) {
            let former = server.templates.clone();
            self.note_granted_by(&former, local);
        }
    }

    /// A root has granted by these templates until then, although others were written.
    pub(super) fn note_granted_by(&mut self, former: &Templates, until: Time) {
        let now = self.now;
        for watched in &mut self.watched {
            if let Some(former) = former.find(&watched.resource) {
                watched.note_known_late(former, until, now);
            }
        }
    }

    /// A server has granted something of these resources, to whomever: the checkers hear of it if it
    /// may not.
    pub(super) fn note_decision<'r>(
        &mut self,
        by: ServerId,
        resources: impl Iterator<Item = &'r ResourceId>,
    ) {
        let now = self.now;
        let Some(place) = self.place(by.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let claims = place.servers.iter().map(|server| MasterClaim {
            term: server.term,
            is_twin: server.is_twin,
            may_lead_until: server.candidacy.as_ref().map(|it| it.may_lead_until),
            is_master: server.node.mastership(local).is_master(),
        });
        if may_decide(by.term, claims, local) {
            return;
        }
        for resource in resources {
            let mut all = self.watched.iter_mut();
            if let Some(watched) = all.find(|watched| watched.resource == *resource) {
                watched.mastership.note(now);
            }
        }
    }
}
