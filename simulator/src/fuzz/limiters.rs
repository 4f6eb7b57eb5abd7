//! Work for clients' limiters, in pieces that suit their demand.

use std::time::Duration;

use crate::chance::Chance;
use crate::scenario::usage::{Adaptive, Limiter, Work};

/// Smallest demand for permits, which are whole numbers.
const PERMITS_WANTED_MIN: f64 = 4.0;

/// Draws the limiter of a client that wants about that amount, with leases of that length.
pub(super) fn draw(chance: &mut Chance, amount: f64, lease: Duration) -> Limiter {
    let pieces = chance.between(1.0, 8.0);
    let is_gauge = amount >= PERMITS_WANTED_MIN && chance.happens(0.6);
    let work = match is_gauge {
        true => {
            let most = (lease / 2).min(Duration::from_secs(chance.pick([2, 8, 20])));
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a number of permits; the cast saturates"
            )]
            let permits = (amount / pieces / 2.0).max(1.0) as u32;
            Work::Concurrency {
                permits,
                takes: (most / 10, most),
            }
        }
        // The demand is a rate, so the cost is a part of it.
        false => Work::Rate {
            cost: (amount / pieces).max(1e-3),
        },
    };
    let adaptive = chance.happens(0.5).then(|| Adaptive {
        window: Duration::from_secs(chance.pick([1, 5, 10])),
        headroom: chance.pick([1.0, 1.2, 2.0]),
        least: amount * chance.pick([0.0, 0.01, 0.3]),
        most: amount * chance.pick([1.0, 3.0]),
    });
    Limiter { work, adaptive }
}
