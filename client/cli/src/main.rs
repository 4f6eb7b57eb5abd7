//! `doorward`: the command line for people who use and operate Doorward.
//!
//! This file only wires. Each command has a file of its name; `caller` talks to servers, and `failure` has the exit
//! codes.

mod caller;
mod color;
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
mod top;
mod tree;
mod watch;
mod whoami;
mod why;

use std::io::{self, Write};
use std::process::ExitCode;

use doorward_etcd::flags::unreadable_variable;
use doorward_session::visible;
use tokio::runtime::Builder;

use crate::common::Common;
use crate::failure::Failure;
use crate::flags::{Command, Flags};
use doorward_pages::room::Room;
use doorward_pages::terminal::{Palette, Tone};

/// Room of every command.
const ROOM: Room = Room {
    files: 16,
    threads: 4,
    memory_mib: 32,
};

fn main() -> ExitCode {
    if let Err(short) = ROOM.check() {
        let _ = writeln!(io::stderr(), "doorward: {short}");
        return ExitCode::from(Failure::No(String::new()).exit_code());
    }
    if let Some(variable) = unreadable_variable() {
        let _ = writeln!(io::stderr(), "doorward: {variable} is not UTF-8");
        return ExitCode::from(Failure::Usage(String::new()).exit_code());
    }
    let (palette, done) = match flags::parse() {
        Ok(mut flags) => {
            output::set_up(&mut flags.common);
            (flags.common.color.of_stderr(), run(flags))
        }
        Err(failure) => (Palette::of_stderr(), Err(failure)),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Printed(code)) => ExitCode::from(code),
        Err(failure) => {
            // If even this fails, there is no other place for the message.
            let name = palette.paint(Tone::Bad, "doorward:");
            let failure_text = failure.to_string();
            let failure_text = visible::lines(&failure_text);
            let _ = writeln!(output::stderr(), "{name} {failure_text}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn run(flags: Flags) -> Result<(), Failure> {
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

async fn run_command(common: &Common, command: Command) -> Result<(), Failure> {
    match command {
        #[cfg(feature = "demo")]
        Command::Demo(demo) => demo::run(demo).await,
        Command::Get(get) => get::run(common, &get).await,
        Command::Watch(watch) => watch::run(common, &watch).await,
        Command::Release(release) => release::run(common, &release).await,
        Command::Status(status) => status::run(common, &status).await,
        Command::Tree(tree) => tree::run(common, &tree).await,
        Command::Top(top) => top::run(common, &top).await,
        Command::Record(record) => record::run(common, &record).await,
        Command::Explain(explain) => explain::run(common, &explain).await,
        Command::Context(flags) => context::run(common, &flags),
        Command::Nodes(nodes) => nodes::run(common, &nodes).await,
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
