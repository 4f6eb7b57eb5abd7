//! `doorward status`: what the server holds, and why.

use std::io::{self, Write};
use std::time::Duration;

use comfy_table::{CellAlignment, Table, presets};
use doorward_proto::admin::v1 as admin;
use serde::Serialize;

use crate::caller::Caller;
use crate::failure::Failure;
use crate::flags::{Common, Output, StatusFlags};
use crate::numbers::{number, span};

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
    let status = Status::from(caller.status(request).await?);
    let mut out = io::stdout().lock();
    if common.output == Output::Json {
        serde_json::to_writer(&mut out, &status).map_err(io::Error::from)?;
        writeln!(out)?;
    } else {
        write_text(&mut out, &status)?;
    }
    match &flags.resource {
        Some(resource) if status.resources.is_empty() => {
            Err(Failure::No(format!("nobody holds anything of {resource}")))
        }
        _ => Ok(()),
    }
}

fn write_text(out: &mut impl Write, status: &Status) -> io::Result<()> {
    let mastership = match (&status.master_address, status.is_master) {
        (_, true) => format!("master, epoch {}", status.epoch),
        (Some(address), false) => format!("not the master, which is at {address}"),
        (None, false) => "no master is known".to_owned(),
    };
    let up = span(Duration::from_millis(status.uptime_ms));
    writeln!(
        out,
        "{} {}: {mastership}, up for {up}",
        status.node, status.version
    )?;
    writeln!(
        out,
        "{} templates from {}",
        status.templates, status.templates_source
    )?;
    if let Some(problem) = &status.templates_problem {
        writeln!(out, "newer templates were REFUSED, these stay in force:")?;
        for line in problem.lines() {
            writeln!(out, "  {line}")?;
        }
    }
    writeln!(out)?;
    if status.resources.is_empty() {
        return writeln!(out, "no leases are out");
    }
    writeln!(out, "{}", resources_table(&status.resources))?;
    for resource in status
        .resources
        .iter()
        .filter(|resource| !resource.leases.is_empty())
    {
        writeln!(out, "\n{}: {}", resource.resource_id, resource.description)?;
        writeln!(out, "{}", leases_table(&resource.leases))?;
        let left = resource
            .leases_count
            .saturating_sub(resource.leases.len() as u64);
        if left > 0 {
            writeln!(out, "and {left} more; --leases lists more")?;
        }
    }
    Ok(())
}

fn resources_table(resources: &[ResourceStatus]) -> Table {
    let mut table = table([
        "resource",
        "algorithm",
        "capacity",
        "wants",
        "granted",
        "reserved",
        "clients",
        "waiting",
        "state",
    ]);
    for resource in resources {
        let learning = Duration::from_millis(resource.learning_remaining_ms);
        let state = match (&resource.template, learning) {
            (None, _) => "template gone".to_owned(),
            (Some(_), Duration::ZERO) => String::new(),
            (Some(_), learning) => format!("learning for {}", span(learning)),
        };
        table.add_row([
            resource.resource_id.clone(),
            resource.algorithm.clone(),
            number(resource.capacity),
            number(resource.wants),
            number(resource.granted),
            number(resource.reserved),
            resource.clients_count.to_string(),
            resource.waiting_count.to_string(),
            state,
        ]);
    }
    align(table, 2..8)
}

fn leases_table(leases: &[LeaseStatus]) -> Table {
    let mut table = table([
        "holder",
        "priority",
        "wants",
        "share",
        "granted",
        "reserved",
        "expires in",
        "why",
    ]);
    for lease in leases {
        let holder = match lease.kind.as_str() {
            "client" => lease.holder.clone(),
            kind => format!("{kind} {}", lease.holder),
        };
        table.add_row([
            holder,
            lease.priority.to_string(),
            number(lease.wants),
            number(lease.share),
            number(lease.granted),
            number(lease.reserved),
            span(Duration::from_millis(lease.expires_in_ms)),
            lease.why.clone(),
        ]);
    }
    align(table, 1..7)
}

fn table<const N: usize>(header: [&str; N]) -> Table {
    let mut table = Table::new();
    table.load_style(presets::NOTHING);
    table.set_header(header);
    table
}

fn align(mut table: Table, numbers: std::ops::Range<usize>) -> Table {
    for column in numbers {
        if let Some(column) = table.column_mut(column) {
            column.set_cell_alignment(CellAlignment::Right);
        }
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
