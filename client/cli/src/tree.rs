//! `doorward tree`: all servers below the one that is asked.

mod walk;

use doorward_pages::terminal::palette::{Palette, Tone};
use doorward_pages::terminal::table::{Cell, Table, cell};
use doorward_proto::admin::v1::{ChildServerStatus, GetStatusRequest, GetStatusResponse};
use doorward_session::visible::line;

use crate::caller::MasterCaller;
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::TreeFlags;
use crate::granted::{number, span, tone_of};
use crate::output;
pub(crate) use crate::tree::walk::{Place, walk};

pub(crate) async fn run(common: &Common, flags: &TreeFlags) -> Result<(), Failure> {
    let request = GetStatusRequest {
        resource_id: flags.resource.clone().unwrap_or_default(),
        without_resources: flags.resource.is_none(),
        ..GetStatusRequest::default()
    };
    let places = walk(&MasterCaller::new(common)?, &request).await?;
    let mut out = output::stdout();
    match common.output {
        Output::Json => output::json(&mut out, &places)?,
        Output::Name => output::names(&mut out, places.iter().map(|it| &it.node))?,
        _ => {
            let is_wide = common.output == Output::Wide;
            let table = table(
                &places,
                flags.resource.is_some(),
                is_wide,
                common.color.of_stdout(),
            );
            table.write(&mut out)?;
        }
    }
    match &flags.resource {
        Some(resource) if places.iter().all(|it| it.resource().is_none()) => Err(Failure::No(
            format!("no leases of {resource} are out there"),
        )),
        _ => Ok(()),
    }
}

/// Fails for a server that knows no master: it knows nothing of leases.
pub(crate) fn needs_master(status: &GetStatusResponse) -> Result<(), Failure> {
    let node = line(&status.node);
    let problem = format!("no master is known at {node}; doorward status says why");
    let is_master = status.is_master.then_some(());
    is_master.ok_or(Failure::No(problem))
}

fn table(places: &[Place], has_resource: bool, is_wide: bool, palette: Palette) -> Table {
    let mut header = vec!["server", "address", "version", "clients", "leases"];
    if has_resource {
        header.extend(["wants", "granted", "share", "reserved"]);
    }
    if is_wide {
        header.extend(["levels", "epoch", "up for", "heard ago"]);
    }
    let numbers = 3..header.len();
    header.extend(["learning", "state"]);
    let mut table = Table::new(header, numbers, palette);
    for place in places {
        let (status, known) = (place.status.as_ref(), place.known.as_ref());
        let [clients, leases] = counts(place, has_resource);
        let indent = "  ".repeat(place.above.len());
        let mut row = vec![
            palette.cell(Tone::Strong, format!("{indent}{}", place.node)),
            cell(place.address.as_deref().unwrap_or("?")),
            cell(status.map_or("?", |it| &it.version)),
            cell(clients),
            cell(leases),
        ];
        if has_resource {
            row.extend(match figures(place) {
                None => [(); 4].map(|()| cell("")),
                Some([wants, granted, share, reserved]) => [
                    cell(number(wants)),
                    palette.cell(tone_of(granted, wants), number(granted)),
                    cell(number(share)),
                    cell(number(reserved)),
                ],
            });
        }
        if is_wide {
            row.extend(
                [
                    known.map(|it| it.height.to_string()),
                    status.and_then(|it| it.epoch).map(|it| it.to_string()),
                    status.map(|it| span(it.uptime_ms)),
                    known
                        .filter(|it| !it.state.is_empty())
                        .map(|it| span(it.heard_age_ms)),
                ]
                .map(|it| cell(it.unwrap_or_default())),
            );
        }
        let learning = status
            .and_then(|it| it.states.as_ref())
            .map(|it| it.learning.as_str());
        let learning = match learning {
            Some("over" | "standby") => "",
            None if known.is_some_and(|it| it.is_learning) => "learning",
            learning => learning.unwrap_or_default(),
        };
        row.extend([palette.cell(Tone::Partial, learning), state(place, palette)]);
        table.add(row);
    }
    table
}

/// Returns the numbers of clients and of leases of a server: of the named resource, or of all.
fn counts(place: &Place, has_resource: bool) -> [String; 2] {
    let status = place.status.as_ref();
    // Of the resource with most clients below the server. A server itself knows a sum over all resources.
    let known = place.known.as_ref().map(|it| it.clients_count);
    let lease = place.lease.as_ref().map(|it| it.clients_count);
    let (clients, leases) = match (place.resource(), has_resource) {
        (Some(it), true) => (Some(it.clients_count as f64), Some(it.leases_count)),
        (None, true) => (lease, None),
        (_, false) => (known, status.and_then(|it| it.leases_count)),
    };
    let leases = leases.map_or_else(String::new, |it| it.to_string());
    [clients.map_or_else(String::new, number), leases]
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
    match place
        .problem
        .clone()
        .filter(|_| tone != Tone::Bad)
        .or(unready)
    {
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
