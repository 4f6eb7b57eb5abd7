//! The real run of a course: server processes on loopback, and clients of the library in this process. The trace
//! changes the wants, and the allowances are read every few milliseconds.
//!
//! The simulator's checkers compute the figures from these readings.

use std::collections::VecDeque;
use std::time::Duration;

use doorward::{Client, Holding, Mode, Resource};
use doorward_simulator::recording::Figures;
use doorward_simulator::scenario::demand::Demand;
use doorward_simulator::scenario::{ClientGroup, Scenario};
use doorward_tests::candidates::Candidate;
use doorward_tests::processes::Server;
use doorward_trace::Row;
use tokio::task::{block_in_place, spawn_blocking};
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::books::RealRun;
use crate::course::Course;

/// Time between two readings of allowances.
const SEEN_EVERY: Duration = Duration::from_millis(5);
/// Number of readings after which the distance from the ideal is computed, as often as in the simulation.
const LOOK_EVERY: u32 = 10;

/// A root with leaves below it.
struct Tree {
    root: Candidate,
    leaves: Vec<Server>,
}

impl Tree {
    fn start(course: &Course, scenario: &Scenario) -> Self {
        let mut root = Candidate::new(&["--templates", course.templates.to_str().unwrap()]);
        root.start();
        let leaves = scenario
            .nodes
            .iter()
            .skip(1)
            .map(|node| Server::start(&["--node", &node.name, "--parent", &root.address]));
        Self {
            leaves: leaves.collect(),
            root,
        }
    }
}

/// A client that was started.
struct Member {
    resource: Resource,
    _client: Client,
}

/// The started clients of a group, in order.
struct Members<'a> {
    group: &'a ClientGroup,
    /// Addresses of the nodes of its clients, in turn.
    addresses: Vec<String>,
    started: Vec<Member>,
    wants: Vec<f64>,
}

impl Members<'_> {
    /// Returns the start of the next client, if there is one.
    fn next_start(&self) -> Option<Duration> {
        let next = self.started.len();
        let part = next as f64 / self.group.count.0 as f64;
        (next < self.group.count.0).then(|| self.group.start_within.0.mul_f64(part))
    }

    fn start_next(&mut self) -> usize {
        let number = self.started.len();
        let address = &self.addresses[number % self.addresses.len()];
        let client = Client::builder()
            .id(self.group.client_name(number))
            .address(address)
            .connect_lazy()
            .unwrap();
        let resource = client
            .resource(self.group.first.resource.as_str())
            .mode(Mode::Safe)
            .wants(self.wants[number])
            .open()
            .unwrap();
        self.started.push(Member {
            resource,
            _client: client,
        });
        number
    }

    /// Returns the allowances of all clients at one moment. It reads twice, and again until both readings are equal,
    /// because one client may have given up capacity that another one has got in between.
    fn seen(&self) -> Vec<Holding> {
        let look = || -> Vec<Holding> {
            let all = self.started.iter();
            all.map(|member| member.resource.holding()).collect()
        };
        let mut seen = look();
        for _ in 0..100 {
            let again = look();
            let pairs = seen.iter().zip(&again);
            let same =
                |(a, b): (&Holding, &Holding)| (a.capacity, a.source) == (b.capacity, b.source);
            if pairs.into_iter().all(same) {
                break;
            }
            seen = again;
        }
        seen
    }
}

/// Runs a course, in real time.
pub(crate) async fn run(course: Course, scenario: Scenario) -> Figures {
    let (tree, scenario) = {
        let course = course.clone();
        let start = move || (Tree::start(&course, &scenario), scenario);
        spawn_blocking(start).await.unwrap()
    };
    let group = &scenario.clients[0];
    let template = scenario.templates.find(&group.first.resource).unwrap();
    let mut run = RealRun::new(group, template, scenario.settled_after.0);
    let Demand::Trace(trace) = &group.first.demand else {
        panic!("a course has a trace");
    };
    let mut rows: VecDeque<Row> = trace.rows.iter().copied().collect();
    let mut addresses = vec![tree.root.address.clone()];
    addresses.extend(tree.leaves.iter().map(|leaf| leaf.address.clone()));
    let places = group.places(&scenario.nodes).unwrap();
    let mut members = Members {
        group,
        addresses: places
            .into_iter()
            .map(|node| addresses[node].clone())
            .collect(),
        started: Vec::new(),
        wants: vec![0.0; group.count.0],
    };
    let began = Instant::now();
    // It runs beside the readings, which must not wait for it.
    let accident = tokio::spawn(have_accident(tree, course.away, began));
    let mut looks = interval(SEEN_EVERY);
    looks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    for look in 0_u32.. {
        looks.tick().await;
        let now = began.elapsed();
        while let Some(row) = rows.pop_front_if(|row| row.at() <= now) {
            members.wants[row.client] = row.wants;
            if let Some(member) = members.started.get(row.client) {
                member.resource.ask(row.wants).unwrap();
                run.handle_wants(row.client, row.wants, began.elapsed());
            }
        }
        while members.next_start().is_some_and(|at| at <= now) {
            let number = members.start_next();
            run.handle_wants(number, members.wants[number], began.elapsed());
        }
        let (seen, now) = (members.seen(), began.elapsed());
        for (client, holding) in seen.iter().enumerate() {
            run.handle_capacity(client, holding.capacity, holding.source, now);
        }
        if look.is_multiple_of(LOOK_EVERY) {
            run.handle_look(now);
        }
        if now >= scenario.duration.0 {
            break;
        }
    }
    let figures = run.finish(scenario.duration.0);
    drop(accident.await.unwrap());
    figures
}

/// Kills the root at its time, and starts it again at the same address.
async fn have_accident(mut tree: Tree, away: Option<(Duration, Duration)>, began: Instant) -> Tree {
    let Some((at, lasts)) = away else {
        return tree;
    };
    sleep_until(began + at).await;
    block_in_place(|| tree.root.kill());
    sleep_until(began + at + lasts).await;
    block_in_place(|| tree.root.start());
    tree
}
