//! The binary: reads flags, runs a server, and turns errors into messages and exit codes.

mod misused;
mod serve;
mod settings;
mod template_source;

use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use anyhow::anyhow;
use clap::{CommandFactory, Parser};
use doorward_etcd::flags::unreadable_variable;
use doorward_server::flags::{Command, Flags, ServeFlags};
use doorward_server::logs;
use doorward_server::templates::file::{self, TemplateFileError};
use doorward_session::visible;
use tokio::runtime::Builder;

use crate::misused::Misused;

/// mimalloc needs a tenth fewer instructions for a request than the system's allocator. It also returns memory when
/// leases end, which glibc's hardly does (docs/performance.md).
#[cfg(feature = "mimalloc")]
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// A failure while the server ran; with `--check`, an invalid file, as for `doorward templates check`.
const FAILED: u8 = 1;
/// Wrong usage, or invalid templates.
const MISUSED: u8 = 2;

fn main() -> ExitCode {
    if let Some(variable) = unreadable_variable() {
        return complain(anyhow!("{variable} is not UTF-8"), MISUSED);
    }
    let flags = Flags::parse();
    match flags.command {
        Some(Command::Completions { shell }) => {
            let mut command = Flags::command();
            clap_complete::generate(shell, &mut command, "doorward-server", &mut io::stdout());
            return ExitCode::SUCCESS;
        }
        Some(Command::Demo { .. }) => {
            // If even this fails, no other place for the message is left.
            let _ = writeln!(
                io::stderr(),
                "error: the demonstration moved: doorward demo"
            );
            return ExitCode::from(MISUSED);
        }
        None => {}
    }
    let logs = match logs::start(&flags.serve.logs) {
        Ok(logs) => logs,
        Err(error) => return complain(error.into(), MISUSED),
    };
    flags.serve.limits.warn_of_removed();
    if let Some(path) = &flags.serve.check {
        return check(path);
    }
    let ran = run(flags.serve);
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
fn check(path: &Path) -> ExitCode {
    let runtime = match Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return complain(cannot_start(error), FAILED),
    };
    match runtime.block_on(file::check(path)) {
        Ok(templates) => {
            let (path, count) = (path.display(), templates.len());
            let s = if count == 1 { "" } else { "s" };
            let said = writeln!(io::stdout(), "{path}: {count} template{s}, valid");
            if said.is_ok() {
                ExitCode::SUCCESS
            } else {
                ExitCode::from(FAILED)
            }
        }
        Err(error) => {
            // One line for each problem, in the format of compilers, so that editors can jump there.
            let text = error.to_string();
            let _ = writeln!(io::stderr(), "{}", visible::lines(&text));
            ExitCode::from(match error {
                TemplateFileError::Read { .. } => MISUSED,
                TemplateFileError::Document(_) => FAILED,
            })
        }
    }
}

/// Writes the error message to standard error. The program ends even if its reader stalls.
fn complain(error: anyhow::Error, code: u8) -> ExitCode {
    let (written, is_written) = mpsc::channel::<()>();
    let error = format!("error: {error:#}");
    let write = move || {
        // If even this fails, no other place for the message is left.
        let _ = writeln!(io::stderr(), "{}", visible::lines(&error));
        drop(written);
    };
    // The system may refuse another thread.
    if thread::Builder::new().spawn(write.clone()).is_err() {
        write();
    }
    let _ = is_written.recv_timeout(Duration::from_secs(1));
    ExitCode::from(code)
}

/// Explains that the server cannot start, for instance because the system allows too few open files or threads.
fn cannot_start(error: io::Error) -> anyhow::Error {
    anyhow::Error::new(error).context("the system has too few resources (see ulimit -n and -u)")
}

fn run(flags: ServeFlags) -> anyhow::Result<()> {
    let runtime = Builder::new_multi_thread().enable_all().build();
    runtime.map_err(cannot_start)?.block_on(serve::serve(flags))
}
