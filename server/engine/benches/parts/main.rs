//! The longest call of a node for messages that name many resources, or concern many holders. The shell handles such a
//! message one resource a call, and gives its lock back after a call when it has held it for a millisecond. So the lock
//! is held for a millisecond and the longest call, at most.
//!
//! Each message is handled several times. Of each of its calls the fastest time counts: on a machine that does
//! something else, too, the others were interrupted. Of these times, the sum is printed (*at once*: for so long the
//! lock would be held for the whole message), the median, and the longest.
//!
//! `cargo bench -p doorward-engine --bench parts`; with `-- --test`, a few leases only.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a bench may panic, and prints what it measures"
)]
#![allow(clippy::disallowed_methods, reason = "it measures how long calls take")]

use std::num::NonZeroU32;
use std::sync::Arc;
use std::task::Poll;
use std::time::{Duration, Instant};

use doorward_engine::admission::Rate;
use doorward_engine::amount::Amount;
use doorward_engine::claims::{
    BandDemand, Claim, ClaimIndex, DemandCurve, POINTS_MAX, ServerDemand, Subclients,
};
use doorward_engine::id::{HolderName, ResourceId};
use doorward_engine::messages::{
    Ask, GetCapacity, GetCapacityReply, GetServerCapacity, GetServerCapacityReply, ReleaseCapacity,
    ServerAsk, Via,
};
use doorward_engine::node::asking::Answers;
use doorward_engine::node::children::Pushes;
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::node::upstream::UpstreamAnswered;
use doorward_engine::node::{Config, Node};
use doorward_engine::templates::{AlgorithmKind, Templates};
use doorward_engine::time::Time;

#[path = "../../tests/it/parents.rs"]
mod parents;
mod priorities;

use parents::{LEASE, answer};

const TURNS: usize = 5;

/// Sizes of nodes and calls.
struct Sizes {
    resources: usize,
    leases: usize,
    named: usize,
    children: usize,
    most: usize,
}

fn main() {
    let is_test = std::env::args().any(|argument| argument == "--test");
    let sizes = if is_test {
        Sizes {
            resources: 60,
            leases: 3,
            named: 40,
            children: 2,
            most: 1_000,
        }
    } else {
        Sizes {
            resources: 10_000,
            leases: 100,
            named: 1_000,
            children: 10,
            most: 1_000_000,
        }
    };
    clients(&sizes);
    children(&sizes);
    priorities::all(&sizes, 10);
    priorities::all(&sizes, 60);
    parent(&sizes);
    first_answer(&sizes);
    newcomers(&sizes);
}

/// Requests of clients for many resources.
fn clients(sizes: &Sizes) {
    let Sizes {
        resources,
        leases,
        named,
        ..
    } = *sizes;
    println!("{resources} resources of {leases} leases each, {named} of them in a request");
    let now = Time::from_secs(1_000);
    let mut node = master(false, AlgorithmKind::FairShare);
    for holder in 0..leases {
        for first in (0..resources).step_by(named) {
            let all = resources.min(first + named);
            node.handle_get_capacity(&asks(holder, first..all, 1.0), now);
        }
    }
    forget(&mut node);
    let mut asked = Calls::new("GetCapacity");
    let mut moved = Calls::new("  after a changed kind");
    let mut released = Calls::new("ReleaseCapacity");
    for turn in 0..TURNS {
        let at = now + Duration::from_secs(10 * (1 + turn as u64));
        let first = (turn * named) % resources;
        let range = first..resources.min(first + named);
        let request = asks(turn, range.clone(), 2.0);
        let answer = asked.client(&mut node, at, &request);
        let is_served = matches!(answer, Outcome::Served(reply) if reply.refused.is_empty());
        assert!(is_served, "otherwise it measures refusals");
        let kind = match turn % 2 {
            0 => AlgorithmKind::PriorityBands,
            _ => AlgorithmKind::FairShare,
        };
        let prepared = PreparedTemplates::new(node.active_templates(), templates(kind, false));
        node.handle_prepared_templates(prepared, at).unwrap();
        let request = asks(turn + 1, range.clone(), 3.0);
        moved.client(&mut node, at, &request);
        while node.poll_timeout().is_some_and(|due| due <= at) {
            node.handle_timeout(at);
        }
        let request = ReleaseCapacity {
            words: std::collections::BTreeMap::new(),
            client: client(turn),
            incarnation: None,
            caller: None,
            sequence: None,
            resources: range.map(resource).collect(),
        };
        let mut done = Vec::new();
        released.begin();
        released.all(|| node.release_next(&request, &mut done, at));
        forget(&mut node);
    }
    asked.print();
    moved.print();
    released.print();
}

/// Requests of child servers, and pushes to them.
fn children(sizes: &Sizes) {
    let (children, resources) = (sizes.children, sizes.named);
    println!("\n{children} child servers, {resources} resources, 64 points in a curve");
    let now = Time::from_secs(1_000);
    let mut node = master(false, AlgorithmKind::FairShare);
    let demands: Vec<_> = (0..2 * children).map(demand).collect();
    let mut asked = Calls::new("GetServerCapacity");
    let mut pushed = Calls::new("pushes");
    for turn in 0..TURNS {
        let at = now + Duration::from_secs(turn as u64);
        for child in 0..children {
            let demand = &demands[(child + turn) % demands.len()];
            let request = child_request(child, turn, resources, demand);
            node.handle_subscription(&request.server, true, at);
            asked.child(&mut node, at, &request);
        }
        let at = at + Duration::from_millis(100);
        pushed.begin();
        while node.has_pushes() {
            let mut pushes = Pushes::default();
            pushed.all(|| node.push_next(&mut pushes, at));
        }
        forget(&mut node);
    }
    asked.print();
    pushed.print();
}

/// Requests to a parent, and its answers.
fn parent(sizes: &Sizes) {
    let resources = sizes.resources;
    println!("\nbelow a parent, {resources} resources of 20 leases each, 500 of them in a message");
    let mut now = Time::from_secs(1_000);
    let mut node = master(true, AlgorithmKind::FairShare);
    let mut asked = Calls::new("request to the parent");
    let mut answered = Calls::new("its answer");
    for turn in 0..2 {
        for holder in 0..20 {
            for first in (0..resources).step_by(1_000) {
                let request = asks(
                    holder,
                    first..resources.min(first + 1_000),
                    1.0 + turn as f64,
                );
                node.handle_get_capacity(&request, now);
            }
        }
        now = now + Duration::from_secs(5);
        while let Some(request) = asked.request(&mut node, now) {
            let reply = answer(&request, AlgorithmKind::FairShare);
            answered.reply(&mut node, now, &reply);
        }
        forget(&mut node);
    }
    asked.print();
    answered.print();
}

/// The parent's first answer about a resource, with many holders that wait for it.
fn first_answer(sizes: &Sizes) {
    println!(
        "\nbelow a parent, one resource that {} holders wait for",
        sizes.most
    );
    let mut answered = Calls::new("its first answer");
    let mut later = Calls::new("  and what is due then");
    for _ in 0..TURNS.min(3) {
        let now = Time::from_secs(1_000);
        let mut node = master(true, AlgorithmKind::FairShare);
        for holder in 0..sizes.most {
            node.handle_get_capacity(&asks(holder, 0..1, 1.0), now);
        }
        forget(&mut node);
        let at = now + Duration::from_secs(5);
        let request = node.poll_upstream_request(1, at).unwrap();
        let reply = answer(&request, AlgorithmKind::FairShare);
        answered.reply(&mut node, at, &reply);
        later.timeouts(&mut node, at);
    }
    answered.print();
    later.print();
}

/// Newcomers, until the resource has many holders.
fn newcomers(sizes: &Sizes) {
    println!("\none resource, until it has {} holders", sizes.most);
    let mut came = Calls::new("GetCapacity of newcomers");
    for _ in 0..TURNS {
        let now = Time::from_secs(1_000);
        let mut node = master(false, AlgorithmKind::FairShare);
        came.begin();
        for holder in 0..sizes.most {
            let request = asks(holder, 0..1, 1.0);
            came.call(|| node.handle_get_capacity(&request, now));
        }
    }
    came.print();
}

/// Durations of the calls for some messages.
struct Calls {
    what: &'static str,
    messages: Vec<Vec<Duration>>,
}

impl Calls {
    fn new(what: &'static str) -> Self {
        let messages = Vec::new();
        Self { what, messages }
    }

    fn begin(&mut self) {
        self.messages.push(Vec::new());
    }

    fn call<T>(&mut self, call: impl FnOnce() -> T) -> T {
        let began = Instant::now();
        let answer = std::hint::black_box(call());
        let lasted = began.elapsed();
        self.messages.last_mut().unwrap().push(lasted);
        answer
    }

    /// All calls for a message.
    fn all<T>(&mut self, mut next: impl FnMut() -> Poll<T>) -> T {
        loop {
            if let Poll::Ready(answer) = self.call(&mut next) {
                return answer;
            }
        }
    }

    fn client(
        &mut self,
        node: &mut Node,
        now: Time,
        request: &GetCapacity,
    ) -> Outcome<GetCapacityReply> {
        let mut answers = Answers::to_client(request);
        self.begin();
        self.all(|| node.answer_client_next(request, &mut answers, now))
    }

    fn child(&mut self, node: &mut Node, now: Time, request: &GetServerCapacity) {
        let mut answers = Answers::to_child(request);
        self.begin();
        self.all(|| node.answer_child_next(request, Via::Stream, &mut answers, now))
            .unwrap();
    }

    fn request(&mut self, node: &mut Node, now: Time) -> Option<GetServerCapacity> {
        self.begin();
        let mut begun = self.call(|| node.begin_upstream_request(1, now))?;
        self.all(|| node.upstream_request_next(&mut begun, now))
    }

    fn reply(&mut self, node: &mut Node, now: Time, reply: &GetServerCapacityReply) {
        let mut answered = UpstreamAnswered::default();
        self.begin();
        self.all(|| node.upstream_reply_next(reply, &mut answered, now));
    }

    /// Everything that is due.
    fn timeouts(&mut self, node: &mut Node, now: Time) {
        self.begin();
        while node.poll_timeout().is_some_and(|due| due <= now) {
            self.call(|| node.handle_timeout(now));
        }
    }

    fn print(&self) {
        let count = self.messages.iter().map(Vec::len).max().unwrap_or_default();
        let fastest = |call| {
            let times = self.messages.iter().filter_map(|calls| calls.get(call));
            times.min().copied().unwrap_or_default()
        };
        let mut calls: Vec<Duration> = (0..count).map(fastest).collect();
        let at_once: Duration = calls.iter().sum();
        calls.sort_unstable();
        let at = |part: f64| calls[((count as f64 * part) as usize).min(count - 1)];
        println!(
            "{:26} {at_once:9.1?} at once; {count:7} calls, half of them up to {:7.1?}, 99.9 % {:7.1?}, the longest {:7.1?}",
            self.what,
            at(0.5),
            at(0.999),
            at(1.0),
        );
    }
}

fn master(has_parent: bool, kind: AlgorithmKind) -> Node {
    let mut config = Config {
        refresh_floor: Duration::ZERO,
        has_parent,
        ..Config::default()
    };
    // All holders come at once.
    let at_once = Rate::new(NonZeroU32::MAX, 1);
    config.limits.requests_per_template = at_once;
    let mut node = Node::new(config, templates(kind, has_parent));
    node.handle_mastership(Mastership::Master { epoch: Some(1) }, Time::ZERO);
    node
}

fn templates(kind: AlgorithmKind, has_parent: bool) -> Templates {
    if has_parent {
        return Templates::default();
    }
    parents::templates(kind, 1e6)
}

fn forget(node: &mut Node) {
    while node.poll_event().is_some() {}
    while node.poll_garbage().is_some() {}
}

fn resource(number: usize) -> ResourceId {
    ResourceId::new(&format!("bench-resource-{number:05}")).unwrap()
}

fn client(number: usize) -> HolderName {
    HolderName::new(&format!("bench-client-{number:07}")).unwrap()
}

fn asks(holder: usize, resources: std::ops::Range<usize>, wants: f64) -> GetCapacity {
    let ask = |number| Ask {
        budget: None,
        resource: resource(number),
        priority: (holder % 4) as i64,
        weight: Subclients::ONE,
        wants: Amount::new(wants + ((holder * 7_919 + number) % 100_003) as f64).unwrap(),
        has: None,
    };
    GetCapacity {
        caller: None,
        incarnation: None,
        client: client(holder),
        sequence: None,
        asks: resources.map(ask).collect(),
    }
}

fn child_request(
    child: usize,
    turn: usize,
    resources: usize,
    demand: &Arc<ServerDemand>,
) -> GetServerCapacity {
    GetServerCapacity {
        server: HolderName::new(&format!("child-{child}")).unwrap(),
        epoch: None,
        incarnation: None,
        caller: None,
        mastership: None,
        sequence: Some(turn as u64 + 1),
        height: 1,
        address: None,
        asks: (0..resources)
            .map(|number| ServerAsk {
                budget: None,
                resource: resource(number),
                demand: Arc::clone(demand),
                has: None,
                outstanding: None,
                reported: Vec::new(),
                unreported: Amount::ZERO,
                learning: false,
            })
            .collect(),
    }
}

fn demand(number: usize) -> Arc<ServerDemand> {
    Arc::new(ServerDemand::new(vec![band(0, number)]))
}

fn band(priority: i64, number: usize) -> BandDemand {
    let mut index = ClaimIndex::default();
    for claim in 0..1_000 {
        let wants = 1.0 + ((claim * 7_919 + number * 31) % 10_007) as f64;
        index.insert(Claim::of_client(Amount::new(wants).unwrap()));
    }
    BandDemand {
        priority,
        clients: index.total_subclients(),
        wants: Amount::new(index.total_wants()).unwrap(),
        curve: DemandCurve::of(&index, POINTS_MAX),
    }
}
