//! When a client that was refused should ask again.
//!
//! After an outage all clients come back at once, and a server may have to refuse all of them: it has no lease itself yet.
//! So that they do not come together again, each is told a different time. What a client is refused in one answer it asks for
//! again together: else it would come once for each resource. A child server is told no such time. There are few, and how
//! often they ask goes by their rounds.
//!
//! A reason that has a time of its own ([`RefusalReason::retry_in`]) keeps it. Absent: asking again will not help as long as
//! nobody changes the request or the templates, so when to do so is the client's choice.

use std::time::Duration;

use doorward_time::spread;

use crate::request::{Refusal, RefusalReason};

/// After how long a parent is asked again that has refused a resource.
pub(crate) const PARENT_REFUSED: Duration = Duration::from_secs(5);

/// A tree knows what there is within seconds. The range is short, for a client's lease may end soon.
const NOT_READY: (Duration, Duration) = (Duration::from_secs(1), Duration::from_secs(2));

/// Whoever comes before the parent was asked again is refused again. Where the parent says that another process of this node
/// has the lease, it is asked later, and so is everybody refused until then.
const REFUSED_BY_PARENT: (Duration, Duration) = (PARENT_REFUSED, Duration::from_secs(7));

/// Tells clients that are refused when to ask again.
#[derive(Debug)]
pub(crate) struct Retries {
    /// Answers that told a time, from a number on that other servers do not begin with.
    told: u64,
}

impl Retries {
    /// None told yet.
    pub(crate) const fn new(seed: u64) -> Self {
        Self { told: seed }
    }

    /// Tells a client when to ask again, in an answer with these refusals.
    pub(crate) fn tell(&mut self, refused: &mut [Refusal]) {
        let mut tells = false;
        for refusal in refused {
            if let Some(range) = range_of(refusal.reason) {
                refusal.retry_in = Some(spread::evenly(self.told, range));
                tells = true;
            }
        }
        if tells {
            self.told = self.told.wrapping_add(1);
        }
    }
}

/// Within which times to ask again. None: the reason has a time of its own, or there is none.
const fn range_of(reason: RefusalReason) -> Option<(Duration, Duration)> {
    match reason {
        RefusalReason::NotReady => Some(NOT_READY),
        RefusalReason::RefusedByParent => Some(REFUSED_BY_PARENT),
        RefusalReason::UnknownResource
        | RefusalReason::Duplicate
        | RefusalReason::AnotherProcess(_)
        | RefusalReason::Full(_) => None,
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

    /// What clients are told, one after the other.
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
    fn what_a_client_is_refused_in_one_answer_it_asks_for_again_together() {
        let mut retries = Retries::new(7);
        let waits = told(&mut retries, &[RefusalReason::NotReady; 10]);
        assert_eq!(waits, [waits[0]; 10]);
        assert_ne!(told(&mut retries, &[RefusalReason::NotReady; 10]), waits);
    }

    #[test]
    fn a_reason_with_a_time_of_its_own_keeps_it_and_some_have_none() {
        let mut retries = Retries::new(7);
        let own = Duration::from_secs(20);
        let waits = told(
            &mut retries,
            &[
                RefusalReason::AnotherProcess(own),
                RefusalReason::UnknownResource,
                RefusalReason::Duplicate,
            ],
        );
        assert_eq!(waits, [Some(own), None, None]);
        assert_eq!(retries.told, 7, "nobody was told a time");
    }

    #[test]
    fn the_same_seed_tells_the_same_times() {
        let tells = |seed| {
            let mut retries = Retries::new(seed);
            [0; 5].map(|_| told(&mut retries, &[RefusalReason::NotReady]))
        };
        assert_eq!(tells(1), tells(1));
        assert_ne!(tells(1), tells(2));
    }
}
