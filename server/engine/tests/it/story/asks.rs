//! Clients of a story that follow the protocol: each remembers its lease, and reports it with the next request.

use std::fmt::Write;
use std::time::Duration;

use doorward_engine::id::{HolderName, Incarnation, ResourceId};

use super::client::{Client, EARLY_GAP};
use super::mail::Message;
use super::player::Player;
use super::script::{Command, CommandResult};
use super::wording;
use super::world::Arrived;

impl Player {
    /// Lets a client ask, and answers at once. Its first command needs `wants=`, and in a tree `at=`.
    pub fn ask(&mut self, command: &Command) -> CommandResult<String> {
        let name = command.the(0, "client")?;
        let number = match self.world.client_named(name) {
            Some(number) => number,
            None => self.new_client(name, command)?,
        };
        let home = command.text("at").map(|at| self.server(at)).transpose()?;
        let now = self.world.now;
        let client = &mut self.world.clients[number];
        if let Some(home) = home {
            client.home = home;
        }
        if let Some(wants) = command.number("wants")? {
            client.wants = wants;
        }
        if let Some(priority) = command.whole("priority")? {
            client.priority = priority;
        }
        if let Some(process) = command.count("process")? {
            client.incarnation = Incarnation::new(process);
        }
        let lasts = command.span("lasts")?.unwrap_or(Duration::from_secs(60));
        if let Some(has) = command.amount("has")? {
            client.hold(has, now + lasts);
        }
        client.crashed = false;
        let is_lost = command
            .text("answer")
            .is_some_and(|answer| answer == "lost");
        let message = self.world.client_asks(number);
        let name = name.to_owned();
        let answer = match self.world.deliver(message, Duration::ZERO) {
            Arrived::Answered(answer) => answer,
            Arrived::NotMaster(master) => {
                return Ok(format!("{name}: not the master: {master:?}\n"));
            }
            other => return Ok(format!("{name}: {other:?}\n")),
        };
        let output = self.answer(&name, answer);
        if is_lost {
            self.world.mail.take(answer);
            return Ok(output + "the answer is lost\n");
        }
        self.world.deliver(answer, Duration::ZERO);
        Ok(output)
    }

    fn new_client(&mut self, name: &str, command: &Command) -> CommandResult<usize> {
        HolderName::new(name).map_err(|it| format!("client {name:?} {it}"))?;
        command.need("wants")?;
        let home = self.at(command.text("at"))?;
        let resource = command.text("resource").unwrap_or("r");
        ResourceId::new(resource).map_err(|it| format!("resource={resource} {it}"))?;
        let mut client = Client::new(name, home, resource);
        client.incarnation = Incarnation::new(1);
        Ok(self.world.add_client(client))
    }

    fn answer(&self, name: &str, answer: u64) -> String {
        let mut output = String::new();
        if let Some(Message::Answer(_, _, reply)) = self.world.mail.get(answer) {
            for lease in &reply.leases {
                writeln!(output, "{name} {}", wording::lease(lease)).unwrap();
            }
            for refused in &reply.refused {
                let reason = wording::refusal(refused.reason);
                writeln!(output, "{name} is refused: {reason}").unwrap();
            }
        }
        output
    }

    /// Changes the wants of a client, which reports them when it runs.
    pub fn wants(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.client(command.the(0, "client")?)?;
        let wants = command.the(1, "number")?;
        let wants = wants.parse().map_err(|_| format!("{wants} is no number"))?;
        let early = self.world.now + EARLY_GAP;
        let client = &mut self.world.clients[number];
        client.wants = wants;
        client.next_send = client.next_send.min(early);
        Ok(String::new())
    }

    /// Lets a client release its lease.
    pub fn release(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.client(command.the(0, "client")?)?;
        let message = self.world.client_releases(number);
        self.world.clients[number].crashed = true;
        match self.world.deliver(message, Duration::ZERO) {
            Arrived::NotMaster(mastership) => Ok(format!("not the master: {mastership:?}\n")),
            _ => Ok(String::new()),
        }
    }

    /// Removes a client without a release.
    pub fn drop_client(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.client(command.the(0, "client")?)?;
        self.world.clients[number].crashed = true;
        Ok(String::new())
    }

    /// Lists the amount that each client uses, and its safe capacity.
    pub fn clients(&self) -> String {
        let mut output = String::new();
        let now = self.world.now;
        for client in &self.world.clients {
            let uses = wording::number(client.uses(now).get());
            let safe = wording::safe(client.safe_capacity);
            let home = &self.world.servers[client.home].name;
            writeln!(output, "{} at {home} has {uses}, safe {safe}", client.name).unwrap();
        }
        let all = wording::number(self.world.used().rounded_down());
        writeln!(output, "all together {all}").unwrap();
        output
    }
}
