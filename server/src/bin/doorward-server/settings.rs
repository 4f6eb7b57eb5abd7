//! The configuration of a server, from its flags.

use std::time::Duration;

use doorward_engine::node;
use doorward_server::app::ServerConfig;
use doorward_server::flags::ServeFlags;
use doorward_server::transports::parent;
use doorward_server::{clock, files};

/// Returns the configuration, but for the templates, the election and the rules.
pub(crate) fn config(flags: &ServeFlags, parent: Option<parent::ParentSource>) -> ServerConfig {
    ServerConfig {
        node_name: flags.node.clone(),
        listen: flags.listen.into(),
        http_listen: flags.http_listen.0.clone(),
        advertise: flags.advertise.clone(),
        parent: parent.map(|servers| parent::ParentTransportConfig {
            servers,
            round: flags.push_round,
            // A little above the floor: a call that comes too early changes nothing.
            slow_round: (flags.refresh_floor + flags.refresh_floor / 16)
                .max(Duration::from_millis(100)),
        }),
        push_round: flags.push_round,
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: flags.refresh_floor,
            clock_tolerance: flags.clock_tolerance,
            limits: match flags.rules {
                Some(_) => flags.limits.of_node_with_doors(),
                None => flags.limits.of_node(),
            },
            ..node::Config::default()
        },
        bounds: flags.limits.of_door(files::raise_limit()),
        listen_backlog: flags.listen_backlog,
        shutdown_grace: flags.shutdown_grace,
        ..ServerConfig::default()
    }
}
