//! `doorward shell`: plays several clients at once.
//!
//! Each client keeps what it was given, and says so when it asks again, as real ones do. Leases
//! are refreshed in the background for as long as the shell lives, so that what `show` says is
//! true; at the end everything is released. Commands come from the keyboard, with history, or from
//! a script on standard input.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, BufRead, IsTerminal, Write};
use std::path::PathBuf;

use doorward_client::{Capacity, Client, Resource, Source};
use rustyline::completion::Completer;
use rustyline::error::ReadlineError;
use rustyline::history::FileHistory;
use rustyline::{Editor, Helper, Highlighter, Hinter, Validator};
use tokio::sync::mpsc;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::flags::{Common, StatusFlags, amount};
use crate::get;
use crate::numbers::{number, span};
use crate::status;

const HELP: &str = "\
get CLIENT RESOURCE WANTS [PRIORITY]  ask as CLIENT, and hold what it gets
release CLIENT [RESOURCE]             give it back; without RESOURCE everything CLIENT has
show                                  what all clients here have
status [RESOURCE]                     what the server holds
master                                who the master is
help                                  this
quit                                  release everything and leave (also Ctrl-D)
Names with spaces go in quotes.";

const COMMANDS: [&str; 7] = ["get", "release", "show", "status", "master", "help", "quit"];

/// A command, parsed.
#[derive(Clone, Debug, PartialEq)]
enum Line {
    Get {
        client: String,
        resource: String,
        wants: f64,
        priority: i64,
    },
    Release {
        client: String,
        resource: Option<String>,
    },
    Show,
    Status {
        resource: Option<String>,
    },
    Master,
    Help,
    Quit,
    Nothing,
}

/// What one client of the shell holds.
struct Player {
    client: Client,
    resources: BTreeMap<String, (Resource, i64)>,
}

/// All clients of the shell.
struct Stage {
    common: Common,
    players: BTreeMap<String, Player>,
}

pub(crate) async fn run(common: &Common) -> Result<(), Failure> {
    // Wrong addresses are told before anybody types.
    Caller::new(common)?;
    let mut stage = Stage {
        common: common.clone(),
        players: BTreeMap::new(),
    };
    let interactive = io::stdin().is_terminal();
    let (mut lines, done) = read_lines(interactive);
    let mut failed: Option<Failure> = None;
    let mut failures = 0;
    while let Some(line) = lines.recv().await {
        let outcome = match parse(&line) {
            Ok(Line::Quit) => break,
            Ok(line) => stage.play(line).await,
            Err(problem) => Err(Failure::Usage(problem)),
        };
        if let Err(failure) = outcome {
            writeln!(io::stderr(), "{failure}")?;
            failures += 1;
            failed = Some(failure);
        }
        // Whoever types gets the prompt back.
        if done.send(()).await.is_err() {
            break;
        }
    }
    for (_, player) in stage.players {
        drop(player.resources);
        player.client.close().await;
    }
    match failed {
        // The last one decides the exit code; all of them were told when they happened.
        Some(failure) if !interactive => Err(failure.of_script(failures)),
        _ => Ok(()),
    }
}

impl Stage {
    async fn play(&mut self, line: Line) -> Result<(), Failure> {
        match line {
            Line::Get {
                client,
                resource,
                wants,
                priority,
            } => self.get(client, resource, wants, priority).await,
            Line::Release { client, resource } => self.release(&client, resource).await,
            Line::Show => self.show(),
            Line::Status { resource } => {
                let flags = StatusFlags {
                    resource,
                    leases: None,
                };
                status::run(&self.common, &flags).await
            }
            Line::Master => self.master().await,
            Line::Help => Ok(writeln!(io::stdout(), "{HELP}")?),
            Line::Quit | Line::Nothing => Ok(()),
        }
    }

    async fn get(
        &mut self,
        name: String,
        id: String,
        wants: f64,
        priority: i64,
    ) -> Result<(), Failure> {
        if !self.players.contains_key(&name) {
            let client = get::connect(&self.common, name.clone()).await?;
            self.players.insert(
                name.clone(),
                Player {
                    client,
                    resources: BTreeMap::new(),
                },
            );
        }
        let Some(player) = self.players.get_mut(&name) else {
            return Ok(());
        };
        // Another priority is another claim: the old one goes first.
        if player
            .resources
            .get(&id)
            .is_some_and(|(_, before)| *before != priority)
        {
            player.resources.remove(&id);
        }
        if let Some((resource, _)) = player.resources.get(&id) {
            resource
                .ask(wants)
                .map_err(|error| Failure::Usage(error.to_string()))?;
            // The answer comes by itself; a moment is enough unless the server is far or busy.
            let changed = resource.wait_for_answer(wants, self.common.timeout).await;
            changed.map_err(|error| get::failure_of(&error))?;
        } else {
            let opened = player
                .client
                .resource(&id)
                .wants(wants)
                .priority(priority)
                .open();
            let resource = opened.map_err(|error| Failure::Usage(error.to_string()))?;
            let lease = resource.wait_for_lease(self.common.timeout).await;
            lease.map_err(|error| get::failure_of(&error))?;
            player.resources.insert(id.clone(), (resource, priority));
        }
        if let Some((resource, _)) = player.resources.get(&id) {
            writeln!(io::stdout(), "{}", described(&name, resource))?;
        }
        Ok(())
    }

    async fn release(&mut self, name: &str, id: Option<String>) -> Result<(), Failure> {
        let nobody = || Failure::No(format!("there is no client {name} here; see show"));
        match id {
            None => {
                let player = self.players.remove(name).ok_or_else(nobody)?;
                drop(player.resources);
                player.client.close().await;
            }
            Some(id) => {
                let player = self.players.get_mut(name).ok_or_else(nobody)?;
                let gone = player.resources.remove(&id);
                gone.ok_or_else(|| Failure::No(format!("{name} has nothing of {id}; see show")))?;
            }
        }
        writeln!(io::stdout(), "released")?;
        Ok(())
    }

    fn show(&self) -> Result<(), Failure> {
        let mut out = io::stdout().lock();
        let mut nothing = true;
        for (name, player) in &self.players {
            for (resource, _) in player.resources.values() {
                writeln!(out, "{}", described(name, resource))?;
                nothing = false;
            }
        }
        if nothing {
            writeln!(out, "no client here has anything; see help")?;
        }
        Ok(())
    }

    async fn master(&self) -> Result<(), Failure> {
        let answer = Caller::new(&self.common)?.discover().await?;
        let epoch = answer
            .mastership
            .epoch
            .map_or(String::new(), |epoch| format!(", epoch {epoch}"));
        match answer.mastership.master_address {
            Some(address) => writeln!(io::stdout(), "{address}{epoch}")?,
            None => writeln!(io::stdout(), "no master is known")?,
        }
        Ok(())
    }
}

/// What a client has of a resource, in a line.
fn described(name: &str, resource: &Resource) -> String {
    let holding = resource.holding();
    let capacity = match holding.capacity {
        Capacity::Limited(capacity) => number(capacity),
        Capacity::Unlimited => "unlimited".to_owned(),
    };
    let mut line = format!(
        "{name}  {}  {capacity} of {}",
        resource.id(),
        number(resource.wants())
    );
    // Writing to a string cannot fail.
    let _ = match (holding.source, holding.remaining) {
        (Source::Lease, Some(remaining)) => write!(line, ", expires in {}", span(remaining)),
        _ => write!(line, ", without a lease"),
    };
    line
}

fn parse(line: &str) -> Result<Line, String> {
    let Some(words) = shlex::split(line) else {
        return Err("a quote is not closed".to_owned());
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let wants = |text: &str| amount(text);
    let priority = |text: &str| {
        text.parse::<i64>()
            .map_err(|_| format!("{text:?} is no priority; give a whole number"))
    };
    Ok(match words.as_slice() {
        [] => Line::Nothing,
        [comment, ..] if comment.starts_with('#') => Line::Nothing,
        ["get", client, resource, amount] => Line::Get {
            client: (*client).to_owned(),
            resource: (*resource).to_owned(),
            wants: wants(amount)?,
            priority: 0,
        },
        ["get", client, resource, amount, level] => Line::Get {
            client: (*client).to_owned(),
            resource: (*resource).to_owned(),
            wants: wants(amount)?,
            priority: priority(level)?,
        },
        ["release", client] => Line::Release {
            client: (*client).to_owned(),
            resource: None,
        },
        ["release", client, resource] => Line::Release {
            client: (*client).to_owned(),
            resource: Some((*resource).to_owned()),
        },
        ["show"] => Line::Show,
        ["status"] => Line::Status { resource: None },
        ["status", resource] => Line::Status {
            resource: Some((*resource).to_owned()),
        },
        ["master"] => Line::Master,
        ["help", ..] | ["?"] => Line::Help,
        ["quit" | "exit"] => Line::Quit,
        [command, ..] if COMMANDS.contains(command) => {
            let usage = HELP
                .lines()
                .find(|line| line.starts_with(command))
                .unwrap_or_default();
            return Err(format!("{command} is used like this: {usage}"));
        }
        [command, ..] => {
            return Err(format!(
                "{command:?} is no command; there are {}",
                COMMANDS.join(", ")
            ));
        }
    })
}

/// Completes the command word.
#[derive(Helper, Highlighter, Hinter, Validator)]
struct Commands;

impl Completer for Commands {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        let written = line.get(..position).unwrap_or_default();
        if written.contains(' ') {
            return Ok((position, Vec::new()));
        }
        let fitting = COMMANDS
            .iter()
            .filter(|command| command.starts_with(written));
        Ok((0, fitting.map(|command| format!("{command} ")).collect()))
    }
}

/// Lines as they are typed or read. The sender is told when a line was played.
fn read_lines(interactive: bool) -> (mpsc::Receiver<String>, mpsc::Sender<()>) {
    let (line_sender, lines) = mpsc::channel(1);
    let (done, mut played) = mpsc::channel(1);
    // Reading blocks, and ends with the process.
    std::thread::spawn(move || {
        let mut send = |line: String| {
            line_sender.blocking_send(line).is_ok() && played.blocking_recv().is_some()
        };
        if !interactive {
            for line in io::stdin().lock().lines().map_while(Result::ok) {
                if !send(line) {
                    return;
                }
            }
            return;
        }
        let Ok(mut editor) = Editor::<Commands, FileHistory>::new() else {
            return;
        };
        editor.set_helper(Some(Commands));
        let history = history_file();
        if let Some(file) = &history {
            // A first shell has no history.
            let _ = editor.load_history(file);
        }
        loop {
            match editor.readline("doorward> ") {
                Ok(line) => {
                    let _ = editor.add_history_entry(&line);
                    if let Some(file) = &history {
                        let _ = editor.save_history(file);
                    }
                    if !send(line) {
                        return;
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(_) => return,
            }
        }
    });
    (lines, done)
}

/// Where the history is kept; its folder is made if need be.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let folder = state
        .filter(|folder| folder.is_absolute())
        .or_else(home)?
        .join("doorward");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_commands() {
        let get = |client: &str, resource: &str, wants, priority| Line::Get {
            client: client.to_owned(),
            resource: resource.to_owned(),
            wants,
            priority,
        };
        for (line, expected) in [
            ("get a r 10", get("a", "r", 10.0, 0)),
            ("  get 'a b' r 2.5 -3 ", get("a b", "r", 2.5, -3)),
            (
                "release a",
                Line::Release {
                    client: "a".to_owned(),
                    resource: None,
                },
            ),
            ("show", Line::Show),
            (
                "status r",
                Line::Status {
                    resource: Some("r".to_owned()),
                },
            ),
            ("exit", Line::Quit),
            ("", Line::Nothing),
            ("# a remark", Line::Nothing),
        ] {
            assert_eq!(parse(line), Ok(expected), "{line:?}");
        }
    }

    #[test]
    fn a_bad_line_says_what_is_wrong() {
        for (line, expected) in [
            ("got a", "\"got\" is no command; there are get, release"),
            (
                "get a",
                "get is used like this: get CLIENT RESOURCE WANTS [PRIORITY]",
            ),
            ("get a r lots", "\"lots\" is no amount"),
            ("get a r 1 high", "\"high\" is no priority"),
            ("get 'a", "a quote is not closed"),
        ] {
            let problem = parse(line).unwrap_err();
            assert!(problem.starts_with(expected), "{line:?}: {problem}");
        }
    }

    #[test]
    fn every_command_is_in_the_help() {
        for command in COMMANDS {
            assert!(
                HELP.lines().any(|line| line.starts_with(command)),
                "{command}"
            );
        }
    }
}
