//! Pages, made from a status. The templates format each figure with a [filter](filters).
//!
//! askama escapes every text; the templates percent-encode ids in links.

#[expect(unreachable_pub, reason = "askama's macro makes filters public")]
mod filters;
pub mod master;

use askama::Template;
use doorward_engine::rounding::SHOWN;
use doorward_pages::numbers;
use doorward_proto::admin::v1::limit_status::Unit;

use crate::status::learning::remaining;
use crate::status::model::count;
use crate::status::{ChildStatus, LeaseStatus, LimitStatus, ResourceStatus, States, Status};
use crate::web::pages::master::MasterPage;

/// Largest number of child servers of one resource on the front page.
const CHILDREN_SHOWN: usize = 5;

/// Largest number of child servers of all resources there.
const CHILDREN_ROWS: usize = 2_000;

/// Parts of the head and the foot of every page that the status does not state as such.
#[derive(Debug)]
struct Head {
    /// `master`, `candidate` or `no master known`.
    role: &'static str,
    /// Master, if it is another server.
    master_elsewhere: Option<MasterPage>,
    /// Configured addresses of the parent beside the asked one. Empty: there are none.
    other_parents: String,
    /// The state machines of the server, and the state of each.
    states: Vec<(&'static str, String)>,
}

impl Head {
    fn new(status: &Status) -> Self {
        let elsewhere = status.master_address.as_deref();
        let elsewhere = elsewhere.filter(|_| !status.is_master);
        let pages = status.master_pages_address.as_deref();
        let parents = status.parent.iter().flat_map(|parent| {
            let all = parent.addresses.iter();
            all.filter(|address| **address != parent.address)
        });
        Self {
            role: match (status.is_master, &status.master_address) {
                (true, _) => "master",
                (false, Some(_)) => "candidate",
                (false, None) => "no master known",
            },
            master_elsewhere: elsewhere.map(|address| MasterPage::new(address, pages)),
            other_parents: parents.map(String::as_str).collect::<Vec<_>>().join(", "),
            states: status.states.as_ref().map_or_else(Vec::new, States::listed),
        }
    }
}

/// A bar: the granted part of the capacity, and the further part that may still be in use.
#[derive(Debug)]
struct Bar {
    /// Granted percentage of the capacity.
    granted: f64,
    /// Percentage of the capacity that may be in use beyond what is granted.
    held: f64,
    /// Text for screen readers and the pointer.
    title: String,
    /// Text next to the bar. Empty if there is no capacity, or it is no total.
    label: String,
}

impl Bar {
    /// Returns the bar of a resource as a whole, or of one child server.
    fn new(resource: &ResourceStatus, wants: f64, granted: f64, reserved: f64) -> Self {
        let total = match has_total(resource) {
            true => resource.capacity,
            false => 0.0,
        };
        let percent_granted = bar_width(granted, total);
        let percent_reserved = bar_width(reserved, total);
        Self {
            granted: percent_granted,
            held: (percent_reserved - percent_granted).max(0.0),
            title: format!(
                "granted {} and reserved {} of {}",
                numbers::amount(granted),
                numbers::amount(reserved),
                numbers::amount(resource.capacity)
            ),
            label: match numbers::percent(granted / total) {
                _ if total <= 0.0 => String::new(),
                part if is_less(&granted, &wants) => {
                    format!("{part}; {} of wants", numbers::percent(granted / wants))
                }
                part => part,
            },
        }
    }
}

/// A resource in a table, or at the top of its own page.
#[derive(Debug)]
struct ResourceRow<'a> {
    resource: &'a ResourceStatus,
    /// Used part of the capacity.
    bar: Bar,
    /// Its child servers, or the first of them.
    children: Vec<ChildRow<'a>>,
}

impl<'a> ResourceRow<'a> {
    fn new(resource: &'a ResourceStatus, children_max: usize) -> Self {
        let children = resource.children.iter().take(children_max);
        Self {
            resource,
            bar: Bar::new(
                resource,
                resource.wants,
                resource.granted,
                resource.reserved,
            ),
            children: children.map(|it| ChildRow::new(it, resource)).collect(),
        }
    }

    /// Whether holders want more than the capacity.
    fn is_short(&self) -> bool {
        has_total(self.resource) && is_more(&self.resource.wants, &self.resource.capacity)
    }

    /// Whether more than the capacity may be in use.
    fn is_over(&self) -> bool {
        has_total(self.resource) && is_more(&self.resource.reserved, &self.resource.capacity)
    }

    /// Whether its template is gone. Below the root, only the root has templates.
    fn is_template_gone(&self) -> bool {
        self.resource.template.is_none() && self.resource.own_lease.is_none()
    }

    /// Returns the algorithm. Without a lease or a template, it is unknown yet.
    fn divided(&self) -> String {
        let algorithm = self.resource.algorithm();
        match (&self.resource.own_lease, &self.resource.template) {
            (None, _) | (_, Some(_)) => algorithm.to_owned(),
            (Some(lease), None) if lease.expires_in_ms.is_some() => {
                format!("{algorithm} as the parent says")
            }
            (Some(_), None) => "no lease from the parent".to_owned(),
        }
    }

    /// Returns the reason why there is no bar.
    fn no_bar(&self) -> String {
        match &self.resource.own_lease {
            Some(lease) if lease.expires_in_ms.is_none() => "no lease".to_owned(),
            Some(_) if has_total(self.resource) => "lease of 0".to_owned(),
            None if has_total(self.resource) => "capacity of 0".to_owned(),
            _ => format!("{}, no total", self.resource.algorithm()),
        }
    }

    /// Returns learning mode here or above, with the remaining time. Empty: it is over.
    fn learning(&self) -> String {
        let lease = self.resource.own_lease.as_ref();
        let above = lease.and_then(|lease| lease.parent_learning_remaining_ms);
        match (self.resource.learning_remaining_ms, above) {
            (Some(left), _) => format!("learning mode, {}", remaining(left, lease.is_none())),
            (None, Some(left)) => format!("learning mode above, {}", remaining(left, false)),
            (None, None) => String::new(),
        }
    }

    /// Returns the capacity for clients in safe mode.
    fn safe_capacity(&self) -> String {
        match self.resource.safe_capacity {
            None => "not known without a lease from the parent".to_owned(),
            Some(0.0) if !self.learning().is_empty() => "0 in learning mode".to_owned(),
            Some(safe) if safe < 0.0 => "no limit".to_owned(),
            Some(safe) => numbers::amount(safe),
        }
    }

    /// Returns the number of child servers that are not shown.
    fn children_left_out(&self) -> u64 {
        let shown = count(self.children.len());
        self.resource.children_count.saturating_sub(shown)
    }
}

/// A child server in a table.
#[derive(Debug)]
struct ChildRow<'a> {
    child: &'a ChildStatus,
    /// Share of the capacity that it has.
    bar: Bar,
}

impl<'a> ChildRow<'a> {
    fn new(child: &'a ChildStatus, resource: &ResourceStatus) -> Self {
        let bar = Bar::new(resource, child.wants, child.granted, child.reserved);
        Self { child, bar }
    }

    /// Returns the number of server levels from it down, and the kind of its reports.
    fn about(&self) -> String {
        let levels = match self.child.height {
            1 => "a leaf".to_owned(),
            height => format!("{height} levels of servers"),
        };
        match self.child.curve_points {
            0 => format!("{levels}, sends counts and sums only"),
            1 => format!("{levels}, demand curve of 1 point"),
            points => {
                let points = numbers::count(points);
                format!("{levels}, demand curve of {points} points")
            }
        }
    }
}

/// Whether the algorithm promises a total. If not, the capacity is no measure of the sum.
fn has_total(resource: &ResourceStatus) -> bool {
    !matches!(resource.algorithm(), "NO_ALGORITHM" | "STATIC")
}

/// Whether a sum is above another, by more than rounding.
fn is_more(sum: &f64, other: &f64) -> bool {
    *sum > *other * (1.0 + SHOWN)
}

/// Whether a sum is below another, by more than rounding.
fn is_less(sum: &f64, other: &f64) -> bool {
    *sum < *other * (1.0 - SHOWN)
}

/// Returns a bound or a use of a limit, with its unit.
fn limit_value(limit: &LimitStatus, value: &Option<u64>) -> String {
    let Some(value) = *value else {
        return "-".to_owned();
    };
    match limit.unit() {
        Unit::Count => numbers::count(value),
        Unit::Bytes => numbers::bytes(value),
        Unit::PerSecond => format!("{}/s", numbers::count(value)),
        Unit::Millis => numbers::span(value),
    }
}

/// Returns the used part of a limit in percent, for the width of a bar.
fn limit_bar(limit: &LimitStatus) -> u64 {
    limit.percent().unwrap_or(0).min(100)
}

/// The front page.
#[derive(Debug, Template)]
#[template(path = "index.html")]
pub struct Index<'a> {
    status: &'a Status,
    head: Head,
    /// Limits that an operator should look at.
    limits: Vec<&'a LimitStatus>,
    rows: Vec<ResourceRow<'a>>,
    is_first: bool,
}

impl<'a> Index<'a> {
    /// Returns the page with the resources of a status. `is_first`: whether it is the first page of them.
    pub fn new(status: &'a Status, is_first: bool) -> Self {
        // Child servers take rows as well. With many of them, later resources show none.
        let mut children_left = CHILDREN_ROWS;
        let row = |resource| {
            let row = ResourceRow::new(resource, CHILDREN_SHOWN.min(children_left));
            children_left = children_left.saturating_sub(row.children.len());
            row
        };
        let limits = status.limits.iter();
        Self {
            status,
            head: Head::new(status),
            limits: limits.filter(|limit| limit.stands_out()).collect(),
            rows: status.resources.iter().map(row).collect(),
            is_first,
        }
    }
}

/// The page of one resource.
#[derive(Debug, Template)]
#[template(path = "resource.html")]
pub struct ResourcePage<'a> {
    status: &'a Status,
    head: Head,
    row: ResourceRow<'a>,
    /// Leases of clients; child servers have a table of their own.
    leases: Vec<&'a LeaseStatus>,
    /// Number of leases that are not shown.
    left_out: u64,
}

impl<'a> ResourcePage<'a> {
    /// Returns the page of a resource of a status, with its listed leases.
    pub fn new(status: &'a Status, resource: &'a ResourceStatus) -> Self {
        let leases = resource.leases.iter();
        let leases: Vec<_> = leases.filter(|lease| lease.kind == "client").collect();
        Self {
            status,
            head: Head::new(status),
            row: ResourceRow::new(resource, usize::MAX),
            left_out: resource
                .leases_count
                .saturating_sub(resource.children_count)
                .saturating_sub(count(leases.len())),
            leases,
        }
    }
}

/// The page of all limits.
#[derive(Debug, Template)]
#[template(path = "limits.html")]
pub struct LimitsPage<'a> {
    status: &'a Status,
    head: Head,
    limits: &'a [LimitStatus],
}

impl<'a> LimitsPage<'a> {
    /// Returns the page with the limits of a status.
    pub fn new(status: &'a Status) -> Self {
        Self {
            status,
            head: Head::new(status),
            limits: &status.limits,
        }
    }
}

/// The page of a resource without holders.
#[derive(Debug, Template)]
#[template(path = "missing.html")]
pub struct Missing<'a> {
    status: &'a Status,
    head: Head,
    id: &'a str,
}

impl<'a> Missing<'a> {
    /// Returns the page of `id`, which has no holders.
    pub fn new(status: &'a Status, id: &'a str) -> Self {
        let head = Head::new(status);
        Self { status, head, id }
    }
}

/// Returns the satisfied part of a client's wants in percent.
fn satisfied(lease: &LeaseStatus) -> f64 {
    match lease.wants > 0.0 {
        true => bar_width(lease.granted, lease.wants),
        false => 100.0,
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
