//! `doorward status`: what the server holds, and why.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::Cell;
use doorward_proto::admin::v1 as admin;
use serde::Serialize;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::flags::{Common, Output, StatusFlags};
use crate::numbers::{number, span};
use crate::palette::{Palette, Tone, tone_of};
use crate::table::Table;

/// Leases that are listed of a resource that was named.
const LEASES_LISTED: u32 = 100;

/// The server, as `--output json` prints it. Its field names are an interface.
#[derive(Serialize)]
struct Status {
    node: String,
    version: String,
    is_master: bool,
    master_address: Option<String>,
    epoch: u64,
    uptime_ms: u64,
    templates_source: String,
    templates: u32,
    templates_problem: Option<String>,
    resources: Vec<ResourceStatus>,
}

#[derive(Serialize)]
struct ResourceStatus {
    resource_id: String,
    /// Absent: the template is gone, and the leases run down.
    template: Option<String>,
    description: String,
    algorithm: String,
    capacity: f64,
    /// -1: no limit.
    safe_capacity: f64,
    wants: f64,
    granted: f64,
    reserved: f64,
    leases_count: u64,
    clients_count: u64,
    waiting_count: u64,
    learning_remaining_ms: u64,
    lease_length_ms: u64,
    refresh_interval_ms: u64,
    leases: Vec<LeaseStatus>,
}

#[derive(Serialize)]
struct LeaseStatus {
    holder: String,
    kind: String,
    priority: i64,
    subclients: f64,
    wants: f64,
    share: f64,
    granted: f64,
    reserved: f64,
    expires_in_ms: u64,
    refresh_interval_ms: u64,
    why: String,
}

pub(crate) async fn run(common: &Common, flags: &StatusFlags) -> Result<(), Failure> {
    let caller = Caller::new(common)?;
    let leases_max = flags.leases.unwrap_or(if flags.resource.is_some() {
        LEASES_LISTED
    } else {
        0
    });
    let request = admin::GetStatusRequest {
        resource_id: flags.resource.clone().unwrap_or_default(),
        leases_max,
    };
    let status = Status::from(caller.status(request, flags.here).await?);
    let mut out = io::stdout().lock();
    if common.output == Output::Json {
        serde_json::to_writer(&mut out, &status).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write_text(&mut out, &status, Palette::of_stdout(common.color))?;
    }
    match &flags.resource {
        Some(resource) if status.resources.is_empty() => {
            let where_else = match &status.master_address {
                Some(master) if !status.is_master => format!(" here; the master is at {master}"),
                _ => String::new(),
            };
            Err(Failure::No(format!(
                "nobody holds anything of {resource}{where_else}"
            )))
        }
        _ => Ok(()),
    }
}

fn write_text(out: &mut impl Write, status: &Status, palette: Palette) -> io::Result<()> {
    let mastership = match (&status.master_address, status.is_master) {
        (_, true) => palette.paint(Tone::Good, "master"),
        (Some(address), false) => {
            palette.paint(Tone::Partial, "not the master") + ", which is at " + address
        }
        (None, false) => palette.paint(Tone::Bad, "no master is known"),
    };
    let epoch = match status.epoch {
        0 => String::new(),
        epoch => format!(", epoch {epoch}"),
    };
    let up = span(Duration::from_millis(status.uptime_ms));
    let node = palette.paint(Tone::Strong, &status.node);
    writeln!(
        out,
        "{node} {}: {mastership}{epoch}, up for {up}",
        status.version
    )?;
    let (count, source) = (status.templates, &status.templates_source);
    let plural = if count == 1 { "" } else { "s" };
    writeln!(out, "{count} template{plural} from {source}")?;
    if let Some(problem) = &status.templates_problem {
        let refused = palette.paint(Tone::Bad, "newer templates were REFUSED");
        writeln!(out, "{refused}, these stay in force:")?;
        for line in problem.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out)?;
    if status.resources.is_empty() {
        return writeln!(out, "no leases are out");
    }
    resources_table(&status.resources, palette).write(out)?;
    for resource in &status.resources {
        if resource.leases.is_empty() {
            continue;
        }
        let id = palette.paint(Tone::Strong, &resource.resource_id);
        let about = match resource.description.as_str() {
            "" => String::new(),
            description => format!(": {description}"),
        };
        writeln!(out, "\n{id}{about}")?;
        leases_table(&resource.leases, palette).write(out)?;
        let left = resource
            .leases_count
            .saturating_sub(resource.leases.len() as u64);
        if left > 0 {
            writeln!(out, "and {left} more; --leases lists more")?;
        }
    }
    Ok(())
}

fn resources_table(resources: &[ResourceStatus], palette: Palette) -> Table {
    let header = [
        "resource",
        "algorithm",
        "capacity",
        "wants",
        "granted",
        "reserved",
        "clients",
        "waiting",
        "state",
    ];
    let mut table = Table::new(header, 2..8, palette);
    for resource in resources {
        let learning = Duration::from_millis(resource.learning_remaining_ms);
        let state = match (&resource.template, learning) {
            (None, _) => palette.cell(Tone::Bad, "template gone"),
            (Some(_), Duration::ZERO) => Cell::new(""),
            (Some(_), learning) => {
                palette.cell(Tone::Partial, format!("learning for {}", span(learning)))
            }
        };
        let waiting = match resource.waiting_count {
            0 => Cell::new(0),
            waiting => palette.cell(Tone::Partial, waiting),
        };
        table.add([
            palette.cell(Tone::Strong, &resource.resource_id),
            Cell::new(&resource.algorithm),
            Cell::new(number(resource.capacity)),
            Cell::new(number(resource.wants)),
            palette.cell(
                tone_of(resource.granted, resource.wants),
                number(resource.granted),
            ),
            Cell::new(number(resource.reserved)),
            Cell::new(resource.clients_count),
            waiting,
            state,
        ]);
    }
    table
}

fn leases_table(leases: &[LeaseStatus], palette: Palette) -> Table {
    let header = [
        "holder",
        "priority",
        "wants",
        "share",
        "granted",
        "reserved",
        "expires in",
        "why",
    ];
    let mut table = Table::new(header, 1..7, palette);
    for lease in leases {
        let holder = match lease.kind.as_str() {
            "client" => lease.holder.clone(),
            kind => format!("{kind} {}", lease.holder),
        };
        table.add([
            palette.cell(Tone::Strong, holder),
            Cell::new(lease.priority),
            Cell::new(number(lease.wants)),
            Cell::new(number(lease.share)),
            palette.cell(tone_of(lease.granted, lease.wants), number(lease.granted)),
            Cell::new(number(lease.reserved)),
            Cell::new(span(Duration::from_millis(lease.expires_in_ms))),
            Cell::new(&lease.why),
        ]);
    }
    table
}

impl From<admin::GetStatusResponse> for Status {
    fn from(status: admin::GetStatusResponse) -> Self {
        let some = |text: String| (!text.is_empty()).then_some(text);
        Self {
            node: status.node,
            version: status.version,
            is_master: status.is_master,
            master_address: some(status.master_address),
            epoch: status.epoch,
            uptime_ms: status.uptime_ms,
            templates_source: status.templates_source,
            templates: status.templates,
            templates_problem: some(status.templates_problem),
            resources: status
                .resource
                .into_iter()
                .map(ResourceStatus::from)
                .collect(),
        }
    }
}

impl From<admin::ResourceStatus> for ResourceStatus {
    fn from(resource: admin::ResourceStatus) -> Self {
        Self {
            resource_id: resource.resource_id,
            template: (!resource.template.is_empty()).then_some(resource.template),
            description: resource.description,
            algorithm: resource.algorithm,
            capacity: resource.capacity,
            safe_capacity: resource.safe_capacity,
            wants: resource.wants,
            granted: resource.granted,
            reserved: resource.reserved,
            leases_count: resource.leases_count,
            clients_count: resource.clients_count,
            waiting_count: resource.waiting_count,
            learning_remaining_ms: resource.learning_remaining_ms,
            lease_length_ms: resource.lease_length_ms,
            refresh_interval_ms: resource.refresh_interval_ms,
            leases: resource.lease.into_iter().map(LeaseStatus::from).collect(),
        }
    }
}

impl From<admin::LeaseStatus> for LeaseStatus {
    fn from(lease: admin::LeaseStatus) -> Self {
        Self {
            holder: lease.holder,
            kind: lease.kind,
            priority: lease.priority,
            subclients: lease.subclients,
            wants: lease.wants,
            share: lease.share,
            granted: lease.granted,
            reserved: lease.reserved,
            expires_in_ms: lease.expires_in_ms,
            refresh_interval_ms: lease.refresh_interval_ms,
            why: lease.why,
        }
    }
}
