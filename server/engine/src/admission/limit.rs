//! What is limited, by name, and what is said to who comes beyond a limit.

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

/// Something is full: nobody who has something loses it, and who comes newly is to come back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Full {
    /// What.
    pub limit: Limit,
    /// How much of it there may be.
    pub max: u64,
    /// When to come back, from now.
    pub retry_in: Duration,
}

impl fmt::Display for Full {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let max = self.max;
        match self.limit {
            Limit::Resources => write!(f, "this server serves {max} resources, as many as it may"),
            Limit::ResourcesPerCaller => {
                write!(f, "{max} resources came from this address, as many as may")
            }
            Limit::ResourcesPerTemplate => {
                write!(f, "its template has {max} resources, as many as it may")
            }
            Limit::NewResourcesPerCaller => write!(
                f,
                "new resources come from this address faster than {max} a second"
            ),
            Limit::NewResourcesPerTemplate => write!(
                f,
                "new resources of its template come faster than {max} a second"
            ),
            Limit::Leases => write!(f, "this server has {max} leases out, as many as it may"),
            Limit::LeasesPerResource => {
                write!(f, "{max} holders have leases on it, as many as may")
            }
            Limit::LeasesPerCaller => {
                write!(f, "{max} leases came from this address, as many as may")
            }
            Limit::LeasesPerTemplate => {
                write!(f, "its template has {max} leases out, as many as it may")
            }
            Limit::NewLeasesPerCaller => write!(
                f,
                "new holders come from this address faster than {max} a second"
            ),
            Limit::NewLeasesPerTemplate => write!(
                f,
                "new holders of its template come faster than {max} a second"
            ),
            Limit::RequestsPerTemplate => write!(
                f,
                "requests for resources of its template come faster than {max} a second"
            ),
            Limit::Memory => write!(
                f,
                "this server uses {max} bytes for what is out, as many as it may"
            ),
            Limit::Priorities => write!(
                f,
                "{max} different priorities are in use, as many as may; use fewer priorities"
            ),
            Limit::PrioritiesPerCaller => write!(
                f,
                "this address brought {max} different priorities, as many as may; use fewer priorities, or name \
                 them in the template"
            ),
            Limit::ChildServers => {
                write!(f, "this server has {max} child servers, as many as it may")
            }
            Limit::ChildServersPerCaller => {
                write!(
                    f,
                    "{max} child servers came from this address, as many as may"
                )
            }
            Limit::Curves => write!(
                f,
                "child servers have {max} leases here, as many as they may"
            ),
            Limit::CurvesPerCaller => write!(
                f,
                "child servers of this address have {max} leases, as many as they may"
            ),
            Limit::CurvePoints => write!(
                f,
                "the demand curves of child servers have {max} points, as many as they may"
            ),
            Limit::CurvePointsPerCaller => write!(
                f,
                "the demand curves from this address have {max} points, as many as they may"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_its_place() {
        for (position, limit) in Limit::ALL.iter().enumerate() {
            assert_eq!(*limit as usize, position);
        }
    }
}
