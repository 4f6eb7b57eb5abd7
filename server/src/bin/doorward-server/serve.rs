//! One run of a server: starts it from flags, follows its templates, and stops it by a signal.

use std::env;
use std::sync::Arc;

use anyhow::Context;
use doorward_etcd::Etcd;
use doorward_etcd::flags::ENDPOINTS;
use doorward_server::app::Server;
use doorward_server::flags::starts;
use doorward_server::flags::{self, DEFAULT_NODE, ServeFlags};
use doorward_server::rules::store::RulesPlace;
use doorward_server::signals::Signals;
use doorward_server::templates;
use doorward_server::templates::etcd::EtcdTemplates;
use doorward_server::templates::file::TemplateFile;
use doorward_server::transports::election::ElectionConfig;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tracing::info;

use crate::misused::Misused;
use crate::settings::config;
use crate::template_source::{Follows, Opened, open_templates};

/// Runs a server until a signal stops it.
pub(crate) async fn serve(flags: ServeFlags) -> anyhow::Result<()> {
    // From here on, no signal kills the process half-way.
    let signals = Signals::new().context("cannot listen for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot listen for signals")?;
    let of_command_line = env::var_os(ENDPOINTS);
    starts::check_endpoints(&flags.etcd, of_command_line.as_deref()).map_err(Misused::of)?;
    let etcd = flags.etcd.config().map_err(Misused::of)?;
    if etcd.is_some() {
        let (advertise, endpoints) = (flags.advertise.as_deref(), &flags.etcd.endpoints);
        starts::check_address(advertise, flags.listen, endpoints).map_err(Misused::of)?;
    }
    let Opened {
        templates,
        source,
        follows,
    } = open_templates(&flags, etcd.as_ref()).await?;
    let elsewhere = etcd.clone().map(|config| Etcd {
        config: Arc::new(config),
        prefix: flags.election.prefix.clone(),
    });
    let security = flags.security.config().map_err(Misused)?;
    let is_tls = security.dialer.is_tls();
    let parent = flags::parent_source(&flags.parent, elsewhere.as_ref(), is_tls);
    let parent = parent.map_err(Misused::of)?;
    if parent.is_none() && flags.node != DEFAULT_NODE {
        info!(
            node = flags.node,
            "a root of its own: without --parent it leases from nobody, and shares out what its own \
             templates say"
        );
    }
    let mut config = config(&flags, parent, templates, source);
    let place = flags.rules.clone();
    let place = place.map(|place| RulesPlace::of(place, etcd.clone().map(Arc::new)));
    config.rules = place.transpose().map_err(Misused)?;
    config.security = security;
    let templates = match &follows {
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
    let mut server = Server::start(config).await?;
    match follows {
        Some(Follows::File(file)) => follow_file(&mut server, file, hang_up),
        other => {
            if let Some(Follows::Etcd(templates)) = other {
                let (state, metrics) = (server.state().clone(), server.metrics().clone());
                server.spawn(templates.run(state, metrics));
            }
            server.spawn(async move {
                while hang_up.recv().await.is_some() {
                    info!("SIGHUP: there is no template file to read again");
                }
            });
        }
    }
    let otlp = flags.logs.otlp;
    Ok(otlp.run("doorward-server", signals, server).await?)
}

/// Applies every new valid version of the file.
fn follow_file(server: &mut Server, mut file: TemplateFile, mut hang_up: Signal) {
    let (state, metrics) = (server.state().clone(), server.metrics().clone());
    server.spawn(async move {
        loop {
            let read = tokio::select! {
                read = file.changed() => read,
                _ = hang_up.recv() => {
                    info!("SIGHUP: reading the templates again");
                    file.read_again().await
                }
            };
            match read {
                Ok(templates) => templates::apply(&state, &metrics, templates).await,
                Err(error) => templates::refuse(&state, &metrics, error.to_string()),
            }
        }
    });
}
