//! How clients find the master of their node: whom to ask, the session says ([`MasterFinder`]); this carries the
//! question who the master is, and what comes of it.
//!
//! [`MasterFinder`]: doorward_session::master_finder::MasterFinder

use std::time::Duration;

use doorward_engine::request::GetCapacity;
use doorward_session::master_finder::Lost;

use crate::world::World;
use crate::world::clients::client_time;
use crate::world::event::What;
use crate::world::message::{Answer, Channel, Discovered, Message, Who};
use crate::world::seats::{Behind, Named};
use crate::world::servers::CLIENT_TIMEOUT;

impl World<'_> {
    /// A client without a connection asks whoever it is to ask who the master is.
    pub(super) fn look_for_master(&mut self, number: u32, request: Box<GetCapacity>) {
        let (now, scenario) = (self.now, self.scenario);
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
        let Some(seat) = target.and_then(|target| there.seats.find(&target.address)) else {
            // Nobody has that address.
            let after = self.takes(&way) + self.takes(&way);
            self.fail_later(number, sequence, now + after);
            return;
        };
        let message = Message::Discover {
            client: number,
            place,
            seat,
            request,
        };
        if !self.send_once(&way, message) {
            self.fail_later(number, sequence, now + CLIENT_TIMEOUT);
        }
    }

    /// A server is asked who the master is.
    pub(super) fn discover(
        &mut self,
        client: u32,
        number: u32,
        seat: u32,
        request: Box<GetCapacity>,
    ) {
        let now = self.now;
        let sequence = request.sequence.unwrap_or_default();
        let way = self.scenario.network.to_clients(number);
        let behind = self.behind(number, seat);
        let Some(place) = self.places.get_mut(number as usize) else {
            return;
        };
        if place.cut_below_until > now {
            self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
            return;
        }
        let local = place.clock.shows(now);
        let named = place.named();
        let who = match behind {
            Behind::Nobody => {
                let at = now + self.takes(&way);
                self.fail_later(client, sequence, at);
                return;
            }
            Behind::Standby => Who::Other(named),
            Behind::Server(term) => {
                let Some(server) = place.server(term) else {
                    return;
                };
                if server.is_frozen(now) {
                    server.inbox.push(Message::Discover {
                        client,
                        place: number,
                        seat,
                        request,
                    });
                    self.fail_later(client, sequence, now + CLIENT_TIMEOUT);
                    return;
                }
                let epoch = server.epoch;
                let is_master = server.node.mastership(local).is_master();
                if is_master {
                    let channel = Channel { seat, term };
                    Who::Myself { channel, epoch }
                } else {
                    // Whose term is over does not know who is the master now.
                    Who::Other(None)
                }
            }
        };
        let answer = Answer::Discovered(Box::new(Discovered {
            request: *request,
            who,
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

    /// A client hears who the master is.
    pub(super) fn hear_of_master(&mut self, number: u32, sequence: u64, told: Discovered) {
        let Discovered { request, who } = told;
        let Some(leases_last) = self.leases_last(number) else {
            return;
        };
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        match who {
            Who::Myself { channel, epoch } => {
                match client.finder.handle_master(epoch, leases_last) {
                    Ok(_) => {
                        client.channel = Some(channel);
                        self.ask_master(number, channel, request);
                    }
                    Err(lost) => self.lose_master(number, sequence, &lost),
                }
            }
            Who::Other(named) => match self.go_elsewhere(number, named.as_ref()) {
                Ok(()) => self.look_for_master(number, Box::new(request)),
                Err(lost) => self.lose_master(number, sequence, &lost),
            },
        }
    }

    /// Who was asked is not the master: asks again at once where it says, or later.
    pub(super) fn leave_for(&mut self, number: u32, sequence: u64, named: Option<&Named>) {
        match self.go_elsewhere(number, named) {
            Ok(()) => {
                let client = self.clients.get_mut(number as usize);
                if let Some(state) = client.and_then(|client| client.state.as_mut()) {
                    state.handle_redirect(sequence);
                }
            }
            Err(lost) => self.lose_master(number, sequence, &lost),
        }
    }

    fn go_elsewhere(&mut self, number: u32, named: Option<&Named>) -> Result<(), Lost> {
        let leases_last = self.leases_last(number).unwrap_or_default();
        let Some(client) = self.clients.get_mut(number as usize) else {
            return Ok(());
        };
        client.channel = None;
        let master = named.map(|named| named.address.as_str());
        let epoch = named.and_then(|named| named.epoch);
        let finder = &mut client.finder;
        finder
            .handle_redirect(master, epoch, leases_last)
            .map(|_| ())
    }

    /// Who was asked is of no use to a client: it asks the next one later.
    pub(super) fn lose_master(&mut self, number: u32, sequence: u64, lost: &Lost) {
        let now = self.now;
        let chance = self.chance.uniform();
        let Some(client) = self.clients.get_mut(number as usize) else {
            return;
        };
        client.channel = None;
        let local = client_time(client.clock.shows(now));
        if let Some(state) = &mut client.state {
            if lost.is_election {
                state.handle_masterless(sequence, chance, local);
            } else {
                state.handle_failure(sequence, chance, local);
            }
        }
    }

    /// For how long the last lease of a client lasts. None: it does not run.
    fn leases_last(&self, number: u32) -> Option<Duration> {
        let client = self.clients.get(number as usize)?;
        let local = client_time(client.clock.shows(self.now));
        let end = client.state.as_ref()?.leases_end(local);
        Some(end.map_or(Duration::ZERO, |end| end.since(local)))
    }

    /// A message is on its way on a connection that is being made: it arrives after a time, once; or never,
    /// which is returned.
    fn send_once(&mut self, way: &crate::scenario::Link, message: Message) -> bool {
        self.work.messages += 1;
        if !self.is_healed && self.chance.happens(way.loss) {
            self.work.lost += 1;
            return false;
        }
        let at = self.now + self.takes(way);
        let slot = self.mail.keep(message);
        self.events.put(at, What::Arrival(slot));
        true
    }
}
