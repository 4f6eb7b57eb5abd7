//! A step: the requests of a candidate after a possible change, one after the other. It begins with the known state:
//! its lease, the view of the node's keys, and the time.

use std::time::Duration;

use super::phase::{EtcdLease, HeldMastership};
use super::report::{ElectionReport, LossReason};
use super::store::{EtcdEntry, EtcdKey, EtcdRequest, Op, OpId, Registration, TermRecord};
use super::transactions::{self, CreatedKey};
use super::{Candidate, CandidateAction, NextTemplates, term};
use crate::time::Time;

/// Longest time of one attempt to resign.
const RESIGN_ATTEMPT: Duration = Duration::from_millis(300);

/// Activity of a candidate.
#[derive(Debug)]
pub(super) enum Step {
    /// None, until that time, or until a change.
    Idle { again_at: Time },
    /// It waits for an answer.
    Asked {
        /// Number of the request.
        id: OpId,
        /// Latest time of sending.
        sent_at: Time,
        /// Kind of the request.
        awaited: Awaited,
    },
    /// The driver brings templates into force. Then the step continues with that stage.
    Applying { next: NextTemplates, then: Stage },
}

/// Kind of a request, with the values that its answer needs.
#[derive(Debug)]
pub(super) enum Awaited {
    /// A check whether etcd answers.
    Probed,
    /// A lease.
    Granted,
    /// The lease, for another TTL.
    Renewed,
    /// Its registration.
    Registered(Registration),
    /// The lease of a lease span, before a confirmation.
    Span { mend: bool, then: Stage },
    /// A confirmation of its mastership, with a renewal and perhaps its registration. With `announces_next`, etcd also
    /// records the lease lengths of the waiting templates.
    Confirmed {
        registers: Option<Registration>,
        announces_next: bool,
        then: Stage,
    },
    /// The mastership. `seen`: etcd's revision before.
    Stood { epoch_offset: u64, seen: u64 },
    /// The deletion of the master's key.
    Cleared,
    /// All marks, before it holds the mastership.
    Marks { created: CreatedKey, won: Time },
    /// The longest former leases, before it holds the mastership.
    History { created: CreatedKey, won: Time },
    /// The resignation.
    Resigned,
    /// The revocation of the lease.
    Revoked,
}

/// A part of a step. Each is passed once, or twice if the lease must be renewed first, so a step ends whatever etcd
/// answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Apply waiting templates, if that is allowed.
    Begin,
    /// Check that etcd answers, if a renewal is due after a failure.
    Probe,
    /// Get or renew the lease.
    Renew,
    /// Register this server, unless it is the master: that does so with a confirmation.
    Register,
    /// Act on the master's key.
    Key,
    /// Confirm new facts.
    Confirm,
    /// Rest.
    End,
}

impl Candidate {
    /// Begins a step after a possible change, now or after the present one.
    pub(super) fn poke(&mut self, now: Time) {
        match &self.step {
            _ if !self.phase.takes_part() => {}
            Step::Idle { .. } => self.go_on(Stage::Begin, now),
            Step::Asked { .. } | Step::Applying { .. } => self.has_changed = true,
        }
    }

    /// Continues a step until it must wait, or is complete.
    pub(super) fn go_on(&mut self, from: Stage, now: Time) {
        let mut next = Some(from);
        while let Some(stage) = next {
            next = match stage {
                Stage::Begin => self.begin(),
                Stage::Probe => self.probe(now),
                Stage::Renew => self.renew(now),
                Stage::Register => self.register(now),
                Stage::Key => self.act_on_key(now),
                Stage::Confirm => self.confirm_what_is_new(now),
                Stage::End => self.end(now),
            };
        }
    }

    /// If this server is not the master, new templates come into force at once. If it is the master and etcd is
    /// unreachable, they wait until its mastership has ended. A lost mastership counts until then, too, because the
    /// node may not know yet that it is lost.
    fn begin(&mut self) -> Option<Stage> {
        self.has_changed = false;
        if self.may_apply() {
            self.apply_then(Stage::Probe)
        } else {
            Some(Stage::Probe)
        }
    }

    /// Whether templates wait, and this server decides nothing.
    pub(super) fn may_apply(&self) -> bool {
        self.has_templates_waiting() && self.decides_until.is_none_or(|until| until <= self.now)
    }

    /// Brings waiting templates into force: etcd has confirmed their lease lengths, or this server decides nothing.
    pub(super) fn apply_then(&mut self, then: Stage) -> Option<Stage> {
        let Some(next) = self.next_templates.take() else {
            return Some(then);
        };
        self.step = Step::Applying { next, then };
        self.actions.push_back(CandidateAction::ApplyTemplates);
        None
    }

    /// Reads a key first after a failure. If answers are lost, a renewal that arrives would prolong a mastership that
    /// cannot be confirmed.
    fn probe(&mut self, now: Time) -> Option<Stage> {
        let lease = self.phase.seat().map(|seat| seat.lease);
        if lease.is_some_and(|lease| lease.next_renewal() > now) {
            return Some(Stage::Register);
        }
        if self.backoff.failures() == 0 {
            return Some(Stage::Renew);
        }
        self.ask(Op::Probe, Awaited::Probed, now)
    }

    /// Gets or renews the lease. A master's renewal counts only with the confirmation, so both are one request.
    fn renew(&mut self, now: Time) -> Option<Stage> {
        if self.phase.held().is_some() {
            return self.span_and_confirm(false, Stage::Register, now);
        }
        match self.phase.seat().map(|seat| seat.lease.id) {
            Some(id) => self.ask(Op::Renew(id), Awaited::Renewed, now),
            None => self.ask(Op::Grant(self.config.ttl), Awaited::Granted, now),
        }
    }

    fn register(&mut self, now: Time) -> Option<Stage> {
        let seat = self.phase.seat()?;
        let registration = match self.to_register() {
            Some(registration) if seat.held.is_none() => registration,
            _ => return Some(Stage::Key),
        };
        let txn = self.config.register(registration.clone(), seat.lease.id);
        let op = Op::Transact("register", txn);
        self.ask(op, Awaited::Registered(registration), now)
    }

    /// Returns the registration of this server, unless it is in place.
    fn to_register(&self) -> Option<Registration> {
        let seat = self.phase.seat()?;
        let registration = self.registration();
        let lease = seat.lease.id;
        if let Some((registered, since)) = &seat.registered {
            let key = EtcdKey::Server(self.config.address.clone());
            let is_there = self.view.as_ref().is_none_or(|view| {
                let is_ours =
                    |entry: &EtcdEntry| self.config.is_registered(entry, registered, lease);
                // A view from before the registration does not count.
                view.revision < *since || view.entries.get(&key).is_some_and(is_ours)
            });
            if is_there && *registered == registration {
                return None;
            }
        }
        Some(registration)
    }

    fn registration(&self) -> Registration {
        // Only the master talks to the parent and to children, so only it knows its place in the tree.
        let view = self.view.as_ref();
        let view = view.filter(|_| self.phase.held().is_none());
        let of_master = view.and_then(|view| view.registration_of(&view.master()?.0.address));
        Registration {
            node: self.config.node.clone(),
            address: self.config.address.clone(),
            pages: self.config.pages.clone(),
            server: self.config.server.clone(),
            place: of_master.map_or(self.place, |master| master.place),
            highest_epoch: Some(self.terms.highest_epoch()).filter(|epoch| *epoch > 0),
            version: self.config.version.clone(),
        }
    }

    /// Acts on the master's key in the view.
    fn act_on_key(&mut self, now: Time) -> Option<Stage> {
        let Some(view) = self.view.clone() else {
            return Some(Stage::Confirm);
        };
        let lease = self.phase.seat()?.lease;
        let entry = view.entries.get(&EtcdKey::Master);
        let Some(held) = self.phase.held().copied() else {
            return self.act_on_foreign_key(lease, entry, view.revision, now);
        };
        if held.created.epoch() < self.terms.highest_epoch() {
            return self.stand_aside(held.created, now);
        }
        if view.steps_down() == Some(held.created.epoch()) {
            return self.step_down(&held, now);
        }
        let entry = entry.filter(|entry| entry.created == held.created.revision);
        match entry {
            // etcd was restored from a backup, and reached the same revision again.
            Some(entry) if self.config.is_of_another(entry) => {
                self.lose(LossReason::KeyOfAnother);
                Some(Stage::Confirm)
            }
            Some(entry) if !self.config.is_intact(entry, held.created, lease.id) => {
                self.report(ElectionReport::Mended);
                self.span_and_confirm(true, Stage::Confirm, now)
            }
            _ => Some(Stage::Confirm),
        }
    }

    /// Does the same while this server does not have the key, as far as it knows.
    fn act_on_foreign_key(
        &mut self,
        lease: EtcdLease,
        entry: Option<&EtcdEntry>,
        revision: u64,
        now: Time,
    ) -> Option<Stage> {
        match entry {
            None if self.has_stepped_down() => Some(Stage::Confirm),
            // A mastership is confirmed only while the lease lasts, and etcd may be slow.
            None if self.is_able && lease.renewed + lease.ttl / 2 <= now => Some(Stage::Renew),
            None if self.is_able => {
                let epoch_offset = term::epoch_offset(self.terms.highest_epoch(), revision);
                let stand = self.config.stand(epoch_offset, lease.id);
                let awaited = Awaited::Stood {
                    epoch_offset,
                    seen: revision,
                };
                self.ask(Op::Transact("stand for election", stand), awaited, now)
            }
            // This server created the key, and the answer was lost.
            Some(entry) if entry.lease == Some(lease.id) => {
                match self.config.created_by_us(entry) {
                    Some(created) => self.win(created, now),
                    None => Some(Stage::Confirm),
                }
            }
            // An operator wrote the key by hand. The master has had time to repair it.
            Some(entry)
                if self.is_able
                    && entry.lease.is_none()
                    && entry.seen_at + self.config.ttl < now =>
            {
                self.report(ElectionReport::KeyWithoutLease);
                let sweep = transactions::sweep(entry);
                let op = Op::Transact("delete a key without a lease", sweep);
                self.ask(op, Awaited::Cleared, now)
            }
            _ => Some(Stage::Confirm),
        }
    }

    /// Another server has seen a higher epoch: etcd was restored from a backup, and clients that saw that epoch refuse
    /// this one. The candidate gives the key back, to win it again with a higher epoch. The term stays, because to
    /// other candidates this server may still be acting.
    fn stand_aside(&mut self, created: CreatedKey, now: Time) -> Option<Stage> {
        self.report(ElectionReport::TooLow {
            epoch: created.epoch(),
            highest: self.terms.highest_epoch(),
        });
        self.lose(LossReason::EpochTooLow);
        self.give_back(created, now)
    }

    pub(super) fn give_back(&mut self, created: CreatedKey, now: Time) -> Option<Stage> {
        let lease = self.phase.seat()?.lease.id;
        let txn = transactions::give_back(created, lease);
        let op = Op::Transact("give a mastership back", txn);
        self.ask(op, Awaited::Cleared, now)
    }

    /// Confirms the mastership if that has not happened yet, if templates wait, or to register.
    fn confirm_what_is_new(&mut self, now: Time) -> Option<Stage> {
        let is_news = self.phase.held().is_some_and(|held| {
            held.valid_until.is_none()
                || self.has_templates_waiting()
                || self.to_register().is_some()
        });
        if is_news {
            self.span_and_confirm(false, Stage::End, now)
        } else {
            Some(Stage::End)
        }
    }

    /// Renews the leases, asks etcd to confirm that the key is still its own, and writes the term for a successor. With
    /// `mend`, it writes the key again.
    ///
    /// The transaction needs not follow the renewal. If both succeed, the lease existed from the first to the second, and
    /// both came after they were sent. If the key is deleted by hand in between, a successor waits for the term.
    pub(super) fn confirm(&mut self, mend: bool, then: Stage, now: Time) -> Option<Stage> {
        let (Some(held), Some(lease)) = (self.phase.held().copied(), self.renewed_lease(now))
        else {
            return Some(then);
        };
        let (term, span) = self.term_with_span(&held, lease, now);
        let registers = self.to_register();
        let (config, lease) = (&self.config, lease.id);
        let mut txn = config.confirm(held.created, term, span, lease, mend);
        if let Some(registration) = &registers {
            let register = config.register(registration.clone(), lease);
            txn.then.extend(register.then);
        }
        let op = Op::Confirm { lease, span, txn };
        let awaited = Awaited::Confirmed {
            registers,
            announces_next: self.has_templates_waiting(),
            then,
        };
        self.ask(op, awaited, now)
    }

    /// Returns the lease of this server, renewed by a request that is sent now.
    pub(super) fn renewed_lease(&self, now: Time) -> Option<EtcdLease> {
        let lease = self.phase.seat()?.lease;
        Some(EtcdLease {
            renewed: now,
            ..lease
        })
    }

    /// Returns a term without a lease span that is written now.
    pub(super) fn term(&self, held: &HeldMastership, lease: EtcdLease, now: Time) -> TermRecord {
        let (lengths, next) = (self.lengths.as_ref(), self.next_templates.as_ref());
        TermRecord {
            epoch: held.created.epoch(),
            address: self.config.address.clone(),
            server: self.config.server.clone(),
            length: term::length(held.begins, lease.ttl, now),
            leases: lengths.map(|lengths| lengths.to_write(next, now)),
            ..TermRecord::default()
        }
    }

    /// Ends the step, since etcd has answered everything. The candidate rests until the next renewal or change.
    fn end(&mut self, now: Time) -> Option<Stage> {
        self.backoff.succeed();
        self.report_contact(true);
        let seat = self.phase.seat();
        self.rest(seat.map_or(now, |seat| seat.lease.next_renewal()))
    }

    /// Rests until then, unless something has changed meanwhile.
    pub(super) fn rest(&mut self, again_at: Time) -> Option<Stage> {
        self.step = Step::Idle { again_at };
        self.has_changed.then_some(Stage::Begin)
    }

    /// Sends a request to etcd.
    pub(super) fn ask(&mut self, op: Op, awaited: Awaited, now: Time) -> Option<Stage> {
        let within = match awaited {
            Awaited::Resigned => RESIGN_ATTEMPT.min(self.config.call_timeout()),
            _ => self.config.call_timeout(),
        };
        self.asked += 1;
        let id = OpId(self.asked);
        self.step = Step::Asked {
            id,
            sent_at: now,
            awaited,
        };
        self.actions
            .push_back(CandidateAction::Ask(EtcdRequest { id, op, within }));
        None
    }
}
