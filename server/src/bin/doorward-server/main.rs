//! The binary: reads flags, runs a server, and turns errors into messages and exit codes.

mod settings;
mod state;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use doorward_files::warn_of_mounts;
use doorward_pages::exits;
use doorward_server::flags::{self, Command, Flags};
use doorward_server::logs;
use doorward_server::program::{self, FAILED, MISUSED, Misused};
use doorward_server::signals::Signals;
use doorward_server::templates::file::{self, TemplateFileError};
use doorward_session::visible;
use tokio::runtime::Runtime;

/// mimalloc needs a tenth fewer instructions for a request than the system's allocator. It also returns memory when
/// leases end, which glibc's hardly does (docs/performance.md).
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    program::run(start)
}

fn start(runtime: &Runtime, mut signals: Signals) -> anyhow::Result<ExitCode> {
    let (Flags { command, serve, .. }, values) = flags::parse();
    match command {
        Some(Command::Completions { shell }) => {
            return Ok(ExitCode::from(flags::complete(Flags::command(), shell)));
        }
        Some(Command::Demo { .. }) => {
            return Err(Misused("the demonstration moved: doorward demo".to_owned()).into());
        }
        Some(Command::State { act }) => return state::run(&act),
        None => {}
    }
    let logs = serve.logs.clone();
    // The remaining log lines come before the error message.
    let _logs = logs::start(&logs.log_level, logs.log_format).map_err(Misused)?;
    serve.limits.warn_of_removed();
    warn_of_mounts(&values);
    if let Some(path) = serve.check {
        let has_store = serve.state_dir.is_none_or(|dir| dir.as_os_str() != "none");
        let checked = signals.during(async move { check(&path, has_store).await });
        let checked = runtime.block_on(checked);
        return Ok(checked.ok().flatten().unwrap_or(ExitCode::from(FAILED)));
    }
    let server = settings::start(serve);
    program::serve(runtime, signals, &logs, "doorward-server", server)
}

/// Validates a template file.
async fn check(path: &Path, has_store: bool) -> ExitCode {
    match file::check(path, has_store).await {
        Ok(templates) => {
            let (path, count) = (path.display(), templates.len());
            let s = if count == 1 { "" } else { "s" };
            let said = writeln!(io::stdout(), "{path}: {count} template{s}, valid");
            ExitCode::from(exits::exit_code(said))
        }
        Err(error) => {
            // One line for each problem, in the format of compilers, so that editors can jump there.
            let text = error.to_string();
            let _ = writeln!(io::stderr(), "{}", visible::lines(&text));
            ExitCode::from(match error {
                TemplateFileError::Read(_) => MISUSED,
                TemplateFileError::Document(_) | TemplateFileError::NoStore(_) => FAILED,
            })
        }
    }
}
