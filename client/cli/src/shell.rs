//! `doorward shell`: plays several clients at once.
//!
//! Each client keeps what it was given, and says so when it asks again, as real ones do. Leases
//! are refreshed in the background for as long as the shell lives, so that what `show` says is
//! true; at the end everything is released. Commands come from the keyboard, with history, or from
//! a script on standard input.
//!
//! An interactive shell goes on after a failure, and Ctrl-C gives up the command under way. A script goes on too, but
//! the last failure is its exit code, and Ctrl-C ends it.

mod keyboard;
mod session;
mod typed_line;

use std::io::{self, IsTerminal, Write};
use std::pin::Pin;

use crate::caller::MasterCaller;
use crate::color::ColorFlag;
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::interruption::{interruption, termination};
use crate::output;
use doorward_pages::terminal::Tone;

use keyboard::Lines;
use session::ShellSession;
use typed_line::ShellLine;

pub(crate) async fn run(common: &Common) -> Result<(), Failure> {
    // Reports wrong addresses before the first prompt.
    MasterCaller::new(common)?;
    let interactive = io::stdin().is_terminal();
    let palette = common.color.of_stdout();
    let mut session = ShellSession::new(common.clone(), palette);
    if interactive && common.output != Output::Json {
        let servers = common.addresses().join(", ");
        let hint =
            format!("Asking {servers}. help lists the commands; Ctrl-D releases and leaves.");
        writeln!(output::stdout(), "{}", palette.paint(Tone::Quiet, &hint))?;
    }
    let ended: Pin<Box<dyn Future<Output = ()>>> = match interactive {
        true => Box::pin(termination()?),
        false => Box::pin(interruption()?),
    };
    let lines = keyboard::read(interactive);
    let outcome = tokio::select! {
        outcome = play_all(&mut session, common.color, lines, !interactive) => outcome,
        () = ended => match interactive {
            true => Ok(()),
            false => Err(Failure::No("the script was interrupted".to_owned())),
        },
    };
    session.close().await;
    outcome
}

/// Plays lines: typed ones, of which Ctrl-C gives one up, or those of a script, whose last failure is that of the script.
async fn play_all(
    session: &mut ShellSession,
    color: ColorFlag,
    (mut lines, done): Lines,
    is_script: bool,
) -> Result<(), Failure> {
    let mut failed: Option<Failure> = None;
    let (mut failures, mut number) = (0, 0);
    while let Some(line) = lines.recv().await {
        number += 1;
        let played = tokio::select! {
            played = play(session, &line) => played,
            _ = tokio::signal::ctrl_c(), if !is_script => Err(Failure::No("given up".to_owned())),
        };
        match played {
            Ok(true) => {}
            Ok(false) => break,
            Err(failure) if !is_script => complain(color, &failure.to_string())?,
            // The reader of the output is gone.
            Err(Failure::Output(error)) => return Err(Failure::Output(error)),
            Err(failure) => {
                complain(color, &format!("line {number}: {failure}"))?;
                failures += 1;
                failed = Some(failure);
            }
        }
        // The prompt comes back.
        if done.send(()).await.is_err() {
            break;
        }
    }
    match failed {
        // The last one decides the exit code; all of them were printed when they happened.
        Some(failure) => Err(failure.of_script(failures)),
        None => Ok(()),
    }
}

/// Plays a line. Returns whether the shell goes on.
async fn play(session: &mut ShellSession, line: &str) -> Result<bool, Failure> {
    match typed_line::parse(line).map_err(Failure::Usage)? {
        ShellLine::Quit => Ok(false),
        line => session.play(line).await.map(|()| true),
    }
}

fn complain(color: ColorFlag, problem: &str) -> io::Result<()> {
    let palette = color.of_stderr();
    writeln!(output::stderr(), "{}", palette.paint(Tone::Bad, problem))
}
