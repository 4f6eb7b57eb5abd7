//! Rules from a server: a watch at the first of several servers that serves it, and again whenever it ends.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::time::Duration;

use doorward_clock::Instant;
use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{RunningRules, WatchRulesRequest, WatchRulesResponse};
use doorward_session::address::ipv6_advice;
use doorward_session::backoff::{Backoff, WaitLimits};
use doorward_tls::dialer::Dialer;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Status;
use tonic::transport::Endpoint;

use crate::rules::source::RetrieverError;
use crate::rules::source::current::Current;
use crate::rules::source::files;
use crate::rules::version_of;

/// Largest answer, in bytes. A server sends at most a quarter.
const ANSWER_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Longest wait for a connection.
const CONNECT: Duration = Duration::from_secs(5);

/// How waits between attempts grow.
const BACKOFF: WaitLimits = WaitLimits {
    base: Duration::from_millis(100),
    cap: Duration::from_secs(10),
    least: 0.5,
};

/// Where to ask, and for what.
#[derive(Debug)]
pub(crate) struct Servers {
    pub(crate) addresses: Vec<String>,
    pub(crate) instance: String,
    pub(crate) domains: Vec<String>,
    pub(crate) dialer: Dialer,
}

/// Follows the rules of a server.
#[derive(Debug)]
pub(crate) struct Follower {
    current: Current,
    endpoints: Vec<Endpoint>,
    dialer: Dialer,
    /// First message of each watch: name, domains, and the last report.
    report: WatchRulesRequest,
    /// Documents in force, by domain.
    texts: BTreeMap<String, Vec<u8>>,
    backoff: Backoff,
}

impl Follower {
    pub(crate) fn new(current: Current, servers: Servers) -> Result<Self, RetrieverError> {
        let is_tls = servers.dialer.is_tls();
        let endpoints = servers.addresses.iter().map(|it| endpoint(it, is_tls));
        let endpoints: Vec<Endpoint> = endpoints.collect::<Result<_, _>>()?;
        if endpoints.is_empty() {
            return Err(RetrieverError::Address(String::new()));
        }
        let report = WatchRulesRequest {
            instance: servers.instance,
            domains: servers.domains,
            ..WatchRulesRequest::default()
        };
        let (texts, backoff) = Default::default();
        Ok(Self {
            current,
            endpoints,
            dialer: servers.dialer,
            report,
            texts,
            backoff,
        })
    }

    pub(crate) async fn run(mut self) {
        let others = u32::try_from(self.endpoints.len() - 1).unwrap_or(u32::MAX);
        loop {
            let mut problems = Vec::new();
            for endpoint in self.endpoints.clone() {
                let Err(status) = self.follow(&endpoint).await;
                problems.push(format!("{}: {}", endpoint.uri(), described(&status)));
                if problems.len() == self.endpoints.len() {
                    self.current.note_problem(problems.join("; "));
                }
                let wait = self.backoff.note_failure(BACKOFF, others, rand::random());
                tokio::time::sleep(wait).await;
            }
        }
    }

    /// Follows a server until its watch ends.
    async fn follow(&mut self, endpoint: &Endpoint) -> Result<Infallible, Status> {
        let channel = self.dialer.channel(endpoint);
        let mut client = RulesClient::new(channel).max_decoding_message_size(ANSWER_BYTES_MAX);
        let (reports, outgoing) = mpsc::channel(1);
        // A failed send is told by the next answer.
        let _ = reports.send(self.report.clone()).await;
        let answers = client.watch(ReceiverStream::new(outgoing)).await?;
        let mut answers = answers.into_inner();
        let mut last = WatchRulesResponse::default();
        loop {
            let answer = tokio::select! {
                answer = answers.message() => answer?,
                () = files::until(self.current.due()) => Some(last),
            };
            last = answer.ok_or_else(|| Status::unavailable("the server has ended the watch"))?;
            self.backoff.succeed();
            self.take(&last).await;
            let _ = reports.send(self.report.clone()).await;
            if self.current.due().is_none() {
                last.documents.clear();
            }
        }
    }

    /// Puts documents in force. For a domain without a valid document at the server, the former one stays.
    async fn take(&mut self, answer: &WatchRulesResponse) {
        let (mut texts, mut problem) = (BTreeMap::new(), None);
        for document in &answer.documents {
            let domain = document.domain.clone();
            let own = self.texts.get(&domain);
            if document.text.is_none() {
                problem = Some(format!("{domain}: the server has no valid document"));
            }
            let text = document.text.as_ref().map(|text| text.clone().into_bytes());
            let text = text.or_else(|| own.cloned());
            texts.extend(text.map(|text| (domain, text)));
        }
        match self.current.take(Ok(texts.clone()), Instant::now()).await {
            Ok(()) => self.texts = texts,
            Err(error) => problem = Some(error.to_string()),
        }
        if let Some(problem) = problem.clone() {
            self.current.note_problem(problem);
        }
        let running = self.texts.iter().map(|(domain, text)| RunningRules {
            domain: domain.clone(),
            version: version_of(text),
        });
        self.report.running = running.collect();
        self.report.problem = problem;
    }
}

fn endpoint(address: &str, is_tls: bool) -> Result<Endpoint, RetrieverError> {
    let invalid = |_| RetrieverError::Address(address.to_owned());
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    // Without TLS, a scheme is invalid.
    let https = address.strip_prefix("https://").filter(|_| is_tls);
    let address = https.unwrap_or(address);
    if address.contains("://") || !has_port || ipv6_advice(address).is_some() {
        return Err(invalid(()));
    }
    let endpoint = Endpoint::from_shared(format!("http://{address}")).map_err(|_| invalid(()))?;
    Ok(endpoint
        .connect_timeout(CONNECT)
        .http2_keep_alive_interval(Duration::from_secs(10))
        .keep_alive_timeout(CONNECT)
        .keep_alive_while_idle(true))
}

/// Returns the text of a status with its innermost cause, such as "connection refused".
fn described(status: &Status) -> String {
    let causes = std::iter::successors(std::error::Error::source(status), |it| it.source());
    let cause = causes.last().map(ToString::to_string);
    cause.unwrap_or_else(|| status.message().to_owned())
}
