//! What goes wrong, and when it is over.

mod addresses;
mod choice;
mod down;
mod edit;
mod etcd;
mod silent;
mod twin;

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::time::Time;

use crate::recording::MarkKind;
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, Side, Span, When};
use crate::world::World;
use crate::world::agenda::What;
use crate::world::message::ServerId;
use crate::world::uses::Use;

/// Something that a fault began, and that ends.
#[derive(Clone, Debug)]
pub(super) enum FaultEnd {
    /// A server that is down starts again, if nothing else keeps it down.
    Start { place: u32, slot: u32 },
    /// The candidates of a place are able to be the master again.
    Able { place: u32 },
    /// Whoever looks for the servers of a place finds all again, unless it is to take longer by now.
    Addresses { place: u32 },
    /// etcd is again what it was then, or nothing.
    EtcdBack { then: Option<Time> },
    /// Clients start again.
    Restart { clients: Vec<u32> },
    /// Clients use a resource again.
    Reopen { clients: Vec<(u32, usize)> },
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
    pub(super) fn schedule_faults(&mut self) {
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
        let seconds = self.fault_rng.exponential(3600.0 / per_hour);
        Duration::from_secs_f64(seconds.min(1e9))
    }

    /// From now on nothing goes wrong: what is down comes back, and what hangs goes on.
    pub(super) fn heal(&mut self) {
        self.is_healed = true;
        self.elections.take = self.scenario.servers.election;
        let now = self.now;
        self.end_marks();
        self.mark(
            None,
            MarkKind::Heal,
            "from now on nothing goes wrong".to_owned(),
        );
        for number in 0..self.places.len() as u32 {
            let Some(place) = self.place(number) else {
                continue;
            };
            place.cut_above_until = place.cut_above_until.min(now);
            place.cut_below_until = place.cut_below_until.min(now);
            place.circles_until = place.circles_until.min(now);
            place.stale_until = place.stale_until.min(now);
            for server in &mut place.servers {
                server.frozen_until = server.frozen_until.map(|until| until.min(now));
            }
            for slot in &mut place.slots {
                slot.down_until = slot.down_until.min(now);
                slot.way.mend(now);
            }
            place.unable_until = place.unable_until.min(now);
            let slots = place.slots.len();
            for slot in 0..slots as u32 {
                self.start_server(number, slot);
            }
            self.tell_able(number);
            self.publish_all(number);
            self.plan(number);
        }
        self.heal_etcd();
        self.end_twins();
        for client in 0..self.clients.len() as u32 {
            if let Some(client) = self.clients.get_mut(client as usize) {
                client.down_until = client.down_until.min(now);
            }
            self.start_client(client);
            self.stay(client);
        }
    }

    /// What was to last longer is over.
    fn end_marks(&mut self) {
        let now = self.now.since(Time::ZERO).as_secs_f64();
        for mark in &mut self.recording.marks {
            mark.until_s = mark.until_s.map(|until| until.min(now));
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
        let mut drawn = self.fault_rng.uniform() * total;
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
            Event::Kill { node, .. }
            | Event::Restart { node, .. }
            | Event::Stop { node, .. }
            | Event::Elect { node }
            | Event::Depose { node }
            | Event::Freeze { node, .. }
            | Event::Isolate { node, .. }
            | Event::EtcdLink { node, .. }
            | Event::RedirectLoop { node, .. }
            | Event::StaleAddresses { node, .. }
            | Event::Partition { node, .. } => {
                let place = self.choose(node);
                self.happen_at(place, event);
            }
            Event::Etcd { back, length } => self.lose_etcd(*back, *length),
            Event::Elections { take, length } => self.change_elections(*take, *length),
            Event::Drift { clock, speed } => self.drift(clock, *speed),
            Event::Jump { clock, by } => self.jump(clock, *by),
            Event::Edit { templates } => self.edit(templates),
            Event::Crash { clients, length } => self.crash(clients, *length),
            Event::Twin { of, length } => self.twin(of, *length),
            Event::Leave { clients, length } => self.clients_leave(clients, *length),
            Event::Close {
                clients,
                resource,
                length,
            } => self.clients_close(clients, resource.as_ref(), *length),
            Event::Surge {
                clients,
                by,
                resource,
            } => {
                let what = format!("wants {by} more");
                self.demand(clients, resource.as_ref(), &what, |it| it.extra += by);
            }
            Event::Demand {
                clients,
                wants,
                resource,
            } => {
                let what = format!("wants {wants}");
                self.demand(clients, resource.as_ref(), &what, |it| {
                    it.fixed = Some(*wants)
                });
            }
        }
    }

    /// What happens to a node.
    fn happen_at(&mut self, place: u32, event: &Event) {
        match event {
            Event::Kill { length, .. } => {
                self.kill(place, *length);
            }
            Event::Restart { length, .. } => {
                self.restart(place, *length);
            }
            Event::Stop { length, .. } => {
                self.stop(place, *length);
            }
            Event::Elect { .. } => {
                let text = format!("{} holds an election", self.name_of(place));
                self.mark(None, MarkKind::Elect, text);
                self.hand_over(place);
            }
            Event::Depose { .. } => {
                self.depose(place);
            }
            Event::Freeze { length, .. } => {
                self.freeze(place, *length);
            }
            Event::Isolate {
                servers,
                way,
                length,
                ..
            } => {
                self.isolate(place, *servers, *way, *length);
            }
            Event::EtcdLink {
                loss, late, length, ..
            } => {
                self.disturb_etcd(place, *loss, *late, *length);
            }
            Event::RedirectLoop { length, .. } => {
                self.send_in_circles(place, *length);
            }
            Event::StaleAddresses { length, .. } => {
                self.tell_of_few(place, *length);
            }
            Event::Partition { from, length, .. } => {
                self.partition(place, *from, *length);
            }
            _ => {}
        }
    }

    /// Clients want something else of a resource; of the first that they use, if none is said.
    fn demand(
        &mut self,
        clients: &ClientChoice,
        resource: Option<&ResourceId>,
        what: &str,
        change: impl Fn(&mut Use),
    ) {
        let chosen = self.choose_clients(clients);
        let text = format!("{} {what}", self.names_of(&chosen));
        self.mark(None, MarkKind::Demand, text);
        for client in chosen {
            let which = self.which_of(client, resource);
            let known = self.clients.get_mut(client as usize);
            let it = known.and_then(|known| known.uses.get_mut(which?));
            if let Some(it) = it {
                change(it);
                let load = it.load();
                if let Some(work) = it.work.as_mut().filter(|_| self.is_healed) {
                    work.fix(load);
                }
            }
            self.wish(client);
        }
    }

    /// Which of those that a client uses is that resource; the first, if none is said.
    pub(in crate::world) fn which_of(
        &self,
        client: u32,
        resource: Option<&ResourceId>,
    ) -> Option<usize> {
        let Some(resource) = resource else {
            return Some(0);
        };
        let client = self.clients.get(client as usize)?;
        let group = self.scenario.clients.get(client.group as usize)?;
        group.usages().position(|usage| usage.resource == *resource)
    }

    fn change_elections(&mut self, take: Span, length: Option<Span>) {
        let until = length.map(|(least, most)| self.now + self.fault_rng.duration(least, most));
        let text = if take.0 == take.1 {
            format!("elections take {:?}", take.0)
        } else {
            format!("elections take {:?} to {:?}", take.0, take.1)
        };
        self.mark(until, MarkKind::Election, text);
        self.elections.take = take;
        self.elections.changes += 1;
        let change = self.elections.changes;
        if let Some(until) = until {
            self.end_with(until, FaultEnd::Elections { change });
        }
    }

    fn partition(&mut self, number: u32, from: Side, length: Span) {
        let until = self.now + self.fault_rng.duration(length.0, length.1);
        let whom = match from {
            Side::Parent => "its parent",
            Side::Below => "all below it",
            Side::All => "everybody",
        };
        let text = format!("{} is cut off from {whom}", self.name_of(number));
        self.mark(Some(until), MarkKind::Partition, text);
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
                self.mark(None, MarkKind::Clock, text);
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
                self.mark(None, MarkKind::Clock, text);
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
                self.mark(None, MarkKind::Clock, text);
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
                self.mark(None, MarkKind::Clock, text);
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

    fn crash(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let chosen = self.choose_clients(clients);
        let until = length.map(|(least, most)| self.now + self.fault_rng.duration(least, most));
        let text = format!("{} crashes", self.names_of(&chosen));
        self.mark(until, MarkKind::Crash, text);
        // For ever is longer than the simulation.
        let down_until = until.unwrap_or(self.end + Duration::from_secs(1));
        for client in &chosen {
            self.crash_client(*client, down_until);
        }
        if let Some(until) = until {
            self.end_with(until, FaultEnd::Restart { clients: chosen });
        }
    }

    pub(in crate::world) fn end_with(&mut self, at: Time, ending: FaultEnd) {
        self.endings.push(Some(ending));
        let number = (self.endings.len() - 1) as u32;
        self.events.put(at, What::Ending(number));
    }

    pub(super) fn play_ending(&mut self, number: u32) {
        let ending = self.endings.get_mut(number as usize).and_then(Option::take);
        match ending {
            Some(FaultEnd::Start { place, slot }) => self.start_server(place, slot),
            Some(FaultEnd::Able { place }) => self.tell_able(place),
            Some(FaultEnd::Addresses { place }) => self.publish_all(place),
            Some(FaultEnd::EtcdBack { then }) => self.set_etcd_back(then),
            Some(FaultEnd::Restart { clients }) => {
                for client in clients {
                    self.start_client(client);
                }
            }
            Some(FaultEnd::Reopen { clients }) => {
                for (client, which) in clients {
                    self.reopen(client, which);
                }
            }
            Some(FaultEnd::Twin { server, clients }) => self.end_twin(server, &clients),
            Some(FaultEnd::Silent { above, streams }) => self.note_gone(above, &streams),
            Some(FaultEnd::Elections { change }) if self.elections.changes == change => {
                self.elections.take = self.scenario.servers.election;
            }
            Some(FaultEnd::Elections { .. }) | None => {}
        }
    }
}
