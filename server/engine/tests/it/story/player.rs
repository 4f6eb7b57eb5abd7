//! The player of a story: it sends the commands to the nodes of a [`World`], and writes down their
//! results.

use std::collections::BTreeMap;
use std::fmt::Write;
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::messages::{NodeEvent, Via};
use doorward_engine::node::Config;
use doorward_engine::node::learning::UnknownLeases;
use doorward_engine::node::mastership::{Mastership, Term};
use doorward_engine::templates::Templates;
use doorward_engine::time::Time;
use doorward_time::tolerance::Tolerance;

use super::mark_store::MarkStore;
use super::script::{BadLine, Block, Command, CommandResult, parse, parse_commands};
use super::story_server::Server;
use super::template_line::template;
use super::world::World;

/// All verbs.
pub const VERBS: [&str; 31] = [
    "advance",
    "anew",
    "ask",
    "break",
    "child-asks",
    "clients",
    "crash",
    "cut",
    "deliver",
    "depose",
    "drop",
    "duplicate",
    "elect",
    "freeze",
    "get-capacity",
    "inspect",
    "learning",
    "lose",
    "lose-mastership",
    "marks",
    "mend",
    "node",
    "parent-answers",
    "release",
    "remake",
    "restart",
    "run",
    "template",
    "templates",
    "wants",
    "win-mastership",
];

/// Returns the story with the present results of its commands.
pub fn replay(story: &str) -> Result<String, BadLine> {
    let mut player = Player::default();
    let mut replayed = Vec::new();
    for block in parse(story, &VERBS)? {
        match block {
            Block::Remark(text) => replayed.push(text),
            Block::Commands(text, commands) => {
                let mut actual = String::new();
                for command in commands {
                    let output = player.act(&command);
                    let output = output.and_then(|output| command.check_used().map(|()| output));
                    actual += &output.map_err(|problem| BadLine {
                        line: command.line,
                        problem,
                    })?;
                }
                let block = format!("{text}\n----\n{}", actual.trim_end());
                replayed.push(block.trim_end().to_owned());
            }
        }
    }
    Ok(replayed.join("\n\n") + "\n")
}

#[derive(Default)]
pub struct Player {
    pub world: World,
    /// Whether the story names its nodes. If not, there is one, and its results have no name.
    pub has_names: bool,
    /// Time of the next push to children, by the number of the server.
    pub push_at: BTreeMap<usize, Time>,
    /// Marks by the number of the server.
    pub marks: BTreeMap<usize, MarkStore>,
    /// Whether no write of marks is executed.
    pub holds_marks: bool,
}

impl Player {
    fn act(&mut self, command: &Command) -> CommandResult<String> {
        let output = match command.verb.as_str() {
            "anew" => {
                *self = Self::default();
                Ok(String::new())
            }
            "node" => self.node(command),
            "restart" => self.restart(command),
            "remake" => {
                let number = self.server(command.the(0, "node")?)?;
                let process = self.world.next_process();
                self.world.remake(number, process);
                Ok(String::new())
            }
            "crash" => {
                let number = self.server(command.the(0, "node")?)?;
                self.world.crash(number);
                Ok(String::new())
            }
            "elect" => self.elect(command),
            "depose" | "lose-mastership" => self.depose(command),
            "win-mastership" => {
                let epoch = command.count("epoch")?;
                let root = self.at(None)?;
                self.begin(root, Mastership::Master { epoch });
                Ok(String::new())
            }
            "template" | "templates" => return self.templates(command),
            "get-capacity" => self.get_capacity(command),
            "release" if command.text("client").is_some() => self.release_capacity(command),
            "release" => self.release(command),
            "ask" => self.ask(command),
            "wants" => self.wants(command),
            "drop" => self.drop_client(command),
            "clients" => Ok(self.clients()),
            "child-asks" => self.child_asks(command),
            "parent-answers" => self.parent_answers(command),
            "advance" => return self.advance(command),
            "run" => return self.run(command),
            "freeze" => return self.freeze(command),
            "deliver" => self.deliver(command),
            "lose" => self.lose(command),
            "duplicate" => self.duplicate(command),
            "break" => self.break_link(command),
            "cut" => self.cut(command, true),
            "mend" => self.cut(command, false),
            "inspect" => return self.inspect(command),
            "learning" if command.says("begin") => {
                self.unknown_leases(UnknownLeases::MayExist, command)
            }
            "learning" if command.says("end") => {
                self.unknown_leases(UnknownLeases::AreNone, command)
            }
            "learning" => return self.learning(command),
            "marks" => self.marks(command),
            other => Err(format!("{other:?} is no command")),
        };
        Ok(output? + &self.after())
    }

    /// Plays one command, for tests that check numbers.
    #[track_caller]
    pub fn play(&mut self, line: &str) -> String {
        let commands = parse_commands(line, 1);
        let output = commands.iter().map(|command| self.act(command));
        output
            .collect::<CommandResult<String>>()
            .unwrap_or_else(|problem| panic!("{line}: {problem}"))
    }

    /// Sends what is due after a command, and lists events.
    pub fn after(&mut self) -> String {
        for (number, marks) in self.marks.iter_mut().filter(|_| !self.holds_marks) {
            let now = self.world.servers[*number].shows(self.world.now);
            marks.write_all(&mut self.world.servers[*number].node, now);
        }
        let sent = self.send_due();
        let output = self.events() + &sent;
        self.world.assert_consistent();
        output
    }

    /// Returns the events of the nodes.
    pub fn events(&mut self) -> String {
        let mut output = String::new();
        for server in &mut self.world.servers {
            while let Some(event) = server.node.poll_event() {
                // The template says so already, and `inspect` says for how long.
                if matches!(event, NodeEvent::LearningBegan { .. }) {
                    continue;
                }
                if self.has_names {
                    writeln!(output, "event at {}: {event:?}", server.name).unwrap();
                } else {
                    writeln!(output, "event: {event:?}").unwrap();
                }
            }
        }
        output
    }

    /// Returns the server of that name.
    pub fn server(&self, name: &str) -> CommandResult<usize> {
        let found = self.world.server_named(name);
        found.ok_or_else(|| format!("there is no node {name:?}"))
    }

    /// Returns the client of that name.
    pub fn client(&self, name: &str) -> CommandResult<usize> {
        let found = self.world.client_named(name);
        found.ok_or_else(|| format!("there is no client {name:?}; let it ask first"))
    }

    /// Returns the server of that name, or the only one.
    pub fn at(&mut self, name: Option<&str>) -> CommandResult<usize> {
        match name {
            Some(name) => self.server(name),
            None if self.world.servers.is_empty() => {
                let root = Server::new(Config::default(), None, Via::Stream);
                let root = self.world.add_server(root);
                let process = self.world.next_process();
                self.world.start(root, process, Templates::default());
                Ok(root)
            }
            None => Ok(0),
        }
    }

    fn node(&mut self, command: &Command) -> CommandResult<String> {
        let name = command.the(0, "name")?;
        if self.world.server_named(name).is_some() {
            return Err(format!("there is a node {name:?} already; say restart"));
        }
        let parent_name = command.text("parent");
        // `parent-answers` gives the answers of a parent outside the story.
        let parent = parent_name.and_then(|parent| self.world.server_named(parent));
        let via = match command.text("via") {
            None | Some("stream") => Via::Stream,
            Some("calls") => Via::Poll,
            Some(other) => return Err(format!("via={other}; say stream or calls")),
        };
        let part = command.number("tolerance")?;
        let tolerance = part.map(Tolerance::of_part).transpose();
        let config = Config {
            name: name.to_owned(),
            has_parent: parent_name.is_some(),
            seed: self.world.servers.len() as u64,
            refresh_floor: command.span("floor")?.unwrap_or(Duration::ZERO),
            clock_tolerance: tolerance.map_err(|it| it.to_string())?.unwrap_or_default(),
            ..Config::default()
        };
        let mut server = Server::new(config, parent, via);
        server.speed = command.number("clock")?.unwrap_or(1.0);
        self.has_names = true;
        let number = self.world.add_server(server);
        self.started(number, Templates::default(), command)
    }

    /// Starts another process of a node, which knows only the templates.
    fn restart(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        let templates = self.world.servers[number].node.templates().clone();
        self.started(number, templates, command)
    }

    fn started(
        &mut self,
        number: usize,
        templates: Templates,
        command: &Command,
    ) -> CommandResult<String> {
        let process = match command.count("process")? {
            Some(0) => return Err("process=0 is none".to_owned()),
            Some(process) => process,
            None => self.world.next_process(),
        };
        self.world.start(number, process, templates);
        let epoch = command.count("epoch")?;
        if !command.says("standby") {
            self.begin(number, Mastership::Master { epoch });
        }
        Ok(String::new())
    }

    fn begin(&mut self, number: usize, mastership: Mastership) {
        let now = self.world.shown(number);
        let node = &mut self.world.servers[number].node;
        node.handle_mastership(mastership, now);
    }

    /// Makes a server the master, optionally until a time.
    fn elect(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        let epoch = command.count("epoch")?;
        let Some(until) = command.span("until")? else {
            self.begin(number, Mastership::Master { epoch });
            return Ok(String::new());
        };
        let now = self.world.shown(number);
        let vacant_since = match command.text("vacant-since") {
            Some("long") => None,
            Some(_) => command
                .span("vacant-since")?
                .map(|since| Time::ZERO + since),
            None => Some(now),
        };
        let term = Term {
            epoch: epoch.ok_or("elect needs epoch=… with until=…")?,
            vacant_since,
            longer_leases: command.span("longer-leases")?.unwrap_or_default(),
            valid_until: Time::ZERO + until,
        };
        let node = &mut self.world.servers[number].node;
        if command.says("marks") {
            let marks = self.marks.entry(number).or_default();
            let last = Some(marks.epoch);
            marks.begin(node, term, last, now);
        } else {
            node.handle_term(term, now);
        }
        Ok(String::new())
    }

    /// Takes an operator's word about leases of earlier masters.
    fn unknown_leases(
        &mut self,
        leases: UnknownLeases,
        command: &Command,
    ) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        let now = self.world.shown(number);
        let only = command.text("resource").map(ResourceId::new).transpose();
        let only = only.map_err(|error| error.to_string())?;
        let node = &mut self.world.servers[number].node;
        match node.handle_unknown_leases(leases, only.as_ref(), now) {
            Ok(()) => Ok(String::new()),
            Err(refusal) => Ok(format!("refused: {refusal:?}\n")),
        }
    }

    /// Shows the marks of a node. From now on, writes of marks are kept, or executed.
    fn marks(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.server(command.the(0, "node")?)?;
        self.holds_marks = command.says("held");
        let marks = self.marks.get_mut(&number).ok_or("it keeps no marks")?;
        Ok(marks.show())
    }

    fn depose(&mut self, command: &Command) -> CommandResult<String> {
        let number = self.at(command.word(0))?;
        let elsewhere = |address: &str| Mastership::Elsewhere {
            master_address: address.to_owned(),
            epoch: None,
        };
        let mastership = command.text("to").map_or(Mastership::Unknown, elsewhere);
        self.begin(number, mastership);
        Ok(String::new())
    }

    /// Sets the templates of the root.
    fn templates(&mut self, command: &Command) -> CommandResult<String> {
        let root = self.at(None)?;
        let specs = command.rest.iter().map(|line| template(line));
        let specs = specs.collect::<CommandResult<Vec<_>>>()?;
        match Templates::parse(&specs) {
            Ok(templates) => {
                let now = self.world.shown(root);
                self.world.servers[root]
                    .node
                    .handle_templates(templates, now);
                Ok(self.after())
            }
            Err(problems) => Ok(problems.iter().map(|it| format!("{it}\n")).collect()),
        }
    }
}
