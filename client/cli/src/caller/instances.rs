//! The clients that follow rules, at each server.

use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{ListInstancesRequest, ListInstancesResponse, RulesInstance};
use doorward_session::address::Address;
use tonic::transport::Channel;

use crate::caller::{MasterCaller, Miss};
use crate::failure::Failure;

/// Largest number of pages: a server has at most 4,096 instances, 100 on a page.
const PAGES_MAX: usize = 41;

impl MasterCaller {
    /// Returns the instances at each server that answers, and the problem of each other one.
    pub(crate) async fn instances(
        &self,
    ) -> Result<(Vec<(Address, RulesInstance)>, Vec<String>), Failure> {
        let (mut instances, mut problems) = (Vec::new(), Vec::new());
        let servers = self.servers().await?;
        for server in &*servers {
            match self.instances_at(server).await {
                Ok(found) => instances.extend(found.into_iter().map(|it| (server.clone(), it))),
                Err(Miss::Silent(problem) | Miss::Masterless(problem)) => problems.push(problem),
                Err(Miss::Final(failure)) if servers.len() == 1 => return Err(failure),
                Err(Miss::Final(failure)) => problems.push(failure.to_string()),
            }
        }
        if problems.len() == servers.len() {
            return Err(Failure::Unreachable(problems.join("; ")));
        }
        Ok((instances, problems))
    }

    async fn instances_at(&self, server: &Address) -> Result<Vec<RulesInstance>, Miss> {
        let (mut instances, mut token) = (Vec::new(), String::new());
        for _page in 0..PAGES_MAX {
            let ask = |channel: Channel| list(channel, token.clone());
            let page = self.ask_once(server, server.as_str(), &ask).await?;
            instances.extend(page.instances);
            match page.next_token {
                Some(next) => token = next,
                None => break,
            }
        }
        Ok(instances)
    }
}

async fn list(
    channel: Channel,
    token: String,
) -> Result<tonic::Response<ListInstancesResponse>, tonic::Status> {
    let mut rules = RulesClient::new(channel);
    rules.list_instances(ListInstancesRequest { token }).await
}
