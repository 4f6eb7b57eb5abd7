//! Demand of a bucket, estimated from two counts of a report: requests allowed, and requests denied.
//!
//! Reports come every five seconds, and demand may change in between. The mean of the window would show the change only
//! in the report after the next one. But while demand was above the assignment, requests were denied at a known rate; so
//! the count of denials tells how long that was, and the rest of the window tells the other rate.

/// Counts of a report.
#[derive(Clone, Copy, Debug)]
pub struct Window {
    /// Requests allowed.
    pub allowed: f64,
    /// Requests denied.
    pub denied: f64,
    /// Length, in seconds.
    pub seconds: f64,
}

/// Part of an assignment from which on it counts as used up.
const USED_UP: f64 = 0.97;

/// Shortest time from which a rate is estimated, in seconds.
const SECONDS_MIN: f64 = 0.5;

/// Returns the demand at the end of a window, in requests per second. `before`: demand at its start. `assigned`: the
/// rate that was assigned in the whole window, if it was one.
pub fn estimate(window: Window, before: f64, assigned: Option<f64>) -> f64 {
    let Window {
        allowed,
        denied,
        seconds,
    } = window;
    let mean = (allowed + denied) / seconds;
    let Some(assigned) = assigned.filter(|_| denied > 0.0) else {
        return mean;
    };
    if before <= assigned / USED_UP && allowed >= assigned * seconds * USED_UP {
        // It rose above the assignment at an unknown time: in the mean, halfway.
        return assigned + 2.0 * denied / seconds;
    }
    if allowed >= assigned * seconds * USED_UP {
        return mean;
    }
    if before > assigned {
        // It fell below the assignment. Before that, requests were denied at a known rate.
        let until = denied / (before - assigned);
        let rest = seconds - until;
        if rest >= SECONDS_MIN {
            return ((allowed - assigned * until) / rest).max(0.0);
        }
    } else if before < assigned * USED_UP {
        // It rose above the assignment. Before that, all requests passed.
        let until = (assigned * seconds - allowed) / (assigned - before);
        let rest = seconds - until;
        if rest >= SECONDS_MIN {
            return assigned + denied / rest;
        }
    }
    mean
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the estimate for a window of five seconds in which demand changes after `until` seconds.
    fn estimated(before: f64, after: f64, until: f64, assigned: f64) -> f64 {
        let part = |demand: f64, seconds: f64| {
            let allowed = demand.min(assigned) * seconds;
            (allowed, demand * seconds - allowed)
        };
        let (first, second) = (part(before, until), part(after, 5.0 - until));
        let window = Window {
            allowed: first.0 + second.0,
            denied: first.1 + second.1,
            seconds: 5.0,
        };
        estimate(window, before, Some(assigned))
    }

    #[test]
    fn a_change_across_the_assignment_shows_in_the_first_report() {
        for (before, after, until) in [
            (400.0, 40.0, 0.5),
            (400.0, 40.0, 4.0),
            (400.0, 0.0, 2.0),
            (40.0, 400.0, 0.5),
            (40.0, 400.0, 4.0),
            (0.0, 150.0, 3.0),
        ] {
            let estimated = estimated(before, after, until, 130.0);
            assert!(
                (estimated - after).abs() < 1e-6,
                "{before} {after} {until}: {estimated}"
            );
        }
    }

    #[test]
    fn otherwise_it_is_the_mean() {
        for (before, after, until, assigned, expected) in [
            (400.0, 400.0, 2.0, 130.0, 400.0),
            (40.0, 40.0, 2.0, 130.0, 40.0),
            // Nothing was denied.
            (40.0, 100.0, 2.5, 130.0, 70.0),
            // The assignment was used up all the time.
            (400.0, 200.0, 2.5, 130.0, 300.0),
            // The rest is too short.
            (400.0, 40.0, 4.8, 130.0, 385.6),
        ] {
            let estimated = estimated(before, after, until, assigned);
            assert!(
                (estimated - expected).abs() < 1e-6,
                "{before} {after}: {estimated}"
            );
        }
        let window = Window {
            allowed: 10.0,
            denied: 10.0,
            seconds: 5.0,
        };
        assert_eq!(estimate(window, 9.0, None), 4.0);
        // It was near the assignment before, and the time of the change is unknown.
        assert_eq!(estimate(window, 2.0, Some(2.0)), 6.0);
    }
}
