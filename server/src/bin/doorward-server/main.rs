//! The binary: reads flags, runs a server, and turns errors into messages and exit codes.

mod serve;
mod settings;
mod state;
mod template_source;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use doorward_etcd::flags::unreadable_variable;
use doorward_files::warn_of_mounts;
use doorward_pages::exits;
use doorward_server::flags::{self, Command, Flags};
use doorward_server::logs;
use doorward_server::program::{FAILED, MISUSED, Misused, complain};
use doorward_server::signals::{self, Signals};
use doorward_server::templates::file::{self, TemplateFileError};
use doorward_session::visible;
use tokio::runtime::Runtime;

/// mimalloc needs a tenth fewer instructions for a request than the system's allocator. It also returns memory when
/// leases end, which glibc's hardly does (docs/performance.md).
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    // Before all else: from here on, no signal kills the process half-way.
    let (runtime, signals) = match signals::begin() {
        Ok(begun) => begun,
        Err(error) => return complain(anyhow::Error::from(error), FAILED),
    };
    let code = start(&runtime, signals);
    // A read that hangs does not keep the process.
    runtime.shutdown_background();
    code
}

fn start(runtime: &Runtime, mut signals: Signals) -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(format!("{variable} is not UTF-8"), MISUSED);
    }
    let (Flags { command, serve, .. }, values) = flags::parse();
    match command {
        Some(Command::Completions { shell }) => {
            return ExitCode::from(flags::complete(Flags::command(), shell));
        }
        Some(Command::Demo { .. }) => {
            // If even this fails, no other place for the message is left.
            let _ = writeln!(
                io::stderr(),
                "error: the demonstration moved: doorward demo"
            );
            return ExitCode::from(MISUSED);
        }
        Some(Command::State { act }) => return state::run(&act),
        None => {}
    }
    let logs = match logs::start(&serve.logs.log_level, serve.logs.log_format) {
        Ok(logs) => logs,
        Err(error) => return complain(anyhow::Error::from(error), MISUSED),
    };
    serve.limits.warn_of_removed();
    warn_of_mounts(&values);
    if let Some(path) = serve.check {
        let checked = signals.during(async move { check(&path).await });
        let checked = runtime.block_on(checked);
        return checked.ok().flatten().unwrap_or(ExitCode::from(FAILED));
    }
    let ran = runtime.block_on(serve::serve(serve, signals));
    // The remaining log lines come before the error message.
    drop(logs);
    match ran {
        Ok(()) => ExitCode::SUCCESS,
        // The operator mends invalid templates, like a wrong flag.
        Err(error) if error.is::<TemplateFileError>() || error.is::<Misused>() => {
            complain(error, MISUSED)
        }
        Err(error) => complain(error, FAILED),
    }
}

/// Validates a template file.
async fn check(path: &Path) -> ExitCode {
    match file::check(path).await {
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
                TemplateFileError::Document(_) => FAILED,
            })
        }
    }
}
