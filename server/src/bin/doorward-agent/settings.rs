//! The settings of an agent, from its flags.

use std::sync::Arc;
use std::time::Duration;

use doorward_edge::rlqs;
use doorward_engine::node;
use doorward_etcd::{DocumentPlace, Etcd, EtcdConfig};
use doorward_server::app::ServerConfig;
use doorward_server::edge::EdgeDoors;
use doorward_server::flags::agent::AgentFlags;
use doorward_server::flags::parent_source;
use doorward_server::limits::ServerLimit;
use doorward_server::program::Misused;
use doorward_server::rules::store::RulesPlace;
use doorward_server::state_directory::place::{StateConfig, StatePlace};
use doorward_server::transports::parent::ParentTransportConfig;
use doorward_server::{clock, files};

/// Requests per second from one address, such as that of all programs of this machine.
const REQUESTS_MAX: u64 = 200_000;

/// Points of the demand curve of a resource with few callers: there may be many agents and resources.
const FEW_POINTS: usize = 8;

/// Returns the place of the rules. Files must be valid at the start.
fn rules_place(flags: &AgentFlags, etcd: Option<Arc<EtcdConfig>>) -> Result<RulesPlace, String> {
    match flags.rules.clone().ok_or("--rules is missing")? {
        DocumentPlace::File(path) => RulesPlace::of_files(path),
        keys @ DocumentPlace::Etcd(_) => RulesPlace::of(keys, etcd),
    }
}

/// Returns the configuration of the agent. `host` is the name of this machine.
///
/// # Errors
///
/// If flags are invalid together.
pub(crate) fn config(flags: &AgentFlags, host: &str) -> Result<ServerConfig, Misused> {
    let etcd = flags.etcd.config().map_err(Misused)?.map(Arc::new);
    let elsewhere = etcd.clone().map(|config| Etcd {
        config,
        prefix: flags.election.prefix.clone(),
    });
    let security = flags.security.config().map_err(Misused)?;
    let parent = parent_source(&flags.parent, elsewhere.as_ref(), security.dialer.is_tls());
    let parent = parent.map_err(Misused)?;
    let rules = rules_place(flags, etcd).map_err(Misused)?;
    let default = ServerConfig::default();
    let limits = flags.limits();
    let mut bounds = limits.of_door(files::raise_limit());
    bounds.insert(ServerLimit::CallsPerAddress, REQUESTS_MAX);
    bounds.insert(ServerLimit::HttpRequestsPerAddress, REQUESTS_MAX);
    let message_bytes = u64::try_from(rlqs::MESSAGE_BYTES_MAX).unwrap_or(u64::MAX);
    bounds.insert(ServerLimit::ChildMessageBytes, message_bytes);
    let limits = limits.of_node_with_doors();
    // Messages under way have a part of the memory, too.
    let memory = u64::try_from(limits.memory_max).unwrap_or(u64::MAX);
    for (limit, part) in [
        (ServerLimit::IncomingBytes, 4),
        (ServerLimit::IncomingBytesPerAddress, 8),
        (ServerLimit::OutgoingBytes, 4),
        (ServerLimit::OutgoingBytesPerAddress, 8),
    ] {
        let bound = bounds.entry(limit).or_insert(u64::MAX);
        *bound = (*bound).min(memory / part);
    }
    let is_alone = parent.is_none();
    let node_name = flags.node.clone();
    let node_name = node_name.unwrap_or_else(|| format!("{host}/agent"));
    let root_at = Some(&flags.listen).filter(|_| is_alone);
    let place = StatePlace::of(flags.state_dir.as_deref(), &node_name, root_at);
    Ok(ServerConfig {
        node_name,
        state: place.map(|place| StateConfig {
            place,
            is_unused: false,
        }),
        listen: flags.listen.clone(),
        http_listen: flags.http_listen.0.clone(),
        templates_source: if is_alone { "the rules" } else { "the parent" }.to_owned(),
        parent: parent.map(|servers| ParentTransportConfig {
            servers,
            round: Duration::from_millis(50),
            slow_round: Duration::from_millis(1_100),
        }),
        node: node::Config {
            refresh_floor: Duration::from_millis(100),
            limits,
            few_points: FEW_POINTS,
            clock_tolerance: clock::tolerance(),
            ..default.node.clone()
        },
        rules: Some(rules),
        security,
        doors: EdgeDoors {
            has_http: true,
            redis_listen: flags.redis_listen.clone(),
            makes_templates: is_alone,
        },
        bounds,
        ..default
    })
}
