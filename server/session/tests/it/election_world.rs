//! Candidates and a model of etcd in virtual time: messages in flight, faults, and checks.
//!
//! Each candidate has a clock that may be as wrong as it allows for. A request may be lost, executed without an
//! answer, executed late, or answered late. Views arrive late, or not at all while a candidate is cut off. After
//! every event all candidates are checked: never two masters; epochs grow; no candidate takes or deletes another
//! server's key; and a master that begins knows since when no other master has decided.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{
    EtcdKey, Op, OpAnswer, OpId, TxnAnswer, TxnStep, Value, View,
};
use doorward_session::candidate::{Candidate, CandidateAction, CandidateConfig};
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;

use crate::election_chance::ElectionChance;
use crate::etcd_model::{EtcdModel, seen};
use crate::mishaps::Mishaps;

pub(crate) const TTL: Duration = Duration::from_secs(4);

/// More events than this mean that a candidate never rests.
const EVENTS_MAX: u64 = 200_000;

pub(crate) enum ElectionEvent {
    Timeout(u64),
    Arrives(OpId, Op),
    Answered(OpId, OpAnswer),
    GivenUp(OpId),
    Sees(View),
    /// It notices that it cannot follow the keys.
    Away,
    /// It is reconnected.
    Back,
    Thaws,
    Starts,
}

pub(crate) struct Member {
    /// None: it does not run.
    pub(crate) candidate: Option<Candidate>,
    /// The number of its process in this place.
    pub(crate) process: u32,
    speed: f64,
    view: Option<Arc<View>>,
    seen_at: Time,
    pub(crate) frozen_until: Time,
    pub(crate) cut_until: Time,
    /// The number of the present timeout. Others are ignored.
    timeout: u64,
    /// The mastership that it held at the last check, and until when by the true clock.
    believed: Option<(u64, Time)>,
}

pub(crate) struct ElectionWorld {
    pub(crate) now: Time,
    pub(crate) chance: ElectionChance,
    pub(crate) mishaps: Mishaps,
    pub(crate) store: EtcdModel,
    pub(crate) backup: EtcdModel,
    pub(crate) members: Vec<Member>,
    pub(crate) queue: BTreeMap<(Time, u64), (usize, u32, ElectionEvent)>,
    events: u64,
    /// The highest epoch of any mastership.
    epoch: u64,
    /// Until when each mastership was held, by epoch.
    decided: BTreeMap<u64, Time>,
    /// How many masterships there were.
    pub(crate) masterships: usize,
}

impl ElectionWorld {
    pub(crate) fn new(seed: u64, count: usize, mishaps: Mishaps) -> Self {
        let mut world = Self {
            now: Time::ZERO,
            chance: ElectionChance::new(seed),
            mishaps,
            store: EtcdModel::default(),
            backup: EtcdModel::default(),
            members: Vec::new(),
            queue: BTreeMap::new(),
            events: 0,
            epoch: 0,
            decided: BTreeMap::new(),
            masterships: 0,
        };
        for number in 0..count {
            let wrong = if number % 2 == 0 { -1.0 } else { 1.0 };
            world.members.push(Member {
                candidate: None,
                process: 0,
                speed: 1.0 + wrong * mishaps.clocks,
                view: None,
                seen_at: Time::ZERO,
                frozen_until: Time::ZERO,
                cut_until: Time::ZERO,
                timeout: 0,
                believed: None,
            });
            world.start(number);
        }
        world
    }

    /// Plays for that long with a fault now and then; then heals, and demands that all agree on a master.
    pub(crate) fn play(&mut self, length: Duration) {
        let mut next_fault = self.now;
        let until = self.now + length;
        while self.now < until {
            next_fault = next_fault + self.chance.span(TTL * 2);
            self.play_until(next_fault.min(until));
            self.go_wrong();
        }
        self.mishaps.lossy = 0.0;
        self.play_until(until + TTL * 12);
        self.assert_agreed();
    }

    fn assert_agreed(&self) {
        let standings = self.members.iter().map(|member| {
            let candidate = member.candidate.as_ref().unwrap();
            candidate.standing(member.shows(self.now))
        });
        let standings: Vec<_> = standings.collect();
        let masters = standings.iter().filter(|it| it.is_master()).count();
        let epoch = self.store.keys.get(&EtcdKey::Master).map(|it| it.created);
        assert_eq!(masters, 1, "{standings:?}, {epoch:?}");
        for standing in &standings {
            assert_ne!(*standing, Standing::Unknown, "{standings:?}");
        }
    }

    fn play_until(&mut self, until: Time) {
        while let Some(entry) = self.queue.first_entry() {
            let at = entry.key().0;
            if at > until {
                break;
            }
            let (number, process, event) = entry.remove();
            self.now = self.now.max(at);
            self.end_leases();
            self.happen(number, process, event);
            self.check();
            assert!(
                self.events < EVENTS_MAX,
                "the candidates never rest: {:?}",
                self.now
            );
        }
        self.now = until;
    }

    fn end_leases(&mut self) {
        let before = self.store.revision;
        self.store.end_leases(self.now);
        if self.store.revision != before {
            self.show();
        }
    }

    pub(crate) fn schedule(&mut self, after: Duration, number: usize, event: ElectionEvent) {
        self.events += 1;
        let process = self.members[number].process;
        let at = self.now + after;
        self.queue
            .insert((at, self.events), (number, process, event));
    }

    fn happen(&mut self, number: usize, process: u32, event: ElectionEvent) {
        // A request in flight arrives even if its sender has ended.
        if let ElectionEvent::Arrives(id, op) = event {
            return self.arrive(number, process, id, &op);
        }
        let member = &mut self.members[number];
        if let ElectionEvent::Starts = event {
            return self.start(number);
        }
        if member.process != process {
            return;
        }
        if member.frozen_until > self.now {
            let left = member.frozen_until.since(self.now);
            return self.schedule(left, number, event);
        }
        let (now, is_cut) = (member.shows(self.now), member.cut_until > self.now);
        let chance = self.chance.part();
        let Some(candidate) = &mut member.candidate else {
            return;
        };
        match event {
            // A newer timeout replaced this one.
            ElectionEvent::Timeout(timeout) if timeout != member.timeout => return,
            ElectionEvent::Timeout(_) => candidate.handle_timeout(now),
            ElectionEvent::Answered(id, answer) => {
                candidate.handle_answer(id, seen_at(answer, now), chance, now);
            }
            ElectionEvent::GivenUp(id) => {
                candidate.handle_answer(id, OpAnswer::Failed, chance, now)
            }
            ElectionEvent::Sees(_) if is_cut => {}
            ElectionEvent::Sees(view) => self.see(number, view),
            ElectionEvent::Away if is_cut => candidate.handle_contact(member.seen_at, true, now),
            ElectionEvent::Back if is_cut => {}
            ElectionEvent::Back => {
                let view = self.store.view();
                self.see(number, view);
            }
            // Thawing only delivers what waited.
            _ => return,
        }
        self.drain(number);
    }

    pub(crate) fn see(&mut self, number: usize, view: View) {
        let member = &mut self.members[number];
        let now = member.shows(self.now);
        let view = Arc::new(seen(view, member.view.as_deref(), now));
        member.view = Some(Arc::clone(&view));
        member.seen_at = now;
        if let Some(candidate) = &mut member.candidate {
            candidate.handle_view(view, now);
            self.drain(number);
        }
        let member = &mut self.members[number];
        if let Some(candidate) = &mut member.candidate {
            candidate.handle_contact(now, false, now);
        }
        self.drain(number);
    }

    pub(crate) fn drain(&mut self, number: usize) {
        let member = &mut self.members[number];
        let now = member.shows(self.now);
        let Some(candidate) = &mut member.candidate else {
            return;
        };
        let mut asked = Vec::new();
        while let Some(action) = candidate.poll_action() {
            match action {
                CandidateAction::Ask(asking) => asked.push(asking),
                CandidateAction::ApplyTemplates => candidate.handle_applied(now),
                CandidateAction::Report(_) => {}
            }
        }
        if candidate.state(now) == CandidateState::Over {
            let after = self.chance.span(TTL);
            self.stop(number, after);
            return;
        }
        let (timeout, speed) = (candidate.poll_timeout(), member.speed);
        member.timeout += 1;
        let serial = member.timeout;
        if let Some(timeout) = timeout {
            // A nanosecond more: by the candidate's clock it is never too early.
            let after = timeout.since(now).div_f64(speed) + Duration::from_nanos(2);
            self.schedule(after, number, ElectionEvent::Timeout(serial));
        }
        for asking in asked {
            let within = asking.within.div_f64(speed);
            self.schedule(within, number, ElectionEvent::GivenUp(asking.id));
            let is_cut = self.members[number].cut_until > self.now;
            let goes_wrong = self.chance.happens(self.mishaps.lossy);
            if is_cut || goes_wrong && self.chance.happens(0.2) {
                continue;
            }
            let late = if goes_wrong { TTL } else { TTL / 200 };
            let after = self.chance.span(late);
            self.schedule(after, number, ElectionEvent::Arrives(asking.id, asking.op));
        }
    }

    /// A request arrives at etcd.
    fn arrive(&mut self, number: usize, process: u32, id: OpId, op: &Op) {
        self.check_is_its_own(number, process, op);
        let before = self.store.revision;
        let answer = self.store.apply(op, self.now);
        if self.store.revision != before {
            self.show();
        }
        let is_cut = self.members[number].cut_until > self.now;
        let goes_wrong = self.chance.happens(self.mishaps.lossy);
        if self.members[number].process != process
            || is_cut
            || goes_wrong && self.chance.happens(0.3)
        {
            return;
        }
        // Late, and often just in time.
        let late = if goes_wrong { TTL / 4 } else { TTL / 200 };
        let after = self.chance.span(late);
        self.schedule(after, number, ElectionEvent::Answered(id, answer));
    }

    /// Every candidate gets the present view of etcd.
    pub(crate) fn show(&mut self) {
        let view = self.store.view();
        for number in 0..self.members.len() {
            let after = self.chance.span(TTL / 100);
            self.schedule(after, number, ElectionEvent::Sees(view.clone()));
        }
    }

    fn start(&mut self, number: usize) {
        let member = &mut self.members[number];
        member.process += 1;
        let config = CandidateConfig {
            address: format!("c{number}:1").into(),
            server: format!("{number}.{}", member.process).into(),
            pages: None,
            rest: "".into(),
            ttl: TTL,
            clock_tolerance: Tolerance::clamped(self.mishaps.clocks),
            endpoints: 1,
            templates: None,
        };
        let now = member.shows(self.now);
        let mut candidate = Candidate::new(config, now);
        candidate.handle_able(true, now);
        member.candidate = Some(candidate);
        member.view = None;
        self.drain(number);
        self.schedule(TTL / 50, number, ElectionEvent::Back);
    }

    /// A process ends, and another one starts in its place after that time.
    pub(crate) fn stop(&mut self, number: usize, after: Duration) {
        self.look(number);
        let member = &mut self.members[number];
        member.candidate = None;
        member.process += 1;
        self.schedule(after, number, ElectionEvent::Starts);
    }

    /// Checks that a request does not change another server's master's key.
    fn check_is_its_own(&self, number: usize, process: u32, op: &Op) {
        let Op::Transact(what, txn) = op else {
            return;
        };
        let mut would = self.store.clone();
        let done = matches!(
            would.apply(op, self.now),
            OpAnswer::Transacted(TxnAnswer {
                succeeded: true,
                ..
            })
        );
        let touches = txn.then.iter().any(|step| {
            matches!(
                step,
                TxnStep::Delete(EtcdKey::Master)
                    | TxnStep::Put {
                        key: EtcdKey::Master,
                        ..
                    }
            )
        });
        let ours = format!("{number}.{process}");
        match self.store.keys.get(&EtcdKey::Master).map(|it| &it.value) {
            Some(Value::Master(master)) if done && touches => {
                assert_eq!(*master.server, ours, "{what}: {txn:?}");
            }
            _ => {}
        }
    }

    /// Checks what must never happen.
    pub(crate) fn check(&mut self) {
        for number in 0..self.members.len() {
            self.look(number);
        }
        let masters = self.members.iter().filter(|it| it.believed.is_some());
        let masters: Vec<_> = masters.map(|it| it.believed).collect();
        assert!(
            masters.len() <= 1,
            "two masters at {:?}: {masters:?}",
            self.now
        );
    }

    /// Records the mastership that a candidate holds.
    fn look(&mut self, number: usize) {
        let member = &mut self.members[number];
        let local = member.shows(self.now);
        let standing = member.candidate.as_ref().map(|it| it.standing(local));
        if let Some((epoch, until)) = member.believed.take() {
            let until = until.min(self.now);
            let decided = self.decided.entry(epoch).or_insert(until);
            *decided = (*decided).max(until);
        }
        let Some(Standing::Master(term)) = standing else {
            return;
        };
        let valid_until = member.truly(term.valid_until);
        member.believed = Some((term.epoch, valid_until));
        if self.decided.contains_key(&term.epoch) {
            return;
        }
        assert!(
            term.epoch > self.epoch,
            "{} after {}",
            term.epoch,
            self.epoch
        );
        let vacant_since = member.truly(term.vacant_since);
        let last = self.decided.values().max().copied().unwrap_or_default();
        assert!(
            last <= vacant_since + Duration::from_micros(1),
            "a master decided until {last:?}, but the successor assumes that the node is vacant since {vacant_since:?}"
        );
        self.epoch = term.epoch;
        self.masterships += 1;
        self.decided.insert(term.epoch, self.now);
    }
}

impl Member {
    /// What its clock shows at a true time.
    pub(crate) fn shows(&self, now: Time) -> Time {
        Time::after_origin(now.since_origin().mul_f64(self.speed))
    }

    /// When its clock shows that.
    fn truly(&self, shown: Time) -> Time {
        Time::after_origin(shown.since_origin().div_f64(self.speed))
    }
}

/// What a transaction has found was seen when the answer came.
fn seen_at(answer: OpAnswer, now: Time) -> OpAnswer {
    match answer {
        OpAnswer::Transacted(mut answer) => {
            if let Some(found) = &mut answer.found {
                found.seen_at = now;
            }
            OpAnswer::Transacted(answer)
        }
        other => other,
    }
}
