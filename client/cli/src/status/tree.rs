//! What `doorward status` says of a server's place in the tree: its parent, its own leases, its
//! child servers.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::Cell;
use doorward_proto::admin::v1 as admin;
use doorward_session::visible::{self, line};
use serde::Serialize;

use crate::numbers::{number, span};
use crate::palette::{Palette, Tone, tone_of};
use crate::status::some;
use crate::table::{Table, cell};

#[derive(Serialize)]
pub(super) struct ParentStatus {
    /// As configured.
    addresses: Vec<String>,
    /// The one that is asked now.
    address: String,
    /// `down`, `poll` or `stream`.
    link: String,
    link_age_ms: u64,
    problem: Option<String>,
}

#[derive(Serialize)]
pub(super) struct OwnLeaseStatus {
    capacity: f64,
    share: f64,
    outstanding: f64,
    /// Absent: there is no lease.
    expires_in_ms: Option<u64>,
    is_in_flight: bool,
    refused: Option<String>,
    /// Absent: nobody above is in learning mode, or the server does not say.
    parent_learns_for_ms: Option<u64>,
}

#[derive(Serialize)]
pub(super) struct ChildStatus {
    pub(super) child: String,
    clients: f64,
    wants: f64,
    share: f64,
    granted: f64,
    reserved: f64,
    /// Absent: it has no lease yet.
    has: Option<f64>,
    /// Absent: it does not say.
    outstanding: Option<f64>,
    is_learning: bool,
    height: u32,
    /// 0: it is of the old kind.
    curve_points: u64,
    expires_in_ms: u64,
    refresh_interval_ms: u64,
    why: String,
}

/// Where the server's capacity comes from.
pub(super) fn write_parent(
    out: &mut impl Write,
    parent: Option<&ParentStatus>,
    ancestors: &[String],
    is_in_cycle: bool,
    palette: Palette,
) -> io::Result<()> {
    let Some(parent) = parent else {
        return writeln!(out, "no parent: this is the root");
    };
    let name = match ancestors.first() {
        Some(name) => format!("{} at ", palette.paint(Tone::Strong, &line(name))),
        None => String::new(),
    };
    let link = match parent.link.as_str() {
        "down" => palette.paint(Tone::Bad, "OUT OF REACH"),
        "stream" => palette.paint(Tone::Good, "stream"),
        "idle" => palette.paint(Tone::Partial, "not asked (only the master does)"),
        other => palette.paint(Tone::Partial, &line(other)),
    };
    let age = span(Duration::from_millis(parent.link_age_ms));
    write!(
        out,
        "parent: {name}{}, {link} for {age}",
        line(&parent.address)
    )?;
    if let Some((_, above @ [_, ..])) = ancestors.split_first() {
        let above = above.join(", ");
        write!(out, "; above it: {}", line(&above))?;
    }
    writeln!(out)?;
    for line in parent.problem.iter().flat_map(|problem| problem.lines()) {
        writeln!(out, "  {}", visible::line(line))?;
    }
    if is_in_cycle {
        let cycle = palette.paint(Tone::Bad, "this node is its OWN ANCESTOR");
        writeln!(
            out,
            "{cycle}, and leases nothing: check --node and --parent of the servers above it"
        )?;
    }
    Ok(())
}

impl OwnLeaseStatus {
    /// What is to be told of it among the states of a resource, if anything.
    pub(super) fn state(&self) -> Option<(Tone, String)> {
        if self.refused.is_some() {
            Some((Tone::Bad, "refused by the parent".to_owned()))
        } else if self.expires_in_ms.is_none() {
            Some((Tone::Partial, "waits for the parent".to_owned()))
        } else {
            None
        }
    }

    /// What is to be told of a server above that is in learning mode, if one is.
    pub(super) fn learning_above(&self) -> Option<(Tone, String)> {
        let left = Duration::from_millis(self.parent_learns_for_ms?);
        Some((Tone::Partial, format!("learning above for {}", span(left))))
    }

    pub(super) fn write(&self, out: &mut impl Write, palette: Palette) -> io::Result<()> {
        let title = palette.paint(Tone::Quiet, "own lease");
        write!(out, "{title}: ")?;
        if let Some(why) = &self.refused {
            let refused = palette.paint(Tone::Bad, "REFUSED by the parent");
            write!(out, "{refused}: {}; ", line(why))?;
        }
        match self.expires_in_ms {
            Some(left) => write!(
                out,
                "{} of a share of {}, for {} more",
                number(self.capacity),
                number(self.share),
                span(Duration::from_millis(left))
            )?,
            None => write!(out, "none")?,
        }
        write!(out, ", {} outstanding", number(self.outstanding))?;
        if self.is_in_flight {
            write!(out, "; the parent is asked and has not answered yet")?;
        }
        writeln!(out)
    }
}

impl ChildStatus {
    /// Under its resource, in the columns of the table of resources.
    pub(super) fn row(&self, palette: Palette) -> [Cell; 9] {
        [
            cell(format!("  {}", self.child)),
            cell(""),
            cell(""),
            cell(number(self.wants)),
            palette.cell(tone_of(self.granted, self.wants), number(self.granted)),
            cell(number(self.reserved)),
            cell(number(self.clients)),
            cell(""),
            self.state(palette),
        ]
    }

    fn state(&self, palette: Palette) -> Cell {
        match (self.is_learning, self.curve_points) {
            (true, 0) => palette.cell(Tone::Partial, "learning, counts only"),
            (true, _) => palette.cell(Tone::Partial, "learning"),
            (false, 0) => cell("counts only"),
            (false, _) => cell(""),
        }
    }
}

/// Everything about the child servers of a resource.
pub(super) fn children_table(children: &[ChildStatus], palette: Palette) -> Table {
    let header = [
        "child server",
        "levels",
        "clients",
        "wants",
        "share",
        "granted",
        "reserved",
        "outstanding",
        "expires in",
        "state",
        "why",
    ];
    let mut table = Table::new(header, 1..9, palette);
    for child in children {
        table.add([
            palette.cell(Tone::Strong, &child.child),
            cell(child.height),
            cell(number(child.clients)),
            cell(number(child.wants)),
            cell(number(child.share)),
            palette.cell(tone_of(child.granted, child.wants), number(child.granted)),
            cell(number(child.reserved)),
            cell(child.outstanding.map_or("?".to_owned(), number)),
            cell(span(Duration::from_millis(child.expires_in_ms))),
            child.state(palette),
            cell(&child.why),
        ]);
    }
    table
}

impl From<admin::ParentStatus> for ParentStatus {
    fn from(parent: admin::ParentStatus) -> Self {
        Self {
            addresses: parent.configured_address,
            address: parent.address,
            link: parent.link,
            link_age_ms: parent.link_age_ms,
            problem: some(parent.problem),
        }
    }
}

impl From<admin::OwnLeaseStatus> for OwnLeaseStatus {
    fn from(lease: admin::OwnLeaseStatus) -> Self {
        Self {
            capacity: lease.capacity,
            share: lease.share,
            outstanding: lease.outstanding,
            expires_in_ms: lease.expires_in_ms,
            is_in_flight: lease.is_in_flight,
            refused: some(lease.refused),
            parent_learns_for_ms: lease.parent_learns_for_ms,
        }
    }
}

impl From<admin::ChildStatus> for ChildStatus {
    fn from(child: admin::ChildStatus) -> Self {
        Self {
            child: child.child,
            clients: child.clients,
            wants: child.wants,
            share: child.share,
            granted: child.granted,
            reserved: child.reserved,
            has: child.has,
            outstanding: child.outstanding,
            is_learning: child.is_learning,
            height: child.height,
            curve_points: child.curve_points,
            expires_in_ms: child.expires_in_ms,
            refresh_interval_ms: child.refresh_interval_ms,
            why: child.why,
        }
    }
}
