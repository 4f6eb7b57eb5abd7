//! Begin and end of a mastership, whether the election or the node's clock decides them; and the
//! check that only masters decide.

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::time::Time;
use doorward_session::candidate::standing::Standing;

use crate::checker::{MasterClaim, may_decide};
use crate::world::{ServerId, ServerProcess, World};

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
        self.break_children(id);
        self.break_client_streams(id);
    }

    /// Reports a server's decision on these resources to the checkers if it may not decide, or if the
    /// root decides by templates that the operator has replaced.
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
        let may_decide = may_decide(by.term, claims, local);
        let is_edited = by.place == 0 && !self.templates_before.is_empty();
        let server = place.server(by.term).filter(|_| is_edited);
        let used = server.map(|server| server.node().templates());
        if may_decide && used.is_none() {
            return;
        }
        for resource in resources {
            let mut all = self.watched.iter_mut();
            let Some(watched) = all.find(|watched| watched.resource == *resource) else {
                continue;
            };
            if !may_decide {
                watched.mastership.note(now);
            }
            let used = used.and_then(|used| used.find(resource));
            if let Some(former) = used.filter(|_| used != self.templates.find(resource)) {
                watched.note_known_late(former, now);
            }
        }
    }
}
