//! Mode of a client: its fallback before the first lease, and after a lease has ended without a
//! refresh.
//!
//! A safe capacity [decays](crate::capacity::GrantedSafeCapacity).

/// Fallback of a client before the first lease, and after a lease has ended without a refresh.
/// While a lease is valid, every mode obeys it, with one exception: in safe mode, a lease of 0 from
/// a server in learning mode does not count.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Uses nothing. For resources that must never be overrun.
    Pessimistic,
    /// Uses all that it wants. For resources where an overrun is better than no use.
    Optimistic,
    /// Uses what it wants, up to the last safe capacity it was granted; nothing if there was none.
    /// One lease length after the lease ended, half of the safe capacity counts, then a quarter,
    /// and so on.
    #[default]
    Safe,
}
