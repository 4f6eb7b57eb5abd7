//! The status of a server that may hold many resources: page after page, until the last one.

use doorward_proto::admin::v1::admin_client::AdminClient;
use doorward_proto::admin::v1::{GetStatusRequest, GetStatusResponse as Status};

use crate::caller::{LOOK_BYTES_MAX, MasterCaller, named};
use crate::failure::{Failure, Result};

/// Resources on a page of a status.
const PAGE: u32 = 1_000;

impl MasterCaller {
    /// Reads the status page by page from the master, or from the server at hand if there is no master or `here` is
    /// set.
    pub(crate) async fn status(&self, request: GetStatusRequest, here: bool) -> Result<Status> {
        let mut request = GetStatusRequest {
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

    async fn status_page(&self, request: &GetStatusRequest, here: bool) -> Result<Status> {
        let ask = async |channel| {
            let mut admin = AdminClient::new(channel).max_decoding_message_size(LOOK_BYTES_MAX);
            admin.get_status(request.clone()).await
        };
        let master = |answer: &Status| {
            let is_meant = here || answer.is_master;
            named(answer.master_address.clone().filter(|_| !is_meant))
        };
        self.call(ask, master).await
    }
}
