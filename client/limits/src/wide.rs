//! Products, quotients and comparisons of numbers whose product needs more than 128 bits.

use std::cmp::Ordering;

/// Returns `a`·`b`/`c`, rounded up; the largest number if it does not fit. `c` is not 0.
pub(crate) fn scaled_up(a: u128, b: u128, c: u128) -> u128 {
    let (whole, left) = times_over(a, b, c);
    whole.saturating_add(u128::from(left > 0))
}

/// Returns an available amount under another limit, which keeps the ratio, rounded down. After a limit of 0 it is 0.
pub(crate) fn scaled(there: u128, to: u128, limit: u128) -> u128 {
    match limit {
        0 => 0,
        limit => times_over(there, to, limit).0.min(to),
    }
}

/// Compares `a`·`b` with `c`·`d`.
pub(crate) fn compare_products(a: u128, b: u128, c: u128, d: u128) -> Ordering {
    if b == d && b > 0 {
        return a.cmp(&c);
    }
    wide_product(a, b).cmp(&wide_product(c, d))
}

/// Returns `a`·`b`/`c` and the rest of the division; the largest number if it does not fit. `c` is
/// not 0.
pub(crate) fn times_over(a: u128, b: u128, c: u128) -> (u128, u128) {
    if let Some(product) = a.checked_mul(b) {
        return (product / c, product % c);
    }
    // The product in 256 bits, then a division bit by bit: changes of limit are rare.
    let (high, low) = wide_product(a, b);
    if high >= c {
        return (u128::MAX, 0);
    }
    let (mut left, mut quotient) = (high, 0_u128);
    for bit in (0..128).rev() {
        let carry = left >> 127 == 1;
        left = (left << 1) | ((low >> bit) & 1);
        quotient <<= 1;
        if carry || left >= c {
            left = left.wrapping_sub(c);
            quotient |= 1;
        }
    }
    (quotient, left)
}

/// Returns the upper and the lower half of a product.
fn wide_product(a: u128, b: u128) -> (u128, u128) {
    let (low, high) = a.carrying_mul(b, 0);
    (high, low)
}

/// Returns the greatest common divisor; the other number if one is 0.
pub(crate) fn gcd(mut a: u128, mut b: u128) -> u128 {
    while b > 0 {
        (a, b) = (b, a % b);
    }
    a
}

#[cfg(test)]
mod tests {
    use num_bigint::BigUint;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_product_of_any_size_is_divided_exactly(
            a in any::<u128>(), b in any::<u128>(), c in 1..u128::MAX, small in 0..100_u32,
        ) {
            let a = a >> small;
            let product = BigUint::from(a) * b;
            let (quotient, left) = times_over(a, b, c);
            if &product / c > BigUint::from(u128::MAX) {
                prop_assert_eq!(quotient, u128::MAX);
            } else {
                prop_assert_eq!(BigUint::from(quotient) * c + left, product);
                prop_assert!(left < c);
            }
        }
    }
}
