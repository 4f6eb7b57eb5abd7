//! Begin and end of a mastership, whether the election or the node's clock decides them; and the
//! check that only masters decide.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_session::candidate::standing::Standing;

use crate::checker::{MasterClaim, may_decide};
use crate::world::World;
use crate::world::message::ServerId;
use crate::world::place::ServerProcess;

impl World<'_> {
    /// Notes the begin of the term of a server that has become master: it learns.
    pub(super) fn begin_term_if_master(&mut self, id: ServerId) {
        let now = self.now;
        let is_master =
            |(it, local): &(&mut ServerProcess, Time)| it.node().mastership(*local).is_master();
        let Some((server, _)) = self.server_at(id).filter(is_master) else {
            return;
        };
        server.leads = true;
        let term = server.replica.standing().and_then(Standing::term);
        let longer_leases = term.map_or(Duration::ZERO, |won| won.longer_leases);
        if !server.is_twin {
            self.places[id.place].up_since = now;
        }
        self.note(2, id.place.into(), id.term as f64);
        if id.place == 0 {
            for watched in self.watched.iter_mut() {
                watched.note_learning(longer_leases, now);
            }
        }
    }

    /// Ends a server's term: its children have to find the next master.
    pub(super) fn end_term(&mut self, id: ServerId) {
        let server = self.server_of(id);
        let Some(server) = server.filter(|server| server.leads) else {
            return;
        };
        server.leads = false;
        self.note_templates_waiting(id);
        self.break_children(id);
        self.break_client_streams(id);
    }

    /// Notes that the root has granted by the former templates until now, if new ones wait.
    pub(super) fn note_templates_waiting(&mut self, id: ServerId) {
        let Some((server, local)) = self.server_at(id).filter(|_| id.place == 0) else {
            return;
        };
        if !server.templates_waiting.is_empty() {
            let former = server.templates.clone();
            self.note_granted_by(&former, local);
        }
    }

    /// Notes that the root has granted by these templates until then, although the operator wrote
    /// others.
    pub(super) fn note_granted_by(&mut self, former: &Templates, until: Time) {
        let now = self.now;
        for watched in self.watched.iter_mut() {
            if let Some(former) = former.find(&watched.resource) {
                watched.note_known_late(former, until, now);
            }
        }
    }

    /// Reports a server's decision on these resources to the checkers if it may not decide.
    pub(super) fn note_decision<'r>(
        &mut self,
        by: ServerId,
        resources: impl Iterator<Item = &'r ResourceId>,
    ) {
        let now = self.now;
        let place = &mut self.places[by.place];
        let local = place.clock.shows(now);
        let claims = place.servers.iter().map(|server| MasterClaim {
            term: server.id.term,
            is_twin: server.is_twin,
            may_lead_until: server.candidacy.as_ref().map(|it| it.may_lead_until),
            is_master: server.node().mastership(local).is_master(),
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
