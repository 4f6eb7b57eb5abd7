//! The clients that follow rules, at each server.

use doorward_proto::admin::v1::rules_client::RulesClient;
use doorward_proto::admin::v1::{ListInstancesRequest, RulesInstance};
use doorward_session::address::Address;
use doorward_tls::dialer::Dialed as Channel;
use serde::Serialize;

use crate::caller::MasterCaller;
use crate::failure::{Failure, Result};

/// Largest number of pages: a server has at most 4,096 instances, 100 on a page.
const PAGES_MAX: usize = 41;

/// An instance, as `--output json` prints it. Its field names are an interface.
#[derive(Debug, Serialize)]
pub(crate) struct Instance {
    pub(crate) server: String,
    #[serde(flatten)]
    pub(crate) instance: RulesInstance,
}

impl MasterCaller {
    /// Returns the instances at each server, and the failures of servers that do not answer.
    ///
    /// # Errors
    ///
    /// If no server answers.
    pub(crate) async fn instances(&self) -> Result<(Vec<Instance>, Vec<Failure>)> {
        let (mut instances, mut failures) = (Vec::new(), Vec::new());
        let servers = self.servers().await?;
        for server in &*servers {
            match self.instances_at(server).await {
                Ok(listed) => instances.extend(listed.into_iter().map(|instance| Instance {
                    server: server.to_string(),
                    instance,
                })),
                Err(failure) => failures.push(failure),
            }
        }
        if failures.len() == servers.len()
            && let Some(first) = failures.drain(..).next()
        {
            return Err(first);
        }
        Ok((instances, failures))
    }

    async fn instances_at(&self, server: &Address) -> Result<Vec<RulesInstance>> {
        let mut instances = Vec::new();
        let mut next = Some(String::new());
        for _page in 0..PAGES_MAX {
            let Some(token) = next.take() else {
                break;
            };
            let request = ListInstancesRequest { token };
            let ask = async |channel: Channel| {
                let mut rules = RulesClient::new(channel);
                rules.list_instances(request.clone()).await
            };
            let page = self.ask_once(server, server.as_str(), &ask).await?;
            instances.extend(page.instances);
            next = page.next_token;
        }
        Ok(instances)
    }
}
