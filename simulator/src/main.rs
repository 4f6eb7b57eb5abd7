//! `doorward-sim`: plays scenarios and traces, looks for what fails, and compares what came of it.
//!
//! This file only wires. What a command does stands in the file of its name under `command`; what
//! can go wrong in `failure`.

mod command;
mod failure;
mod flags;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::{CommandFactory, Parser};

use crate::command::{compare, fuzz, list, replay, run};
use crate::failure::Failure;
use crate::flags::{Command, Flags};

fn main() -> ExitCode {
    match play(Flags::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        // Whoever reads the output has seen enough, as `head` has.
        Err(Failure::Output(error)) if error.kind() == io::ErrorKind::BrokenPipe => {
            ExitCode::SUCCESS
        }
        Err(Failure::Reported(code)) => ExitCode::from(code),
        Err(failure) => {
            // Nothing is left to do if even this fails.
            let _ = writeln!(io::stderr(), "doorward-sim: {failure}");
            ExitCode::from(failure.exit_code())
        }
    }
}

fn play(flags: Flags) -> Result<(), Failure> {
    match flags.command {
        Command::Run(flags) => run::run(&flags),
        Command::Replay(flags) => replay::run(&flags),
        Command::Fuzz(flags) => fuzz::run(&flags),
        Command::List => list::list(),
        Command::Show { name } => list::show(&name),
        Command::Compare(flags) => compare::run(&flags),
        Command::Completions { shell } => {
            // Not straight to the output: generating panics where writing fails.
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Flags::command(), "doorward-sim", &mut script);
            Ok(io::stdout().write_all(&script)?)
        }
    }
}
