//! Retry delays for refused clients.
//!
//! After an outage all clients return at once, and a server may have to refuse all of them because it has no lease
//! itself yet. To spread them, each client gets a different delay. All refusals in one answer get the same delay, so
//! that the client asks for these resources again in one request. A child server gets no such delay. There are few
//! child servers, and their rounds decide how often they ask.
//!
//! A reason with a delay of its own ([`RefusalReason::retry_in`]) keeps it. Some reasons have no delay: asking again
//! does not help until the request or the templates change, so the client chooses the time.

use std::time::Duration;

use crate::time::spread;

use crate::messages::{Refusal, RefusalReason};

/// Time until a server asks its parent again for a resource that the parent refused.
pub(crate) const PARENT_REFUSED: Duration = Duration::from_secs(5);

/// A tree knows its capacity within seconds. The range is short, since a client's lease may end soon.
const NOT_READY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));

/// After a start, a parent mostly answers within milliseconds. So the first clients may return sooner, if they are few.
const NOT_READY_AT_FIRST: (Duration, Duration) =
    (Duration::from_millis(100), Duration::from_millis(200));

/// Number of answers with that delay.
const AT_FIRST: u8 = 100;

/// A client that returns before the server has asked its parent again is refused again. If the parent refuses because
/// of another process of this node, the server asks later, and refuses clients until then.
const REFUSED_BY_PARENT: (Duration, Duration) = (PARENT_REFUSED, Duration::from_secs(7));

/// Gives retry delays to refused clients.
#[derive(Debug)]
pub(crate) struct Retries {
    /// Number of answers with a delay. The seed is its start, so that servers differ.
    told: u64,
    /// Remaining number of answers with a short delay.
    short: u8,
}

impl Retries {
    /// Starts a sequence of delays.
    pub(crate) const fn new(seed: u64) -> Self {
        Self {
            told: seed,
            short: AT_FIRST,
        }
    }

    /// Sets the retry delay of these refusals, which are of one answer to a client.
    pub(crate) fn tell(&mut self, refused: &mut [Refusal]) {
        let mut tells = false;
        for refusal in refused {
            if let Some(range) = self.range_of(refusal.reason) {
                refusal.retry_in = Some(spread::evenly(self.told, range));
                tells = true;
            }
        }
        if tells {
            self.told = self.told.wrapping_add(1);
            self.short = self.short.saturating_sub(1);
        }
    }

    /// Returns the range of the retry delay, or nothing if the reason has its own delay or none.
    const fn range_of(&self, reason: RefusalReason) -> Option<(Duration, Duration)> {
        match reason {
            RefusalReason::NotReady if self.short > 0 => Some(NOT_READY_AT_FIRST),
            RefusalReason::NotReady => Some(NOT_READY),
            RefusalReason::RefusedByParent => Some(REFUSED_BY_PARENT),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ResourceId;

    fn refusals(reasons: &[RefusalReason]) -> Vec<Refusal> {
        let refusal = |(number, reason): (usize, &RefusalReason)| {
            Refusal::new(ResourceId::new(&format!("r{number}")).unwrap(), *reason)
        };
        reasons.iter().enumerate().map(refusal).collect()
    }

    /// Returns the delays of an answer with these reasons.
    fn told(retries: &mut Retries, reasons: &[RefusalReason]) -> Vec<Option<Duration>> {
        let mut refused = refusals(reasons);
        retries.tell(&mut refused);
        refused.into_iter().map(|it| it.retry_in).collect()
    }

    #[test]
    fn clients_that_are_refused_together_come_back_evenly() {
        for (reason, (least, most)) in [
            (RefusalReason::NotReady, NOT_READY),
            (RefusalReason::RefusedByParent, REFUSED_BY_PARENT),
        ] {
            let mut retries = Retries::new(7);
            if reason == RefusalReason::NotReady {
                for _ in 0..AT_FIRST {
                    let wait = told(&mut retries, &[reason])[0].unwrap();
                    assert!((least / 10..most / 10).contains(&wait), "{wait:?}");
                }
            }
            let mut tenths = [0; 10];
            for _ in 0..1_000 {
                let wait = told(&mut retries, &[reason])[0].unwrap();
                assert!((least..most).contains(&wait), "{wait:?}");
                let tenth = (wait - least).as_nanos() * 10 / (most - least).as_nanos();
                tenths[usize::try_from(tenth).unwrap()] += 1;
            }
            assert!(
                tenths.iter().all(|count| (98..=102).contains(count)),
                "{tenths:?}"
            );
        }
    }

    #[test]
    fn refusals_of_one_answer_have_the_same_delay() {
        let mut retries = Retries::new(7);
        let waits = told(&mut retries, &[RefusalReason::NotReady; 10]);
        assert_eq!(waits, [waits[0]; 10]);
        assert_ne!(told(&mut retries, &[RefusalReason::NotReady; 10]), waits);
    }

    #[test]
    fn a_reason_with_a_delay_of_its_own_keeps_it_and_some_have_none() {
        let mut retries = Retries::new(7);
        let own = Duration::from_secs(20);
        let waits = told(
            &mut retries,
            &[
                RefusalReason::AnotherProcess(own),
                RefusalReason::UnknownResource,
            ],
        );
        assert_eq!(waits, [Some(own), None]);
        assert_eq!(retries.told, 7, "no new delay was given");
    }

    #[test]
    fn the_same_seed_gives_the_same_delays() {
        let tells = |seed| {
            let mut retries = Retries::new(seed);
            [0; 5].map(|_| told(&mut retries, &[RefusalReason::NotReady]))
        };
        assert_eq!(tells(1), tells(1));
        assert_ne!(tells(1), tells(2));
    }
}
