//! How much of a difference is nothing but rounding: every tolerance of numbers, with its reason.
//!
//! Numbers are floating point with 53 bits. One operation is off by at most ε/2 = 1.1·10⁻¹⁶ of its result,
//! and a chain of n operations on numbers that are not negative by at most n times that: nothing here
//! subtracts what is nearly equal and goes on with what is left. So a tolerance is a count of operations:
//! 10⁻¹⁴ is 90 of them, 10⁻¹² is 9,000. What must hold to the last bit, that no more is out than there is, has no
//! tolerance at all ([`crate::exact_sum`]): these decide only what is worth a word, a level or a request.
//!
//! They are of several sizes because one makes up for the other. What is granted a little less, by [KEPT] or
//! since [`ENOUGH`] counted as all, must not be taken for a shortage by [`SHORTFALL`] afterwards. What stands
//! below the names holds that order.

/// How far below Σ wants a capacity may be and still count as enough for all, relative to it: 64 ε, 128
/// operations.
///
/// A capacity that travels through a tree arrives a rounding or two a level below the sum that was asked for; and a
/// sum is made along the path of a search tree, of a few nodes of at most 32 entries. A level search that took this for a
/// shortage would cut everybody, or leave one holder short by an ulp for ever. What is granted is bounded exactly
/// elsewhere, so nothing overshoots.
const ENOUGH: f64 = 1.0 - 64.0 * f64::EPSILON;

/// Whether a capacity is enough for all that is wanted.
pub(crate) fn is_enough(capacity: f64, wants: f64) -> bool {
    capacity >= wants * ENOUGH
}

/// A shortfall below this part of the share, or of the capacity, is rounding, not waiting for others.
///
/// A share is what is left of sums of a whole tree, of level searches in up to four levels of servers: some
/// hundred operations, 10⁻¹⁴ each level. A hundred times that; nobody notices 10⁻¹² of a capacity.
pub(crate) const SHORTFALL: f64 = 1e-12;

/// What a holder keeps of its share when the capacity is lowered: rounded down by more than all roundings that
/// follow, so that what all keep together fits.
///
/// A share is a level, found with an error of some 10⁻¹⁴, times a count. The errors of all holders go the same way,
/// so their sum has the error of the level, and not more of it the more there are.
pub(crate) const KEPT: f64 = 1.0 - 1e-13;

/// By what two amounts that are added are made larger, so that the sum covers both: one addition, and one rounding
/// to what an amount can hold. Each further one that is added makes it as much larger again: on the safe side.
pub(crate) const COVERS_BOTH: f64 = 1.0 + 1e-14;

/// How far above 1 the shares may add up to that a template guarantees: 0.1 is no binary number, and ten of them
/// are not 1. The parts of a template that are within bounds are far fewer than 9,000.
pub(crate) const WHOLE: f64 = 1.0 + 1e-12;

/// Chords closer than this to a demand curve, relative to it, are the curve: the sums at a corner are known no
/// better than some 10⁻¹⁴. What follows from one is nearly exact, and costs a parent nothing.
pub(crate) const ON_THE_CURVE: f64 = 1e-13;

/// The slope of a demand curve bends where it falls by more than this part of itself. It is the difference of two
/// quotients, and what is less than the least part of a client is no claim
/// ([`crate::claim::Subclients::MIN`]).
pub(crate) const BEND: f64 = 1e-12;

/// Clients of a demand curve that want nothing are counted if they are more than this part of all. Their number
/// is a difference: all clients, less the first slope. That one is a quotient of numbers from outside, so as
/// uncertain as [`FROM_OUTSIDE`].
pub(crate) const IDLE: f64 = 1e-9;

/// How far, relatively, numbers from outside may be off what they must be: room for the roundings of whoever
/// computed them. Of other programs, with sums in any order over a million claims: 10⁶ operations are 10⁻¹⁰.
pub(crate) const FROM_OUTSIDE: f64 = 1e-9;

/// What of a total the rounding of amounts may take away: a multiple of 2⁻¹²⁸ for each claim that it is made
/// of. It is far below what anybody can use; not relative, since a total may be as small.
pub(crate) const ROUNDED_AWAY: f64 = 1e-30;

/// What people are shown as a difference: a page that warns of a sum that is 10⁻¹⁰ too large is of no use. Larger
/// than what the engine itself calls a shortfall, since what is shown has gone through one more sum, and over the wire.
pub const SHOWN: f64 = 1e-9;

// What is kept of a capacity that counted as enough is no shortage, and fits where a rounding is missing.
const _: () = assert!(2.0 * (1.0 - ENOUGH) + 2.0 * (1.0 - KEPT) < SHORTFALL);
const _: () = assert!(2.0 * (1.0 - ENOUGH) < 1.0 - KEPT);
// What a curve leaves out does not look bent, and what looks bent is no nonsense.
const _: () = assert!(ON_THE_CURVE < BEND && BEND < FROM_OUTSIDE);
// Nobody is shown a shortage where there is none.
const _: () = assert!(SHORTFALL < SHOWN);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sum_of_two_is_covered() {
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
