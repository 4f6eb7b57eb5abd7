//! A server's place in the tree in `doorward status`: its parent, its own leases, its child servers.

use std::io::{self, Write};

use doorward_pages::terminal::{Cell, Column, Palette, Tone, cell};
use doorward_proto::admin::v1::{ChildStatus, GetStatusResponse as Status, OwnLeaseStatus};
use doorward_session::visible::{self, line};

use crate::granted::{gets_cell, number, span, strong};
use crate::output::Out;
use crate::status::reasoned_table;

/// Where the server's capacity comes from.
pub(super) fn write_parent(out: &mut Out<impl Write>, status: &Status) -> io::Result<()> {
    let ancestors = &status.ancestors;
    let Some(parent) = &status.parent else {
        return writeln!(out, "no parent: this is the root");
    };
    let name = match ancestors.first() {
        Some(name) => format!("{} at ", out.paint(Tone::Strong, &line(name))),
        None => String::new(),
    };
    let link = match parent.link.as_str() {
        "down" => out.paint(Tone::Bad, "OUT OF REACH"),
        "stream" => out.paint(Tone::Good, "stream"),
        "idle" => out.paint(Tone::Partial, "not asked (only the master does)"),
        other => out.paint(Tone::Partial, &line(other)),
    };
    let (address, age) = (line(&parent.address), span(parent.link_age_ms));
    write!(out, "parent: {name}{address}, {link} for {age}")?;
    if let Some((_, above @ [_, ..])) = ancestors.split_first() {
        let above = above.join(", ");
        write!(out, "; above it: {}", line(&above))?;
    }
    writeln!(out)?;
    for line in parent.problem.iter().flat_map(|problem| problem.lines()) {
        writeln!(out, "  {}", visible::line(line))?;
    }
    if status.is_in_cycle {
        let cycle = out.paint(Tone::Bad, "this node is its OWN ANCESTOR");
        let advice = "check --node and --parent of the servers above it";
        writeln!(out, "{cycle}, and leases nothing: {advice}")?;
    }
    Ok(())
}

/// A line about a server's own lease.
pub(super) fn write_own_lease(
    out: &mut Out<impl Write>,
    lease: &OwnLeaseStatus,
    has_lease: bool,
) -> io::Result<()> {
    let title = out.paint(Tone::Quiet, "own lease");
    write!(out, "{title}: ")?;
    if let Some(why) = &lease.refusal {
        let refused = out.paint(Tone::Bad, "REFUSED by the parent");
        write!(out, "{refused}: {}; ", line(why))?;
    }
    let [capacity, share, below] = [lease.capacity, lease.share, lease.outstanding].map(number);
    match (has_lease, lease.expires_in_ms.map(span)) {
        (true, Some(left)) => write!(out, "{capacity} (share {share}), expires in {left}")?,
        (true, None) => write!(out, "{capacity} (share {share})")?,
        (false, _) => write!(out, "none")?,
    }
    write!(out, "; up to {below} in use below")?;
    if lease.is_in_flight {
        write!(out, "; the parent is asked and has not answered yet")?;
    }
    writeln!(out)
}

/// A child server under its resource, in the columns of the table of resources.
pub(super) fn row(child: &ChildStatus, palette: Palette) -> [Cell; 9] {
    [
        cell(format!("  {}", child.child)),
        cell(""),
        cell(""),
        cell(number(child.wants)),
        gets_cell(child.granted, child.wants, palette),
        cell(number(child.reserved)),
        cell(number(child.clients_count)),
        cell(""),
        state_of_child(child, palette),
    ]
}

fn state_of_child(child: &ChildStatus, palette: Palette) -> Cell {
    match (child.is_learning, child.curve_points) {
        (false, _) if child.wants_more => palette.cell(Tone::Partial, "cut by subclients_max"),
        (true, 0) => palette.cell(Tone::Partial, "learning, counts only"),
        (true, _) => palette.cell(Tone::Partial, "learning"),
        (false, 0) => cell("counts only"),
        (false, _) => cell(""),
    }
}

/// The columns of child servers, apart from the reason.
const CHILD: &[Column<ChildStatus>] = &[
    ("child server", |it, palette| strong(&it.child, palette)),
    ("levels", |it, _| cell(it.height)),
    ("clients", |it, _| cell(number(it.clients_count))),
    ("wants", |it, _| cell(number(it.wants))),
    ("share", |it, _| cell(number(it.share))),
    ("granted", |it, palette| {
        gets_cell(it.granted, it.wants, palette)
    }),
    ("reserved", |it, _| cell(number(it.reserved))),
    ("outstanding", |it, _| {
        cell(it.outstanding.map_or("?".to_owned(), number))
    }),
    ("expires in", |it, _| cell(span(it.expires_in_ms))),
    ("state", state_of_child),
];

/// Writes everything about the child servers of a resource.
pub(super) fn write_children(
    out: &mut Out<impl Write>,
    children: &[ChildStatus],
) -> io::Result<()> {
    let why: Column<ChildStatus> = ("why", |it, _| cell(&it.why));
    reasoned_table::write(out, CHILD, 1..9, why, children)
}
