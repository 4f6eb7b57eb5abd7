//! The pages' contents, with every number already as people read it.
//!
//! askama escapes every text; ids in links are percent-encoded by the template.

pub mod limits;
pub mod master;
pub mod servers;

use askama::Template;
use doorward_engine::rounding::SHOWN;

use crate::status::{LeaseStatus, ResourceStatus, States, Status};
use crate::unhurried::Steps;
use crate::web::pages::limits::LimitRow;
use crate::web::pages::master::MasterPage;
use crate::web::pages::servers::{ChildTable, OwnLease, Parent};
use doorward_pages::numbers::{amount, count, span};

/// Child servers of one resource on the front page.
const CHILDREN_SHOWN: usize = 5;

/// Child servers of all resources there.
const CHILDREN_ROWS: usize = 2_000;

/// Rows that are made before others go first.
const ROWS_PER_STEP: usize = 64;

/// What stands at the top of every page.
#[derive(Debug)]
pub struct Head {
    /// The node's name.
    pub node: String,
    /// The server's version.
    pub version: String,
    /// `master`, `candidate` or `no master known`.
    pub role: &'static str,
    /// Whether all is well with mastership.
    pub role_ok: bool,
    /// The master, if it is another server.
    pub master_elsewhere: Option<MasterPage>,
    /// Why the server is not ready.
    pub unready: Option<String>,
    /// The epoch, if it is known.
    pub epoch: Option<u64>,
    /// Since the process started.
    pub uptime: String,
    /// How many templates are in force, and from where.
    pub templates: String,
    /// Why the newest templates were refused.
    pub templates_problem: Option<String>,
    /// How long learning mode lasts, at most, of resources that nobody holds yet.
    pub learning: Option<String>,
    /// Why etcd cannot be asked, and for how long.
    pub etcd_problem: Option<(String, String)>,
    /// How long this server is the master if nothing more is heard from etcd.
    pub master_for: Option<String>,
    /// Absent at the root.
    pub parent: Option<Parent>,
    /// The node is its own ancestor.
    pub is_in_cycle: bool,
    /// Names under which two live processes ask: what each is, and how long ago that was seen.
    pub conflicts: Vec<(String, String)>,
    /// The machines of the server, and the state of each.
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

/// The machines that there are, and the state of each, by the names that metrics have.
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

/// A bar: how much of the capacity is granted, and how much more may still be in use.
#[derive(Debug)]
pub struct Bar {
    /// Percent of the capacity.
    pub granted: f64,
    /// Percent of the capacity on top of what is granted.
    pub held: f64,
    /// For those who cannot see it, and for the pointer.
    pub title: String,
    /// Next to it. Empty if the resource has no total.
    pub label: String,
}

impl Bar {
    /// So much of a resource's capacity, for the resource as a whole or for one child server.
    fn new(resource: &ResourceStatus, granted: f64, reserved: f64) -> Self {
        // Without a promised total the capacity is no measure of the sum.
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
    /// Its id.
    pub id: String,
    /// For people.
    pub description: String,
    /// By which algorithm, as templates spell it, and whether the parent says so.
    pub divided: String,
    /// The template's glob, unless it is gone or only the root has one.
    pub template: Option<String>,
    /// What there is to share.
    pub capacity: String,
    /// Sum of what holders want.
    pub wants: String,
    /// More is wanted than there is.
    pub short: bool,
    /// Sum of the newest leases.
    pub granted: String,
    /// Sum of what may be in use.
    pub reserved: String,
    /// More may be in use than there is.
    pub over: bool,
    /// Clients served.
    pub clients: String,
    /// Leases out.
    pub leases: String,
    /// Holders waiting for others to shrink. Empty: none.
    pub waiting: String,
    /// Of learning mode, here or above, and how long it lasts. Empty: it is over.
    pub learning: String,
    /// What to do about it.
    pub learning_advice: String,
    /// For clients in safe mode.
    pub safe_capacity: String,
    /// How long leases last.
    pub lease_length: String,
    /// How often clients ask.
    pub refresh_interval: String,
    /// How full it is.
    pub bar: Bar,
    /// Why there is no bar.
    pub no_bar: String,
    /// It had a template, which is gone.
    pub template_gone: bool,
    /// Absent at the root.
    pub own_lease: Option<OwnLease>,
    /// Its child servers, or the first of them.
    pub children: ChildTable,
}

impl ResourceRow {
    fn new(resource: &ResourceStatus, children_max: usize) -> Self {
        let bar = Bar::new(resource, resource.granted, resource.reserved);
        // What rounding alone can do is not worth a warning.
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

/// By which algorithm a resource is divided. Without a lease or a template, nobody has said so yet.
fn divided(resource: &ResourceStatus) -> String {
    match (&resource.own_lease, &resource.template) {
        (None, _) | (_, Some(_)) => resource.algorithm().to_owned(),
        (Some(lease), None) if lease.expires_in_ms.is_some() => {
            format!("{} as the parent says", resource.algorithm())
        }
        (Some(_), None) => "no lease from the parent".to_owned(),
    }
}

/// How many rows a table has.
fn rows(rows: usize) -> u64 {
    u64::try_from(rows).unwrap_or(u64::MAX)
}

fn shown_unless_zero(value: u64, text: String) -> String {
    if value == 0 { String::new() } else { text }
}

/// A client's lease in a table.
#[derive(Debug)]
pub struct LeaseRow {
    /// Whose.
    pub holder: String,
    /// Its priority.
    pub priority: i64,
    /// What it wants.
    pub wants: String,
    /// What it should have.
    pub share: String,
    /// What it got.
    pub granted: String,
    /// It got less than it wants.
    pub short: bool,
    /// The most it may be using.
    pub reserved: String,
    /// It may be using more than it got.
    pub held: bool,
    /// What it got of what it wants, for the bar.
    pub satisfied: f64,
    /// How long the lease lasts.
    pub expires: String,
    /// When it was asked to come back.
    pub refresh: String,
    /// Why it got that.
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
    /// Those that an operator should look at.
    limits: Vec<LimitRow>,
    rows: Vec<ResourceRow>,
    resources: String,
    leases: String,
    clients: String,
    waiting: String,
    /// Where the next page goes on. Absent: this is the last one.
    next: Option<String>,
    is_first: bool,
}

impl Index {
    /// The resources of a status. `is_first`: of its first page.
    pub fn new(status: &Status, is_first: bool) -> Self {
        // Children take rows as well: with many of them, later resources show none.
        let mut children_left = CHILDREN_ROWS;
        let mut steps = Steps::new(ROWS_PER_STEP);
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
    /// Those of clients; child servers have a table of their own.
    leases: Vec<LeaseRow>,
    has_priorities: bool,
    left_out: String,
}

impl ResourcePage {
    /// A resource of a status, with the leases listed there.
    pub fn new(status: &Status, resource: &ResourceStatus) -> Self {
        let clients = resource.leases.iter().filter(|l| l.kind == "client");
        let mut steps = Steps::new(ROWS_PER_STEP);
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

/// The page of a resource that nobody holds.
#[derive(Debug, Template)]
#[template(path = "missing.html")]
pub struct Missing {
    head: Head,
    id: String,
}

impl Missing {
    /// Nobody holds `id`.
    pub fn new(status: &Status, id: &str) -> Self {
        Self {
            head: Head::new(status),
            id: id.to_owned(),
        }
    }
}

/// How much of a whole, in percent from 0 to 100 for the width of a bar; 0 if there is no whole.
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
