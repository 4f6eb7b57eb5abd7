//! The bounds of what the server accepts over the network, from the flags of limits.

use tracing::warn;

use crate::flags::limits::LimitFlags;
use crate::limits::{LimitBounds, ServerLimit};

/// File descriptors reserved for parents, etcd, templates and logs. With few descriptors, half of them are reserved.
const FILES_KEPT: u64 = 64;

impl LimitFlags {
    /// The bounds for a process that may open so many files. Flags beyond that are lowered to it, with a warning.
    pub fn of_door(&self, files: usize) -> LimitBounds {
        let limits = ServerLimit::ALL.iter().filter(|it| !it.is_of_node());
        let given = limits.filter_map(|it| Some((*it, self.given(*it)?)));
        let mut bounds: LimitBounds = given.collect();
        let files = u64::try_from(files).unwrap_or(u64::MAX);
        let available = files - FILES_KEPT.min(files / 2);
        let mut within = |limit: ServerLimit, default: u64, most: u64| {
            let bound = self.given(limit).unwrap_or(default);
            let bound = at_most(bound, most, limit.texts().flag);
            bounds.insert(limit, bound);
            bound
        };
        let default = (available / 4).clamp(1, 1_024);
        let most = available.saturating_sub(1);
        let http = within(ServerLimit::HttpConnections, default, most);
        let most = available.saturating_sub(http).max(1);
        let default = available.saturating_sub(default).clamp(1, 65_536).min(most);
        let grpc = within(ServerLimit::Connections, default, most);
        for (limit, of_all, at_most) in [
            (ServerLimit::ConnectionsPerAddress, grpc, 20_000),
            (ServerLimit::HttpConnectionsPerAddress, http, http),
        ] {
            let per_address = (of_all - of_all / 4).clamp(1, at_most);
            bounds.entry(limit).or_insert(per_address);
        }
        let processors = std::thread::available_parallelism().map_or(1, usize::from);
        let eighth = 125 * u64::try_from(processors).unwrap_or(1);
        let of_address = bounds.entry(ServerLimit::HandshakeTimePerAddress);
        of_address.or_insert(eighth.min(1_000));
        bounds
    }
}

fn at_most(given: u64, most: u64, flag: &str) -> u64 {
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

    #[derive(Debug, Parser)]
    struct Flags {
        #[command(flatten)]
        limits: LimitFlags,
    }

    fn bounds(flags: &[&str], files: usize) -> LimitBounds {
        let arguments = std::iter::once("doorward-server").chain(flags.iter().copied());
        let flags = Flags::try_parse_from(arguments).unwrap();
        flags.limits.of_door(files)
    }

    #[test]
    fn the_defaults_are_those_of_the_table() {
        for files in [16, 64, 1_024, 20_000, 1_048_576] {
            assert_eq!(
                bounds(&[], files),
                LimitFlags::default().of_door(files),
                "{files}"
            );
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
                let bounds = bounds(flags, files);
                let grpc = bounds[&ServerLimit::Connections];
                let connections = grpc + bounds[&ServerLimit::HttpConnections];
                let files = u64::try_from(files).unwrap();
                assert!(connections < files, "{flags:?} with {files}: {connections}");
                assert!(bounds[&ServerLimit::ConnectionsPerAddress] <= grpc);
            }
        }
    }

    #[test]
    fn ten_thousand_clients_behind_one_address_fit_where_files_allow() {
        let bounds = bounds(&[], 20_000);
        let per_address = bounds[&ServerLimit::ConnectionsPerAddress];
        assert!(per_address >= 10_000, "{bounds:?}");
    }
}
