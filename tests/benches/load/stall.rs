//! Events that may make clients wait: actions of operators, scrapes, and accidents.

/// An event that may make clients wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Stall {
    /// Templates are read again, with many other globs before the one that matches.
    Reload,
    /// All resources change from `FAIR_SHARE` to `PROPORTIONAL_SHARE`, or back.
    ChangedKind,
    /// All resources change from `FAIR_SHARE` to `PRIORITY_BANDS`, or back, which moves all claims.
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
    /// Clients release all leases.
    Released,
    /// All leases expire, in the order of their grants.
    Expiry,
    /// All leases expire at once, after the server was stopped for a while.
    ExpiryAtOnce,
    /// The server loses its mastership, and all leases with it; then it becomes the master again.
    Mastership,
}

impl Stall {
    /// All events.
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

    /// Returns the name of its row.
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

    /// Returns whether it needs a full server that is filled once for many events.
    pub(crate) fn is_of_full_server(self) -> bool {
        !matches!(self, Self::Expiry | Self::ExpiryAtOnce | Self::Mastership)
    }
}
