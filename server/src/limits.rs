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

/// A row of the table: name in metrics, flag, unit, default, a few words, and the whole description for the help and
/// the docs.
macro_rules! limits {
    ($($limit:ident { $name:literal, $flag:literal, $unit:ident, $kind:ident($default:literal), $what:literal, $help:literal })*) => {
        /// A limit of a server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ServerLimit {
            $(#[doc = $help] $limit,)*
        }

        impl ServerLimit {
            /// All limits, in display order.
            pub const ALL: &[Self] = &[$(Self::$limit,)*];

            /// Returns its name in metrics and tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$limit => $name,)*
                }
            }

            /// Returns the flag that sets it.
            pub const fn flag(self) -> &'static str {
                match self {
                    $(Self::$limit => $flag,)*
                }
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

            /// Returns a few words for people.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$limit => $what,)*
                }
            }

            /// Returns the whole description: the limit, and the answer at the limit.
            pub const fn help(self) -> &'static str {
                match self {
                    $(Self::$limit => $help,)*
                }
            }
        }
    };
}

limits! {
    Connections {
        "connections", "--connections-max", Count, Computed("as many as files may be open, less those for HTTP and 64, at most 65,536"),
        "gRPC connections",
        "gRPC connections. The server closes the one that is silent for longest, and accepts the new one; first it closes those that never got an answer."
    }
    ConnectionsPerAddress {
        "connections_per_address", "--connections-per-address-max", Count, Computed("three quarters of --connections-max, at most 20,000"),
        "gRPC connections from one address",
        "gRPC connections from one address, likewise."
    }
    HttpConnections {
        "http_connections", "--http-connections-max", Count, Computed("a quarter of the files that may be open, at most 1,024"),
        "HTTP connections",
        "Connections to pages and metrics, likewise."
    }
    HttpConnectionsPerAddress {
        "http_connections_per_address", "--http-connections-per-address-max", Count, Computed("three quarters of --http-connections-max"),
        "HTTP connections from one address",
        "Connections from one address to pages and metrics, likewise."
    }
    HttpRequestsPerAddress {
        "http_requests_per_address", "--http-requests-per-second-per-address-max", PerSecond, Fixed("1000"),
        "HTTP requests from one address",
        "Requests from one address for pages and metrics. The answer is 503. `/healthz` and `/readyz` are counted apart."
    }
    LookTimePerAddress {
        "look_time_per_address_ms", "--look-time-per-second-per-address-max", Millis, Fixed("250ms"),
        "pages, metrics and statuses that one address looks at",
        "Time for pages, metrics, `GetStatus` and `Plan` for one address; four times as long at once, and one of them at a time."
    }
    HandshakeTimePerAddress {
        "tls_handshake_time_per_address_ms", "--tls-handshake-time-per-second-per-address-max", Millis, Computed("an eighth of the processors' time, at most 1s"),
        "TLS handshakes of one address, by their time",
        "Time for TLS handshakes of one address, and four times as much at a port. Others wait in the order of arrival, within `--patience`."
    }
    UnknownTokensPerAddress {
        "unknown_tokens_per_address", "--unknown-tokens-per-second-per-address-max", PerSecond, Fixed("10"),
        "unknown tokens from one address",
        "Unknown tokens from one address, and a hundred times as many at a port. Beyond that, a connection knows only tokens that it has proved before."
    }
    StreamsPerConnection {
        "streams_per_connection", "--streams-per-connection-max", Count, Fixed("64"),
        "calls in progress on one connection",
        "Calls in progress on one connection. Others are reset."
    }
    ControlFrames {
        "control_frames", "--control-frames-per-second-max", PerSecond, Fixed("200"),
        "HTTP/2 frames of one connection that carry no call",
        "HTTP/2 frames of one connection that carry no call, on average over 10 s. The connection is closed. It may give up `--streams-per-connection-max` calls a second, likewise."
    }
    Patience {
        "patience_ms", "--patience", Millis, Fixed("10s"),
        "time for what has begun to arrive or to leave",
        "Time until a greeting, headers or a message are complete, and until an answer is read. The connection is closed."
    }
    MessageBytes {
        "message_bytes", "--message-bytes-max", Bytes, Fixed("256KiB"),
        "a message of a client",
        "A message of a client: a thousand resources with ids of 150 bytes fit."
    }
    ChildMessageBytes {
        "child_message_bytes", "--child-message-bytes-max", Bytes, Fixed("4MiB"),
        "a message of a child server",
        "A message of a child server."
    }
    IncomingBytes {
        "incoming_bytes", "--incoming-bytes-max", Bytes, Fixed("256MiB"),
        "messages that have not arrived in full",
        "Received parts of incomplete messages, messages of calls that wait, and the largest one of each open stream, 12 KiB at least."
    }
    IncomingBytesPerAddress {
        "incoming_bytes_per_address", "--incoming-bytes-per-address-max", Bytes, Fixed("64MiB"),
        "messages from one address that have not arrived in full",
        "The same of one address."
    }
    OutgoingBytes {
        "outgoing_bytes", "--outgoing-bytes-max", Bytes, Fixed("256MiB"),
        "answers that are not read yet",
        "Answers that are not read yet. The connection with most of them is closed."
    }
    OutgoingBytesPerAddress {
        "outgoing_bytes_per_address", "--outgoing-bytes-per-address-max", Bytes, Fixed("64MiB"),
        "answers that one address has not read yet",
        "Answers that one address has not read yet, likewise."
    }
    Calls {
        "calls", "--calls-max", Count, Fixed("10000"),
        "GetCapacity calls in progress",
        "`GetCapacity` calls in progress. Further calls are refused."
    }
    CallsPerAddress {
        "calls_per_address", "--calls-per-second-per-address-max", PerSecond, Fixed("20000"),
        "calls from one address",
        "Calls from one address. Discovery, releases, health and child servers have as many of their own."
    }
    ChildServers {
        "child_servers", "--child-servers-max", Count, Fixed("1000"),
        "child servers",
        "Open streams of child servers."
    }
    ChildServersPerAddress {
        "child_servers_per_address", "--child-servers-per-address-max", Count, Fixed("64"),
        "child servers of one address",
        "Open streams of child servers of one address."
    }
    Memory {
        "memory_bytes", "--memory-max", Bytes, Computed("half of what the machine or its control group has"),
        "bytes of memory behind resources and leases",
        "Estimated memory of all resources, leases, demand curves, priorities and names."
    }
    MemoryPerAddress {
        "memory_per_address_bytes", "--memory-per-address-max", Bytes, Computed("a quarter of --memory-max, at most 512MiB"),
        "bytes of memory that one address brought",
        "The part of it that one address brought."
    }
    MemoryPerTemplate {
        "memory_per_template_bytes", "--memory-per-template-max", Bytes, Computed("--memory-max"),
        "bytes of memory of one template",
        "The part of it that belongs to resources of one template."
    }
    NewcomersPerAddress {
        "newcomers_per_address", "--newcomers-per-second-per-address-max", PerSecond, Fixed("20000"),
        "new resources and leases from one address",
        "New resources and new leases of clients from one address; 5 times as many at once."
    }
    RequestsPerTemplate {
        "requests_per_template", "--requests-per-second-per-template-max", PerSecond, Fixed("200000"),
        "requests for resources of one template",
        "Requests of clients for resources of one template; twice as many at once. One address has a quarter. Refreshes wait at most as long as their leases last."
    }
    LeasesPerResource {
        "leases_per_resource", "--leases-per-resource-max", Count, Fixed("2000000"),
        "holders of one resource",
        "Holders of one resource; a child server is one."
    }
    LeasesPerAddress {
        "leases_per_address", "--leases-per-resource-per-address-max", Count, Computed("--leases-per-resource-max"),
        "clients of one resource from one address",
        "Clients of one resource that one address or identity brings: so many shares it can have."
    }
    Priorities {
        "priorities", "--priorities-max", Count, Fixed("64"),
        "priorities of one resource that its template does not name",
        "Priorities of one resource that its template does not name. One address may bring a quarter of them. Child servers have 64 times as many of their own."
    }
}

impl From<ServerLimit> for LimitTexts {
    fn from(limit: ServerLimit) -> Self {
        Self {
            name: limit.name(),
            flag: limit.flag(),
            what: limit.what(),
        }
    }
}

impl ServerLimit {
    /// Returns the refusal of a newcomer, for people.
    pub fn refusal(self, max: u64) -> String {
        let (what, flag) = (self.what(), self.flag());
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
        let entry = |limit: &ServerLimit| Arc::new(Limit::new(*limit));
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
            name: limit.name().to_owned(),
            description: limit.what().to_owned(),
            flag: limit.flag().to_owned(),
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
                assert_ne!(limit.name(), other.name());
                assert_ne!(limit.flag(), other.flag());
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
            .find(|it| it.name == ServerLimit::LeasesPerResource.name())
            .unwrap();
        let seen = (of_leases.used, of_leases.max, of_leases.refused_count);
        assert_eq!(seen, (None, Some(7), 3));
    }
}
