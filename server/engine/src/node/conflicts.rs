//! Names under which two live processes ask, of which the later one is refused.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use crate::id::{HolderId, Incarnation};
use crate::messages::Conflict;
use crate::time::Time;

/// How long a conflict is shown after it was seen last. The one that is refused asks again every
/// minute at least.
const SHOWN: Duration = Duration::from_secs(120);

/// Names that are remembered.
const NAMES_MAX: usize = 1_000;

/// Processes of one name that were refused, of which is known when: more than are ever started by mistake.
const REFUSED_MAX: usize = 8;

/// What was seen lately, by the name.
#[derive(Debug, Default)]
pub(super) struct Conflicts(BTreeMap<HolderId, Seen>);

/// What was seen of a name.
#[derive(Debug)]
struct Seen {
    last: Conflict,
    /// Each process that was refused, and when that was last; who was refused last is last.
    refused: Vec<(Option<Incarnation>, Time)>,
}

impl Seen {
    fn new(conflict: Conflict) -> Self {
        Self {
            refused: vec![(conflict.refused, conflict.at)],
            last: conflict,
        }
    }

    fn note(&mut self, conflict: Conflict) {
        self.refused
            .retain(|(process, _)| *process != conflict.refused);
        if self.refused.len() == REFUSED_MAX {
            self.refused.remove(0);
        }
        self.refused.push((conflict.refused, conflict.at));
        self.last = conflict;
    }
}

impl Conflicts {
    /// It was seen now. Returns whether that is news.
    pub(super) fn note(&mut self, conflict: Conflict) -> bool {
        if let Some(known) = self.0.get_mut(&conflict.holder) {
            let is_news = conflict.at.since(known.last.at) >= SHOWN;
            known.note(conflict);
            return is_news;
        }
        if self.0.len() >= NAMES_MAX {
            self.0
                .retain(|_, known| conflict.at.since(known.last.at) < SHOWN);
        }
        if self.0.len() < NAMES_MAX {
            self.0.insert(conflict.holder.clone(), Seen::new(conflict));
        }
        true
    }

    /// What is shown.
    pub(super) fn shown(&self, now: Time) -> impl Iterator<Item = &Conflict> {
        self.shown_after(None, now)
    }

    /// The same, after that name.
    pub(super) fn shown_after(
        &self,
        after: Option<&HolderId>,
        now: Time,
    ) -> impl Iterator<Item = &Conflict> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let seen = self.0.range::<HolderId, _>((from, Bound::Unbounded));
        let all = seen.map(|(_, seen)| &seen.last);
        all.filter(move |conflict| now.since(conflict.at) < SHOWN)
    }

    /// How long ago that process of the name was refused last. There may be more than one that is. None: it was
    /// not, as far as is known.
    pub(super) fn refused_ago(
        &self,
        holder: &HolderId,
        process: Option<Incarnation>,
        now: Time,
    ) -> Option<Duration> {
        let mut refused = self.0.get(holder)?.refused.iter();
        let (_, at) = refused.find(|(refused, _)| *refused == process)?;
        Some(now.since(*at))
    }

    /// Returns what was known.
    pub(super) fn forget(&mut self) -> Self {
        std::mem::take(self)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "a test")]

    use super::*;
    use crate::id::HolderName;

    fn conflict(name: &str, seconds: u64) -> Conflict {
        Conflict {
            holder: HolderId::client(HolderName::new(name).unwrap()),
            refused: None,
            at: Time::from_secs(seconds),
        }
    }

    #[test]
    fn it_is_news_once_for_as_long_as_it_goes_on() {
        let mut conflicts = Conflicts::default();
        for (second, is_news) in [(0, true), (60, false), (170, false), (290, true)] {
            let noted = conflicts.note(conflict("a", second));
            assert_eq!(noted, is_news, "at {second} s");
        }
        assert_eq!(conflicts.shown(Time::from_secs(409)).count(), 1);
        assert_eq!(conflicts.shown(Time::from_secs(410)).count(), 0);
    }

    #[test]
    fn who_is_known_stays_known_when_there_is_no_place_for_more() {
        let mut conflicts = Conflicts::default();
        for number in 0..NAMES_MAX {
            conflicts.note(conflict(&number.to_string(), 0));
        }
        assert!(conflicts.note(conflict("one more", 100)), "it is reported");
        assert!(!conflicts.note(conflict("7", 100)));
        assert_eq!(conflicts.shown(Time::from_secs(150)).count(), 1);
        assert!(conflicts.note(conflict("one more", 150)));
        assert_eq!(conflicts.shown(Time::from_secs(150)).count(), 2);
    }

    #[test]
    fn each_of_several_processes_that_were_refused_is_known() {
        let process = |number| Incarnation::new(number);
        let refused = |number, seconds| Conflict {
            refused: process(number),
            ..conflict("a", seconds)
        };
        let mut conflicts = Conflicts::default();
        let holder = refused(1, 0).holder;
        for (number, seconds) in [(1, 0), (2, 5), (1, 9)] {
            conflicts.note(refused(number, seconds));
        }
        let now = Time::from_secs(10);
        for (number, ago) in [(1, Some(1)), (2, Some(5)), (3, None)] {
            let found = conflicts.refused_ago(&holder, process(number), now);
            assert_eq!(found, ago.map(Duration::from_secs), "{number}");
        }
        // The one that was refused longest ago makes room.
        for number in 3..10 {
            conflicts.note(refused(number, 10));
        }
        assert_eq!(conflicts.refused_ago(&holder, process(2), now), None);
        assert!(conflicts.refused_ago(&holder, process(1), now).is_some());
    }
}
