//! The state of the process for pages, metrics and the status. Parts with texts for people set them here;
//! the rest is read from the replica.

use std::cmp::Reverse;
use std::iter;
use std::net::SocketAddr;
use std::sync::atomic::AtomicU64;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use doorward_door::tasks::joined;
use doorward_edge::edge::Edge;
use doorward_engine::id::ResourceId;
use doorward_engine::node::pages::Totals;
use doorward_engine::time::Time;
use doorward_proto::admin::v1::{CandidateStatus, LimitStatus, RuleDecisions, RulesStatus};
use doorward_session::candidate::standing::Standing;
use doorward_session::candidate::state::CandidateState;
use doorward_session::child_streams::StreamsSnapshot;
use doorward_session::named;
use doorward_session::parent_session::ParentSession;
use parking_lot::Mutex;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use tokio::sync::watch;

use crate::limits::ServerLimits;
use crate::replica_handle::ReplicaHandle;
use crate::security::Security;
use crate::status::history::History;
use crate::status::model;
use crate::status::readiness::{Facts, Readiness, ReadyState};
use crate::status::shadow::Shadow;

/// Largest number of rules whose answers a status lists.
const RULES_LISTED_MAX: usize = 20;

/// State of the process for all readers.
#[derive(Debug)]
pub struct ServerState {
    node_name: String,
    /// Address of this server for others.
    address: String,
    node: Arc<ReplicaHandle>,
    /// Source of the templates in force.
    pub(crate) templates_source: String,
    /// Problem of the newest version of the templates, if it was refused. None: it is in force.
    pub templates_problem: watch::Sender<Option<String>>,
    /// Versions of the templates read, by whether they came into force.
    pub(crate) template_loads: Family<[(&'static str, &'static str); 1], Counter>,
    /// Time when the templates in force were read, in seconds since the Unix epoch.
    pub(crate) templates_loaded: Gauge<f64, AtomicU64>,
    /// Resources in requests that were refused because they were malformed.
    pub(crate) asks_malformed: Counter,
    /// State of the rules.
    pub rules: watch::Sender<RulesNews>,
    /// State of the parent. None: this is the root.
    pub parent: watch::Sender<Option<ParentNews>>,
    /// Health of etcd. None: there is no election.
    pub etcd: watch::Sender<Option<EtcdHealth>>,
    /// Why the state directory cannot be written, if there is one.
    pub state_directory: watch::Sender<Option<Option<String>>>,
    /// Whether the server is shutting down.
    pub is_stopping: watch::Sender<bool>,
    history: History,
    ready: Mutex<ReadyState>,
    /// Decisions by rules. Absent: this server has no rules.
    pub(crate) edge: OnceLock<Arc<Edge>>,
    /// TLS and identities. Absent: the server does not listen yet.
    pub security: OnceLock<Arc<Security>>,
    /// Shadow templates. Absent: there are none.
    pub shadow: OnceLock<Arc<Shadow>>,
    /// Address of this server's pages. Absent: it serves none by TCP.
    pub(crate) pages: OnceLock<SocketAddr>,
    /// Whether it serves nothing without rules, and is not ready without them.
    pub(crate) needs_rules: bool,
    /// Sums over all resources, and the time when they were added up.
    pub(super) totals: Mutex<(Time, Totals)>,
}

/// State of the rules.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RulesNews {
    /// Documents by domain.
    pub documents: Vec<RulesDocument>,
    /// Problem of the place, or of all documents together. Absent: there is none.
    pub problem: Option<String>,
}

/// A document of rules, and the time when its version came into force, since the Unix epoch.
pub type RulesDocument = (RulesStatus, Duration);

/// Health of etcd, as this server sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdHealth {
    /// Time of the last change, since the Unix epoch.
    pub since: Duration,
    /// Why etcd cannot be asked. None: it answers.
    pub problem: Option<String>,
    /// Length of a mastership after etcd has confirmed it.
    pub term: Duration,
}

/// States of the sessions of a server.
#[derive(Clone, Debug, Default)]
pub struct Sessions {
    /// Session with the parent. Absent: there is no parent.
    pub parent: Option<&'static str>,
    /// Candidate. Absent: there is no election.
    pub election: Option<CandidateState>,
    /// Streams of child servers.
    pub child_streams: StreamsSnapshot,
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

named! {
    /// Kind of link to the parent.
    ParentLink {
        /// No link is needed: only the master of the node asks.
        Idle = "idle",
        /// There is no link, or none yet.
        Down = "down",
        /// Calls: the parent is a Doorman server, or its stream is broken.
        Poll = "poll",
        /// A stream, on which both sides tell changes.
        Stream = "stream",
    }
}

impl ServerState {
    /// Returns the state of a server with that node.
    pub fn new(
        node_name: String,
        address: String,
        templates_source: String,
        node: Arc<ReplicaHandle>,
    ) -> Self {
        Self {
            node_name,
            address,
            node,
            templates_source,
            templates_problem: watch::Sender::default(),
            template_loads: Family::default(),
            templates_loaded: Gauge::default(),
            asks_malformed: Counter::default(),
            rules: watch::Sender::default(),
            parent: watch::Sender::default(),
            etcd: watch::Sender::default(),
            state_directory: watch::Sender::default(),
            is_stopping: watch::Sender::default(),
            history: History::default(),
            ready: Mutex::new(ReadyState::new(Duration::ZERO)),
            edge: OnceLock::new(),
            security: OnceLock::new(),
            shadow: OnceLock::new(),
            pages: OnceLock::new(),
            needs_rules: false,
            totals: Mutex::default(),
        }
    }

    /// Makes the server stay ready through elections no longer than this.
    pub fn ride_out(&mut self, elections: Duration) {
        self.ready = Mutex::new(ReadyState::new(elections));
    }

    /// Returns the decisions by rules. None: this server has no rules.
    pub fn edge(&self) -> Option<&Arc<Edge>> {
        self.edge.get()
    }

    /// Notes resources that programs or child servers of an agent lease: their leases outlast the process.
    pub fn note_lent<'a>(&self, resources: impl Iterator<Item = &'a ResourceId>) {
        if let Some(edge) = self.edge().filter(|_| self.needs_rules) {
            for resource in resources {
                let _may = edge.records().lend(resource.as_str());
            }
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
    pub fn node(&self) -> &Arc<ReplicaHandle> {
        &self.node
    }

    /// Returns figures of the last day.
    pub fn history(&self) -> &History {
        &self.history
    }

    /// Returns the limits of the server with their refusals.
    pub fn limits(&self) -> &Arc<ServerLimits> {
        self.node.limits()
    }

    /// Returns the figures of the limits, with their present use.
    pub fn limit_figures(&self) -> Vec<LimitStatus> {
        self.node.set_load(self.totals().leases_per_resource);
        self.limits().figures()
    }

    /// Sets the state of the parent. An unchanged link keeps its time.
    pub fn set_parent(&self, mut news: ParentNews) {
        self.parent.send_modify(|parent| {
            if let Some(before) = parent.as_ref().filter(|before| before.link == news.link) {
                news.since = before.since;
            }
            *parent = Some(news);
        });
    }

    /// Returns the states of the sessions.
    pub fn sessions(&self) -> Sessions {
        self.node.read_replica(|replica, now| Sessions {
            parent: replica.parent_session().map(ParentSession::state),
            election: replica.candidate().map(|candidate| candidate.state(now)),
            child_streams: replica.streams(),
        })
    }

    /// Returns the candidates of the node, as etcd lists them.
    pub(super) fn candidates(&self) -> Vec<CandidateStatus> {
        self.node.read_replica(|replica, _| {
            let known = replica.candidate().into_iter();
            let known = known.flat_map(|it| it.registrations());
            let candidates = known.map(|it| CandidateStatus {
                address: it.address.to_string(),
                pages_address: it.pages.as_ref().map(ToString::to_string),
            });
            candidates.collect()
        })
    }

    /// Returns the address of the master's pages, if another server is the master and tells it.
    pub(super) fn master_pages(&self) -> Option<String> {
        self.node
            .read_replica(|replica, _| match replica.standing() {
                Some(Standing::Elsewhere { pages, .. }) => pages.as_ref().map(ToString::to_string),
                _ => None,
            })
    }

    /// Returns whether the node is its own ancestor: its parent refuses it for that, or names it as an ancestor.
    pub fn is_in_cycle(&self) -> bool {
        self.node.read_replica(|replica, _| replica.is_in_cycle())
    }

    /// Returns the problem of an agent whose rules are not loaded.
    fn rules_problem(&self) -> Option<String> {
        let edge = self.edge().filter(|_| self.needs_rules)?;
        let not_yet = || "no document has been read yet".to_owned();
        (!edge.is_loaded()).then(|| self.refused_rules().unwrap_or_else(not_yet))
    }

    /// Returns the problems of rules that are not in force as they are stored. None: there are none.
    pub fn refused_rules(&self) -> Option<String> {
        let rules = self.rules.borrow();
        let of_documents = rules.documents.iter().map(|(it, _)| &it.problem);
        let all = iter::once(&rules.problem).chain(of_documents).flatten();
        let all: Vec<&str> = all.map(String::as_str).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns the answers of rules to requests, those of the rules with the most refusals first.
    pub(super) fn rule_decisions(&self) -> Vec<RuleDecisions> {
        let tallies = self.edge().map(|edge| edge.limiter().tallies());
        let tallies = tallies.unwrap_or_default();
        let decisions = tallies.iter().map(|it| model::rule_decisions(it));
        let weight = |it: &RuleDecisions| {
            let passed = it.waited_count + it.allowed_count;
            Reverse((it.refused_count, it.shadow_count, passed))
        };
        let mut decisions: Vec<_> = decisions.filter(|it| weight(it).0 > (0, 0, 0)).collect();
        decisions.sort_by_key(weight);
        decisions.truncate(RULES_LISTED_MAX);
        decisions
    }

    /// Reads the state, and makes an answer from it on a thread of its own. The work continues to its end even if the
    /// caller gives up.
    ///
    /// A worker that serves calls must not do it. The status of a hundred thousand resources takes many milliseconds to
    /// make and to write, and a server with one core has one such worker. The door bounds the number of readers at a
    /// time (`InFlightCall::look`).
    pub async fn look<T>(self: &Arc<Self>, look: impl FnOnce(&Self) -> T + Send + 'static) -> T
    where
        T: Send + 'static,
    {
        let state = Arc::clone(self);
        joined(tokio::task::spawn_blocking(move || look(&state))).await
    }

    /// Returns whether requests can be served.
    pub fn readiness(&self) -> Readiness {
        self.judge_readiness().0
    }

    /// Returns the readiness, and the time when it may end by itself.
    pub fn judge_readiness(&self) -> (Readiness, Option<Time>) {
        if *self.is_stopping.borrow() {
            return (Err("the server is shutting down".to_owned()), None);
        }
        let (facts, has_templates, now) = self.node.read_replica(|replica, now| {
            let node = replica.node();
            let session = replica.parent_session();
            let facts = Facts {
                mastership: node.mastership(now).clone(),
                parent_answered: replica.parent_status().map(|status| status.has_answered),
                is_in_cycle: replica.is_in_cycle(),
                is_second: session.is_some_and(|session| session.is_second(now)),
                ..Facts::default()
            };
            (facts, !node.templates().is_empty(), now)
        });
        let (parent, etcd) = (self.parent.borrow().clone(), self.etcd.borrow().clone());
        let templates_problem = self.templates_problem.borrow().clone();
        let facts = Facts {
            rules_problem: self.rules_problem(),
            parent_problem: parent.and_then(|news| news.problem),
            etcd_problem: etcd.and_then(|contact| contact.problem),
            templates_problem: templates_problem.filter(|_| !has_templates),
            ..facts
        };
        let mut ready = self.ready.lock();
        let readiness = ready.judge(&facts, now);
        let ends_at = ready.ends_at().filter(|end| *end > now);
        (readiness, ends_at)
    }
}
