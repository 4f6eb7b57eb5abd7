//! The flag for the accuracy of the machine's clock.

use clap::Args;
use doorward_session::time::tolerance::Tolerance;

use crate::clock;

/// Flags for the accuracy of the machine's clock.
#[derive(Clone, Copy, Debug, Args)]
pub struct ClockFlags {
    /// By how much the speed of this machine's clock may differ from that of others, as a part from
    /// 0.001 to 0.25. Leases count on a clock whose speed nobody changes, if the platform has one:
    /// then a thousandth is enough. If not, a tenth covers what chrony does while it corrects the
    /// time.
    #[arg(
        long = "clock-tolerance",
        help_heading = "Limits",
        value_name = "PART",
        env = "DOORWARD_CLOCK_TOLERANCE", hide_env_values = true,
        default_value_t = clock::tolerance(),
    )]
    pub tolerance: Tolerance,
}
