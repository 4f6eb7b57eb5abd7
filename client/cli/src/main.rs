//! `doorward`: the command line for people who use and operate Doorward.
//!
//! This file only wires. Each command has a file of its name; `caller` talks to servers, and `failure` has the exit
//! codes.

mod caller;
mod common;
mod context;
#[cfg(feature = "demo")]
mod demo;
mod documents;
mod explain;
mod failure;
mod flags;
mod get;
mod granted;
mod init;
mod interruption;
mod learning;
mod man;
mod nodes;
mod output;
mod record;
mod release;
mod rules;
mod status;
mod templates;
mod tree;
mod watch;
mod whoami;
mod why;

use std::io::{self, Write};
use std::process::ExitCode;

use doorward_etcd::flags::unreadable_variable;
use tokio::runtime::Builder;

use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::flags::{Command, Flags};
use doorward_pages::room::Room;
use doorward_pages::terminal::Tone;

/// Room of every command.
const ROOM: Room = Room {
    files: 16,
    threads: 4,
    memory_mib: 32,
};

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Printed(code)) => ExitCode::from(code),
        Err(failure) => {
            // If even this fails, there is no other place for the message.
            let mut err = output::stderr();
            let name = err.paint(Tone::Bad, "doorward:");
            let said = write!(err, "{name} ");
            let _ = said.and_then(|()| err.say(Tone::Plain, &failure.to_string()));
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run() -> Result {
    ROOM.check()
        .map_err(|short| Failure::No(short.to_string()))?;
    if let Some(variable) = unreadable_variable() {
        return Err(Failure::Usage(format!("{variable} is not UTF-8")));
    }
    run_with_room()
}

/// A function of its own, since it takes room itself.
#[inline(never)]
fn run_with_room() -> Result {
    let mut flags = flags::parse()?;
    output::set_up(&mut flags.common);
    let Flags { common, command } = flags;
    let mut builder = match command {
        // It runs servers, on all cores.
        #[cfg(feature = "demo")]
        Command::Demo(_) => Builder::new_multi_thread(),
        _ => Builder::new_current_thread(),
    };
    let runtime = builder.enable_all().build();
    let runtime = runtime.map_err(|error| Failure::No(format!("cannot start: {error}")))?;
    runtime.block_on(run_command(&common, command))
}

async fn run_command(common: &Common, command: Command) -> Result {
    match command {
        #[cfg(feature = "demo")]
        Command::Demo(demo) => demo::run(demo).await,
        Command::Get(get) => get::run(common, &get).await,
        Command::Watch(watch) => watch::run(common, &watch).await,
        Command::Release { client, resources } => release::run(common, &client, &resources).await,
        Command::Status(status) => status::run(common, &status).await,
        Command::Tree { resource } => tree::run(common, resource.as_deref()).await,
        Command::Record(record) => record::run(common, &record).await,
        Command::Explain { resource, client } => explain::run(common, &resource, &client).await,
        Command::Context(flags) => context::run(common, &flags),
        Command::Nodes { node, forget } => nodes::run(common, node, forget).await,
        Command::Learning(flags) => learning::run(common, &flags).await,
        Command::StepDown { node } => nodes::step_down(common, &node).await,
        Command::Whoami => whoami::run(common).await,
        Command::Templates(flags) => templates::run(common, &flags).await,
        Command::Rules(flags) => rules::run(common, &flags).await,
        Command::Completions { shell } => {
            // Not straight to the output: generating panics where writing fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut flags::to_complete(), "doorward", &mut script);
            Ok(io::stdout().write_all(&script)?)
        }
        Command::Init { folder } => init::run(&folder),
        Command::Man { folder } => man::run(&folder),
        Command::Options => Ok(write!(io::stdout(), "{}", flags::shared_help())?),
    }
}
