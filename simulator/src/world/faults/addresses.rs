//! Wrong addresses of servers: redirects of servers that are not master, and stale lists of
//! addresses.

use std::sync::Arc;

use doorward_engine::node::mastership::Mastership;
use doorward_session::address::Address;

use crate::recording::MarkKind;
use crate::scenario::fault::{NodeChoice, Span};
use crate::world::{ServerId, World};

impl World<'_> {
    /// Makes the servers of a node that are not its master redirect to one another.
    pub(super) fn loop_redirects(&mut self, node: &NodeChoice, length: Span) {
        let text =
            |name: &str| format!("{name}'s servers redirect to one another, not to the master");
        let (number, until) = self.begin_at(node, length, MarkKind::Addresses, text);
        let place = &mut self.places[number];
        place.redirect_loop_until = place.redirect_loop_until.max(until);
    }

    /// Returns what a server says about the master of its node.
    pub(crate) fn mastership_said_by(&self, id: ServerId) -> Mastership {
        let place = &self.places[id.place];
        let Some(server) = place.servers.iter().find(|it| it.id == id) else {
            return Mastership::Unknown;
        };
        let local = place.clock.shows(self.now);
        let known = server.node().mastership(local);
        if known.is_master() || place.redirect_loop_until <= self.now || place.slots.len() == 1 {
            return known.clone();
        }
        let others = place.servers.iter();
        let others = others.filter(|it| !it.node().mastership(local).is_master());
        // The next slot after its own, or the first; its own if it is alone.
        let slots = place.slots.len();
        let after = |slot: u32| (slot + slots - server.slot - 1) % slots;
        let next = others.map(|it| it.slot).min_by_key(|slot| after(*slot));
        let address = next.and_then(|slot| place.addresses.get(slot as usize));
        let Some(address) = address else {
            return known.clone();
        };
        Mastership::Elsewhere {
            master_address: address.to_string(),
            epoch: known.epoch(),
        }
    }

    /// Publishes stale addresses of a node's servers, and one that works.
    pub(super) fn publish_stale_addresses(&mut self, node: &NodeChoice, length: Span) {
        let text = |name: &str| format!("the addresses of {name}'s servers are stale");
        let (number, until) = self.begin_at(node, length, MarkKind::Addresses, text);
        let slots = self.places[number].slots.len();
        if slots < 2 {
            return;
        }
        let left = self.fault_rng.below(slots as usize);
        let place = &mut self.places[number];
        place.stale_until = place.stale_until.max(until);
        let gone = (0..slots).filter_map(|slot| {
            let gone = format!("gone-{number}-{slot}:1");
            Address::parse(&gone).ok()
        });
        let left = place.addresses.get(left).cloned();
        let published: Arc<[Address]> = gone.chain(left).collect();
        self.hand_out(number, published, None);
        self.act(until, move |world| world.publish_all(number));
    }

    /// Publishes all addresses of a node's servers again, with the master's, once the fault is
    /// over.
    pub(super) fn publish_all(&mut self, number: u32) {
        let now = self.now;
        let place = &self.places[number];
        if place.stale_until > now || Arc::ptr_eq(&place.published, &place.addresses) {
            return;
        }
        let local = place.clock.shows(now);
        let named = place.master(now).and_then(|server| {
            let address = place.addresses.get(server.slot as usize)?;
            Some((address.clone(), server.node().mastership(local).epoch()?))
        });
        self.hand_out(number, Arc::clone(&place.addresses), named);
    }

    /// Gives these addresses to all clients and child servers of a node.
    fn hand_out(&mut self, number: u32, published: Arc<[Address]>, named: Option<(Address, u64)>) {
        let place = &mut self.places[number];
        place.published = Arc::clone(&published);
        let children = place.children.clone();
        for client in self.clients.iter_mut().filter(|it| it.place == number) {
            let finder = &mut client.finder;
            if finder.handle_addresses(Arc::clone(&published), named.clone()) {
                // It asks that server next.
                client.connected = None;
            }
        }
        for child in children {
            let place = &mut self.places[child];
            place.parents = Arc::clone(&published);
            let awake = place.servers.iter().filter(|it| !it.is_frozen(self.now));
            let awake: Vec<ServerId> = awake.map(|server| server.id).collect();
            for id in awake {
                let (known, named) = (Arc::clone(&published), named.clone());
                self.input(id, |replica, at| {
                    replica.handle_parent_addresses(known, named, at);
                });
            }
        }
    }
}

#[cfg(test)]
mod tests;
