//! Attempts that start one after the other and run together, as in Happy Eyeballs (RFC 8305).
//!
//! A server that accepts a connection and never answers costs a whole timeout. The attempt at the next server starts
//! after a pause, while the first attempt continues. It starts at once when an attempt fails. So race only attempts
//! that change nothing, such as a Discovery.
//!
//! The caller passes the pause, so there is no clock here.

use std::future::{Future, pending, poll_fn};
use std::pin::pin;
use std::task::Poll;
use std::time::Duration;

/// Time that one server has to answer before the next one is tried beside it.
pub const HEAD_START: Duration = Duration::from_secs(1);

/// Returns the first success. The others are dropped. Only a few attempts are expected, so all are polled together.
///
/// # Errors
///
/// If every attempt failed: all failures, in the order in which they came.
pub async fn first_success<T, E, A, P>(
    attempts: impl IntoIterator<Item = A>,
    pause: impl Fn() -> P,
) -> Result<T, Vec<E>>
where
    A: Future<Output = Result<T, E>>,
    P: Future<Output = ()>,
{
    let (mut under_way, mut failures) = (Vec::new(), Vec::new());
    let mut attempts = attempts.into_iter();
    loop {
        let next = attempts.next().map(Box::pin);
        let is_last = next.is_none();
        under_way.extend(next);
        let failed = failures.len();
        let mut pause = pin!(pause());
        let ended = poll_fn(|cx| {
            let mut success = None;
            under_way.retain_mut(|attempt| {
                if success.is_some() {
                    return true;
                }
                match attempt.as_mut().poll(cx) {
                    Poll::Pending => return true,
                    Poll::Ready(Ok(value)) => success = Some(value),
                    Poll::Ready(Err(failure)) => failures.push(failure),
                }
                false
            });
            match success {
                Some(_) => Poll::Ready(success),
                None if under_way.is_empty() => Poll::Ready(None),
                None if is_last => Poll::Pending,
                None if failures.len() > failed => Poll::Ready(None),
                None => pause.as_mut().poll(cx).map(|()| None),
            }
        });
        match ended.await {
            Some(success) => return Ok(success),
            None if is_last => return Err(failures),
            None => {}
        }
    }
}

/// Returns the first success of attempts that start after a pause, beside an attempt that the caller drives. Never
/// returns if none succeeds.
pub async fn rival<T, E, A, P>(attempts: impl IntoIterator<Item = A>, pause: impl Fn() -> P) -> T
where
    A: Future<Output = Result<T, E>>,
    P: Future<Output = ()>,
{
    pause().await;
    match first_success(attempts, pause).await {
        Ok(success) => success,
        Err(_) => pending().await,
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::task::{Context, Waker};

    use super::*;

    /// An attempt that ends after that many polls.
    async fn attempt(polls: u32, result: Result<u32, u32>) -> Result<u32, u32> {
        pause(polls).await;
        result
    }

    async fn pause(polls: u32) {
        let mut left = polls;
        poll_fn(|_| {
            left = left.saturating_sub(1);
            if left == 0 {
                Poll::Ready(())
            } else {
                Poll::Pending
            }
        })
        .await;
    }

    /// Races attempts with a pause of that many polls. Returns the result, and how many attempts started.
    fn race(pauses: u32, attempts: &[(u32, Result<u32, u32>)]) -> (Result<u32, Vec<u32>>, u32) {
        let started = Cell::new(0);
        let attempts = attempts.iter().map(|&(polls, result)| {
            started.set(started.get() + 1);
            attempt(polls, result)
        });
        let mut race = pin!(first_success(attempts, || pause(pauses)));
        let mut cx = Context::from_waker(Waker::noop());
        for _ in 0..1_000 {
            if let Poll::Ready(result) = race.as_mut().poll(&mut cx) {
                return (result, started.get());
            }
        }
        panic!("it never ends");
    }

    const NEVER: u32 = u32::MAX;

    #[test]
    fn an_answer_within_the_pause_starts_no_other_attempt() {
        assert_eq!(race(10, &[(5, Ok(1)), (1, Ok(2))]), (Ok(1), 1));
    }

    #[test]
    fn a_silent_server_delays_the_next_by_a_pause() {
        let silent = (NEVER, Err(1));
        assert_eq!(race(10, &[silent, silent, (1, Ok(3))]), (Ok(3), 3));
    }

    #[test]
    fn a_slow_server_still_wins_over_silent_ones() {
        assert_eq!(race(10, &[(25, Ok(1)), (NEVER, Err(2))]), (Ok(1), 2));
    }

    #[test]
    fn a_failure_starts_the_next_attempt_at_once() {
        assert_eq!(race(NEVER, &[(2, Err(1)), (2, Ok(2))]), (Ok(2), 2));
    }

    #[test]
    fn all_failures_are_returned_in_their_order() {
        assert_eq!(race(10, &[(50, Err(1)), (2, Err(2))]), (Err(vec![2, 1]), 2));
        assert_eq!(race(10, &[]), (Err(vec![]), 0));
    }
}
