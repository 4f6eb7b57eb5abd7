//! The agent: a server whose clients are Envoys, and programs that speak HTTP or Redis.

mod settings;

use std::io::{self, Write};
use std::process::ExitCode;

use clap::CommandFactory;
use doorward_etcd::flags::unreadable_variable;
use doorward_files::warn_of_mounts;
use doorward_server::app::Server;
use doorward_server::flags::{
    self,
    agent::{AgentCommand, AgentFlags},
};
use doorward_server::signals::{self, Signals};
use doorward_server::{logs, otlp};
use doorward_session::visible;
use tokio::runtime::Runtime;

use crate::settings::{SettingsError, config};

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A failure while the agent ran.
const FAILED: u8 = 1;
/// Wrong usage.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    // Before all else: from here on, no signal kills the process half-way.
    let (runtime, signals) = match signals::begin() {
        Ok(begun) => begun,
        Err(error) => return complain(&error.into(), FAILED),
    };
    start(runtime, signals)
}

/// Has a frame of its own: its flags leave no room on a small stack, which `begin` refuses.
#[inline(never)]
fn start(runtime: Runtime, signals: Signals) -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(&anyhow::anyhow!("{variable} is not UTF-8"), MISUSED);
    }
    let (flags, values) = flags::parse::<AgentFlags>();
    if let Some(AgentCommand::Completions { shell }) = flags.command {
        return ExitCode::from(flags::complete(AgentFlags::command(), shell));
    }
    let logs = match logs::start(&flags.logs.log_level, flags.logs.log_format) {
        Ok(logs) => logs,
        Err(error) => return complain(&error.into(), MISUSED),
    };
    warn_of_mounts(&values);
    let ran = runtime.block_on(serve(flags, signals));
    // A read that hangs does not keep the process.
    runtime.shutdown_background();
    // The remaining log lines come before the error message.
    drop(logs);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // The operator mends invalid rules, like a wrong flag.
        Err(error) if error.is::<SettingsError>() => complain(&error, MISUSED),
        Err(error) => complain(&error, FAILED),
    }
}

/// Runs the agent until a signal stops it.
async fn serve(flags: AgentFlags, mut signals: Signals) -> anyhow::Result<()> {
    let logs = flags.logs.clone();
    let started = signals.during(started(flags)).await?;
    match started {
        Some(server) => Ok(otlp::run(&logs, "doorward-agent", signals, server?).await?),
        None => Ok(()),
    }
}

async fn started(flags: AgentFlags) -> anyhow::Result<Server> {
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    Ok(Server::start(config(&flags, &host)?).await?)
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    let error = format!("error: {error:#}");
    // If even this fails, no other place for the message is left.
    let _ = writeln!(io::stderr(), "{}", visible::lines(&error));
    ExitCode::from(code)
}
