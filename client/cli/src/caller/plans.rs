//! The plan of a change, as one server works it out.

use std::sync::Arc;

use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::plans_client::PlansClient;
use doorward_tls::dialer::Dialed as Channel;

use crate::caller::status_pages::pushback;
use crate::caller::{MasterCaller, parse};
use crate::failure::Failure;

/// The largest answer, in bytes. A page has a mebibyte, and then the rest of a resource.
const PLAN_BYTES_MAX: usize = 16 * 1024 * 1024;

impl MasterCaller {
    /// Returns a caller of another node, with the same credentials.
    pub(crate) fn at(&self, address: &str) -> Result<Self, Failure> {
        Ok(Self {
            addresses: Arc::new([parse(address)?]),
            node: None,
            ..self.clone()
        })
    }

    /// Asks the master what a change would give each holder.
    pub(crate) async fn plan(
        &self,
        request: &admin::PlanRequest,
    ) -> Result<admin::PlanResponse, Failure> {
        let ask = |channel: Channel| {
            let request = request.clone();
            async move { plan(channel, request).await }
        };
        let master = |answer: &admin::PlanResponse| answer.master_address.clone();
        self.call_master(ask, master, "Try again once it does")
            .await
    }
}

/// Asks for a page of a plan. A server spends a limited time a second on looks, and says when to come back.
async fn plan(
    channel: Channel,
    request: admin::PlanRequest,
) -> Result<tonic::Response<admin::PlanResponse>, tonic::Status> {
    let mut plans = PlansClient::new(channel).max_decoding_message_size(PLAN_BYTES_MAX);
    loop {
        let answer = plans.plan(request.clone()).await;
        match answer.as_ref().err().and_then(pushback) {
            Some(wait) => tokio::time::sleep(wait).await,
            None => return answer,
        }
    }
}
