//! What a server tells about itself: the facts behind the status page, `/status`, the metrics and
//! the admin service.
//!
//! A [`Status`] is plain data. Taking one locks the node for O(resources), and once more for the
//! leases of each resource that are asked for or belong to child servers, so that requests get in
//! between. The JSON of `/status` is this structure: its field names are an interface.

mod board;
pub mod conflicts;
pub mod election;
pub mod learning;
pub mod limits;
pub mod readiness;
pub mod sessions;
pub mod tree;

use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::snapshot::{LeaseSnapshot, ResourceSnapshot};
use doorward_engine::template::SafeCapacity;
use doorward_engine::time::Time;
use serde::Serialize;

pub use crate::status::board::{Board, ParentLink, ParentNews, TemplatesNews};
use crate::status::conflicts::ConflictStatus;
use crate::status::election::EtcdStatus;
use crate::status::limits::LimitStatus;
use crate::status::readiness::Readiness;
use crate::status::sessions::StatesStatus;
use crate::status::tree::{ChildStatus, OwnLeaseStatus, ParentStatus};

/// Leases listed in one status at most, over all resources; those of child servers count once as
/// children and once as leases. With those and some ten thousand resources, a status stays within
/// what a gRPC client takes by default (4 MiB).
pub const LEASES_LISTED_MAX: usize = 10_000;

/// Which resources a status lists.
#[derive(Clone, Copy, Debug)]
enum Listed<'a> {
    All,
    Only(&'a ResourceId),
    Nothing,
}

/// What the node is seen to be, all at one moment.
struct Seen {
    mastership: Mastership,
    /// In milliseconds.
    master_for: Option<u64>,
    templates: usize,
    resources: Vec<ResourceSnapshot>,
    uptime: Duration,
    ancestors: Vec<String>,
    conflicts: Vec<ConflictStatus>,
    learning: Option<Duration>,
    states: StatesStatus,
}

impl Board {
    /// The state of everything now, without limits.
    pub fn status(&self, only: Option<&ResourceId>, leases_max: usize) -> Status {
        self.listing(only.map_or(Listed::All, Listed::Only), leases_max)
    }

    /// The same without any resource: short, and taken at once, however many there are.
    pub fn status_without_resources(&self) -> Status {
        self.listing(Listed::Nothing, 0)
    }

    fn listing(&self, listed: Listed<'_>, leases_max: usize) -> Status {
        let news = self.templates_news();
        let parent = self.parent_news().map(ParentStatus::of);
        let seen = self.node().read(|node, now| Seen {
            mastership: node.mastership(now).clone(),
            master_for: node.valid_until().map(|until| millis(until.since(now))),
            templates: node.templates().len(),
            resources: match listed {
                Listed::All => node.snapshot(now).resources,
                Listed::Only(resource) => Vec::from_iter(node.resource_snapshot(resource, now)),
                Listed::Nothing => Vec::new(),
            },
            uptime: now.since(Time::ZERO),
            ancestors: node.ancestors().to_vec(),
            conflicts: node
                .conflicts(now)
                .map(|conflict| ConflictStatus::of(conflict, now))
                .collect(),
            learning: node.learning_remaining(now),
            states: StatesStatus::of(self.sessions(), node.learning(now)),
        });
        let mut listable = LEASES_LISTED_MAX;
        let resources = seen
            .resources
            .into_iter()
            .map(|resource| self.resource(resource, leases_max, &mut listable))
            .collect();
        let (master_address, epoch) = match &seen.mastership {
            Mastership::Master { epoch } => (Some(self.address().to_owned()), *epoch),
            Mastership::Follower {
                master_address,
                epoch,
            } => (Some(master_address.clone()), *epoch),
            Mastership::Unknown => (None, None),
        };
        Status {
            node: self.node_name().to_owned(),
            version: env!("CARGO_PKG_VERSION"),
            is_master: seen.mastership.is_master(),
            master_pages: match &seen.mastership {
                Mastership::Follower { .. } => self.master_pages(),
                Mastership::Master { .. } | Mastership::Unknown => None,
            },
            unready: match self.readiness() {
                Readiness::Ready => None,
                Readiness::Unready(why) => Some(why),
            },
            master_address,
            epoch,
            uptime_ms: millis(seen.uptime),
            templates_source: news.source,
            templates: seen.templates,
            templates_problem: news.problem,
            learning_remaining_ms: seen.learning.map(millis),
            states: seen.states,
            etcd: self
                .etcd_contact()
                .map(|contact| EtcdStatus::of(contact, seen.master_for)),
            parent,
            ancestors: seen.ancestors,
            is_in_cycle: self.is_in_cycle(),
            conflicts: seen.conflicts,
            limits: None,
            resources,
        }
    }

    fn resource(
        &self,
        snapshot: ResourceSnapshot,
        leases_max: usize,
        listable: &mut usize,
    ) -> ResourceStatus {
        let children: Vec<ChildStatus> = self.leases(
            &snapshot.resource,
            snapshot.children,
            listable,
            ChildStatus::of,
        );
        let leases: Vec<LeaseStatus> =
            self.leases(&snapshot.resource, leases_max, listable, |lease, now| {
                Some(LeaseStatus::of(lease, now))
            });
        let upstream = snapshot.upstream.as_ref();
        let is_known = upstream.is_none_or(|upstream| upstream.knows_algorithm);
        ResourceStatus {
            // Before the snapshot is taken apart.
            own_lease: OwnLeaseStatus::of(&snapshot),
            resource_id: snapshot.resource.to_string(),
            template: snapshot.template,
            description: snapshot.description,
            algorithm: if is_known {
                snapshot.algorithm.kind.as_str()
            } else {
                ""
            },
            capacity: snapshot.capacity,
            safe_capacity: snapshot.safe_capacity.map(safe_capacity_number),
            wants: snapshot.wants,
            granted: snapshot.granted,
            reserved: snapshot.reserved,
            leases_count: snapshot.leases,
            clients_count: snapshot.clients,
            waiting_count: snapshot.waiting,
            learning_remaining_ms: snapshot.learning_remaining.map_or(0, millis),
            learning: learning::of(
                snapshot.learning_remaining,
                snapshot
                    .upstream
                    .as_ref()
                    .map(|upstream| upstream.learning_remaining),
            ),
            lease_length_ms: millis(snapshot.algorithm.lease_length),
            refresh_interval_ms: millis(snapshot.algorithm.refresh_interval),
            children_count: snapshot.children,
            children,
            leases,
        }
    }

    /// Up to `max` leases of a resource, those of child servers first, as far as they are listable.
    fn leases<T>(
        &self,
        resource: &ResourceId,
        max: usize,
        listable: &mut usize,
        render: impl Fn(&LeaseSnapshot, Time) -> Option<T>,
    ) -> Vec<T> {
        let max = max.min(*listable);
        if max == 0 {
            return Vec::new();
        }
        let (leases, now) = self
            .node()
            .read(|node, now| (node.lease_snapshots(resource, max, now), now));
        let rendered: Vec<T> = leases
            .iter()
            .filter_map(|lease| render(lease, now))
            .collect();
        *listable = listable.saturating_sub(rendered.len());
        rendered
    }
}

/// A safe capacity as one number: -1 is no limit.
pub fn safe_capacity_number(safe: SafeCapacity) -> f64 {
    match safe {
        SafeCapacity::Unlimited => -1.0,
        SafeCapacity::Limited(amount) => amount.get(),
    }
}

fn millis(span: Duration) -> u64 {
    u64::try_from(span.as_millis()).unwrap_or(u64::MAX)
}

/// A server at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Status {
    /// The name of the node.
    pub node: String,
    /// The server's version.
    pub version: &'static str,
    /// Whether this server is the master of its node.
    pub is_master: bool,
    /// Where the master is. Absent: none is known.
    pub master_address: Option<String>,
    /// Where the pages of the master are, as it says itself, if it is another server. Absent: it does
    /// not say.
    pub master_pages: Option<String>,
    /// Why the server is not [ready](readiness). Absent: it is.
    pub unready: Option<String>,
    /// The epoch of the mastership. Absent: not known.
    pub epoch: Option<u64>,
    /// Since the process started.
    pub uptime_ms: u64,
    /// Where the templates in force come from.
    pub templates_source: String,
    /// How many templates are in force.
    pub templates: usize,
    /// Why the newest version of the templates was refused. Absent: it was not.
    pub templates_problem: Option<String>,
    /// How long learning mode lasts, at most, of resources that nobody holds yet, in milliseconds. Absent:
    /// it is over, or only the parent can tell, or this is not the master.
    pub learning_remaining_ms: Option<u64>,
    /// In which state each machine of the server is.
    pub states: StatesStatus,
    /// Absent: there is no election.
    pub etcd: Option<EtcdStatus>,
    /// Absent: this is the root.
    pub parent: Option<ParentStatus>,
    /// The names of the nodes from the parent up to the root. Empty at the root, and as long as the
    /// parent has not told.
    pub ancestors: Vec<String>,
    /// Whether the node is its own ancestor: its parent, or a parent of that, leases from it.
    pub is_in_cycle: bool,
    /// Names under which two live processes ask, as far as that was seen lately.
    pub conflicts: Vec<ConflictStatus>,
    /// The limits of the server. Absent: they were not asked for.
    pub limits: Option<Vec<LimitStatus>>,
    /// Sorted by id.
    pub resources: Vec<ResourceStatus>,
}

/// A resource at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ResourceStatus {
    /// Its id.
    pub resource_id: String,
    /// The glob of its template. Absent: the template is gone, or, below the root, only the root has
    /// one.
    pub template: Option<String>,
    /// For people.
    pub description: String,
    /// As templates spell it. Empty: the parent has not told it yet.
    pub algorithm: &'static str,
    /// What there is to share.
    pub capacity: f64,
    /// What a client in safe mode falls back to; -1: no limit. Absent: none is known.
    pub safe_capacity: Option<f64>,
    /// Sum of what holders want.
    pub wants: f64,
    /// Sum of what the newest leases say.
    pub granted: f64,
    /// Sum of the most that may be in use.
    pub reserved: f64,
    /// Leases out.
    pub leases_count: usize,
    /// Clients served, those of child servers included.
    pub clients_count: f64,
    /// Holders that get less than their share until others have shrunk.
    pub waiting_count: usize,
    /// 0: not in learning mode.
    pub learning_remaining_ms: u64,
    /// The same in words, with what to do about it. Absent: not in learning mode.
    pub learning: Option<String>,
    /// How long a lease lasts.
    pub lease_length_ms: u64,
    /// How long a client waits between two requests.
    pub refresh_interval_ms: u64,
    /// The server's own lease. Absent at the root.
    pub own_lease: Option<OwnLeaseStatus>,
    /// How many child servers have leases.
    pub children_count: usize,
    /// The child servers, sorted by name, however many leases were asked for; fewer than there are
    /// once [`LEASES_LISTED_MAX`] are listed.
    pub children: Vec<ChildStatus>,
    /// As many as were asked for, sorted by holder; those of child servers among them.
    pub leases: Vec<LeaseStatus>,
}

/// A lease at a moment.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LeaseStatus {
    /// Whose.
    pub holder: String,
    /// `client` or `server`.
    pub kind: &'static str,
    /// Its priority.
    pub priority: i64,
    /// How many clients it stands for.
    pub subclients: f64,
    /// What it wants.
    pub wants: f64,
    /// What it should have by the algorithm.
    pub share: f64,
    /// What it got.
    pub granted: f64,
    /// The most it may be using.
    pub reserved: f64,
    /// How long its newest lease still lasts.
    pub expires_in_ms: u64,
    /// How long it was told to wait before it asks again.
    pub refresh_interval_ms: u64,
    /// Why it got what it got, for people.
    pub why: String,
}

impl LeaseStatus {
    fn of(lease: &LeaseSnapshot, now: Time) -> Self {
        Self {
            holder: lease.holder.name.to_string(),
            kind: lease.holder.kind.as_str(),
            priority: lease.priority,
            subclients: lease.subclients,
            wants: lease.wants,
            share: lease.share,
            granted: lease.granted,
            reserved: lease.reserved,
            expires_in_ms: millis(lease.expires_at.since(now)),
            refresh_interval_ms: millis(lease.refresh_interval),
            why: lease.why.to_string(),
        }
    }
}
