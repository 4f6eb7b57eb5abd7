//! Clients' search for the master of their node. The session decides which server to ask
//! ([`MasterFinder`]); this file carries the question and the answer.
//!
//! [`MasterFinder`]: doorward_session::master_finder::MasterFinder

use std::time::Duration;

use doorward_engine::node::mastership::Mastership;
use doorward_engine::request::GetCapacity;
use doorward_session::master_finder::DeadEnd;

use crate::world::World;
use crate::world::message::{Discovered, Message, RequestResult, ServerId};
use crate::world::servers::CLIENT_TIMEOUT;

impl World<'_> {
    /// Asks the next server of a client's finder about the master.
    pub(super) fn find_master(&mut self, number: u32, request: Box<GetCapacity>) {
        let (now, scenario) = (self.now, self.scenario);
        self.count_request(number);
        let sequence = request.sequence.unwrap_or_default();
        let Some(client) = self.clients.get(number as usize) else {
            return;
        };
        let place = client.place;
        let target = client.finder.target();
        let Some(there) = self.places.get(place as usize) else {
            return;
        };
        if there.cut_below_until > now {
            self.fail_later(number, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let way = scenario.network.to_clients(place);
        let Some(slot) = target.and_then(|target| there.slot_of(&target.address)) else {
            // No server has that address.
            let after = self.takes(&way) + self.takes(&way);
            self.fail_later(number, sequence, now + after);
            return;
        };
        let message = Message::Discover {
            client: number,
            place,
            slot,
            request,
        };
        if !self.send_once(&way, message) {
            self.fail_later(number, sequence, now + CLIENT_TIMEOUT);
        }
    }

    /// Answers a client's question about the master.
    pub(super) fn discover(
        &mut self,
        client: u32,
        number: u32,
        slot: u32,
        request: Box<GetCapacity>,
    ) {
        let now = self.now;
        let sequence = request.sequence.unwrap_or_default();
        let way = self.scenario.network.to_clients(number);
        let found = self.process_at(number, slot);
        let Some(place) = self.places.get_mut(number as usize) else {
            return;
        };
        if place.cut_below_until > now {
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let Some(server) = found.and_then(|term| place.server(term)) else {
            let at = now + self.takes(&way);
            self.fail_later(client, sequence, at);
            return;
        };
        if server.is_frozen(now) {
            server.inbox.push(Message::Discover {
                client,
                place: number,
                slot,
                request,
            });
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let by = server.term;
        let mastership = self.mastership_said_by(ServerId {
            place: number,
            term: by,
        });
        let answer = RequestResult::Discovered(Box::new(Discovered {
            request: *request,
            by,
            mastership,
        }));
        let message = Message::Answer {
            client,
            sequence,
            answer,
        };
        if !self.send_once(&way, message) {
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
        }
    }

    /// Gives a client the answer about the master.
    pub(super) fn handle_discovered(&mut self, number: u32, sequence: u64, found: Discovered) {
        let Discovered {
            request,
            by,
            mastership,
        } = found;
        let Some(leases_last) = self.leases_last(number) else {
            return;
        };
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        if mastership.is_master() {
            let epoch = mastership.epoch();
            match client.finder.handle_master(epoch, leases_last) {
                Ok(_) => {
                    client.connected = Some(by);
                    self.ask_master(number, by, request);
                }
                Err(lost) => self.handle_dead_end(number, sequence, &lost),
            }
            return;
        }
        match self.follow_redirect(number, &mastership) {
            Ok(()) => self.find_master(number, Box::new(request)),
            Err(lost) => self.handle_dead_end(number, sequence, &lost),
        }
    }

    /// Handles an answer by a server that is not master: the client asks at once where the answer
    /// points, or later.
    pub(super) fn handle_not_master(&mut self, number: u32, sequence: u64, master: &Mastership) {
        match self.follow_redirect(number, master) {
            Ok(()) => {
                let client = self.clients.get_mut(number as usize);
                if let Some(state) = client.and_then(|client| client.state.as_mut()) {
                    state.handle_redirect(sequence);
                }
            }
            Err(lost) => self.handle_dead_end(number, sequence, &lost),
        }
    }

    fn follow_redirect(&mut self, number: u32, mastership: &Mastership) -> Result<(), DeadEnd> {
        let leases_last = self.leases_last(number).unwrap_or_default();
        let Some(client) = self.clients.get_mut(number as usize) else {
            return Ok(());
        };
        client.connected = None;
        let master = match mastership {
            Mastership::Follower { master_address, .. } => Some(master_address.as_str()),
            Mastership::Master { .. } | Mastership::Unknown => None,
        };
        let finder = &mut client.finder;
        finder
            .handle_redirect(master, mastership.epoch(), leases_last)
            .map(|_| ())
    }

    /// Returns the process that answers at an address of a node. If two share it, either may
    /// answer.
    fn process_at(&mut self, place: u32, slot: u32) -> Option<u64> {
        let known = self.places.get(place as usize)?;
        let here = |is_twin| {
            let mut all = known.servers.iter();
            let found = all.find(|it| it.slot == slot && it.is_twin == is_twin);
            found.map(|it| it.term)
        };
        match (here(false), here(true)) {
            (Some(_), Some(twin)) if self.chance.happens(0.5) => Some(twin),
            (first, twin) => first.or(twin),
        }
    }

    /// Notes that the server asked is of no use to a client, which asks the next one later.
    pub(super) fn handle_dead_end(&mut self, number: u32, sequence: u64, lost: &DeadEnd) {
        let now = self.now;
        let chance = self.chance.uniform();
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        client.connected = None;
        let local = client.clock.shows(now);
        if let Some(state) = &mut client.state {
            if lost.is_election {
                state.handle_masterless(sequence, chance, local);
            } else {
                state.handle_failure(sequence, chance, local);
            }
        }
    }

    /// Returns the time until the last lease of a client ends; `None` if it does not run.
    fn leases_last(&self, number: u32) -> Option<Duration> {
        let client = self.clients.get(number as usize)?;
        let local = client.clock.shows(self.now);
        let end = client.state.as_ref()?.leases_end(local);
        Some(end.map_or(Duration::ZERO, |end| end.since(local)))
    }

    /// Sends a message on a new connection. It arrives once after a delay, or never; returns
    /// whether it arrives.
    fn send_once(&mut self, way: &crate::scenario::Link, message: Message) -> bool {
        self.work.messages += 1;
        if !self.is_healed && self.chance.happens(way.loss) {
            self.work.lost += 1;
            return false;
        }
        let at = self.now + self.takes(way);
        self.deliver(at, message);
        true
    }
}
