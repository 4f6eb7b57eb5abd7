//! The state of the process for pages, metrics and the status: each part posts its state here, and readers ask no
//! part itself.

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

/// What is known in the process, for whoever asks.
#[derive(Debug)]
pub struct Board {
    node_name: String,
    /// Where this server is reached by others.
    address: String,
    node: Arc<NodeHandle>,
    limits: Arc<ServerLimits>,
    templates: Mutex<TemplatesNews>,
    /// Absent at the root.
    parent: Mutex<Option<ParentNews>>,
    /// How often the epoch of the parent's master was forgotten for a lower one.
    parent_masterships_forgotten: AtomicU64,
    /// Absent: it is not asked.
    etcd: Mutex<Option<EtcdHealth>>,
    sessions: Sessions,
    stopping: Mutex<bool>,
    /// Where the pages of the master are, if that is another server and says so.
    master_pages: Mutex<Option<String>>,
    ready: Mutex<ReadyState>,
    /// Whether the parent has answered since the start.
    parent_answered: watch::Sender<bool>,
    /// The parent refuses this node as its own ancestor.
    refused_as_ancestor: AtomicBool,
    /// Sums over all resources, and when they were added up.
    pub(super) totals: Mutex<(Time, Totals)>,
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
    /// By calls: it is a Doorman server, or its stream is broken.
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

    /// The limits of the server, and what they have refused.
    pub fn limits(&self) -> &Arc<ServerLimits> {
        &self.limits
    }

    /// The same as figures, with what is in use at this moment.
    pub fn limit_figures(&self) -> Vec<LimitFigure> {
        self.node.post_load(self.totals().leases_per_resource);
        self.limits.figures()
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

    /// Whether the parent is known to be out of reach, or to refuse this server.
    pub fn is_parent_down(&self) -> bool {
        let news = self.parent.lock().unwrap_or_else(PoisonError::into_inner);
        news.as_ref().is_some_and(|news| news.problem.is_some())
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

    /// In which states sessions are: their drivers post it.
    pub fn sessions(&self) -> &Sessions {
        &self.sessions
    }

    /// How etcd is doing. None: it is not asked.
    pub fn etcd_health(&self) -> Option<EtcdHealth> {
        let contact = self.etcd.lock().unwrap_or_else(PoisonError::into_inner);
        contact.clone()
    }

    /// How etcd is doing now.
    pub fn post_etcd(&self, contact: EtcdHealth) {
        *self.etcd.lock().unwrap_or_else(PoisonError::into_inner) = Some(contact);
    }

    /// Another server is the master, which says that its pages are there; or none is known to.
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
