//! The state of the process for pages, metrics and the status. Each part posts its state here, so readers ask no part.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use doorward_engine::node::pages::Totals;
use doorward_engine::time::Time;
use tokio::sync::watch;

use crate::clock;
use crate::election::etcd::EtcdHealth;
use crate::limits::{LimitFigure, ServerLimits};
use crate::node_handle::NodeHandle;
use crate::status::readiness::{Facts, Readiness, ReadyState};
use crate::status::sessions::Sessions;

/// State of the process for all readers.
#[derive(Debug)]
pub struct Board {
    node_name: String,
    /// Address of this server for others.
    address: String,
    node: Arc<NodeHandle>,
    limits: Arc<ServerLimits>,
    templates: Mutex<TemplatesNews>,
    /// Parent. Absent at the root.
    parent: Mutex<Option<ParentNews>>,
    /// Number of times that the epoch of the parent's master was forgotten for a lower one.
    parent_masterships_forgotten: AtomicU64,
    /// Health of etcd. Absent: there is no election.
    etcd: Mutex<Option<EtcdHealth>>,
    sessions: Sessions,
    stopping: Mutex<bool>,
    /// Address of the master's pages, if another server is the master and tells it.
    master_pages: Mutex<Option<String>>,
    ready: Mutex<ReadyState>,
    /// Whether the parent has answered since the start.
    parent_answered: watch::Sender<bool>,
    /// Whether the parent refuses this node as its own ancestor.
    refused_as_ancestor: AtomicBool,
    /// Sums over all resources, and the time when they were added up.
    pub(super) totals: Mutex<(Time, Totals)>,
}

/// State of the templates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TemplatesNews {
    /// Source of the templates in force.
    pub source: String,
    /// Time when they came into force, since the Unix epoch.
    pub since: Duration,
    /// Problem of the newest version, if it was refused. Absent: it is in force.
    pub problem: Option<String>,
}

/// State of the parent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParentNews {
    /// Addresses of its servers, as configured.
    pub addresses: Vec<String>,
    /// Address that is asked now.
    pub address: String,
    /// Kind of link to it.
    pub link: ParentLink,
    /// Time of the last change of the link, since the Unix epoch.
    pub since: Duration,
    /// Problem with reaching the parent, if there is one.
    pub problem: Option<String>,
}

/// Kind of link to the parent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParentLink {
    /// No link is needed: only the master of the node asks.
    Idle,
    /// There is no link, or none yet.
    Down,
    /// Calls: the parent is a Doorman server, or its stream is broken.
    Poll,
    /// A stream, on which both sides tell changes.
    Stream,
}

impl ParentLink {
    /// Returns `idle`, `down`, `poll` or `stream`.
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
    /// Returns a board for a node.
    pub fn new(
        node_name: String,
        address: String,
        templates_source: String,
        node: Arc<NodeHandle>,
    ) -> Self {
        Self {
            node_name,
            address,
            limits: Arc::clone(node.limits()),
            node,
            templates: Mutex::new(TemplatesNews {
                source: templates_source,
                since: clock::wall(),
                problem: None,
            }),
            parent: Mutex::new(None),
            parent_masterships_forgotten: AtomicU64::new(0),
            etcd: Mutex::new(None),
            sessions: Sessions::default(),
            stopping: Mutex::new(false),
            master_pages: Mutex::new(None),
            ready: Mutex::new(ReadyState::new(Duration::ZERO)),
            parent_answered: watch::Sender::new(false),
            refused_as_ancestor: AtomicBool::new(false),
            totals: Mutex::default(),
        }
    }

    /// Returns the board of a server that stays ready through elections no longer than this.
    #[must_use]
    pub fn riding_out(self, elections: Duration) -> Self {
        Self {
            ready: Mutex::new(ReadyState::new(elections)),
            ..self
        }
    }

    /// Returns the node's name.
    pub fn node_name(&self) -> &str {
        &self.node_name
    }

    /// Returns the address of this server for others.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Returns the node.
    pub fn node(&self) -> &Arc<NodeHandle> {
        &self.node
    }

    /// Returns the limits of the server with their refusals.
    pub fn limits(&self) -> &Arc<ServerLimits> {
        &self.limits
    }

    /// Returns the figures of the limits, with their present use.
    pub fn limit_figures(&self) -> Vec<LimitFigure> {
        self.node.post_load(self.totals().leases_per_resource);
        self.limits.figures()
    }

    /// Returns the state of the templates.
    pub fn templates_news(&self) -> TemplatesNews {
        let news = self
            .templates
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        news.clone()
    }

    /// Notes that the newest templates came into force (`None`), or why they were refused.
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

    /// Returns the state of the parent. None: this is the root.
    pub fn parent_news(&self) -> Option<ParentNews> {
        let news = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        news.clone()
    }

    /// Returns whether the parent is out of reach or refuses this server, as far as is known.
    pub fn is_parent_down(&self) -> bool {
        let news = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        news.as_ref().is_some_and(|news| news.problem.is_some())
    }

    /// Returns the number of times that the epoch of the parent's master was forgotten for a lower one.
    pub fn parent_masterships_forgotten(&self) -> u64 {
        self.parent_masterships_forgotten.load(Ordering::Relaxed)
    }

    /// Counts that the epoch of the parent's master was forgotten for a lower one.
    pub fn count_parent_mastership_forgotten(&self) {
        self.parent_masterships_forgotten
            .fetch_add(1, Ordering::Relaxed);
    }

    /// Posts the state of the parent. An unchanged link keeps its time.
    pub fn post_parent(&self, mut news: ParentNews) {
        let mut parent = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(before) = parent.as_ref().filter(|before| before.link == news.link) {
            news.since = before.since;
        }
        *parent = Some(news);
    }

    /// Returns the states of sessions, which their drivers post.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// Returns the health of etcd. None: there is no election.
    pub fn etcd_health(&self) -> Option<EtcdHealth> {
        let contact = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        contact.clone()
    }

    /// Posts the health of etcd.
    pub fn post_etcd(&self, contact: EtcdHealth) {
        *self.etcd.lock().unwrap_or_else(PoisonError::into_inner) = Some(contact);
    }

    /// Posts the address of the master's pages. None: this server is the master, or the address is unknown.
    pub fn post_master_pages(&self, pages: Option<String>) {
        *self
            .master_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner) = pages;
    }

    pub(super) fn master_pages(&self) -> Option<String> {
        let pages = self
            .master_pages
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        pages.clone()
    }

    /// Notes that the server is shutting down.
    pub fn post_stopping(&self) {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner) = true;
    }

    /// Returns whether the server is shutting down.
    pub fn is_stopping(&self) -> bool {
        *self.stopping.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes an answer of the parent, other than a refusal of this server as a whole. Returns whether the parent
    /// refused this node as its own ancestor before.
    pub fn post_parent_answered(&self) -> bool {
        self.parent_answered
            .send_if_modified(|answered| !std::mem::replace(answered, true));
        self.refused_as_ancestor.swap(false, Ordering::Relaxed)
    }

    /// Returns a receiver that learns when the parent has answered for the first time since the start.
    pub fn parent_answered(&self) -> watch::Receiver<bool> {
        self.parent_answered.subscribe()
    }

    /// Notes that the parent refuses this node as its own ancestor. Returns whether that is news.
    pub fn post_refused_as_ancestor(&self) -> bool {
        !self.refused_as_ancestor.swap(true, Ordering::Relaxed)
    }

    /// Returns whether the node is its own ancestor: its parent refuses it for that, or names it as an ancestor.
    pub fn is_in_cycle(&self) -> bool {
        self.refused_as_ancestor.load(Ordering::Relaxed)
            || self.node.read(|node, _| node.is_in_cycle())
    }

    /// Returns whether requests can be served.
    pub fn readiness(&self) -> Readiness {
        self.judge_readiness().0
    }

    /// Returns the readiness, and the time when it may end by itself.
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
            is_in_cycle: self.is_in_cycle(),
            mastership,
            parent_answered: parent.as_ref().map(|_| *self.parent_answered.borrow()),
            parent_problem: parent.and_then(|news| news.problem),
            etcd_problem: self.etcd_health().and_then(|contact| contact.problem),
            templates_problem: self.templates_news().problem.filter(|_| templates == 0),
        };
        let mut ready = self.ready.lock().unwrap_or_else(PoisonError::into_inner);
        let readiness = ready.judge(&facts, now);
        let ends_at = ready.ends_at().filter(|end| *end > now);
        (readiness, ends_at)
    }
}
