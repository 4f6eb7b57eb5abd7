//! Servers that elect the master of their node: the production [`Candidate`] against a model of
//! etcd.
//!
//! The world drives it as the server does: something happens to a candidate, the world performs the
//! candidate's actions, and the node gets the candidate's standing. Nothing else decides who is
//! master.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_session::address::Address;
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::LeaseId;
use doorward_session::candidate::{
    ActiveTemplates, Candidate, CandidateAction, CandidateConfig, NextTemplates,
};
use doorward_session::time::tolerance::Tolerance;
use smol_str::{SmolStr, format_smolstr};

use crate::world::World;
use crate::world::etcd::KeyWatch;
use crate::world::message::ServerId;

/// Members of etcd, as candidates see it. All are out of reach at once, or none.
const ENDPOINTS: u32 = 3;

/// Shortest TTL of leases in etcd. With a shorter one, a single late renewal would end a
/// mastership.
const TTL_MIN: Duration = Duration::from_millis(500);

/// TTL where elections take no time: the shortest one that servers accept.
const TTL_AT_ONCE: Duration = Duration::from_secs(2);

/// Part of a TTL after which a master without a confirmed renewal stops, at the latest.
const TERM: f64 = 0.9;

/// Server's part in an election.
#[derive(Debug)]
pub(crate) struct Candidacy {
    pub(crate) candidate: Candidate,
    pub(crate) follow: KeyWatch,
    /// Standing that its node received last.
    applied: Standing,
    /// Templates that are not in force yet. The candidate has received the first of them.
    pub(super) waiting: VecDeque<Templates>,
    /// Last lease that etcd granted it, even if it does not know.
    pub(super) lease: Option<LeaseId>,
    /// End of the time in which it may be master, by its own clock: from the sending time of
    /// renewals that arrived. The checkers use it, so it does not depend on what the candidate
    /// knows.
    pub(super) may_lead_until: Time,
}

impl Candidacy {
    /// Creates a candidacy that knows nothing.
    pub(super) fn new(config: CandidateConfig, local: Time) -> Self {
        Self {
            candidate: Candidate::new(config, local),
            follow: KeyWatch::default(),
            applied: Standing::Unknown,
            waiting: VecDeque::new(),
            lease: None,
            may_lead_until: Time::ZERO,
        }
    }
}

/// Returns a digest of the templates' lease lengths.
fn digest(templates: &Templates) -> SmolStr {
    format_smolstr!("{:016x}", templates.lengths_digest())
}

impl World<'_> {
    /// Makes a server take part in the election of its node.
    pub(super) fn join_election(&mut self, id: ServerId) {
        let (now, shortest) = (self.now, self.scenario.servers.election.0);
        let ttl = match shortest < TTL_MIN {
            true => TTL_AT_ONCE,
            false => shortest,
        };
        let place = &mut self.places[id.place];
        let (local, is_able) = (place.clock.shows(now), place.unable_until <= now);
        let has_parent = place.parent.is_some();
        let Some(server) = place.servers.iter_mut().find(|it| it.id == id) else {
            return;
        };
        let address = place.addresses.get(server.slot as usize);
        let templates = &server.templates;
        let config = CandidateConfig {
            address: SmolStr::new(address.map_or("", Address::as_str)),
            server: format_smolstr!("{}-{}", id.place, id.term),
            pages: None,
            rest: SmolStr::default(),
            ttl,
            clock_tolerance: Tolerance::LEAST,
            endpoints: ENDPOINTS,
            templates: (!has_parent).then(|| ActiveTemplates {
                digest: digest(templates),
                longest: templates.longest_lease(),
                has_history: true,
            }),
        };
        server.candidacy = Some(Box::new(Candidacy::new(config, local)));
        self.start_watch(id);
        self.change_candidate(id, |candidate, now| {
            candidate.handle_able(is_able, now);
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

    /// Returns a server's candidacy and what its clock shows.
    fn candidacy_of(&mut self, id: ServerId) -> Option<(&mut Candidacy, Time)> {
        let (server, local) = self.server_at(id)?;
        Some((server.candidacy.as_mut()?, local))
    }

    /// Changes a candidate at the time of its own clock, and performs its actions.
    pub(super) fn change_candidate(
        &mut self,
        id: ServerId,
        change: impl FnOnce(&mut Candidate, Time),
    ) {
        let Some((candidacy, local)) = self.candidacy_of(id) else {
            return;
        };
        change(&mut candidacy.candidate, local);
        self.drain_candidate(id, local);
        self.apply_standing(id, local);
        self.replace_if_over(id, local);
        self.plan(id.place);
    }

    fn drain_candidate(&mut self, id: ServerId, local: Time) {
        while let Some((candidacy, _)) = self.candidacy_of(id)
            && let Some(action) = candidacy.candidate.poll_action()
        {
            match action {
                CandidateAction::Ask(asking) => self.ask_etcd(id, asking),
                CandidateAction::ApplyTemplates => self.apply_templates(id, local),
                // Reports are for people.
                CandidateAction::Report(_) => {}
            }
        }
    }

    /// Gives the node its candidate's standing.
    fn apply_standing(&mut self, id: ServerId, local: Time) {
        let Some(server) = self.server_of(id) else {
            return;
        };
        let Some(candidacy) = &mut server.candidacy else {
            return;
        };
        let standing = candidacy.candidate.standing(local);
        if candidacy.applied == standing {
            return;
        }
        candidacy.applied = standing.clone();
        let before = server.node.masterships();
        let mut longer_leases = Duration::ZERO;
        match standing {
            Standing::Master(won) => {
                longer_leases = won.longer_leases;
                let term = Term {
                    epoch: won.epoch,
                    vacant_since: won.vacant_since,
                    longer_leases,
                    valid_until: won.valid_until,
                };
                server.node.handle_term(term, local);
            }
            Standing::Elsewhere { address, epoch, .. } => {
                let master_address = address.to_string();
                let epoch = Some(epoch);
                let elsewhere = Mastership::Elsewhere {
                    master_address,
                    epoch,
                };
                server.node.handle_mastership(elsewhere, local);
            }
            // A candidate never stands alone.
            Standing::Unknown | Standing::Alone => {
                server.node.handle_mastership(Mastership::Unknown, local);
            }
        }
        let is_another = server.node.masterships() != before;
        // If the term ended in between, the node learns it now.
        self.after(id);
        if is_another {
            self.end_term(id);
            self.begin_term_if_master(id, longer_leases);
        }
    }

    /// Makes a server hand over: it resigns and ends, and another process starts in its place.
    pub(super) fn resign(&mut self, id: ServerId) {
        self.change_candidate(id, |candidate, now| {
            candidate.handle_resign(now);
        });
    }

    fn replace_if_over(&mut self, id: ServerId, local: Time) {
        let is_over = |it: &Candidacy| it.candidate.state(local) == CandidateState::Over;
        let over = self.server_of(id);
        let over = over.filter(|it| it.candidacy.as_deref().is_some_and(is_over));
        if let Some(slot) = over.map(|server| server.slot) {
            self.end_server(id);
            self.start_server(id.place, slot);
        }
    }

    /// Wakes a candidate if something is due.
    pub(super) fn wake_candidate(&mut self, id: ServerId) {
        let is_due = self.candidacy_of(id).is_some_and(|(it, local)| {
            let due = it.candidate.poll_timeout();
            due.is_some_and(|due| due <= local)
        });
        if is_due {
            self.change_candidate(id, |candidate, now| candidate.handle_timeout(now));
        }
    }

    /// Notes that a grant or renewal sent at `sent` has arrived.
    pub(super) fn note_renewal(
        &mut self,
        id: ServerId,
        granted: Option<LeaseId>,
        ttl: Duration,
        sent: Time,
    ) {
        let sent = self.places[id.place].clock.shows(sent);
        if let Some((candidacy, _)) = self.candidacy_of(id) {
            candidacy.lease = granted.or(candidacy.lease);
            let until = sent + ttl.mul_f64(TERM);
            candidacy.may_lead_until = candidacy.may_lead_until.max(until);
        }
    }

    /// Returns the TTL of a server's leases in etcd.
    pub(super) fn ttl_of(&mut self, id: ServerId) -> Duration {
        let candidacy = self.candidacy_of(id);
        candidacy.map_or(Duration::ZERO, |(it, _)| it.candidate.config().ttl)
    }

    /// Gives new templates to a server of the root.
    pub(super) fn offer_templates(&mut self, id: ServerId, templates: Templates) {
        let Some((server, local)) = self.server_at(id) else {
            return;
        };
        match &mut server.candidacy {
            Some(candidacy) => {
                candidacy.waiting.push_back(templates);
                self.hand_in_templates(id);
            }
            None => {
                server.templates = templates.clone();
                server.node.handle_templates(templates, local);
                self.after(id);
            }
        }
    }

    /// Passes the first waiting templates to the candidate, unless it has some in progress.
    fn hand_in_templates(&mut self, id: ServerId) {
        let Some(server) = self.server_of(id) else {
            return;
        };
        let free = server.candidacy.as_ref();
        let free = free.filter(|it| !it.candidate.has_templates_waiting());
        let Some(next) = free.and_then(|it| it.waiting.front()) else {
            return;
        };
        let templates = &server.templates;
        let next = NextTemplates {
            digest: digest(next),
            longest: next.longest_lease(),
            outlasts: templates.outlasts(next),
            learning_outlasts: templates.learning_outlasts(next),
        };
        self.change_candidate(id, |candidate, now| {
            candidate.handle_templates(next, now);
        });
    }

    /// Puts the templates in force that the candidate has agreed to.
    fn apply_templates(&mut self, id: ServerId, local: Time) {
        let Some(server) = self.server_of(id) else {
            return;
        };
        let Some(candidacy) = &mut server.candidacy else {
            return;
        };
        let Some(templates) = candidacy.waiting.pop_front() else {
            return;
        };
        let former = std::mem::replace(&mut server.templates, templates.clone());
        let is_master = server.node.mastership(local).is_master();
        server.node.handle_templates(templates, local);
        candidacy.candidate.handle_applied(local);
        if is_master {
            self.note_granted_by(&former, local);
        }
        self.after(id);
        self.hand_in_templates(id);
    }
}
