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
    let who: WhoAmIResponse = caller.call(ask, |_| None).await?;
    let nobody = "nobody: no certificate, no token";
    let identity = who.identity.as_deref().unwrap_or(nobody);
    let may = if who.may_write { "may" } else { "may not" };
    let from = match who.address.as_str() {
        "" => String::new(),
        address => format!(" from {address}"),
    };
    output::print(common, &json!(who), |out| {
        writeln!(out, "{identity}{from}; {may} change rules")
    })
}
