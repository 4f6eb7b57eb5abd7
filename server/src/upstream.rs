//! The way up: how a server below the root asks its parent.
//!
//! What to ask and when, and what an answer does, the engine knows ([`doorward_engine::node`]);
//! this carries it. It prefers a stream, on which a change travels as it happens. A parent that
//! does not know streams is polled; so is one whose streams break at once, for a while. Addresses
//! are tried in turn, with a backoff; a server that is not the master says where it is. With the
//! parent's node in etcd, a master that is named there comes first: a new one ends a wait, and a
//! conversation with the one before.
//!
//! A parent ends a stream when a newer one of the same node takes its place. That is either another
//! server's, which became master of this node, and then this one is not any more; or one of our own,
//! and then there is nothing wrong with streams. So it is no reason to poll.
//!
//! A stream begins with a message even if there is nothing to ask: the parent learns who is there,
//! and the child whether it is the master, and which nodes are above.

mod addresses;
mod conversation;
mod flood;
mod mastership;
mod problem;
mod unanswered;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use doorward_client::visible;
use doorward_engine::node::Node;
use doorward_engine::node::event::Event;
use doorward_etcd::error::innermost;
use doorward_proto::doorman as wire;
use tokio::time::Instant;
use tonic::transport::{Channel, Endpoint};
use tracing::{debug, error, info, warn};

use crate::clock;
use crate::node_handle::{NodeHandle, log};
use crate::status::{Board, ParentLink, ParentNews};
use crate::upstream::addresses::Addresses;
use crate::upstream::mastership::Masterships;

pub use crate::upstream::addresses::Source;

/// How the parent is reached.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where its servers are.
    pub servers: Source,
    /// How long changes are gathered before they go up.
    pub round: Duration,
    /// How long changes are gathered that may matter little, and how often a parent without
    /// streams is asked at most.
    pub slow_round: Duration,
}

/// How long to try to connect.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);

/// An answer that takes longer will not come.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(2);

/// How long a parent is polled whose stream broke soon after it was opened. Twice as long each time,
/// up to the second.
const POLL_LENGTH: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(300));

/// A stream that broke sooner than this may not work at all.
const STREAM_WORKS: Duration = Duration::from_secs(10);

/// Redirects that are followed at once, one after the other.
const REDIRECTS_MAX: u32 = 5;

/// The longest address, in bytes: a host name has 253, and the port comes on top.
const ADDRESS_BYTES_MAX: usize = 300;

/// Backoff between attempts: from the first to the second, with full jitter. The second is well
/// below the length of a lease.
const BACKOFF: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(5));

/// As the second, while the parent has no master: its servers elect one within seconds.
const BACKOFF_ELECTION: Duration = Duration::from_secs(1);

/// How long nobody may have looked whether this server still is the master of its node.
const MASTERSHIP_CHECK: Duration = Duration::from_secs(1);

/// How a problem begins that is a refusal of this server as a child: it is its own ancestor, say.
const REFUSES: &str = "FailedPrecondition";

/// Why a connection to the parent ended.
#[derive(Debug)]
enum End {
    /// The server is not the master; who is, if it says so.
    NotMaster(wire::Mastership),
    /// It knows no streams.
    NoStreams,
    /// A stream broke before it had shown that it works; why.
    StreamBroken(String),
    /// Another live process of this node was there first; what the parent said.
    Taken(String),
    /// A newer stream of this node took the place of ours; what the parent said.
    Replaced(String),
    /// This node is an ancestor of its parent; what the parent said. A stream is no worse than calls.
    Cycle(String),
    /// There is no connection, or it broke; why.
    Broken(String),
    /// It is time to try a stream again.
    TryStream,
    /// This server is not the master of its node any more.
    Resigned,
}

/// Asks the parent.
pub struct Upstream {
    config: Config,
    node: Arc<NodeHandle>,
    board: Arc<Board>,
    addresses: Addresses,
    /// The one that is asked now; empty if none is known.
    address: String,
    masterships: Masterships,
    redirects: u32,
    failures: u32,
    /// Streams in a row that were replaced before they had shown that they work.
    replaced: u32,
    /// Until when the parent is polled, since streams do not work, and for how long next time.
    poll_until: Option<Instant>,
    poll_length: Duration,
    /// What the log was last told of the link: it hears of every change once.
    told: Option<ParentLink>,
    /// Whether that was because the parent refuses us.
    told_refuses: bool,
    streams_told: bool,
    /// Another live process of this node has the stream; what the parent said of it. It is shown as long
    /// as the parent is polled instead: the answers to that are refusals only.
    taken: Option<String>,
}

impl fmt::Debug for Upstream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Upstream")
            .field("address", &self.address)
            .finish_non_exhaustive()
    }
}

impl Upstream {
    /// Whoever asks the parent for the node of `board`. Tells the board at once that there is one.
    /// Must be called within a tokio runtime.
    pub fn new(config: Config, board: Arc<Board>) -> Self {
        let upstream = Self {
            address: config.servers.given.first().cloned().unwrap_or_default(),
            addresses: Addresses::new(config.servers.clone()),
            config,
            node: Arc::clone(board.node()),
            masterships: Masterships::new(Arc::clone(&board)),
            board,
            redirects: 0,
            failures: 0,
            replaced: 0,
            poll_until: None,
            poll_length: POLL_LENGTH.0,
            told: None,
            told_refuses: false,
            streams_told: false,
            taken: None,
        };
        upstream.post(ParentLink::Idle, None);
        upstream
    }

    /// Asks for ever: spawn it.
    pub async fn run(mut self) {
        self.addresses.ready().await;
        self.address = self.addresses.next().unwrap_or_default();
        loop {
            if !self.is_master() {
                self.wait_for_mastership().await;
                self.post(ParentLink::Down, None);
            }
            let end = self.ask().await;
            self.node.change(Node::handle_upstream_lost);
            match end {
                _ if !self.is_master() => self.post(ParentLink::Idle, None),
                End::Resigned => {}
                End::NoStreams => self.poll_for(POLL_LENGTH.1, "it knows no streams"),
                End::StreamBroken(problem) => {
                    self.poll_for(self.poll_length, &problem);
                    self.poll_length = (2 * self.poll_length).min(POLL_LENGTH.1);
                }
                End::Taken(problem) => {
                    self.poll_as_second(problem);
                    self.poll_length = (2 * self.poll_length).min(POLL_LENGTH.1);
                }
                End::TryStream => self.poll_until = None,
                End::Replaced(problem) => self.stand_back(&problem).await,
                End::NotMaster(mastership) => self.redirect(mastership).await,
                End::Cycle(problem) | End::Broken(problem) => self.fail(&problem).await,
            }
        }
    }

    /// Connects and asks, in the one way or the other, until that ends.
    async fn ask(&mut self) -> End {
        let polls = self.poll_until.is_some_and(|until| until > Instant::now());
        if polls {
            // No pings: each call has its own timeout, and servers of the old kind end connections
            // that ping them often.
            return match self.connect(|endpoint| endpoint).await {
                Ok(channel) => self.poll(channel).await,
                Err(end) => end,
            };
        }
        let with_pings = |endpoint: Endpoint| {
            endpoint
                .http2_keep_alive_interval(Duration::from_secs(5))
                .keep_alive_timeout(Duration::from_secs(5))
                .keep_alive_while_idle(true)
        };
        let channel = match self.connect(with_pings).await {
            Ok(channel) => channel,
            Err(end) => return end,
        };
        let began = Instant::now();
        let end = self.stream(channel).await;
        let works = began.elapsed() >= STREAM_WORKS;
        if works {
            self.poll_length = POLL_LENGTH.0;
            self.streams_told = false;
            self.replaced = 0;
        }
        match end {
            End::Broken(problem) if !works => End::StreamBroken(problem),
            end => end,
        }
    }

    fn is_master(&self) -> bool {
        self.node.read(|node, now| node.mastership(now).is_master())
    }

    async fn wait_for_mastership(&self) {
        while !self.is_master() {
            // Becoming master moves what is due, or another second passes.
            let _moved = tokio::time::timeout(MASTERSHIP_CHECK, self.node.upstream_moved()).await;
        }
    }

    /// Connects to the server whose turn it is, if that is the master.
    async fn connect(&mut self, set_up: impl FnOnce(Endpoint) -> Endpoint) -> Result<Channel, End> {
        if self.address.is_empty() {
            self.address = self.addresses.next().map_err(End::Broken)?;
        }
        let endpoint = Endpoint::from_shared(format!("http://{}", self.address))
            .map_err(|error| End::Broken(format!("{} is no address: {error}", self.address)))?;
        let endpoint = set_up(endpoint.connect_timeout(CONNECT_TIMEOUT).tcp_nodelay(true));
        let channel = tokio::time::timeout(CONNECT_TIMEOUT, endpoint.connect())
            .await
            .map_err(|_| End::Broken(format!("no connection within {CONNECT_TIMEOUT:?}")))?
            .map_err(|error| End::Broken(innermost(&error)))?;
        let checked = self.masterships.check(channel.clone(), ANSWER_TIMEOUT);
        checked.await.map(|()| channel)
    }

    fn succeed(&mut self, link: ParentLink) {
        self.failures = 0;
        self.redirects = 0;
        if self.told.replace(link) != Some(link) {
            info!(
                parent = self.address,
                link = link.as_str(),
                "the parent answers"
            );
        }
        if link == ParentLink::Stream {
            self.taken = None;
        }
        self.post(link, self.taken.clone());
    }

    /// The parent answered a request, or is there while there is nothing to ask. That does not count if
    /// all that it would answer is no: another process of this node was there first, or this node is its
    /// own ancestor.
    fn note_answered(&self) {
        let is_in_cycle = self.node.read(|node, _| node.is_in_cycle());
        if self.taken.is_none() && !is_in_cycle && self.board.post_parent_answered() {
            log(&Event::CycleEnded);
        }
    }

    /// From now on the parent is polled, for a while.
    fn poll_for(&mut self, length: Duration, problem: &str) {
        self.taken = None;
        let is_told = std::mem::replace(&mut self.streams_told, true);
        if is_told {
            debug!(parent = self.address, problem, "the parent is still polled");
        } else {
            info!(
                parent = self.address,
                problem, "a stream to the parent does not work; it is polled"
            );
        }
        self.poll_until = Some(Instant::now() + length);
    }

    /// From now on the parent is polled, for a while: another process of this node has the stream.
    fn poll_as_second(&mut self, problem: String) {
        if self.taken.is_none() {
            error!(
                parent = self.address,
                problem,
                "another process of this node was there first: this one is refused what it asks for"
            );
        }
        self.taken = Some(problem);
        self.poll_until = Some(Instant::now() + self.poll_length);
    }

    async fn redirect(&mut self, mastership: wire::Mastership) {
        if let Err(problem) = self.masterships.heed(&mastership) {
            return self.fail(&problem).await;
        }
        self.redirects += 1;
        let address = mastership.master_address;
        match address.filter(|address| !address.is_empty()) {
            Some(address) if !is_address(&address) => {
                let shown = visible::cut(&address);
                self.fail(&format!(
                    "it names a master at {shown}, which is no host:port"
                ))
                .await;
            }
            Some(_) if self.redirects > REDIRECTS_MAX => {
                self.fail("its servers send us from one to the other").await;
            }
            Some(address) => {
                debug!(
                    from = self.address,
                    to = address,
                    "the parent's master is elsewhere"
                );
                self.go_to(address);
            }
            None => self.fail("it is not the master and knows of none").await,
        }
    }

    /// The parent has a newer stream of this node, which this server is the master of: opens
    /// another one after a while. Two servers that both take themselves for the node's only one
    /// would do so in turns.
    async fn stand_back(&mut self, problem: &str) {
        if self.replaced == 0 {
            warn!(
                parent = self.address,
                problem, "the parent ended the stream"
            );
        } else {
            debug!(
                parent = self.address,
                problem, "the parent ended the stream again"
            );
        }
        self.post(ParentLink::Down, Some(problem.to_owned()));
        self.wait(self.replaced, BACKOFF.1).await;
        self.replaced = self.replaced.saturating_add(1);
    }

    /// Tells whoever looks, and waits before the next address is tried.
    async fn fail(&mut self, problem: &str) {
        let is_told = self.told.replace(ParentLink::Down) == Some(ParentLink::Down);
        // That it cannot be reached and that it refuses us are different things to mend.
        let refuses = problem.starts_with(REFUSES);
        let is_other = std::mem::replace(&mut self.told_refuses, refuses) != refuses;
        if is_told && !(is_other && refuses) {
            debug!(
                parent = self.address,
                problem, "the parent still cannot be asked"
            );
        } else {
            warn!(
                parent = self.address,
                problem, "the parent cannot be asked; leases run on until they expire"
            );
        }
        self.post(ParentLink::Down, Some(problem.to_owned()));
        // One that was named by another server and cannot be asked, or that knows of no master:
        // there will be a successor soon.
        let is_election = self.redirects > 0;
        let longest = if is_election {
            BACKOFF_ELECTION
        } else {
            BACKOFF.1
        };
        // Where it leads next time, may be somewhere else.
        self.redirects = 0;
        self.addresses.leave();
        self.failures = self.failures.saturating_add(1);
        // The other addresses are tried at once.
        let others = self.addresses.others();
        if let Some(waits) = self.failures.checked_sub(others.saturating_add(1)) {
            self.wait(waits, longest).await;
        }
        let next = self.addresses.next();
        self.go_to(next.unwrap_or_default());
    }

    /// That streams did not work at one server says nothing of another.
    fn go_to(&mut self, address: String) {
        if self.address != address {
            self.poll_until = None;
            self.address = address;
        }
    }

    /// Waits the longer the more often it did before, or until etcd names somebody new.
    async fn wait(&mut self, waits: u32, longest: Duration) {
        let most = BACKOFF.0.saturating_mul(1 << waits.min(10)).min(longest);
        tokio::select! {
            () = tokio::time::sleep(clock::some_of(most)) => {}
            () = self.addresses.somebody_new() => {}
        }
    }

    fn post(&self, link: ParentLink, problem: Option<String>) {
        self.board.post_parent(ParentNews {
            addresses: self.config.servers.told(),
            // Before the first one is known: what was configured.
            address: if self.address.is_empty() {
                self.config.servers.told().join(", ")
            } else {
                self.address.clone()
            },
            link,
            since: clock::wall(),
            problem,
        });
    }
}

/// Whether a server may name that as an address.
fn is_address(text: &str) -> bool {
    text.len() <= ADDRESS_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic())
        && text.rsplit_once(':').is_some_and(|(host, port)| {
            !host.is_empty() && port.parse::<u16>().is_ok_and(|port| port > 0)
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_master_is_named_by_host_and_port() {
        for address in ["eu-0:6970", "10.0.0.1:1", "[::1]:65535"] {
            assert!(is_address(address), "{address}");
        }
        let long = format!("{}:1", "a".repeat(300));
        for address in [
            "",
            "eu-0",
            ":1",
            "eu-0:",
            "eu-0:0",
            "eu-0:65536",
            "a b:1",
            "a\u{202e}:1",
            "a\n:1",
            &long,
        ] {
            assert!(!is_address(address), "{address}");
        }
    }
}
