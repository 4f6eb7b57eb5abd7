//! `doorward get`: asks once, and prints the lease.

use std::io::Write;
use std::time::Duration;

use doorward::state::{RefusalKind, Response};
use doorward::{Client, ConnectError, LimitedBy, wire};
use doorward_etcd::address;
use doorward_proto::doorman;
use serde_json::json;

use crate::caller::{MasterCaller, new_client_id, sequence};
use crate::common::Common;
use crate::failure::{Failure, Result};
use crate::flags::{AskFlags, GetFlags};
use crate::granted::{amount_of, millis, number, tone_of};
use crate::output;
use crate::why::{self, LEARNING_ADVICE};
use doorward_pages::numbers::typed_span as span;
use doorward_pages::terminal::Tone;

pub(crate) async fn run(common: &Common, flags: &GetFlags) -> Result {
    let caller = MasterCaller::new(common)?;
    let client = flags.ask.client.clone().unwrap_or_else(new_client_id);
    let response = ask(&caller, &flags.ask, &client, common.timeout).await?;
    let (resource, wants) = (&flags.ask.resource, flags.ask.wants);
    let Some(lease) = response.granted.iter().find(|it| it.resource == *resource) else {
        let mut refused = response.refused.iter();
        let refused = refused.find(|it| it.resource == *resource);
        let why = refused.map_or("the server has no template for it", |it| &it.message);
        return Err(Failure::No(format!("{resource}: {why}")));
    };
    let mut released = None;
    if !flags.keep {
        let release = caller.release(&client, std::slice::from_ref(resource));
        released = Some(release.await.map(drop));
    }
    let (limited_by, learning_for) = (lease.limited_by, lease.learning_for);
    let safe_capacity = lease.safe_capacity.map(amount_of);
    // The field names are an interface.
    let fields = json!({
        "resource": lease.resource,
        "client": client,
        "wants": wants,
        "capacity": lease.capacity,
        "expires_in_ms": millis(lease.expires_in),
        "refresh_in_ms": millis(lease.refresh_in),
        "safe_capacity": safe_capacity,
        "limited_by": limited_by.map(why::word),
        "learning_for_ms": learning_for.map(millis),
        "released": matches!(released, Some(Ok(()))),
    });
    output::print(common, &fields, |out| {
        let capacity = lease.capacity;
        let gets = out.paint(tone_of(capacity, wants), &number(capacity));
        let wants = number(wants);
        writeln!(out, "{gets} of {wants} that {client} wants of {resource}")?;
        if let Some(words) = why::words(limited_by, learning_for) {
            let words = out.paint(Tone::Partial, &words);
            writeln!(out, "  why            {words}")?;
        }
        let (expires, refresh) = (span(lease.expires_in), span(lease.refresh_in));
        writeln!(out, "  expires in     {expires}; refresh in {refresh}")?;
        if let Some(safe) = safe_capacity.map(number) {
            writeln!(out, "  safe capacity  {safe} while no server answers")?;
        }
        let end = match released {
            Some(Ok(())) => "  released".to_owned(),
            None => "  kept until it expires".to_owned(),
            Some(Err(failure)) => format!("  kept until it expires, not released: {failure}"),
        };
        out.say(Tone::Quiet, &end)?;
        match limited_by.is_some_and(LimitedBy::is_learning) {
            true => out.say(Tone::Quiet, LEARNING_ADVICE),
            false => Ok(()),
        }
    })
}

/// Asks; again, for as long as there is time, while the server waits for its own parent.
async fn ask(
    caller: &MasterCaller,
    ask: &AskFlags,
    client: &str,
    timeout: Duration,
) -> Result<Response> {
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

/// A client of the library, for what lasts longer than a call. `waits`: for a server.
pub(crate) async fn connect(common: &Common, client_id: String, waits: bool) -> Result<Client> {
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
