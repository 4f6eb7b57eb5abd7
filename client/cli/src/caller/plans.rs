//! The plan of a change, as one server works it out.

use std::sync::Arc;
use std::time::Duration;

use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::plans_client::PlansClient;
use doorward_tls::dialer::Dialed as Channel;

use crate::caller::status_pages::pushback;
use crate::caller::{Answer, MasterCaller, parse};
use crate::failure::Failure;

/// The largest answer, in bytes. A page has a mebibyte, and then the rest of a resource.
const PLAN_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Time for a page, in times the wait for an answer: a server spends a limited time a second on looks, and says when to
/// come back.
const PATIENCE: u32 = 6;

impl MasterCaller {
    /// Returns a caller of a server that another one named. It has our certificate, but sends no token, which the
    /// server could use elsewhere.
    pub(crate) fn claimed(&self, address: &str) -> Result<Self, Failure> {
        Ok(Self {
            addresses: Arc::new([parse(address)?]),
            node: None,
            dialer: self.dialer.clone().without_token(),
            timeout: self.timeout,
            is_claimed: true,
        })
    }

    /// Asks the master what a change would give each holder.
    pub(crate) async fn plan(
        &self,
        request: &admin::PlanRequest,
    ) -> Result<admin::PlanResponse, Failure> {
        let ask = async |channel| plan(channel, request, self.timeout).await;
        let master = |answer: &admin::PlanResponse| answer.master_address.clone();
        let advice = "Try again once it does";
        let patient = Self {
            timeout: self.timeout.saturating_mul(PATIENCE),
            ..self.clone()
        };
        patient.call_master(ask, master, advice).await
    }
}

/// Asks for a page of a plan, and again when the server says so. Each answer must come in time.
async fn plan(
    channel: Channel,
    request: &admin::PlanRequest,
    timeout: Duration,
) -> Answer<admin::PlanResponse> {
    let mut plans = PlansClient::new(channel).max_decoding_message_size(PLAN_BYTES_MAX);
    loop {
        let late =
            |_| tonic::Status::deadline_exceeded(format!("it did not answer within {timeout:?}"));
        let answer = tokio::time::timeout(timeout, plans.plan(request.clone()));
        let answer = answer.await.map_err(late).flatten();
        match answer.as_ref().err().and_then(pushback) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return answer,
        }
    }
}
