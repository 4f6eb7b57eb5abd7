//! Envoys, an agent that may be killed, and its own callers, on a virtual clock.

use std::cell::RefCell;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::task::Poll;
use std::time::Duration;

use doorward::rules::{Limiter, Rules};
use doorward::state::Step;
use doorward::time::Time;
use doorward_door::caller_id::CallerId;
use doorward_edge::asker::Asker;
use doorward_edge::caller::{By, Caller};
use doorward_edge::holder::Holder;
use doorward_edge::records::Records;
use doorward_edge::rlqs::buckets::Buckets;
use doorward_edge::room::Room;
use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::node;
use doorward_engine::node::asking::Answers;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_proto::envoy::rate_limit_quota::BucketId;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::BucketAction;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_response::bucket_action::BucketAction as Action;
use doorward_proto::envoy::rate_limit_quota::rate_limit_quota_usage_reports::BucketQuotaUsage;
use doorward_proto::envoy::rate_limit_quota::rate_limit_strategy::{BlanketRule, Strategy};
use doorward_replica::{ClientAnswer, Replica};
use tempfile::TempDir;

const CAPACITY: f64 = 300.0;
pub(super) const STEP: Duration = Duration::from_millis(100);
/// Requests above the capacity in a second: a tenth of it at once for requests that the agent decides, and again after a
/// restart.
const BURSTS: f64 = 62.0;

pub(super) const REPORTS_EVERY: Duration = Duration::from_secs(5);

/// The leases of identities, by priority.
type Identities = RefCell<BTreeMap<(String, i64), Arc<Caller>>>;

/// An Envoy, and the state of its stream in the agent.
pub(super) struct Envoy {
    /// Its name, and the number of its identity.
    pub(super) asker: Asker,
    /// Absent: it has no stream.
    pub(super) stream: Option<Buckets>,
    pub(super) demand: f64,
    /// Rate and its end. Absent: nothing may be used.
    assigned: Option<(f64, Time)>,
    pub(super) is_abandoned: bool,
    allowed: f64,
    denied: f64,
    pub(super) denied_in_addition: u64,
    pub(super) reported_at: Option<Time>,
}

pub(super) struct World {
    pub(super) replica: Replica,
    pub(super) limiter: Limiter,
    pub(super) envoys: Vec<Envoy>,
    identities: Identities,
    room: Arc<Room>,
    records: Arc<Records>,
    /// State directory. Absent: the agent has none.
    folder: Option<TempDir>,
    /// Requests per second that the agent decides itself, and those that passed in the last second, with those of Envoys.
    pub(super) own: f64,
    pub(super) passed: VecDeque<[f64; 2]>,
    pub(super) now: Time,
    streams: u32,
}

impl World {
    pub(super) fn new(demands: &[f64]) -> Self {
        Self::with_callers("", demands)
    }

    /// `callers`: those with a rank of their own.
    pub(super) fn with_callers(callers: &str, demands: &[f64]) -> Self {
        let rule = "{key: user, scope: shared, rate_limit: {rate: 300/s}";
        let rules = format!("domain: api\ndescriptors:\n- {rule}, callers: [{callers}]}}\n");
        let rules = Rules::load(&[("api.yaml", &rules)]).unwrap();
        let now = Time::from_secs(1_000);
        let mut world = Self {
            replica: replica(1, now),
            limiter: Limiter::new(rules, 100, [1, 2]),
            envoys: Vec::new(),
            identities: Identities::default(),
            room: Arc::new(Room::new(1 << 20)),
            records: Arc::default(),
            folder: None,
            own: 0.0,
            passed: VecDeque::new(),
            now,
            streams: 0,
        };
        for (number, demand) in demands.iter().enumerate() {
            let address = CallerId::of([192, 0, 2, u8::try_from(number).unwrap()].into());
            let name = format!("envoy-{number}");
            world.envoys.push(Envoy {
                asker: Asker::new(Some(&name), None, Some(&address)),
                stream: None,
                demand: *demand,
                assigned: None,
                is_abandoned: false,
                allowed: 0.0,
                denied: 0.0,
                denied_in_addition: 0,
                reported_at: None,
            });
        }
        world
    }

    /// Gives the agent a state directory that says that nothing is in use.
    pub(super) fn with_directory(mut self) -> Self {
        self.folder = Some(TempDir::new().unwrap());
        self.restart();
        self
    }

    /// The agent is killed, and starts anew.
    pub(super) fn restart(&mut self) {
        self.replica = replica(u64::from(self.streams) + 2, self.now);
        if let Some(folder) = &self.folder {
            let path = folder.path().join("assignments");
            let (records, left) = Records::open(&path, "agent", (true, true), self.now).unwrap();
            self.records = Arc::new(records);
            if let Some(left) = left {
                self.replica
                    .change(|node, _| node.handle_recorded(left), self.now);
            }
        }
        self.identities = Identities::default();
        for envoy in &mut self.envoys {
            envoy.stream = None;
        }
    }

    /// The stream of an Envoy breaks.
    pub(super) fn cut(&mut self, number: usize) {
        if let Some(mut stream) = self.envoys[number].stream.take() {
            stream.handle_end(self.now);
        }
    }

    pub(super) fn play(&mut self, length: Duration) {
        let end = self.now + length;
        while self.now < end {
            self.now = self.now + STEP;
            for number in 0..self.envoys.len() {
                self.use_and_report(number);
            }
            for number in 0..self.envoys.len() {
                self.serve(number);
            }
            self.use_own();
            let assigned = self.rates().iter().sum::<f64>();
            assert!(
                assigned <= CAPACITY * 1.000_001,
                "{assigned} at {:?}",
                self.now
            );
        }
    }

    /// Decides requests of a caller of the agent, which has no rule for the time without a lease.
    fn use_own(&mut self) {
        let now = self.now;
        let rates = self.rates().iter().sum::<f64>() * STEP.as_secs_f64();
        let mut passed = 0.0;
        if self.own > 0.0 {
            let of = (1 + u64::from(self.streams), &self.room, &self.records);
            let caller = identity(&self.identities, "own", 0, of);
            let by = By {
                name: "own",
                weight: 1,
                is_safe: false,
                whole: None,
            };
            for _ in 0..(self.own * STEP.as_secs_f64()) as u32 {
                let taken = caller.take("shared/api/user=ann", &by, 1, now);
                passed += if taken == Some(Ok(())) { 1.0 } else { 0.0 };
            }
        }
        self.passed.push_back([passed, rates]);
        if self.passed.len() > 10 {
            self.passed.pop_front();
        }
        let all: f64 = self.passed.iter().flatten().sum();
        assert!(
            all <= CAPACITY + BURSTS,
            "{all} in a second at {:?}",
            self.now
        );
    }

    pub(super) fn rates(&self) -> Vec<f64> {
        let rate = |envoy: &Envoy| match envoy.assigned {
            Some((rate, until)) if until > self.now => rate,
            _ => 0.0,
        };
        self.envoys.iter().map(rate).collect()
    }

    fn use_and_report(&mut self, number: usize) {
        let rate = self.rates()[number];
        let (now, envoy) = (self.now, &mut self.envoys[number]);
        let seconds = STEP.as_secs_f64();
        let allowed = envoy.demand.min(rate) * seconds;
        envoy.allowed += allowed;
        envoy.denied += envoy.demand * seconds - allowed;
        let is_due = envoy
            .reported_at
            .is_none_or(|at| now.since(at) >= REPORTS_EVERY);
        let is_known = envoy.reported_at.is_some() && !envoy.is_abandoned;
        if !is_due || !is_known && envoy.demand == 0.0 {
            return;
        }
        envoy.is_abandoned = false;
        let elapsed = envoy.reported_at.map_or(0, |at| now.since(at).as_secs());
        let usage = BucketQuotaUsage {
            bucket_id: Some(bucket()),
            time_elapsed: Some(prost_types::Duration {
                seconds: i64::try_from(elapsed).unwrap(),
                nanos: 0,
            }),
            num_requests_allowed: envoy.allowed.round() as u64,
            num_requests_denied: (envoy.denied.round() as u64)
                .saturating_add(envoy.denied_in_addition),
        };
        (envoy.allowed, envoy.denied, envoy.reported_at) = (0.0, 0.0, Some(now));
        let (streams, room, asker) = (&mut self.streams, &self.room, &envoy.asker);
        let stream = envoy.stream.get_or_insert_with(|| {
            *streams += 1;
            let number = u64::from(*streams);
            Buckets::new(
                "api".to_owned(),
                asker.clone(),
                number,
                Arc::clone(room),
                *streams,
            )
        });
        let (identities, number) = (&self.identities, u64::from(*streams));
        let callers = |priority: i64| {
            let (room, records) = (room, &self.records);
            Some(identity(
                identities,
                asker.identity(),
                priority,
                (number, room, records),
            ))
        };
        stream.handle_usage(usage, &self.limiter, &callers, now);
    }

    fn serve(&mut self, number: usize) {
        let now = self.now;
        let identities: Vec<_> = self.identities.borrow().values().cloned().collect();
        for caller in identities {
            caller.measure(now);
            caller.publish(now);
            while caller.next_step(now) == Step::Send {
                ask(&mut self.replica, &caller, now);
                caller.publish(now);
            }
        }
        let envoy = &mut self.envoys[number];
        if let Some(stream) = &mut envoy.stream {
            stream.forget_idle(now);
            for action in stream.actions(now) {
                apply(&action, &mut envoy.assigned, &mut envoy.is_abandoned, now);
            }
        }
    }

    #[track_caller]
    pub(super) fn check_rates(&self, expected: &[f64]) {
        for (rate, expected) in self.rates().iter().zip(expected) {
            assert!((rate - expected).abs() <= 3.0, "{:?}", self.rates());
        }
    }
}

/// Returns the leases of an identity, which may be new.
fn identity(
    all: &Identities,
    name: &str,
    priority: i64,
    (number, room, records): (u64, &Arc<Room>, &Arc<Records>),
) -> Arc<Caller> {
    let new = || {
        let holder = HolderName::new(&format!("{name}~{priority}")).unwrap();
        let incarnation = Incarnation::new(number).unwrap();
        let holder = Holder::new(holder, priority, incarnation, 1);
        Arc::new(Caller::new(
            name,
            holder,
            Arc::clone(room),
            Arc::clone(records),
        ))
    };
    let mut all = all.borrow_mut();
    let key = (name.to_owned(), priority);
    Arc::clone(all.entry(key).or_insert_with(new))
}

pub(crate) fn replica(incarnation: u64, now: Time) -> Replica {
    replica_of("shared/api/user=*", incarnation, now)
}

/// Returns a node that knows some resources.
pub(super) fn replica_of(glob: &str, incarnation: u64, now: Time) -> Replica {
    let config = node::Config {
        name: "agent".to_owned(),
        incarnation: Incarnation::new(incarnation).unwrap(),
        refresh_floor: Duration::from_millis(100),
        ..node::Config::default()
    };
    let templates = Templates::parse(&[TemplateSpec {
        identifier_glob: Some(glob.to_owned()),
        capacity: Some(CAPACITY),
        kind: Some(AlgorithmKind::PriorityBands),
        lease_length: Some(Duration::from_secs(16)),
        refresh_interval: Some(Duration::from_secs(1)),
        ..TemplateSpec::default()
    }]);
    let mut replica = Replica::new(config.into(), templates.unwrap());
    replica.handle_alone(None, now);
    replica
}

fn bucket() -> BucketId {
    BucketId {
        bucket: BTreeMap::from([("user".to_owned(), "ann".to_owned())]),
    }
}

pub(crate) fn ask(replica: &mut Replica, caller: &Caller, now: Time) {
    while replica.advance(now, Duration::ZERO).is_pending() {}
    let request = caller.request(now);
    let mut answers = Answers::to_client(&request);
    let outcome = loop {
        if let Poll::Ready(ClientAnswer::Final(outcome)) =
            replica.answer_client_next(&request, &mut answers, now)
        {
            break outcome;
        }
    };
    caller.handle_outcome(Some(outcome), 0.5, now);
}

fn apply(
    action: &BucketAction,
    assigned: &mut Option<(f64, Time)>,
    is_abandoned: &mut bool,
    now: Time,
) {
    assert_eq!(action.bucket_id, Some(bucket()));
    match action.bucket_action.as_ref().unwrap() {
        Action::AbandonAction(_) => (*assigned, *is_abandoned) = (None, true),
        Action::QuotaAssignmentAction(action) => {
            let ttl = action.assignment_time_to_live.unwrap();
            let strategy = action.rate_limit_strategy.as_ref().unwrap();
            let rate = match strategy.strategy.as_ref().unwrap() {
                Strategy::BlanketRule(rule) => {
                    assert_eq!(*rule, i32::from(BlanketRule::DenyAll));
                    0.0
                }
                Strategy::TokenBucket(bucket) => {
                    assert_eq!(bucket.fill_interval.unwrap().seconds, 1_000);
                    assert_eq!(bucket.max_tokens, 30, "a bucket keeps its size");
                    f64::from(bucket.tokens_per_fill.unwrap()) / 1_000.0
                }
            };
            assert!((1..=15).contains(&ttl.seconds), "{ttl:?}");
            let ttl = Duration::from_secs(u64::try_from(ttl.seconds).unwrap());
            *assigned = Some((rate, now + ttl));
        }
    }
}
