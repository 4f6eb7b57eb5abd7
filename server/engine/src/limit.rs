//! The limits of a node by name, and the message of each when it is reached.

use std::fmt;
use std::time::Duration;

/// A limit of a node.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Limit {
    /// Resources in all.
    Resources,
    /// Resources that one caller brought.
    ResourcesPerCaller,
    /// Resources of one template.
    ResourcesPerTemplate,
    /// New resources each second from one caller.
    NewResourcesPerCaller,
    /// New resources each second of one template.
    NewResourcesPerTemplate,
    /// Leases in all.
    Leases,
    /// Holders of one resource.
    LeasesPerResource,
    /// Leases that one caller brought.
    LeasesPerCaller,
    /// Leases of all resources of one template.
    LeasesPerTemplate,
    /// New leases each second from one caller.
    NewLeasesPerCaller,
    /// New leases each second of one template.
    NewLeasesPerTemplate,
    /// Requests each second for resources of one template.
    RequestsPerTemplate,
    /// Memory behind resources, leases and curves.
    Memory,
    /// Priorities of one resource that its template does not name.
    Priorities,
    /// Those that one caller brought.
    PrioritiesPerCaller,
    /// Child servers.
    ChildServers,
    /// Child servers of one caller.
    ChildServersPerCaller,
    /// Leases of child servers.
    Curves,
    /// Leases of the child servers of one caller.
    CurvesPerCaller,
    /// Points of all demand curves.
    CurvePoints,
    /// Points of the demand curves of one caller.
    CurvePointsPerCaller,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 21] = [
        Self::Resources,
        Self::ResourcesPerCaller,
        Self::ResourcesPerTemplate,
        Self::NewResourcesPerCaller,
        Self::NewResourcesPerTemplate,
        Self::Leases,
        Self::LeasesPerResource,
        Self::LeasesPerCaller,
        Self::LeasesPerTemplate,
        Self::NewLeasesPerCaller,
        Self::NewLeasesPerTemplate,
        Self::RequestsPerTemplate,
        Self::Memory,
        Self::Priorities,
        Self::PrioritiesPerCaller,
        Self::ChildServers,
        Self::ChildServersPerCaller,
        Self::Curves,
        Self::CurvesPerCaller,
        Self::CurvePoints,
        Self::CurvePointsPerCaller,
    ];
}

/// A limit is reached: no holder loses anything, and newcomers come back later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What.
    pub limit: Limit,
    /// How much of it there may be.
    pub max: u64,
    /// When to come back, from now.
    pub retry_in: Duration,
}

impl Limit {
    /// The message when it is reached; `{max}` stands for the limit.
    const fn message(self) -> &'static str {
        match self {
            Self::Resources => "this server serves {max} resources, as many as it may",
            Self::ResourcesPerCaller => "{max} resources came from this address, as many as may",
            Self::ResourcesPerTemplate => "its template has {max} resources, as many as it may",
            Self::NewResourcesPerCaller => {
                "new resources come from this address faster than {max} a second"
            }
            Self::NewResourcesPerTemplate => {
                "new resources of its template come faster than {max} a second"
            }
            Self::Leases => "this server has {max} leases out, as many as it may",
            Self::LeasesPerResource => "{max} holders have leases on it, as many as may",
            Self::LeasesPerCaller => "{max} leases came from this address, as many as may",
            Self::LeasesPerTemplate => "its template has {max} leases out, as many as it may",
            Self::NewLeasesPerCaller => {
                "new holders come from this address faster than {max} a second"
            }
            Self::NewLeasesPerTemplate => {
                "new holders of its template come faster than {max} a second"
            }
            Self::RequestsPerTemplate => {
                "requests for resources of its template come faster than {max} a second"
            }
            Self::Memory => "this server uses {max} bytes for what is out, as many as it may",
            Self::Priorities => {
                "{max} different priorities are in use, as many as may; use fewer priorities"
            }
            Self::PrioritiesPerCaller => {
                "this address brought {max} different priorities, as many as may; use fewer priorities, or name \
                 them in the template"
            }
            Self::ChildServers => "this server has {max} child servers, as many as it may",
            Self::ChildServersPerCaller => {
                "{max} child servers came from this address, as many as may"
            }
            Self::Curves => "child servers have {max} leases here, as many as they may",
            Self::CurvesPerCaller => {
                "child servers of this address have {max} leases, as many as they may"
            }
            Self::CurvePoints => {
                "the demand curves of child servers have {max} points, as many as they may"
            }
            Self::CurvePointsPerCaller => {
                "the demand curves from this address have {max} points, as many as they may"
            }
        }
    }
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = self.limit.message();
        let (before, after) = message.split_once("{max}").unwrap_or((message, ""));
        write!(f, "{before}{}{after}", self.max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_place() {
        for (position, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, position);
            assert_eq!(limit.message().matches("{max}").count(), 1, "{limit:?}");
        }
    }
}
