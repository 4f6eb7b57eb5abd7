//! The agent: a server whose clients are Envoys, and programs that speak HTTP or Redis.

mod settings;

use std::process::ExitCode;

use clap::CommandFactory;
use doorward_etcd::flags::unreadable_variable;
use doorward_files::warn_of_mounts;
use doorward_server::app::Server;
use doorward_server::flags::{
    self,
    agent::{AgentCommand, AgentFlags},
};
use doorward_server::program::{FAILED, MISUSED, Misused, complain};
use doorward_server::signals::{self, Signals};
use doorward_server::{logs, otlp};
use tokio::runtime::Runtime;

use crate::settings::config;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before all else: from here on, no signal kills the process half-way.
    let (runtime, signals) = match signals::begin() {
        Ok(begun) => begun,
        Err(error) => return complain(anyhow::Error::from(error), FAILED),
    };
    start(runtime, signals)
}

/// Has a frame of its own: its flags leave no room on a small stack, which `begin` refuses.
#[inline(never)]
fn start(runtime: Runtime, signals: Signals) -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(format!("{variable} is not UTF-8"), MISUSED);
    }
    let (flags, values) = flags::parse::<AgentFlags>();
    if let Some(AgentCommand::Completions { shell }) = flags.command {
        return ExitCode::from(flags::complete(AgentFlags::command(), shell));
    }
    let logs = match logs::start(&flags.logs.log_level, flags.logs.log_format) {
        Ok(logs) => logs,
        Err(error) => return complain(anyhow::Error::from(error), MISUSED),
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
        Err(error) if error.is::<Misused>() => complain(error, MISUSED),
        Err(error) => complain(error, FAILED),
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
