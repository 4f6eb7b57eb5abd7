//! Budgets through whole nodes: whatever is lost, late, killed or forgotten, an amount is given once in a window.

mod turns;

use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderName, Incarnation, split_mix};
use doorward_engine::messages::{
    Ask, BudgetState, BudgetWord, ClientLease, GetCapacity, Has, LimitedBy, RefusalReason, Via,
};
use doorward_engine::node::marks::{FoundMarks, MarksByResource};
use doorward_engine::node::mastership::Outcome;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::window::Window;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

use crate::asking::{amount, resource};

const TOTAL: u64 = 1_000;

/// Long enough to have a mark.
const WINDOW: Duration = Duration::from_secs(900);

fn templates(capacity: u64) -> Templates {
    templates_with("15m", &[("largest_call", "50")], capacity)
}

fn templates_with(window: &str, more: &[(&str, &str)], capacity: u64) -> Templates {
    let all = [("window", window)].into_iter().chain(more.iter().copied());
    let all = all.map(|(name, value)| (name.to_owned(), Some(value.to_owned())));
    let spec = TemplateSpec {
        identifier_glob: Some("r".to_owned()),
        capacity: Some(capacity as f64),
        kind: Some(AlgorithmKind::Budget),
        lease_length: Some(Duration::from_secs(20)),
        refresh_interval: Some(Duration::from_secs(5)),
        parameters: all.collect(),
        ..TemplateSpec::default()
    };
    Templates::parse(&[spec]).unwrap()
}

/// A client that follows the protocol.
#[derive(Clone, Debug, Default)]
struct Client {
    name: String,
    book: u64,
    sequence: u64,
    /// Granter's book, mastership, ceiling and taken, of the present window; older accounts first.
    accounts: Vec<(u64, Option<u64>, u64, u64)>,
    window: Option<Window>,
    need: u64,
}

impl Client {
    fn request(&mut self) -> GetCapacity {
        self.sequence += 1;
        let last = self.accounts.last_mut();
        let (book, by, has, taken) = match last {
            Some((book, by, ceiling, taken)) => {
                *ceiling = (*ceiling).min(*taken + self.need);
                (Some(*book), *by, (*ceiling).max(*taken), *taken)
            }
            None => (None, None, 0, 0),
        };
        let word = BudgetWord {
            holder_book: self.book,
            granter_book: book,
            window: self.window,
            taken,
            least: self.need.min(1),
            closes: false,
        };
        GetCapacity {
            client: HolderName::new(&self.name).unwrap(),
            incarnation: Incarnation::new(1),
            caller: None,
            sequence: Some(self.sequence),
            asks: vec![Ask {
                resource: resource("r"),
                priority: 0,
                weight: Subclients::ONE,
                wants: amount((taken + self.need) as f64),
                has: Some(Has {
                    granted_by: by.map(doorward_engine::id::MastershipId::new),
                    ..Has::untimed(amount(has as f64))
                }),
                budget: Some(word),
            }],
        }
    }

    /// Brings an answer to that request into force, if it is the newest.
    fn answer(&mut self, sequence: u64, lease: &ClientLease) {
        let BudgetState {
            granter_book,
            window,
            ..
        } = lease.budget.unwrap();
        let is_older = |present: Window| window.start < present.start;
        if sequence != self.sequence || self.window.is_some_and(is_older) {
            return;
        }
        if self.window != Some(window) {
            self.accounts.clear();
            self.window = Some(window);
        }
        let place = self.accounts.iter().position(|it| it.0 == granter_book);
        let mut account = match place {
            Some(place) => self.accounts.remove(place),
            None => (granter_book, None, 0, 0),
        };
        account.1 = lease.granted_by.map(|it| it.get());
        account.2 = lease.capacity.get() as u64;
        self.accounts.push(account);
    }

    /// Whether a call of that amount finds room.
    fn has(&self, amount: u64) -> bool {
        let room = |account: &(u64, Option<u64>, u64, u64)| account.2.saturating_sub(account.3);
        self.accounts.iter().any(|it| room(it) >= amount)
    }

    /// Takes up to an amount. Returns what it took.
    fn take(&mut self, most: u64) -> u64 {
        let room = self.accounts.iter_mut().find(|it| it.2 > it.3);
        room.map_or(0, |(_, _, ceiling, taken)| {
            let part = most.min(*ceiling - *taken);
            *taken += part;
            part
        })
    }
}

/// A root with a store of marks, two leaves, and their clients.
struct World {
    seed: u64,
    drawn: u64,
    now: Time,
    root: Node,
    templates: Templates,
    store: Vec<(String, f64)>,
    /// Whether the store has ever been begun.
    is_complete: bool,
    leaves: Vec<Node>,
    clients: Vec<Client>,
    processes: u64,
    /// Taken in each window, by its start.
    taken: std::collections::BTreeMap<i64, u64>,
}

/// Lets a child server ask its parent, and hear the answer unless that is lost.
fn relay(child: &mut Node, parent: &mut Node, is_lost: bool, now: Time) {
    let micros = now.as_nanos() / 1_000;
    let Some(request) = child.poll_upstream_request(micros, now) else {
        return;
    };
    let reply = parent.handle_get_server_capacity(&request, Via::Stream, now);
    if let (Ok(Outcome::Served(reply)), false) = (reply, is_lost) {
        child.handle_upstream_reply(&reply, now);
    }
}

impl World {
    fn new(seed: u64) -> Self {
        let mut world = Self {
            seed,
            drawn: 0,
            now: Time::from_secs(1),
            root: Node::new(Config::default(), templates(TOTAL)),
            templates: templates(TOTAL),
            store: Vec::new(),
            is_complete: true,
            leaves: Vec::new(),
            clients: Vec::new(),
            processes: 1,
            taken: std::collections::BTreeMap::new(),
        };
        world.start_root();
        for name in ["eu", "us"] {
            let leaf = world.leaf(name);
            world.leaves.push(leaf);
        }
        for number in 0..6 {
            let client = world.client(number);
            world.clients.push(client);
        }
        world
    }

    fn draw(&mut self, below: u64) -> u64 {
        self.drawn += 1;
        split_mix(self.seed, self.drawn) % below
    }

    fn config(&mut self, name: &str, has_parent: bool) -> Config {
        self.processes += 1;
        Config {
            name: name.to_owned(),
            has_parent,
            incarnation: Incarnation::new(split_mix(self.seed ^ 7, self.processes) | 1).unwrap(),
            refresh_floor: Duration::ZERO,
            ..Config::default()
        }
    }

    /// A root that begins with what is in the store.
    fn start_root(&mut self) {
        let config = self.config("root", false);
        self.root = Node::new(config, self.templates.clone());
        let marks: MarksByResource = self
            .store
            .iter()
            .map(|(key, amount)| (key.as_str(), (Some(*amount), Duration::ZERO)))
            .collect();
        self.root.handle_wall_clock(self.wall(), self.now);
        self.root.handle_alone(
            FoundMarks {
                marks,
                is_complete: self.is_complete,
            },
            self.now,
        );
    }

    fn leaf(&mut self, name: &str) -> Node {
        let config = self.config(name, true);
        let mut leaf = Node::new(config, Templates::default());
        leaf.handle_mastership(
            doorward_engine::node::mastership::Mastership::Master { epoch: None },
            self.now,
        );
        leaf
    }

    fn client(&mut self, number: usize) -> Client {
        self.processes += 1;
        Client {
            name: format!("client-{number}"),
            book: split_mix(self.seed ^ 9, self.processes) | 1,
            sequence: self.now.as_nanos(),
            need: 10 + self.drawn % 40,
            ..Client::default()
        }
    }

    fn wall(&self) -> i64 {
        i64::try_from(self.now.as_nanos() / 1_000_000).unwrap()
    }

    fn advance(&mut self, by: Duration) {
        self.now = self.now + by;
        let (now, wall) = (self.now, self.wall());
        for node in self.leaves.iter_mut().chain([&mut self.root]) {
            node.handle_wall_clock(wall, now);
            let mut turns = 0;
            while node.poll_timeout().is_some_and(|at| at <= now) {
                node.handle_timeout(now);
                turns += 1;
                assert!(turns < 10_000, "timeouts without an end");
            }
            while node.poll_event().is_some() {}
        }
    }

    /// Writes what is due to the store. The confirmation may be lost with the root.
    fn write_marks(&mut self, is_lost: bool) {
        let Some(batch) = self.root.poll_mark_writes(self.now) else {
            return;
        };
        for (key, mark) in batch.writes {
            self.store.retain(|(other, _)| other != key.as_str());
            if let Some(amount) = mark.and_then(|mark| mark.amount).map(Amount::get) {
                self.store.push((key.to_string(), amount));
            }
        }
        assert_eq!(batch.count, self.store.len() as u64, "marks in the store");
        if !is_lost {
            self.root.handle_marks_written(self.now);
        }
    }

    /// Lets a leaf ask the root, and hear the answer unless that is lost.
    fn round(&mut self, leaf: usize, is_lost: bool) {
        relay(&mut self.leaves[leaf], &mut self.root, is_lost, self.now);
    }

    /// Lets a client ask, and hear the answer unless that is lost. Returns what it is told.
    fn ask(&mut self, number: usize, is_lost: bool) -> Option<Result<ClientLease, RefusalReason>> {
        let request = self.clients[number].request();
        let leaf = &mut self.leaves[number % 2];
        let Outcome::Served(mut reply) = leaf.handle_get_capacity(&request, self.now) else {
            return None;
        };
        let told = match reply.leases.pop() {
            Some(lease) => Ok(lease),
            None => Err(reply.refused.pop().unwrap().reason),
        };
        if let (Ok(lease), false) = (&told, is_lost) {
            self.clients[number].answer(request.sequence.unwrap(), lease);
        }
        Some(told)
    }

    fn take(&mut self, number: usize, most: u64) {
        let part = self.clients[number].take(most);
        if let Some(window) = self.clients[number].window {
            *self.taken.entry(window.start).or_default() += part;
        }
    }

    fn assert_not_over(&self) {
        for (window, taken) in &self.taken {
            assert!(
                *taken <= TOTAL,
                "seed {}: {taken} of {TOTAL} in {window}",
                self.seed
            );
        }
        self.root.assert_consistent();
        self.leaves.iter().for_each(Node::assert_consistent);
    }

    fn step(&mut self) {
        let number = usize::try_from(self.draw(6)).unwrap();
        match self.draw(40) {
            0 => {
                self.processes += 1;
                self.clients[number] = self.client(number);
            }
            1 => {
                let name = ["eu", "us"][number % 2];
                self.leaves[number % 2] = self.leaf(name);
            }
            2 => {
                // The last write may be in the store without a confirmation.
                let is_written = self.draw(2) == 0;
                if is_written {
                    self.write_marks(true);
                }
                self.start_root();
                self.leaves
                    .iter_mut()
                    .for_each(|leaf| leaf.handle_upstream_lost(self.now));
            }
            3 => {
                self.store.clear();
                self.is_complete = false;
                self.start_root();
                self.leaves
                    .iter_mut()
                    .for_each(|leaf| leaf.handle_upstream_lost(self.now));
                self.is_complete = true;
            }
            4 => {
                let part = [8, 8, 1][usize::try_from(self.draw(3)).unwrap()];
                self.advance(WINDOW / part);
            }
            5..10 => self.advance(Duration::from_secs(3)),
            10..16 => self.write_marks(false),
            16..24 => {
                let is_lost = self.draw(5) == 0;
                self.round(number % 2, is_lost);
            }
            24..32 => {
                let is_lost = self.draw(5) == 0;
                self.clients[number].need = self.draw(60);
                drop(self.ask(number, is_lost));
            }
            _ => {
                let most = self.draw(40);
                self.take(number, most);
            }
        }
        self.advance(Duration::from_millis(100));
        self.assert_not_over();
    }

    /// Lets all clients ask and take until none of them gets more.
    fn settle(&mut self) {
        for _ in 0..60 {
            for number in 0..6 {
                self.clients[number].need = 50;
                drop(self.ask(number, false));
                self.take(number, 50);
                self.round(number % 2, false);
                self.write_marks(false);
            }
            self.advance(Duration::from_secs(1));
        }
    }
}

#[test]
fn whatever_happens_no_window_is_overspent() {
    for seed in 0..200 {
        let mut world = World::new(seed);
        for _ in 0..300 {
            world.step();
        }
    }
}

#[test]
fn without_faults_all_of_a_budget_is_spent_in_each_window() {
    let mut world = World::new(1);
    for _ in 0..2 {
        world.settle();
        let (start, taken) = world.taken.iter().next_back().unwrap();
        assert_eq!(*taken, TOTAL, "in {start}");
        world.advance(WINDOW);
    }
    assert_eq!(world.taken.len(), 2);
}

#[test]
fn a_root_that_knows_nothing_waits_for_the_next_window() {
    let mut world = World::new(3);
    world.is_complete = false;
    world.start_root();
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), 0);
    world.advance(WINDOW);
    world.settle();
    assert_eq!(world.taken.values().sum::<u64>(), TOTAL);
}

#[test]
fn a_budget_and_a_lease_do_not_meet() {
    let mut world = World::new(4);
    let mut request = world.clients[0].request();
    request.asks[0].budget = None;
    let Outcome::Served(reply) = world.root.handle_get_capacity(&request, world.now) else {
        panic!("it is the master");
    };
    assert_eq!(reply.refused[0].reason, RefusalReason::IsBudget);
    let mut root = crate::asking::master(
        crate::asking::no_floor(),
        crate::asking::parsed(crate::asking::template(
            "r",
            AlgorithmKind::FairShare,
            100.0,
        )),
    );
    root.handle_wall_clock(0, world.now);
    let request = world.clients[0].request();
    let Outcome::Served(reply) = root.handle_get_capacity(&request, world.now) else {
        panic!("it is the master");
    };
    assert_eq!(reply.refused[0].reason, RefusalReason::IsNoBudget);
}

#[test]
fn status_shows_a_budget_its_holders_and_the_reason() {
    let mut world = World::new(5);
    for _ in 0..3 {
        drop(world.ask(0, false));
        world.round(0, false);
        world.write_marks(false);
        world.advance(Duration::from_secs(6));
    }
    let Some(Ok(lease)) = world.ask(0, false) else {
        panic!("there is enough");
    };
    assert_eq!(lease.limited_by, LimitedBy::Wants);
    world.take(0, 5);
    drop(world.ask(0, false));
    let leaf = &world.leaves[0];
    let seen = leaf.resource_snapshot(&resource("r"), world.now).unwrap();
    assert_eq!((seen.kind, seen.leases), (AlgorithmKind::Budget, 1));
    let (holders, next) = leaf.leases_from(&resource("r"), &Default::default(), "", 10, world.now);
    assert_eq!((holders.len(), next), (1, None));
    let why = holders[0].why.to_string();
    assert!(why.contains("left in this window"), "{why}");
    let root = world.root.snapshots_after(None, 10, world.now);
    assert_eq!(root[0].capacity, TOTAL as f64);
    assert!(
        root[0].mark.is_some_and(|mark| mark >= root[0].granted),
        "{root:?}"
    );
}
