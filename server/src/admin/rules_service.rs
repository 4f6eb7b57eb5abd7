//! The rules service: rule documents for operators, tools and the services that run them.
//!
//! Any caller may read. An operator may write, and so may a caller on loopback, if the server needs no identity.

use std::pin::Pin;
use std::sync::Arc;

use doorward::rules::version_of;
use doorward_clock::Instant;
use doorward_door::tasks::joined;
use doorward_etcd::documents::Recorded;
use doorward_proto::admin::v1::rules_server::Rules;
use doorward_proto::admin::v1::{
    self as wire, ApplyRulesRequest, ApplyRulesResponse, CheckRulesRequest, CheckRulesResponse,
    DeleteRulesRequest, DeleteRulesResponse, RulesHistoryRequest, RulesHistoryResponse,
};
use tokio::sync::{Mutex, OwnedMutexGuard};
use tokio_stream::Stream;
use tonic::{Request, Response, Status as RpcStatus, Streaming};

use crate::caller;
use crate::methods::Answer;
use crate::rules::document::{self, PROBLEMS_MAX};
use crate::rules::documents::Documents;
use crate::rules::store::RuleStore;
use crate::stored_place::{DocumentChange, StoredPlace};

/// Answer of a server without a place of rules.
pub(super) const NO_RULES: &str =
    "this server has no rules; start it with --rules DIR or --rules etcd:PREFIX";

/// Largest number of revisions on a page of a history.
const REVISIONS_MAX: usize = 100;

/// The rules service. [`mod@super::rules_watch`] serves its method `Watch`.
#[derive(Clone, Debug)]
pub struct RulesService {
    /// None: the server has no rule documents.
    store: Option<Arc<RuleStore>>,
    /// One document is checked, or one history read at a time: a parsed document takes many times its size.
    checks: Arc<Mutex<()>>,
}

impl RulesService {
    /// Serves the documents of `store`.
    pub fn new(store: Option<Arc<RuleStore>>) -> Self {
        let checks = Arc::default();
        Self { store, checks }
    }

    pub(crate) fn store(&self) -> Result<&Arc<RuleStore>, RpcStatus> {
        let none = || RpcStatus::failed_precondition(NO_RULES);
        self.store.as_ref().ok_or_else(none)
    }

    /// Returns the documents, if they have been read from their place.
    fn documents(&self) -> Result<Arc<Documents>, RpcStatus> {
        let documents = Arc::clone(&self.store()?.documents().borrow());
        if documents.is_read {
            return Ok(documents);
        }
        let not_yet = "the rules have not been read yet; try again";
        let problem = documents.problem.as_deref().unwrap_or(not_yet);
        Err(RpcStatus::unavailable(problem))
    }

    /// Returns the document of a domain.
    fn document(&self, domain: &str) -> Result<wire::RuleDocument, RpcStatus> {
        let documents = self.documents()?;
        let document = documents.by_domain.get(domain);
        let none = || RpcStatus::not_found("there is no document of this domain; see List");
        document.map(|it| it.stored(domain, true)).ok_or_else(none)
    }

    /// Returns the place of a document that was read.
    pub(crate) fn place(&self, domain: &str) -> Result<StoredPlace, RpcStatus> {
        self.document(domain)?;
        Ok(self.store()?.place(domain))
    }
}

/// Parses a document on a blocking thread, because a large one takes long.
pub(crate) async fn check(
    turn: OwnedMutexGuard<()>,
    domain: String,
    text: String,
) -> Vec<wire::RuleProblem> {
    let check = move || {
        let _turn = turn;
        document::check(&domain, text.as_bytes())
    };
    let checked = joined(tokio::task::spawn_blocking(check)).await;
    let problems = checked.err().unwrap_or_default().0.into_iter();
    let problems = problems.take(PROBLEMS_MAX).map(|it| wire::RuleProblem {
        line: it.line,
        message: it.message,
    });
    problems.collect()
}

/// Returns a revision of a history.
pub(crate) fn revision(recorded: Recorded, with_text: bool) -> wire::RulesRevision {
    let mut revision = wire::RulesRevision {
        number: recorded.number,
        ..wire::RulesRevision::default()
    };
    match recorded.version {
        Ok(version) => {
            revision.kind = version.kind.to_string();
            revision.who = version.who;
            revision.when_unix_ms = version.when_unix_ms;
            revision.why = version.why;
            revision.text = version.document.filter(|_| with_text);
        }
        Err(problem) => revision.problem = Some(problem),
    }
    revision
}

#[tonic::async_trait]
impl Rules for RulesService {
    async fn list(&self, _: Request<wire::ListRulesRequest>) -> Answer<wire::ListRulesResponse> {
        let documents = self.documents()?;
        let listed = documents.by_domain.iter();
        let listed = listed.map(|(domain, it)| it.stored(domain, false));
        Ok(Response::new(wire::ListRulesResponse {
            documents: listed.collect(),
            problem: documents.problem.clone(),
        }))
    }

    async fn get(&self, request: Request<wire::GetRulesRequest>) -> Answer<wire::GetRulesResponse> {
        let document = Some(self.document(&request.get_ref().domain)?);
        Ok(Response::new(wire::GetRulesResponse { document }))
    }

    async fn check(&self, request: Request<CheckRulesRequest>) -> Answer<CheckRulesResponse> {
        self.store()?;
        let CheckRulesRequest { domain, text } = request.into_inner();
        let turn = Arc::clone(&self.checks).lock_owned().await;
        let problems = check(turn, domain, text).await;
        Ok(Response::new(CheckRulesResponse { problems }))
    }

    async fn apply(&self, request: Request<ApplyRulesRequest>) -> Answer<ApplyRulesResponse> {
        let (store, address) = (self.store()?, caller::writer(request.extensions())?);
        let request = request.into_inner();
        let turn = Arc::clone(&self.checks).lock_owned().await;
        let problems = check(turn, request.domain.clone(), request.text.clone()).await;
        if let Some(first) = problems.first() {
            let (line, message, count) = (first.line, &first.message, problems.len());
            let problem = format!("line {line}: {message} (the first of {count}; Check tells all)");
            return Err(RpcStatus::invalid_argument(problem));
        }
        let version = version_of(request.text.as_bytes());
        let who = Some(request.who).filter(|it| !it.is_empty());
        let change = DocumentChange {
            text: Some(request.text),
            seen_version: request.seen_version,
            who: who.unwrap_or(address),
            why: request.why,
        };
        let revision = store.write(request.domain, change).await?;
        let applied = ApplyRulesResponse { version, revision };
        Ok(Response::new(applied))
    }

    async fn delete(&self, request: Request<DeleteRulesRequest>) -> Answer<DeleteRulesResponse> {
        let store = self.store()?;
        caller::writer(request.extensions())?;
        let request = request.into_inner();
        document::check_domain(&request.domain).map_err(RpcStatus::invalid_argument)?;
        let change = DocumentChange {
            seen_version: request.seen_version,
            ..DocumentChange::default()
        };
        store.write(request.domain, change).await?;
        Ok(Response::new(DeleteRulesResponse {}))
    }

    async fn history(&self, request: Request<RulesHistoryRequest>) -> Answer<RulesHistoryResponse> {
        let request = request.into_inner();
        document::check_domain(&request.domain).map_err(RpcStatus::invalid_argument)?;
        let before = Some(request.before).filter(|it| *it != 0);
        let before = before.unwrap_or(u64::MAX);
        let place = self.store()?.place(&request.domain);
        let revisions = place.history(&self.checks, before, REVISIONS_MAX).await?;
        let revisions = revisions.into_iter().map(|it| revision(it, request.texts));
        let revisions = revisions.collect();
        Ok(Response::new(RulesHistoryResponse { revisions }))
    }

    type WatchStream =
        Pin<Box<dyn Stream<Item = Result<wire::WatchRulesResponse, RpcStatus>> + Send>>;

    async fn watch(
        &self,
        _: Request<Streaming<wire::WatchRulesRequest>>,
    ) -> Answer<Self::WatchStream> {
        Err(RpcStatus::unimplemented("served by `rules_watch`"))
    }

    async fn list_instances(
        &self,
        request: Request<wire::ListInstancesRequest>,
    ) -> Answer<wire::ListInstancesResponse> {
        let instances = &self.store()?.instances;
        let listed = instances.list(&request.get_ref().token, Instant::now());
        listed.map(Response::new)
    }
}
