//! The start of a server from its flags.

use std::env;
use std::sync::Arc;
use std::time::Duration;

use doorward_documents::{Kind, Located};
use doorward_engine::node;
use doorward_etcd::flags::ENDPOINTS;
use doorward_etcd::layout::DocumentKeys;
use doorward_etcd::{DocumentPlace, Etcd, EtcdConfig};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::flags::starts;
use doorward_server::flags::{self, DEFAULT_NODE, ServeFlags};
use doorward_server::program::Misused;
use doorward_server::rules::store::RulesPlace;
use doorward_server::state_directory::place::{StateConfig, StatePlace};
use doorward_server::status::shadow::Shadow;
use doorward_server::stored_place::StoredPlace;
use doorward_server::transports::election::ElectionConfig;
use doorward_server::transports::parent::ParentTransportConfig;
use doorward_server::{clock, files};
use tracing::{info, warn};

/// Starts a server.
pub(crate) async fn start(flags: ServeFlags) -> anyhow::Result<Server> {
    let of_command_line = env::var_os(ENDPOINTS);
    starts::check_endpoints(&flags.etcd, of_command_line.as_deref()).map_err(Misused)?;
    let config = config(&flags)?;
    let shadow = shadow(flags.shadow_templates, &config).map_err(Misused)?;
    let mut server = Server::start(config).await?;
    if let Some(place) = shadow {
        let state = Arc::clone(server.state());
        let shadow = Arc::clone(state.shadow.get_or_init(|| Shadow::new(place)));
        server.spawn(shadow.run(state));
    }
    Ok(server)
}

/// Returns the configuration.
fn config(flags: &ServeFlags) -> anyhow::Result<ServerConfig> {
    let etcd = flags.etcd.config().map_err(Misused)?.map(Arc::new);
    if etcd.is_some() {
        let (advertise, endpoints) = (flags.advertise.as_deref(), &flags.etcd.endpoints);
        starts::check_address(advertise, flags.listen, endpoints).map_err(Misused)?;
    }
    let elsewhere = etcd.clone().map(|config| Etcd {
        config,
        prefix: flags.election.prefix.clone(),
    });
    let security = flags.security.config().map_err(Misused)?;
    let is_tls = security.dialer.is_tls();
    let parent = flags::parent_source(&flags.parent, elsewhere.as_ref(), is_tls);
    let parent = parent.map_err(Misused)?;
    if parent.is_none() && flags.node != DEFAULT_NODE {
        info!(
            node = flags.node,
            "a root of its own: without --parent it leases from nobody, and shares out what its own \
             templates say"
        );
    }
    let rules = flags.rules.clone();
    let rules = rules.map(|place| RulesPlace::of(place, etcd.clone()));
    let mut config = ServerConfig {
        node_name: flags.node.clone(),
        listen: flags.listen.into(),
        http_listen: flags.http_listen.0.clone(),
        advertise: flags.advertise.clone(),
        templates_source: "the parent".to_owned(),
        templates_place: templates_place(flags, etcd.clone()).map_err(Misused)?,
        parent: parent.map(|servers| ParentTransportConfig {
            servers,
            round: flags.push_round,
            // A little above the floor: a call that comes too early changes nothing.
            slow_round: (flags.refresh_floor + flags.refresh_floor / 16)
                .max(Duration::from_millis(100)),
        }),
        push_round: flags.push_round,
        election: etcd.as_deref().map(|etcd| ElectionConfig {
            etcd: etcd.clone(),
            prefix: flags.election.prefix.clone(),
            ttl: flags.election_ttl,
        }),
        state: state(flags, etcd.is_some()).map_err(Misused)?,
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
        rules: rules.transpose().map_err(Misused)?,
        security,
        bounds: flags.limits.of_door(files::raise_limit()),
        listen_backlog: flags.listen_backlog,
        shutdown_grace: flags.shutdown_grace,
        ..ServerConfig::default()
    };
    if config.templates_place.is_none() && config.parent.is_none() {
        config.templates = doorward_documents::built_in()?;
        config.templates_source = "built-in examples".to_owned();
        let globs = config.templates.iter().map(|it| &*it.identifier_glob);
        warn!(
            templates = globs.collect::<Vec<_>>().join(", "),
            "built-in example templates are in force; give your own with --templates FILE"
        );
    }
    Ok(config)
}

/// Returns the place of the templates. Absent: they are built in, or the parent's.
fn templates_place(
    flags: &ServeFlags,
    etcd: Option<Arc<EtcdConfig>>,
) -> Result<Option<StoredPlace>, String> {
    let place = match &flags.templates {
        // Built-in templates would be a trap: each candidate would use those of its own build.
        None if etcd.is_some() && flags.parent.is_empty() => {
            Some(DocumentPlace::Etcd(DocumentKeys::new(Located::KEY)))
        }
        place => place.clone(),
    };
    let place = place.map(|place| StoredPlace::of("--templates", place, etcd));
    place.transpose()
}

/// Returns the state directory. A server with etcd keeps its marks there.
fn state(flags: &ServeFlags, has_election: bool) -> Result<Option<StateConfig>, String> {
    let listen = flags.listen.into();
    let root_at = flags.parent.is_empty().then_some(&listen);
    let place = StatePlace::of(flags.state_dir.as_deref(), &flags.node, root_at);
    if has_election {
        let problem = "--state-dir is for servers without etcd, which keeps the same: leave it out";
        return match place {
            Some(StatePlace::Named(_)) => Err(problem.to_owned()),
            _ => Ok(None),
        };
    }
    let is_unused = flags.templates.is_none() && flags.parent.is_empty();
    Ok(place.map(|place| StateConfig { place, is_unused }))
}

/// Returns the place of shadow templates.
fn shadow(
    place: Option<DocumentPlace>,
    config: &ServerConfig,
) -> Result<Option<StoredPlace>, String> {
    let Some(place) = place else {
        return Ok(None);
    };
    if config.parent.is_some() {
        return Err("--shadow-templates is for the root: templates count there".to_owned());
    }
    let etcd = config.election.as_ref();
    let etcd = etcd.map(|it| Arc::new(it.etcd.clone()));
    StoredPlace::of("--shadow-templates", place, etcd).map(Some)
}
