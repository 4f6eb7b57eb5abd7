//! What is in use now: asked of the server that decides, if one answers.

use std::time::Duration;

use doorward_proto::admin::v1 as admin;

use crate::caller::Caller;
use crate::flags::Common;
use crate::templates::effect::Live;

/// A change is looked at whether a server answers or not: nobody is to wait long for it.
const TIMEOUT: Duration = Duration::from_secs(2);

/// What is in use, and whose word that is; or why it is not known.
pub(crate) async fn ask(common: &Common) -> Result<(String, Vec<Live>), String> {
    let common = Common {
        timeout: common.timeout.min(TIMEOUT),
        ..common.clone()
    };
    let caller = Caller::new(&common).map_err(|failure| failure.to_string())?;
    let request = admin::GetStatusRequest::default();
    let status = caller.status(request, false).await;
    let status = status.map_err(|failure| failure.to_string())?;
    let node = &status.node;
    if !status.is_master {
        return Err(format!("{node} is not the master, and knows of none"));
    }
    if status.parent.is_some() {
        return Err(format!(
            "{node} is not the root, which is where templates count: --server says whom to ask"
        ));
    }
    let who = format!("{node} (templates from {})", status.templates_source);
    Ok((who, status.resource.into_iter().map(live).collect()))
}

fn live(resource: admin::ResourceStatus) -> Live {
    Live {
        resource: resource.resource_id,
        algorithm: resource.algorithm,
        capacity: resource.capacity,
        wants: resource.wants,
        granted: resource.granted,
        reserved: resource.reserved,
        clients: resource.clients_count,
        lease_length: Duration::from_millis(resource.lease_length_ms),
        refresh_interval: Duration::from_millis(resource.refresh_interval_ms),
    }
}
