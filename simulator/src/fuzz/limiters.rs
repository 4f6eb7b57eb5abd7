//! Work that comes to clients' limiters, in pieces that suit what they want.

use std::time::Duration;

use doorward_client::limiter::demand::AdaptiveWants;

use crate::chance::Chance;
use crate::scenario::usage::{Limiter, Work};

/// Permits are whole: whoever wants less than this has no use for them.
const PERMITS_WANTED_MIN: f64 = 4.0;

/// The limiter of a client that wants about so much, of leases of that length.
pub(super) fn draw(chance: &mut Chance, amount: f64, lease: Duration) -> Limiter {
    let pieces = chance.between(1.0, 8.0);
    let is_gauge = amount >= PERMITS_WANTED_MIN && chance.happens(0.6);
    let work = match is_gauge {
        true => {
            let most = (lease / 2).min(Duration::from_secs(chance.pick([2, 8, 20])));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "some number of permits; what is too large is the largest"
            )]
            let permits = (amount / pieces / 2.0).max(1.0) as u32;
            Work::Concurrency {
                permits,
                takes: (most / 10, most),
            }
        }
        // Something is wanted of a second, so that much of it.
        false => Work::Rate {
            cost: (amount / pieces).max(1e-3),
        },
    };
    let adaptive = chance.happens(0.5).then(|| AdaptiveWants {
        window: Duration::from_secs(chance.pick([1, 5, 10])),
        headroom: chance.pick([1.0, 1.2, 2.0]),
        least: amount * chance.pick([0.0, 0.01, 0.3]),
        most: amount * chance.pick([1.0, 3.0]),
    });
    Limiter { work, adaptive }
}
