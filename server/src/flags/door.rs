//! The flags that bound what one address can cause.

use std::num::{NonZeroU32, NonZeroU64, NonZeroUsize};
use std::time::Duration;

use clap::Args;
use tracing::warn;

use crate::door::registry::Bounds;
use crate::door::{DoorConfig, LISTEN_BACKLOG, files_for_connections};
use crate::flags::bytes::Bytes;

/// How much a server takes on over the network.
///
/// Where a default is not said, it follows from how many files the process may open.
#[derive(Clone, Copy, Debug, Args)]
pub struct DoorFlags {
    /// How many gRPC connections there may be; at the limit the oldest silent one goes [default: as many
    /// as files may be open, less some that are kept back, and at most 65536].
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CONNECTIONS_MAX",
        hide_env_values = true
    )]
    pub connections_max: Option<NonZeroUsize>,

    /// How many of them from one address; an IPv6 network of 64 bits is one [default: three quarters of
    /// --connections-max, at most 20000].
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CONNECTIONS_PER_ADDRESS_MAX",
        hide_env_values = true
    )]
    pub connections_per_address_max: Option<NonZeroUsize>,

    /// How many HTTP connections there may be; at the limit the oldest silent one goes [default: a quarter
    /// of what files allow, at most 1024].
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_HTTP_CONNECTIONS_MAX",
        hide_env_values = true
    )]
    pub http_connections_max: Option<NonZeroUsize>,

    /// How many of them from one address [default: three quarters of --http-connections-max].
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_HTTP_CONNECTIONS_PER_ADDRESS_MAX",
        hide_env_values = true
    )]
    pub http_connections_per_address_max: Option<NonZeroUsize>,

    /// How many connections may wait to be accepted. The system has a bound of its own: on Linux no more wait
    /// than net.core.somaxconn says, 4096 as a rule. It drops who finds no room, and they come back seconds later.
    #[arg(
        long,
        help_heading = "Addresses",
        value_name = "COUNT",
        env = "DOORWARD_LISTEN_BACKLOG",
        hide_env_values = true,
        default_value_t = LISTEN_BACKLOG
    )]
    pub listen_backlog: NonZeroU32,

    /// How many HTTP requests one address may make each second, but for /healthz and /readyz; 503 beyond.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_HTTP_REQUESTS_PER_SECOND_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value = "1000"
    )]
    pub http_requests_per_second_per_address_max: NonZeroU64,

    /// How long pages, metrics and GetStatus may take each second for one address; four times as long at
    /// once. Beyond, they are refused.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "DURATION",
        env = "DOORWARD_LOOK_TIME_PER_SECOND_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value = "250ms",
        value_parser = look_time
    )]
    pub look_time_per_second_per_address_max: Duration,

    /// How many calls may be in progress on one gRPC connection.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_STREAMS_PER_CONNECTION_MAX",
        hide_env_values = true,
        default_value = "64"
    )]
    pub streams_per_connection_max: NonZeroU32,

    /// How many HTTP/2 frames that carry no call (pings, settings, resets, crumbs of messages) one
    /// connection may send each second, on average over ten; beyond, it is closed.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CONTROL_FRAMES_PER_SECOND_MAX",
        hide_env_values = true,
        default_value = "200"
    )]
    pub control_frames_per_second_max: NonZeroU32,

    /// How long a handshake, headers or a message may take to arrive, and an answer to be read.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "DURATION",
        env = "DOORWARD_PATIENCE",
        hide_env_values = true,
        default_value = "10s",
        value_parser = patience
    )]
    pub patience: Duration,

    /// How large a message of a client may be, as in 256KiB or 1MiB.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_MESSAGE_BYTES_MAX",
        hide_env_values = true,
        default_value = "256KiB"
    )]
    pub message_bytes_max: Bytes,

    /// How large a message of a child server may be.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_CHILD_MESSAGE_BYTES_MAX",
        hide_env_values = true,
        default_value = "4MiB"
    )]
    pub child_message_bytes_max: Bytes,

    /// How many bytes of messages that have not arrived in full are kept.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_INCOMING_BYTES_MAX",
        hide_env_values = true,
        default_value = "256MiB"
    )]
    pub incoming_bytes_max: Bytes,

    /// How many of them from one address.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_INCOMING_BYTES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value = "64MiB"
    )]
    pub incoming_bytes_per_address_max: Bytes,

    /// How many bytes of answers that are not read are kept.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_OUTGOING_BYTES_MAX",
        hide_env_values = true,
        default_value = "256MiB"
    )]
    pub outgoing_bytes_max: Bytes,

    /// How many of them for one address.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_OUTGOING_BYTES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value = "64MiB"
    )]
    pub outgoing_bytes_per_address_max: Bytes,

    /// How many gRPC calls one address may make each second; beyond, they are refused with a time to come back.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CALLS_PER_SECOND_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value = "20000"
    )]
    pub calls_per_second_per_address_max: NonZeroU64,
}

impl DoorFlags {
    /// How much is taken on by a process that may open so many files. What the flags say beyond that is
    /// lowered to it, with a warning.
    pub fn config(&self, files: usize) -> DoorConfig {
        let defaults = DoorConfig::for_files(files);
        let given =
            |flag: Option<NonZeroUsize>, default: usize| flag.map_or(default, NonZeroUsize::get);
        let http = given(self.http_connections_max, defaults.http.connections);
        let http = at_most(
            http,
            files_for_connections(files).saturating_sub(1),
            "--http-connections-max",
        );
        let most = files_for_connections(files).saturating_sub(http).max(1);
        let default = defaults.grpc.connections.min(most);
        let grpc = at_most(
            given(self.connections_max, default),
            most,
            "--connections-max",
        );
        let part = |all: usize, at_most: usize| (all - all / 4).clamp(1, at_most);
        DoorConfig {
            grpc: Bounds {
                connections: grpc,
                per_address: given(self.connections_per_address_max, part(grpc, 20_000)),
            },
            http: Bounds {
                connections: http,
                per_address: given(self.http_connections_per_address_max, part(http, http)),
            },
            listen_backlog: self.listen_backlog,
            streams_per_connection_max: self.streams_per_connection_max,
            control_frames_per_second_max: self.control_frames_per_second_max,
            patience: self.patience,
            message_bytes_max: size(self.message_bytes_max),
            child_message_bytes_max: size(self.child_message_bytes_max),
            incoming_bytes_max: self.incoming_bytes_max.0.get(),
            incoming_bytes_per_address_max: self.incoming_bytes_per_address_max.0.get(),
            outgoing_bytes_max: self.outgoing_bytes_max.0.get(),
            outgoing_bytes_per_address_max: self.outgoing_bytes_per_address_max.0.get(),
            calls_per_second_per_address_max: self.calls_per_second_per_address_max.get(),
            http_requests_per_second_per_address_max: self
                .http_requests_per_second_per_address_max
                .get(),
            look_time_per_second_per_address_max: self.look_time_per_second_per_address_max,
        }
    }
}

fn size(Bytes(bytes): Bytes) -> usize {
    // gRPC announces lengths in 32 bits.
    usize::try_from(bytes.get().min(u32::MAX.into())).unwrap_or(usize::MAX)
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

fn look_time(text: &str) -> Result<Duration, String> {
    let time = doorward_documents::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_millis(1)..=Duration::from_secs(1);
    if range.contains(&time) {
        Ok(time)
    } else {
        Err("give a duration from 1ms to 1s".to_owned())
    }
}

fn patience(text: &str) -> Result<Duration, String> {
    let patience = doorward_documents::parse_duration(text).map_err(|error| error.to_string())?;
    let range = Duration::from_millis(100)..=Duration::from_secs(600);
    if range.contains(&patience) {
        Ok(patience)
    } else {
        Err("give a duration from 100ms to 10m".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        door: DoorFlags,
    }

    fn config(flags: &[&str], files: usize) -> DoorConfig {
        let arguments = std::iter::once("doorward-server").chain(flags.iter().copied());
        Flags::try_parse_from(arguments).unwrap().door.config(files)
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
