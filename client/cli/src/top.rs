//! `doorward top`: what is short of capacity, the worst first.
//!
//! Short is what is wanted and not granted. Resources are sorted by its part of their wants, holders by amount.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use crossterm::cursor::MoveTo;
use crossterm::terminal::{self, Clear, ClearType};
use crossterm::{execute, queue};
use doorward_pages::numbers::{moment, percent};
use doorward_pages::terminal::{Tone, cell};
use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse as Status, ResourceStatus};
use doorward_session::visible::line;
use tokio::time::{MissedTickBehavior, interval};

use crate::caller::MasterCaller;
use crate::common::{Common, Output};
use crate::failure::{Failure, Result};
use crate::output::{self, Out};
use crate::status::tables::{Columns, resources_table, write_leases};
use crate::tree::{needs_master, state_of_child};

/// Time between two readings.
const EVERY: Duration = Duration::from_secs(1);

/// Holders of a resource that are read, at most.
const HOLDERS_MAX: u32 = 10_000;

/// Lines of a terminal that are not for rows.
const OTHER_LINES: u16 = 4;

/// The part of the wants that is short.
const SHORT: &Columns = &[("short", |it, _| cell(percent(short(it))))];

pub(crate) async fn run(common: &Common, resource: Option<&str>, once: bool) -> Result {
    let caller = MasterCaller::new(common)?;
    let request = GetStatusRequest {
        resource_id: resource.unwrap_or_default().to_owned(),
        leases_max: resource.map_or(0, |_| HOLDERS_MAX),
        ..GetStatusRequest::default()
    };
    let is_table = matches!(common.output, Output::Table | Output::Wide);
    let is_live = is_table && !once && io::stdout().is_terminal();
    let mut ticks = interval(EVERY);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut shown = Status::default();
    loop {
        ticks.tick().await;
        let status = caller.status(request.clone(), false).await;
        let problem = match status.and_then(|it| needs_master(&it).map(|()| it)) {
            Ok(status) => {
                shown = sorted(status);
                String::new()
            }
            // It may be away for a moment.
            Err(failure) if is_live && !shown.node.is_empty() => failure.to_string(),
            Err(failure) => return Err(failure),
        };
        let mut text = output::buffer();
        write(&mut text, common, (resource, is_live), &shown, &problem)?;
        let text = text.into_inner();
        if is_live {
            draw(&String::from_utf8_lossy(&text))?;
            continue;
        }
        io::stdout().write_all(&text)?;
        return match resource {
            Some(resource) if shown.resources.is_empty() => {
                Err(Failure::No(format!("no leases of {resource} are out")))
            }
            _ => Ok(()),
        };
    }
}

/// Draws over what was drawn before.
fn draw(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    queue!(out, MoveTo(0, 0))?;
    for line in text.lines() {
        write!(out, "{line}")?;
        queue!(out, Clear(ClearType::UntilNewLine))?;
        writeln!(out)?;
    }
    execute!(out, Clear(ClearType::FromCursorDown))
}

/// Whether less is granted than wanted, apart from roundings.
fn is_short(wants: f64, granted: f64) -> bool {
    granted < wants * (1.0 - 1e-6)
}

/// Returns the part of the wants that is not granted; 0 for an algorithm that keeps no total.
fn short(resource: &ResourceStatus) -> f64 {
    let keeps_total = !matches!(resource.algorithm(), "STATIC" | "NO_ALGORITHM");
    match is_short(resource.wants, resource.granted) && keeps_total {
        true => (resource.wants - resource.granted) / resource.wants,
        false => 0.0,
    }
}

fn sorted(mut status: Status) -> Status {
    for resource in &mut status.resources {
        resource.children.clear();
        let leases = &mut resource.leases;
        leases.sort_by(|a, b| (b.wants - b.granted).total_cmp(&(a.wants - a.granted)));
    }
    let resources = &mut status.resources;
    resources.sort_by(|a, b| short(b).total_cmp(&short(a)));
    status
}

fn write(
    out: &mut Out<impl Write>,
    common: &Common,
    (resource, is_live): (Option<&str>, bool),
    status: &Status,
    problem: &str,
) -> io::Result<()> {
    let all = &status.resources;
    let of_resource = all.first().filter(|_| resource.is_some());
    match (common.output, of_resource) {
        (Output::Json, _) => return output::json(out, all),
        (Output::Name, None) => return output::names(out, all.iter().map(|it| &it.resource_id)),
        (Output::Name, Some(it)) => {
            return output::names(out, it.leases.iter().map(|it| &it.holder));
        }
        _ => {}
    }
    let rows = match terminal::size() {
        Ok((_, height)) if is_live => height.saturating_sub(OTHER_LINES).max(1).into(),
        _ => usize::MAX,
    };
    let (short, count, what) = match of_resource {
        None => {
            let short = all.iter().filter(|it| short(it) > 0.0);
            (short.count(), all.len() as u64, "resources")
        }
        Some(it) => {
            let short = it.leases.iter().filter(|it| is_short(it.wants, it.granted));
            (short.count(), it.leases.len() as u64, "holders")
        }
    };
    let unread = of_resource.map_or(0, |it| it.leases_count.saturating_sub(count));
    let unread = match unread {
        0 => String::new(),
        unread => format!("; {unread} more are not listed"),
    };
    let node = out.paint(Tone::Strong, &line(&status.node));
    let address = line(status.master_address());
    let now = moment(doorward_clock::wall());
    writeln!(
        out,
        "{node} {address}, {now}: {short} of {count} {what} are short{unread}"
    )?;
    for child in status.children.iter().filter(|it| it.state == "gone") {
        let (tone, state) = state_of_child(child);
        let child = line(&child.child);
        let text = format!("{child}: {state}; its clients count no longer than its leases");
        out.say(tone, &text)?;
    }
    out.say(Tone::Bad, &line(problem))?;
    match of_resource {
        Some(it) => {
            let leases = it.leases.iter().take(rows).map(|it| (None, it));
            write_leases(out, &leases.collect::<Vec<_>>())
        }
        None => resources_table(all.iter().take(rows), SHORT, out.palette).write(out),
    }
}
