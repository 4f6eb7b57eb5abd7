//! Cost of a decision as the number of holders of one resource grows.
//!
//! Each measured call is a whole request as the node handles it. The node looks up the holder,
//! indexes its new claim, finds its share, bounds the share by the reserved sum, records a lease,
//! and handles expiry. Demand is twice the capacity. Requests come from random holders, and virtual
//! time passes such that each holder asks once a refresh interval.
//!
//! The constants 0, 1 and 2 are FAIR_SHARE, PROPORTIONAL_SHARE and PRIORITY_BANDS (four bands), and 3 is BUDGET, whose
//! holders have spent nothing yet.
//! `changed` is the expensive kind of request, with other wants than before. `same` is the common
//! kind.

#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a bench may panic"
)]

use std::cell::RefCell;
use std::time::Duration;

use divan::Bencher;
use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, MastershipId, ResourceId};
use doorward_engine::messages::{Ask, BudgetWord, GetCapacity, GetCapacityReply, Has};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::window::Window;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

const HOLDERS: [usize; 6] = [10, 100, 1_000, 10_000, 100_000, 1_000_000];

const REFRESH_INTERVAL: Duration = Duration::from_secs(5);

/// Accounts of a budget are 100,000 at most.
const ACCOUNTS: [usize; 5] = [10, 100, 1_000, 10_000, 100_000];

const KINDS: [AlgorithmKind; 4] = [
    AlgorithmKind::FairShare,
    AlgorithmKind::ProportionalShare,
    AlgorithmKind::PriorityBands,
    AlgorithmKind::Budget,
];

fn main() {
    divan::main();
}

#[divan::bench(args = HOLDERS, consts = [0, 1, 2], sample_count = 200, sample_size = 256)]
fn changed<const KIND: usize>(bencher: Bencher, holders: usize) {
    bench(bencher, KINDS[KIND], holders, true);
}

#[divan::bench(args = HOLDERS, consts = [0, 1, 2], sample_count = 200, sample_size = 256)]
fn same<const KIND: usize>(bencher: Bencher, holders: usize) {
    bench(bencher, KINDS[KIND], holders, false);
}

#[divan::bench(args = ACCOUNTS, sample_count = 200, sample_size = 256)]
fn changed_of_a_budget(bencher: Bencher, holders: usize) {
    bench(bencher, KINDS[3], holders, true);
}

#[divan::bench(args = ACCOUNTS, sample_count = 200, sample_size = 256)]
fn same_of_a_budget(bencher: Bencher, holders: usize) {
    bench(bencher, KINDS[3], holders, false);
}

fn bench(bencher: Bencher, kind: AlgorithmKind, holders: usize, changed: bool) {
    let mut crowd = Crowd::new(kind, holders);
    let mut node = crowd.settle();
    let mut draws = Draws(0x2545_f491_4f6c_dd1d);
    // Answers are read between samples, outside the measured time.
    let answers = RefCell::new(Vec::new());
    bencher
        .with_inputs(|| {
            crowd.learn(&mut answers.borrow_mut());
            crowd.next_request(&mut draws, changed)
        })
        .bench_local_values(|(client, request, now)| {
            let outcome = node.handle_get_capacity(&request, now);
            answers.borrow_mut().push((client, outcome));
            request
        });
}

/// Many holders of one resource.
struct Crowd {
    kind: AlgorithmKind,
    resource: ResourceId,
    names: Vec<HolderName>,
    wants: Vec<Amount>,
    has: Vec<Amount>,
    now: Time,
    sequence: u64,
    /// The node's book of the budget, and its mastership.
    book: Option<u64>,
    granted_by: Option<MastershipId>,
}

impl Crowd {
    fn new(kind: AlgorithmKind, holders: usize) -> Self {
        let mut draws = Draws(0x9e37_79b9_7f4a_7c15);
        Self {
            kind,
            resource: ResourceId::new("bench").unwrap(),
            // 20 bytes, a usual length of client ids.
            names: (0..holders)
                .map(|i| HolderName::new(&format!("bench-client-{i:07}")).unwrap())
                .collect(),
            wants: (0..holders).map(|_| draws.wants()).collect(),
            has: vec![Amount::ZERO; holders],
            now: Time::from_secs(1),
            sequence: 0,
            book: None,
            granted_by: None,
        }
    }

    /// Returns a node whose holders have each asked twice.
    fn settle(&mut self) -> Node {
        let total: f64 = self.wants.iter().map(|wants| wants.get()).sum();
        let templates = Templates::parse(&[TemplateSpec {
            identifier_glob: Some("*".into()),
            // A budget has whole units.
            capacity: Some((total / 2.0).floor()),
            kind: Some(self.kind),
            lease_length: Some(Duration::from_secs(60)),
            refresh_interval: Some(REFRESH_INTERVAL),
            learning_mode_duration: Some(Duration::ZERO),
            parameters: match self.kind {
                AlgorithmKind::Budget => vec![("window".to_owned(), Some("lifetime".to_owned()))],
                _ => Vec::new(),
            },
            ..TemplateSpec::default()
        }])
        .unwrap();
        let config = Config {
            refresh_floor: Duration::ZERO,
            ..Config::default()
        };
        let mut node = Node::new(config, templates);
        node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
        node.handle_wall_clock(0, Time::ZERO);
        for client in (0..self.names.len()).chain(0..self.names.len()) {
            let (request, now) = self.request(client);
            if let Outcome::Served(reply) = node.handle_get_capacity(&request, now) {
                self.learn_lease(client, &reply);
            }
        }
        node
    }

    /// Reads the answers and drops them.
    fn learn(&mut self, answers: &mut Vec<(usize, Outcome<GetCapacityReply>)>) {
        for (client, answer) in answers.drain(..) {
            if let Outcome::Served(reply) = answer {
                self.learn_lease(client, &reply);
            }
        }
    }

    fn learn_lease(&mut self, client: usize, reply: &GetCapacityReply) {
        let lease = &reply.leases[0];
        self.has[client] = lease.capacity;
        self.book = lease.budget.map(|state| state.granter_book);
        self.granted_by = lease.granted_by;
    }

    fn next_request(&mut self, draws: &mut Draws, changed: bool) -> (usize, GetCapacity, Time) {
        let client = usize::try_from(draws.next()).unwrap() % self.names.len();
        if changed {
            self.wants[client] = draws.wants();
        }
        let (request, now) = self.request(client);
        (client, request, now)
    }

    fn request(&mut self, client: usize) -> (GetCapacity, Time) {
        self.sequence += 1;
        self.now = self.now + REFRESH_INTERVAL / u32::try_from(self.names.len()).unwrap();
        let is_budget = self.kind == AlgorithmKind::Budget;
        let word = BudgetWord {
            holder_book: client as u64 + 1,
            granter_book: self.book,
            window: self.book.map(|_| Window::LIFETIME),
            taken: 0,
            least: 0,
            closes: false,
        };
        let wants = match is_budget {
            true => Amount::new(self.wants[client].get().ceil()).unwrap(),
            false => self.wants[client],
        };
        let ask = Ask {
            budget: is_budget.then_some(word),
            resource: self.resource.clone(),
            priority: i64::try_from(client % 4).unwrap(),
            weight: Subclients::ONE,
            wants,
            has: Some(Has {
                granted_by: self.granted_by.filter(|_| is_budget),
                capacity: self.has[client],
                expires_in: None,
            }),
        };
        let request = GetCapacity {
            caller: None,
            incarnation: None,
            client: self.names[client].clone(),
            sequence: Some(self.sequence),
            asks: vec![ask],
        };
        (request, self.now)
    }
}

/// Random numbers that are the same in every run (xorshift64).
struct Draws(u64);

impl Draws {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0
    }

    /// Draws wants from 1 to 1000, evenly on a logarithmic scale.
    fn wants(&mut self) -> Amount {
        let uniform = (self.next() >> 11) as f64 / (1_u64 << 53) as f64;
        Amount::new(1000f64.powf(uniform)).unwrap()
    }
}
