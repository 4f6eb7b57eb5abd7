//! The configuration of the doors from the flags of limits.

use std::num::NonZeroU32;
use std::time::Duration;

use tracing::warn;

use crate::door::registry::Bounds;
use crate::door::{DoorConfig, files_for_connections};
use crate::flags::limits::LimitFlags;
use crate::limits::ServerLimit;

impl LimitFlags {
    /// The configuration of a process that may open so many files. Flags beyond that are lowered to it, with a warning.
    pub fn of_door(&self, files: usize, listen_backlog: NonZeroU32) -> DoorConfig {
        let defaults = DoorConfig::for_files(files);
        let given = |limit, default| self.given(limit).map_or(default, |_| self.count(limit));
        let within = |given, most, limit: ServerLimit| at_most(given, most, limit.flag());
        let http = within(
            given(ServerLimit::HttpConnections, defaults.http.connections),
            files_for_connections(files).saturating_sub(1),
            ServerLimit::HttpConnections,
        );
        let most = files_for_connections(files).saturating_sub(http).max(1);
        let default = defaults.grpc.connections.min(most);
        let grpc = within(
            given(ServerLimit::Connections, default),
            most,
            ServerLimit::Connections,
        );
        let part = |all: usize, at_most: usize| (all - all / 4).clamp(1, at_most);
        let time = |limit| Duration::from_millis(self.bound(limit));
        DoorConfig {
            grpc: Bounds {
                connections: grpc,
                per_address: given(ServerLimit::ConnectionsPerAddress, part(grpc, 20_000)),
            },
            http: Bounds {
                connections: http,
                per_address: given(ServerLimit::HttpConnectionsPerAddress, part(http, http)),
            },
            listen_backlog,
            streams_per_connection_max: self.small(ServerLimit::StreamsPerConnection),
            control_frames_per_second_max: self.small(ServerLimit::ControlFrames),
            patience: time(ServerLimit::Patience),
            message_bytes_max: self.message(ServerLimit::MessageBytes),
            child_message_bytes_max: self.message(ServerLimit::ChildMessageBytes),
            incoming_bytes_max: self.bound(ServerLimit::IncomingBytes),
            incoming_bytes_per_address_max: self.bound(ServerLimit::IncomingBytesPerAddress),
            outgoing_bytes_max: self.bound(ServerLimit::OutgoingBytes),
            outgoing_bytes_per_address_max: self.bound(ServerLimit::OutgoingBytesPerAddress),
            calls_per_second_per_address_max: self.bound(ServerLimit::CallsPerAddress),
            http_requests_per_second_per_address_max: self
                .bound(ServerLimit::HttpRequestsPerAddress),
            look_time_per_second_per_address_max: time(ServerLimit::LookTimePerAddress),
            child_servers_max: self.count(ServerLimit::ChildServers),
            child_servers_per_address_max: self.count(ServerLimit::ChildServersPerAddress),
        }
    }

    fn message(&self, limit: ServerLimit) -> usize {
        // gRPC announces lengths in 32 bits.
        let bytes = self.bound(limit).min(u32::MAX.into());
        usize::try_from(bytes).unwrap_or(usize::MAX)
    }
}

fn at_most(given: usize, most: usize, flag: &str) -> usize {
    if given > most {
        warn!(
            flag,
            given,
            lowered_to = most,
            "the process may not open as many files: raise its limit (ulimit -n)"
        );
    }
    given.min(most).max(1)
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    use crate::door::LISTEN_BACKLOG;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        limits: LimitFlags,
    }

    fn config(flags: &[&str], files: usize) -> DoorConfig {
        let arguments = std::iter::once("doorward-server").chain(flags.iter().copied());
        let flags = Flags::try_parse_from(arguments).unwrap();
        flags.limits.of_door(files, LISTEN_BACKLOG)
    }

    #[test]
    fn the_defaults_are_those_of_the_library() {
        for files in [16, 64, 1_024, 20_000, 1_048_576] {
            assert_eq!(config(&[], files), DoorConfig::for_files(files), "{files}");
        }
    }

    #[test]
    fn there_are_never_more_connections_than_files() {
        for files in [16, 64, 1_024, 20_000] {
            for flags in [
                &["--connections-max", "1000000"][..],
                &["--http-connections-max", "1000000"],
                &[
                    "--connections-max",
                    "1000000",
                    "--http-connections-max",
                    "5",
                ],
            ] {
                let config = config(flags, files);
                let connections = config.grpc.connections + config.http.connections;
                assert!(connections < files, "{flags:?} with {files}: {connections}");
                assert!(config.grpc.per_address <= config.grpc.connections);
            }
        }
    }

    #[test]
    fn ten_thousand_clients_behind_one_address_fit_where_files_allow() {
        let config = config(&[], 20_000);
        assert!(config.grpc.per_address >= 10_000, "{config:?}");
    }
}
