//! `doorward get`: asks once, and prints the lease.

use std::io::Write;
use std::time::Duration;

use doorward::state::{Granted, RefusalKind, Response};
use doorward::{Client, ConnectError, wire};
use doorward_etcd::address;
use doorward_proto::doorman;
use serde::Serialize;

use crate::caller::{MasterCaller, new_client_id, sequence};
use crate::common::{Common, Output};
use crate::failure::Failure;
use crate::flags::{AskFlags, GetFlags};
use crate::granted::{amount_of, millis, number, tone_of};
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
    let resource = &flags.ask.resource;
    let Some(lease) = response.granted.iter().find(|it| it.resource == *resource) else {
        let mut refused = response.refused.iter();
        let refused = refused.find(|it| it.resource == *resource);
        let why = refused.map_or("the server has no template for it", |it| &it.message);
        return Err(Failure::No(format!("{resource}: {why}")));
    };
    let mut released = None;
    if !flags.keep {
        let request = doorman::ReleaseCapacityRequest {
            budget: Vec::new(),
            incarnation: None,
            client_id: client.clone(),
            resource_id: vec![flags.ask.resource.clone()],
            sequence: Some(sequence()),
        };
        released = Some(caller.release(request).await.map(drop));
    }
    print(common, &flags.ask, &client, lease, released)
}

/// Asks; again, for as long as there is time, while the server waits for its own parent.
async fn ask(
    caller: &MasterCaller,
    ask: &AskFlags,
    client: &str,
    timeout: Duration,
) -> Result<Response, Failure> {
    let mut waited = Duration::ZERO;
    loop {
        let request = doorman::GetCapacityRequest {
            incarnation: None,
            client_id: client.to_owned(),
            resource: vec![doorman::ResourceRequest {
                budget: None,
                resource_id: ask.resource.clone(),
                priority: ask.priority,
                has: None,
                wants: ask.wants,
            }],
            sequence: Some(sequence()),
        };
        let sent = doorward_clock::wall();
        let response = wire::response(caller.get(request).await?, sent);
        let mut refused = response.refused.iter();
        match refused.find(|it| it.kind == RefusalKind::NotReady) {
            None => return Ok(response),
            Some(refused) if waited >= timeout => {
                let message = format!("{}: {}", ask.resource, refused.message);
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
    lease: &Granted,
    released: Option<Result<(), Failure>>,
) -> Result<(), Failure> {
    let why = Explanation {
        limited_by: lease.limited_by,
        learning_for: lease.learning_for,
    };
    let safe_capacity = lease.safe_capacity.map(amount_of);
    let mut out = output::stdout();
    if common.output == Output::Json {
        let lease = LeaseOutput {
            resource: &lease.resource,
            client,
            wants: ask.wants,
            capacity: lease.capacity,
            expires_in_ms: millis(lease.expires_in),
            refresh_in_ms: millis(lease.refresh_in),
            safe_capacity,
            limited_by: why.word(),
            learning_for_ms: why.learning_for_ms(),
            released: matches!(released, Some(Ok(()))),
        };
        return Ok(output::json(&mut out, &lease)?);
    }
    let palette = common.color.of_stdout();
    let capacity = lease.capacity;
    let gets = palette.paint(tone_of(capacity, ask.wants), &number(capacity));
    let (wants, resource) = (number(ask.wants), &lease.resource);
    writeln!(out, "{gets} of {wants} that {client} wants of {resource}")?;
    if let Some(words) = why.words() {
        let words = palette.paint(Tone::Partial, &words);
        writeln!(out, "  why            {words}")?;
    }
    let (expires, refresh) = (span(lease.expires_in), span(lease.refresh_in));
    writeln!(out, "  expires in     {expires}; refresh in {refresh}")?;
    if let Some(safe) = safe_capacity.map(number) {
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
