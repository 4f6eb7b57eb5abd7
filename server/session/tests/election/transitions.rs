//! What a candidate does in each state, whatever happens in it: a table.

use std::sync::Arc;
use std::time::Duration;

use doorward_session::candidate::clock_error::ClockError;
use doorward_session::candidate::report::{Loss, Report};
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::State;
use doorward_session::candidate::store::{
    Asking, Compare, Entry, Key, LeaseId, Master, Op, OpAnswer, OpId, Step, Term, Txn, TxnAnswer,
    Value, View,
};
use doorward_session::candidate::{Action, Candidate, Config};
use doorward_session::time::Time;

const TTL: Duration = Duration::from_secs(10);

/// A candidate, what it asked last, and what it told.
struct Played {
    candidate: Candidate,
    asked: Option<Asking>,
    reports: Vec<Report>,
    now: Time,
    revision: u64,
    /// Whether a registration is answered at once.
    is_registered: bool,
}

impl Played {
    /// It has just begun.
    fn outside() -> Self {
        let config = Config {
            address: "here:1".into(),
            server: "ours".into(),
            pages: None,
            rest: "".into(),
            ttl: TTL,
            clock_error: ClockError::LEAST,
            endpoints: 2,
            templates: None,
        };
        let mut played = Self {
            candidate: Candidate::new(config, Time::ZERO),
            asked: None,
            reports: Vec::new(),
            now: Time::ZERO,
            revision: 100,
            is_registered: true,
        };
        played.candidate.handle_able(true, Time::ZERO);
        played.drain();
        played
    }

    /// It is there, and another one is the master.
    fn watching() -> Self {
        let mut played = Self::outside();
        played.see(Some(("theirs", 50, 7)), None);
        played.answer(OpAnswer::Granted(LeaseId(9), TTL));
        assert_eq!(played.state(), State::Watching);
        played
    }

    /// There is no master, and it has asked to be.
    fn standing() -> Self {
        let mut played = Self::watching();
        played.see(None, None);
        assert_eq!(played.state(), State::Standing);
        played
    }

    /// It has won, and asks for a confirmation.
    fn elected() -> Self {
        let mut played = Self::standing();
        played.transacted(true);
        assert_eq!(played.state(), State::Elected);
        played
    }

    fn master() -> Self {
        let mut played = Self::elected();
        played.see_own_key();
        played.transacted(true);
        assert_eq!(played.state(), State::Master);
        played
    }

    /// It is the master, and renews.
    fn renewing() -> Self {
        let mut played = Self::master();
        let due = played.candidate.poll_timeout().unwrap();
        played.wait(due.since(played.now));
        assert_eq!(played.asks(), "renew");
        played
    }

    /// It was the master, and etcd has not confirmed it in time.
    fn lapsed() -> Self {
        let mut played = Self::renewing();
        played.wait(TTL);
        assert_eq!(played.state(), State::Lapsed);
        played
    }

    fn resigning() -> Self {
        let mut played = Self::master();
        played.candidate.handle_resign(played.now);
        played.drain();
        assert_eq!(played.state(), State::Resigning);
        played
    }

    fn drain(&mut self) {
        while let Some(action) = self.candidate.poll_action() {
            match action {
                Action::Ask(asking) => self.asked = Some(asking),
                Action::ApplyTemplates => self.candidate.handle_applied(self.now),
                Action::Report(report) => self.reports.push(report),
            }
        }
        if self.asks() == "register" && self.is_registered {
            self.transacted(true);
        }
    }

    fn wait(&mut self, span: Duration) {
        self.now = self.now + span;
        self.candidate.handle_timeout(self.now);
        self.drain();
    }

    fn answer(&mut self, answer: OpAnswer) {
        let asked = self.asked.take().expect("something is asked");
        self.candidate
            .handle_answer(asked.id, answer, 0.5, self.now);
        self.drain();
    }

    fn transacted(&mut self, succeeded: bool) {
        self.revision += 1;
        self.answer(OpAnswer::Transacted(TxnAnswer {
            succeeded,
            revision: self.revision,
            found: None,
        }));
    }

    /// A view with such a master (which process, the revision of the key, its lease), and such a term.
    fn see(&mut self, master: Option<(&str, u64, i64)>, term: Option<Term>) {
        self.revision += 1;
        let mut view = View {
            revision: self.revision,
            ..View::default()
        };
        let entry = |value, created, lease| Entry {
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
                .insert(Key::Master, entry(value, created, lease));
        }
        if let Some(term) = term {
            view.entries
                .insert(Key::Term, entry(Value::Term(term), 60, None));
        }
        // What it says of itself stands.
        view.entries.extend(self.registered());
        self.candidate.handle_view(Arc::new(view), self.now);
        self.drain();
    }

    /// A registration that no candidate fights over.
    fn registered(&self) -> Option<(Key, Entry)> {
        use doorward_session::candidate::store::Registration;
        let value = Value::Server(Registration {
            address: "here:1".into(),
            server: "another".into(),
            highest_epoch: None,
            pages: None,
            place: "".into(),
            rest: "".into(),
        });
        let entry = Entry {
            value,
            created: 90,
            modified: 90,
            lease: Some(LeaseId(9)),
            seen_at: Time::ZERO,
        };
        Some((Key::Server("here:1".into()), entry))
    }

    /// The revision at which its own key came to be.
    fn see_own_key(&mut self) {
        let created = self.revision;
        self.see(Some(("ours", created, 9)), None);
    }

    fn state(&self) -> State {
        self.candidate.state(self.now)
    }

    /// What it asks, in a word. Empty: nothing.
    fn asks(&self) -> &'static str {
        self.asked.as_ref().map_or("", |asked| match &asked.op {
            Op::Hear => "hear",
            Op::Grant(_) => "grant",
            Op::Renew(_) => "renew",
            Op::Revoke(_) => "revoke",
            Op::Transact(what, _) => what,
            Op::ReadHistory(_) => "history",
        })
    }

    fn txn(&self) -> &Txn {
        match &self.asked.as_ref().unwrap().op {
            Op::Transact(_, txn) => txn,
            other => panic!("{other:?}"),
        }
    }
}

type Event = fn(&mut Played);

/// After what happens in a state: the state, and what is asked.
#[track_caller]
fn check(from: fn() -> Played, cases: &[(&str, Event, State, &str)]) {
    for (what, event, state, asks) in cases {
        let mut played = from();
        event(&mut played);
        assert_eq!((played.state(), played.asks()), (*state, *asks), "{what}");
    }
}

const FAILED: Event = |played| played.answer(OpAnswer::Failed);
const LEASE_GONE: Event = |played| played.answer(OpAnswer::LeaseGone);
const YES: Event = |played| played.transacted(true);
const NO: Event = |played| played.transacted(false);
const RESIGN: Event = |played| {
    played.asked = None;
    played.candidate.handle_resign(played.now);
    played.drain();
};
const KEY_GONE: Event = |played| {
    played.asked = None;
    played.see(None, None);
};

#[test]
fn outside() {
    check(
        Played::outside,
        &[
            ("nothing", |_| {}, State::Outside, "grant"),
            (
                "it has a lease",
                |played| {
                    played.is_registered = false;
                    played.answer(OpAnswer::Granted(LeaseId(9), TTL));
                },
                State::Watching,
                "register",
            ),
            ("the other endpoint at once", FAILED, State::Outside, "hear"),
            (
                "none of both, it waits",
                |played| {
                    FAILED(played);
                    FAILED(played);
                },
                State::Outside,
                "",
            ),
            (
                "and then tries again",
                |played| {
                    FAILED(played);
                    FAILED(played);
                    played.wait(Duration::from_secs(1));
                    played.answer(OpAnswer::Heard);
                },
                State::Outside,
                "grant",
            ),
            ("it resigns", RESIGN, State::Over, ""),
        ],
    );
}

#[test]
fn watching() {
    check(
        Played::watching,
        &[
            ("nothing", |_| {}, State::Watching, ""),
            (
                "there is no master",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            (
                "there is none, and it is not able",
                |played| {
                    played.candidate.handle_able(false, played.now);
                    KEY_GONE(played);
                },
                State::Watching,
                "",
            ),
            (
                "the lease is due",
                |played| played.wait(TTL / 3),
                State::Watching,
                "renew",
            ),
            (
                "its key under its lease: it was not told that it won",
                |played| played.see(Some(("ours", 120, 9)), None),
                State::Elected,
                "confirm a mastership",
            ),
            (
                "the key is nobody's, but not for long",
                |played| played.see(Some(("hand", 120, 0)), None),
                State::Watching,
                "",
            ),
            (
                "the key is nobody's for a TTL",
                |played| {
                    played.see(Some(("hand", 120, 0)), None);
                    played.wait(TTL + Duration::from_secs(1));
                    played.answer(OpAnswer::Renewed);
                },
                State::Watching,
                "delete a key of nobody",
            ),
            (
                "its place is another one",
                |played| played.candidate.handle_place("leaf".into(), played.now),
                State::Watching,
                "",
            ),
            ("it resigns", RESIGN, State::Resigning, "revoke"),
        ],
    );
}

#[test]
fn standing() {
    check(
        Played::standing,
        &[
            ("it won", YES, State::Elected, "confirm a mastership"),
            ("another was faster", NO, State::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                State::Standing,
                "stand for election",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "a master came meanwhile",
                |played| {
                    played.see(Some(("theirs", 120, 7)), None);
                    NO(played);
                },
                State::Watching,
                "",
            ),
            (
                "an epoch came meanwhile that is higher",
                |played| {
                    played.see(Some(("theirs", 500, 7)), None);
                    YES(played);
                },
                State::Watching,
                "give a mastership back",
            ),
            ("it resigns", RESIGN, State::Resigning, "revoke"),
        ],
    );
}

#[test]
fn elected() {
    check(
        Played::elected,
        &[
            ("it is confirmed", YES, State::Master, ""),
            ("it is not", NO, State::Watching, ""),
            (
                "no answer: it asks again, elsewhere",
                FAILED,
                State::Elected,
                "confirm a mastership",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "its key is gone",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            ("it resigns", RESIGN, State::Resigning, "resign"),
        ],
    );
}

#[test]
fn master() {
    check(
        Played::master,
        &[
            ("nothing", |_| {}, State::Master, ""),
            (
                "its key is gone",
                KEY_GONE,
                State::Standing,
                "stand for election",
            ),
            (
                "another has its key",
                |played| played.see(Some(("theirs", 300, 7)), None),
                State::Watching,
                "",
            ),
            (
                "etcd was restored, and another has a key of that revision",
                |played| {
                    let created = played.revision - 1;
                    played.see(Some(("theirs", created - 1, 7)), None);
                },
                State::Watching,
                "",
            ),
            (
                "somebody wrote over its key by hand",
                |played| {
                    let created = own_revision(played);
                    played.see(Some(("hand", created, 0)), None);
                },
                State::Master,
                "confirm a mastership",
            ),
            (
                "time passes without a word",
                |played| played.wait(TTL),
                State::Lapsed,
                "renew",
            ),
            ("it resigns", RESIGN, State::Resigning, "resign"),
        ],
    );
}

/// Of the key in the view that it saw last.
fn own_revision(played: &Played) -> u64 {
    match played.candidate.standing(played.now) {
        Standing::Master(term) => term.epoch,
        other => panic!("{other:?}"),
    }
}

#[test]
fn renewing() {
    check(
        Played::renewing,
        &[
            (
                "renewed, and not confirmed yet",
                |played| played.answer(OpAnswer::Renewed),
                State::Master,
                "confirm a mastership",
            ),
            (
                "renewed and confirmed",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                },
                State::Master,
                "",
            ),
            (
                "renewed, and confirmed no more",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    NO(played);
                },
                // It still sees its key, and makes sure that it is gone.
                State::Watching,
                "give a mastership back",
            ),
            (
                "renewed, and not confirmed: both again",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    FAILED(played);
                },
                State::Master,
                "hear",
            ),
            ("no answer", FAILED, State::Master, "hear"),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
            (
                "its key is gone: the renewal is given up",
                KEY_GONE,
                State::Watching,
                "renew",
            ),
        ],
    );
}

#[test]
fn lapsed() {
    check(
        Played::lapsed,
        &[
            ("nothing", |_| {}, State::Lapsed, "renew"),
            (
                "renewed and confirmed, by the time of the renewal",
                |played| {
                    played.answer(OpAnswer::Renewed);
                    YES(played);
                    played.wait(Duration::ZERO);
                },
                State::Lapsed,
                "renew",
            ),
            ("its lease is gone", LEASE_GONE, State::Outside, ""),
        ],
    );
}

#[test]
fn resigning() {
    check(
        Played::resigning,
        &[
            ("nothing", |_| {}, State::Resigning, "resign"),
            ("it has resigned", YES, State::Resigning, "revoke"),
            ("the key was not its own", NO, State::Resigning, "revoke"),
            ("no answer", FAILED, State::Resigning, "resign"),
            (
                "no answer from any, thrice",
                |played| {
                    for _ in 0..3 {
                        FAILED(played);
                    }
                },
                State::Resigning,
                "revoke",
            ),
            (
                "all is given back",
                |played| {
                    YES(played);
                    played.answer(OpAnswer::Revoked);
                },
                State::Over,
                "",
            ),
            (
                "the time is over",
                |played| {
                    played.asked = None;
                    played.wait(Duration::from_secs(1));
                },
                State::Over,
                "",
            ),
        ],
    );
}

#[test]
fn an_answer_to_what_was_given_up_is_passed_over() {
    let mut played = Played::renewing();
    let given_up = played.asked.clone().unwrap();
    KEY_GONE(&mut played);
    let asked = played.asked.clone();
    played
        .candidate
        .handle_answer(given_up.id, OpAnswer::LeaseGone, 0.5, played.now);
    played
        .candidate
        .handle_answer(OpId(77), OpAnswer::LeaseGone, 0.5, played.now);
    played.drain();
    assert_eq!(played.state(), State::Watching);
    assert_eq!(played.asked, asked, "it waits for what it asked since");
}

#[test]
fn a_mastership_counts_from_when_its_renewal_was_sent() {
    let mut played = Played::renewing();
    let sent = played.now;
    played.now = played.now + Duration::from_secs(1);
    played.answer(OpAnswer::Renewed);
    played.now = played.now + Duration::from_secs(1);
    played.transacted(true);
    let Standing::Master(term) = played.candidate.standing(played.now) else {
        panic!("it is the master");
    };
    assert_eq!(term.valid_until, sent + Duration::from_secs(9));
}

#[test]
fn what_a_master_writes_is_bound_to_its_key() {
    let bound = |played: &Played, created: u64| {
        let compare = Compare::Created(Key::Master, created);
        assert!(played.txn().when.contains(&compare), "{:?}", played.txn());
    };
    let mut renewing = Played::renewing();
    let created = own_revision(&renewing);
    renewing.answer(OpAnswer::Renewed);
    bound(&renewing, created);
    let lease = Compare::Lease(Key::Master, Some(LeaseId(9)));
    assert!(renewing.txn().when.contains(&lease));
    let mut resigning = Played::master();
    let created = own_revision(&resigning);
    RESIGN(&mut resigning);
    bound(&resigning, created);
    assert!(resigning.txn().then.contains(&Step::Delete(Key::Master)));
}

#[test]
fn what_happened_is_told_once() {
    let mut played = Played::master();
    assert!(played.reports.contains(&Report::Answers));
    played.reports.clear();
    KEY_GONE(&mut played);
    let lost =
        |report: &&Report| matches!(report, Report::Lost { why, .. } if *why == Loss::KeyDeleted);
    assert_eq!(played.reports.iter().filter(lost).count(), 1);
    let answers = |report: &&Report| **report == Report::Answers;
    assert_eq!(played.reports.iter().filter(answers).count(), 0);
}
