//! What goes wrong, and when it is over.

mod choice;
mod etcd;
mod term;
mod twin;

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::template::Templates;
use doorward_engine::time::Time;

use crate::scenario::fault::{ClientChoice, ClockChoice, Event, Side, Span, When};
use crate::world::World;
use crate::world::event::What;
use crate::world::message::ServerId;

/// Something that a fault began, and that ends.
#[derive(Clone, Debug)]
pub(super) enum Ending {
    /// A place has a master again, unless it has had another one since.
    Election { place: u32, after: u64 },
    /// A server that is frozen or cut off from the election is succeeded, unless that was over before.
    Succession { server: ServerId, ends: Time },
    /// Clients start again.
    Restart { clients: Vec<u32> },
    /// A second process of a node, or of clients, ends.
    Twin {
        server: Option<ServerId>,
        clients: Vec<u32>,
    },
    /// A server notices that streams from below are gone.
    Silent { above: ServerId, streams: Vec<u64> },
    /// Elections take as long as the scenario says, unless they were changed again since.
    Elections { change: u32 },
}

/// How long elections take at present.
#[derive(Clone, Copy, Debug)]
pub(super) struct Elections {
    pub(super) take: Span,
    /// How often that was changed.
    pub(super) changes: u32,
}

impl World<'_> {
    /// All faults of the scenario are to happen.
    pub(super) fn foresee(&mut self) {
        for (number, fault) in self.scenario.faults.iter().enumerate() {
            let first = match fault.when {
                When::At(at) => Some(at),
                When::Every { from, .. } => Some(from),
                When::Random { per_hour, from, .. } => {
                    (per_hour > 0.0).then(|| from + self.some_time(per_hour))
                }
            };
            if let Some(first) = first {
                self.events
                    .put(Time::ZERO + first, What::Fault(number as u32));
            }
        }
    }

    fn some_time(&mut self, per_hour: f64) -> Duration {
        let seconds = self.mishaps.exponential(3600.0 / per_hour);
        Duration::from_secs_f64(seconds.min(1e9))
    }

    /// From now on nothing goes wrong: what is down comes back, and what hangs goes on.
    pub(super) fn heal(&mut self) {
        self.is_healed = true;
        self.elections.take = self.scenario.servers.election;
        let now = self.now;
        self.mark(None, "heal", "from now on nothing goes wrong".to_owned());
        for number in 0..self.places.len() as u32 {
            let Some(place) = self.place(number) else {
                continue;
            };
            place.cut_above_until = place.cut_above_until.min(now);
            place.cut_below_until = place.cut_below_until.min(now);
            let all = place.master.iter_mut().map(Box::as_mut);
            for server in all.chain(place.succeeded.iter_mut()) {
                server.frozen_until = server.frozen_until.map(|until| until.min(now));
                server.isolated_until = server.isolated_until.map(|until| until.min(now));
            }
            place.vacant_until = now;
            place.seats.heal(now);
            if place.master.is_none() {
                self.elect(number);
            }
            self.plan(number);
        }
        self.end_twins();
        for client in 0..self.clients.len() as u32 {
            if let Some(client) = self.clients.get_mut(client as usize) {
                client.down_until = client.down_until.min(now);
            }
            self.start_client(client);
        }
    }

    pub(super) fn play_fault(&mut self, number: u32) {
        let scenario = self.scenario;
        let Some(fault) = scenario.faults.get(number as usize) else {
            return;
        };
        let is_wish =
            |(_, event): &(f64, Event)| matches!(event, Event::Surge { .. } | Event::Demand { .. });
        if self.is_healed && !fault.choices.iter().all(is_wish) {
            return;
        }
        let now = self.now.since(Time::ZERO);
        let (next, until) = match fault.when {
            When::At(_) => (None, None),
            When::Every {
                interval, until, ..
            } => (Some(now + interval), until),
            When::Random {
                per_hour, until, ..
            } => (Some(now + self.some_time(per_hour)), until),
        };
        if until.is_some_and(|until| now > until) {
            return;
        }
        if let Some(next) = next {
            self.events.put(Time::ZERO + next, What::Fault(number));
        }
        let total: f64 = fault.choices.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.mishaps.uniform() * total;
        for (weight, event) in &fault.choices {
            drawn -= weight;
            if drawn < 0.0 {
                self.happen(event);
                return;
            }
        }
    }

    fn happen(&mut self, event: &Event) {
        match event {
            Event::Kill { node, length } => {
                let place = self.choose(node);
                self.kill(place, length.unwrap_or(self.elections.take));
            }
            Event::Restart { node, length } => {
                let place = self.choose(node);
                self.restart(place, *length);
            }
            Event::Stop { node, length } => {
                let place = self.choose(node);
                self.stop(place, *length);
            }
            Event::Etcd { back } => self.lose_etcd(*back),
            Event::Elections { take, length } => self.change_elections(*take, *length),
            Event::Elect { node } => {
                let place = self.choose(node);
                let text = format!("{} holds an election", self.name_of(place));
                self.mark(None, "elect", text);
                // Where there is no master, nobody hands over.
                if self.place(place).is_some_and(|it| it.master.is_some()) {
                    self.depose(place);
                    self.elect(place);
                }
            }
            Event::Freeze { node, length } => {
                let place = self.choose(node);
                self.freeze(place, *length);
            }
            Event::Isolate { node, length } => {
                let place = self.choose(node);
                self.isolate(place, *length);
            }
            Event::Partition { node, from, length } => {
                let place = self.choose(node);
                self.partition(place, *from, *length);
            }
            Event::Drift { clock, speed } => self.drift(clock, *speed),
            Event::Jump { clock, by } => self.jump(clock, *by),
            Event::Edit { templates } => self.edit(templates),
            Event::Crash { clients, length } => self.crash(clients, *length),
            Event::Twin { of, length } => self.twin(of, *length),
            Event::Surge { clients, by } => {
                let chosen = self.choose_clients(clients);
                let text = format!("{} wants {by} more", self.names_of(&chosen));
                self.mark(None, "demand", text);
                for client in chosen {
                    if let Some(known) = self.clients.get_mut(client as usize) {
                        known.extra += by;
                    }
                    self.wish(client);
                }
            }
            Event::Demand { clients, wants } => {
                let chosen = self.choose_clients(clients);
                let text = format!("{} wants {wants}", self.names_of(&chosen));
                self.mark(None, "demand", text);
                for client in chosen {
                    if let Some(known) = self.clients.get_mut(client as usize) {
                        known.fixed = Some(*wants);
                    }
                    self.wish(client);
                }
            }
        }
    }

    fn kill(&mut self, place: u32, length: Span) {
        let until = self.now + self.mishaps.duration(length.0, length.1);
        let text = format!("{} loses its master", self.name_of(place));
        self.mark(Some(until), "kill", text);
        self.vacate(place, until);
    }

    /// Its master is gone for that long, but nobody waits for it longer than for another one.
    fn restart(&mut self, number: u32, length: Span) {
        let (least, most) = self.elections.take;
        let mut lasts = self.mishaps.duration(length.0, length.1);
        let election = self.mishaps.duration(least, most);
        if self.place(number).is_some_and(|place| place.candidates > 1) {
            lasts = lasts.min(election);
        }
        let until = self.now + lasts;
        let text = format!("{}'s master restarts", self.name_of(number));
        self.mark(Some(until), "restart", text);
        // Where there is no master, none restarts.
        if self.place(number).is_none_or(|it| it.master.is_none()) {
            return;
        }
        self.vacate(number, until);
    }

    /// There is no master until then.
    fn vacate(&mut self, place: u32, until: Time) {
        self.note(5, place.into(), 0.0);
        let ttl = self.elections.take.0;
        let now = self.now;
        let seat = self.place(place).and_then(|known| known.master.as_ref());
        let seat = seat.map(|master| master.seat);
        self.depose(place);
        let Some(known) = self.place(place) else {
            return;
        };
        // Other candidates know when its term was over at the latest; a single server that is
        // started again knows nothing.
        known.vacant_since = (known.candidates > 1).then(|| known.clock.shows(now) + ttl);
        known.vacant_until = known.vacant_until.max(until);
        if let Some(seat) = seat {
            known.seats.note_down(seat, known.vacant_until);
        }
        let (after, until) = (known.terms, known.vacant_until);
        self.end_with(until, Ending::Election { place, after });
    }

    fn change_elections(&mut self, take: Span, length: Option<Span>) {
        let until = length.map(|(least, most)| self.now + self.mishaps.duration(least, most));
        let text = if take.0 == take.1 {
            format!("elections take {:?}", take.0)
        } else {
            format!("elections take {:?} to {:?}", take.0, take.1)
        };
        self.mark(until, "election", text);
        self.elections.take = take;
        self.elections.changes += 1;
        let change = self.elections.changes;
        if let Some(until) = until {
            self.end_with(until, Ending::Elections { change });
        }
    }

    fn partition(&mut self, number: u32, from: Side, length: Span) {
        let until = self.now + self.mishaps.duration(length.0, length.1);
        let whom = match from {
            Side::Parent => "its parent",
            Side::Below => "all below it",
            Side::All => "everybody",
        };
        let text = format!("{} is cut off from {whom}", self.name_of(number));
        self.mark(Some(until), "partition", text);
        let Some(place) = self.place(number) else {
            return;
        };
        if matches!(from, Side::Parent | Side::All) {
            place.cut_above_until = place.cut_above_until.max(until);
        }
        if matches!(from, Side::Below | Side::All) {
            place.cut_below_until = place.cut_below_until.max(until);
        }
    }

    fn drift(&mut self, whose: &ClockChoice, speed: f64) {
        let now = self.now;
        match whose {
            ClockChoice::Node(node) => {
                let number = self.choose(node);
                let text = format!("{}'s clock runs at {speed}", self.name_of(number));
                self.mark(None, "clock", text);
                if let Some(place) = self.place(number) {
                    place.clock.run_at(speed, now);
                    place.wake_at = None;
                }
                self.note_clock(number);
                self.plan(number);
            }
            ClockChoice::Clients(clients) => {
                let chosen = self.choose_clients(clients);
                let text = format!("the clock of {} runs at {speed}", self.names_of(&chosen));
                self.mark(None, "clock", text);
                for client in chosen {
                    if let Some(known) = self.clients.get_mut(client as usize) {
                        known.clock.run_at(speed, now);
                    }
                    self.wish(client);
                }
            }
        }
    }

    fn jump(&mut self, whose: &ClockChoice, by: Duration) {
        let now = self.now;
        match whose {
            ClockChoice::Node(node) => {
                let number = self.choose(node);
                let text = format!("{}'s clock jumps by {by:?}", self.name_of(number));
                self.mark(None, "clock", text);
                if let Some(place) = self.place(number) {
                    place.clock.jump(by, now);
                    place.wake_at = None;
                }
                self.note_clock(number);
                self.plan(number);
            }
            ClockChoice::Clients(clients) => {
                let chosen = self.choose_clients(clients);
                let text = format!("the clock of {} jumps by {by:?}", self.names_of(&chosen));
                self.mark(None, "clock", text);
                for client in chosen {
                    if let Some(known) = self.clients.get_mut(client as usize) {
                        known.clock.jump(by, now);
                    }
                    self.wish(client);
                }
            }
        }
    }

    /// The checkers go by the root's clock where it decides how long something may be out.
    fn note_clock(&mut self, number: u32) {
        let root = self.places.first().filter(|_| number == 0);
        if let Some(clock) = root.map(|root| root.clock) {
            for watched in &mut self.watched {
                watched.note_clock(clock, self.now);
            }
        }
    }

    fn edit(&mut self, templates: &Templates) {
        let now = self.now;
        self.templates = templates.clone();
        let mut said = Vec::new();
        for watched in &mut self.watched {
            let template = templates.find(&watched.resource).map(Arc::clone);
            let capacity = template.as_ref().map_or(0.0, |it| it.capacity.get());
            said.push(format!("{} has {capacity}", watched.resource));
            watched.note_template(template.as_deref(), now);
        }
        let restless = self
            .watched
            .iter()
            .any(crate::checker::Watched::is_restless);
        if restless && !self.is_settling {
            self.is_settling = true;
            self.events.put(now + super::sampling::SETTLE, What::Settle);
        }
        let text = format!("the templates are edited: {}", said.join(", "));
        self.mark(None, "edit", text);
        let Some(root) = self.place(0) else { return };
        let local = root.clock.shows(now);
        let Some(master) = &mut root.master else {
            return;
        };
        if master.is_frozen(now) || master.isolated_until.is_some() {
            master.unread = Some(templates.clone());
            // It grants by those before for as long as it takes itself for the master.
            let Some(ends) = master.term_ends else { return };
            let former = master.templates.clone();
            for watched in &mut self.watched {
                if let Some(former) = former.find(&watched.resource) {
                    watched.note_known_late(former, local.max(ends), now);
                }
            }
            return;
        }
        let term = master.term;
        root.go_by(templates.clone(), local);
        self.after(ServerId { place: 0, term });
    }

    fn crash(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let chosen = self.choose_clients(clients);
        let until = length.map(|(least, most)| self.now + self.mishaps.duration(least, most));
        let text = format!("{} crashes", self.names_of(&chosen));
        self.mark(until, "crash", text);
        // For ever is longer than the simulation.
        let down_until = until.unwrap_or(self.end + Duration::from_secs(1));
        for client in &chosen {
            self.crash_client(*client, down_until);
        }
        if let Some(until) = until {
            self.end_with(until, Ending::Restart { clients: chosen });
        }
    }

    pub(in crate::world) fn end_with(&mut self, at: Time, ending: Ending) {
        self.endings.push(Some(ending));
        let number = (self.endings.len() - 1) as u32;
        self.events.put(at, What::Ending(number));
    }

    pub(super) fn play_ending(&mut self, number: u32) {
        let ending = self.endings.get_mut(number as usize).and_then(Option::take);
        match ending {
            Some(Ending::Election { place, after }) => {
                let now = self.now;
                let is_vacant = self.place(place).is_some_and(|known| {
                    known.master.is_none() && known.terms == after && known.vacant_until <= now
                });
                if is_vacant {
                    self.elect(place);
                }
            }
            Some(Ending::Succession { server, ends }) => self.succeed(server, ends),
            Some(Ending::Restart { clients }) => {
                for client in clients {
                    self.start_client(client);
                }
            }
            Some(Ending::Twin { server, clients }) => self.end_twin(server, &clients),
            Some(Ending::Silent { above, streams }) => self.note_gone(above, &streams),
            Some(Ending::Elections { change }) if self.elections.changes == change => {
                self.elections.take = self.scenario.servers.election;
            }
            Some(Ending::Elections { .. }) | None => {}
        }
    }
}
