//! Second processes under the name of a running one: of a node without an election, or of a client.
//! They stand for a process started by mistake, or for a replacement that did not wait.

use doorward_engine::node::mastership::Mastership;
use doorward_engine::template::Templates;

use crate::recording::MarkKind;
use crate::scenario::demand::demand_player::DemandPlayer;
use crate::scenario::fault::{ClientChoice, ClockChoice, Span};
use crate::world::faults::FaultEnd;
use crate::world::message::ServerId;
use crate::world::place::ServerProcess;
use crate::world::uses::{Use, chance_of};
use crate::world::{ClientProcess, World};

/// Part of a node's clients that connect to its second process.
const CONNECTED: f64 = 0.5;

/// First term of second processes.
const TWINS: u64 = 1 << 63;

impl World<'_> {
    pub(super) fn twin(&mut self, of: &ClockChoice, length: Span) {
        match of {
            ClockChoice::Node(node) => {
                let place = self.choose(node);
                self.twin_node(place, length);
            }
            ClockChoice::Clients(clients) => self.twin_clients(clients, length),
        }
    }

    fn twin_node(&mut self, number: u32, length: Span) {
        let now = self.now;
        let until = now + self.fault_rng.duration(length.0, length.1);
        let text = format!("a second process of {} runs", self.name_of(number));
        self.mark(Some(until), MarkKind::Twin, text);
        let seed = self.chance.bits();
        let settings = self.scenario.servers;
        // No master of the node ever has such a term.
        let term = TWINS + self.endings.len() as u64;
        let alone = |place: &&mut crate::world::Place| place.slots.len() == 1;
        let Some(place) = self.place(number).filter(alone) else {
            return;
        };
        if place.parent.is_none() {
            return;
        }
        let local = place.clock.shows(now);
        let mut server = ServerProcess::new(place, 0, seed, settings, Templates::default());
        server.is_twin = true;
        server.leads = true;
        server.term = term;
        let alone = Mastership::Master { epoch: None };
        server.node.handle_mastership(alone, local);
        let id = ServerId {
            place: number,
            term: server.term,
        };
        place.servers.push(server);
        for client in &mut self.clients {
            if client.place == number && self.fault_rng.happens(CONNECTED) {
                client.connected = Some(id.term);
            }
        }
        self.drive_parent_link(id);
        self.plan(number);
        let ending = FaultEnd::Twin {
            server: Some(id),
            clients: Vec::new(),
        };
        self.end_with(until, ending);
    }

    fn twin_clients(&mut self, choice: &ClientChoice, length: Span) {
        let now = self.now;
        let until = now + self.fault_rng.duration(length.0, length.1);
        let chosen = self.choose_clients(choice);
        let text = format!("a second process of {} runs", self.names_of(&chosen));
        self.mark(Some(until), MarkKind::Twin, text);
        let mut twins = Vec::new();
        for number in chosen {
            twins.extend(self.copy_client(number));
        }
        for twin in &twins {
            self.start_client(*twin);
        }
        let ending = FaultEnd::Twin {
            server: None,
            clients: twins,
        };
        self.end_with(until, ending);
    }

    /// Creates a second process of a client, with the present wants of the first.
    fn copy_client(&mut self, number: u32) -> Option<u32> {
        let twin = self.clients.len() as u32;
        let first = self.clients.get(number as usize).filter(|it| !it.is_twin)?;
        let group = self.scenario.clients.get(first.group as usize)?;
        let mut uses = Vec::new();
        for (which, (it, usage)) in first.uses.iter().zip(group.usages()).enumerate() {
            let watched = self.watched.get_mut(it.resource as usize)?;
            let account = watched.join(usage.priority, first.place) as u32;
            let chance = chance_of(&self.chance, twin, which);
            let mut copy = Use::new(it.resource, account, DemandPlayer::new(0, chance));
            copy.fixed = Some(it.load());
            copy.closed_until = it.closed_until;
            uses.push(copy);
        }
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

    /// Ends second processes.
    pub(super) fn end_twin(&mut self, server: Option<ServerId>, clients: &[u32]) {
        if let Some(id) = server {
            self.end_twin_server(id);
        }
        for number in clients {
            if let Some(client) = self.clients.get_mut(*number as usize) {
                client.is_due = false;
            }
            self.crash_client(*number, self.end);
            let uses = self.clients.get(*number as usize).map(|it| &it.uses);
            for it in uses.into_iter().flatten() {
                if let Some(watched) = self.watched.get_mut(it.resource as usize) {
                    watched.note_ended(it.account as usize);
                }
            }
        }
    }

    fn end_twin_server(&mut self, id: ServerId) {
        if self.server_of(id).is_none() {
            return;
        }
        self.drop_parent_link(id);
        let Some(gone) = self.place(id.place).and_then(|place| place.remove(id.term)) else {
            return;
        };
        for waiting in gone.waiting {
            self.refuse_connection(waiting.client, id.place, waiting.sequence());
        }
    }

    /// Ends all second processes.
    pub(super) fn end_twins(&mut self) {
        let mut servers = Vec::new();
        for (place, known) in (0..).zip(&self.places) {
            let twins = known.servers.iter().filter(|server| server.is_twin);
            let terms = twins.map(|server| server.term);
            servers.extend(terms.map(|term| ServerId { place, term }));
        }
        for id in servers {
            self.end_twin_server(id);
        }
        let clients = self.clients.iter().enumerate();
        let twins = clients.filter(|(_, client)| client.is_twin);
        let twins: Vec<u32> = twins.map(|(number, _)| number as u32).collect();
        self.end_twin(None, &twins);
    }
}
