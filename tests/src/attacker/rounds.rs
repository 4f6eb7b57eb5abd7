//! Attacks again and again, for benches.

use std::time::Duration;

use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until, timeout, timeout_at};

use super::catalogue::{ATTACKS, Attack, Size};
use super::{Outcome, Target, attacker};

/// Longest time of a round of an attack.
const ROUND_MAX: Duration = Duration::from_secs(120);

/// Time for which a round holds its connections, if the server does not end them.
const HELD: Duration = Duration::from_secs(5);

/// Attacks again and again for a while, at least once. Returns the result, and the number of rounds.
pub async fn wage(attack: &Attack, target: Target, size: Size, lasts: Duration) -> (Outcome, u64) {
    let until = Instant::now() + lasts;
    let (mut outcome, mut rounds) = (Outcome::default(), 0);
    while rounds == 0 || Instant::now() < until {
        let round = timeout(ROUND_MAX, (attack.wage)(target, size, rounds));
        let Ok(mut siege) = round.await else {
            break;
        };
        let held_until = until.min(Instant::now() + HELD);
        let has_any = !siege.held.is_empty();
        let all_cut = timeout_at(held_until, siege.until_cut_to(0)).await;
        if size == Size::Slow && (all_cut.is_ok() || !has_any) {
            // A slow attack does not repeat at once.
            sleep_until(until.min(Instant::now() + Duration::from_secs(1))).await;
        }
        outcome.add(siege.lift());
        rounds += 1;
    }
    (outcome, rounds)
}

/// Wages all attacks at the same time, slowly, each from an address of its own.
pub async fn wage_all_slowly(target: Target, lasts: Duration) -> (Outcome, u64) {
    let mut waging = JoinSet::new();
    for (number, attack) in (0..).zip(ATTACKS) {
        let target = target.from(attacker(number));
        waging.spawn(wage(attack, target, Size::Slow, lasts));
    }
    let (mut outcome, mut rounds) = (Outcome::default(), 0);
    for of_one in waging.join_all().await {
        outcome.add(of_one.0);
        rounds += of_one.1;
    }
    (outcome, rounds)
}
