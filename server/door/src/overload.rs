//! Refusals of calls that the server has no capacity for, each with a retry delay.
//!
//! The answer is `RESOURCE_EXHAUSTED`, with a retry delay in milliseconds in the trailer [`PUSHBACK`] (gRFC A6). The
//! delays are spread evenly over [`PUSHBACK_SPREAD`], so that clients refused together do not return together.

use std::time::Duration;

use doorward_time::{millis, spread};
use tonic::Status as RpcStatus;

use crate::limit::LimitTexts;

/// Trailer with the retry delay in milliseconds (gRFC A6).
pub const PUSHBACK: &str = "grpc-retry-pushback-ms";

/// Range of retry delays. It excludes the upper end.
pub const PUSHBACK_SPREAD: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(5));

/// Returns the retry delay of the `number`th refused call.
pub fn pushback(number: u64) -> Duration {
    spread::evenly(number, PUSHBACK_SPREAD)
}

/// Returns the answer to the `number`th call beyond a limit: a retry delay, and the flag that sets the limit.
pub fn exhausted(limit: impl Into<LimitTexts>, number: u64) -> RpcStatus {
    let LimitTexts { what, flag, .. } = limit.into();
    let after = pushback(number);
    let message = format!("there are too many {what}; try again in {after:.1?} ({flag})");
    full(message, number)
}

/// Returns the answer to the `number`th call while `max` calls are in progress.
pub fn busy(max: u64, number: u64) -> RpcStatus {
    let after = pushback(number);
    let message = format!("the server is busy with {max} calls; try again in {after:.1?}");
    full(message, number)
}

/// Returns the answer to the `number`th call that another limit refuses.
pub fn full(problem: String, number: u64) -> RpcStatus {
    come_back(RpcStatus::resource_exhausted(problem), number)
}

/// Returns the last status of the `number`th answer that its client does not read.
pub fn unread(number: u64) -> RpcStatus {
    let after = pushback(number);
    let message =
        format!("this address does not read its answers; read them, and try again in {after:.1?}");
    full(message, number)
}

/// Returns the answer to the `number`th call whose message does not arrive in time.
pub fn late(patience: Duration, number: u64) -> RpcStatus {
    let message = format!("no complete message within {patience:?}");
    come_back(RpcStatus::deadline_exceeded(message), number)
}

fn come_back(mut status: RpcStatus, number: u64) -> RpcStatus {
    let after = millis(pushback(number));
    status.metadata_mut().insert(PUSHBACK, after.into());
    status
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_refused_comes_back_at_another_time_than_the_others() {
        let (least, most) = PUSHBACK_SPREAD;
        let mut tenths = [0; 10];
        for number in 0..1_000 {
            let after = pushback(number);
            assert!((least..most).contains(&after), "{after:?}");
            let part = (after - least).as_secs_f64() / (most - least).as_secs_f64();
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "0 to 9"
            )]
            let tenth = (part * 10.0) as usize;
            tenths[tenth] += 1;
        }
        assert!(
            tenths.iter().all(|count| (98..=102).contains(count)),
            "{tenths:?}"
        );
    }
}
