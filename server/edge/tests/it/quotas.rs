//! Envoys with buckets, on a virtual clock: they use what they are assigned, and report every five seconds.

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
use proptest::prelude::*;
use tempfile::TempDir;

const CAPACITY: f64 = 300.0;
const STEP: Duration = Duration::from_millis(100);
/// Requests above the capacity in a second: a tenth of it at once for requests that the agent decides, and again after a
/// restart.
const BURSTS: f64 = 62.0;

const REPORTS_EVERY: Duration = Duration::from_secs(5);

/// The leases of identities, by priority.
type Identities = RefCell<BTreeMap<(String, i64), Arc<Caller>>>;

/// An Envoy, and the state of its stream in the agent.
struct Envoy {
    /// Its name, and the number of its identity.
    asker: Asker,
    /// Absent: it has no stream.
    stream: Option<Buckets>,
    demand: f64,
    /// Rate and its end. Absent: nothing may be used.
    assigned: Option<(f64, Time)>,
    is_abandoned: bool,
    allowed: f64,
    denied: f64,
    denied_in_addition: u64,
    reported_at: Option<Time>,
}

struct World {
    replica: Replica,
    limiter: Limiter,
    envoys: Vec<Envoy>,
    identities: Identities,
    room: Arc<Room>,
    records: Arc<Records>,
    /// State directory. Absent: the agent has none.
    folder: Option<TempDir>,
    /// Requests per second that the agent decides itself, and those that passed in the last second, with those of Envoys.
    own: f64,
    passed: VecDeque<[f64; 2]>,
    now: Time,
    streams: u32,
}

impl World {
    fn new(demands: &[f64]) -> Self {
        Self::with_callers("", demands)
    }

    /// `callers`: those with a rank of their own.
    fn with_callers(callers: &str, demands: &[f64]) -> Self {
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
    fn with_directory(mut self) -> Self {
        self.folder = Some(TempDir::new().unwrap());
        self.restart();
        self
    }

    /// The agent is killed, and starts anew.
    fn restart(&mut self) {
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
    fn cut(&mut self, number: usize) {
        if let Some(mut stream) = self.envoys[number].stream.take() {
            stream.handle_end(self.now);
        }
    }

    fn play(&mut self, length: Duration) {
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

    fn rates(&self) -> Vec<f64> {
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
    fn check_rates(&self, expected: &[f64]) {
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
fn replica_of(glob: &str, incarnation: u64, now: Time) -> Replica {
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

const fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

#[test]
fn envoys_share_a_limit_fairly_and_follow_demand_within_ten_seconds() {
    let mut world = World::new(&[40.0, 150.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[40.8, 129.0, 129.0]);
    for (envoy, demand) in world.envoys.iter_mut().zip([150.0, 400.0, 40.0]) {
        envoy.demand = demand;
    }
    world.play(seconds(10));
    world.check_rates(&[129.0, 129.0, 40.8]);
    world.envoys[1].demand = 0.0;
    world.play(seconds(10));
    world.check_rates(&[153.0, 0.0, 40.8]);
}

#[test]
fn streams_of_one_envoy_have_one_share_whatever_they_report() {
    let mut world = World::new(&[400.0; 5]);
    // One opens four streams, and reports that a thousand times what counts was denied.
    for number in 1..5 {
        world.envoys[number].asker = world.envoys[1].asker.clone();
        world.envoys[number].denied_in_addition = u64::MAX;
    }
    world.play(seconds(60));
    world.check_rates(&[150.0, 37.5, 37.5, 37.5, 37.5]);
}

#[test]
fn names_of_one_identity_divide_its_share() {
    let mut world = World::new(&[400.0; 4]);
    let address = CallerId::of([192, 0, 2, 1].into());
    for number in 1..4 {
        let name = format!("envoy-{number}");
        world.envoys[number].asker = Asker::new(Some(&name), None, Some(&address));
    }
    world.envoys[3].demand = 20.0;
    world.play(seconds(60));
    world.check_rates(&[150.0, 64.8, 64.8, 20.4]);
}

#[test]
fn streams_of_one_identity_divide_a_limit_that_the_node_does_not_know() {
    let mut world = World::new(&[400.0; 4]);
    world.replica = replica_of("shared/api/other=*", 1, world.now);
    let address = CallerId::of([192, 0, 2, 1].into());
    for (number, name) in [(1, "one"), (2, "one"), (3, "other")] {
        world.envoys[number].asker = Asker::new(Some(name), None, Some(&address));
    }
    world.play(seconds(60));
    world.check_rates(&[150.0, 50.0, 50.0, 50.0]);
}

#[test]
fn envoys_of_weights_1_and_3_divide_a_limit_1_to_3() {
    let callers = "{name: envoy-1, weight: 3}";
    let mut world = World::with_callers(callers, &[400.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[75.0, 225.0]);
    world.envoys[1].demand = 100.0;
    world.play(seconds(10));
    world.check_rates(&[198.0, 102.0]);
}

#[test]
fn an_envoy_of_higher_priority_is_served_first() {
    let callers = "{name: envoy-1, priority: 1}, {name: envoy-2, priority: -1}";
    let mut world = World::with_callers(callers, &[400.0, 200.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[96.0, 204.0, 0.0]);
    // Another document changes the ranks of open buckets.
    let rules =
        "domain: api\ndescriptors:\n- {key: user, scope: shared, rate_limit: {rate: 300/s}}\n";
    let rules = Rules::load(&[("api.yaml", rules)]).unwrap();
    world.limiter = Limiter::new(rules, 100, [1, 2]);
    world.play(seconds(15));
    world.check_rates(&[100.0, 100.0, 100.0]);
}

#[test]
fn what_an_envoy_without_a_stream_may_use_stays_reserved_until_it_ends() {
    let mut world = World::new(&[400.0, 400.0]);
    world.play(seconds(30));
    world.check_rates(&[150.0, 150.0]);
    world.envoys[0].demand = 0.0;
    world.cut(0);
    world.envoys[0].reported_at = None;
    world.play(seconds(8));
    world.check_rates(&[150.0, 150.0]);
    world.play(seconds(10));
    world.check_rates(&[0.0, 300.0]);
}

#[test]
fn an_envoy_whose_stream_is_reset_has_its_share_again_at_its_next_report() {
    let mut world = World::new(&[400.0, 400.0, 400.0]);
    world.play(seconds(30));
    for _ in 0..3 {
        world.cut(0);
        world.play(REPORTS_EVERY + STEP);
        world.check_rates(&[100.0, 100.0, 100.0]);
    }
}

/// One that gives itself no name may be another one, behind the same address.
#[test]
fn a_nameless_envoy_takes_over_nothing() {
    let mut world = World::new(&[400.0, 400.0]);
    let address = CallerId::of([192, 0, 2, 0].into());
    world.envoys[0].asker = Asker::new(None, None, Some(&address));
    world.play(seconds(30));
    world.cut(0);
    world.play(REPORTS_EVERY + STEP);
    world.check_rates(&[0.0, 150.0]);
}

#[test]
fn a_new_agent_assigns_nothing_until_former_assignments_have_ended() {
    let mut world = World::new(&[40.0, 400.0]);
    world.play(seconds(30));
    world.restart();
    world.play(seconds(7));
    world.check_rates(&[40.8, 259.2]);
    world.play(seconds(8));
    world.check_rates(&[0.0, 0.0]);
    world.play(seconds(3));
    world.check_rates(&[40.8, 259.2]);
}

#[test]
fn a_new_agent_with_a_directory_goes_on_with_assignments_by_name_and_its_own_callers_have_the_rest()
{
    let mut world = World::new(&[40.0, 100.0, 400.0]).with_directory();
    world.own = 60.0;
    world.play(seconds(32));
    let before = world.rates();
    world.check_rates(&[40.8, 97.0, 97.0]);
    for _ in 0..3 {
        world.restart();
        // No Envoy has reported yet.
        world.play(seconds(1));
        let own: f64 = world.passed.iter().map(|it| it[0]).sum();
        assert!((50.0..=60.0).contains(&own), "{own} of its own pass");
        assert_eq!(world.rates(), before);
        world.play(REPORTS_EVERY - seconds(1));
        world.check_rates(&before);
    }
}

#[test]
fn an_idle_bucket_is_abandoned_and_comes_back() {
    let mut world = World::new(&[100.0, 400.0]);
    world.play(seconds(30));
    world.envoys[0].demand = 0.0;
    world.play(seconds(75));
    assert!(world.envoys[0].is_abandoned);
    assert_eq!(world.envoys[0].stream.as_ref().unwrap().len(), 0);
    world.check_rates(&[0.0, 300.0]);
    world.envoys[0].demand = 100.0;
    world.play(seconds(15));
    world.check_rates(&[102.0, 198.0]);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn assignments_never_exceed_the_capacity(
        changes in prop::collection::vec((0_usize..5, 0.0..500.0_f64, 0_u8..12, 1_u64..9), 1..20),
        has_directory: bool,
    ) {
        let mut world = World::new(&[0.0; 4]);
        if has_directory {
            world = world.with_directory();
        }
        for (number, demand, event, length) in changes {
            match event {
                0 => world.restart(),
                _ if number == 4 => world.own = demand,
                1 | 2 => world.cut(number),
                _ => world.envoys[number].demand = demand,
            }
            world.play(seconds(length));
        }
    }
}
