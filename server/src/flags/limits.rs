//! The flags that bound how much a server takes on.

use std::num::NonZeroUsize;

use clap::Args;

use crate::rpc::overload::CALLS_MAX;

/// How much a server takes on at most.
#[derive(Clone, Copy, Debug, Args)]
pub struct LimitFlags {
    /// How many resources may have leases out; requests for more are refused.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_RESOURCES_MAX",
        hide_env_values = true,
        default_value_t = 100_000
    )]
    pub resources_max: usize,

    /// How many holders one resource may have; requests of more are refused.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_LEASES_PER_RESOURCE_MAX",
        hide_env_values = true,
        default_value_t = 2_000_000
    )]
    pub leases_per_resource_max: usize,

    /// How many GetCapacity calls may be in progress at once. Further ones are refused, and told when
    /// to come back: after one to five seconds, not all at the same time.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CALLS_MAX",
        hide_env_values = true,
        default_value_t = CALLS_MAX
    )]
    pub calls_max: NonZeroUsize,
}
