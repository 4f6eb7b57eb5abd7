//! Limits for programs without a client library, by the rules that this server keeps ([`doorward_edge`]).
//!
//! Callers of these doors are holders of the server's own node. The rules of all documents are in force together. A root
//! without templates of its own gets one for each rule.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::Arc;

use doorward::rules::source::files;
use doorward::rules::{Rules, Scope};
use doorward_door::listener::Address;
use doorward_door::tasks::joined;
use doorward_edge::clock::Wall;
use doorward_edge::edge::Edge;
use doorward_edge::ids;
use doorward_edge::node::{Later, Node, Pushes};
use doorward_edge::records::{LEASE_LENGTH, Records};
use doorward_engine::id::HolderId;
use doorward_engine::messages::{GetCapacity, GetCapacityReply, ReleaseCapacity};
use doorward_engine::node as engine;
use doorward_engine::node::asking::Answers;
use doorward_engine::node::mastership::Outcome;
use doorward_engine::templates::Templates;
use doorward_proto::admin::v1::RulesStatus;
use futures_util::stream::{self, StreamExt as _};
use tracing::warn;

use crate::clock;
use crate::limits::ServerLimit;
use crate::replica_handle::{PushStream, ReplicaHandle};
use crate::rules::documents::Documents;
use crate::rules::store::RuleStore;
use crate::status::{RulesDocument, RulesNews, ServerState};
use crate::templates;

/// Largest number of warnings about rules that the log tells.
const WARNINGS_MAX: usize = 20;

/// Doors for programs without a client library, besides Envoy's.
#[derive(Clone, Debug, Default)]
pub struct EdgeDoors {
    /// Whether the HTTP port answers requests by rules.
    pub has_http: bool,
    /// Address of the door for Redis clients. Absent: it is not served.
    pub redis_listen: Option<Address>,
    /// Whether each rule makes a template, for a root without templates of its own.
    pub makes_templates: bool,
}

/// The node of this server.
#[derive(Debug)]
struct OwnNode(Arc<ReplicaHandle>);

impl Node for OwnNode {
    fn get_capacity(&self, request: GetCapacity) -> Later<'_, Option<Outcome<GetCapacityReply>>> {
        Box::pin(async move {
            let mut answers = Answers::to_client(&request);
            self.0.answer_client(&request, &mut answers).await
        })
    }

    fn release(&self, request: ReleaseCapacity) -> Later<'_, ()> {
        Box::pin(async move {
            let mut released = Vec::with_capacity(request.resources.len());
            let next =
                |node: &mut engine::Node, now| node.release_next(&request, &mut released, now);
            self.0.finish(next).await;
        })
    }

    fn pushes(&self, client: HolderId) -> Option<Pushes> {
        let mut stream = PushStream::open(Arc::clone(&self.0));
        stream.claim(client);
        let pushes = stream::unfold(stream, async |mut stream| {
            let push = stream.next().await.ok().map(|(_, push)| push);
            Some((push, stream))
        });
        Some(pushes.boxed())
    }
}

/// Part of `--memory-max` for the doors, if there are any; the rest is for the node.
pub const PART_OF_MEMORY: usize = 4;

/// Begins to decide for all doors of a server, without rules yet.
pub fn start(state: &ServerState, records: Records) -> Arc<Edge> {
    let node = Arc::new(OwnNode(Arc::clone(state.node())));
    let of_node = state.limits().of(ServerLimit::Memory).max();
    let bytes_max = usize::try_from(of_node).unwrap_or(usize::MAX) / (PART_OF_MEMORY - 1);
    let edge = Edge::within(bytes_max, node, Rules::default(), Wall::Machine, records);
    Arc::clone(state.edge.get_or_init(|| edge))
}

/// Puts the rules of all documents in force, now and whenever they change. Runs until the server ends: spawn it.
/// `makes_templates`: a template for each rule, too.
pub(crate) async fn follow(
    edge: Arc<Edge>,
    store: Arc<RuleStore>,
    makes_templates: bool,
    state: Arc<ServerState>,
) {
    let mut documents = store.documents();
    let (mut in_force, mut problem) = (None, None);
    let mut is_first = true;
    loop {
        let now = Arc::clone(&documents.borrow_and_update());
        // Until there are rules, no request is decided.
        let versions = now.versions_in_force();
        let has_some = edge.is_loaded() || versions.iter().any(|(_, version)| version.is_some());
        let versions = has_some.then_some(versions);
        let rules = match &versions {
            Some(_) if versions != in_force => load(Arc::clone(&now)).await.map(Some),
            _ => Ok(None),
        };
        problem = match &rules {
            Ok(Some(_)) => None,
            Ok(None) => problem,
            Err(problem) => Some(problem.clone()),
        };
        in_force = versions;
        if let Ok(Some(rules)) = rules {
            if makes_templates {
                match templates_of(&rules) {
                    Ok(made) => templates::apply(&state, made).await,
                    Err(problem) => templates::refuse(&state, problem),
                }
            }
            for warning in rules.warnings().into_iter().take(WARNINGS_MAX) {
                warn!(warning, "a warning about the rules in force");
            }
            edge.set_rules(rules);
        }
        let former = state.rules.borrow().documents.clone();
        state.rules.send_replace(RulesNews {
            documents: described(&now, &edge.rules(), &former),
            problem: now.problem.clone().or_else(|| problem.clone()),
        });
        // Rules that are read at the start are no change.
        if !std::mem::take(&mut is_first) {
            tokio::spawn(note_rules(Arc::clone(&state), Arc::clone(&store), former));
        }
        if documents.changed().await.is_err() {
            return;
        }
    }
}

/// Notes on charts which rules came into force, with their authors, if a history tells.
async fn note_rules(state: Arc<ServerState>, store: Arc<RuleStore>, former: Vec<RulesDocument>) {
    let documents = state.rules.borrow().documents.clone();
    for (now, _) in documents {
        let is_same =
            |(it, _): &RulesDocument| it.domain == now.domain && it.version == now.version;
        if now.version.is_none() || former.iter().any(is_same) {
            continue;
        }
        let author = store.author_of(&now.domain).await;
        let what = format!("rules of {}", now.domain);
        templates::note(&state, &what, author);
    }
}

/// Describes the documents, each with the time when it came into force.
fn described(now: &Documents, rules: &Rules, former: &[RulesDocument]) -> Vec<RulesDocument> {
    let mut counts = BTreeMap::<&str, u32>::new();
    for rule in rules.rules() {
        *counts.entry(&rule.domain).or_default() += 1;
    }
    let documents = now.by_domain.iter().map(|(domain, document)| {
        let version = document.version_in_force();
        let mut same = former.iter();
        let same = same.find(|(it, _)| it.domain == *domain && it.version.as_deref() == version);
        let status = RulesStatus {
            domain: domain.clone(),
            version: version.map(str::to_owned),
            rules_count: counts.get(&**domain).copied().unwrap_or_default(),
            age_ms: 0,
            refused_version: (document.problem.is_some()
                && version != Some(&*document.found.version))
            .then(|| document.found.version.clone()),
            problem: document.problem.clone(),
        };
        (status, same.map_or_else(clock::wall, |(_, since)| *since))
    });
    documents.collect()
}

/// Loads the texts in force, on a thread that large documents may keep busy.
///
/// # Errors
///
/// The problem, if they do not load together.
async fn load(documents: Arc<Documents>) -> Result<Rules, String> {
    let load = move || {
        let texts = documents.by_domain.values().filter_map(|it| {
            let found = it.in_force.as_ref()?;
            Some((&*found.source, found.text.as_bytes()))
        });
        files::load(texts).map(|mut rules| {
            let refused = documents.by_domain.iter();
            for (domain, _) in refused.filter(|(_, it)| it.is_refused) {
                rules.refuse(domain);
            }
            rules
        })
    };
    let loaded = joined(tokio::task::spawn_blocking(load)).await;
    loaded.map_err(|problems| {
        let problem = problems.to_string();
        warn!(problem, "rules do not load together; nothing changes");
        problem
    })
}

/// Returns a template for the resources of each rule. The first template that matches counts: those of nested rules come
/// first, since a star matches their keys too. As among rules, the exact value of a key is best, then a value with a
/// star, then the bare key.
fn templates_of(rules: &Rules) -> Result<Templates, String> {
    let mut rules: Vec<_> = rules.rules().iter().collect();
    rules.retain(|rule| rule.counted().is_some());
    if rules.is_empty() {
        return Ok(Templates::default());
    }
    rules.sort_by_key(|rule| {
        let kinds = rule.levels.iter().zip(&rule.hashed);
        let kinds = kinds.map(|((_, value), is_hashed)| match value {
            // No value of another rule has the form of a hash.
            _ if *is_hashed => 0,
            Some(value) => u8::from(value.contains('*')),
            None => 2,
        });
        (Reverse(rule.levels.len()), kinds.collect::<Vec<u8>>())
    });
    // Callers of one priority have fair shares. Leases last a little longer than Envoy may use an assignment that is not
    // renewed.
    let length = LEASE_LENGTH.as_secs();
    let lease = format!("lease_length: {length}s, refresh_interval: 1s");
    let templates = rules.into_iter().filter_map(|rule| {
        let (glob, rate) = (ids::glob(rule), rule.counted()?.rate);
        let (capacity, terms) = match rule.scope {
            // It begins anew with each start: nothing is kept of it.
            Scope::Budget => {
                let (period, amount) = (rate.period().get(), rate.amount().floor());
                let seconds = period.div_ceil(1_000_000_000);
                let parameters = format!(
                    "[{{name: window, value: {seconds}s}}, {{name: largest_call, value: {amount}}}]"
                );
                let terms = "kind: BUDGET, learning_mode_duration: 0s";
                let terms = format!("{terms}, {lease}, parameters: {parameters}");
                (amount as f64, terms)
            }
            Scope::Local | Scope::Shared => (
                rate.as_per_second(),
                format!("kind: PRIORITY_BANDS, {lease}"),
            ),
        };
        Some(format!(
            "- identifier_glob: \"{glob}\"\n  capacity: {capacity}\n  algorithm: {{{terms}}}\n"
        ))
    });
    let text = format!("resources:\n{}", templates.collect::<String>());
    doorward_documents::parse_yaml(&text, "templates of the rules").map_err(|it| it.to_string())
}
