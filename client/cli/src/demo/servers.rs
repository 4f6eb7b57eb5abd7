//! The servers of the demonstration: a whole tree on loopback, in this process.
//!
//! They are what the binary runs, and speak to each other by gRPC. Only the root has templates,
//! and only it is where the command line looks by default; the others are at any free ports.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::Context;
use doorward_engine::id::ResourceId;
use doorward_engine::node;
use doorward_engine::templates::{AlgorithmKind, TemplateSpec, Templates};
use tokio::task::JoinSet;

use crate::demo::RESOURCE;
use crate::demo::crowd::EARLY_GAP;
use crate::demo::demo_figures::ServerReading;
use crate::demo::outline::Outline;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::clock;
use doorward_server::transports::parent;

/// Where servers are by default, gRPC and status page: the command line looks there.
const USUAL_PORTS: (u16, u16) = (6970, 6971);

/// Any that are free.
const FREE_PORTS: (u16, u16) = (0, 0);

/// Time for which changes are gathered on their way up or down a level.
const ROUND: Duration = Duration::from_millis(50);

/// All servers, in the order of the outline.
pub(super) struct DemoServers {
    servers: Vec<Server>,
    resource: ResourceId,
    capacity: f64,
}

impl DemoServers {
    /// Starts every server of the outline; the root has `capacity` to share.
    pub(super) async fn start(outline: &Outline, capacity: f64) -> anyhow::Result<Self> {
        let mut tree = Self {
            servers: Vec::new(),
            resource: ResourceId::new(RESOURCE)?,
            capacity,
        };
        // Parents come before their children, so that each is there when it is first asked.
        for place in &outline.servers {
            let server = match place.parent {
                None => start_root(&place.name, capacity).await?,
                Some(parent) => {
                    let parent = tree.grpc_address(parent).context("a tree without a root")?;
                    Server::start(below(&place.name, parent)).await?
                }
            };
            tree.servers.push(server);
        }
        Ok(tree)
    }

    /// Where the server of that index is asked.
    pub(super) fn grpc_address(&self, server: usize) -> Option<SocketAddr> {
        self.servers.get(server).map(Server::grpc_address)
    }

    /// Where the status pages are, in the order of the outline.
    pub(super) fn pages(&self) -> Vec<SocketAddr> {
        let addresses = self.servers.iter().filter_map(Server::http_address);
        addresses.collect()
    }

    /// Reads all servers.
    pub(super) fn read(&self) -> Vec<ServerReading> {
        let reading = |(index, server): (usize, &Server)| {
            let node = server.state().node();
            let snapshot = node.read(|node, now| node.resource_snapshot(&self.resource, now));
            match snapshot {
                Some(snapshot) => ServerReading {
                    wants: snapshot.wants,
                    has: snapshot.capacity,
                    granted: snapshot.granted,
                },
                // No client has asked yet; the root has the capacity all the same.
                None => ServerReading {
                    has: if index == 0 { self.capacity } else { 0.0 },
                    ..ServerReading::default()
                },
            }
        };
        self.servers.iter().enumerate().map(reading).collect()
    }

    /// Stops all servers, leaves first, so that none loses its parent.
    pub(super) async fn stop(mut self, outline: &Outline) {
        let mut levels: Vec<(usize, Server)> = Vec::new();
        while let Some(server) = self.servers.pop() {
            levels.push((outline.depth(self.servers.len()), server));
        }
        levels.sort_by_key(|(depth, _)| std::cmp::Reverse(*depth));
        let mut stopping = JoinSet::new();
        let mut level = None;
        for (depth, server) in levels {
            if level.replace(depth) != Some(depth) {
                while stopping.join_next().await.is_some() {}
            }
            stopping.spawn(server.shutdown());
        }
        while stopping.join_next().await.is_some() {}
    }
}

async fn start_root(name: &str, capacity: f64) -> anyhow::Result<Server> {
    let template = TemplateSpec {
        identifier_glob: Some(RESOURCE.to_owned()),
        capacity: Some(capacity),
        description: Some("requests per second that all clients of the demonstration share".into()),
        kind: Some(AlgorithmKind::FairShare),
        lease_length: Some(Duration::from_secs(20)),
        // Often, since there is something to see.
        refresh_interval: Some(Duration::from_secs(2)),
        // No server of this tree has a predecessor to learn from.
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    let templates = Templates::parse(&[template])
        .map_err(|problems| anyhow::anyhow!("the capacity does not do: {problems:?}"))?;
    let at = |ports| ServerConfig {
        templates: templates.clone(),
        templates_source: "the demonstration".to_owned(),
        ..config(name, ports)
    };
    match Server::start(at(USUAL_PORTS)).await {
        Ok(server) => Ok(server),
        // Something else is there.
        Err(_) => Ok(Server::start(at(FREE_PORTS)).await?),
    }
}

/// A server that leases from the one at `parent`.
fn below(name: &str, parent: SocketAddr) -> ServerConfig {
    ServerConfig {
        templates_source: "the parent".to_owned(),
        parent: Some(parent::ParentTransportConfig {
            servers: vec![parent.to_string()].into(),
            round: ROUND,
            slow_round: EARLY_GAP,
        }),
        ..config(name, FREE_PORTS)
    }
}

fn config(name: &str, (grpc, http): (u16, u16)) -> ServerConfig {
    let loopback = |port| SocketAddr::from(([127, 0, 0, 1], port));
    ServerConfig {
        node_name: name.to_owned(),
        listen: loopback(grpc).into(),
        http_listen: Some(loopback(http).into()),
        node: node::Config {
            seed: clock::seed(),
            refresh_floor: EARLY_GAP,
            ..node::Config::default()
        },
        push_round: ROUND,
        shutdown_grace: Duration::from_secs(2),
        ..ServerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn every_server_starts_below_its_parent_and_all_stop() {
        let outline = Outline::new(std::iter::empty());
        let tree = DemoServers::start(&outline, 7.0).await.unwrap();
        let (pages, read) = (tree.pages(), tree.read());
        assert_eq!((pages.len(), read.len()), (7, 7));
        // Before anyone asks, everything is at the root.
        let has: Vec<f64> = read.iter().map(|reading| reading.has).collect();
        assert_eq!(has, [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        for (place, server) in outline.servers.iter().zip(&tree.servers) {
            let parent = place.parent.and_then(|parent| tree.grpc_address(parent));
            let asked = server.state().parent_news().map(|news| news.addresses);
            assert_eq!(asked, parent.map(|parent| vec![parent.to_string()]));
        }
        tree.stop(&outline).await;
        for page in pages {
            let refused = tokio::net::TcpStream::connect(page).await;
            assert!(refused.is_err(), "{page} is still served");
        }
    }
}
