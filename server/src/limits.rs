//! The limits of a server. One table has the whole description of each limit: its name in metrics, its flag, unit and
//! default, and the texts for people. Flags, refusals, metrics, pages and `docs/configuration.md` follow the table.
//!
//! The code that enforces a limit reports its use and its refusals here ([`Limit`]); pages, metrics and
//! `doorward status --limits` read them.
//!
//! The engine counts its own limits; [`ServerState::limits`] reads them from the node.
//!
//! [`ServerState::limits`]: crate::status::ServerState

mod removed;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use doorward_door::door_limits::DoorLimits;
use doorward_door::limit::{Limit, LimitTexts};
use doorward_engine::admission::limits::Limits as NodeLimits;
use doorward_engine::admission::{self as engine, Load};
use doorward_proto::admin::v1::LimitStatus;
pub use doorward_proto::admin::v1::limit_status::Unit;

pub use crate::limits::removed::{REMOVED, Removed};

/// Bounds of the limits that no node enforces.
pub type LimitBounds = BTreeMap<ServerLimit, u64>;

/// Number of refusals by each limit of a node.
type Refused = [u64; engine::Limit::ALL.len()];

/// The bound without a flag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DefaultBound {
    /// The value of the flag.
    Fixed(&'static str),
    /// Computed at the start; the text says how.
    Computed(&'static str),
}

/// A row of the table: its documentation is the help. Then come the name in metrics, the flag, a few words, the unit, and
/// the default.
macro_rules! limits {
    ($($(#[doc = $help:literal])+ $limit:ident($name:literal, $flag:literal, $what:literal) $unit:ident, $kind:ident($default:literal);)*) => {
        /// A limit of a server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ServerLimit {
            $($(#[doc = $help])+ $limit,)*
        }

        impl ServerLimit {
            /// All limits, in display order.
            pub const ALL: &[Self] = &[$(Self::$limit,)*];

            /// Returns its name in metrics and tables, the flag that sets it, and a few words for people.
            pub const fn texts(self) -> LimitTexts {
                let (name, flag, what) = match self {
                    $(Self::$limit => ($name, $flag, $what),)*
                };
                LimitTexts { name, flag, what }
            }

            /// Returns the unit of its numbers.
            pub const fn unit(self) -> Unit {
                match self {
                    $(Self::$limit => Unit::$unit,)*
                }
            }

            /// Returns the bound without a flag.
            pub const fn default_bound(self) -> DefaultBound {
                match self {
                    $(Self::$limit => DefaultBound::$kind($default),)*
                }
            }

            /// Returns the whole description: the limit, and the answer at the limit.
            pub const fn help(self) -> &'static str {
                match self {
                    $(Self::$limit => concat!($($help),+).trim_ascii_start(),)*
                }
            }
        }
    };
}

limits! {
    /// gRPC connections. The server closes the one that is silent for longest, and accepts the new one; first it closes
    /// those that never got an answer.
    Connections("connections", "--connections-max", "gRPC connections")
        Count, Computed("as many as files may be open, less those for HTTP and 64, at most 65,536");
    /// gRPC connections from one address, likewise.
    ConnectionsPerAddress("connections_per_address", "--connections-per-address-max", "gRPC connections from one address")
        Count, Computed("three quarters of --connections-max, at most 20,000");
    /// Connections to pages and metrics, likewise.
    HttpConnections("http_connections", "--http-connections-max", "HTTP connections")
        Count, Computed("a quarter of the files that may be open, at most 1,024");
    /// Connections from one address to pages and metrics, likewise.
    HttpConnectionsPerAddress("http_connections_per_address", "--http-connections-per-address-max", "HTTP connections from one address")
        Count, Computed("three quarters of --http-connections-max");
    /// Requests from one address for pages and metrics. The answer is 503. `/healthz` and `/readyz` are counted apart.
    HttpRequestsPerAddress("http_requests_per_address", "--http-requests-per-second-per-address-max", "HTTP requests from one address")
        PerSecond, Fixed("1000");
    /// Time for pages, metrics, `GetStatus` and `Plan` for one address; four times as long at once, and one of them at
    /// a time.
    LookTimePerAddress("look_time_per_address_ms", "--look-time-per-second-per-address-max", "pages, metrics and statuses that one address looks at")
        Millis, Fixed("250ms");
    /// Time for TLS handshakes of one address, and four times as much at a port. Others wait in the order of arrival,
    /// within `--patience`.
    HandshakeTimePerAddress("tls_handshake_time_per_address_ms", "--tls-handshake-time-per-second-per-address-max", "TLS handshakes of one address, by their time")
        Millis, Computed("an eighth of the processors' time, at most 1s");
    /// Unknown tokens from one address, and a hundred times as many at a port. Beyond that, a connection knows only
    /// tokens that it has proved before.
    UnknownTokensPerAddress("unknown_tokens_per_address", "--unknown-tokens-per-second-per-address-max", "unknown tokens from one address")
        PerSecond, Fixed("10");
    /// Calls in progress on one connection. Others are reset.
    StreamsPerConnection("streams_per_connection", "--streams-per-connection-max", "calls in progress on one connection")
        Count, Fixed("64");
    /// HTTP/2 frames of one connection that carry no call, on average over 10 s. The connection is closed. It may give
    /// up `--streams-per-connection-max` calls a second, likewise.
    ControlFrames("control_frames", "--control-frames-per-second-max", "HTTP/2 frames of one connection that carry no call")
        PerSecond, Fixed("200");
    /// Time until a greeting, headers or a message are complete, and until an answer is read. The connection is closed.
    Patience("patience_ms", "--patience", "time for what has begun to arrive or to leave")
        Millis, Fixed("10s");
    /// A message of a client: a thousand resources with ids of 150 bytes fit.
    MessageBytes("message_bytes", "--message-bytes-max", "a message of a client")
        Bytes, Fixed("256KiB");
    /// A message of a child server.
    ChildMessageBytes("child_message_bytes", "--child-message-bytes-max", "a message of a child server")
        Bytes, Fixed("4MiB");
    /// Received parts of incomplete messages, messages of calls that wait, and the largest one of each open stream, 12
    /// KiB at least.
    IncomingBytes("incoming_bytes", "--incoming-bytes-max", "messages that have not arrived in full")
        Bytes, Fixed("256MiB");
    /// The same of one address.
    IncomingBytesPerAddress("incoming_bytes_per_address", "--incoming-bytes-per-address-max", "messages from one address that have not arrived in full")
        Bytes, Fixed("64MiB");
    /// Answers that are not read yet. The connection with most of them is closed.
    OutgoingBytes("outgoing_bytes", "--outgoing-bytes-max", "answers that are not read yet")
        Bytes, Fixed("256MiB");
    /// Answers that one address has not read yet, likewise.
    OutgoingBytesPerAddress("outgoing_bytes_per_address", "--outgoing-bytes-per-address-max", "answers that one address has not read yet")
        Bytes, Fixed("64MiB");
    /// `GetCapacity` calls in progress. Further calls are refused.
    Calls("calls", "--calls-max", "GetCapacity calls in progress")
        Count, Fixed("10000");
    /// Calls from one address. Discovery, releases, health and child servers have as many of their own.
    CallsPerAddress("calls_per_address", "--calls-per-second-per-address-max", "calls from one address")
        PerSecond, Fixed("20000");
    /// Open streams of child servers.
    ChildServers("child_servers", "--child-servers-max", "child servers")
        Count, Fixed("1000");
    /// Open streams of child servers of one address.
    ChildServersPerAddress("child_servers_per_address", "--child-servers-per-address-max", "child servers of one address")
        Count, Fixed("64");
    /// Estimated memory of all resources, leases, demand curves, priorities and names.
    Memory("memory_bytes", "--memory-max", "bytes of memory behind resources and leases")
        Bytes, Computed("half of what the machine or its control group has");
    /// The part of it that one address brought.
    MemoryPerAddress("memory_per_address_bytes", "--memory-per-address-max", "bytes of memory that one address brought")
        Bytes, Computed("a quarter of --memory-max, at most 512MiB");
    /// The part of it that belongs to resources of one template.
    MemoryPerTemplate("memory_per_template_bytes", "--memory-per-template-max", "bytes of memory of one template")
        Bytes, Computed("--memory-max");
    /// New resources and new leases of clients from one address; 5 times as many at once.
    NewcomersPerAddress("newcomers_per_address", "--newcomers-per-second-per-address-max", "new resources and leases from one address")
        PerSecond, Fixed("20000");
    /// Requests of clients for resources of one template; twice as many at once. One address has a quarter. Refreshes
    /// wait at most as long as their leases last.
    RequestsPerTemplate("requests_per_template", "--requests-per-second-per-template-max", "requests for resources of one template")
        PerSecond, Fixed("200000");
    /// Holders of one resource; a child server is one.
    LeasesPerResource("leases_per_resource", "--leases-per-resource-max", "holders of one resource")
        Count, Fixed("2000000");
    /// Clients of one resource that one address or identity brings: so many shares it can have.
    LeasesPerAddress("leases_per_address", "--leases-per-resource-per-address-max", "clients of one resource from one address")
        Count, Computed("--leases-per-resource-max");
    /// Priorities of one resource that its template does not name. One address may bring a quarter of them. Child
    /// servers have 64 times as many of their own.
    Priorities("priorities", "--priorities-max", "priorities of one resource that its template does not name")
        Count, Fixed("64");
}

impl ServerLimit {
    /// Returns the refusal of a newcomer, for people.
    pub fn refusal(self, max: u64) -> String {
        let LimitTexts { what, flag, .. } = self.texts();
        let rate = if self.unit() == Unit::PerSecond {
            " a second"
        } else {
            ""
        };
        format!("there are too many {what}, of at most {max}{rate}; see {flag}")
    }

    /// Returns the server's limit for a limit of the engine. A caller of the engine is an address.
    pub const fn of(limit: engine::Limit) -> Self {
        match limit {
            engine::Limit::Memory => Self::Memory,
            engine::Limit::MemoryPerCaller => Self::MemoryPerAddress,
            engine::Limit::MemoryPerTemplate => Self::MemoryPerTemplate,
            engine::Limit::NewcomersPerCaller => Self::NewcomersPerAddress,
            engine::Limit::RequestsPerTemplate => Self::RequestsPerTemplate,
            engine::Limit::LeasesPerResource => Self::LeasesPerResource,
            engine::Limit::LeasesPerCaller => Self::LeasesPerAddress,
            engine::Limit::Priorities => Self::Priorities,
        }
    }

    /// Returns whether a node enforces it.
    pub fn is_of_node(self) -> bool {
        engine::Limit::ALL.iter().any(|it| Self::of(*it) == self)
    }
}

/// The limits of a server, with their use and refusals.
#[derive(Debug)]
pub struct ServerLimits(Vec<Arc<Limit>>);

impl Default for ServerLimits {
    fn default() -> Self {
        let entry = |limit: &ServerLimit| Arc::new(Limit::new(limit.texts()));
        Self(ServerLimit::ALL.iter().map(entry).collect())
    }
}

impl ServerLimits {
    /// Returns a limit.
    #[expect(clippy::indexing_slicing, reason = "every limit has an entry")]
    pub fn of(&self, limit: ServerLimit) -> &Arc<Limit> {
        &self.0[limit as usize]
    }

    /// Returns the figures of all limits, in display order. A limit for each address, template or resource has the use
    /// of the largest one.
    pub fn figures(&self) -> Vec<LimitStatus> {
        let figure = |(limit, entry): (&ServerLimit, &Arc<Limit>)| LimitStatus {
            name: limit.texts().name.to_owned(),
            description: limit.texts().what.to_owned(),
            flag: limit.texts().flag.to_owned(),
            unit: limit.unit().into(),
            used: said(entry.used()),
            max: said(entry.max()),
            refused_count: entry.refused(),
        };
        let all = ServerLimit::ALL.iter().zip(&self.0);
        all.map(figure).collect()
    }

    // Limits that the doors enforce.

    /// Sets bounds.
    pub fn set_bounds(&self, bounds: &LimitBounds) {
        for (limit, max) in bounds {
            self.of(*limit).set_max(*max);
        }
    }

    /// Returns the limits of the door for gRPC.
    pub fn of_grpc(&self) -> DoorLimits {
        let of = |limit| Arc::clone(self.of(limit));
        DoorLimits {
            connections: of(ServerLimit::Connections),
            connections_per_caller: of(ServerLimit::ConnectionsPerAddress),
            streams_per_connection: of(ServerLimit::StreamsPerConnection),
            control_frames: of(ServerLimit::ControlFrames),
            patience: of(ServerLimit::Patience),
            message_bytes: of(ServerLimit::MessageBytes),
            large_message_bytes: of(ServerLimit::ChildMessageBytes),
            incoming_bytes: of(ServerLimit::IncomingBytes),
            incoming_bytes_per_caller: of(ServerLimit::IncomingBytesPerAddress),
            outgoing_bytes: of(ServerLimit::OutgoingBytes),
            outgoing_bytes_per_caller: of(ServerLimit::OutgoingBytesPerAddress),
            calls_per_caller: of(ServerLimit::CallsPerAddress),
            vital_calls_per_caller: of(ServerLimit::CallsPerAddress),
            look_time_per_caller: of(ServerLimit::LookTimePerAddress),
            handshake_time_per_caller: of(ServerLimit::HandshakeTimePerAddress),
            unknown_tokens_per_caller: of(ServerLimit::UnknownTokensPerAddress),
        }
    }

    /// Returns the limits of the door for HTTP.
    pub fn of_http(&self) -> DoorLimits {
        let of = |limit| Arc::clone(self.of(limit));
        DoorLimits {
            connections: of(ServerLimit::HttpConnections),
            connections_per_caller: of(ServerLimit::HttpConnectionsPerAddress),
            calls_per_caller: of(ServerLimit::HttpRequestsPerAddress),
            ..self.of_grpc()
        }
    }

    // Limits whose use the node itself counts.

    /// Sets the bounds of a node.
    pub fn set_of_node(&self, limits: &NodeLimits) {
        for limit in engine::Limit::ALL {
            self.of(ServerLimit::of(limit))
                .set_max(limits.max_of(limit));
        }
    }

    /// Sets the use of a node, and the holders of its largest resource. Rates, priorities and clients of an address are not counted.
    pub fn set_used_by_node(&self, load: &Load, leases_per_resource: usize) {
        for (limit, used) in [
            (ServerLimit::Memory, load.memory_bytes),
            (ServerLimit::MemoryPerAddress, load.memory_per_caller),
            (ServerLimit::MemoryPerTemplate, load.memory_per_template),
            (ServerLimit::LeasesPerResource, leases_per_resource),
        ] {
            let used = u64::try_from(used).unwrap_or(u64::MAX);
            self.of(limit).set_used(used);
        }
    }

    /// Counts the refusals of a node at `now` after the start: the difference between two counts.
    pub fn refuse_by_node(&self, before: &Refused, after: &Refused, now: Duration) {
        for ((limit, before), after) in engine::Limit::ALL.iter().zip(before).zip(after) {
            let more = after.saturating_sub(*before);
            self.of(ServerLimit::of(*limit)).refuse_times(more, now);
        }
    }
}

/// Returns a bound or a use, if it was set.
fn said(number: u64) -> Option<u64> {
    (number != u64::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_name_and_a_flag_of_its_own() {
        for (position, limit) in ServerLimit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, position);
            for other in &ServerLimit::ALL[..position] {
                assert_ne!(limit.texts().name, other.texts().name);
                assert_ne!(limit.texts().flag, other.texts().flag);
            }
        }
    }

    #[test]
    fn a_limit_counts_what_it_refuses() {
        let limits = ServerLimits::default();
        limits.of(ServerLimit::LeasesPerResource).set_max(7);
        for before in 0..3 {
            let limit = limits.of(ServerLimit::LeasesPerResource);
            assert_eq!(limit.refuse(Duration::ZERO), before);
        }
        let figures = limits.figures();
        let of_leases = figures
            .iter()
            .find(|it| it.name == ServerLimit::LeasesPerResource.texts().name)
            .unwrap();
        let seen = (of_leases.used, of_leases.max, of_leases.refused_count);
        assert_eq!(seen, (None, Some(7), 3));
    }

    #[test]
    fn every_limit_of_a_node_is_one_of_the_server_with_a_bound() {
        let limits = ServerLimits::default();
        limits.set_of_node(&NodeLimits {
            memory_max: 3,
            memory_per_template_max: 2,
            ..NodeLimits::default()
        });
        let mut seen = Vec::new();
        for limit in engine::Limit::ALL {
            let limit = ServerLimit::of(limit);
            assert!(!seen.contains(&limit), "{limit:?} stands for two");
            seen.push(limit);
            let figure = &limits.figures()[limit as usize];
            assert!(figure.max.is_some(), "{limit:?}");
        }
    }

    #[test]
    fn what_is_counted_by_a_node_is_shown() {
        let limits = ServerLimits::default();
        limits.set_used_by_node(&Load::default(), 0);
        for limit in engine::Limit::ALL.map(ServerLimit::of) {
            let figure = &limits.figures()[limit as usize];
            let is_uncounted = [ServerLimit::Priorities, ServerLimit::LeasesPerAddress];
            let counted = limit.unit() != Unit::PerSecond && !is_uncounted.contains(&limit);
            assert_eq!(figure.used.is_some(), counted, "{limit:?}");
        }
    }

    #[test]
    fn what_a_node_refuses_is_counted() {
        let limits = ServerLimits::default();
        let mut before = [0; engine::Limit::ALL.len()];
        before[engine::Limit::LeasesPerResource as usize] = 7;
        let mut after = before;
        after[engine::Limit::LeasesPerResource as usize] = 12;
        after[engine::Limit::Memory as usize] = 1;
        limits.refuse_by_node(&before, &after, Duration::ZERO);
        let refused: Vec<_> = limits
            .figures()
            .into_iter()
            .filter(|it| it.refused_count > 0)
            .collect();
        let counted: Vec<_> = refused
            .iter()
            .map(|it| (&*it.name, it.refused_count))
            .collect();
        let expected = [
            (ServerLimit::Memory, 1),
            (ServerLimit::LeasesPerResource, 5),
        ];
        assert_eq!(
            counted,
            expected.map(|(limit, count)| (limit.texts().name, count))
        );
    }
}
