//! Second processes under the name of a running one: of a node without an election, or of a client.
//! They stand for a process started by mistake, or for a replacement that did not wait.

use doorward_engine::templates::Templates;

use crate::recording::MarkKind;
use crate::scenario::DemandPlayer;
use crate::scenario::fault::{ClientChoice, ClockChoice, NodeChoice, Span};
use crate::world::{ClientProcess, ServerId, ServerProcess, Use, World, chance_of};

/// Part of a node's clients that connect to its second process.
const CONNECTED: f64 = 0.5;

/// First term of second processes.
const TWINS: u64 = 1 << 63;

impl<'a> World<'a> {
    pub(super) fn twin(&mut self, of: &ClockChoice, length: Span) {
        match of {
            ClockChoice::Node(node) => self.twin_node(node, length),
            ClockChoice::Clients(clients) => self.twin_clients(clients, length),
        }
    }

    fn twin_node(&mut self, node: &NodeChoice, length: Span) {
        let text = |name: &str| format!("a second process of {name} runs");
        let (number, until) = self.begin_at(node, length, MarkKind::Twin, text);
        let seed = self.chance.bits();
        let settings = self.scenario.servers;
        // No master of the node ever has such a term.
        let term = TWINS + self.work.events;
        let place = &mut self.places[number];
        if place.slots.len() > 1 || place.parent.is_none() {
            return;
        }
        let local = place.clock.shows(self.now);
        let mut server = ServerProcess::new(place, 0, seed, settings, Templates::default());
        server.is_twin = true;
        server.leads = true;
        server.id.term = term;
        server.replica.handle_alone(None, local);
        server.masterships = server.replica.masterships();
        let id = server.id;
        place.servers.push(server);
        for client in self.clients.iter_mut() {
            if client.place == number && self.fault_rng.happens(CONNECTED) {
                client.connected = Some(id.term);
            }
        }
        self.drive(id);
        self.act(until, move |world| world.end_server(id));
    }

    fn twin_clients(&mut self, choice: &ClientChoice, length: Span) {
        let until = self.end_of(length);
        let chosen = self.choose_clients(choice);
        let text = format!("a second process of {} runs", self.names_of(&chosen));
        self.mark(Some(until), MarkKind::Twin, text);
        let copies = chosen.into_iter().filter_map(|it| self.copy_client(it));
        let twins: Vec<u32> = copies.collect();
        twins.iter().for_each(|twin| self.start_client(*twin));
        self.act(until, move |world| world.end_twin_clients(&twins));
    }

    /// Creates a second process of a client, with the present wants of the first.
    fn copy_client(&mut self, number: u32) -> Option<u32> {
        let twin = self.clients.len();
        let first = Some(&self.clients[number]).filter(|it| !it.is_twin)?;
        let copy = |(which, it): (u32, &Use<'a>)| {
            let account = self.watched[it.resource].join(it.usage.priority, first.place);
            let chance = chance_of(&self.chance, twin, which);
            let player = DemandPlayer::new(0, chance);
            let mut copy = Use::new(it.usage, it.resource, account, player);
            copy.fixed = Some(it.load());
            copy.closed_until = it.closed_until;
            copy
        };
        let uses = first.uses.enumerate().map(copy).collect();
        let (finder, name) = (first.finder.clone(), first.name.clone());
        let second = ClientProcess::new(first.group, first.place, uses, finder, name);
        self.clients.push(ClientProcess {
            clock: first.clock,
            is_due: true,
            is_twin: true,
            ..second
        });
        self.wakes.push(None);
        Some(twin)
    }

    pub(super) fn end_twin_clients(&mut self, clients: &[u32]) {
        for number in clients {
            self.clients[*number].is_due = false;
            self.crash_client(*number, self.end);
            for it in self.clients[*number].uses.iter() {
                self.watched[it.resource].note_ended(it.account);
            }
        }
    }

    /// Ends all second processes.
    pub(super) fn end_twins(&mut self) {
        let servers = self.places.iter().flat_map(|place| &place.servers);
        let twins = servers.filter(|server| server.is_twin);
        let servers: Vec<ServerId> = twins.map(|server| server.id).collect();
        servers.into_iter().for_each(|id| self.end_server(id));
        let twins = self.clients.enumerate().filter(|(_, it)| it.is_twin);
        let twins: Vec<u32> = twins.map(|(number, _)| number).collect();
        self.end_twin_clients(&twins);
    }
}
