//! Resources in use now, as the server reports them that decides.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use doorward_etcd::DocumentPlace;
use doorward_proto::admin::v1 as admin;

use crate::caller::MasterCaller;
use crate::common::Common;
use crate::documents::Store;
use crate::templates::effect::Live;

/// A comparison goes on without a server, so the wait for one is short.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The node that decides, unless --server names one: the default name of a node.
const ROOT: &str = "etcd:///root";

/// Server that reported the resources in use.
#[derive(Debug)]
pub(crate) struct ReportedBy {
    /// Its node.
    node: String,
    /// Where its templates are from, as it says itself.
    pub(crate) source: String,
}

impl ReportedBy {
    /// Whether it goes by the templates of a store. Of a file only the name is compared: the path
    /// may lead there from elsewhere.
    pub(crate) fn goes_by(&self, store: &Store<'_>) -> bool {
        let [own, other] = [self.source.as_str(), store.name()].map(DocumentPlace::from_str);
        match (own, other) {
            (Ok(DocumentPlace::File(own)), Ok(DocumentPlace::File(other))) => {
                own.file_name() == other.file_name()
            }
            (own, other) => own == other,
        }
    }
}

impl fmt::Display for ReportedBy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { node, source } = self;
        write!(f, "{node} (templates from {source})")
    }
}

/// Returns the resources in use with the server that reported them, or the reason why they are unknown.
pub(crate) async fn ask(common: &Common) -> Result<(ReportedBy, Vec<Live>), String> {
    let mut common = Common {
        timeout: common.timeout.min(TIMEOUT),
        ..common.clone()
    };
    let is_root_looked_up = common.server.is_empty() && matches!(common.etcd(), Ok(Some(_)));
    if is_root_looked_up {
        common.server = vec![ROOT.to_owned()];
    }
    let caller = MasterCaller::new(&common).map_err(|failure| failure.to_string())?;
    let request = admin::GetStatusRequest::default();
    let status = caller.status(request, false).await;
    let status = status.map_err(|failure| {
        let advice = if is_root_looked_up {
            ". --server names the server to ask"
        } else {
            ""
        };
        let failure = failure.to_string();
        let advice = if failure.contains("--server") {
            ""
        } else {
            advice
        };
        format!("{failure}{advice}")
    })?;
    let node = &status.node;
    if !status.is_master {
        return Err(format!("{node} is not the master, and knows of none"));
    }
    if status.parent.is_some() {
        return Err(format!(
            "{node} is not the root, which is where templates count: --server names the server to ask"
        ));
    }
    let who = ReportedBy {
        node: status.node,
        source: status.templates_source,
    };
    Ok((who, status.resources.into_iter().map(live).collect()))
}

fn live(resource: admin::ResourceStatus) -> Live {
    Live {
        resource: resource.resource_id,
        algorithm: resource.algorithm.unwrap_or_default(),
        capacity: resource.capacity,
        wants: resource.wants,
        granted: resource.granted,
        reserved: resource.reserved,
        clients: resource.clients_count,
        lease_length: Duration::from_millis(resource.lease_length_ms),
        refresh_interval: Duration::from_millis(resource.refresh_interval_ms),
    }
}
