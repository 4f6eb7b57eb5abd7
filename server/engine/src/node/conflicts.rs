//! Names under which two live processes ask. The later one of a node is refused.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::time::Duration;

use crate::id::{HolderId, Incarnation};
use crate::messages::Conflict;
use crate::time::Time;

/// Time that a conflict is shown after its last refusal. The refused process asks again at least once a minute.
const SHOWN: Duration = Duration::from_secs(120);

/// Number of names kept.
const NAMES_MAX: usize = 1_000;

/// Number of refused processes kept per name, with the time of each refusal: more than anyone starts by
/// mistake.
const REFUSED_MAX: usize = 8;

/// Recent conflicts, by name.
#[derive(Debug, Default)]
pub(super) struct Conflicts(BTreeMap<HolderId, Seen>);

/// The conflicts of one name.
#[derive(Debug)]
struct Seen {
    last: Conflict,
    /// Each refused process, and the time of its last refusal, in the order of these times.
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
    /// Notes a conflict. Returns whether it is a new one.
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

    /// Returns the conflicts to show, by name.
    pub(super) fn shown(&self, now: Time) -> impl Iterator<Item = &Conflict> {
        self.shown_after(None, now)
    }

    /// Returns the conflicts to show for names after that one.
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

    /// Returns the time since that process of the name was last refused. None: no refusal is known. Several
    /// processes of a name may be refused.
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
            holder: HolderId::server(HolderName::new(name).unwrap()),
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
    fn known_conflicts_stay_known_when_the_list_is_full() {
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
