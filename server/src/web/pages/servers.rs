//! Other servers on the pages: the parent with the leases from it, and the child servers.

use doorward_engine::rounding::SHOWN;

use crate::status::{ChildStatus, OwnLeaseStatus, ParentStatus, ResourceStatus, Status};
use crate::web::pages::{Bar, rows, shown_unless_zero};
use doorward_pages::numbers::{amount, count, span};

/// Parent, on every page.
#[derive(Debug)]
pub struct Parent {
    /// Name of its node. Empty: the parent has not told it.
    pub name: String,
    /// Address that is asked now.
    pub address: String,
    /// Other configured addresses. Empty: there are none.
    pub other_addresses: String,
    /// Kind of the link, in words.
    pub link: String,
    /// Whether the parent is not known to be out of reach.
    pub is_up: bool,
    /// Whether there is a link without a problem.
    pub is_well: bool,
    /// Time since the last change of the link.
    pub link_age: String,
    /// Problem with reaching the parent, if there is one.
    pub problem: Option<String>,
    /// Nodes from the root down to the parent.
    pub way: Vec<String>,
}

impl Parent {
    pub(super) fn new(parent: &ParentStatus, ancestors: &[String]) -> Self {
        let others: Vec<&str> = parent
            .addresses
            .iter()
            .filter(|address| **address != parent.address)
            .map(String::as_str)
            .collect();
        Self {
            name: ancestors.first().cloned().unwrap_or_default(),
            address: parent.address.clone(),
            other_addresses: others.join(", "),
            link: match parent.link.as_str() {
                "idle" => "not asked: only the master does".to_owned(),
                link => link.to_owned(),
            },
            is_up: parent.link != "down",
            is_well: !matches!(parent.link.as_str(), "down" | "idle") && parent.problem.is_none(),
            link_age: span(parent.link_age_ms),
            problem: parent.problem.clone(),
            way: ancestors.iter().rev().cloned().collect(),
        }
    }

    pub(super) fn of(status: &Status) -> Option<Self> {
        let parent = status.parent.as_ref()?;
        Some(Self::new(parent, &status.ancestors))
    }
}

/// The server's own lease on a resource.
#[derive(Debug)]
pub struct OwnLease {
    /// Capacity that it may hand out.
    pub capacity: String,
    /// Share of the server.
    pub share: String,
    /// Whether it has less than its share, and gets more once other holders have shrunk.
    pub is_short: bool,
    /// Largest possible use of the leases that it granted.
    pub outstanding: String,
    /// Whether more may be in use than it has.
    pub is_over: bool,
    /// Remaining time of the lease. Empty: there is no lease.
    pub expires: String,
    /// Whether the parent has not answered yet.
    pub is_in_flight: bool,
    /// Reason why the parent refuses the resource.
    pub refusal: Option<String>,
}

impl OwnLease {
    pub(super) fn new(lease: &OwnLeaseStatus) -> Self {
        Self {
            capacity: amount(lease.capacity),
            share: amount(lease.share),
            is_short: lease.share > lease.capacity * (1.0 + SHOWN),
            outstanding: amount(lease.outstanding),
            is_over: lease.outstanding > lease.capacity * (1.0 + SHOWN),
            expires: lease.expires_in_ms.map_or_else(String::new, span),
            is_in_flight: lease.is_in_flight,
            refusal: lease.refusal.clone(),
        }
    }
}

/// A child server in a table.
#[derive(Debug)]
pub struct Child {
    /// Name of its node.
    pub name: String,
    /// Number of clients below it.
    pub clients: String,
    /// Sum of their wants.
    pub wants: String,
    /// Its share.
    pub share: String,
    /// Capacity that it got.
    pub granted: String,
    /// Whether it got less than is wanted below it.
    pub is_short: bool,
    /// Largest capacity that it may be using.
    pub reserved: String,
    /// Whether it may be using more than it got.
    pub is_held: bool,
    /// Largest possible use below it, as it reports. Empty: it does not report it.
    pub outstanding: String,
    /// Whether more is in use below it than it may be using.
    pub is_over: bool,
    /// Whether it is in learning mode.
    pub is_learning: bool,
    /// Whether it is a Doorman server, which sends counts and sums, but no demand curve.
    pub is_doorman: bool,
    /// Number of server levels from it down, and the kind of its reports.
    pub about: String,
    /// Remaining time of its lease.
    pub expires: String,
    /// Its refresh interval.
    pub refresh: String,
    /// Reason for what it got.
    pub why: String,
    /// Share of the capacity that it has.
    pub bar: Bar,
}

impl Child {
    pub(super) fn new(child: &ChildStatus, resource: &ResourceStatus) -> Self {
        let levels = match child.height {
            1 => "a leaf".to_owned(),
            height => format!("{height} levels of servers"),
        };
        let is_doorman = child.curve_points == 0;
        let sends = match child.curve_points {
            0 => "sends counts and sums only".to_owned(),
            1 => "demand curve of 1 point".to_owned(),
            points => format!("demand curve of {} points", count(points)),
        };
        Self {
            name: child.child.clone(),
            clients: amount(child.clients_count),
            wants: amount(child.wants),
            share: amount(child.share),
            granted: amount(child.granted),
            is_short: child.granted < child.wants * (1.0 - SHOWN),
            reserved: amount(child.reserved),
            is_held: child.reserved > child.granted * (1.0 + SHOWN),
            outstanding: child.outstanding.map_or_else(String::new, amount),
            is_over: child
                .outstanding
                .is_some_and(|outstanding| outstanding > child.reserved * (1.0 + SHOWN)),
            is_learning: child.is_learning,
            is_doorman,
            about: format!("{levels}, {sends}"),
            expires: span(child.expires_in_ms),
            refresh: span(child.refresh_interval_ms),
            why: child.why.clone(),
            bar: Bar::new(resource, child.granted, child.reserved),
        }
    }
}

/// The child servers of a resource that the page shows.
#[derive(Debug)]
pub struct ChildTable {
    /// Child servers by name.
    pub shown: Vec<Child>,
    /// Number of other child servers. Empty: none.
    pub left_out: String,
}

impl ChildTable {
    pub(super) fn new(resource: &ResourceStatus, max: usize) -> Self {
        let listed = resource.children.iter().take(max);
        let shown: Vec<Child> = listed.map(|child| Child::new(child, resource)).collect();
        let left_out = resource.children_count.saturating_sub(rows(shown.len()));
        Self {
            left_out: shown_unless_zero(left_out, count(left_out)),
            shown,
        }
    }
}
