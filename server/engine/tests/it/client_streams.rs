//! Clients with a stream get by pushes the leases that repeated requests of all clients would give them.

use std::time::Duration;

use doorward_engine::claims::Subclients;
use doorward_engine::id::{HolderId, Incarnation};
use doorward_engine::messages::{ClientLease, GetCapacity, Has};
use doorward_engine::node::Node;
use doorward_engine::node::children::{Pushed, Pushes};
use doorward_engine::templates::AlgorithmKind;
use doorward_engine::time::Time;
use proptest::prelude::*;

use crate::asking::{
    amount, ask, do_due, holder, master, no_floor, parsed, resource, served, template,
};

/// Largest difference that is not pushed.
const RISE_MIN: f64 = 1.0 / 500.0;

fn at(millis: u64) -> Time {
    Time::ZERO + Duration::from_millis(millis)
}

/// A client that applies what it is told, and acknowledges when it is asked to.
#[derive(Debug)]
struct Client {
    id: HolderId,
    priority: i64,
    weight: Subclients,
    wants: f64,
    sequence: u64,
    has: f64,
}

impl Client {
    fn new(name: &str, wants: f64) -> Self {
        Self {
            id: HolderId::client(holder(name), Incarnation::new(7)),
            priority: 0,
            weight: Subclients::ONE,
            wants,
            sequence: 0,
            has: 0.0,
        }
    }

    fn asks(&mut self, node: &mut Node, now: Time) -> ClientLease {
        self.sequence += 1;
        let has = Some(Has::untimed(amount(self.has)));
        let mut ask = ask(resource("r"), self.priority, amount(self.wants), has);
        ask.weight = self.weight;
        let request = GetCapacity {
            caller: None,
            incarnation: self.id.process,
            client: self.id.name.clone(),
            sequence: Some(self.sequence),
            asks: vec![ask],
        };
        let reply = served(node.handle_get_capacity(&request, now));
        let lease = reply.leases.into_iter().next().unwrap();
        let before = std::mem::replace(&mut self.has, lease.capacity.get());
        match self.has < before {
            true => self.asks(node, now),
            false => lease,
        }
    }
}

fn node(kind: AlgorithmKind, capacity: f64) -> Node {
    master(no_floor(), parsed(template("r", kind, capacity)))
}

/// Opens streams, and asks for all.
fn open(node: &mut Node, clients: &mut [Client], now: Time) {
    for client in clients {
        node.handle_client_stream(&client.id, true);
        client.asks(node, now);
    }
}

fn push_all(node: &mut Node, now: Time) -> Pushed {
    let mut pushed = Pushed::default();
    for round in 0.. {
        assert!(round < 1_000, "pushes come to an end");
        if !node.has_pushes() {
            break;
        }
        pushed.clients.extend(node.poll_pushes(now).clients);
    }
    pushed
}

/// Pushes, and lets clients acknowledge, until nothing is left to push. Returns the number of pushes.
fn settle(node: &mut Node, clients: &mut [Client], now: Time) -> usize {
    let mut pushes = 0;
    loop {
        assert!(pushes < 10_000, "pushes come to an end");
        let pushed = push_all(node, now).clients;
        if pushed.is_empty() {
            return pushes;
        }
        for (id, reply) in pushed {
            pushes += 1;
            let client = clients.iter_mut().find(|it| it.id == id).unwrap();
            let lease = &reply.leases[0];
            assert_eq!(lease.sequence, Some(client.sequence));
            let before = std::mem::replace(&mut client.has, lease.capacity.get());
            if client.has < before {
                client.asks(node, now);
            }
        }
        node.assert_consistent();
    }
}

fn leases(clients: &[Client]) -> Vec<f64> {
    clients.iter().map(|client| client.has).collect()
}

#[test]
fn a_client_above_its_share_is_pushed_and_what_it_frees_goes_to_the_one_that_waits() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut clients = [Client::new("a", 90.0), Client::new("b", 90.0)];
    open(&mut node, &mut clients, at(0));
    assert_eq!(leases(&clients), [90.0, 10.0], "b waits for a");
    let pushed = push_all(&mut node, at(50)).clients;
    let shrinks = &pushed[&clients[0].id].leases[0];
    assert_eq!(shrinks.capacity.get(), 50.0);
    assert_eq!(pushed.len(), 1, "nothing is free for b yet");
    clients[0].has = 50.0;
    clients[0].asks(&mut node, at(60));
    let pushed = push_all(&mut node, at(100)).clients;
    assert_eq!(pushed[&clients[1].id].leases[0].capacity.get(), 50.0);
}

#[test]
fn a_pushed_lease_ends_with_the_answered_one_and_names_its_request() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut clients = [Client::new("a", 90.0), Client::new("b", 90.0)];
    open(&mut node, &mut clients, at(0));
    let pushed = push_all(&mut node, at(10_000)).clients;
    let lease = &pushed[&clients[0].id].leases[0];
    assert_eq!(lease.sequence, Some(1));
    assert!(lease.expires_in <= Duration::from_secs(50), "{lease:?}");
    assert!(lease.expires_in > Duration::from_secs(49), "{lease:?}");
}

#[test]
fn a_closed_stream_gets_no_pushes_and_its_client_shrinks_at_its_refresh() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut clients = [Client::new("a", 90.0), Client::new("b", 90.0)];
    open(&mut node, &mut clients, at(0));
    node.handle_client_stream(&clients[0].id, false);
    assert_eq!(settle(&mut node, &mut clients, at(50)), 0);
    clients[0].asks(&mut node, at(5_000));
    assert_eq!(clients[0].has, 50.0);
}

#[test]
fn a_replaced_process_gets_no_pushes_and_the_one_that_replaced_it_does() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut clients = [Client::new("a", 50.0), Client::new("other", 100.0)];
    open(&mut node, &mut clients, at(0));
    let mut restarted = Client::new("a", 50.0);
    restarted.id.process = Incarnation::new(8);
    node.handle_client_stream(&restarted.id, true);
    restarted.asks(&mut node, at(1_000));
    assert_eq!(restarted.has, 0.0, "the former process may use its lease");
    clients[1].wants = 0.0;
    clients[1].asks(&mut node, at(2_000));
    let pushed = push_all(&mut node, at(2_050)).clients;
    assert_eq!(pushed.keys().collect::<Vec<_>>(), [&restarted.id]);
    assert_eq!(pushed[&restarted.id].leases[0].capacity.get(), 50.0);
}

#[test]
fn a_lower_static_capacity_is_pushed() {
    let mut node = node(AlgorithmKind::Static, 120.0);
    let mut clients = [Client::new("a", 100.0)];
    open(&mut node, &mut clients, at(0));
    let lower = parsed(template("r", AlgorithmKind::Static, 60.0));
    node.handle_templates(lower, at(1_000));
    do_due(&mut node, at(1_000));
    let pushed = push_all(&mut node, at(1_050)).clients;
    assert_eq!(pushed[&clients[0].id].leases[0].capacity.get(), 60.0);
}

#[test]
fn a_client_that_polled_is_pushed_to_from_its_first_request_on_a_stream() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut client = [Client::new("a", 90.0)];
    client[0].asks(&mut node, at(0));
    client[0].asks(&mut node, at(5_000));
    open(&mut node, &mut client, at(10_000));
    let mut other = [Client::new("b", 90.0)];
    open(&mut node, &mut other, at(11_000));
    let pushed = push_all(&mut node, at(11_050)).clients;
    assert!(pushed.contains_key(&client[0].id));
}

#[test]
fn a_client_with_a_stream_refreshes_thrice_in_a_lease_and_one_that_polls_at_the_interval() {
    let mut node = node(AlgorithmKind::FairShare, 100.0);
    let mut client = Client::new("a", 10.0);
    let polls = client.asks(&mut node, at(0)).refresh_in;
    node.handle_client_stream(&client.id, true);
    let streams = client.asks(&mut node, at(1_000)).refresh_in;
    assert_eq!(polls, Duration::from_secs(5));
    assert_eq!(streams, Duration::from_secs(20));
}

/// The number of looks after one of `n` satisfied clients wants twice as much.
fn looks_of_a_step(n: usize) -> usize {
    let mut node = node(AlgorithmKind::FairShare, 1e6);
    let mut clients: Vec<_> = (0..n)
        .map(|number| Client::new(&format!("c{number}"), 0.5e6 / n as f64))
        .collect();
    open(&mut node, &mut clients, at(0));
    settle(&mut node, &mut clients, at(50));
    clients[0].wants *= 2.0;
    clients[0].asks(&mut node, at(100));
    let mut looks = 0;
    while node.has_pushes() {
        let mut pushes = Pushes::default();
        while node.push_next(&mut pushes, at(150)).is_pending() {
            looks += 1;
        }
    }
    looks
}

#[test]
fn a_step_of_one_costs_the_same_looks_with_any_number_of_clients() {
    assert_eq!(looks_of_a_step(10), looks_of_a_step(2_000));
}

#[test]
fn a_round_looks_at_a_bounded_number_of_clients_and_the_next_one_goes_on() {
    let mut node = node(AlgorithmKind::FairShare, 1000.0);
    let mut clients: Vec<_> = (0..1_500)
        .map(|number| Client::new(&format!("c{number}"), 1.0))
        .collect();
    open(&mut node, &mut clients, at(0));
    settle(&mut node, &mut clients, at(50));
    let mut newcomer = [Client::new("new", 500.0)];
    open(&mut node, &mut newcomer, at(100));
    let first = node.poll_pushes(at(150)).clients.len();
    assert!((1..=512).contains(&first), "{first}");
    assert!(node.has_pushes(), "the rest is for later rounds");
}

fn any_client(number: usize) -> impl Strategy<Value = Client> {
    (0.0..100.0_f64, 0..3_i64, 1..4_u32).prop_map(move |(wants, priority, weight)| Client {
        priority,
        weight: Subclients::new(weight.into()).unwrap(),
        ..Client::new(&format!("c{number}"), wants)
    })
}

fn any_clients() -> impl Strategy<Value = Vec<Client>> {
    (2..20_usize).prop_flat_map(|n| (0..n).map(any_client).collect::<Vec<_>>())
}

fn any_kind() -> impl Strategy<Value = AlgorithmKind> {
    prop::sample::select(vec![
        AlgorithmKind::FairShare,
        AlgorithmKind::ProportionalShare,
        AlgorithmKind::PriorityBands,
    ])
}

proptest! {
    /// After pushes alone, all leases are what they would be if every client had asked again and again.
    #[test]
    fn pushes_end_where_requests_of_everybody_would(
        mut clients in any_clients(),
        (former, kind) in (any_kind(), any_kind()),
        changes in prop::collection::vec((0..20_usize, 0.0..100.0_f64), 0..12),
    ) {
        let mut node = node(former, 100.0);
        open(&mut node, &mut clients, at(0));
        settle(&mut node, &mut clients, at(10));
        node.handle_templates(parsed(template("r", kind, 100.0)), at(15));
        do_due(&mut node, at(15));
        settle(&mut node, &mut clients, at(16));
        for (who, wants) in changes {
            let many = clients.len();
            let client = &mut clients[who % many];
            client.wants = wants;
            client.asks(&mut node, at(20));
            settle(&mut node, &mut clients, at(30));
        }
        let pushed = leases(&clients);
        for _ in 0..3 {
            for client in &mut clients {
                client.asks(&mut node, at(40));
            }
        }
        // Parts of the wants rise by as much as levels. A light client may have a part that a heavy one lacks.
        let whole = clients.iter().map(|client| match kind {
            AlgorithmKind::ProportionalShare => client.wants,
            _ => client.has,
        });
        let whole = whole.fold(0.1, f64::max);
        for (pushed, client) in pushed.iter().zip(&clients) {
            let asked = client.has;
            let differs = (pushed - asked).abs() / whole;
            prop_assert!(differs <= 2.0 * RISE_MIN, "{pushed} by pushes, {asked} by requests, {kind}");
        }
    }
}
