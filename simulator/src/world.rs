//! Plays a scenario: real nodes and real client states on a virtual clock.
//!
//! Everything that happens is an event (`agenda`): a message arrives, a client or a server has
//! something to do, demand changes, a fault begins or ends. The world plays an event by calling the
//! production state machines and sending what they ask it to send; it never decides who gets what.
//! It models the surroundings of a process: connections that break, calls that time out, streams
//! that keep their order, elections.

mod admission_check;
mod agenda;
mod beginning;
pub(crate) mod candidates;
mod child_streams;
mod client_streams;
mod clients;
mod etcd;
mod faults;
mod finding;
mod links;
mod mastership;
mod message;
mod nesting;
mod parting;
mod place;
mod publish;
mod sampling;
mod servers;
mod state_directory;
mod uses;
mod work;

use std::hash::Hasher;
use std::time::Duration;

use doorward::state::ClientState;
use doorward_engine::id::{HolderName, Incarnation};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_session::master_finder::MasterFinder;
use siphasher::sip::SipHasher13;

use crate::chance::Chance;
use crate::checker::{Watched, judge};
use crate::local_clock::LocalClock;
use crate::numbered::Numbered;
use crate::recording::{Mark, MarkKind, Recording, Work};
use crate::scenario::{Link as Way, Scenario, Span};
use crate::world::agenda::{Action, Deed, Events};
use crate::world::etcd::Etcd;
use crate::world::message::{CLIENT_TIMEOUT, CallId, ClientRequest, Line, RequestResult, ServerId};
use crate::world::place::{Place, ServerProcess, ServerSlot};
use crate::world::publish::LastPublished;
use crate::world::uses::{Use, Uses, chance_of, in_flight};

/// Wall-clock time at the start, in microseconds since the Unix epoch. Sequence numbers start from
/// it.
const WALL_MICROS: u64 = 1_700_000_000_000_000;

/// Fork of the random stream for faults; no client has that number.
const FAULT_RNG: u64 = u64::MAX;

/// Fork of the random stream for etcd.
const ETCD: u64 = u64::MAX - 1;

/// Maximum number of clients that the recording shows one by one.
const CLIENTS_SHOWN: usize = 50;

/// Client process.
#[derive(Debug)]
struct ClientProcess<'a> {
    group: u32,
    place: u32,
    /// Its use of resources, in the order of its group.
    uses: Uses<'a>,
    /// `None` while it is not running.
    state: Option<ClientState>,
    /// Finder of the server to ask.
    finder: MasterFinder,
    /// Server with which it has a connection, by its term. That server said that it is the master.
    connected: Option<u64>,
    /// Whether its newest request goes on a stream.
    asks_on_stream: bool,
    name: HolderName,
    clock: LocalClock,
    /// True once its start time has come.
    is_due: bool,
    /// True for a second process under the name of another.
    is_twin: bool,
    /// End of the time in which a fault keeps it down.
    down_until: Time,
    /// Number of starts. Messages of earlier runs do not count for the present one.
    starts: u32,
    seen: LastPublished,
    /// True if it ends once no call is under way.
    is_leaving: bool,
}

impl<'a> ClientProcess<'a> {
    /// Returns the number of the running process; each start has another one.
    fn incarnation(&self) -> Incarnation {
        let account = u64::from(self.uses[0].account);
        let bits = (u64::from(self.place) << 48) ^ account << 16 | u64::from(self.starts);
        Incarnation::new(bits).unwrap_or(Incarnation::FIRST)
    }

    /// Creates a process that has not started yet.
    fn new(group: u32, place: u32, uses: Uses<'a>, finder: MasterFinder, name: HolderName) -> Self {
        Self {
            group,
            place,
            uses,
            state: None,
            finder,
            connected: None,
            asks_on_stream: false,
            name,
            clock: LocalClock::default(),
            is_due: false,
            is_twin: false,
            down_until: Time::ZERO,
            starts: 0,
            seen: LastPublished::default(),
            is_leaving: false,
        }
    }

    /// Returns its use of a resource.
    fn use_of(&self, resource: u32) -> Option<&Use<'a>> {
        self.uses.iter().find(|it| it.resource == resource)
    }
}

/// Running simulation of a scenario.
pub struct World<'a> {
    scenario: &'a Scenario,
    now: Time,
    end: Time,
    chance: Chance,
    /// Random stream of faults alone. The same seed gives the same faults whatever the templates
    /// and the network are, so that two runs can be compared.
    fault_rng: Chance,
    events: Events,
    places: Numbered<Place>,
    clients: Numbered<ClientProcess<'a>>,
    /// Wake-up time of each client. Kept apart because many events turn out to be stale.
    wakes: Numbered<Option<Time>>,
    watched: Numbered<Watched>,
    templates: Templates,
    /// Present duration of elections, and the number of changes of it.
    elections: Span,
    election_changes: u32,
    etcd: Etcd,
    /// All templates that the operator wrote, except the last.
    templates_before: Vec<Templates>,
    is_settling: bool,
    nesting: nesting::NestingChecks,
    /// True once faults are over.
    is_healed: bool,
    recording: Recording,
    /// Numbers of the clients that the recording shows, for each resource.
    shown: Numbered<Vec<u32>>,
    hash: SipHasher13,
    work: Work,
    /// Whether to assert after each event that the books of its node add up.
    asserts: bool,
}

impl<'a> World<'a> {
    /// Creates the world at its start.
    pub fn new(scenario: &'a Scenario) -> Self {
        let chance = Chance::new(scenario.seed);
        let mut world = Self {
            scenario,
            now: Time::ZERO,
            end: Time::ZERO + scenario.duration.0,
            events: Events::new(),
            places: Numbered::default(),
            clients: Numbered::default(),
            wakes: Numbered::default(),
            watched: Numbered::default(),
            templates: scenario.templates.clone(),
            elections: scenario.servers.election,
            election_changes: 0,
            etcd: Etcd::new(scenario, chance.fork(ETCD)),
            templates_before: Vec::new(),
            is_settling: false,
            nesting: nesting::NestingChecks::default(),
            is_healed: false,
            recording: Recording::default(),
            shown: Numbered::default(),
            hash: SipHasher13::new_with_keys(0, 0),
            work: Work::default(),
            asserts: false,
            fault_rng: chance.fork(FAULT_RNG),
            chance,
        };
        world.build_tree();
        world.spawn_clients();
        for (number, fault) in (0..).zip(&scenario.faults) {
            world.schedule_fault(number, &fault.when, None);
        }
        world.describe();
        world.act(Time::ZERO, |world| world.sample());
        world.look_later(0);
        if let Some(at) = scenario.heal_at {
            world.act(Time::ZERO + at.0, |world| world.heal());
        }
        for at in &scenario.right_at {
            let at = Time::ZERO + at.0;
            let settled = move |it: &mut Watched| it.note_settled(at);
            let look = move |world: &mut World<'_>| world.watched.iter_mut().for_each(settled);
            world.act(at, look);
        }
        world
    }

    /// Asserts after each event that the books of its node add up, and that no client's limiter
    /// admits too much. The first takes time in proportion to the holders.
    ///
    /// # Panics
    ///
    /// While it plays, if an assertion fails.
    #[must_use]
    pub fn asserting(mut self) -> Self {
        self.asserts = true;
        self
    }

    /// Plays to the end, and calls `progress` now and then with the time reached.
    pub fn run(mut self, mut progress: impl FnMut(Duration)) -> Recording {
        const EVENTS_PER_PROGRESS: u64 = 1 << 14;
        while let Some((at, action)) = self.events.next(self.end) {
            self.now = at;
            self.work.events += 1;
            action(&mut self);
            if self.work.events.is_multiple_of(EVENTS_PER_PROGRESS) {
                progress(at.since(Time::ZERO));
            }
        }
        self.now = self.end;
        self.finish()
    }

    fn mark(&mut self, until: Option<Time>, kind: MarkKind, text: String) {
        let seconds = |time: Time| time.since(Time::ZERO).as_secs_f64();
        self.recording.marks.push(Mark {
            at_s: seconds(self.now),
            until_s: until.map(seconds),
            kind,
            text,
        });
        self.watch_nesting(until, kind);
    }

    /// Sends a message. It arrives after a delay, perhaps twice, or never; returns whether it
    /// arrives.
    fn send(&mut self, way: &Way, arrive: impl Deed + Clone) -> bool {
        if self.loses(way) {
            return false;
        }
        if !self.is_healed && self.chance.happens(way.duplication.unwrap_or_default().0) {
            let at = self.now + self.takes(way);
            self.act(at, arrive.clone());
        }
        let at = self.now + self.takes(way);
        self.act(at, arrive);
        true
    }

    /// Plans a deed.
    fn act(&mut self, at: Time, deed: impl Deed) {
        self.events.put(at, Box::new(deed));
    }

    /// Counts a message, and returns whether it is lost.
    fn loses(&mut self, way: &Way) -> bool {
        self.work.messages += 1;
        let is_lost = !self.is_healed && self.chance.happens(way.loss.unwrap_or_default().0);
        self.work.lost += u64::from(is_lost);
        is_lost
    }

    /// Returns what the wall clock of a process shows.
    fn wall_micros(&self, clock: &LocalClock) -> u64 {
        WALL_MICROS + clock.shows(self.now).as_nanos() / 1_000
    }

    /// Adds a fact to the trace's hash.
    fn note(&mut self, kind: u8, who: u64, amount: f64) {
        self.hash.write_u8(kind);
        self.hash.write_u64(self.now.as_nanos());
        self.hash.write_u64(who);
        self.hash.write_u64(amount.to_bits());
    }

    fn finish(mut self) -> Recording {
        self.note_not_back();
        for (place, recorded) in self.places.iter().zip(&mut self.recording.nodes) {
            let busiest = place.busiest;
            recorded.requests_most = busiest.value.into();
            recorded.requests_most_at_s = busiest.at.since(Time::ZERO).as_secs() as f64;
        }
        for (watched, recorded) in self.watched.iter_mut().zip(&mut self.recording.resources) {
            watched.finish(self.end);
            recorded.figures = watched.figures();
        }
        self.describe_shortages();
        let watched = self.watched.iter();
        let verdicts = watched.flat_map(|it| judge(it, &self.scenario.limits));
        self.recording.verdicts = verdicts.collect();
        self.recording.work = self.work;
        self.recording.trace_hash = format!("{:016x}", self.hash.finish());
        self.recording
    }
}
