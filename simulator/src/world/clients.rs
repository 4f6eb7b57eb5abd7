//! Client processes around the production [`ClientState`].

use std::sync::Arc;

use doorward::in_process;
use doorward::state::{ClientConfig, ClientState, Request, Step, Streams};
use doorward_engine::messages::GetCapacity;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::time::Time;
use doorward_session::master_finder::MasterFinder;

use crate::scenario::{Connection, Demand};
use crate::world::uses::words;
use crate::world::work::LimiterWork;
use crate::world::{
    CLIENT_TIMEOUT, CallId, ClientProcess, ClientRequest, Deed, RequestResult, World, chance_of,
    in_flight,
};

impl World<'_> {
    /// Starts a client's process if its time has come and no fault keeps it down.
    pub(super) fn start_client(&mut self, number: u32) {
        let (now, gaps) = (self.now, self.scenario.client_gaps);
        let client = &self.clients[number];
        if client.state.is_some() || !client.is_due || client.down_until > now {
            return;
        }
        let sequence = self.wall_micros(&client.clock);
        let group = self.scenario.clients.get(client.group as usize);
        let streams = match group.map(|group| group.connection) {
            Some(Connection::Stream) => Streams::Always,
            Some(Connection::Poll) | None => Streams::Never,
        };
        let client = &mut self.clients[number];
        let local = client.clock.shows(now);
        let usual = ClientConfig::default();
        let config = ClientConfig {
            early_gap: gaps.early.map_or(usual.early_gap, |it| it.0),
            news_gap: gaps.news.map_or(usual.news_gap, |it| it.0),
            streams,
            ..usual
        };
        let mut state = ClientState::new(config, sequence);
        let begins = client.starts == 0;
        client.starts += 1;
        let starts = u64::from(client.starts);
        for (which, it) in (0..).zip(client.uses.iter_mut()) {
            if begins && let Some(next) = it.follow(now) {
                let wants = next.wants;
                let follow = move |world: &mut World<'_>| world.follow_curve(number, which, wants);
                self.events.put(Time::ZERO + next.at, Box::new(follow));
            }
            if let Some(limiter) = it.usage.limiter {
                let chance = chance_of(&self.chance, number, which).fork(starts);
                let limiter = LimiterWork::new(limiter, chance, &client.clock, now);
                it.work = Some(Box::new(limiter));
            }
            if it.closed_until <= now {
                state.open(it.id(), it.usage.priority, it.usage.mode, it.wants(), local);
            }
        }
        client.state = Some(state);
        client.connected = None;
        client.is_leaving = false;
        // It keeps its configured addresses and forgets the master.
        client.finder = MasterFinder::new(Arc::clone(client.finder.known()));
        self.report_wants(number);
        self.step_client(number);
    }

    /// Ends a client's process without notice, and keeps it down until then at least.
    pub(super) fn crash_client(&mut self, number: u32, until: Time) {
        let client = &mut self.clients[number];
        client.state = None;
        client.is_leaving = false;
        client.down_until = client.down_until.max(until);
        for it in client.uses.iter_mut() {
            it.crash(&client.clock);
        }
        let spent = client.uses.iter().flat_map(|it| &it.spent);
        for ends in spent.filter_map(|(_, ends)| *ends) {
            let publish = move |world: &mut World<'_>| world.publish(number);
            self.events.put(ends, Box::new(publish));
        }
        self.wakes[number] = None;
        self.report_wants(number);
        self.publish(number);
    }

    pub(super) fn wake_client(&mut self, number: u32) {
        // At any other time it was woken before and sleeps again.
        if self.wakes[number] == Some(self.now) {
            self.wakes[number] = None;
            self.step_client(number);
        }
    }

    /// Applies a change of a client's demand curve.
    pub(super) fn follow_curve(&mut self, number: u32, which: u32, wants: f64) {
        if self.is_healed {
            return;
        }
        let it = &mut self.clients[number].uses[which];
        it.curve = wants;
        if let Some(next) = it.follow(self.now) {
            self.act(Time::ZERO + next.at, move |world| {
                world.follow_curve(number, which, next.wants);
            });
        }
        self.update_wants(number);
    }

    /// Passes changed wants to the client state.
    pub(super) fn update_wants(&mut self, number: u32) {
        let client = &mut self.clients[number];
        if let Some(state) = &mut client.state {
            for it in client.uses.iter() {
                state.ask(it.id(), it.wants());
            }
            self.report_wants(number);
            self.step_client(number);
        }
    }

    /// Reports the wants of a client to the checkers at once. A client that is not running wants
    /// nothing, and it wants nothing of a resource that it does not use.
    pub(super) fn report_wants(&mut self, number: u32) {
        let client = &self.clients[number];
        for it in client.uses.iter() {
            let state = client.state.as_ref();
            let is_used = state.is_some_and(|state| state.resource(it.id()).is_some());
            let wants = if is_used { it.wants() } else { 0.0 };
            self.watched[it.resource].note_wants(it.account, wants, self.now);
        }
        self.settle_later();
    }

    /// Performs the next steps of the client state, and schedules its next wake-up.
    pub(super) fn step_client(&mut self, number: u32) {
        let now = self.now;
        self.continue_parting(number);
        loop {
            let client = &mut self.clients[number];
            let local = client.clock.shows(now);
            let Some(state) = &mut client.state else {
                return;
            };
            match state.next_step(local) {
                Step::Release => self.release(number),
                Step::Send => {
                    let uses = &client.uses;
                    let request =
                        state.request_with_words(in_flight(uses), words(uses, local), local);
                    let has_work = uses.iter().any(|it| it.work.is_some());
                    note_reported(client, &request, local);
                    // Limiters come first: the request reports their use. Everything else is
                    // published below, at the same moment.
                    if has_work {
                        self.publish(number);
                    }
                    self.ask(number, request);
                }
                Step::Wait(until) => {
                    let at = until.map(|until| client.clock.when(until).max(now));
                    let wake_at = &mut self.wakes[number];
                    if let Some(at) = at
                        && wake_at.is_none_or(|before| at < before || before <= now)
                    {
                        *wake_at = Some(at);
                        self.act(at, move |world| world.wake_client(number));
                    }
                    break;
                }
            }
        }
        self.publish(number);
    }

    /// Runs what is due at a limiter of a client.
    pub(super) fn pass_work(&mut self, number: u32, which: u32) {
        let now = self.now;
        let client = &mut self.clients[number];
        let it = &mut client.uses[which];
        let id = it.id();
        let (Some(limiter), Some(state)) = (&mut it.work, &mut client.state) else {
            return;
        };
        // At any other time it has run before, and will run again.
        if limiter.wake_at.take_if(|at| *at <= now).is_none() {
            return;
        }
        limiter.pass(&client.clock, now);
        if std::mem::take(&mut limiter.asks_early) {
            state.ask_anew(id);
            return self.step_client(number);
        }
        // After the heal no client changes its wants.
        let measured = (!self.is_healed).then(|| limiter.measure(&client.clock, now));
        if let Some(wants) = measured.flatten() {
            state.ask(id, wants);
            self.report_wants(number);
            self.step_client(number);
        } else if client.is_leaving || it.closed_until > now {
            self.step_client(number);
        } else {
            self.publish(number);
        }
    }

    /// Sends a client's request to the master, or looks for the master first.
    fn ask(&mut self, number: u32, request: Request) {
        let sequence = request.sequence;
        let client = &mut self.clients[number];
        let seen = &mut client.seen;
        (seen.sequence, seen.asked_at, seen.is_kept) = (sequence, self.now, false);
        client.asks_on_stream = request.on_stream;
        let request = in_process::request(&client.name, client.incarnation(), &request);
        match client.connected {
            Some(term) => self.ask_master(number, term, request),
            None => self.find_master(number, request),
        }
    }

    /// Sends a request to the server that the client has a connection with.
    pub(super) fn ask_master(&mut self, number: u32, term: u64, request: GetCapacity) {
        let client = &mut self.clients[number];
        let local = client.clock.shows(self.now);
        if let Some(state) = client.state.as_mut().filter(|_| client.asks_on_stream) {
            state.handle_opening(local);
        }
        self.count_request(number);
        let sequence = request.sequence.unwrap_or_default();
        let call = (number, sequence);
        let request = ClientRequest::Ask(term, request);
        self.send_or_fail(call, move |world| world.serve_call(call, request));
    }

    /// Sends a message of a client's call between it and a server of its node. If it is lost, the
    /// call times out.
    pub(super) fn send_or_fail(&mut self, call: CallId, arrive: impl Deed + Clone) {
        let place = self.clients[call.0].place;
        let is_cut = self.places[place].cut_below_until > self.now;
        let way = self.places[place].links.clients;
        if is_cut || !self.send(&way, arrive) {
            self.fail_later(call, self.now + CLIENT_TIMEOUT);
        }
    }

    /// Fails a request at a time.
    pub(super) fn fail_later(&mut self, call: CallId, at: Time) {
        self.act(at, move |world| world.on_reply(call, RequestResult::Failed));
    }

    /// Gives a client the result of its request.
    pub(super) fn on_reply(&mut self, call: CallId, answer: RequestResult) {
        let (now, (number, sequence)) = (self.now, call);
        let mut chance = self.chance.fork(number.into()).fork(sequence);
        let chance = chance.uniform();
        let client = &mut self.clients[number];
        let local = client.clock.shows(now);
        let Some(state) = &mut client.state else {
            return;
        };
        if state.handle_released(sequence) {
            return self.step_client(number);
        }
        if !state.is_asking_by(sequence) {
            // The answer is late, or a duplicate.
            return;
        }
        match answer {
            RequestResult::Said(Outcome::Served(reply)) => {
                client.finder.handle_answer();
                let leases = reply.leases.iter();
                let granted = leases.fold(0.0, |sum, lease| sum + lease.capacity.get());
                state.set_streaming(client.asks_on_stream, local);
                if state.handle_response(sequence, &in_process::response(&reply), chance, local) {
                    self.work.refreshes += 1;
                    self.note(1, number.into(), granted);
                    self.note_answer(number, &reply);
                }
            }
            // A server whose term has ended does not know the next master.
            RequestResult::Said(Outcome::NotMaster(master)) => {
                // The client asks at once where the answer points, or later.
                if self.follow_redirect(call, &master)
                    && let Some(state) = &mut self.clients[number].state
                {
                    state.handle_redirect(sequence);
                }
            }
            RequestResult::Discovered(by, master, request) if master.is_master() => {
                let leases_last = self.leases_last(number);
                let client = &mut self.clients[number];
                match client.finder.handle_master(master.epoch(), leases_last) {
                    Ok(_) => {
                        client.connected = Some(by);
                        self.ask_master(number, by, request);
                    }
                    Err(lost) => self.handle_dead_end(call, &lost),
                }
            }
            RequestResult::Discovered(_, master, request) => {
                if self.follow_redirect(call, &master) {
                    self.find_master(number, request);
                }
            }
            RequestResult::Released => {}
            RequestResult::Failed => {
                let lost = client.finder.handle_failure();
                self.handle_dead_end(call, &lost);
            }
        }
        self.step_client(number);
    }

    /// Applies the rows of a group's trace from that number on, each at its time. `first` is the group's first client.
    pub(super) fn follow_trace(&mut self, group: u32, first: u32, from: usize) {
        let (now, scenario) = (self.now, self.scenario);
        let of_group = scenario.clients.get(group as usize);
        let of_group = of_group.filter(|_| !self.is_healed);
        let Some(Demand::Trace(trace)) = of_group.map(|it| &it.first.demand) else {
            return;
        };
        for (number, row) in trace.rows.iter().enumerate().skip(from) {
            let at = Time::ZERO + row.at();
            if at > now {
                return self.act(at, move |world| world.follow_trace(group, first, number));
            }
            let client = first + row.client as u32;
            self.clients[client].uses[0].curve = row.wants;
            self.update_wants(client);
        }
    }
}

/// Passes what a request reports as used to the limiters.
fn note_reported(client: &mut ClientProcess<'_>, request: &Request, local: Time) {
    let Some(state) = &client.state else {
        return;
    };
    for it in client.uses.iter_mut() {
        let id = it.id();
        let ask = request.asks.iter().find(|ask| ask.resource == id);
        if let (Some(work), Some(ask)) = (&mut it.work, ask) {
            let lease = state.resource(id).and_then(|it| it.lease(local));
            work.note_reported(ask.has.map_or(0.0, |has| has.capacity), lease, local);
        }
    }
}
