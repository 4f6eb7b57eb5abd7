//! A random world after all faults: every server and client is up, and has its share.

use std::time::Duration;

use doorward_engine::templates::AlgorithmKind;

use super::by_chance::ByChance;
use super::client::Client;
use super::setup::Faults;

impl ByChance {
    /// Ends all faults and starts all processes. Waits until every lease and learning mode from before is over.
    pub fn heal(&mut self) {
        self.faults = Faults::NONE;
        if !self.setup.exists {
            self.setup.exists = true;
            self.tell_templates();
        }
        for number in 0..self.world.servers.len() {
            let now = self.world.now;
            if !self.world.servers[number].up {
                self.start(number);
            } else if !self.world.servers[number].node.mastership(now).is_master() {
                self.win(number);
            }
            self.disconnect(number, Duration::ZERO);
        }
        let now = self.world.now;
        let clients = self.world.clients.iter_mut();
        clients
            .filter(|client| client.crashed)
            .for_each(|client| client.restart(now));
        self.run_until(now + 4 * self.longest_lease);
    }

    /// Changes the wants of clients, which report them as soon as the floor allows.
    pub fn step_demand(&mut self) {
        // Work that continues is capacity that cannot move.
        self.world.clients.iter_mut().for_each(Client::finish);
        for number in 0..self.world.clients.len() {
            self.world.clients[number].gauge = false;
            let wants = self.chance.wants();
            self.set_wants(number, wants);
        }
    }

    /// Checks that every client has its share, to 1e-9. With FAIR_SHARE, all clients below their wants have the same
    /// amount, and no client has more.
    #[track_caller]
    pub fn check_settled(&self, when: &str) {
        let (seed, kind, clients) = (self.seed, self.setup.kind, &self.world.clients);
        let uses: Vec<f64> = self.uses().iter().map(|it| it.get()).collect();
        let has: f64 = uses.iter().sum();
        let wants: f64 = clients.iter().map(|client| client.wants).sum();
        let expected = wants.min(self.setup.capacity());
        let servers = 0..self.world.servers.len();
        assert!(
            (has - expected).abs() <= 1e-9 * expected.max(1e-9),
            "seed {seed}, {when}, {kind}: {has} of {expected}\n{clients:#?}\n{:#?}",
            servers.map(|it| self.snapshot(it)).collect::<Vec<_>>()
        );
        if kind == AlgorithmKind::FairShare {
            let most = uses.iter().copied().fold(0.0, f64::max);
            for (has, client) in uses.iter().zip(clients) {
                assert!(
                    *has >= client.wants.min(most) * (1.0 - 1e-9),
                    "seed {seed}, {when}: {has} of {most}: {client:?}"
                );
            }
        }
    }
}
