//! `doorward tree`: all servers below the one that is asked.

mod walk;

use doorward_pages::terminal::{Cell, Column, Palette, Table, Tone, cell};
use doorward_proto::admin::v1::{ChildServerStatus, GetStatusRequest, GetStatusResponse};
use doorward_session::visible::line;

use crate::caller::MasterCaller;
use crate::common::{Common, Output};
use crate::failure::{Failure, Result};
use crate::granted::{gets_cell, number, span};
use crate::output;
pub(crate) use crate::tree::walk::{Place, walk};

pub(crate) async fn run(common: &Common, resource: Option<&str>) -> Result {
    let request = GetStatusRequest {
        resource_id: resource.unwrap_or_default().to_owned(),
        without_resources: resource.is_none(),
        ..GetStatusRequest::default()
    };
    let places = walk(&MasterCaller::new(common)?, &request).await?;
    output::print(common, &places, |out| match common.output {
        Output::Name => output::names(out, places.iter().map(|it| &it.node)),
        other => {
            let (has_resource, is_wide) = (resource.is_some(), other == Output::Wide);
            table(&places, has_resource, is_wide, out.palette).write(out)
        }
    })?;
    match resource {
        Some(resource) if places.iter().all(|it| it.resource().is_none()) => Err(Failure::No(
            format!("no leases of {resource} are out there"),
        )),
        _ => Ok(()),
    }
}

/// Fails for a server that knows no master: it knows nothing of leases.
pub(crate) fn needs_master(status: &GetStatusResponse) -> Result {
    let node = line(&status.node);
    let problem = format!("no master is known at {node}; doorward status says why");
    let is_master = status.is_master.then_some(());
    is_master.ok_or(Failure::No(problem))
}

/// The columns of every table.
const SERVER: &[Column<Place>] = &[
    ("server", |it, palette| {
        let indent = "  ".repeat(it.above.len());
        palette.cell(Tone::Strong, format!("{indent}{}", it.node))
    }),
    ("address", |it, _| {
        cell(it.address.as_deref().unwrap_or("?"))
    }),
    ("version", |it, _| {
        cell(it.status.as_ref().map_or("?", |it| &it.version))
    }),
];

/// Columns of all resources together.
const OF_ALL: &[Column<Place>] = &[
    // Of the resource with most clients below the server. A server itself knows a sum over all resources.
    ("clients", |it, _| {
        cell_if(it.known.as_ref().map(|it| number(it.clients_count)))
    }),
    ("leases", |it, _| {
        cell_if(it.status.as_ref().and_then(|it| it.leases_count))
    }),
];

/// Columns of one resource.
const OF_RESOURCE: &[Column<Place>] = &[
    ("clients", |it, _| {
        let lease = it.lease.as_ref().map(|it| number(it.clients_count));
        let own = it.resource().map(|it| it.clients_count.to_string());
        cell_if(own.or(lease))
    }),
    ("leases", |it, _| {
        cell_if(it.resource().map(|it| it.leases_count))
    }),
    ("wants", |it, _| of(&figures(it), |it| number(it[0]))),
    ("granted", |it, palette| match figures(it) {
        Some([wants, granted, ..]) => gets_cell(granted, wants, palette),
        None => cell(""),
    }),
    ("share", |it, _| of(&figures(it), |it| number(it[2]))),
    ("reserved", |it, _| of(&figures(it), |it| number(it[3]))),
];

/// Further columns of `--output wide`.
const WIDE: &[Column<Place>] = &[
    ("levels", |it, _| of(&it.known, |it| it.height)),
    ("epoch", |it, _| {
        cell_if(it.status.as_ref().and_then(|it| it.epoch))
    }),
    ("up for", |it, _| of(&it.status, |it| span(it.uptime_ms))),
    ("heard ago", |it, _| {
        let known = it.known.as_ref().filter(|it| !it.state.is_empty());
        cell_if(known.map(|it| span(it.heard_age_ms)))
    }),
];

/// The last columns.
const STATE: &[Column<Place>] = &[
    ("learning", |it, palette| {
        palette.cell(Tone::Partial, learning(it))
    }),
    ("state", state),
];

/// Returns a cell that is empty without a content.
fn of<P, T: ToString>(part: &Option<P>, content: impl Fn(&P) -> T) -> Cell {
    cell_if(part.as_ref().map(content))
}

fn cell_if(content: Option<impl ToString>) -> Cell {
    cell(content.map_or_else(String::new, |it| it.to_string()))
}

fn table(places: &[Place], has_resource: bool, is_wide: bool, palette: Palette) -> Table {
    let amounts = if has_resource { OF_RESOURCE } else { OF_ALL };
    let wide = if is_wide { WIDE } else { &[] };
    let columns = [SERVER, amounts, wide, STATE].concat();
    let numbers = SERVER.len()..columns.len() - STATE.len();
    Table::of(&columns, numbers, places, palette)
}

fn learning(place: &Place) -> &str {
    let states = place.status.as_ref().and_then(|it| it.states.as_ref());
    match states.map(|it| it.learning.as_str()) {
        Some("over" | "standby") => "",
        None if place.known.as_ref().is_some_and(|it| it.is_learning) => "learning",
        learning => learning.unwrap_or_default(),
    }
}

/// Returns what a child server wants, gets, should have, and may be using; of the first server, what it has in all.
fn figures(place: &Place) -> Option<[f64; 4]> {
    if let Some(it) = &place.lease {
        return Some([it.wants, it.granted, it.share, it.reserved]);
    }
    let first = place.resource().filter(|_| place.known.is_none());
    first.map(|it| [it.wants, it.granted, it.capacity, it.reserved])
}

/// Returns the state of a server, and what is wrong.
fn state(place: &Place, palette: Palette) -> Cell {
    let first = || (Tone::Good, "asked first".to_owned());
    let (tone, state) = place.known.as_ref().map_or_else(first, state_of_child);
    let unready = place.status.as_ref().and_then(|it| it.unready.as_ref());
    let unready = unready.map(|why| format!("not ready: {why}"));
    let problem = place.problem.clone().filter(|_| tone != Tone::Bad);
    match problem.or(unready) {
        None => palette.cell(tone, state),
        Some(problem) => palette.cell(Tone::Partial, format!("{state}; {problem}")),
    }
}

/// Returns what a parent says of a child server.
pub(crate) fn state_of_child(known: &ChildServerStatus) -> (Tone, String) {
    let age = span(known.state_age_ms);
    let leases = match known.leases_remaining_ms {
        Some(left) => format!("its leases last {} more", span(left)),
        None => "its leases have ended".to_owned(),
    };
    match known.state.as_str() {
        "streaming" => (Tone::Good, format!("streaming for {age}")),
        "gone" => (Tone::Bad, format!("GONE for {age}; {leases}")),
        "" => (Tone::Partial, leases),
        other => (Tone::Partial, format!("{other} for {age}")),
    }
}
