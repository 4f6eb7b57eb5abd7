//! Servers that elect the master of their node: the production candidate against a model of etcd.
//! Nothing else decides who is master.

#[cfg(test)]
mod tests;

use std::time::Duration;

use doorward_engine::time::Time;
use doorward_replica::templates_in_force;
use doorward_session::address::Address;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::LeaseId;
use doorward_session::candidate::{Candidate, CandidateConfig};
use doorward_session::time::tolerance::Tolerance;
use smol_str::{SmolStr, format_smolstr};

use crate::world::etcd::KeyWatch;
use crate::world::{ServerId, World};

/// Members of etcd, as candidates see it. All are out of reach at once, or none.
const ENDPOINTS: u32 = 3;

/// Shortest TTL of leases in etcd. With a shorter one, a single late renewal would end a
/// mastership.
const TTL_MIN: Duration = Duration::from_millis(500);

/// TTL where elections take no time: the shortest one that servers accept.
const TTL_AT_ONCE: Duration = Duration::from_secs(2);

/// Part of a TTL after which a master without a confirmed renewal stops, at the latest.
const TERM: f64 = 0.9;

/// Server's part in an election, as the world sees it.
#[derive(Debug, Default)]
pub(crate) struct Candidacy {
    pub(crate) follow: KeyWatch,
    /// Last lease that etcd granted it, even if it does not know.
    pub(super) lease: Option<LeaseId>,
    /// End of the time in which it may be master, by its own clock: from the sending time of
    /// renewals that arrived. The checkers use it, so it does not depend on what the candidate
    /// knows.
    pub(super) may_lead_until: Time,
}

impl World<'_> {
    /// Makes a server take part in the election of its node.
    pub(super) fn join_election(&mut self, id: ServerId) {
        let (now, ttl) = (self.now, self.ttl());
        let place = &mut self.places[id.place];
        let is_able = place.unable_until <= now;
        let has_parent = place.parent.is_some();
        let Some(server) = place.servers.iter_mut().find(|it| it.id == id) else {
            return;
        };
        let address = place.addresses.get(server.slot as usize);
        let templates = server.node().templates();
        let config = CandidateConfig {
            address: SmolStr::new(address.map_or("", Address::as_str)),
            server: format_smolstr!("{}-{}", id.place, id.term),
            pages: None,
            node: format_smolstr!("{}", id.place),
            version: SmolStr::default(),
            ttl,
            clock_tolerance: Tolerance::LEAST,
            endpoints: ENDPOINTS,
            templates: (!has_parent).then(|| templates_in_force(templates, true)),
        };
        let mut candidacy = Candidacy::default();
        candidacy.follow.heard_at = now;
        server.candidacy = Some(Box::new(candidacy));
        self.send_news(now, id, move |world| world.read_keys(id));
        self.input(id, |replica, now| {
            replica.handle_election(config, now);
            replica.change_candidate(|candidate, now| candidate.handle_able(is_able, now), now);
        });
    }

    /// Returns all servers that take part in elections.
    pub(super) fn candidates(&self) -> Vec<ServerId> {
        let places = self.places.numbers();
        places.flat_map(|place| self.candidates_of(place)).collect()
    }

    /// Returns the candidates of a node.
    pub(super) fn candidates_of(&self, place: u32) -> Vec<ServerId> {
        let servers = self.places[place].servers.iter();
        let candidates = servers.filter(|server| server.candidacy.is_some());
        candidates.map(|server| server.id).collect()
    }

    /// Passes an input to the candidate of a server, and drives the server.
    pub(super) fn input_candidate(&mut self, id: ServerId, act: impl FnOnce(&mut Candidate, Time)) {
        self.input(id, |replica, now| replica.change_candidate(act, now));
    }

    /// Starts another process in the place of a server that has left its election.
    pub(super) fn replace_if_over(&mut self, id: ServerId) {
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        let candidate = server.replica.candidate();
        if candidate.is_some_and(|it| it.state(local) == CandidateState::Over) {
            let slot = server.slot;
            self.end_server(id);
            self.start_server(id.place, slot);
        }
    }

    /// Notes that a grant or renewal sent at `sent` has arrived.
    pub(super) fn note_renewal(&mut self, id: ServerId, granted: Option<LeaseId>, sent: Time) {
        let ttl = self.ttl();
        let sent = self.places[id.place].clock.shows(sent);
        let server = self.server_of(id);
        if let Some(candidacy) = server.and_then(|it| it.candidacy.as_mut()) {
            candidacy.lease = granted.or(candidacy.lease);
            let until = sent + ttl.mul_f64(TERM);
            candidacy.may_lead_until = candidacy.may_lead_until.max(until);
        }
    }

    /// Returns the TTL of servers' leases in etcd.
    pub(super) fn ttl(&self) -> Duration {
        match self.scenario.servers.election.0 {
            shortest if shortest < TTL_MIN => TTL_AT_ONCE,
            shortest => shortest,
        }
    }
}
