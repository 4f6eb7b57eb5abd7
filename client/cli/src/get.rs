//! `doorward get`: asks once, and prints the lease.

use std::io::Write;
use std::time::Duration;

use doorward::{Client, ConnectError};
use doorward_etcd::address;
use doorward_proto::doorman;
use doorward_session::visible;
use serde::Serialize;

use crate::caller::{MasterCaller, lease_on, new_client_id, sequence, spans};
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::{AskFlags, GetFlags};
use crate::granted::{millis, number, tone_of};
use crate::output;
use crate::why::{Explanation, LEARNING_ADVICE};
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::Tone;

/// A lease, as `--output json` prints it. Its field names are an interface.
#[derive(Serialize)]
struct LeaseOutput<'a> {
    resource: &'a str,
    client: &'a str,
    wants: f64,
    capacity: f64,
    expires_in_ms: u64,
    refresh_in_ms: u64,
    /// -1: no limit. Absent: none is known.
    safe_capacity: Option<f64>,
    /// Why it is no larger: `wants`, `share`, `others`, `learning`, `parent_learning`,
    /// `capacity_lowered` or `parent`. Absent: the server does not say.
    limited_by: Option<&'static str>,
    /// Rest of learning mode, of the server or of one above it. Absent: neither learns, or the server does not say.
    learning_for_ms: Option<u64>,
    /// Whether it is given back already.
    released: bool,
}

pub(crate) async fn run(common: &Common, flags: &GetFlags) -> Result<(), Failure> {
    let caller = MasterCaller::new(common)?;
    let client = flags.ask.client.clone().unwrap_or_else(new_client_id);
    let response = ask(&caller, &flags.ask, &client, common.timeout).await?;
    let answer = lease_on(&response, &flags.ask.resource)?;
    let mut released = None;
    if !flags.keep {
        let request = doorman::ReleaseCapacityRequest {
            incarnation: None,
            client_id: client.clone(),
            resource_id: vec![flags.ask.resource.clone()],
            sequence: Some(sequence()),
        };
        released = Some(caller.release(request).await.map(drop));
    }
    print(common, &flags.ask, &client, answer, released)
}

/// Asks; again, for as long as there is time, while the server waits for its own parent.
async fn ask(
    caller: &MasterCaller,
    ask: &AskFlags,
    client: &str,
    timeout: Duration,
) -> Result<doorman::GetCapacityResponse, Failure> {
    let mut waited = Duration::ZERO;
    loop {
        let request = doorman::GetCapacityRequest {
            incarnation: None,
            client_id: client.to_owned(),
            resource: vec![doorman::ResourceRequest {
                resource_id: ask.resource.clone(),
                priority: ask.priority,
                has: None,
                wants: ask.wants,
            }],
            sequence: Some(sequence()),
        };
        let response = caller.get(request).await?;
        let not_ready =
            |refusal: &doorman::Refusal| refusal.reason() == doorman::refusal::Reason::NotReady;
        match response.refused.iter().find(|refusal| not_ready(refusal)) {
            None => return Ok(response),
            Some(refusal) if waited >= timeout => {
                let said = visible::cut(refusal.message());
                let message = format!("{}: {said}", ask.resource);
                return Err(Failure::Unreachable(message));
            }
            Some(_) => {
                tokio::time::sleep(RETRY_NOT_READY).await;
                waited += RETRY_NOT_READY;
            }
        }
    }
}

/// Time to wait for a server that waits for its parent.
const RETRY_NOT_READY: Duration = Duration::from_millis(250);

/// Prints a lease, and whether it was released, if it was to be.
fn print(
    common: &Common,
    ask: &AskFlags,
    client: &str,
    answer: &doorman::ResourceResponse,
    released: Option<Result<(), Failure>>,
) -> Result<(), Failure> {
    let (expires_in, refresh_in) = spans(&answer.gets);
    let why = Explanation::of_answer(answer);
    let mut out = output::stdout();
    if common.output == Output::Json {
        let lease = LeaseOutput {
            resource: &answer.resource_id,
            client,
            wants: ask.wants,
            capacity: answer.gets.capacity,
            expires_in_ms: millis(expires_in),
            refresh_in_ms: millis(refresh_in),
            safe_capacity: answer.safe_capacity,
            limited_by: why.word(),
            learning_for_ms: why.learning_for_ms(),
            released: matches!(released, Some(Ok(()))),
        };
        return Ok(output::json(&mut out, &lease)?);
    }
    let palette = common.color.of_stdout();
    let capacity = answer.gets.capacity;
    let gets = palette.paint(tone_of(capacity, ask.wants), &number(capacity));
    let (wants, resource) = (number(ask.wants), &answer.resource_id);
    writeln!(out, "{gets} of {wants} that {client} wants of {resource}")?;
    if let Some(words) = why.words() {
        let words = palette.paint(Tone::Partial, &words);
        writeln!(out, "  why            {words}")?;
    }
    let (expires, refresh) = (span(expires_in), span(refresh_in));
    writeln!(out, "  expires in     {expires}; refresh in {refresh}")?;
    if let Some(safe) = answer.safe_capacity.map(number) {
        writeln!(out, "  safe capacity  {safe} while no server answers")?;
    }
    let end = match released {
        Some(Ok(())) => "released".to_owned(),
        None => "kept until it expires".to_owned(),
        Some(Err(failure)) => format!("kept until it expires, not released: {failure}"),
    };
    writeln!(out, "  {}", palette.paint(Tone::Quiet, &end))?;
    if why.is_learning() {
        writeln!(out, "{}", palette.paint(Tone::Quiet, LEARNING_ADVICE))?;
    }
    Ok(())
}

/// A client of the library, for what lasts longer than a call. `waits`: for a server.
pub(crate) async fn connect(
    common: &Common,
    client_id: String,
    waits: bool,
) -> Result<Client, Failure> {
    let addresses = common.addresses();
    let mut builder = Client::builder()
        .id(client_id)
        .connect_timeout(common.timeout);
    if addresses.iter().any(|text| address::is_meant(text))
        && let Some(etcd) = common.etcd()?
    {
        builder = builder.etcd(etcd);
    }
    if let Some(tls) = common.tls()? {
        builder = builder.tls(tls);
    }
    let builder = builder.addresses(&addresses);
    let connected = match waits {
        true => builder.connect().await,
        false => builder.connect_lazy(),
    };
    connected.map_err(|error| match error {
        ConnectError::NotConnected { .. } => Failure::Unreachable(error.to_string()),
        _ => Failure::Usage(error.to_string()),
    })
}

/// Returns the failure for a resource without a lease.
pub(crate) fn failure_of(error: doorward::ResourceError) -> Failure {
    match error {
        doorward::ResourceError::NotConnected(_) => Failure::Unreachable(error.to_string()),
        _ => Failure::No(error.to_string()),
    }
}
