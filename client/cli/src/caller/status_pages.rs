//! The status of a server that may hold many resources: page after page, until the last one.

use std::time::Duration;

use doorward_proto::admin::v1 as admin;
use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_tls::dialer::Dialed as Channel;

use crate::caller::{Answer, MasterCaller};
use crate::failure::Failure;

/// The largest page of a status, in bytes.
const STATUS_BYTES_MAX: usize = 16 * 1024 * 1024;

/// Resources on a page of a status.
const PAGE: u32 = 1_000;

impl MasterCaller {
    /// Reads the status page by page from the master, or from the server at hand if there is no master or `here` is
    /// set.
    pub(crate) async fn status(
        &self,
        request: admin::GetStatusRequest,
        here: bool,
    ) -> Result<admin::GetStatusResponse, Failure> {
        let mut request = admin::GetStatusRequest {
            limit: PAGE,
            ..request
        };
        let mut all = self.status_page(&request, here).await?;
        while let Some(token) = all.next_token.take() {
            if token == request.token {
                // Its pages would never end.
                let problem = format!("{} lists the same resources again", all.node);
                return Err(Failure::No(problem));
            }
            request.token = token;
            let page = self.status_page(&request, here).await?;
            all.resources.extend(page.resources);
            all.next_token = page.next_token;
        }
        Ok(all)
    }

    async fn status_page(
        &self,
        request: &admin::GetStatusRequest,
        here: bool,
    ) -> Result<admin::GetStatusResponse, Failure> {
        let ask = async |channel| get_status(channel, request).await;
        let master = |answer: &admin::GetStatusResponse| {
            let is_meant = here || answer.is_master;
            answer.master_address.clone().filter(|_| !is_meant)
        };
        let advice = "--here shows the server that was asked";
        self.call_master(ask, master, advice).await
    }
}

/// Reads one page of a status. A server spends a limited time a second on status pages, and refuses with a retry delay.
/// After the first page this waits for the others.
async fn get_status(
    channel: Channel,
    request: &admin::GetStatusRequest,
) -> Answer<admin::GetStatusResponse> {
    let mut admin = AdminClient::new(channel).max_decoding_message_size(STATUS_BYTES_MAX);
    loop {
        let answer = admin.get_status(request.clone()).await;
        match answer.as_ref().err().and_then(pushback) {
            Some(wait) if !request.token.is_empty() => tokio::time::sleep(wait).await,
            _ => return answer,
        }
    }
}

/// When a server that has too much to do wants to be asked again.
pub(super) fn pushback(status: &tonic::Status) -> Option<Duration> {
    let wait = status.metadata().get("grpc-retry-pushback-ms")?;
    wait.to_str().ok()?.parse().ok().map(Duration::from_millis)
}
