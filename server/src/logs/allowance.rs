//! How many lines each place in the program may log in a minute: pure.
//!
//! Who finds a way to be logged would fill the disk, and hide from whoever reads the log what matters. Each
//! place in the program that logs has an allowance of its own, so that none takes another's. What is beyond
//! it is left out and counted, and reported when the minute is over. A minute begins with the first line of a
//! place after the last minute.

use std::collections::BTreeMap;
use std::time::Duration;

/// For how long an allowance is.
const MINUTE: Duration = Duration::from_secs(60);

/// Counts the lines of each place.
#[derive(Debug)]
pub struct LineAllowance<P> {
    lines_max: u32,
    places: BTreeMap<P, Count>,
}

#[derive(Clone, Copy, Debug)]
struct Count {
    began: Duration,
    lines: u32,
    left_out: u64,
}

impl Count {
    fn ends(&self) -> Duration {
        self.began.saturating_add(MINUTE)
    }
}

/// What becomes of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineVerdict {
    /// It is logged.
    Logged,
    /// It is left out. If it is the first one of that minute: when the minute is over, and the number is to
    /// be reported.
    LeftOut(Option<Duration>),
}

impl<P: Ord + Clone> LineAllowance<P> {
    /// So many lines a place and minute.
    pub const fn new(lines_max: u32) -> Self {
        Self {
            lines_max,
            places: BTreeMap::new(),
        }
    }

    /// A place has a line, so long after the start.
    pub fn handle_line(&mut self, place: &P, now: Duration) -> LineVerdict {
        let fresh = Count {
            began: now,
            lines: 0,
            left_out: 0,
        };
        let count = match self.places.get_mut(place) {
            Some(count) => count,
            None => self.places.entry(place.clone()).or_insert(fresh),
        };
        // What was left out is reported first: until then, the minute is not over.
        if count.ends() <= now && count.left_out == 0 {
            *count = fresh;
        }
        if count.lines < self.lines_max {
            count.lines += 1;
            return LineVerdict::Logged;
        }
        count.left_out = count.left_out.saturating_add(1);
        LineVerdict::LeftOut((count.left_out == 1).then(|| count.ends()))
    }

    /// The places whose minute is over, with how many lines of each were left out. They begin anew.
    pub fn poll_left_out(&mut self, now: Duration) -> Vec<(P, u64)> {
        let mut due = Vec::new();
        for (place, count) in &mut self.places {
            if count.left_out > 0 && count.ends() <= now {
                due.push((place.clone(), count.left_out));
                *count = Count {
                    began: now,
                    lines: 0,
                    left_out: 0,
                };
            }
        }
        due
    }

    /// When there is something to report next.
    pub fn poll_timeout(&self) -> Option<Duration> {
        let with_some = self.places.values().filter(|count| count.left_out > 0);
        with_some.map(Count::ends).min()
    }
}

#[cfg(test)]
mod tests;
