//! Tolerances of floating point numbers, each with its reason.
//!
//! Numbers are floating point with 53 bits. One operation is off by at most ε/2 = 1.1·10⁻¹⁶ of its result. A chain of n
//! operations on numbers that are not negative is off by at most n times that, since no code here subtracts nearly
//! equal numbers and computes on with the rest. So a tolerance is a count of operations: 10⁻¹⁴ is 90 of them, 10⁻¹² is
//! 9,000. The promise that grants never exceed the capacity has no tolerance at all ([`crate::exact_sum`]). Tolerances
//! only decide about messages, levels and requests.
//!
//! The sizes depend on each other. [`ENOUGH`] and [KEPT] make some grants a little smaller, and [`SHORTFALL`] must not
//! take that for a shortage. The assertions below the constants check this order.

/// Factor of Σ wants from which a capacity counts as enough for all: 64 ε, which is 128 operations.
///
/// A capacity that travels through a tree arrives one or two roundings a level below the sum that was asked for. A sum
/// is computed along a path of a search tree, from a few nodes of at most 32 entries. If a level search took such a
/// difference for a shortage, it would cut all holders, or leave one holder short by an ulp forever. Other code bounds
/// grants exactly, so no grant overshoots.
const ENOUGH: f64 = 1.0 - 64.0 * f64::EPSILON;

/// Whether a capacity is enough for all wants.
pub(crate) fn is_enough(capacity: f64, wants: f64) -> bool {
    capacity >= wants * ENOUGH
}

/// Smallest part of the share, or of the capacity, that counts as a shortfall. A smaller one is rounding.
///
/// A share results from sums over a whole tree and level searches in up to four levels of servers: some hundred
/// operations, 10⁻¹⁴ each level. The constant is a hundred times that. A difference of 10⁻¹² has no effect on any
/// client.
pub(crate) const SHORTFALL: f64 = 1e-12;

/// Factor for the share that a holder keeps when the capacity is lowered. It rounds down by more than all later
/// roundings, so that the kept shares together fit.
///
/// A share is a level, with an error of some 10⁻¹⁴, times a count. The errors of all holders have the same sign, so
/// their sum has the relative error of the level, however many holders there are.
pub(crate) const KEPT: f64 = 1.0 - 1e-13;

/// Factor that makes the sum of two amounts large enough to cover both: one addition, and one rounding to an amount.
/// Each further addition multiplies again, which is on the safe side.
pub(crate) const COVERS_BOTH: f64 = 1.0 + 1e-14;

/// Largest sum of the shares that a template guarantees. It is above 1, because 0.1 is no binary number and ten of them
/// are not 1. A template has far fewer parts than 9,000.
pub(crate) const WHOLE: f64 = 1.0 + 1e-12;

/// Chords closer than this to a demand curve, relative to it, count as the curve, because the sums at a corner have an
/// error of some 10⁻¹⁴. The result is nearly exact, and sends fewer points to the parent.
pub(crate) const ON_THE_CURVE: f64 = 1e-13;

/// The slope of a demand curve bends where it falls by more than this part of itself. The fall is a difference of two
/// quotients. A fall below the smallest part of a client is no claim ([`crate::claims::Subclients::MIN`]).
pub(crate) const BEND: f64 = 1e-12;

/// Clients of a demand curve without wants count if they are more than this part of all. Their number is a difference:
/// all clients, less the first slope. That slope is a quotient of numbers from outside, so it has the error of
/// [`FROM_OUTSIDE`].
pub(crate) const IDLE: f64 = 1e-9;

/// Largest relative error of numbers from outside, for the roundings of the sender. Other programs add up a million
/// claims in any order: 10⁶ operations are 10⁻¹⁰.
pub(crate) const FROM_OUTSIDE: f64 = 1e-9;

/// Part of a total that the rounding of amounts may take away: a multiple of 2⁻¹²⁸ for each of its claims. It is far
/// below any useful amount, and not relative, since a total may be as small.
pub(crate) const ROUNDED_AWAY: f64 = 1e-30;

/// Smallest relative difference that pages show. A page that warns of a sum that is 10⁻¹⁰ too large is useless. It is
/// larger than [`SHORTFALL`], since a shown number went through one more sum and over the wire.
pub const SHOWN: f64 = 1e-9;

// A kept part of a capacity that counted as enough is no shortage, and fits if a rounding is missing.
const _: () = assert!(2.0 * (1.0 - ENOUGH) + 2.0 * (1.0 - KEPT) < SHORTFALL);
const _: () = assert!(2.0 * (1.0 - ENOUGH) < 1.0 - KEPT);
// A point that a curve leaves out is no bend, and a bend is no invalid curve.
const _: () = assert!(ON_THE_CURVE < BEND && BEND < FROM_OUTSIDE);
// Pages show no shortage where there is none.
const _: () = assert!(SHORTFALL < SHOWN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_factor_covers_a_sum_of_two() {
        for (a, b) in [(1.0, f64::EPSILON / 2.0), (1.0, 1.0 / 3.0), (1e15, 0.1)] {
            assert!((a + b) * COVERS_BOTH > a + b);
        }
    }

    #[test]
    fn shares_that_add_up_to_one_on_paper_do_so_here() {
        let sum: f64 = [0.55, 0.1, 0.05, 0.17, 0.04, 0.09].iter().sum();
        assert!(sum > 1.0 && sum <= WHOLE, "{sum}");
    }
}
