//! The servers of the demonstration: a whole tree on loopback, in this process.
//!
//! They are what the binary runs, and speak to each other by gRPC. Only the root has templates,
//! and only it is where the command line looks by default; the others are at any free ports. Each has a runtime of its
//! own, so that it can be killed: its tasks and connections end at once. Its state directory stays until the end.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use anyhow::Context;
use doorward_engine::id::ResourceId;
use doorward_engine::node;
use doorward_engine::time::Time;
use tempfile::TempDir;
use tokio::runtime::{self, Runtime};

use crate::demo::RESOURCE;
use crate::demo::crowd::EARLY_GAP;
use crate::demo::demo_figures::Amounts;
use crate::demo::outline::SERVERS;
use doorward_server::app::{Server, ServerConfig};
use doorward_server::clock;
use doorward_server::state_directory::place::{StateConfig, StatePlace};
use doorward_server::stored_place::StoredPlace;
use doorward_server::transports::parent;

/// Where servers are by default, gRPC and status page: the command line looks there.
const USUAL_PORTS: (u16, u16) = (6970, 6971);

/// Any that are free.
const FREE_PORTS: (u16, u16) = (0, 0);

/// Time for which changes are gathered on their way up or down a level.
const ROUND: Duration = Duration::from_millis(50);

/// Time until a killed server is started again.
const DOWN_FOR: Duration = Duration::from_secs(3);

/// All servers, in the order of the outline.
pub(super) struct DemoServers {
    servers: Vec<DemoServer>,
    /// State directories.
    states: TempDir,
    resource: ResourceId,
    capacity: f64,
    /// Server that is down, and when it starts again.
    killed: Option<(usize, Time)>,
    /// Number of servers killed so far.
    kills: usize,
}

/// A server, and the configuration with which it starts again at the same addresses.
struct DemoServer {
    config: ServerConfig,
    running: Option<(Server, OwnRuntime)>,
}

/// A runtime whose tasks end when it is dropped.
struct OwnRuntime(Option<Runtime>);

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            runtime.shutdown_background();
        }
    }
}

impl DemoServer {
    async fn start(mut config: ServerConfig) -> anyhow::Result<Self> {
        let running = Self::run(config.clone()).await?;
        config.listen = running.0.grpc_address().into();
        config.http_listen = running.0.http_address().map(Into::into);
        Ok(Self {
            config,
            running: Some(running),
        })
    }

    async fn run(config: ServerConfig) -> anyhow::Result<(Server, OwnRuntime)> {
        let mut builder = runtime::Builder::new_multi_thread();
        let runtime = builder.worker_threads(1).enable_all().build()?;
        let started = runtime.spawn(Server::start(config));
        let runtime = OwnRuntime(Some(runtime));
        Ok((started.await??, runtime))
    }
}

impl DemoServers {
    /// Starts every server; the root has `capacity` to share.
    pub(super) async fn start(capacity: f64) -> anyhow::Result<Self> {
        let mut tree = Self {
            servers: Vec::new(),
            states: tempfile::tempdir()?,
            resource: ResourceId::new(RESOURCE)?,
            capacity,
            killed: None,
            kills: 0,
        };
        // Parents come before their children, so that each is there when it is first asked.
        for place in &SERVERS {
            let server = match place.parent {
                None => start_root(place.name, capacity, tree.states.path()).await?,
                Some(parent) => {
                    let parent = tree.grpc_address(parent).context("a tree without a root")?;
                    let config = ServerConfig {
                        templates_source: "the parent".to_owned(),
                        parent: Some(parent::ParentTransportConfig {
                            servers: vec![parent.to_string()].into(),
                            round: ROUND,
                            slow_round: EARLY_GAP,
                        }),
                        ..config(place.name, FREE_PORTS, tree.states.path())
                    };
                    DemoServer::start(config).await?
                }
            };
            tree.servers.push(server);
        }
        Ok(tree)
    }

    /// Where the server of that index is asked.
    pub(super) fn grpc_address(&self, server: usize) -> Option<SocketAddr> {
        self.servers.get(server)?.config.listen.tcp()
    }

    /// Where the status pages are, in the order of the outline.
    pub(super) fn pages(&self) -> Vec<SocketAddr> {
        let pages = self.servers.iter();
        let pages = pages.filter_map(|server| server.config.http_listen.as_ref()?.tcp());
        pages.collect()
    }

    /// Reads all servers.
    pub(super) fn read(&self) -> Vec<Amounts> {
        let reading = |(index, server): (usize, &DemoServer)| {
            let Some((server, _)) = &server.running else {
                return Amounts::default();
            };
            let node = server.state().node();
            let snapshot = node.read(|node, now| node.resource_snapshot(&self.resource, now));
            match snapshot {
                Some(snapshot) => Amounts {
                    wants: snapshot.wants,
                    has: snapshot.capacity,
                    granted: snapshot.granted,
                    used: 0.0,
                },
                // No client has asked yet; the root has the capacity all the same.
                None => Amounts {
                    has: if index == 0 { self.capacity } else { 0.0 },
                    ..Amounts::default()
                },
            }
        };
        self.servers.iter().enumerate().map(reading).collect()
    }

    /// Kills a server without a shutdown, unless one is down: the first time the root, then the others in turn.
    pub(super) fn kill_next(&mut self, now: Time) {
        let next = self.kills % self.servers.len().max(1);
        if let Some(server) = self.servers.get_mut(next).filter(|_| self.killed.is_none()) {
            server.running = None;
            self.killed = Some((next, now + DOWN_FOR));
            self.kills += 1;
        }
    }

    /// Returns the server that is down.
    pub(super) fn killed(&self) -> Option<usize> {
        self.killed.map(|(server, _)| server)
    }

    /// Starts the killed server again when it is time, and its ports are free.
    pub(super) async fn start_killed(&mut self, now: Time) {
        if let Some((killed, _)) = self.killed.filter(|(_, until)| *until <= now)
            && let Some(server) = self.servers.get_mut(killed)
            && let Ok(running) = DemoServer::run(server.config.clone()).await
        {
            server.running = Some(running);
            self.killed = None;
        }
    }

    /// Stops all servers, children first, so that none loses its parent.
    pub(super) async fn stop(mut self) {
        while let Some(server) = self.servers.pop() {
            if let Some((server, runtime)) = server.running {
                server.shutdown().await;
                drop(runtime);
            }
        }
    }
}

async fn start_root(name: &str, capacity: f64, states: &Path) -> anyhow::Result<DemoServer> {
    // The page can change it. Clients refresh often, since there is something to see.
    let templates = format!(
        "resources:
- identifier_glob: {RESOURCE}
  description: requests per second that all clients of the demonstration share
  capacity: {capacity}
  algorithm: {{kind: FAIR_SHARE, lease_length: 20s, refresh_interval: 2s}}
"
    );
    let path = states.join("templates.yaml");
    std::fs::write(&path, templates)?;
    let at = |ports| ServerConfig {
        templates_place: Some(StoredPlace::File(path.clone())),
        ..config(name, ports, states)
    };
    match DemoServer::start(at(USUAL_PORTS)).await {
        Ok(server) => Ok(server),
        // Something else is there.
        Err(_) => DemoServer::start(at(FREE_PORTS)).await,
    }
}

fn config(name: &str, (grpc, http): (u16, u16), states: &Path) -> ServerConfig {
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
        state: Some(StateConfig {
            place: StatePlace::Named(states.join(name)),
            is_unused: true,
        }),
        push_round: ROUND,
        shutdown_grace: Duration::from_secs(2),
        ..ServerConfig::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Waits until connections are refused.
    async fn is_refused(address: SocketAddr) {
        while tokio::net::TcpStream::connect(address).await.is_ok() {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn every_server_starts_below_its_parent_and_all_stop() {
        let mut tree = DemoServers::start(7.0).await.unwrap();
        let (pages, read) = (tree.pages(), tree.read());
        assert_eq!((pages.len(), read.len()), (7, 7));
        // Before anyone asks, everything is at the root.
        let has: Vec<f64> = read.iter().map(|reading| reading.has).collect();
        assert_eq!(has, [7.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]);
        for (place, server) in SERVERS.iter().zip(&tree.servers) {
            let parent = place.parent.and_then(|parent| tree.grpc_address(parent));
            let (server, _) = server.running.as_ref().unwrap();
            let asked = server
                .state()
                .parent
                .borrow()
                .clone()
                .map(|news| news.addresses);
            assert_eq!(asked, parent.map(|parent| vec![parent.to_string()]));
        }
        // A killed root is back where it was.
        tree.kill_next(Time::ZERO);
        tree.kill_next(Time::ZERO);
        assert_eq!(tree.killed(), Some(0));
        is_refused(pages[0]).await;
        tree.start_killed(Time::ZERO + DOWN_FOR / 2).await;
        assert_eq!(tree.killed(), Some(0));
        while tree.killed().is_some() {
            tree.start_killed(Time::ZERO + DOWN_FOR).await;
        }
        assert_eq!(tree.pages(), pages);
        tree.stop().await;
        for page in pages {
            is_refused(page).await;
        }
    }
}
