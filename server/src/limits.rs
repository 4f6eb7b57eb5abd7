//! The limits of a server. One table has the whole description of each limit: its name in metrics, its flag, unit and
//! default, and the texts for people. Flags, refusals, metrics, pages and `docs/configuration.md` follow the table.
//!
//! The code that enforces a limit reports its use and its refusals here ([`Limit`]); pages, metrics and
//! `doorward status --limits` read them.
//!
//! The engine counts its own limits; [`ServerState::limits`] reads them from the node.
//!
//! [`ServerState::limits`]: crate::status::ServerState

mod door;
mod node;
mod removed;

use std::sync::Arc;

use doorward_door::limit::{Limit, LimitTexts};
use doorward_proto::admin::v1::LimitStatus;
pub use doorward_proto::admin::v1::limit_status::Unit;

pub use crate::limits::door::LimitBounds;
pub use crate::limits::removed::{REMOVED, Removed};

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
}

/// The limits of a server, with their use and refusals.
#[derive(Debug)]
pub struct ServerLimits {
    entries: Vec<Arc<Limit>>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let entry = |limit: &ServerLimit| Arc::new(Limit::new(limit.texts()));
        Self {
            entries: ServerLimit::ALL.iter().map(entry).collect(),
        }
    }
}

impl ServerLimits {
    /// Returns a limit.
    #[expect(clippy::indexing_slicing, reason = "every limit has an entry")]
    pub fn of(&self, limit: ServerLimit) -> &Arc<Limit> {
        &self.entries[limit as usize]
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
        let all = ServerLimit::ALL.iter().zip(&self.entries);
        all.map(figure).collect()
    }
}

/// Returns a bound or a use, if it was set.
fn said(number: u64) -> Option<u64> {
    (number != u64::MAX).then_some(number)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

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
}
