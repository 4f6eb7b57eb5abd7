//! What a server tells about itself: the facts behind the status page, `/status`, the metrics and
//! the admin service.
//!
//! A [`Status`] is plain data. Taking one locks the node for O(resources), and once more for the
//! leases of each resource that are asked for or belong to child servers, so that requests get in
//! between. The JSON of `/status` is this structure: its field names are an interface.

pub mod conflicts;
pub mod election;
pub mod learning;
pub mod readiness;
pub mod tree;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use doorward_engine::id::ResourceId;
use doorward_engine::node::mastership::Mastership;
use doorward_engine::snapshot::{LeaseSnapshot, ResourceSnapshot};
use doorward_engine::template::SafeCapacity;
use doorward_engine::time::Time;
use serde::Serialize;
use tokio::sync::watch;

use crate::clock;
use crate::election::etcd::Contact;
use crate::node_handle::NodeHandle;
use crate::status::conflicts::ConflictStatus;
use crate::status::election::EtcdStatus;
use crate::status::readiness::{Facts, Readiness, ReadyState};
use crate::status::tree::{ChildStatus, OwnLeaseStatus, ParentStatus};

/// Leases listed in one status at most, over all resources; those of child servers count once as
/// children and once as leases. With those and some ten thousand resources, a status stays within
/// what a gRPC client takes by default (4 MiB).
pub const LEASES_LISTED_MAX: usize = 10_000;

/// What is known in the process, for whoever asks.
#[derive(Debug)]
pub struct Board {
    node_name: String,
    /// Where this server is reached by others.
    address: String,
    node: Arc<NodeHandle>,
    templates: Mutex<TemplatesNews>,
    /// Absent at the root.
    parent: Mutex<Option<ParentNews>>,
    /// How often the epoch of the parent's master was forgotten for a lower one.
    parent_masterships_forgotten: AtomicU64,
    /// Absent: it is not asked.
    etcd: Mutex<Option<Contact>>,
    stopping: Mutex<bool>,
    /// Where the pages of the master are, if that is another server and says so.
    master_pages: Mutex<Option<String>>,
    ready: Mutex<ReadyState>,
    /// Whether the parent has answered since the start.
    parent_answered: watch::Sender<bool>,
    /// The parent refuses this node as its own ancestor.
    refused_as_ancestor: AtomicBool,
}

/// What is known of the templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatesNews {
    /// Where those in force come from.
    pub source: String,
    /// When they came into force, since the Unix epoch.
    pub since: Duration,
    /// Why the newest version was refused. Absent: it is in force.
    pub problem: Option<String>,
}

/// What is known of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentNews {
    /// Where its servers are, as configured.
    pub addresses: Vec<String>,
    /// The one that is asked now.
    pub address: String,
    /// How it is reached.
    pub link: ParentLink,
    /// Since when, since the Unix epoch.
    pub since: Duration,
    /// Why it cannot be reached, or not as it should.
    pub problem: Option<String>,
}

/// How a parent is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentLink {
    /// Not by this server: only the master of the node asks.
    Idle,
    /// Not at all, or not yet.
    Down,
    /// By calls: it is of the old kind, or its stream is broken.
    Poll,
    /// By a stream, on which both sides tell what changes.
    Stream,
}

impl ParentLink {
    /// `idle`, `down`, `poll` or `stream`.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Idle => "idle",
            Self::Down => "down",
            Self::Poll => "poll",
            Self::Stream => "stream",
        }
    }
}

impl Board {
    /// A board for a node.
    pub fn new(
        node_name: String,
        address: String,
        templates_source: String,
        node: Arc<NodeHandle>,
    ) -> Self {
        Self {
            node_name,
            address,
            node,
            templates: Mutex::new(TemplatesNews {
                source: templates_source,
                since: clock::wall(),
                problem: None,
            }),
            parent: Mutex::new(None),
            parent_masterships_forgotten: AtomicU64::new(0),
            etcd: Mutex::new(None),
            stopping: Mutex::new(false),
            master_pages: Mutex::new(None),
            ready: Mutex::new(ReadyState::new(Duration::ZERO)),
            parent_answered: watch::Sender::new(false),
            refused_as_ancestor: AtomicBool::new(false),
        }
    }

    /// The same, of a server that stays ready through elections which last no longer than this.
    #[must_use]
    pub fn riding_out(self, elections: Duration) -> Self {
        Self {
            ready: Mutex::new(ReadyState::new(elections)),
            ..self
        }
    }

    /// The node's name.
    pub fn node_name(&self) -> &str {
        &self.node_name
    }

    /// Where this server is reached by others.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// The node.
    pub fn node(&self) -> &Arc<NodeHandle> {
        &self.node
    }

    /// What is known of the templates.
    pub fn templates_news(&self) -> TemplatesNews {
        let news = self
            .templates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        news.clone()
    }

    /// The newest templates came into force (`None`), or were refused and why.
    pub fn post_templates(&self, problem: Option<String>) {
        let mut news = self
            .templates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if problem.is_none() {
            news.since = clock::wall();
        }
        news.problem = problem;
    }

    /// What is known of the parent. None: this is the root.
    pub fn parent_news(&self) -> Option<ParentNews> {
        let news = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        news.clone()
    }

    /// How often the epoch of the parent's master was forgotten for a lower one.
    pub fn parent_masterships_forgotten(&self) -> u64 {
        self.parent_masterships_forgotten.load(Ordering::Relaxed)
    }

    /// The epoch of the parent's master was forgotten for a lower one.
    pub fn count_parent_mastership_forgotten(&self) {
        self.parent_masterships_forgotten
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Something else is known of the parent now. A link that is what it was keeps its age.
    pub fn post_parent(&self, mut news: ParentNews) {
        let mut parent = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = parent.as_ref().filter(|before| before.link == news.link) {
            news.since = before.since;
        }
        *parent = Some(news);
    }

    /// How etcd is doing. None: it is not asked.
    pub fn etcd_contact(&self) -> Option<Contact> {
        let contact = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        contact.clone()
    }

    /// How etcd is doing now.
    pub fn post_etcd(&self, contact: Contact) {
        *self.etcd.lock().unwrap_or_else(PoisonError::into_inner) = Some(contact);
    }

    /// Another server is the master, which says that its pages are there; or none is known to.
    pub fn post_master_pages(&self, pages: Option<String>) {
        *self
            .master_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = pages;
    }

    fn master_pages(&self) -> Option<String> {
        let pages = self
            .master_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        pages.clone()
    }

    /// The server is shutting down.
    pub fn post_stopping(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Whether the server is shutting down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The parent has answered, other than by refusing this server as a whole. Returns whether it
    /// refused this node as its own ancestor before.
    pub fn post_parent_answered(&self) -> bool {
        self.parent_answered
            .send_if_modified(|answered| !std::mem::replace(answered, true));
        self.refused_as_ancestor.swap(false, Ordering::Relaxed)
    }

    /// Whether the parent has answered since the start, as soon as it has.
    pub fn parent_answered(&self) -> watch::Receiver<bool> {
        self.parent_answered.subscribe()
    }

    /// The parent refuses this node, which is its own ancestor. Returns whether that is news.
    pub fn post_refused_as_ancestor(&self) -> bool {
        !self.refused_as_ancestor.swap(true, Ordering::Relaxed)
    }

    /// Whether the node is its own ancestor, as its parent's answers show, or by which it refuses them.
    pub fn is_in_cycle(&self) -> bool {
        self.refused_as_ancestor.load(Ordering::Relaxed)
            || self.node.read(|node, _| node.is_in_cycle())
    }

    /// Whether requests can be served.
    pub fn readiness(&self) -> Readiness {
        self.judge_readiness().0
    }

    /// The same, and when it may end by itself.
    pub fn judge_readiness(&self) -> (Readiness, Option<Time>) {
        if self.is_stopping() {
            let why = "the server is shutting down".to_owned();
            return (Readiness::Unready(why), None);
        }
        let (mastership, templates, now) = self
            .node
            .read(|node, now| (node.mastership(now).clone(), node.templates().len(), now));
        let parent = self.parent_news();
        let facts = Facts {
            mastership,
            parent_answered: parent.as_ref().map(|_| *self.parent_answered.borrow()),
            parent_problem: parent.and_then(|news| news.problem),
            etcd_problem: self.etcd_contact().and_then(|contact| contact.problem),
            templates_problem: self.templates_news().problem.filter(|_| templates == 0),
        };
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let readiness = ready.judge(&facts, now);
        let ends_at = ready.ends_at().filter(|end| *end > now);
        (readiness, ends_at)
    }

    /// The state of everything now.
    pub fn status(&self, only: Option<&ResourceId>, leases_max: usize) -> Status {
        let news = self.templates_news();
        let parent = self.parent_news().map(ParentStatus::of);
        let (mastership, master_for, templates, resources, uptime, ancestors, conflicts) =
            self.node.read(|node, now| {
                let resources = match only {
                    Some(resource) => Vec::from_iter(node.resource_snapshot(resource, now)),
                    None => node.snapshot(now).resources,
                };
                let uptime = now.since(Time::ZERO);
                (
                    node.mastership(now).clone(),
                    node.valid_until().map(|until| millis(until.since(now))),
                    node.templates().len(),
                    resources,
                    uptime,
                    node.ancestors().to_vec(),
                    node.conflicts(now)
                        .map(|conflict| ConflictStatus::of(conflict, now))
                        .collect(),
                )
            });
        let mut listable = LEASES_LISTED_MAX;
        let resources = resources
            .into_iter()
            .map(|resource| self.resource(resource, leases_max, &mut listable))
            .collect();
        let (master_address, epoch) = match &mastership {
            Mastership::Master { epoch } => (Some(self.address.clone()), *epoch),
            Mastership::Follower {
                master_address,
                epoch,
            } => (Some(master_address.clone()), *epoch),
            Mastership::Unknown => (None, None),
        };
        Status {
            node: self.node_name.clone(),
            version: env!("CARGO_PKG_VERSION"),
            is_master: mastership.is_master(),
            master_pages: match &mastership {
                Mastership::Follower { .. } => self.master_pages(),
                Mastership::Master { .. } | Mastership::Unknown => None,
            },
            unready: match self.readiness() {
                Readiness::Ready => None,
                Readiness::Unready(why) => Some(why),
            },
            master_address,
            epoch,
            uptime_ms: millis(uptime),
            templates_source: news.source,
            templates,
            templates_problem: news.problem,
            etcd: self
                .etcd_contact()
                .map(|contact| EtcdStatus::of(contact, master_for)),
            parent,
            ancestors,
            is_in_cycle: self.is_in_cycle(),
            conflicts,
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
            learning: snapshot
                .learning_remaining
                .map(|left| learning::sentence(left, snapshot.upstream.is_none())),
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
            .node
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
