//! `doorward whoami`: whom a server takes the caller for.

use std::io::Write;

use doorward_proto::admin::v1::callers_client::CallersClient;
use doorward_proto::admin::v1::{WhoAmIRequest, WhoAmIResponse};
use doorward_tls::dialer::Dialed;
use serde_json::json;

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::failure::Result;
use crate::output;

/// Asks the server, and prints its answer.
pub(crate) async fn run(common: &Common) -> Result {
    let caller = MasterCaller::new(common)?;
    let ask = async |channel: Dialed| CallersClient::new(channel).who_am_i(WhoAmIRequest {}).await;
    let WhoAmIResponse {
        identity,
        address,
        may_write,
    } = caller.call(ask, |_| None).await?;
    let answer = json!({"identity": identity, "address": address, "may_write": may_write});
    let identity = identity.unwrap_or_else(|| "nobody: no certificate, no token".to_owned());
    let may = if may_write { "may" } else { "may not" };
    let from = match address.as_str() {
        "" => String::new(),
        address => format!(" from {address}"),
    };
    output::print(common, &answer, |out| {
        writeln!(out, "{identity}{from}; {may} change rules")
    })
}
