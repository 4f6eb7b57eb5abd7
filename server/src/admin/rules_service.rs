//! The rules service: rule documents for operators, tools and the services that run them.
//!
//! Any caller may read. An operator may write, and so may a caller on loopback, if the server needs no identity.

use std::pin::Pin;
use std::sync::Arc;

use doorward_clock::Instant;
use doorward_door::caller_id::CallerId;
use doorward_door::overload;
use doorward_etcd::documents::Recorded;
use doorward_proto::admin::v1 as wire;
use doorward_proto::admin::v1::rules_server::Rules;
use doorward_proto::version_of;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::CancellationToken;
use tonic::{Request, Response, Status as RpcStatus, Streaming};

use crate::admin::callers_service::may_write;
use crate::rpc::caller;
use crate::rules::documents::{self, DOCUMENTS_MAX, Documents, PROBLEMS_MAX};
use crate::rules::instances::{INSTANCES_MAX, NAME_BYTES_MAX, REPORT_BYTES_MAX};
use crate::rules::store::RuleStore;

/// The rules service.
#[derive(Clone, Debug)]
pub struct RulesService {
    /// None: the server has no rule documents.
    store: Option<Arc<RuleStore>>,
    /// Cancelled when the server stops; then watches end.
    stop: CancellationToken,
}

type Answer<T> = Result<Response<T>, RpcStatus>;

/// Next answer of a watch, for some domains. The message is made when the client takes it, so a client that takes
/// nothing holds no copy.
type Due = Result<(Arc<Documents>, Arc<[String]>), RpcStatus>;

impl RulesService {
    /// Serves the documents of `store`.
    pub const fn new(store: Option<Arc<RuleStore>>, stop: CancellationToken) -> Self {
        Self { store, stop }
    }

    fn store(&self) -> Result<&Arc<RuleStore>, RpcStatus> {
        self.store.as_ref().ok_or_else(|| {
            let problem =
                "this server has no rules; start it with --rules DIR or --rules etcd:PREFIX";
            RpcStatus::failed_precondition(problem)
        })
    }

    /// Returns the documents, if they have been read from their place.
    fn documents(&self) -> Result<Arc<Documents>, RpcStatus> {
        let documents = Arc::clone(&self.store()?.documents().borrow());
        if documents.is_read {
            return Ok(documents);
        }
        let problem = documents.problem.as_deref();
        Err(RpcStatus::unavailable(
            problem.unwrap_or("the rules have not been read yet; try again"),
        ))
    }
}

/// Returns the caller's identity, or else its address, if the caller may write.
fn writer<T>(request: &Request<T>) -> Result<String, RpcStatus> {
    if !may_write(request) {
        let problem = "rules are written from the server's own machine, or with the token of an operator; or change the \
                       directory or etcd itself";
        return Err(RpcStatus::permission_denied(problem));
    }
    let address = request.extensions().get::<CallerId>();
    let address = || address.map_or_else(String::new, ToString::to_string);
    Ok(caller::identity(request).map_or_else(address, ToString::to_string))
}

/// Parses a document on a blocking thread, because a large one takes long.
async fn check(domain: String, text: String) -> Result<Vec<wire::RuleProblem>, RpcStatus> {
    let check = move || documents::check(&domain, text.as_bytes());
    let checked = tokio::task::spawn_blocking(check).await;
    let checked = checked.map_err(|error| RpcStatus::internal(error.to_string()))?;
    let problems = checked.err().unwrap_or_default().into_iter();
    let problems = problems.take(PROBLEMS_MAX).map(|it| wire::RuleProblem {
        line: it.line,
        message: it.message,
    });
    Ok(problems.collect())
}

fn revision(recorded: Recorded, with_text: bool) -> wire::RulesRevision {
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

/// Returns the documents of some domains. No domains: all.
fn asked<'a>(documents: &'a Documents, domains: &[String]) -> Vec<&'a wire::RulesInForce> {
    let documents = documents.by_domain.iter();
    let asked = documents.filter(|(domain, _)| domains.is_empty() || domains.contains(domain));
    asked.map(|(_, document)| &document.in_force).collect()
}

/// Checks the limits of the first message of a watch.
fn check_first(first: &wire::WatchRulesRequest) -> Result<(), RpcStatus> {
    let name = &first.instance;
    let is_name = (1..=NAME_BYTES_MAX).contains(&name.len()) && !name.contains(char::is_control);
    let problem = if !is_name {
        format!("instance: give a name of 1 to {NAME_BYTES_MAX} bytes")
    } else if first.domains.len() > DOCUMENTS_MAX {
        format!("domains: give at most {DOCUMENTS_MAX}, or none for all")
    } else {
        return Ok(());
    };
    Err(RpcStatus::invalid_argument(problem))
}

/// Reads a message of a watch. None: the client has ended the watch.
async fn report(
    reports: &mut Streaming<wire::WatchRulesRequest>,
) -> Result<Option<wire::WatchRulesRequest>, RpcStatus> {
    let report = reports.message().await?;
    if report
        .as_ref()
        .is_some_and(|it| it.encoded_len() > REPORT_BYTES_MAX)
    {
        let problem = format!("a message of a watch has at most {REPORT_BYTES_MAX} bytes");
        return Err(RpcStatus::invalid_argument(problem));
    }
    Ok(report)
}

/// Serves a watch until either side ends it.
async fn follow(
    store: Arc<RuleStore>,
    peer: String,
    mut reports: Streaming<wire::WatchRulesRequest>,
    answers: &mpsc::Sender<Due>,
) -> Result<(), RpcStatus> {
    let Some(first) = report(&mut reports).await? else {
        return Ok(());
    };
    check_first(&first)?;
    let domains: Arc<[String]> = first.domains.as_slice().into();
    let instance = store.instances.add(first, peer, Instant::now());
    let instance = instance.map_err(|number| {
        let problem = format!("there are {INSTANCES_MAX} instances already; ask another server");
        overload::full(problem, number)
    })?;
    let mut documents = store.documents();
    let (mut is_due, mut sent) = (true, None::<Arc<Documents>>);
    loop {
        tokio::select! {
            report = report(&mut reports) => match report? {
                Some(report) => instance.report(report.running, report.problem, Instant::now()),
                None => return Ok(()),
            },
            // The store outlives this watch, so the result is never an error.
            _ = documents.changed() => is_due = true,
            place = answers.reserve(), if is_due => {
                let Ok(place) = place else {
                    return Ok(());
                };
                is_due = false;
                let now = Arc::clone(&documents.borrow_and_update());
                let in_force = asked(&now, &domains);
                let is_sent = sent.is_some_and(|sent| asked(&sent, &domains) == in_force);
                if now.is_read && !is_sent {
                    place.send(Ok((Arc::clone(&now), Arc::clone(&domains))));
                }
                sent = now.is_read.then_some(now);
            }
            () = answers.closed() => return Ok(()),
        }
    }
}

#[tonic::async_trait]
impl Rules for RulesService {
    async fn list(&self, _: Request<wire::ListRulesRequest>) -> Answer<wire::ListRulesResponse> {
        let documents = self.documents()?;
        let listed = documents.by_domain.values().map(|it| wire::RuleDocument {
            text: None,
            ..it.stored.clone()
        });
        Ok(Response::new(wire::ListRulesResponse {
            documents: listed.collect(),
            problem: documents.problem.clone(),
        }))
    }

    async fn get(&self, request: Request<wire::GetRulesRequest>) -> Answer<wire::GetRulesResponse> {
        let documents = self.documents()?;
        let document = documents.by_domain.get(&request.get_ref().domain);
        let Some(document) = document.map(|it| it.stored.clone()) else {
            return Err(RpcStatus::not_found(
                "there is no document of this domain; see List",
            ));
        };
        let document = Some(document);
        Ok(Response::new(wire::GetRulesResponse { document }))
    }

    async fn check(
        &self,
        request: Request<wire::CheckRulesRequest>,
    ) -> Answer<wire::CheckRulesResponse> {
        self.store()?;
        let wire::CheckRulesRequest { domain, text } = request.into_inner();
        let problems = check(domain, text).await?;
        Ok(Response::new(wire::CheckRulesResponse { problems }))
    }

    async fn apply(
        &self,
        request: Request<wire::ApplyRulesRequest>,
    ) -> Answer<wire::ApplyRulesResponse> {
        let (store, address) = (self.store()?, writer(&request)?);
        let mut request = request.into_inner();
        let problems = check(request.domain.clone(), request.text.clone()).await?;
        if let Some(first) = problems.first() {
            let (line, message, count) = (first.line, &first.message, problems.len());
            let problem = format!("line {line}: {message} (the first of {count}; Check tells all)");
            return Err(RpcStatus::invalid_argument(problem));
        }
        if request.who.is_empty() {
            request.who = address;
        }
        let version = version_of(request.text.as_bytes());
        let revision = store.write(request, false).await?;
        Ok(Response::new(wire::ApplyRulesResponse {
            version,
            revision,
        }))
    }

    async fn delete(
        &self,
        request: Request<wire::DeleteRulesRequest>,
    ) -> Answer<wire::DeleteRulesResponse> {
        let store = self.store()?;
        writer(&request)?;
        let wire::DeleteRulesRequest {
            domain,
            seen_version,
        } = request.into_inner();
        documents::check_domain(&domain).map_err(RpcStatus::invalid_argument)?;
        let edit = wire::ApplyRulesRequest {
            domain,
            seen_version,
            ..Default::default()
        };
        store.write(edit, true).await?;
        Ok(Response::new(wire::DeleteRulesResponse {}))
    }

    async fn history(
        &self,
        request: Request<wire::RulesHistoryRequest>,
    ) -> Answer<wire::RulesHistoryResponse> {
        let wire::RulesHistoryRequest {
            domain,
            before,
            texts,
        } = request.into_inner();
        documents::check_domain(&domain).map_err(RpcStatus::invalid_argument)?;
        let before = if before == 0 { u64::MAX } else { before };
        let revisions = self.store()?.history(&domain, before).await?.into_iter();
        let revisions = revisions.map(|it| revision(it, texts)).collect();
        Ok(Response::new(wire::RulesHistoryResponse { revisions }))
    }

    type WatchStream =
        Pin<Box<dyn Stream<Item = Result<wire::WatchRulesResponse, RpcStatus>> + Send>>;

    async fn watch(
        &self,
        request: Request<Streaming<wire::WatchRulesRequest>>,
    ) -> Answer<Self::WatchStream> {
        let (store, stop) = (Arc::clone(self.store()?), self.stop.clone());
        let address = request.extensions().get::<CallerId>();
        let peer = address.map_or_else(String::new, ToString::to_string);
        // A slow client gets the newest state only.
        let (answers, outgoing) = mpsc::channel(1);
        let reports = request.into_inner();
        tokio::spawn(async move {
            let followed = tokio::select! {
                followed = follow(store, peer, reports, &answers) => followed,
                () = stop.cancelled() => Err(RpcStatus::unavailable("the server stops")),
            };
            if let Err(status) = followed {
                // A client that does not read gets no reason.
                let _ = answers.try_send(Err(status));
            }
        });
        let answers = ReceiverStream::new(outgoing).map(|due: Due| {
            due.map(|(documents, domains)| wire::WatchRulesResponse {
                documents: asked(&documents, &domains).into_iter().cloned().collect(),
            })
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn list_instances(
        &self,
        request: Request<wire::ListInstancesRequest>,
    ) -> Answer<wire::ListInstancesResponse> {
        let listed = self
            .store()?
            .instances
            .list(&request.get_ref().token, Instant::now());
        let (instances, next_token) = listed.map_err(RpcStatus::invalid_argument)?;
        Ok(Response::new(wire::ListInstancesResponse {
            instances,
            next_token,
        }))
    }
}
