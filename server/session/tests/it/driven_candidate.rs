//! A candidate that a test drives by hand.

use std::sync::Arc;
use std::time::Duration;

use doorward_session::candidate::report::ElectionReport;
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::candidate::store::{
    EtcdEntry, EtcdKey, EtcdRequest, LeaseId, Master, Op, OpAnswer, Registration, Role, StepDown,
    StoredMarks, TermRecord, TreePlace, Txn, TxnAnswer, TxnStep, Value, View,
};
use doorward_session::candidate::{ActiveTemplates, Candidate, CandidateAction, CandidateConfig};
use doorward_session::time::Time;
use doorward_session::time::tolerance::Tolerance;

pub(crate) const TTL: Duration = Duration::from_secs(10);

/// Its place.
const ROOT: TreePlace = TreePlace {
    role: Role::Root,
    level: Some(0),
};

/// Lease in etcd of its lease span.
pub(crate) const SPAN: LeaseId = LeaseId(99);

/// A candidate, its last request, and its reports.
pub(crate) struct DrivenCandidate {
    pub(crate) candidate: Candidate,
    pub(crate) asked: Option<EtcdRequest>,
    pub(crate) reports: Vec<ElectionReport>,
    pub(crate) now: Time,
    pub(crate) revision: u64,
    /// Whether registrations are answered automatically.
    pub(crate) is_registered: bool,
    /// Whether requests for a lease span are answered automatically.
    pub(crate) grants_spans: bool,
    /// Whether a view shows a lease span.
    pub(crate) shows_span: bool,
    /// Highest epoch in another server's registration.
    pub(crate) other_saw: Option<u64>,
    /// Epoch of the master that an operator asks to step down, and whether no other server is registered.
    pub(crate) steps_down: Option<u64>,
    pub(crate) is_alone: bool,
    /// Number of templates that came into force.
    pub(crate) applied: u32,
    /// Marks in etcd, and whether requests for them are answered automatically.
    pub(crate) stored: StoredMarks,
    pub(crate) is_read: bool,
    /// Last write of marks, and the number of confirmed ones.
    pub(crate) writes: Option<EtcdRequest>,
    pub(crate) written: u32,
    /// Term in the last view.
    term: Option<EtcdEntry>,
}

impl DrivenCandidate {
    /// Returns a candidate that has just started.
    pub(crate) fn outside() -> Self {
        Self::begun(None)
    }

    /// Returns the same, at the root.
    pub(crate) fn begun(templates: Option<ActiveTemplates>) -> Self {
        let config = CandidateConfig {
            address: "here:1".into(),
            server: "ours".into(),
            pages: None,
            node: "n".into(),
            version: "1".into(),
            ttl: TTL,
            clock_tolerance: Tolerance::LEAST,
            endpoints: 2,
            templates,
        };
        let mut played = Self {
            candidate: Candidate::new(config, ROOT, Time::ZERO),
            asked: None,
            reports: Vec::new(),
            now: Time::ZERO,
            revision: 100,
            is_registered: true,
            grants_spans: true,
            shows_span: true,
            other_saw: None,
            steps_down: None,
            is_alone: false,
            applied: 0,
            stored: StoredMarks::default(),
            is_read: true,
            writes: None,
            written: 0,
            term: None,
        };
        played.candidate.handle_able(true, Time::ZERO);
        played.drain();
        played
    }

    /// Returns a registered candidate while another server is the master.
    pub(crate) fn watching() -> Self {
        Self::outside().that_watches()
    }

    /// Registers it while another server is the master.
    pub(crate) fn that_watches(self) -> Self {
        let mut played = self;
        played.see(Some(("theirs", 50, 7)), None);
        played.answer(OpAnswer::Granted(LeaseId(9), TTL));
        assert_eq!(played.state(), CandidateState::Watching);
        played
    }

    /// Returns a candidate that has asked for the mastership, since there is no master.
    pub(crate) fn standing() -> Self {
        Self::watching().that_stands(None)
    }

    /// Lets it ask for the mastership after a master that wrote that term.
    pub(crate) fn that_stands(self, term: Option<TermRecord>) -> Self {
        let mut played = self;
        played.see(None, term);
        assert_eq!(played.state(), CandidateState::Standing);
        played
    }

    /// Returns a candidate that has won, and asks for a confirmation.
    pub(crate) fn elected() -> Self {
        let mut played = Self::standing();
        played.transacted(true);
        assert_eq!(played.state(), CandidateState::Elected);
        played
    }

    pub(crate) fn master() -> Self {
        Self::elected().that_is_confirmed()
    }

    pub(crate) fn that_is_confirmed(self) -> Self {
        let mut played = self;
        played.see_own_key();
        played.transacted(true);
        assert_eq!(played.state(), CandidateState::Master);
        played
    }

    /// Returns a master that renews its lease.
    pub(crate) fn renewing() -> Self {
        let mut played = Self::master();
        let due = played.candidate.poll_timeout().unwrap();
        played.wait(due.since(played.now));
        assert_eq!(played.asks(), "confirm a mastership");
        played
    }

    /// Returns a former master that etcd has not confirmed in time.
    pub(crate) fn lapsed() -> Self {
        let mut played = Self::renewing();
        played.wait(TTL);
        assert_eq!(played.state(), CandidateState::Lapsed);
        played
    }

    pub(crate) fn resigning() -> Self {
        let mut played = Self::master();
        played.resign();
        assert_eq!(played.state(), CandidateState::Resigning);
        played
    }

    pub(crate) fn drain(&mut self) {
        while let Some(action) = self.candidate.poll_action() {
            match action {
                CandidateAction::Ask(asking) => self.asked = Some(asking),
                CandidateAction::ApplyTemplates => {
                    self.applied += 1;
                    self.candidate.handle_applied(self.now);
                }
                CandidateAction::Report(report) => self.reports.push(report),
                CandidateAction::AskBeside(asking) => self.writes = Some(asking),
                CandidateAction::MarksWritten => self.written += 1,
            }
        }
        if self.asks() == "register" && self.is_registered {
            self.transacted(true);
        }
        match self.asked.as_ref().map(|asked| &asked.op) {
            Some(Op::Grant(ttl)) if self.grants_spans && *ttl != TTL => {
                self.answer(OpAnswer::Granted(SPAN, *ttl));
            }
            Some(Op::ReadMarks { .. }) if self.is_read => {
                let stored = Arc::new(self.stored.clone());
                self.answer(OpAnswer::Marks(Some(stored)));
            }
            _ => {}
        }
    }

    pub(crate) fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.candidate.handle_timeout(self.now);
        self.drain();
    }

    pub(crate) fn answer(&mut self, answer: OpAnswer) {
        let asked = self.asked.take().expect("something is asked");
        self.candidate
            .handle_answer(asked.id, answer, 0.5, self.now);
        self.drain();
    }

    pub(crate) fn transacted(&mut self, succeeded: bool) {
        self.revision += 1;
        let reads_term = succeeded && self.txn().then.contains(&TxnStep::Get(EtcdKey::Term));
        let found = self.term.clone().filter(|_| reads_term);
        self.answer(OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.revision,
            found,
        }));
    }

    /// Shows it a view with that master (its process, the key's revision and lease), and that term.
    pub(crate) fn see(&mut self, master: Option<(&str, u64, i64)>, term: Option<TermRecord>) {
        self.revision += 1;
        let mut view = View {
            revision: self.revision,
            ..View::default()
        };
        let entry = |value, created, lease| EtcdEntry {
            value,
            created,
            modified: created,
            lease,
            seen_at: self.now,
        };
        if let Some((server, created, lease)) = master {
            let address = if server == "ours" {
                "here:1"
            } else {
                "there:1"
            };
            let value = Value::Master(Master {
                address: address.into(),
                server: server.into(),
                epoch_offset: 0,
            });
            let lease = Some(LeaseId(lease)).filter(|lease| lease.0 != 0);
            view.entries
                .insert(EtcdKey::Master, entry(value, created, lease));
        }
        self.term = term.map(|term| entry(Value::Term(term), 60, None));
        if let Some(term) = self.term.clone() {
            view.entries.insert(EtcdKey::Term, term);
        }
        if self.shows_span {
            let span = entry(Value::LeaseSpan {}, 60, Some(SPAN));
            view.entries.insert(EtcdKey::LeaseSpan, span);
        }
        if let Some(epoch) = self.steps_down {
            let request = entry(Value::StepDown(StepDown { epoch }), 95, Some(LeaseId(96)));
            view.entries.insert(EtcdKey::StepDown, request);
        }
        // Its registration is in place.
        for (address, highest_epoch) in [("here:1", None), ("there:1", self.other_saw)] {
            let value = Value::Server(Registration {
                address: address.into(),
                server: if self.is_alone { "ours" } else { "another" }.into(),
                highest_epoch,
                pages: None,
                node: "n".into(),
                place: ROOT,
                version: "1".into(),
            });
            let key = EtcdKey::Server(address.into());
            view.entries.insert(key, entry(value, 90, Some(LeaseId(9))));
        }
        self.candidate.handle_view(Arc::new(view), self.now);
        self.drain();
    }

    /// Shows it a view with its own key, and with the same term as before.
    pub(crate) fn see_own_key(&mut self) {
        let created = self.revision;
        let term = self.term.take().and_then(|entry| match entry.value {
            Value::Term(term) => Some(term),
            _ => None,
        });
        self.see(Some(("ours", created, 9)), term);
    }

    /// Makes it resign.
    pub(crate) fn resign(&mut self) {
        self.asked = None;
        self.candidate.handle_resign(self.now);
        self.drain();
    }

    /// Shows it a view without a master.
    pub(crate) fn lose_key(&mut self) {
        self.asked = None;
        self.see(None, None);
    }

    /// Returns its epoch, as the master: the revision of its key.
    pub(crate) fn epoch(&self) -> u64 {
        match self.candidate.standing(self.now) {
            Standing::Master(term) => term.epoch,
            other => panic!("{other:?}"),
        }
    }

    pub(crate) fn state(&self) -> CandidateState {
        self.candidate.state(self.now)
    }

    /// Names its request, in short. Empty: none.
    pub(crate) fn asks(&self) -> &'static str {
        self.asked.as_ref().map_or("", |asked| match &asked.op {
            Op::Probe => "probe",
            Op::Grant(_) => "grant",
            Op::Renew(_) => "renew",
            Op::Revoke(_) => "revoke",
            Op::Transact(what, _) => what,
            Op::Confirm { .. } => "confirm a mastership",
            Op::ReadHistory(_) => "history",
            Op::ReadMarks { .. } => "marks",
        })
    }

    pub(crate) fn txn(&self) -> &Txn {
        match &self.asked.as_ref().unwrap().op {
            Op::Transact(_, txn) | Op::Confirm { txn, .. } => txn,
            other => panic!("{other:?}"),
        }
    }
}
