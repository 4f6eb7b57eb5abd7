//! The agent: a server whose clients are Envoys, and programs that speak HTTP or Redis.

mod settings;

use std::process::ExitCode;

use clap::CommandFactory;
use doorward_files::warn_of_mounts;
use doorward_server::app::Server;
use doorward_server::flags::{
    self,
    agent::{AgentCommand, AgentFlags},
};
use doorward_server::logs;
use doorward_server::program::{self, Misused};
use doorward_server::signals::Signals;
use tokio::runtime::Runtime;

use crate::settings::config;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::run(start)
}

/// Has a frame of its own: its flags leave no room on a small stack, which the program refuses before.
#[inline(never)]
fn start(runtime: &Runtime, signals: Signals) -> anyhow::Result<ExitCode> {
    let (flags, values) = flags::parse::<AgentFlags>();
    if let Some(AgentCommand::Completions { shell }) = flags.command {
        let code = flags::complete(AgentFlags::command(), shell);
        return Ok(ExitCode::from(code));
    }
    let logs = flags.logs.clone();
    // The remaining log lines come before the error message.
    let _logs = logs::start(&logs.log_level, logs.log_format).map_err(Misused)?;
    warn_of_mounts(&values);
    let start = async move {
        let host = gethostname::gethostname().to_string_lossy().into_owned();
        Ok(Server::start(config(&flags, &host)?).await?)
    };
    program::serve(runtime, signals, &logs, "doorward-agent", start)
}
