//! Settings of a client's state: gaps between requests, timeouts and waits.

use std::time::Duration;

use doorward_session::backoff::BackoffConfig;

use crate::state::retry::REFRESH_MAX;
use crate::time::Tolerance;

/// Lower bound of a client's own floor.
const REFRESH_MIN: Duration = Duration::from_millis(10);

/// When a client asks on streams, where the server has them. Otherwise it asks by calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Streams {
    /// From the first request on.
    Always,
    /// While it has a lease. So the first request, by a call, has a trace.
    OnceLeased,
    /// At no time.
    Never,
}

/// Settings of a client's behaviour towards servers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ClientConfig {
    /// Shortest time between a request and an early one for changed wants, towards a server that does not send
    /// `decided`. It is a little above the server's refresh floor, below which the server answers without a decision.
    pub early_gap: Duration,
    /// The same, towards a server that sends `decided`, and the time of its next decision. The default is a tenth of a
    /// second: a client whose wants change all the time makes at most ten requests a second, and a change waits for no
    /// longer than two rounds of the tree (of 50 ms), in which servers gather changes anyway.
    pub news_gap: Duration,
    /// Shortest time between two refreshes, whatever a server asks for: a server may grant leases of a millisecond. The
    /// default is a tenth of a second, as for changed wants. Leases that are not much longer end before their refresh.
    pub refresh_floor: Duration,
    /// Time after which a call fails.
    pub timeout: Duration,
    /// Waits after failures.
    pub backoff: BackoffConfig,
    /// Whether requests go on streams, on which the server pushes changes.
    pub streams: Streams,
    /// Largest error of this machine's clock. None: a thousandth, or a tenth where the platform has no clock of
    /// constant speed.
    pub clock_tolerance: Option<Tolerance>,
}

impl Default for ClientConfig {
    fn default() -> Self {
        Self {
            early_gap: Duration::from_millis(1_100),
            news_gap: Duration::from_millis(100),
            refresh_floor: Duration::from_millis(100),
            timeout: Duration::from_secs(5),
            backoff: BackoffConfig::default(),
            streams: Streams::Always,
            clock_tolerance: None,
        }
    }
}

impl ClientConfig {
    pub(super) fn refresh_floor(&self) -> Duration {
        self.refresh_floor.clamp(REFRESH_MIN, REFRESH_MAX)
    }
}
