//! The flags that bound how much a server takes on. What each of them bounds, [`crate::limits`] says, and how,
//! [`doorward_engine::admission`].
//!
//! None of them may be 0: a server that takes on nothing is not meant.

use std::num::{NonZeroU32, NonZeroUsize};

use clap::Args;
use doorward_engine::admission::Rate;
use doorward_engine::admission::limits::Limits as NodeLimits;

use crate::flags::bytes::Bytes;
use crate::memory;
use crate::rpc::overload::CALLS_MAX;

/// A default that is not 0; 0 would read as 1.
const fn count(count: usize) -> NonZeroUsize {
    match NonZeroUsize::new(count) {
        Some(count) => count,
        None => NonZeroUsize::MIN,
    }
}

/// The same, of things each second.
const fn each_second(count: u32) -> NonZeroU32 {
    match NonZeroU32::new(count) {
        Some(count) => count,
        None => NonZeroU32::MIN,
    }
}

/// How much a server takes on at most.
#[derive(Clone, Copy, Debug, Args)]
pub struct LimitFlags {
    /// How many resources may have leases out. At this limit, as at all below, newcomers are refused and
    /// asked to come back later; nobody who has something loses it.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_RESOURCES_MAX",
        hide_env_values = true,
        default_value_t = count(100_000)
    )]
    pub resources_max: NonZeroUsize,

    /// How many resources may be there that clients of one address brought. IPv6 addresses count by their
    /// first 64 bits.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_RESOURCES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(25_000)
    )]
    pub resources_per_address_max: NonZeroUsize,

    /// How many resources of one template may have leases out.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_RESOURCES_PER_TEMPLATE_MAX",
        hide_env_values = true,
        default_value_t = count(100_000)
    )]
    pub resources_per_template_max: NonZeroUsize,

    /// How many new resources clients of one address may bring each second; after a rest, 25 times as many
    /// at once.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_NEW_RESOURCES_PER_SECOND_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = each_second(1_000)
    )]
    pub new_resources_per_second_per_address_max: NonZeroU32,

    /// How many new resources of one template there may be each second; after a rest, 10 times as many at
    /// once.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_NEW_RESOURCES_PER_SECOND_PER_TEMPLATE_MAX",
        hide_env_values = true,
        default_value_t = each_second(5_000)
    )]
    pub new_resources_per_second_per_template_max: NonZeroU32,

    /// How many leases may be out in all.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_LEASES_MAX",
        hide_env_values = true,
        default_value_t = count(4_000_000)
    )]
    pub leases_max: NonZeroUsize,

    /// How many holders one resource may have; a child server is one.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_LEASES_PER_RESOURCE_MAX",
        hide_env_values = true,
        default_value_t = count(2_000_000)
    )]
    pub leases_per_resource_max: NonZeroUsize,

    /// How many leases clients of one address may have.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_LEASES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(1_000_000)
    )]
    pub leases_per_address_max: NonZeroUsize,

    /// How many leases of all resources of one template may be out.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_LEASES_PER_TEMPLATE_MAX",
        hide_env_values = true,
        default_value_t = count(4_000_000)
    )]
    pub leases_per_template_max: NonZeroUsize,

    /// How many new leases clients of one address may get each second; after a rest, 5 times as many at
    /// once.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_NEW_LEASES_PER_SECOND_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = each_second(20_000)
    )]
    pub new_leases_per_second_per_address_max: NonZeroU32,

    /// How many new leases of one template there may be each second; after a rest, 10 times as many at
    /// once.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_NEW_LEASES_PER_SECOND_PER_TEMPLATE_MAX",
        hide_env_values = true,
        default_value_t = each_second(100_000)
    )]
    pub new_leases_per_second_per_template_max: NonZeroU32,

    /// How many requests for resources of one template there may be each second; after a rest, twice as
    /// many at once. Beyond it, refreshes are put off as long as their leases last.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_REQUESTS_PER_SECOND_PER_TEMPLATE_MAX",
        hide_env_values = true,
        default_value_t = each_second(200_000)
    )]
    pub requests_per_second_per_template_max: NonZeroU32,

    /// How much memory resources, leases and demand curves may take, roughly, as in 512MiB or 2GiB
    /// [default: half of what the machine has, or of what the control group may use].
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "BYTES",
        env = "DOORWARD_MEMORY_MAX",
        hide_env_values = true
    )]
    pub memory_max: Option<Bytes>,

    /// Number of different priorities of one resource that clients may use and its template does not name (min_share).
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_PRIORITIES_MAX",
        hide_env_values = true,
        default_value_t = count(64)
    )]
    pub priorities_max: NonZeroUsize,

    /// How many of those one address may bring.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_PRIORITIES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(16)
    )]
    pub priorities_per_address_max: NonZeroUsize,

    /// How many child servers may have leases.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CHILD_SERVERS_MAX",
        hide_env_values = true,
        default_value_t = count(1_000)
    )]
    pub child_servers_max: NonZeroUsize,

    /// How many of those may come from one address.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CHILD_SERVERS_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(64)
    )]
    pub child_servers_per_address_max: NonZeroUsize,

    /// How many leases child servers may have in all, each with its demand curve.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CURVES_MAX",
        hide_env_values = true,
        default_value_t = count(1_000_000)
    )]
    pub curves_max: NonZeroUsize,

    /// How many leases the child servers of one address may have.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CURVES_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(500_000)
    )]
    pub curves_per_address_max: NonZeroUsize,

    /// How many points the demand curves of all child servers may have together.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CURVE_POINTS_MAX",
        hide_env_values = true,
        default_value_t = count(8_000_000)
    )]
    pub curve_points_max: NonZeroUsize,

    /// How many points the demand curves of the child servers of one address may have.
    #[arg(
        long,
        help_heading = "Limits",
        value_name = "COUNT",
        env = "DOORWARD_CURVE_POINTS_PER_ADDRESS_MAX",
        hide_env_values = true,
        default_value_t = count(4_000_000)
    )]
    pub curve_points_per_address_max: NonZeroUsize,

    /// How many GetCapacity calls may be in progress at once. Further ones are refused, with a
    /// time to come back: one to five seconds, not the same for all.
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

impl LimitFlags {
    /// The bounds of the node. How many come at once after a rest is always so many seconds' worth.
    pub fn of_node(&self) -> NodeLimits {
        let default = NodeLimits::default();
        let rate = |per_second, like: Rate| Rate { per_second, ..like };
        NodeLimits {
            resources_max: self.resources_max.get(),
            resources_per_caller_max: self.resources_per_address_max.get(),
            resources_per_template_max: self.resources_per_template_max.get(),
            new_resources_per_caller: rate(
                self.new_resources_per_second_per_address_max,
                default.new_resources_per_caller,
            ),
            new_resources_per_template: rate(
                self.new_resources_per_second_per_template_max,
                default.new_resources_per_template,
            ),
            leases_max: self.leases_max.get(),
            leases_per_resource_max: self.leases_per_resource_max.get(),
            leases_per_caller_max: self.leases_per_address_max.get(),
            leases_per_template_max: self.leases_per_template_max.get(),
            new_leases_per_caller: rate(
                self.new_leases_per_second_per_address_max,
                default.new_leases_per_caller,
            ),
            new_leases_per_template: rate(
                self.new_leases_per_second_per_template_max,
                default.new_leases_per_template,
            ),
            requests_per_template: rate(
                self.requests_per_second_per_template_max,
                default.requests_per_template,
            ),
            memory_max: self.memory_max(),
            priorities_max: self.priorities_max.get(),
            priorities_per_caller_max: self.priorities_per_address_max.get(),
            child_servers_max: self.child_servers_max.get(),
            child_servers_per_caller_max: self.child_servers_per_address_max.get(),
            curves_max: self.curves_max.get(),
            curves_per_caller_max: self.curves_per_address_max.get(),
            curve_points_max: self.curve_points_max.get(),
            curve_points_per_caller_max: self.curve_points_per_address_max.get(),
        }
    }

    fn memory_max(&self) -> Option<usize> {
        let given = self.memory_max.map(|Bytes(bytes)| bytes.get());
        let bytes = given.or_else(|| memory::available().map(|bytes| bytes / 2));
        // More than this machine can address is no bound.
        bytes.and_then(|bytes| usize::try_from(bytes).ok())
    }
}

#[cfg(test)]
mod tests;
