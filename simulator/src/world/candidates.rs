//! The servers of a node that elect their master: the very [`Candidate`] that servers run, driven with a
//! model of etcd.
//!
//! It is driven as the server's shell does: something happens to a candidate, then what it wants done is
//! done, then its node gets its standing. Who is the master follows from that alone.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::template::Templates;
use doorward_engine::time::Time;
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
use crate::world::place::ServerProcess;

/// How many members etcd has, as candidates see it: all are out of reach at once, or none.
const ENDPOINTS: u32 = 3;

/// Leases in etcd last no shorter than this: with less, one renewal that is late would end a mastership …
const TTL_MIN: Duration = Duration::from_millis(500);

/// … and where elections are over at once, they last as long as the shortest that servers take.
const TTL_AT_ONCE: Duration = Duration::from_secs(2);

/// The part of a TTL after which a master that is not confirmed is none any more, at
/// the latest.
const TERM: f64 = 0.9;

/// A server's part in an election.
#[derive(Debug)]
pub(crate) struct Candidacy {
    pub(crate) candidate: Candidate,
    pub(crate) follow: KeyWatch,
    /// What its node has got last.
    applied: Standing,
    /// Templates that are not in force yet; the first of them was handed in.
    pub(super) waiting: VecDeque<Templates>,
    /// The last lease that etcd has granted it, whether it knows or not.
    pub(super) lease: Option<LeaseId>,
    /// By its own clock, it may be the master until then at the latest: by its renewals that have arrived, and
    /// when they were sent. What it knows itself has no part in this: checkers go by it.
    pub(super) may_lead_until: Time,
}

impl Candidacy {
    /// One that knows nothing.
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

/// Which lease lengths templates give.
fn digest(templates: &Templates) -> SmolStr {
    format_smolstr!("{:016x}", templates.lengths_digest())
}

impl World<'_> {
    /// A server of a place with an election takes part in it.
    pub(super) fn join_election(&mut self, id: ServerId) {
        let (now, shortest) = (self.now, self.scenario.servers.election.0);
        let ttl = match shortest < TTL_MIN {
            true => TTL_AT_ONCE,
            false => shortest,
        };
        let Some(place) = self.place(id.place) else {
            return;
        };
        let (local, is_able) = (place.clock.shows(now), place.unable_until <= now);
        let has_parent = place.parent.is_some();
        let addresses = std::sync::Arc::clone(&place.addresses);
        let Some(server) = place.server(id.term) else {
            return;
        };
        let Some(address) = addresses.get(server.slot as usize) else {
            return;
        };
        let templates = &server.templates;
        let config = CandidateConfig {
            address: SmolStr::new(address.as_str()),
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
        self.begin_to_follow(id);
        self.change_candidate(id, |candidate, now| {
            candidate.handle_able(is_able, now);
        });
    }

    /// All servers that take part in elections.
    pub(super) fn candidates(&self) -> Vec<ServerId> {
        let places = 0..self.places.len() as u32;
        places.flat_map(|place| self.candidates_of(place)).collect()
    }

    /// Those of a place.
    pub(super) fn candidates_of(&self, place: u32) -> Vec<ServerId> {
        let servers = self.places.get(place as usize).map(|it| &it.servers);
        let all = servers.into_iter().flatten();
        let all = all.filter(|server| server.candidacy.is_some());
        all.map(|server| ServerId {
            place,
            term: server.term,
        })
        .collect()
    }

    /// Something happens to a candidate, by its own clock; then what it wants done is done.
    pub(super) fn change_candidate(
        &mut self,
        id: ServerId,
        change: impl FnOnce(&mut Candidate, Time),
    ) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let candidacy = place.server(id.term).and_then(|it| it.candidacy.as_mut());
        let Some(candidacy) = candidacy else { return };
        change(&mut candidacy.candidate, local);
        self.drain_candidate(id, local);
        self.apply_standing(id, local);
        self.replace_if_over(id, local);
        self.plan(id.place);
    }

    fn drain_candidate(&mut self, id: ServerId, local: Time) {
        loop {
            let server = self.place(id.place).and_then(|place| place.server(id.term));
            let candidacy = server.and_then(|server| server.candidacy.as_mut());
            match candidacy.and_then(|it| it.candidate.poll_action()) {
                Some(CandidateAction::Ask(asking)) => self.ask_etcd(id, asking),
                Some(CandidateAction::ApplyTemplates) => self.apply_templates(id, local),
                // For people.
                Some(CandidateAction::Report(_)) => {}
                None => return,
            }
        }
    }

    /// Brings a candidate's standing into force.
    fn apply_standing(&mut self, id: ServerId, local: Time) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let Some(server) = server else { return };
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
                let elsewhere = Mastership::Follower {
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
        // If the term was over in between, the node gets that now.
        self.after(id);
        if is_another {
            self.end_term(id);
            self.begin_term_if_master(id, longer_leases);
        }
    }

    /// A server hands over: it resigns, ends, and another process starts in its place.
    pub(super) fn resign(&mut self, id: ServerId) {
        self.change_candidate(id, |candidate, now| {
            candidate.handle_resign(now);
        });
    }

    fn replace_if_over(&mut self, id: ServerId, local: Time) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let Some((slot, candidacy)) =
            server.and_then(|it| it.candidacy.as_ref().map(|c| (it.slot, c)))
        else {
            return;
        };
        if candidacy.candidate.state(local) == CandidateState::Over {
            self.end_server(id);
            self.start_server(id.place, slot);
        }
    }

    /// A candidate looks what it has to do, if it is time.
    pub(super) fn tend_candidate(&mut self, id: ServerId) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let server = place.server(id.term);
        let candidacy = server.and_then(|server| server.candidacy.as_ref());
        let due = candidacy.and_then(|it| it.candidate.poll_timeout());
        if due.is_some_and(|due| due <= local) {
            self.change_candidate(id, |candidate, now| candidate.handle_timeout(now));
        }
    }

    /// A grant or a renewal that was sent then has arrived.
    pub(super) fn note_renewal(
        &mut self,
        id: ServerId,
        granted: Option<LeaseId>,
        ttl: Duration,
        sent: Time,
    ) {
        let Some(place) = self.place(id.place) else {
            return;
        };
        let sent = place.clock.shows(sent);
        let server = place.server(id.term);
        if let Some(candidacy) = server.and_then(|server| server.candidacy.as_mut()) {
            candidacy.lease = granted.or(candidacy.lease);
            let until = sent + ttl.mul_f64(TERM);
            candidacy.may_lead_until = candidacy.may_lead_until.max(until);
        }
    }

    /// How long the leases of a server last.
    pub(super) fn ttl_of(&mut self, id: ServerId) -> Duration {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let candidacy = server.and_then(|server| server.candidacy.as_ref());
        candidacy.map_or(Duration::ZERO, |it| it.candidate.config().ttl)
    }

    /// New templates have come to a server of the root.
    pub(super) fn offer_templates(&mut self, id: ServerId, templates: Templates) {
        let now = self.now;
        let Some(place) = self.place(id.place) else {
            return;
        };
        let local = place.clock.shows(now);
        let Some(server) = place.server(id.term) else {
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

    /// The first of the templates that wait passes through the candidate, unless others do.
    fn hand_in_templates(&mut self, id: ServerId) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let Some(ServerProcess {
            templates,
            candidacy: Some(candidacy),
            ..
        }) = server
        else {
            return;
        };
        if candidacy.candidate.has_templates_waiting() {
            return;
        }
        let Some(next) = candidacy.waiting.front() else {
            return;
        };
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

    /// Templates that were handed in are in force from now on.
    fn apply_templates(&mut self, id: ServerId, local: Time) {
        let server = self.place(id.place).and_then(|place| place.server(id.term));
        let Some(server) = server else { return };
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
