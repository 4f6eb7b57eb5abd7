//! Contents of the pages, with every number in the form for people.
//!
//! askama escapes every text; the templates percent-encode ids in links.

pub mod limits;
pub mod master;
pub mod servers;

use askama::Template;
use doorward_engine::rounding::SHOWN;

use crate::status::{LeaseStatus, ResourceStatus, States, Status};
use crate::web::pages::limits::LimitRow;
use crate::web::pages::master::MasterPage;
use crate::web::pages::servers::{ChildTable, OwnLease, Parent};
use crate::yielding::YieldEvery;
use doorward_pages::numbers::{amount, count, span};

/// Largest number of child servers of one resource on the front page.
const CHILDREN_SHOWN: usize = 5;

/// Largest number of child servers of all resources there.
const CHILDREN_ROWS: usize = 2_000;

/// Number of rows to make before the thread yields.
const ROWS_PER_STEP: usize = 64;

/// Top of every page.
#[derive(Debug)]
pub struct Head {
    /// Name of the node.
    pub node: String,
    /// Version of the server.
    pub version: String,
    /// `master`, `candidate` or `no master known`.
    pub role: &'static str,
    /// Whether a master is known.
    pub role_ok: bool,
    /// Master, if it is another server.
    pub master_elsewhere: Option<MasterPage>,
    /// Reason why the server is not ready.
    pub unready: Option<String>,
    /// Epoch, if it is known.
    pub epoch: Option<u64>,
    /// Time since the process started.
    pub uptime: String,
    /// Number and source of the templates in force.
    pub templates: String,
    /// Reason why the newest templates were refused.
    pub templates_problem: Option<String>,
    /// Longest time that learning mode lasts for resources without holders.
    pub learning: Option<String>,
    /// Reason why etcd cannot be asked, and for how long it could not.
    pub etcd_problem: Option<(String, String)>,
    /// Time that this server stays the master without further news from etcd.
    pub master_for: Option<String>,
    /// Parent. Absent at the root.
    pub parent: Option<Parent>,
    /// Whether the node is its own ancestor.
    pub is_in_cycle: bool,
    /// Names under which two live processes ask: a description of each, and the time since it was seen.
    pub conflicts: Vec<(String, String)>,
    /// The state machines of the server, and the state of each.
    pub states: Vec<(&'static str, String)>,
}

impl Head {
    fn new(status: &Status) -> Self {
        let role = match (status.is_master, &status.master_address) {
            (true, _) => "master",
            (false, Some(_)) => "candidate",
            (false, None) => "no master known",
        };
        Self {
            node: status.node.clone(),
            version: status.version.clone(),
            role,
            role_ok: status.master_address.is_some(),
            master_elsewhere: status
                .master_address
                .as_deref()
                .filter(|_| !status.is_master)
                .map(|address| MasterPage::new(address, status.master_pages_address.as_deref())),
            unready: status.unready.clone(),
            epoch: status.epoch,
            uptime: span(status.uptime_ms),
            templates: format!(
                "{} from {}",
                count(status.templates_count),
                status.templates_source
            ),
            templates_problem: status.templates_problem.clone(),
            learning: status.learning_remaining_ms.map(span),
            etcd_problem: status.etcd.as_ref().and_then(|etcd| {
                let problem = etcd.problem.clone()?;
                Some((problem, span(etcd.age_ms)))
            }),
            master_for: status
                .etcd
                .as_ref()
                .and_then(|etcd| etcd.mastership_remaining_ms)
                .map(span),
            parent: Parent::of(status),
            is_in_cycle: status.is_in_cycle,
            conflicts: status
                .conflicts
                .iter()
                .map(|it| (format!("{} {}", it.kind, it.holder), span(it.age_ms)))
                .collect(),
            states: status.states.as_ref().map_or_else(Vec::new, states),
        }
    }
}

/// Returns the existing state machines and their states, by the names of the metrics.
fn states(states: &States) -> Vec<(&'static str, String)> {
    let of = |what, state: Option<&str>| state.map(|state| (what, state.to_owned()));
    let streams = states.child_streams.iter().filter(|(_, count)| **count > 0);
    let streams: Vec<_> = streams
        .map(|(state, count)| format!("{count} {state}"))
        .collect();
    let streams = (!streams.is_empty()).then(|| streams.join(" and "));
    [
        of("parent session", states.parent_session.as_deref()),
        of("election", states.election.as_deref()),
        of("learning", Some(&states.learning)),
        of("child streams", streams.as_deref()),
    ]
    .into_iter()
    .flatten()
    .collect()
}

/// A bar: the granted part of the capacity, and the further part that may still be in use.
#[derive(Debug)]
pub struct Bar {
    /// Granted percentage of the capacity.
    pub granted: f64,
    /// Percentage of the capacity that may be in use beyond what is granted.
    pub held: f64,
    /// Text for screen readers and the pointer.
    pub title: String,
    /// Text next to the bar. Empty if the resource has no total.
    pub label: String,
}

impl Bar {
    /// Returns the bar of a resource as a whole, or of one child server.
    fn new(resource: &ResourceStatus, granted: f64, reserved: f64) -> Self {
        // Such a resource has no promised total, so its capacity is no measure of the sum.
        let total = match resource.algorithm() {
            "NO_ALGORITHM" | "STATIC" => 0.0,
            _ => resource.capacity,
        };
        let percent_granted = bar_width(granted, total);
        let percent_reserved = bar_width(reserved, total);
        Self {
            granted: percent_granted,
            held: (percent_reserved - percent_granted).max(0.0),
            title: format!(
                "granted {} and reserved {} of {}",
                amount(granted),
                amount(reserved),
                amount(resource.capacity)
            ),
            label: if total > 0.0 {
                format!("{percent_granted:.0} %")
            } else {
                String::new()
            },
        }
    }
}

/// A resource in a table, or at the top of its own page.
#[derive(Debug)]
pub struct ResourceRow {
    /// Id of the resource.
    pub id: String,
    /// Description for people.
    pub description: String,
    /// Algorithm, as templates spell it, and whether the parent chose it.
    pub divided: String,
    /// Glob of the template, unless it is gone or only the root has one.
    pub template: Option<String>,
    /// Capacity to share.
    pub capacity: String,
    /// Sum of the holders' wants.
    pub wants: String,
    /// Whether holders want more than the capacity.
    pub short: bool,
    /// Sum of the newest leases.
    pub granted: String,
    /// Sum of the capacity that may be in use.
    pub reserved: String,
    /// Whether more than the capacity may be in use.
    pub over: bool,
    /// Number of served clients.
    pub clients: String,
    /// Number of leases.
    pub leases: String,
    /// Number of holders that wait for others to shrink. Empty: none.
    pub waiting: String,
    /// Learning mode here or above, with the remaining time. Empty: it is over.
    pub learning: String,
    /// Remedy for learning mode.
    pub learning_advice: String,
    /// Capacity for clients in safe mode.
    pub safe_capacity: String,
    /// Length of leases.
    pub lease_length: String,
    /// Refresh interval of clients.
    pub refresh_interval: String,
    /// Used part of the capacity.
    pub bar: Bar,
    /// Reason why there is no bar.
    pub no_bar: String,
    /// Whether its template is gone.
    pub template_gone: bool,
    /// The server's own lease. Absent at the root.
    pub own_lease: Option<OwnLease>,
    /// Its child servers, or the first of them.
    pub children: ChildTable,
}

impl ResourceRow {
    fn new(resource: &ResourceStatus, children_max: usize) -> Self {
        let bar = Bar::new(resource, resource.granted, resource.reserved);
        // A difference within rounding is not worth a warning.
        let above = |sum: f64| sum > resource.capacity * (1.0 + SHOWN);
        let has_total = !bar.label.is_empty() || resource.capacity <= 0.0;
        Self {
            id: resource.resource_id.clone(),
            description: resource.description.clone(),
            divided: divided(resource),
            template: resource.template.clone(),
            capacity: amount(resource.capacity),
            wants: amount(resource.wants),
            short: has_total && above(resource.wants),
            granted: amount(resource.granted),
            reserved: amount(resource.reserved),
            over: has_total && above(resource.reserved),
            clients: count(resource.clients_count),
            leases: count(resource.leases_count),
            waiting: shown_unless_zero(resource.waiting_count, count(resource.waiting_count)),
            learning: match (resource.learning_remaining_ms, &resource.own_lease) {
                (Some(left), _) => format!("learning mode, {} left", span(left)),
                (None, Some(lease)) => {
                    let above = lease.parent_learning_remaining_ms;
                    above.map_or_else(String::new, |left| {
                        format!("learning mode above, {} left", span(left))
                    })
                }
                (None, None) => String::new(),
            },
            learning_advice: resource.learning.clone().unwrap_or_default(),
            safe_capacity: match resource.safe_capacity {
                None => "none known".to_owned(),
                Some(safe) if safe < 0.0 => "no limit".to_owned(),
                Some(safe) => amount(safe),
            },
            lease_length: span(resource.lease_length_ms),
            refresh_interval: span(resource.refresh_interval_ms),
            bar,
            no_bar: match &resource.own_lease {
                Some(lease) if lease.expires_in_ms.is_none() => "no lease".to_owned(),
                _ => format!("{}, no total", resource.algorithm()),
            },
            template_gone: resource.template.is_none() && resource.own_lease.is_none(),
            own_lease: resource.own_lease.as_ref().map(OwnLease::new),
            children: ChildTable::new(resource, children_max),
        }
    }
}

/// Returns the algorithm of a resource. Without a lease or a template, it is unknown yet.
fn divided(resource: &ResourceStatus) -> String {
    match (&resource.own_lease, &resource.template) {
        (None, _) | (_, Some(_)) => resource.algorithm().to_owned(),
        (Some(lease), None) if lease.expires_in_ms.is_some() => {
            format!("{} as the parent says", resource.algorithm())
        }
        (Some(_), None) => "no lease from the parent".to_owned(),
    }
}

/// Returns the number of rows of a table.
fn rows(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn shown_unless_zero(value: u64, text: String) -> String {
    if value == 0 { String::new() } else { text }
}

/// A client's lease in a table.
#[derive(Debug)]
pub struct LeaseRow {
    /// Name of the holder.
    pub holder: String,
    /// Its priority.
    pub priority: i64,
    /// Its wants.
    pub wants: String,
    /// Its share.
    pub share: String,
    /// Capacity that it got.
    pub granted: String,
    /// Whether it got less than it wants.
    pub short: bool,
    /// Largest capacity that it may be using.
    pub reserved: String,
    /// Whether it may be using more than it got.
    pub held: bool,
    /// Part of its wants that it got, for the bar.
    pub satisfied: f64,
    /// Remaining time of the lease.
    pub expires: String,
    /// Its refresh interval.
    pub refresh: String,
    /// Reason for what it got.
    pub why: String,
}

impl LeaseRow {
    fn new(lease: &LeaseStatus) -> Self {
        Self {
            holder: lease.holder.clone(),
            priority: lease.priority,
            wants: amount(lease.wants),
            share: amount(lease.share),
            granted: amount(lease.granted),
            short: lease.granted < lease.wants * (1.0 - SHOWN),
            reserved: amount(lease.reserved),
            held: lease.reserved > lease.granted * (1.0 + SHOWN),
            satisfied: if lease.wants > 0.0 {
                bar_width(lease.granted, lease.wants)
            } else {
                100.0
            },
            expires: span(lease.expires_in_ms),
            refresh: span(lease.refresh_interval_ms),
            why: lease.why.clone(),
        }
    }
}

/// The front page.
#[derive(Debug, Template)]
#[template(path = "index.html")]
pub struct Index {
    head: Head,
    /// Limits that an operator should look at.
    limits: Vec<LimitRow>,
    rows: Vec<ResourceRow>,
    resources: String,
    leases: String,
    clients: String,
    waiting: String,
    /// Token of the next page. Absent: this is the last one.
    next: Option<String>,
    is_first: bool,
}

impl Index {
    /// Returns the page with the resources of a status. `is_first`: whether it is the first page of them.
    pub fn new(status: &Status, is_first: bool) -> Self {
        // Child servers take rows as well. With many of them, later resources show none.
        let mut children_left = CHILDREN_ROWS;
        let mut steps = YieldEvery::new(ROWS_PER_STEP);
        let row = |resource| {
            steps.step();
            let row = ResourceRow::new(resource, CHILDREN_SHOWN.min(children_left));
            children_left = children_left.saturating_sub(row.children.shown.len());
            row
        };
        Self {
            head: Head::new(status),
            limits: limits::standing_out(&status.limits),
            rows: status.resources.iter().map(row).collect(),
            resources: count(status.resources_count()),
            leases: count(status.leases_count()),
            clients: amount(status.clients_count()),
            waiting: count(status.waiting_count()),
            next: status.next_token.clone(),
            is_first,
        }
    }
}

/// The page of one resource.
#[derive(Debug, Template)]
#[template(path = "resource.html")]
pub struct ResourcePage {
    head: Head,
    row: ResourceRow,
    /// Leases of clients; child servers have a table of their own.
    leases: Vec<LeaseRow>,
    has_priorities: bool,
    left_out: String,
}

impl ResourcePage {
    /// Returns the page of a resource of a status, with its listed leases.
    pub fn new(status: &Status, resource: &ResourceStatus) -> Self {
        let clients = resource.leases.iter().filter(|l| l.kind == "client");
        let mut steps = YieldEvery::new(ROWS_PER_STEP);
        let lease = |lease| {
            steps.step();
            LeaseRow::new(lease)
        };
        let leases: Vec<LeaseRow> = clients.map(lease).collect();
        let left_out = resource
            .leases_count
            .saturating_sub(resource.children_count)
            .saturating_sub(rows(leases.len()));
        Self {
            head: Head::new(status),
            row: ResourceRow::new(resource, usize::MAX),
            leases,
            has_priorities: resource.algorithm() == "PRIORITY_BANDS",
            left_out: shown_unless_zero(left_out, count(left_out)),
        }
    }
}

/// The page of a resource without holders.
#[derive(Debug, Template)]
#[template(path = "missing.html")]
pub struct Missing {
    head: Head,
    id: String,
}

impl Missing {
    /// Returns the page of `id`, which has no holders.
    pub fn new(status: &Status, id: &str) -> Self {
        Self {
            head: Head::new(status),
            id: id.to_owned(),
        }
    }
}

/// Returns a part of a whole in percent from 0 to 100, for the width of a bar; 0 if there is no whole.
fn bar_width(part: f64, whole: f64) -> f64 {
    if whole > 0.0 && part.is_finite() {
        (part / whole * 100.0).clamp(0.0, 100.0)
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bar_stays_within_its_frame() {
        assert_eq!(bar_width(5.0, 0.0), 0.0);
        assert_eq!(bar_width(20.0, 10.0), 100.0);
        assert_eq!(bar_width(1.0, 4.0), 25.0);
    }
}
