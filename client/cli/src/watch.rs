//! `doorward watch`: holds a lease, and prints what may be used, why it is no more, and until when:
//! whenever that changes, while the first answer is waited for, when the server cannot be asked, and when
//! it can again. It waits for a server for as long as it may run. The lease is released at the end, however that comes.

mod watch_line;

use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use doorward::{Client, ResourceError};
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use crate::caller::new_client_id;
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::flags::{self, WatchFlags};
use crate::get;
use crate::interruption::interruption;
use crate::output;
use crate::watch::watch_line::Printer;

/// Interval at which problems are looked for.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

pub(crate) async fn run(common: &Common, flags: &WatchFlags) -> Result {
    let interrupted = interruption()?;
    let mut client = None;
    let watched = tokio::select! {
        watched = hold(common, flags, &mut client) => watched,
        () = interrupted => Ok(()),
    };
    if let Some(client) = client {
        client.close().await;
    }
    watched
}

async fn hold(common: &Common, flags: &WatchFlags, client: &mut Option<Client>) -> Result {
    let id = flags.ask.client.clone().unwrap_or_else(new_client_id);
    let patience = flags.duration.unwrap_or(Duration::MAX);
    let client = client.insert(match get::connect(common, id.clone(), true).await {
        Err(Failure::Unreachable(problem)) if patience > common.timeout => {
            writeln!(output::stderr(), "{problem}; trying again")?;
            get::connect(common, id, false).await?
        }
        connected => connected?,
    });
    let resource = client
        .resource(&flags.ask.resource)
        .priority(flags.ask.priority)
        .wants(flags.ask.wants)
        .open()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let mut printer = Printer::new(common, flags, &resource);
    wait_for_lease(&mut printer).await?;
    watch(&mut printer).await
}

/// Waits for the first lease, and prints the reason of the wait.
async fn wait_for_lease(printer: &mut Printer<'_>) -> Result {
    let resource = printer.resource;
    let patience = printer.flags.duration.unwrap_or(Duration::MAX);
    let patience = patience.max(printer.common.timeout);
    let mut lease = pin!(resource.wait_for_lease(patience));
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    look.tick().await;
    loop {
        tokio::select! {
            lease = &mut lease => {
                lease.map_err(|error| match error {
                    ResourceError::NotConnected(_) => Failure::Unreachable(error.to_string()),
                    _ => Failure::No(error.to_string()),
                })?;
                return printer.print(&resource.holding());
            }
            _ = look.tick() => printer.print_if_new(&resource.holding())?,
        }
    }
}

async fn watch(printer: &mut Printer<'_>) -> Result {
    let (resource, timeout) = (printer.resource, printer.common.timeout);
    let mut changes = resource.changes();
    let mut typed = typed_lines();
    let mut end = pin!(tokio::time::sleep(
        printer.flags.duration.unwrap_or(Duration::MAX)
    ));
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    // Demand that was typed and has no answer yet.
    let mut asked: Option<f64> = None;
    loop {
        tokio::select! {
            () = &mut end => return Ok(()),
            change = changes.next() => match change {
                Some(holding) => printer.print_if_new(&holding)?,
                None => return Ok(()),
            },
            Some(line) = typed.recv() => match flags::amount(line.trim()) {
                Ok(wants) => {
                    let asking = resource.ask(wants);
                    asking.map_err(|error| Failure::Usage(error.to_string()))?;
                    asked = Some(wants);
                }
                Err(_) if line.trim().is_empty() => printer.print(&resource.holding())?,
                Err(problem) => writeln!(output::stderr(), "{problem}")?,
            },
            // An answer may leave the capacity as it is, which is no change but news.
            _ = resource.wait_for_answer(asked.unwrap_or(0.0), timeout), if asked.is_some() => {
                asked = None;
                printer.print_if_new(&resource.holding())?;
            }
            // So is trouble, while the lease lasts. A typed demand is printed with its answer.
            _ = look.tick(), if asked.is_none() => {
                printer.print_if_new(&resource.holding())?;
            }
        }
    }
}

/// Reads lines from the keyboard, if standard input is a terminal.
fn typed_lines() -> mpsc::Receiver<String> {
    let (sender, receiver) = mpsc::channel(8);
    if io::stdin().is_terminal() {
        // Ends with the process: reading a line cannot be interrupted.
        std::thread::spawn(move || {
            for line in io::stdin().lines().map_while(Result::ok) {
                if sender.blocking_send(line).is_err() {
                    return;
                }
            }
        });
    }
    receiver
}
