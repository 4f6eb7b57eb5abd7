//! A rate: a token bucket that holds what some seconds bring.

use std::time::Duration;

use doorward_limits::{Moment, Rate, TokenBucket, Units};

/// Returns a bucket of `per_second` units that holds the units of `secs` seconds.
pub(crate) fn bucket(per_second: Units, secs: u32) -> TokenBucket {
    let burst = Units::from_parts(per_second.parts() * u128::from(secs));
    match TokenBucket::new(burst, Rate::per_second(per_second)) {
        Ok(bucket) => bucket,
        Err(error) => unreachable!("numbers of 32 bits are fine enough: {error}"),
    }
}

/// Returns a number of units a second. A larger one than 32 bits hold is practically no limit.
pub(crate) fn units(per_second: u64) -> Units {
    Units::whole(per_second.clamp(1, u32::MAX.into()))
}

/// Returns the moment of a time since the start.
pub(crate) fn moment(now: Duration) -> Moment {
    Moment::ORIGIN.after(now)
}

/// Returns a time as units of a bucket that counts seconds.
pub(crate) fn seconds(span: Duration) -> Units {
    Units::from_parts(span.as_nanos())
}
