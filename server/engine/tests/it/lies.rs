//! Liars in learning mode: clients that report leases which they do not have. Honest clients beside them soon get their
//! max-min share, and grants never exceed the capacity.

use std::time::Duration;

use doorward_engine::id::Incarnation;
use doorward_engine::time::Time;

use crate::asking::{amount, request_for, resource, served};
use crate::story::client::Client;
use crate::story::player::Player;
use crate::whole::Whole as _;

const TICK: Duration = Duration::from_millis(50);

/// Two refresh intervals, and the time until an invited client has come.
const SOON: Duration = Duration::from_millis(11_500);

/// When a liar asks again.
#[derive(Clone, Copy, Debug)]
enum Manner {
    /// Never.
    Once,
    /// At the time of its invitation.
    AsInvited,
    /// Every so often, in seconds, whatever the answer is.
    Every(u64),
    /// At the time of its invitation, with hardly any wants: only its reported lease counts.
    WantsLittle,
}

const MANNERS: [Manner; 5] = [
    Manner::Once,
    Manner::AsInvited,
    Manner::Every(1),
    Manner::Every(4),
    Manner::WantsLittle,
];

struct Liar {
    home: usize,
    name: String,
    says: f64,
    manner: Manner,
    next: Time,
}

impl Liar {
    fn ask(&mut self, player: &mut Player) {
        let now = player.world.now;
        let wants = match self.manner {
            Manner::WantsLittle => 0.5,
            _ => 1e15,
        };
        let request = request_for(&self.name, resource("r"), 0, wants, self.says);
        let reply = served(player.world.asked(self.home, &request));
        let lease = reply.leases.first();
        let refresh_in = lease.map_or(Duration::from_secs(1), |lease| lease.refresh_in);
        self.next = match self.manner {
            Manner::Once => Time::MAX,
            Manner::Every(seconds) => now + Duration::from_secs(seconds),
            Manner::AsInvited | Manner::WantsLittle => now + refresh_in,
        };
    }
}

/// A root, and leaves below it if there are any, with honest clients and liars. Time passes in ticks.
struct LyingTree {
    player: Player,
    liars: Vec<Liar>,
    capacity: f64,
}

impl LyingTree {
    fn new(capacity: f64, wants_max: Option<f64>, leaves: usize) -> Self {
        let mut player = Player::default();
        player.play("advance 1000s");
        player.play("node root epoch=1 floor=1s");
        let bound = wants_max.map_or(String::new(), |max| format!("wants_max={max}"));
        let template = format!("template r FAIR_SHARE {capacity} learning=lease {bound}");
        player.play(&template);
        for leaf in 1..=leaves {
            player.play(&format!("node leaf-{leaf} parent=root epoch=1 floor=1s"));
        }
        Self {
            player,
            liars: Vec::new(),
            capacity,
        }
    }

    fn now(&self) -> Time {
        self.player.world.now
    }

    /// Adds a client that follows the protocol and asks now. It has a lease for 50 s.
    fn honest(&mut self, home: usize, name: &str, wants: f64, has: f64) {
        let now = self.now();
        let mut client = Client::new(name, home, "r");
        client.incarnation = Incarnation::new(1);
        client.wants = wants;
        client.next_send = now;
        if has > 0.0 {
            client.hold(amount(has), now + Duration::from_secs(50));
        }
        self.player.world.add_client(client);
    }

    /// Adds a liar that asks now, and reports a lease of `says`.
    fn liar(&mut self, home: usize, name: &str, says: f64, manner: Manner) {
        self.liars.push(Liar {
            home,
            name: name.to_owned(),
            says,
            manner,
            next: self.now(),
        });
    }

    /// Starts another process of a node, which becomes its master without any knowledge.
    fn restart(&mut self, number: usize) {
        let name = self.player.world.servers[number].name.clone();
        self.player.play(&format!("restart {name} epoch=2"));
    }

    /// Lets all honest clients ask now.
    fn all_come(&mut self) {
        let now = self.now();
        for client in &mut self.player.world.clients {
            client.next_send = now;
        }
    }

    fn tick(&mut self) {
        let now = self.now();
        for liar in self.liars.iter_mut().filter(|liar| liar.next <= now) {
            liar.ask(&mut self.player);
        }
        self.player.play("run 50ms");
        self.check();
    }

    /// Checks that grants do not exceed the capacity. The player checks that sums equal their parts.
    fn check(&self) {
        let root = &self.player.world.servers[0].node;
        for snapshot in root.snapshot(self.now()).resources {
            assert!(snapshot.reserved <= self.capacity, "{snapshot:?}");
        }
    }

    fn run(&mut self, span: Duration) {
        let end = self.now() + span;
        while self.now() < end {
            self.tick();
        }
    }

    fn uses(&self) -> Vec<f64> {
        let clients = self.player.world.clients.iter();
        clients.map(|it| it.uses(self.now()).get()).collect()
    }
}

/// Reports above the capacity, by a little and by far.
const LIES: [f64; 4] = [100.000_001, 250.0, 1e9, 1e15];

#[test]
fn an_honest_client_that_comes_second_gets_its_part_within_two_refresh_intervals() {
    for says in LIES {
        for manner in MANNERS {
            for (honest, liars) in [(1, 1), (4, 1), (2, 3)] {
                let mut world = LyingTree::new(100.0, None, 0);
                for number in 0..liars {
                    world.liar(0, &format!("liar-{number}"), says, manner);
                }
                world.run(TICK);
                for number in 0..honest {
                    world.honest(0, &format!("honest-{number}"), 50.0, 20.0);
                }
                world.run(SOON);
                let part = (100.0 / f64::from(honest + liars)).min(20.0);
                let all_have = |uses: &[f64]| uses.iter().all(|it| *it >= part * (1.0 - 1e-9));
                let about = format!("{honest} beside {liars} that say {says}, {manner:?}");
                assert!(all_have(&world.uses()), "{about}: {:?}", world.uses());
                // The same holds while the server learns.
                for _ in 0..40 {
                    world.run(Duration::from_secs(1));
                    assert!(all_have(&world.uses()), "{about}: {:?}", world.uses());
                }
            }
        }
    }
}

#[test]
fn a_liar_takes_no_more_than_the_template_allows_one_client() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = LyingTree::new(100.0, Some(40.0), 0);
            world.liar(0, "liar", says, manner);
            world.run(TICK);
            for name in ["a", "b"] {
                world.honest(0, name, 50.0, 30.0);
            }
            world.run(TICK);
            for _ in 0..50 {
                assert_eq!(world.uses(), [30.0, 30.0], "{says}, {manner:?}");
                world.run(Duration::from_secs(1));
            }
        }
    }
}

#[test]
fn reports_that_fit_are_confirmed_in_full_for_a_lease_length() {
    let mut world = LyingTree::new(100.0, None, 0);
    let came = world.now();
    for (name, has) in [("a", 60.0), ("b", 30.0), ("c", 10.0)] {
        world.honest(0, name, 100.0, has);
    }
    world.run(TICK);
    for it in &world.player.world.clients {
        assert_eq!(it.lease.unwrap().1, came + Duration::from_secs(60));
    }
    world.run(Duration::from_secs(40));
    assert_eq!(world.uses(), [60.0, 30.0, 10.0]);
}

/// The capacity was lowered from 100 to 50, and then the mastership changed.
#[test]
fn honest_reports_above_a_lowered_capacity_are_divided() {
    let mut world = LyingTree::new(50.0, None, 0);
    for (name, has) in [("a", 60.0), ("b", 40.0)] {
        world.honest(0, name, 100.0, has);
    }
    world.run(SOON);
    assert_eq!(world.uses(), [25.0, 25.0]);
}

#[test]
fn a_liar_that_is_gone_does_not_count_any_more() {
    let mut world = LyingTree::new(100.0, None, 0);
    world.liar(0, "liar", 1e15, Manner::Once);
    world.run(TICK);
    world.honest(0, "a", 100.0, 80.0);
    world.run(SOON);
    assert_eq!(world.uses(), [80.0]);
}

/// Returns leaves whose clients have their shares from a root that has learned.
fn settled(leaves: usize, clients: &[(usize, &str, f64)]) -> LyingTree {
    let mut world = LyingTree::new(100.0, None, leaves);
    world.run(Duration::from_secs(61));
    for (home, name, wants) in clients {
        world.honest(*home, name, *wants, 0.0);
    }
    world.run(Duration::from_secs(20));
    for (uses, (_, name, wants)) in world.uses().iter().zip(clients) {
        assert!((uses - wants).abs() < 1e-9, "{name}: {uses}");
    }
    world
}

/// Checks that all clients have their parts for this time, without a gap.
#[track_caller]
fn check_parts(world: &mut LyingTree, span: Duration, parts: &[f64], about: &str) {
    let end = world.now() + span;
    while world.now() < end {
        world.tick();
        for (number, (uses, part)) in world.uses().iter().zip(parts).enumerate() {
            let enough = *uses >= part * (1.0 - 1e-9);
            let now = world.now();
            assert!(enough, "{about}: client {number} uses {uses} at {now}");
        }
    }
}

#[test]
fn a_liar_at_a_restarted_leaf_takes_no_part_of_an_honest_client() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = settled(1, &[(1, "a", 20.0), (1, "b", 20.0), (1, "c", 20.0)]);
            world.restart(1);
            world.liar(1, "liar", says, manner);
            world.run(TICK);
            world.all_come();
            let about = format!("{says}, {manner:?}");
            // The leaf has 60, and gets more only if the liar wants more.
            let part = match manner {
                Manner::WantsLittle => 15.0,
                _ => 20.0,
            };
            check_parts(&mut world, Duration::from_secs(90), &[part; 3], &about);
        }
    }
}

#[test]
fn a_liar_at_one_leaf_takes_no_part_of_the_other_after_all_restart() {
    for says in LIES {
        for manner in MANNERS {
            let mut world = settled(2, &[(1, "a", 20.0), (2, "b", 20.0), (2, "c", 20.0)]);
            for number in 0..3 {
                world.restart(number);
            }
            world.liar(1, "liar", says, manner);
            world.run(Duration::from_millis(500));
            world.all_come();
            world.run(SOON);
            let about = format!("{says}, {manner:?}");
            check_parts(&mut world, Duration::from_secs(90), &[20.0; 3], &about);
        }
    }
}
