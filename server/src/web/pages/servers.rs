//! What the pages show of other servers: the parent, the leases from it, the child servers.

use doorward_engine::rounding::SHOWN;

use crate::status::{ChildStatus, OwnLeaseStatus, ParentStatus, ResourceStatus, Status};
use crate::web::pages::{Bar, rows, shown_unless_zero};
use doorward_pages::numbers::{amount, count, span};

/// The parent, on every page.
#[derive(Debug)]
pub struct Parent {
    /// Its node's name. Empty: it has not said.
    pub name: String,
    /// The address that is asked now.
    pub address: String,
    /// The others that are configured. Empty: there are none.
    pub other_addresses: String,
    /// `down`, `poll` or `stream`.
    pub link: String,
    /// Whether it is reached.
    pub is_up: bool,
    /// Whether it is reached as it should be.
    pub is_well: bool,
    /// How long the link has been what it is.
    pub link_age: String,
    /// Why it cannot be reached, or not as it should.
    pub problem: Option<String>,
    /// The nodes from the root down to the parent.
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
    /// What it may hand out.
    pub capacity: String,
    /// What it should have.
    pub share: String,
    /// It should have more, and gets it once others have shrunk.
    pub is_short: bool,
    /// The most in use by what it handed out.
    pub outstanding: String,
    /// More may be in use than it has.
    pub is_over: bool,
    /// How long it lasts. Empty: there is no lease.
    pub expires: String,
    /// The parent has not answered yet.
    pub is_in_flight: bool,
    /// Why the parent refuses the resource.
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
    /// Its node's name.
    pub name: String,
    /// Clients below it.
    pub clients: String,
    /// Sum of what they want.
    pub wants: String,
    /// What it should have.
    pub share: String,
    /// What it got.
    pub granted: String,
    /// It got less than is wanted below it.
    pub is_short: bool,
    /// The most it may be using.
    pub reserved: String,
    /// It may be using more than it got.
    pub is_held: bool,
    /// The most in use below it, as it reports. Empty: it does not report it.
    pub outstanding: String,
    /// More is in use below it than it may be using.
    pub is_over: bool,
    /// It is in learning mode.
    pub is_learning: bool,
    /// It is a Doorman server: it sends counts and sums, and no demand curve.
    pub is_doorman: bool,
    /// Levels of servers from it down, and what it sends.
    pub about: String,
    /// How long its lease lasts.
    pub expires: String,
    /// When it was asked to come back.
    pub refresh: String,
    /// Why it got that.
    pub why: String,
    /// How much of the capacity it has.
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

/// The child servers of a resource, as far as they are shown.
#[derive(Debug)]
pub struct ChildTable {
    /// By name.
    pub shown: Vec<Child>,
    /// How many more there are. Empty: none.
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
