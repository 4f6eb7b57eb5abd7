//! The configuration of a server, from its flags.

use std::sync::Arc;
use std::time::Duration;

use doorward_engine::node;
use doorward_engine::templates::Templates;
use doorward_etcd::{DocumentPlace, EtcdConfig};
use doorward_server::app::ServerConfig;
use doorward_server::flags::ServeFlags;
use doorward_server::rules::store::{POLL_INTERVAL, RulesPlace};
use doorward_server::transports::parent;
use doorward_server::{clock, files};

use crate::misused::Misused;

/// Returns the place of the rule documents. None: the server has none.
pub(crate) fn rules_place(
    place: Option<DocumentPlace>,
    etcd: Option<&EtcdConfig>,
) -> Result<Option<RulesPlace>, Misused> {
    let problem = match (place, etcd) {
        (None, _) => return Ok(None),
        (Some(DocumentPlace::File(path)), _) if path.is_dir() => {
            return Ok(Some(RulesPlace::Directory(path, POLL_INTERVAL)));
        }
        (Some(DocumentPlace::Etcd(keys)), Some(etcd)) => {
            let (prefix, etcd) = (keys.document().to_owned(), Arc::new(etcd.clone()));
            return Ok(Some(RulesPlace::Etcd(prefix, etcd)));
        }
        (Some(DocumentPlace::File(path)), _) => {
            let path = path.display();
            format!("--rules: {path} is no directory; create it, or give etcd:PREFIX")
        }
        (Some(DocumentPlace::Etcd(_)), None) => {
            "--rules names keys in etcd, but not where etcd is: see --etcd-endpoints".to_owned()
        }
    };
    Err(Misused(problem))
}

/// Returns the configuration, but for the election and the rules.
pub(crate) fn config(
    flags: &ServeFlags,
    parent: Option<parent::ParentSource>,
    templates: Templates,
    templates_source: String,
) -> ServerConfig {
    ServerConfig {
        node_name: flags.node.clone(),
        listen: flags.listen,
        http_listen: flags.http_listen.0,
        advertise: flags.advertise.clone(),
        parent: parent.map(|servers| parent::ParentTransportConfig {
            servers,
            round: flags.push_round,
            // A little above the floor: a call that comes too early changes nothing.
            slow_round: (flags.refresh_floor + flags.refresh_floor / 16)
                .max(Duration::from_millis(100)),
        }),
        push_round: flags.push_round,
        templates,
        templates_source,
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: flags.refresh_floor,
            clock_tolerance: flags.clock_tolerance,
            limits: flags.limits.of_node(),
            ..node::Config::default()
        },
        bounds: flags.limits.of_door(files::raise_limit()),
        listen_backlog: flags.listen_backlog,
        shutdown_grace: flags.shutdown_grace,
        ..ServerConfig::default()
    }
}
