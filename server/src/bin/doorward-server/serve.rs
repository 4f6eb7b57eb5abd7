//! One run of a server: starts it from flags, follows its templates, and obeys signals.

use std::env;
use std::sync::Arc;

use doorward_etcd::flags::ENDPOINTS;
use doorward_etcd::{DocumentPlace, Etcd};
use doorward_server::app::{Server, ServerConfig};
use doorward_server::flags::starts;
use doorward_server::flags::{self, DEFAULT_NODE, ServeFlags};
use doorward_server::otlp;
use doorward_server::program::Misused;
use doorward_server::rules::store::RulesPlace;
use doorward_server::signals::Signals;
use doorward_server::state_directory::place::{StateConfig, StatePlace};
use doorward_server::status::shadow::Shadow;
use doorward_server::stored_place::StoredPlace;
use doorward_server::templates::etcd::EtcdTemplates;
use doorward_server::transports::election::ElectionConfig;
use tracing::info;

use crate::settings::config;
use crate::template_source::{Follows, open_templates};

/// Runs a server until a signal stops it.
pub(crate) async fn serve(flags: ServeFlags, mut signals: Signals) -> anyhow::Result<()> {
    let logs = flags.logs.clone();
    let Some(server) = signals.during(start(flags)).await? else {
        return Ok(());
    };
    Ok(otlp::run(&logs, "doorward-server", signals, server?).await?)
}

async fn start(flags: ServeFlags) -> anyhow::Result<Server> {
    let of_command_line = env::var_os(ENDPOINTS);
    starts::check_endpoints(&flags.etcd, of_command_line.as_deref()).map_err(Misused::of)?;
    let etcd = flags.etcd.config().map_err(Misused)?;
    if etcd.is_some() {
        let (advertise, endpoints) = (flags.advertise.as_deref(), &flags.etcd.endpoints);
        starts::check_address(advertise, flags.listen, endpoints).map_err(Misused::of)?;
    }
    let opened = open_templates(&flags, etcd.as_ref()).await?;
    let elsewhere = etcd.clone().map(|config| Etcd {
        config: Arc::new(config),
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
    let mut config = config(&flags, parent);
    config.templates = opened.templates;
    config.templates_source = opened.source;
    config.templates_place = opened.place;
    let place = flags.rules.clone();
    let place = place.map(|place| RulesPlace::of(place, etcd.clone().map(Arc::new)));
    config.rules = place.transpose().map_err(Misused)?;
    config.security = security;
    let templates = match &opened.follows {
        Some(Follows::Etcd(templates)) => Some(templates),
        _ => None,
    };
    config.election = etcd.map(|etcd| ElectionConfig {
        etcd,
        prefix: flags.election.prefix.clone(),
        ttl: flags.election_ttl,
        able: templates.map(EtcdTemplates::able),
        templates_history: templates.map(|templates| templates.keys().clone()),
    });
    config.state = state(&flags, config.election.is_some()).map_err(Misused)?;
    let shadow = shadow(flags.shadow_templates, &config).map_err(Misused)?;
    let mut server = Server::start(config).await?;
    if let Some(place) = shadow {
        let state = Arc::clone(server.state());
        let shadow = Arc::clone(state.shadow.get_or_init(|| Shadow::new(place)));
        server.spawn(shadow.run(state));
    }
    let (state, metrics) = (server.state().clone(), server.metrics().clone());
    match opened.follows {
        Some(Follows::File(file)) => {
            let rereads = server.rereads().subscribe();
            server.spawn(file.run(state, metrics, rereads));
        }
        Some(Follows::Etcd(templates)) => server.spawn(templates.run(state, metrics)),
        None => {}
    }
    Ok(server)
}

/// Returns the state directory. A server with etcd keeps its marks there.
fn state(flags: &ServeFlags, has_election: bool) -> Result<Option<StateConfig>, String> {
    let listen = flags.listen.into();
    let root_at = flags.parent.is_empty().then_some(&listen);
    let place = StatePlace::of(flags.state_dir.as_deref(), &flags.node, root_at);
    if has_election {
        return match place {
            Some(StatePlace::Named(_)) => Err(
                "--state-dir is for servers without etcd, which keeps the same: leave it out"
                    .to_owned(),
            ),
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
    let place = StoredPlace::of(place, etcd);
    place
        .map(Some)
        .map_err(|it| format!("--shadow-templates {it}"))
}
