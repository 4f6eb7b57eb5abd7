//! Everything here is bounded that an address can cause: each limit by name, with its use, its bound and
//! how often it refused something.
//!
//! Who keeps a limit says here what it uses and what it refuses; pages, metrics and `doorward status
//! --limits` read it. A refusal is counted always, and logged once a minute at most for each limit: who
//! floods the server must not flood its log.
//!
//! What the engine keeps (resources, leases, child servers) it counts itself; [`Board::limits`] reads
//! that from the node.
//!
//! [`Board::limits`]: crate::status::Board

mod node;

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use doorward_session::time::millis;
use tracing::warn;

/// How long a limit that refuses is not logged again.
const LOG_INTERVAL: Duration = Duration::from_secs(60);

/// What the numbers of a limit count.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Things.
    Count,
    /// Bytes.
    Bytes,
    /// Things each second.
    PerSecond,
    /// Milliseconds: the bound is a span of time.
    Millis,
}

macro_rules! limits {
    ($($(#[$doc:meta])* $limit:ident { $name:literal, $flag:literal, $unit:ident, $what:literal })*) => {
        /// A limit of a server.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ServerLimit {
            $($(#[$doc])* $limit,)*
        }

        impl ServerLimit {
            /// All of them, as they are shown.
            pub const ALL: &[Self] = &[$(Self::$limit,)*];

            /// Its name in metrics and tables.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$limit => $name,)*
                }
            }

            /// The flag that sets it.
            pub const fn flag(self) -> &'static str {
                match self {
                    $(Self::$limit => $flag,)*
                }
            }

            /// What its numbers count.
            pub const fn unit(self) -> Unit {
                match self {
                    $(Self::$limit => Unit::$unit,)*
                }
            }

            /// What is limited, for people.
            pub const fn what(self) -> &'static str {
                match self {
                    $(Self::$limit => $what,)*
                }
            }
        }
    };
}

limits! {
    /// gRPC connections in all.
    Connections { "connections", "--connections-max", Count, "gRPC connections" }
    /// gRPC connections from one address.
    ConnectionsPerAddress { "connections_per_address", "--connections-per-address-max", Count, "gRPC connections from one address" }
    /// HTTP connections in all.
    HttpConnections { "http_connections", "--http-connections-max", Count, "HTTP connections" }
    /// HTTP connections from one address.
    HttpConnectionsPerAddress { "http_connections_per_address", "--http-connections-per-address-max", Count, "HTTP connections from one address" }
    /// HTTP requests each second from one address.
    HttpRequestsPerAddress { "http_requests_per_address", "--http-requests-per-second-per-address-max", PerSecond, "HTTP requests from one address" }
    /// Calls in progress on one connection. HTTP/2 tells the peer, and resets what comes beyond.
    StreamsPerConnection { "streams_per_connection", "--streams-per-connection-max", Count, "calls in progress on one connection" }
    /// Frames of a connection that carry no call.
    ControlFrames { "control_frames", "--control-frames-per-second-max", PerSecond, "HTTP/2 frames of one connection that carry no call" }
    /// How long something that has begun to arrive, or to leave, may take.
    Patience { "patience_ms", "--patience", Millis, "time for what has begun to arrive or to leave" }
    /// The size of a client's message.
    MessageBytes { "message_bytes", "--message-bytes-max", Bytes, "a message of a client" }
    /// The size of a child server's message.
    ChildMessageBytes { "child_message_bytes", "--child-message-bytes-max", Bytes, "a message of a child server" }
    /// Bytes of messages that have not arrived in full, in all.
    IncomingBytes { "incoming_bytes", "--incoming-bytes-max", Bytes, "messages that have not arrived in full" }
    /// Bytes of messages that have not arrived in full, of one address.
    IncomingBytesPerAddress { "incoming_bytes_per_address", "--incoming-bytes-per-address-max", Bytes, "messages from one address that have not arrived in full" }
    /// Bytes of answers that were not read yet, in all.
    OutgoingBytes { "outgoing_bytes", "--outgoing-bytes-max", Bytes, "answers that are not read yet" }
    /// Bytes of answers that were not read yet, of one address.
    OutgoingBytesPerAddress { "outgoing_bytes_per_address", "--outgoing-bytes-per-address-max", Bytes, "answers that one address has not read yet" }
    /// `GetCapacity` calls in progress.
    Calls { "calls", "--calls-max", Count, "GetCapacity calls in progress" }
    /// Calls each second from one address.
    CallsPerAddress { "calls_per_address", "--calls-per-second-per-address-max", PerSecond, "calls from one address" }
    /// How long pages, metrics and the status may take each second for one address.
    LookTimePerAddress { "look_time_per_address_ms", "--look-time-per-second-per-address-max", Millis, "pages, metrics and statuses that one address looks at" }
    /// Resources with leases out.
    Resources { "resources", "--resources-max", Count, "resources" }
    /// Resources that one address brought.
    ResourcesPerAddress { "resources_per_address", "--resources-per-address-max", Count, "resources that one address brought" }
    /// Resources of one template.
    ResourcesPerTemplate { "resources_per_template", "--resources-per-template-max", Count, "resources of one template" }
    /// New resources each second from one address.
    NewResourcesPerAddress { "new_resources_per_address", "--new-resources-per-second-per-address-max", PerSecond, "new resources from one address" }
    /// New resources each second of one template.
    NewResourcesPerTemplate { "new_resources_per_template", "--new-resources-per-second-per-template-max", PerSecond, "new resources of one template" }
    /// Leases in all.
    Leases { "leases", "--leases-max", Count, "leases" }
    /// Holders of one resource.
    LeasesPerResource { "leases_per_resource", "--leases-per-resource-max", Count, "leases of one resource" }
    /// Leases that one address brought.
    LeasesPerAddress { "leases_per_address", "--leases-per-address-max", Count, "leases that one address brought" }
    /// Leases of all resources of one template.
    LeasesPerTemplate { "leases_per_template", "--leases-per-template-max", Count, "leases of one template" }
    /// New leases each second from one address.
    NewLeasesPerAddress { "new_leases_per_address", "--new-leases-per-second-per-address-max", PerSecond, "new leases from one address" }
    /// New leases each second of one template.
    NewLeasesPerTemplate { "new_leases_per_template", "--new-leases-per-second-per-template-max", PerSecond, "new leases of one template" }
    /// Requests each second for resources of one template.
    RequestsPerTemplate { "requests_per_template", "--requests-per-second-per-template-max", PerSecond, "requests for resources of one template" }
    /// Memory behind resources, leases and curves.
    Memory { "memory_bytes", "--memory-max", Bytes, "memory behind resources and leases" }
    /// Priorities of one resource.
    Priorities { "priorities", "--priorities-max", Count, "priorities of one resource that its template does not name" }
    /// Priorities of one resource that one address brought.
    PrioritiesPerAddress { "priorities_per_address", "--priorities-per-address-max", Count, "priorities of one resource that one address brought and its template does not name" }
    /// Child servers.
    ChildServers { "child_servers", "--child-servers-max", Count, "child servers" }
    /// Child servers of one address.
    ChildServersPerAddress { "child_servers_per_address", "--child-servers-per-address-max", Count, "child servers of one address" }
    /// Leases of child servers, each of which has demand curves.
    Curves { "curves", "--curves-max", Count, "demand curves of child servers" }
    /// Leases of the child servers of one address.
    CurvesPerAddress { "curves_per_address", "--curves-per-address-max", Count, "demand curves of the child servers of one address" }
    /// Points of all demand curves.
    CurvePoints { "curve_points", "--curve-points-max", Count, "points of the demand curves of child servers" }
    /// Points of the demand curves of one address.
    CurvePointsPerAddress { "curve_points_per_address", "--curve-points-per-address-max", Count, "points of the demand curves of the child servers of one address" }
}

/// Use and bound of a limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LimitFigure {
    /// Which.
    pub limit: ServerLimit,
    /// What is in use. Of a limit for each address, template or resource: the most that one of them uses.
    /// Absent: nobody counts it.
    pub used: Option<u64>,
    /// The bound. Absent: there is none.
    pub max: Option<u64>,
    /// How often something was refused for it since the start.
    pub refused: u64,
}

#[derive(Debug, Default)]
struct Entry {
    /// `u64::MAX`: nobody says.
    max: AtomicU64,
    /// `u64::MAX`: nobody says.
    used: AtomicU64,
    refused: AtomicU64,
    /// When it was logged last, in milliseconds since the start, plus one. 0: never.
    logged_at: AtomicU64,
    /// How often it had refused then.
    logged: AtomicU64,
}

/// The limits of a server: what is used, and what was refused.
#[derive(Debug)]
pub struct ServerLimits {
    entries: Vec<Entry>,
}

impl Default for ServerLimits {
    fn default() -> Self {
        let nobody_says = || AtomicU64::new(u64::MAX);
        let entry = |_: &ServerLimit| Entry {
            max: nobody_says(),
            used: nobody_says(),
            ..Entry::default()
        };
        Self {
            entries: ServerLimit::ALL.iter().map(entry).collect(),
        }
    }
}

impl ServerLimits {
    fn entry(&self, limit: ServerLimit) -> Option<&Entry> {
        self.entries.get(limit as usize)
    }

    /// Sets a bound.
    pub fn set_max(&self, limit: ServerLimit, max: u64) {
        if let Some(entry) = self.entry(limit) {
            entry.max.store(max, Ordering::Relaxed);
        }
    }

    /// A bound, if it was set. More than can be counted here is as much as can be.
    pub fn max(&self, limit: ServerLimit) -> Option<usize> {
        let max = self.entry(limit)?.max.load(Ordering::Relaxed);
        (max != u64::MAX).then(|| usize::try_from(max).unwrap_or(usize::MAX))
    }

    /// Says what is in use.
    pub fn set_used(&self, limit: ServerLimit, used: u64) {
        if let Some(entry) = self.entry(limit) {
            entry.used.store(used, Ordering::Relaxed);
        }
    }

    /// Begins to count the use of a limit here, if nobody does.
    pub fn take_up(&self, limit: ServerLimit) {
        if let Some(entry) = self.entry(limit) {
            let (nobody_says, order) = (u64::MAX, Ordering::Relaxed);
            let _counted_already = entry.used.compare_exchange(nobody_says, 0, order, order);
        }
    }

    /// Uses more, of a limit that this register itself counts: its bound and its use were set. Returns
    /// whether there was as much; if not, nothing is used.
    pub fn take(&self, limit: ServerLimit, more: u64) -> bool {
        let Some(entry) = self.entry(limit) else {
            return false;
        };
        let max = entry.max.load(Ordering::Relaxed);
        // Only the sum matters: nothing else is read on the strength of it.
        entry
            .used
            .try_update(Ordering::Relaxed, Ordering::Relaxed, |used| {
                used.checked_add(more).filter(|used| *used <= max)
            })
            .is_ok()
    }

    /// Uses more, whether there is as much or not: somebody else is about to use less.
    pub fn overtake(&self, limit: ServerLimit, more: u64) {
        if let Some(entry) = self.entry(limit) {
            entry.used.fetch_add(more, Ordering::Relaxed);
        }
    }

    /// Uses less, of what was taken.
    pub fn give_back(&self, limit: ServerLimit, less: u64) {
        if let Some(entry) = self.entry(limit) {
            let used = entry.used.fetch_sub(less, Ordering::Relaxed);
            debug_assert!(used >= less, "more was given back than was taken");
        }
    }

    /// Something is refused for that limit, so long after the start. Counts it, and logs it once a minute at
    /// most. Returns how often that happened before.
    pub fn refuse(&self, limit: ServerLimit, now: Duration) -> u64 {
        let Some(entry) = self.entry(limit) else {
            return 0;
        };
        let before = entry.refused.fetch_add(1, Ordering::Relaxed);
        let now = millis(now).saturating_add(1);
        let logged_at = entry.logged_at.load(Ordering::Relaxed);
        let is_due = logged_at == 0 || now.saturating_sub(logged_at) >= millis(LOG_INTERVAL);
        // Of several that find it due at once, one logs.
        let logs = is_due
            && entry
                .logged_at
                .compare_exchange(logged_at, now, Ordering::Relaxed, Ordering::Relaxed)
                .is_ok();
        if logs {
            let logged = entry.logged.swap(before + 1, Ordering::Relaxed);
            warn!(
                limit = limit.name(),
                flag = limit.flag(),
                max = entry.max.load(Ordering::Relaxed),
                refused = before + 1 - logged.min(before),
                "a limit is reached: what comes beyond is refused, and what is there stays"
            );
        }
        before
    }

    /// The same, so many times.
    pub fn refuse_times(&self, limit: ServerLimit, times: u64, now: Duration) {
        if let Some(more) = times.checked_sub(1) {
            if let Some(entry) = self.entry(limit) {
                entry.refused.fetch_add(more, Ordering::Relaxed);
            }
            self.refuse(limit, now);
        }
    }

    /// All limits, as they are shown.
    pub fn figures(&self) -> Vec<LimitFigure> {
        let said = |value: &AtomicU64| {
            Some(value.load(Ordering::Relaxed)).filter(|value| *value != u64::MAX)
        };
        ServerLimit::ALL
            .iter()
            .zip(&self.entries)
            .map(|(limit, entry)| LimitFigure {
                limit: *limit,
                used: said(&entry.used),
                max: said(&entry.max),
                refused: entry.refused.load(Ordering::Relaxed),
            })
            .collect()
    }
}

#[cfg(test)]
mod tests {
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
    fn no_more_is_taken_than_there_is_and_what_is_given_back_is_there_again() {
        let limits = ServerLimits::default();
        limits.set_max(ServerLimit::Calls, 2);
        limits.set_used(ServerLimit::Calls, 0);
        assert_eq!(
            [(); 3].map(|()| limits.take(ServerLimit::Calls, 1)),
            [true, true, false]
        );
        limits.give_back(ServerLimit::Calls, 1);
        assert!(limits.take(ServerLimit::Calls, 1));
        assert!(!limits.take(ServerLimit::Calls, 1));
    }

    #[test]
    fn a_limit_counts_what_it_refuses() {
        let limits = ServerLimits::default();
        limits.set_max(ServerLimit::Leases, 7);
        for before in 0..3 {
            assert_eq!(limits.refuse(ServerLimit::Leases, Duration::ZERO), before);
        }
        let figures = limits.figures();
        let of_leases = figures
            .iter()
            .find(|it| it.limit == ServerLimit::Leases)
            .unwrap();
        let expected = LimitFigure {
            limit: ServerLimit::Leases,
            used: None,
            max: Some(7),
            refused: 3,
        };
        assert_eq!(*of_leases, expected);
    }
}
