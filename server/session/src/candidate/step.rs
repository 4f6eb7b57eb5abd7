//! A step: what a candidate does when something may have changed, one question to etcd after the other. It
//! begins by looking at what is true: its lease, the keys of the node as they are followed, the time.

use std::time::Duration;

use super::claim::{self, Created, Told};
use super::phase::{Held, Lease};
use super::report::{Loss, Report};
use super::store::{Asking, Entry, Key, Op, OpId, Registration, Txn};
use super::{Action, Candidate, NextTemplates, term};
use crate::time::Time;

/// What a candidate is about.
#[derive(Debug)]
pub(super) enum Step {
    /// Nothing is asked: again at that time, or when something changes.
    Idle { again_at: Time },
    /// An answer is waited for.
    Asked {
        /// The number of the question.
        id: OpId,
        /// When it was sent, at the latest.
        sent_at: Time,
        /// Of what.
        awaited: Awaited,
    },
    /// Templates are brought into force; then it goes on there.
    Applying { then: Stage },
}

/// What was asked, and what is to be known when the answer comes.
#[derive(Debug)]
pub(super) enum Awaited {
    /// Whether etcd answers.
    Heard,
    /// A lease.
    Granted,
    /// The lease, for another TTL.
    Renewed,
    /// That this is said of this server.
    Registered(Registration),
    /// That the mastership is its own, after that renewal; and, with `tells_next`, that etcd knows of the
    /// templates that wait.
    Confirmed {
        lease: Lease,
        tells_next: bool,
        then: Stage,
    },
    /// The mastership.
    Stood { epoch_offset: u64 },
    /// That the master's key is gone.
    Cleared,
    /// How long former leases may last, to hold what was created and won then.
    History { created: Created, won: Time },
    /// That the mastership is resigned.
    Resigned,
    /// That the lease is gone.
    Revoked,
}

/// A part of a step. Each is passed once at most, so that a step ends whatever etcd says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stage {
    /// Templates that may count, count.
    Begin,
    /// If the lease is due after a failure: whether etcd answers.
    Hear,
    /// A lease, or a renewal.
    Renew,
    /// That this server is there.
    Register,
    /// What the master's key asks for.
    Key,
    /// What is not confirmed yet.
    Confirm,
    /// Everything is done.
    End,
}

/// Templates on their way to be in force.
#[derive(Debug)]
pub(super) enum Templates {
    /// None.
    Settled,
    /// Not before etcd has confirmed what is told of them, or nobody decides anything here.
    Waiting(NextTemplates),
    /// The driver brings them into force.
    Applying(NextTemplates),
}

impl Candidate {
    /// Something may have changed: a step, if none is under way, or else after it.
    pub(super) fn poke(&mut self, now: Time) {
        match &self.step {
            _ if !self.phase.takes_part() => {}
            Step::Idle { .. } => self.go_on(Stage::Begin, now),
            Step::Asked { .. } | Step::Applying { .. } => self.has_changed = true,
        }
    }

    /// Goes on with a step, until it must wait, or nothing is left to do.
    pub(super) fn go_on(&mut self, from: Stage, now: Time) {
        let mut next = Some(from);
        while let Some(stage) = next {
            next = match stage {
                Stage::Begin => self.begin(),
                Stage::Hear => self.hear(now),
                Stage::Renew => self.renew(now),
                Stage::Register => self.register(now),
                Stage::Key => self.look_at_the_key(now),
                Stage::Confirm => self.confirm_what_is_new(now),
                Stage::End => self.end(now),
            };
        }
    }

    /// If this server is not the master, templates count at once. If it is and etcd cannot be told, they wait
    /// until its mastership is over. One that is lost counts until then, too: the node may not have heard of it
    /// yet.
    fn begin(&mut self) -> Option<Stage> {
        self.has_changed = false;
        if self.may_apply() {
            self.apply_then(Stage::Hear)
        } else {
            Some(Stage::Hear)
        }
    }

    /// Whether templates wait, and nobody decides anything here.
    pub(super) fn may_apply(&self) -> bool {
        self.has_templates_waiting() && self.decides_until.is_none_or(|until| until <= self.now)
    }

    /// Brings templates that wait into force: etcd has confirmed what is told of them, or nobody decides.
    pub(super) fn apply_then(&mut self, then: Stage) -> Option<Stage> {
        match std::mem::replace(&mut self.templates, Templates::Settled) {
            Templates::Waiting(next) => {
                self.templates = Templates::Applying(next);
                self.step = Step::Applying { then };
                self.actions.push_back(Action::ApplyTemplates);
                None
            }
            other => {
                self.templates = other;
                Some(then)
            }
        }
    }

    /// After a failure asks what changes nothing first. If answers do not come back, a renewal that arrives
    /// would keep a mastership that nobody can use.
    fn hear(&mut self, now: Time) -> Option<Stage> {
        let lease = self.phase.seat().map(|seat| seat.lease);
        if lease.is_some_and(|lease| lease.next_renewal() > now) {
            return Some(Stage::Register);
        }
        if self.backoff.failures() == 0 {
            return Some(Stage::Renew);
        }
        self.ask(Op::Hear, Awaited::Heard, now)
    }

    fn renew(&mut self, now: Time) -> Option<Stage> {
        match self.phase.seat().map(|seat| seat.lease.id) {
            Some(id) => self.ask(Op::Renew(id), Awaited::Renewed, now),
            None => self.ask(Op::Grant(self.config.ttl), Awaited::Granted, now),
        }
    }

    /// Says that this server is there, unless that stands already.
    fn register(&mut self, now: Time) -> Option<Stage> {
        let seat = self.phase.seat()?;
        let registration = self.registration();
        let lease = seat.lease.id;
        if let Some((registered, since)) = &seat.registered {
            let key = Key::Server(self.claim.address.clone());
            let is_there = self.view.as_ref().is_none_or(|view| {
                let is_ours = |entry: &Entry| self.claim.is_registered(entry, registered, lease);
                // A view of before says nothing.
                view.revision < *since || view.entries.get(&key).is_some_and(is_ours)
            });
            if is_there && *registered == registration {
                return Some(Stage::Key);
            }
        }
        let txn = self.claim.register(registration.clone(), lease);
        self.transact("register", txn, Awaited::Registered(registration), now)
    }

    fn registration(&self) -> Registration {
        // Only the master speaks with the parent and the children, and knows its place.
        let of_master = self
            .view
            .as_ref()
            .filter(|_| self.phase.held().is_none())
            .and_then(|view| view.registration_of(&view.master()?.0.address));
        Registration {
            address: self.config.address.clone(),
            server: self.config.server.clone(),
            highest_epoch: Some(self.past.highest_epoch()).filter(|epoch| *epoch > 0),
            pages: self.config.pages.clone(),
            place: of_master
                .map_or(&self.place, |master| &master.place)
                .clone(),
            rest: self.config.rest.clone(),
        }
    }

    /// Does what the master's key asks for, as far as it is known.
    fn look_at_the_key(&mut self, now: Time) -> Option<Stage> {
        let Some(view) = self.view.clone() else {
            return Some(Stage::Confirm);
        };
        let lease = self.phase.seat()?.lease;
        let entry = view.entries.get(&Key::Master);
        let Some(held) = self.phase.held().copied() else {
            return self.look_for_the_key(lease, entry, view.revision, now);
        };
        if held.created.epoch() < self.past.highest_epoch() {
            return self.stand_aside(held.created, now);
        }
        let entry = entry.filter(|entry| entry.created == held.created.revision);
        match entry {
            // etcd was restored from a backup, and went on to the same revision.
            Some(entry) if self.claim.is_of_another(entry) => {
                self.lose(Loss::KeyOfAnother);
                Some(Stage::Confirm)
            }
            Some(entry) if !self.claim.is_intact(entry, held.created, lease.id) => {
                self.report(Report::Mended);
                self.confirm(lease, true, Stage::Confirm, now)
            }
            _ => Some(Stage::Confirm),
        }
    }

    /// The same while the key is not ours, as far as we know.
    fn look_for_the_key(
        &mut self,
        lease: Lease,
        entry: Option<&Entry>,
        revision: u64,
        now: Time,
    ) -> Option<Stage> {
        match entry {
            None if self.is_able => {
                let epoch_offset = term::epoch_offset(self.past.highest_epoch(), revision);
                let stand = self.claim.stand(epoch_offset, lease.id);
                let awaited = Awaited::Stood { epoch_offset };
                self.transact("stand for election", stand, awaited, now)
            }
            Some(entry) if entry.lease == Some(lease.id) => self.take_up(entry, now),
            // It was written by hand. Whoever is the master has time to mend it.
            Some(entry)
                if self.is_able
                    && entry.lease.is_none()
                    && entry.seen_at + self.config.ttl < now =>
            {
                self.report(Report::NobodysKey);
                let sweep = claim::sweep(entry);
                self.transact("delete a key of nobody", sweep, Awaited::Cleared, now)
            }
            _ => Some(Stage::Confirm),
        }
    }

    /// Another server has seen a higher epoch: etcd was restored from a backup, and whoever has seen that epoch
    /// as well does not believe ours. The key is given back, to be won again by a higher one. The term stays:
    /// for everybody else this server may still believe in it.
    fn stand_aside(&mut self, created: Created, now: Time) -> Option<Stage> {
        self.report(Report::TooLow {
            epoch: created.epoch(),
            highest: self.past.highest_epoch(),
        });
        self.lose(Loss::EpochTooLow);
        self.give_back(created, now)
    }

    /// The key was created for us, and we were not told.
    fn take_up(&mut self, entry: &Entry, now: Time) -> Option<Stage> {
        match self.claim.created_by_us(entry) {
            Some(created) => self.win(created, now, now),
            None => Some(Stage::Confirm),
        }
    }

    pub(super) fn give_back(&mut self, created: Created, now: Time) -> Option<Stage> {
        let lease = self.phase.seat()?.lease.id;
        let txn = claim::give_back(created, lease);
        self.transact("give a mastership back", txn, Awaited::Cleared, now)
    }

    /// Asks etcd whether the mastership still is ours, if it never did, or has something new to tell.
    fn confirm_what_is_new(&mut self, now: Time) -> Option<Stage> {
        let is_new = |held: &Held| held.valid_until.is_none();
        let lease = self.phase.seat()?.lease;
        if self.phase.held().is_some_and(is_new) || self.has_templates_waiting() {
            self.confirm(lease, false, Stage::End, now)
        } else {
            Some(Stage::End)
        }
    }

    /// Asks etcd whether the key still is ours, after a renewal that it has answered, and tells whoever may
    /// succeed us. To mend it, the key is written again.
    pub(super) fn confirm(
        &mut self,
        lease: Lease,
        mend: bool,
        then: Stage,
        now: Time,
    ) -> Option<Stage> {
        let Some(held) = self.phase.held().copied() else {
            return Some(then);
        };
        let told = self.told(&held, lease, now);
        let txn = self.claim.confirm(held.created, told, lease.id, mend);
        let awaited = Awaited::Confirmed {
            lease,
            tells_next: matches!(self.templates, Templates::Waiting(_)),
            then,
        };
        self.transact("confirm a mastership", txn, awaited, now)
    }

    /// What a term says that is written now.
    pub(super) fn told(&self, held: &Held, lease: Lease, now: Time) -> Told {
        let next = match &self.templates {
            Templates::Waiting(next) => Some(next),
            Templates::Settled | Templates::Applying(_) => None,
        };
        Told {
            length: term::length(held.begins, lease.ttl, now),
            leases: self.lengths.as_ref().map(|lengths| lengths.told(next, now)),
        }
    }

    /// All was answered. Nothing is to be done before the lease must be renewed, or something changes.
    fn end(&mut self, now: Time) -> Option<Stage> {
        self.backoff.succeed();
        self.report_contact(true);
        let again_at = self
            .phase
            .seat()
            .map_or(now, |seat| seat.lease.next_renewal());
        self.rest(again_at)
    }

    /// Waits until then, unless something has changed meanwhile.
    pub(super) fn rest(&mut self, again_at: Time) -> Option<Stage> {
        self.step = Step::Idle { again_at };
        self.has_changed.then_some(Stage::Begin)
    }

    pub(super) fn transact(
        &mut self,
        what: &'static str,
        txn: Txn,
        awaited: Awaited,
        now: Time,
    ) -> Option<Stage> {
        self.ask(Op::Transact(what, txn), awaited, now)
    }

    /// Asks etcd; what follows comes with the answer.
    pub(super) fn ask(&mut self, op: Op, awaited: Awaited, now: Time) -> Option<Stage> {
        self.ask_within(self.config.call_timeout(), op, awaited, now)
    }

    pub(super) fn ask_within(
        &mut self,
        within: Duration,
        op: Op,
        awaited: Awaited,
        now: Time,
    ) -> Option<Stage> {
        self.asked += 1;
        let id = OpId(self.asked);
        self.step = Step::Asked {
            id,
            sent_at: now,
            awaited,
        };
        self.actions
            .push_back(Action::Ask(Asking { id, op, within }));
        None
    }
}
