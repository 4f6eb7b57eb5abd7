//! The agent: a server whose clients are Envoys, and programs that speak HTTP or Redis.

use std::io::{self, Write};
use std::process::ExitCode;

use anyhow::Context as _;
use clap::Parser;
use doorward_etcd::flags::unreadable_variable;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::flags::agent::AgentFlags;
use doorward_server::logs;
use doorward_server::otel::OtlpFlags;
use doorward_server::signals::Signals;
use doorward_session::visible;
use tokio::runtime::Builder;

#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A failure while the agent ran.
const FAILED: u8 = 1;
/// Wrong usage.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(&anyhow::anyhow!("{variable} is not UTF-8"), MISUSED);
    }
    let flags = AgentFlags::parse();
    let logs = match logs::start(&flags.logs) {
        Ok(logs) => logs,
        Err(error) => return complain(&error.into(), MISUSED),
    };
    let host = gethostname::gethostname().to_string_lossy().into_owned();
    let config = match flags.config(&host) {
        Ok(config) => config,
        Err(error) => return complain(&error.into(), MISUSED),
    };
    let runtime = Builder::new_multi_thread().enable_all().build();
    let ran = match runtime.context("the system has too few resources (see ulimit -n and -u)") {
        Ok(runtime) => runtime.block_on(serve(config, flags.logs.otlp)),
        Err(error) => Err(error),
    };
    // The remaining log lines come before the error message.
    drop(logs);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => complain(&error, FAILED),
    }
}

/// Runs the agent until a signal stops it.
async fn serve(config: ServerConfig, otlp: OtlpFlags) -> anyhow::Result<()> {
    let signals = Signals::new().context("cannot listen for signals")?;
    let server = Server::start(config).await?;
    Ok(otlp.run("doorward-agent", signals, server).await?)
}

fn complain(error: &anyhow::Error, code: u8) -> ExitCode {
    let error = format!("error: {error:#}");
    // If even this fails, no other place for the message is left.
    let _ = writeln!(io::stderr(), "{}", visible::lines(&error));
    ExitCode::from(code)
}
