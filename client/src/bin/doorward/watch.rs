//! `doorward watch`: holds a lease, and tells when what may be used changes, when the server cannot
//! be asked, and when it can again. The lease is released at the end, however that comes.

use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use doorward_client::{Capacity, Holding, Resource, Source};
use serde::Serialize;
use tokio::sync::mpsc;
use tokio_stream::StreamExt;

use crate::caller::{new_client_id, since_epoch};
use crate::failure::Failure;
use crate::flags::{self, Common, Output, WatchFlags};
use crate::get;
use crate::interruption::interruption;
use crate::numbers::{millis, number, span};
use crate::palette::{Palette, Tone, tone_of};

/// How often to look whether something is wrong.
const LOOK_INTERVAL: Duration = Duration::from_millis(500);

/// A change, as `--output json` prints it, one a line. Its field names are an interface.
#[derive(Serialize)]
struct Change<'a> {
    /// Milliseconds since the Unix epoch.
    time_ms: u64,
    resource: &'a str,
    wants: f64,
    /// -1: no limit.
    capacity: f64,
    /// `lease` or `mode`.
    source: &'static str,
    /// How long the lease lasts; absent without one.
    expires_in_ms: Option<u64>,
    /// What is wrong, if something is.
    problem: Option<String>,
}

pub(crate) async fn run(common: &Common, flags: &WatchFlags) -> Result<(), Failure> {
    let mut interrupted = pin!(interruption()?);
    let client_id = flags.ask.client.clone().unwrap_or_else(new_client_id);
    let client = tokio::select! {
        client = get::connect(common, client_id) => client?,
        () = &mut interrupted => return Ok(()),
    };
    let watched = async {
        let resource = client
            .resource(&flags.ask.resource)
            .priority(flags.ask.priority)
            .wants(flags.ask.wants)
            .mode(flags.mode.into())
            .open()
            .map_err(|error| Failure::Usage(error.to_string()))?;
        let lease = resource.wait_for_lease(common.timeout).await;
        lease.map_err(|error| get::failure_of(&error))?;
        watch(common, flags, &resource).await
    };
    let watched: Result<(), Failure> = tokio::select! {
        watched = watched => watched,
        () = interrupted => Ok(()),
    };
    client.close().await;
    watched
}

async fn watch(common: &Common, flags: &WatchFlags, resource: &Resource) -> Result<(), Failure> {
    let mut changes = resource.changes();
    let mut typed = typed_lines();
    let end = async {
        match flags.duration {
            Some(duration) => tokio::time::sleep(duration).await,
            None => std::future::pending().await,
        }
    };
    let mut end = pin!(end);
    let mut look = tokio::time::interval(LOOK_INTERVAL);
    let mut told = Told::of(resource, &resource.holding());
    // What was typed and has no answer yet.
    let mut asked: Option<f64> = None;
    loop {
        let holding = tokio::select! {
            () = &mut end => return Ok(()),
            change = changes.next() => match change {
                Some(holding) => holding,
                None => return Ok(()),
            },
            Some(line) = typed.recv() => match flags::amount(line.trim()) {
                Ok(wants) => {
                    let asking = resource.ask(wants);
                    asking.map_err(|error| Failure::Usage(error.to_string()))?;
                    asked = Some(wants);
                    continue;
                }
                Err(_) if line.trim().is_empty() => resource.holding(),
                Err(problem) => {
                    writeln!(io::stderr(), "{problem}")?;
                    continue;
                }
            },
            // An answer may leave the capacity as it is, which is no change but news.
            _ = resource.wait_for_answer(asked.unwrap_or(0.0), common.timeout), if asked.is_some() => {
                asked = None;
                let holding = resource.holding();
                if Told::of(resource, &holding) == told {
                    continue;
                }
                holding
            }
            // So is trouble, while the lease lasts.
            _ = look.tick() => {
                if resource.problem().is_some() == told.troubled {
                    continue;
                }
                resource.holding()
            }
        };
        print(common, resource, &holding)?;
        told = Told::of(resource, &holding);
    }
}

/// What the last line said.
#[derive(PartialEq)]
struct Told {
    capacity: Capacity,
    source: Source,
    wants: f64,
    troubled: bool,
}

impl Told {
    fn of(resource: &Resource, holding: &Holding) -> Self {
        Self {
            capacity: holding.capacity,
            source: holding.source,
            wants: resource.wants(),
            troubled: resource.problem().is_some(),
        }
    }
}

fn print(common: &Common, resource: &Resource, holding: &Holding) -> Result<(), Failure> {
    let mut out = io::stdout().lock();
    let problem = resource.problem().map(|problem| problem.to_string());
    let (capacity, wants) = (get::amount_of(holding.capacity), resource.wants());
    if common.output == Output::Json {
        let change = Change {
            time_ms: millis(since_epoch()),
            resource: resource.id(),
            wants,
            capacity,
            source: match holding.source {
                Source::Lease => "lease",
                Source::Mode => "mode",
            },
            expires_in_ms: holding.remaining.map(millis),
            problem,
        };
        serde_json::to_writer(&mut out, &change).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    let palette = Palette::of_stdout(common.color);
    let time = humantime::format_rfc3339_seconds(std::time::UNIX_EPOCH + since_epoch()).to_string();
    let time = palette.paint(Tone::Quiet, &time);
    let by = match (holding.source, holding.remaining) {
        (Source::Lease, Some(remaining)) => format!("lease, expires in {}", span(remaining)),
        (Source::Lease, None) => "lease".to_owned(),
        (Source::Mode, _) => palette.paint(Tone::Bad, "no lease"),
    };
    let capacity = palette.paint(tone_of(capacity, wants), &number(capacity));
    let wants = number(wants);
    let problem = problem.map_or(String::new(), |problem| format!("; {problem}"));
    writeln!(out, "{time}  {capacity} of {wants}  ({by}{problem})")?;
    Ok(())
}

/// What is typed, line by line, if a person sits there.
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
