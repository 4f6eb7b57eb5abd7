//! Changes from outside in a random world.

use std::time::Duration;

use super::by_chance::ByChance;
use super::client::EARLY_GAP;

impl ByChance {
    /// Lets a client or a server crash or return, or changes wants, the templates, the master or a connection.
    pub fn upheaval(&mut self) {
        let number = self.chance.below(self.world.clients.len());
        if self.is_alone {
            self.upheaval_of_a_root(number);
        } else {
            self.upheaval_of_a_tree(number);
        }
    }

    fn upheaval_of_a_root(&mut self, number: usize) {
        let now = self.world.now;
        match self.chance.below(20) {
            0 => self.world.clients[number].crashed = true,
            1..=3 if self.world.clients[number].crashed => self.world.clients[number].restart(now),
            1..=3 => {}
            4 => self.release(number),
            5 => self.change_templates(),
            6 if self.chance.happens(0.3) => self.lose(0),
            6 => {}
            _ => self.world.clients[number].wants = self.chance.wants(),
        }
        if !self.root().mastership(now).is_master() && self.chance.happens(0.3) {
            self.win(0);
        }
    }

    fn upheaval_of_a_tree(&mut self, number: usize) {
        let server = self.chance.below(self.world.servers.len());
        let (is_up, is_gone) = (
            self.world.servers[server].up,
            self.world.clients[number].crashed,
        );
        let now = self.world.now;
        match self.chance.below(14) {
            0 => self.world.clients[number].crashed = true,
            1 | 2 if is_gone => self.world.clients[number].restart(now),
            3 if !is_gone => self.release(number),
            4 if is_up => self.crash(server),
            5..=7 if !is_up => self.start(server),
            8 if is_up => {
                let length = self.chance.span(Duration::from_secs(40));
                self.disconnect(server, length);
            }
            9 if self.chance.happens(0.3) => {
                let capacity = self.setup.capacity * self.chance.one_of(&[0.5, 0.9, 1.1, 2.0]);
                self.set_capacity(capacity);
            }
            _ => {
                let wants = self.chance.wants();
                self.set_wants(number, wants);
            }
        }
    }

    fn release(&mut self, number: usize) {
        let sent = self.world.client_releases(number);
        self.world.clients[number].next_send = self.world.now + Duration::from_secs(3);
        self.sent(sent);
    }

    fn change_templates(&mut self) {
        let before = self.setup;
        match self.chance.below(6) {
            0 => self.setup.exists = !self.setup.exists,
            1 => self.setup.lease = self.chance.one_of(&[20, 60, 90].map(Duration::from_secs)),
            2 => self.setup.capacity = self.chance.one_of(&[0.0, 1.0, 50.0, 100.0]),
            _ => self.setup.capacity = (before.capacity * 2.0 * self.chance.uniform()).min(1e9),
        }
        self.longest_lease = self.longest_lease.max(self.setup.lease);
        if self.setup.capacity() < before.capacity() {
            self.excuse();
        }
        self.tell_templates();
    }

    pub fn set_capacity(&mut self, capacity: f64) {
        if capacity < self.setup.capacity {
            self.excuse();
        }
        self.setup.capacity = capacity;
        if self.world.servers[0].up {
            self.tell_templates();
        }
    }

    /// Gives the root the templates of the present settings.
    pub fn tell_templates(&mut self) {
        let (templates, now) = (self.setup.templates(), self.world.now);
        self.root().handle_templates(templates, now);
    }

    pub fn set_wants(&mut self, number: usize, wants: f64) {
        let early = self.world.now + EARLY_GAP;
        let client = &mut self.world.clients[number];
        client.wants = wants;
        client.next_send = client.next_send.min(early);
    }
}
