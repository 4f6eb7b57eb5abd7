//! `doorward-sim`: plays scenarios and traces, searches for failures, and compares outcomes.
//!
//! This file only wires. Each command is in the file of its name under `command`; errors are in
//! `failure`.

mod command;
mod failure;
mod flags;
mod tree_flag;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::Parser;
use doorward_pages::{exits, room::Room};

use crate::command::{compare, fuzz, list, replay, run};
use crate::failure::Failure;
use crate::flags::{Command, Flags};

/// Room of a small world on each core.
const ROOM: Room = Room {
    files: 8,
    threads: 2,
    memory_mib: 64,
};

fn main() -> ExitCode {
    match play() {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of the output, such as `head`, has read enough.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Reported) => ExitCode::FAILURE,
        Err(failure) => {
            // There is no other place to report a failure of this write.
            let _ = writeln!(io::stderr(), "doorward-sim: {failure}");
            match failure {
                Failure::Usage(_) => ExitCode::from(2),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

fn play() -> Result<(), Failure> {
    let room = ROOM.check();
    room.map_err(|short| Failure::Report(short.into()))?;
    let flags = Flags::try_parse().unwrap_or_else(|error| exits::end(&error));
    match flags.command {
        Command::Run(flags) => run::run(&flags),
        Command::Replay(flags) => replay::run(&flags),
        Command::Fuzz(flags) => fuzz::run(&flags),
        Command::List => list::list(),
        Command::Show { name } => list::show(&name),
        Command::Compare(flags) => compare::run(&flags),
    }
}
