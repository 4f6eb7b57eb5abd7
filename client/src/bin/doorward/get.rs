//! `doorward get`: asks once, and prints the lease.

use std::io::{self, Write};
use std::time::Duration;

use doorward_client::Client;
use doorward_proto::doorman;
use serde::Serialize;

use crate::caller::{Caller, lease_on, new_client_id, sequence, spans};
use crate::failure::Failure;
use crate::flags::{AskFlags, Common, GetFlags, Output};
use crate::numbers::{number, span};

/// A lease, as `--output json` prints it.
#[derive(Serialize)]
struct Lease<'a> {
    resource: &'a str,
    client: &'a str,
    wants: f64,
    capacity: f64,
    expires_in_ms: u64,
    refresh_in_ms: u64,
    /// -1: no limit. Absent: none is known.
    safe_capacity: Option<f64>,
}

pub(crate) async fn run(common: &Common, flags: &GetFlags) -> Result<(), Failure> {
    let caller = Caller::new(common)?;
    let client = flags.ask.client.clone().unwrap_or_else(new_client_id);
    if let Some(duration) = flags.hold {
        return hold(common, &flags.ask, client, duration).await;
    }
    let request = doorman::GetCapacityRequest {
        client_id: client.clone(),
        resource: vec![doorman::ResourceRequest {
            resource_id: flags.ask.resource.clone(),
            priority: flags.ask.priority,
            has: None,
            wants: flags.ask.wants,
        }],
        sequence: Some(sequence()),
    };
    let response = caller.get(request).await?;
    let answer = lease_on(&response, &flags.ask.resource)?;
    let released = if flags.keep {
        false
    } else {
        let request = doorman::ReleaseCapacityRequest {
            client_id: client.clone(),
            resource_id: vec![flags.ask.resource.clone()],
            sequence: Some(sequence()),
        };
        caller.release(request).await.is_ok()
    };
    print(common, &flags.ask, &client, answer, released)
}

fn print(
    common: &Common,
    ask: &AskFlags,
    client: &str,
    answer: &doorman::ResourceResponse,
    released: bool,
) -> Result<(), Failure> {
    let (expires_in, refresh_in) = spans(&answer.gets);
    let mut out = io::stdout().lock();
    if common.output == Output::Json {
        let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let lease = Lease {
            resource: &answer.resource_id,
            client,
            wants: ask.wants,
            capacity: answer.gets.capacity,
            expires_in_ms: millis(expires_in),
            refresh_in_ms: millis(refresh_in),
            safe_capacity: answer.safe_capacity,
        };
        serde_json::to_writer(&mut out, &lease).map_err(io::Error::from)?;
        writeln!(out)?;
        return Ok(());
    }
    writeln!(
        out,
        "{} of {} that {client} wants of {}",
        number(answer.gets.capacity),
        number(ask.wants),
        answer.resource_id,
    )?;
    let (expires_in, refresh_in) = (span(expires_in), span(refresh_in));
    writeln!(
        out,
        "  expires in     {expires_in}, to be refreshed in {refresh_in}"
    )?;
    if let Some(safe) = answer.safe_capacity {
        writeln!(out, "  safe capacity  {}", number(safe))?;
    }
    let end = if released {
        "released again"
    } else {
        "kept until it expires"
    };
    writeln!(out, "  {end}")?;
    Ok(())
}

/// Keeps a lease for a while.
async fn hold(
    common: &Common,
    ask: &AskFlags,
    client_id: String,
    duration: Duration,
) -> Result<(), Failure> {
    let client = connect(common, client_id).await?;
    let resource = client
        .resource(&ask.resource)
        .priority(ask.priority)
        .wants(ask.wants)
        .open()
        .map_err(|error| Failure::Usage(error.to_string()))?;
    let capacity = resource.wait_for_lease(common.timeout).await;
    let capacity = match capacity {
        Ok(capacity) => capacity,
        Err(error) => {
            client.close().await;
            return Err(failure_of(&error));
        }
    };
    {
        let mut out = io::stdout().lock();
        let wants = number(ask.wants);
        writeln!(out, "{capacity} of {wants}, held for {}", span(duration))?;
    }
    tokio::select! {
        () = tokio::time::sleep(duration) => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    drop(resource);
    client.close().await;
    writeln!(io::stdout().lock(), "released")?;
    Ok(())
}

/// A client of the library, for what lasts longer than a call.
pub(crate) async fn connect(common: &Common, client_id: String) -> Result<Client, Failure> {
    let builder = Client::builder(client_id)
        .addresses(common.server.iter().map(|address| address.trim()))
        .connect_timeout(common.timeout);
    builder.connect().await.map_err(|error| match error {
        doorward_client::ConnectError::NotConnected { .. } => {
            Failure::Unreachable(error.to_string())
        }
        _ => Failure::Usage(error.to_string()),
    })
}

/// What a resource without a lease means for a script.
pub(crate) fn failure_of(error: &doorward_client::ResourceError) -> Failure {
    match error {
        doorward_client::ResourceError::NotConnected(_) => Failure::Unreachable(error.to_string()),
        _ => Failure::No(error.to_string()),
    }
}
