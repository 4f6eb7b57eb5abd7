//! Watches of rules. All of them share the encoded documents: tonic would keep a copy of the largest answer for each
//! stream, as long as that is open.

use std::sync::Arc;

use axum::extract::Request;
use axum::routing::{MethodRouter, any};
use bytes::{BufMut, Bytes, BytesMut};
use doorward_clock::Instant;
use doorward_door::caller_id::CallerId;
use doorward_proto::admin::v1 as wire;
use doorward_tls::identity::Identity;
use http_body::Frame;
use prost::Message;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tokio_util::sync::CancellationToken;
use tonic::codegen::http::HeaderMap;
use tonic::{Status as RpcStatus, Streaming};
use tonic_prost::ProstDecoder;

use crate::admin::rules_service::NO_RULES;
use crate::rules::document::DOCUMENTS_MAX;
use crate::rules::documents::Documents;
use crate::rules::instances::{NAME_BYTES_MAX, REPORT_BYTES_MAX};
use crate::rules::store::RuleStore;
use crate::unary;

/// Part of a response.
type Part = Frame<Bytes>;

/// Returns the method of the rules service that follows documents. None: the server has no rules.
pub fn watch(store: Option<Arc<RuleStore>>, stop: CancellationToken) -> MethodRouter {
    any(move |request: Request| async move {
        let Some(store) = store else {
            return RpcStatus::failed_precondition(NO_RULES).into_http();
        };
        let (head, body) = request.into_parts();
        let reports = Streaming::new_request(ProstDecoder::default(), body, None, None);
        let address = head.extensions.get::<CallerId>();
        let peer = address.map_or_else(String::new, ToString::to_string);
        let identity = head.extensions.get::<Identity>();
        let who = identity.map_or_else(|| peer.clone(), ToString::to_string);
        let (parts, outgoing) = mpsc::channel(1);
        tokio::spawn(async move {
            let followed = tokio::select! {
                followed = follow(store, [peer, who], reports, &parts) => followed,
                () = stop.cancelled() => Err(RpcStatus::unavailable("the server stops")),
            };
            let status = followed.err().unwrap_or_else(|| RpcStatus::ok(""));
            let mut trailers = HeaderMap::new();
            if status.add_header(&mut trailers).is_ok() {
                // A client that does not read gets no reason.
                let _ = parts.try_send(Frame::trailers(trailers));
            }
        });
        unary::of_frames(ReceiverStream::new(outgoing))
    })
}

/// Serves a watch until either side ends it.
async fn follow(
    store: Arc<RuleStore>,
    [peer, who]: [String; 2],
    mut reports: Streaming<wire::WatchRulesRequest>,
    parts: &mpsc::Sender<Part>,
) -> Result<(), RpcStatus> {
    let Some(first) = report(&mut reports).await? else {
        return Ok(());
    };
    check_first(&first)?;
    let domains = first.domains.clone();
    let instance = store.instances.add(first, peer, who, Instant::now())?;
    let mut documents = store.documents();
    let (mut is_due, mut sent) = (true, None);
    loop {
        tokio::select! {
            report = report(&mut reports) => match report? {
                Some(report) => instance.report(report.running, report.problem, Instant::now()),
                None => return Ok(()),
            },
            // The store outlives this watch, so the result is never an error.
            _ = documents.changed() => is_due = true,
            // A slow client gets the newest state only.
            place = parts.reserve(), if is_due => {
                let Ok(place) = place else {
                    return Ok(());
                };
                is_due = false;
                let now = Arc::clone(&documents.borrow_and_update());
                let asked = asked(&now, &domains);
                if now.is_read && sent.as_ref() != Some(&asked) {
                    place.send(Frame::data(prefix(&asked)));
                    for document in &asked {
                        // The loop ends if the client has gone.
                        let _ = parts.send(Frame::data(document.clone())).await;
                    }
                    sent = Some(asked);
                }
            }
            () = parts.closed() => return Ok(()),
        }
    }
}

/// Returns what stands before a message: a flag for compression, and the length.
fn prefix(parts: &[Bytes]) -> Bytes {
    let length = parts.iter().map(Bytes::len).sum::<usize>();
    let mut prefix = BytesMut::with_capacity(5);
    prefix.put_u8(0);
    prefix.put_u32(u32::try_from(length).unwrap_or(u32::MAX));
    prefix.freeze()
}

/// Returns the encoded documents of some domains. No domains: all.
fn asked(documents: &Documents, domains: &[String]) -> Vec<Bytes> {
    let documents = documents.by_domain.iter();
    let asked = documents.filter(|(domain, _)| domains.is_empty() || domains.contains(domain));
    asked.map(|(domain, it)| it.encoded(domain)).collect()
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
    // An empty entry takes many times its bytes in memory.
    let is_large = |it: &wire::WatchRulesRequest| {
        it.encoded_len() > REPORT_BYTES_MAX || it.running.len() > DOCUMENTS_MAX
    };
    if report.as_ref().is_some_and(is_large) {
        let problem = format!(
            "a message of a watch has at most {REPORT_BYTES_MAX} bytes and {DOCUMENTS_MAX} versions"
        );
        return Err(RpcStatus::invalid_argument(problem));
    }
    Ok(report)
}
