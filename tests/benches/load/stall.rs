//! What may make clients wait: what operators and scrapes do, and accidents.

/// What may make clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stall {
    /// Templates are read again: many globs before the one that matches, all of them others than before.
    Reload,
    /// All resources are divided by `PROPORTIONAL_SHARE` instead of `FAIR_SHARE`, or the other way round.
    ChangedKind,
    /// The same with `PRIORITY_BANDS` and `FAIR_SHARE`: all claims are put elsewhere.
    ChangedBands,
    /// GET /metrics.
    Metrics,
    /// GET /status.
    Status,
    /// GET /.
    Page,
    /// GET /resource, of one of them.
    ResourcePage,
    /// GET /limits.
    LimitsPage,
    /// `GetStatus`.
    GetStatus,
    /// All leases are given back by those who have them.
    Released,
    /// All leases end, as soon one after the other as they were granted.
    Expiry,
    /// All leases end at once: the server did nothing for a while.
    ExpiryAtOnce,
    /// The server loses its mastership, and all leases with it; then it is the master again.
    Mastership,
}

impl Stall {
    /// All of them.
    pub(crate) const ALL: [Self; 13] = [
        Self::Reload,
        Self::ChangedKind,
        Self::ChangedBands,
        Self::Metrics,
        Self::Status,
        Self::Page,
        Self::ResourcePage,
        Self::LimitsPage,
        Self::GetStatus,
        Self::Released,
        Self::Expiry,
        Self::ExpiryAtOnce,
        Self::Mastership,
    ];

    /// What its row is called.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Reload => "reload",
            Self::ChangedKind => "changed kind",
            Self::ChangedBands => "changed kind, bands",
            Self::Metrics => "GET /metrics",
            Self::Status => "GET /status",
            Self::Page => "GET /",
            Self::ResourcePage => "GET /resource",
            Self::LimitsPage => "GET /limits",
            Self::GetStatus => "GetStatus",
            Self::Released => "all released",
            Self::Expiry => "all expire",
            Self::ExpiryAtOnce => "all expire at once",
            Self::Mastership => "mastership lost",
        }
    }

    /// Whether it happens to a server that was filled once for many of them.
    pub(crate) fn is_of_full_server(self) -> bool {
        !matches!(self, Self::Expiry | Self::ExpiryAtOnce | Self::Mastership)
    }
}
