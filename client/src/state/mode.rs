//! What a client falls back to when its lease has ended unrenewed, or before the first one.
//!
//! A safe capacity [wears out](crate::capacity::ToldSafeCapacity).

/// What a client uses when its lease has ended unrenewed, or before the first one. While a lease is
/// valid, every mode obeys it; but in safe mode a lease of 0 of a server in learning mode is none.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Mode {
    /// Nothing. For what must never be overrun.
    Pessimistic,
    /// What it wants. For what is better overrun than not used.
    Optimistic,
    /// What it wants, up to the safe capacity it was last told; nothing if it was never told one. A
    /// lease length after its lease ended, half of the safe capacity, then a quarter, and so on.
    #[default]
    Safe,
}
