//! Faults of a scenario, and the end of their effects.

mod addresses;
mod down;
mod etcd;
mod twin;

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node::reload::PreparedTemplates;
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;

use crate::local_clock::LocalClock;
use crate::recording::MarkKind;
use crate::scenario::fault::{ClientChoice, ClockChoice, Event, NodeChoice, Side, Span, When};
use crate::world::{CLIENT_TIMEOUT, ClientProcess, ServerId, Use, World};

impl World<'_> {
    /// Schedules the next time of a fault, after the one at `last`.
    pub(super) fn schedule_fault(&mut self, number: u32, when: &When, last: Option<Duration>) {
        let next = match *when {
            When::At { at } if last.is_none() => at.0,
            When::At { .. } => return,
            When::Every { every, from, .. } => match last {
                Some(last) => last + every.0,
                None => from.map_or(every.0, |from| from.0),
            },
            When::PerHour { per_hour, from, .. } => {
                let seconds = self.fault_rng.exponential(3600.0 / per_hour.0);
                last.unwrap_or(from.0) + Duration::from_secs_f64(seconds.min(1e9))
            }
        };
        let at = Time::ZERO + next;
        self.act(at, move |world| world.play_fault(number));
    }

    /// Ends all faults: stopped processes start, and frozen ones continue.
    pub(super) fn heal(&mut self) {
        self.is_healed = true;
        self.elections = self.scenario.servers.election;
        let now = self.now;
        for mark in &mut self.recording.marks {
            let at_s = now.since(Time::ZERO).as_secs_f64();
            mark.until_s = mark.until_s.map(|until| until.min(at_s));
        }
        self.mark(None, MarkKind::Heal, "all faults end".to_owned());
        for number in self.places.numbers() {
            let place = &mut self.places[number];
            place.cut_above_until = place.cut_above_until.min(now);
            place.cut_below_until = place.cut_below_until.min(now);
            place.redirect_loop_until = place.redirect_loop_until.min(now);
            place.stale_until = place.stale_until.min(now);
            for server in &mut place.servers {
                server.frozen_until = server.frozen_until.map(|until| until.min(now));
            }
            for slot in place.slots.iter_mut() {
                slot.down_until = slot.down_until.min(now);
                let way = &mut slot.way;
                way.there_cut_until = way.there_cut_until.min(now);
                way.back_cut_until = way.back_cut_until.min(now);
                way.bad_until = way.bad_until.min(now);
            }
            place.unable_until = place.unable_until.min(now);
            for slot in self.places[number].slots.numbers() {
                self.start_server(number, slot);
            }
            self.report_able(number);
            self.publish_all(number);
            self.plan(number);
        }
        self.heal_etcd();
        self.end_twins();
        for client in self.clients.numbers() {
            let process = &mut self.clients[client];
            process.down_until = process.down_until.min(now);
            self.start_client(client);
            self.cancel_parting(client);
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
        let until = match fault.when {
            When::At { .. } => None,
            When::Every { until, .. } | When::PerHour { until, .. } => until,
        };
        if until.is_some_and(|until| now > until.0) {
            return;
        }
        self.schedule_fault(number, &fault.when, Some(now));
        let total: f64 = fault.choices.iter().map(|(weight, _)| weight).sum();
        let mut drawn = self.fault_rng.uniform() * total;
        for (weight, event) in &fault.choices {
            drawn -= weight;
            if drawn < 0.0 {
                return self.play_event(event);
            }
        }
    }

    fn play_event(&mut self, event: &Event) {
        match event {
            Event::Kill { kill, length } => self.kill(kill, *length),
            Event::Restart { restart, length } => self.restart(restart, *length),
            Event::Stop { stop, length } => self.stop(stop, *length),
            Event::Elect { elect } => self.elect(elect),
            Event::Depose { depose } => self.depose(depose),
            Event::Freeze { freeze, length } => self.freeze(freeze, *length),
            Event::Isolate {
                isolate,
                servers,
                way,
                length,
            } => self.isolate(isolate, *servers, *way, *length),
            Event::EtcdLink {
                etcd_link,
                loss,
                late,
                length,
            } => self.degrade_etcd(etcd_link, loss.0, *late, *length),
            Event::RedirectLoop {
                redirect_loop,
                length,
            } => self.loop_redirects(redirect_loop, *length),
            Event::StaleAddresses {
                stale_addresses,
                length,
            } => self.publish_stale_addresses(stale_addresses, *length),
            Event::Partition {
                partition,
                side,
                length,
            } => self.partition(partition, *side, *length),
            Event::Etcd { back, length, .. } => self.lose_etcd(*back, *length),
            Event::Elections { elections, length } => self.change_elections(*elections, *length),
            Event::Drift { drift, speed } => {
                let text = format!("runs at {}", speed.0);
                self.change_clock(drift, &text, |clock, now| clock.run_at(speed.0, now));
            }
            Event::Jump { jump, by } => {
                let text = format!("jumps by {:?}", by.0);
                self.change_clock(jump, &text, |clock, now| clock.jump(by.0, now));
            }
            Event::Edit { templates, .. } => self.edit(templates),
            Event::Crash { crash, length } => self.crash(crash, *length),
            Event::Twin { twin, length } => self.twin(twin, *length),
            Event::Leave { leave, length } => self.clients_leave(leave, *length),
            Event::Close {
                close,
                resource,
                length,
            } => self.close(close, resource.as_deref(), *length),
            Event::Surge {
                surge,
                by,
                resource,
            } => {
                let what = format!("wants {} more", by.0);
                self.demand(surge, resource.as_deref(), &what, |it| it.extra += by.0);
            }
            Event::Demand {
                demand,
                wants,
                resource,
            } => {
                let what = format!("wants {}", wants.0);
                let fix = |it: &mut Use<'_>| it.fixed = Some(wants.0);
                self.demand(demand, resource.as_deref(), &what, fix);
            }
        }
    }

    /// Changes the demand of clients for a resource; without one, for the first that they use.
    fn demand(
        &mut self,
        clients: &ClientChoice,
        resource: Option<&str>,
        what: &str,
        change: impl Fn(&mut Use<'_>),
    ) {
        let chosen = self.choose_clients(clients);
        let text = format!("{} {what}", self.names_of(&chosen));
        self.mark(None, MarkKind::Demand, text);
        for client in chosen {
            if let Some(which) = self.which_of(client, resource) {
                let it = &mut self.clients[client].uses[which];
                change(it);
                let load = it.load();
                if let Some(work) = it.work.as_mut().filter(|_| self.is_healed) {
                    work.measured = load;
                }
            }
            self.update_wants(client);
        }
    }

    /// Returns the index of a resource among those that a client uses; without one, the first.
    pub(crate) fn which_of(&self, client: u32, resource: Option<&str>) -> Option<u32> {
        let is_meant = |it: &Use<'_>| resource.is_none_or(|id| it.id() == id);
        let mut uses = self.clients[client].uses.enumerate();
        let found = uses.find(|(_, it)| is_meant(it));
        found.map(|(which, _)| which)
    }

    /// Draws the end of a fault that begins now.
    pub(crate) fn end_of(&mut self, Span(least, most): Span) -> Time {
        self.now + self.fault_rng.duration(least, most)
    }

    /// Draws the end of a fault that may last for the rest of the run.
    pub(crate) fn end_if_any(&mut self, length: Option<Span>) -> Option<Time> {
        length.map(|length| self.end_of(length))
    }

    /// Chooses a node for a fault that lasts, marks the fault, and returns its end.
    fn begin_at(
        &mut self,
        node: &NodeChoice,
        length: Span,
        kind: MarkKind,
        text: impl FnOnce(&str) -> String,
    ) -> (u32, Time) {
        let number = self.choose(node);
        let until = self.end_of(length);
        let text = text(&self.places[number].name);
        self.mark(Some(until), kind, text);
        (number, until)
    }

    fn change_elections(&mut self, take: Span, length: Option<Span>) {
        let until = self.end_if_any(length);
        let text = match take {
            Span(least, most) if least == most => format!("elections take {least:?}"),
            Span(least, most) => format!("elections take {least:?} to {most:?}"),
        };
        self.mark(until, MarkKind::Election, text);
        self.elections = take;
        self.election_changes += 1;
        if let Some(until) = until {
            let change = self.election_changes;
            self.act(until, move |world| {
                if world.election_changes == change {
                    world.elections = world.scenario.servers.election;
                }
            });
        }
    }

    fn partition(&mut self, node: &NodeChoice, from: Side, length: Span) {
        let whom = match from {
            Side::Parent => "its parent",
            Side::Below => "all below it",
            Side::All => "all others",
        };
        let text = |name: &str| format!("{name} is cut off from {whom}");
        let (number, until) = self.begin_at(node, length, MarkKind::Partition, text);
        let place = &mut self.places[number];
        if matches!(from, Side::Parent | Side::All) {
            place.cut_above_until = place.cut_above_until.max(until);
        }
        if matches!(from, Side::Below | Side::All) {
            place.cut_below_until = place.cut_below_until.max(until);
        }
    }

    fn change_clock(&mut self, of: &ClockChoice, what: &str, set: impl Fn(&mut LocalClock, Time)) {
        let now = self.now;
        match of {
            ClockChoice::Node(node) => {
                let number = self.choose(node);
                let text = format!("the clock of {} {what}", self.places[number].name);
                self.mark(None, MarkKind::Clock, text);
                let place = &mut self.places[number];
                set(&mut place.clock, now);
                place.wake_at = None;
                // The checkers judge by the root's clock how long leases may last.
                let clock = place.clock;
                for watched in self.watched.iter_mut().filter(|_| number == 0) {
                    watched.note_clock(clock, now);
                }
                self.plan(number);
            }
            ClockChoice::Clients(clients) => {
                let chosen = self.choose_clients(clients);
                let text = format!("the clock of {} {what}", self.names_of(&chosen));
                self.mark(None, MarkKind::Clock, text);
                for client in chosen {
                    set(&mut self.clients[client].clock, now);
                    self.update_wants(client);
                }
            }
        }
    }

    /// Lets the operator write templates: which servers read them, and when.
    fn edit(&mut self, templates: &Templates) {
        let now = self.now;
        let before = std::mem::replace(&mut self.templates, templates.clone());
        self.templates_before.push(before);
        let mut said = Vec::new();
        for watched in self.watched.iter_mut() {
            let template = templates.find(&watched.resource).map(Arc::clone);
            let capacity = template.as_ref().map_or(0.0, |it| it.capacity.get());
            said.push(format!("{} has {capacity}", watched.resource));
            watched.note_template(template.as_deref(), now);
        }
        self.settle_later();
        let text = format!("the templates are edited: {}", said.join(", "));
        self.mark(None, MarkKind::Edit, text);
        let servers = self.places[0].servers.iter();
        let servers: Vec<ServerId> = servers.map(|server| server.id).collect();
        for id in servers {
            let templates = templates.clone();
            self.handle_news(id, move |world| {
                world.input(id, |replica, now| {
                    let active = replica.node().active_templates();
                    replica.handle_templates(PreparedTemplates::new(active, templates), now);
                });
            });
        }
    }

    fn crash(&mut self, clients: &ClientChoice, length: Option<Span>) {
        let (chosen, until) = self.begin_for(clients, length, MarkKind::Crash, "crashes");
        chosen.iter().for_each(|it| self.crash_client(*it, until));
        self.act(until, move |world| {
            chosen.into_iter().for_each(|it| world.start_client(it));
        });
    }

    /// Chooses clients for a fault, marks the fault, and returns its end: after the end of the run
    /// without a length.
    pub(crate) fn begin_for(
        &mut self,
        clients: &ClientChoice,
        length: Option<Span>,
        kind: MarkKind,
        what: &str,
    ) -> (Vec<u32>, Time) {
        let chosen = self.choose_clients(clients);
        let until = self.end_if_any(length);
        let text = format!("{} {what}", self.names_of(&chosen));
        self.mark(until, kind, text);
        (chosen, until.unwrap_or(self.end + CLIENT_TIMEOUT))
    }

    /// Chooses a node, at random where the scenario leaves a choice.
    fn choose(&mut self, choice: &NodeChoice) -> u32 {
        let nodes = &self.scenario.nodes;
        let place = choice.only(nodes).or_else(|| {
            let places = choice.places(nodes).unwrap_or_default();
            places.get(self.fault_rng.below(places.len())).copied()
        });
        place.unwrap_or_default() as u32
    }

    /// Chooses distinct clients at random, of the given groups and nodes; consecutive ones if it takes more than half.
    pub(crate) fn choose_clients(&mut self, choice: &ClientChoice) -> Vec<u32> {
        let scenario = self.scenario;
        let places = choice.places(&scenario.nodes).unwrap_or_default();
        let is_meant = |client: &ClientProcess<'_>| {
            let group = scenario.clients.get(client.group as usize);
            let place = client.place as usize;
            group.is_some_and(|group| choice.is_of(group))
                && places.as_ref().is_none_or(|places| places.contains(&place))
        };
        let meant = self.clients.enumerate().filter(|(_, it)| is_meant(it));
        let meant: Vec<u32> = meant.map(|(number, _)| number).collect();
        let (all, many) = (meant.len(), choice.clients.min(meant.len()));
        let mut chosen: Vec<u32> = Vec::with_capacity(many);
        if many * 2 > all {
            let first = self.fault_rng.below(all);
            chosen.extend(meant.iter().cycle().skip(first).take(many));
        }
        while chosen.len() < many {
            let client = meant.get(self.fault_rng.below(all)).copied();
            chosen.extend(client.filter(|it| !chosen.contains(it)));
        }
        chosen
    }

    pub(crate) fn names_of(&self, clients: &[u32]) -> String {
        match clients {
            [] => "no client".to_owned(),
            [only] => self.clients[*only].name.to_string(),
            many => format!("each of {} clients", many.len()),
        }
    }
}
