//! The binary: reads flags, starts a server, and waits for signals.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context;
use clap::{CommandFactory, Parser};
use doorward_engine::node;
use doorward_engine::template::Templates;
use doorward_server::app::{Config, Server};
use doorward_server::flags::{Command, Flags, ServeFlags};
use doorward_server::{clock, logs};
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

/// Failed while running.
const FAILED: u8 = 1;
/// Wrong usage, or templates that are not in order.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    let flags = Flags::parse();
    if let Some(Command::Completions { shell }) = flags.command {
        let mut command = Flags::command();
        clap_complete::generate(shell, &mut command, "doorward-server", &mut io::stdout());
        return ExitCode::SUCCESS;
    }
    if let Err(error) = logs::start(flags.serve.log_format, &flags.serve.log_level) {
        return complain(&error.into(), MISUSED);
    }
    match run(flags.serve) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error, FAILED),
    }
}

/// The last words, on standard error.
fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    // Nothing is left to do if even this fails.
    let _ = writeln!(io::stderr(), "error: {error:#}");
    ExitCode::from(code)
}

#[tokio::main]
async fn run(flags: ServeFlags) -> anyhow::Result<()> {
    // From here on no signal kills the process half-way.
    let mut signals = Signals::new().context("cannot listen for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    let mut server = Server::start(config(&flags)).await?;
    loop {
        tokio::select! {
            () = signals.stop() => break,
            _ = hang_up.recv() => info!("SIGHUP: there is no template file to read again"),
            error = server.failed() => return Err(error.into()),
        }
    }
    info!("stopping: no new calls, those in flight are finished");
    tokio::select! {
        _ = server.shutdown() => info!("stopped"),
        () = signals.stop() => info!("stopped at once, by a second signal"),
    }
    Ok(())
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
}

impl Signals {
    fn new() -> io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    async fn stop(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }
}

fn config(flags: &ServeFlags) -> Config {
    Config {
        node_name: flags.node.clone(),
        listen: flags.listen,
        http_listen: flags.http_listen.0,
        advertise: flags.advertise.clone(),
        templates: Templates::default(),
        templates_source: "built-in examples".to_owned(),
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: flags.refresh_floor,
            limits: node::Limits {
                resources_max: flags.resources_max,
                leases_per_resource_max: flags.leases_per_resource_max,
                ..node::Limits::default()
            },
        },
        shutdown_grace: flags.shutdown_grace,
        ..Config::default()
    }
}
