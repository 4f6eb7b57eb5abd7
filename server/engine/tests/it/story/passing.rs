//! Time in a story, and the arrival of messages.
//!
//! A server asks its parent as soon as the engine wants it to. With calls, it waits for the answer before it asks
//! again; with a stream, it does not. It gathers pushes to its children for a round. A message stays in flight until a
//! command delivers it.

use std::fmt::Write;
use std::time::Duration;

use doorward_engine::messages::Via;
use doorward_engine::time::Time;

use super::mail::Way;
use super::player::Player;
use super::script::{Command, CommandResult, span};
use super::wording;
use super::world::{Arrived, ROUND};

/// More steps than any story takes in one command.
const STEPS_MAX: usize = 200_000;

impl Player {
    /// Lets servers send what is due. Lists the messages.
    pub fn send_due(&mut self) -> String {
        let mut output = String::new();
        for number in 0..self.world.servers.len() {
            let sent = self.push_due(number);
            let asked = self.may_ask(number).then(|| self.world.ask_parent(number));
            for message in sent.into_iter().chain(asked.flatten()) {
                let line = wording::who_sends(&self.world, message);
                writeln!(output, "{line}").unwrap();
            }
        }
        output
    }

    /// Gathers changes for children for a round, and pushes them.
    fn push_due(&mut self, number: usize) -> Vec<u64> {
        let server = &self.world.servers[number];
        if server.up && server.node.has_pushes() {
            let gathered = self.world.now + ROUND;
            self.push_at.entry(number).or_insert(gathered);
        }
        let at = self.push_at.get(&number);
        if at.is_none_or(|at| *at > self.world.now) {
            return Vec::new();
        }
        self.push_at.remove(&number);
        self.world.push(number)
    }

    fn may_ask(&self, number: usize) -> bool {
        let due = self.world.question_due(number);
        let is_waiting = self.world.servers[number].via == Via::Poll
            && self.world.mail.of_link(number).next().is_some();
        due.is_some_and(|at| at <= self.world.now) && !is_waiting
    }

    /// Returns when a server has something to do without a message.
    fn next_due(&self) -> Option<Time> {
        let servers = 0..self.world.servers.len();
        let due = |number| {
            let question = self.world.question_due(number);
            let waits = self.world.servers[number].via == Via::Poll
                && self.world.mail.of_link(number).next().is_some();
            let question = question.filter(|_| !waits);
            [self.world.timer_due(number), question]
        };
        let pushes = self.push_at.values().copied();
        servers.flat_map(due).flatten().chain(pushes).min()
    }

    fn serve_timers(&mut self) {
        for number in 0..self.world.servers.len() {
            if (self.world.timer_due(number)).is_some_and(|at| at <= self.world.now) {
                self.world.serve_timer(number);
            }
        }
    }

    fn end_of(&self, command: &Command) -> CommandResult<Time> {
        let text = command.the(0, "span of time")?;
        Ok(self.world.now + span(text)?)
    }

    /// Lets time pass. No message arrives, and no client asks.
    pub fn advance(&mut self, command: &Command) -> CommandResult<String> {
        let end = self.end_of(command)?;
        let mut sent = String::new();
        for _ in 0..STEPS_MAX {
            let Some(at) = self.next_due().filter(|at| *at <= end) else {
                self.world.now = end;
                let events = self.events();
                self.world.assert_consistent();
                return Ok(format!("it is {}\n{events}{sent}", self.world.now));
            };
            self.world.now = self.world.now.max(at);
            self.serve_timers();
            sent += &self.send_due();
        }
        Err("it never comes to rest".to_owned())
    }

    /// Freezes all processes: time passes without any event.
    pub fn freeze(&mut self, command: &Command) -> CommandResult<String> {
        self.world.now = self.end_of(command)?;
        Ok(format!("it is {}\n", self.world.now))
    }

    /// Lets time pass. Messages arrive at once, and clients ask at their refresh. Lists the changed leases of clients.
    pub fn run(&mut self, command: &Command) -> CommandResult<String> {
        let end = self.end_of(command)?;
        let before = self.has_of_clients();
        let mut output = String::new();
        for _ in 0..STEPS_MAX {
            self.send_due();
            self.world.assert_consistent();
            if self.arrives_next() || self.client_asks_next() {
                output += &self.events();
                continue;
            }
            let clients = self.world.clients.iter().filter(|client| !client.crashed);
            let asks = clients.map(|client| client.next_send).min();
            let next = [self.next_due(), asks].into_iter().flatten().min();
            let Some(at) = next.filter(|at| *at <= end) else {
                self.world.now = end;
                output += &self.events();
                output = format!("it is {}\n{output}", self.world.now);
                for (before, now) in before.iter().zip(self.has_of_clients()) {
                    if *before != now {
                        writeln!(output, "{} has {}", now.0, wording::number(now.1)).unwrap();
                    }
                }
                return Ok(output);
            };
            self.world.now = self.world.now.max(at);
            self.serve_timers();
            output += &self.events();
        }
        Err("it never comes to rest".to_owned())
    }

    fn has_of_clients(&self) -> Vec<(String, f64)> {
        let now = self.world.now;
        let clients = self.world.clients.iter();
        clients
            .map(|it| (it.name.to_string(), it.uses(now).get()))
            .collect()
    }

    /// Delivers the oldest message that can arrive. Returns false if there is none.
    fn arrives_next(&mut self) -> bool {
        let Some(number) = self.first_that_can_arrive() else {
            return false;
        };
        self.world.deliver(number, Duration::ZERO);
        true
    }

    fn first_that_can_arrive(&self) -> Option<u64> {
        let mut all = self.world.mail.all();
        let passes = |child: usize| !self.world.servers[child].is_cut;
        let can = all.find(|(_, it)| it.link().is_none_or(|(child, ..)| passes(child)));
        can.map(|(number, _)| number)
    }

    /// Lets the next client ask whose refresh is due. Returns false if there is none.
    fn client_asks_next(&mut self) -> bool {
        let now = self.world.now;
        let mut clients = self.world.clients.iter();
        let next = clients.position(|client| !client.crashed && client.next_send <= now);
        if let Some(number) = next {
            self.world.client_asks(number);
        }
        next.is_some()
    }

    /// Returns the link between two servers: the child, and the direction of a message from the first to the second.
    fn link(&self, command: &Command) -> CommandResult<(usize, Way)> {
        let from = self.server(command.the(0, "sender")?)?;
        let to = self.server(command.the(1, "receiver")?)?;
        let parent = |child: usize| self.world.servers[child].parent;
        match () {
            () if parent(from) == Some(to) => Ok((from, Way::Up)),
            () if parent(to) == Some(from) => Ok((to, Way::Down)),
            () => Err("neither is the other's parent".to_owned()),
        }
    }

    /// Returns the message that a command means: the oldest, or with calls also the newest.
    fn on_link(&self, command: &Command) -> CommandResult<u64> {
        let (child, way) = self.link(command)?;
        let mut on_link = self.world.mail.on_link(child, way);
        let found = if command.says("last") {
            if self.world.servers[child].via == Via::Stream {
                return Err("a stream keeps its order; say via=calls".to_owned());
            }
            on_link.next_back()
        } else {
            on_link.next()
        };
        found.ok_or_else(|| "nothing is on its way there".to_owned())
    }

    /// `deliver`: delivers all messages and their answers, until none is in flight. `deliver eu root`: delivers the
    /// oldest message from one to the other; with `last` the newest.
    pub fn deliver(&mut self, command: &Command) -> CommandResult<String> {
        if command.word(0).is_some() {
            let number = self.on_link(command)?;
            return Ok(self.arrives(number));
        }
        let mut output = String::new();
        for _ in 0..STEPS_MAX {
            let Some(number) = self.first_that_can_arrive() else {
                return Ok(output);
            };
            output += &self.arrives(number);
            self.send_due();
        }
        Err("it never comes to rest".to_owned())
    }

    fn arrives(&mut self, number: u64) -> String {
        let said = wording::what_is_said(&self.world, number);
        let arrived = self.world.deliver(number, Duration::ZERO);
        let came = match arrived {
            Arrived::Received | Arrived::Answered(_) => return said,
            Arrived::Nowhere => "  nobody hears it".to_owned(),
            Arrived::NotMaster(mastership) => format!("  not the master: {mastership:?}"),
            Arrived::Cycle(text) => format!("  refused: {text}"),
        };
        format!("{said}{came}\n")
    }

    pub fn lose(&mut self, command: &Command) -> CommandResult<String> {
        let (child, _) = self.link(command)?;
        if self.world.servers[child].via == Via::Stream {
            return Err(
                "a stream loses nothing until it breaks; say break, or via=calls".to_owned(),
            );
        }
        let number = self.on_link(command)?;
        self.world.mail.take(number);
        Ok(String::new())
    }

    pub fn duplicate(&mut self, command: &Command) -> CommandResult<String> {
        let (child, _) = self.link(command)?;
        if self.world.servers[child].via == Via::Stream {
            return Err("a stream repeats nothing; say via=calls".to_owned());
        }
        let number = self.on_link(command)?;
        self.world.mail.copy(number);
        Ok(String::new())
    }

    /// Breaks the stream of a server to its parent, and opens a new one; or gives up its call.
    pub fn break_link(&mut self, command: &Command) -> CommandResult<String> {
        let child = self.server(command.the(0, "node")?)?;
        self.world.disconnect(child);
        if self.world.servers[child].via == Via::Stream {
            self.empty_link(child);
        }
        Ok(String::new())
    }

    /// Stops all messages between a server and its parent, or lets them through again.
    pub fn cut(&mut self, command: &Command, is_cut: bool) -> CommandResult<String> {
        let child = self.server(command.the(0, "node")?)?;
        self.world.servers[child].is_cut = is_cut;
        self.break_link(command)
    }

    fn empty_link(&mut self, child: usize) {
        let lost: Vec<u64> = self.world.mail.of_link(child).map(|(it, _)| it).collect();
        for number in lost {
            self.world.mail.take(number);
        }
    }
}
