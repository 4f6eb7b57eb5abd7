//! What holders told of in learning mode, below the root: which mastership of our node had granted
//! it to them, and so whether the parent has it in its books.
//!
//! What earlier masterships handed out was cut from what the parent had granted them. If the parent
//! says how much that is at most (`inherited`), then what we are granted above it is nobody's yet:
//! it may be handed out at once, and only what we have not heard of must be left for those who
//! have it. If the parent learns, too, it knows only of the masterships that it has heard from.
//! What others granted comes on top: holders' words of it go up, and are added there.
//!
//! Everything here only grows until learning is over: that a holder has less by now than it told of
//! says nothing of the others.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::MastershipId;
use crate::request::server::HandedOut;
use crate::supply::Told;

/// Masterships told apart. What else holders name counts as granted by nobody that is known, which is
/// the safe side.
const ORIGINS_MAX: usize = 16;

/// Who granted something. None: the holder does not say.
pub type Origin = Option<MastershipId>;

/// What one holder told of.
#[derive(Clone, Copy, Debug)]
struct Word {
    origin: Origin,
    amount: Amount,
    is_there: bool,
}

/// What all holders together told of that was granted by one mastership.
#[derive(Clone, Copy, Debug)]
struct Heard {
    /// All that was ever told of.
    ever: ExactSum,
    /// Of that, by holders that are still there.
    there: ExactSum,
}

/// What holders told of.
#[derive(Clone, Debug, Default)]
pub struct Learned {
    /// By a hash of the holder's name.
    words: BTreeMap<u64, Word>,
    by_origin: BTreeMap<Origin, Heard>,
}

impl Learned {
    /// A holder, by a hash of its name, says that it may be using so much. A holder that told of it
    /// before is taken at its first word as to who granted it, and at its largest as to how much.
    pub fn note(&mut self, holder: u64, origin: Origin, amount: Amount) {
        let known = self.by_origin.len() < ORIGINS_MAX || self.by_origin.contains_key(&origin);
        let origin = if known {
            origin
        } else {
            Some(MastershipId::NOBODY)
        };
        let word = self.words.entry(holder).or_insert(Word {
            origin,
            amount: Amount::ZERO,
            is_there: true,
        });
        let heard = self.by_origin.entry(word.origin).or_insert(Heard {
            ever: ExactSum::ZERO,
            there: ExactSum::ZERO,
        });
        let before = if word.is_there {
            word.amount
        } else {
            Amount::ZERO
        };
        let after = word.amount.max(amount);
        heard.ever.replace(word.amount, after);
        heard.there.replace(before, after);
        word.amount = after;
        word.is_there = true;
    }

    /// A holder is gone.
    pub fn note_gone(&mut self, holder: u64) {
        if let Some(word) = self.words.get_mut(&holder).filter(|word| word.is_there) {
            word.is_there = false;
            if let Some(heard) = self.by_origin.get_mut(&word.origin) {
                heard.there.subtract(word.amount);
            }
        }
    }

    /// Learning is over.
    pub fn forget(&mut self) {
        self.words.clear();
        self.by_origin.clear();
    }

    /// Of what earlier masterships handed out, as far as the parent knows, the most that was not told
    /// of yet.
    pub fn unheard(&self, inheritance: &Inheritance) -> ExactSum {
        let mut heard = ExactSum::ZERO;
        for (_, of) in self
            .by_origin
            .iter()
            .filter(|(it, _)| inheritance.accounts_for(**it))
        {
            heard.add_sum(&of.ever);
        }
        ExactSum::from(inheritance.amount).without(&heard)
    }

    /// What holders that are there told of, by who granted it.
    pub fn told_of(&self) -> Vec<HandedOut> {
        let part = |(origin, heard): (&Origin, &Heard)| HandedOut {
            granted_by: *origin,
            capacity: heard.there.rounded_up(),
        };
        self.by_origin.iter().map(part).collect()
    }
}

/// What earlier masterships of our node handed out, as far as a parent knows.
#[derive(Clone, Debug, PartialEq)]
pub struct Inheritance {
    amount: Amount,
    /// Of which masterships that is. Empty: of all.
    accounted: Vec<MastershipId>,
    /// Which mastership of the parent says so.
    told_by: Option<MastershipId>,
}

impl Inheritance {
    /// What a parent says, after what one has said before: earlier masterships hand out nothing more,
    /// so what was known stays known, whatever a parent that has just begun has not heard of.
    pub fn told(before: Option<Self>, told: &Told, by: Option<MastershipId>) -> Option<Self> {
        let Some(amount) = told.inherited else {
            return before;
        };
        let now = Self {
            amount,
            accounted: told.accounted.clone(),
            told_by: by,
        };
        match before {
            Some(before) if before.is_complete() && now.is_complete() => Some(Self {
                amount: before.amount.min(now.amount),
                ..now
            }),
            Some(before) if before.is_complete() => Some(before),
            Some(before) if !now.is_complete() && before.told_by != by => Some(before),
            _ => Some(now),
        }
    }

    fn is_complete(&self) -> bool {
        self.accounted.is_empty()
    }

    fn accounts_for(&self, origin: Origin) -> bool {
        self.is_complete() || origin.is_none_or(|origin| self.accounted.contains(&origin))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn amount(amount: f64) -> Amount {
        Amount::new(amount).unwrap()
    }

    fn id(bits: u64) -> Origin {
        Some(MastershipId::new(bits))
    }

    #[track_caller]
    fn check(learned: &Learned, inherited: f64, accounted: &[u64], expected: f64) {
        let told = Told {
            inherited: Some(amount(inherited)),
            accounted: accounted
                .iter()
                .map(|bits| MastershipId::new(*bits))
                .collect(),
            ..Told::default()
        };
        let inheritance = Inheritance::told(None, &told, None).unwrap();
        let left = learned.unheard(&inheritance).rounded_down();
        assert!((left - expected).abs() < 1e-9, "{left}, not {expected}");
    }

    #[test]
    fn what_was_not_told_of_yet_is_left_for_those_who_have_it() {
        let mut learned = Learned::default();
        check(&learned, 60.0, &[], 60.0);
        learned.note(1, id(5), amount(20.0));
        check(&learned, 60.0, &[], 40.0);
        // Again, with more, from another mastership by now, and when it is gone.
        learned.note(1, id(5), amount(10.0));
        check(&learned, 60.0, &[], 40.0);
        learned.note(1, id(6), amount(25.0));
        check(&learned, 60.0, &[], 35.0);
        learned.note_gone(1);
        check(&learned, 60.0, &[], 35.0);
        learned.note(1, id(5), amount(25.0));
        check(&learned, 60.0, &[], 35.0);
        learned.note(2, None, amount(40.0));
        check(&learned, 60.0, &[], 0.0);
    }

    #[test]
    fn what_the_parent_has_not_heard_of_leaves_no_less_for_the_others() {
        let mut learned = Learned::default();
        learned.note(1, id(5), amount(20.0));
        learned.note(2, id(7), amount(30.0));
        check(&learned, 60.0, &[5, 6], 40.0);
        check(&learned, 60.0, &[], 10.0);
    }

    #[test]
    fn what_is_told_upwards_is_what_holders_told_of_that_are_there() {
        let mut learned = Learned::default();
        learned.note(1, id(5), amount(20.0));
        learned.note(2, None, amount(30.0));
        learned.note(3, id(5), amount(2.0));
        let told = |learned: &Learned| {
            let part = |it: HandedOut| (it.granted_by, it.capacity.get());
            learned.told_of().into_iter().map(part).collect::<Vec<_>>()
        };
        assert_eq!(told(&learned), [(None, 30.0), (id(5), 22.0)]);
        learned.note_gone(2);
        learned.note_gone(3);
        assert_eq!(told(&learned), [(None, 0.0), (id(5), 20.0)]);
    }

    #[test]
    fn what_was_known_of_predecessors_stays_known_when_the_parent_begins_anew() {
        let told = |inherited: f64, accounted: &[u64]| Told {
            inherited: Some(amount(inherited)),
            accounted: accounted
                .iter()
                .map(|bits| MastershipId::new(*bits))
                .collect(),
            ..Told::default()
        };
        let silent = Told::default();
        for (what, first, second, expected) in [
            ("it says nothing", told(60.0, &[]), silent.clone(), 60.0),
            ("it has just begun", told(60.0, &[]), told(0.0, &[9]), 60.0),
            (
                "both have just begun",
                told(30.0, &[5, 9]),
                told(0.0, &[9]),
                30.0,
            ),
            ("it knows all", told(30.0, &[5, 9]), told(70.0, &[]), 70.0),
            ("it runs down", told(60.0, &[]), told(40.0, &[]), 40.0),
        ] {
            let before = Inheritance::told(None, &first, id(1));
            let after = Inheritance::told(before, &second, id(2)).unwrap();
            assert_eq!(after.amount.get(), expected, "{what}");
        }
        assert_eq!(Inheritance::told(None, &silent, None), None);
        let same = Inheritance::told(None, &told(30.0, &[5, 9]), id(1));
        let same = Inheritance::told(same, &told(10.0, &[5, 9]), id(1)).unwrap();
        assert_eq!(same.amount.get(), 10.0);
    }

    #[test]
    fn more_masterships_than_can_be_told_apart_are_known_to_nobody() {
        let mut learned = Learned::default();
        for number in 1..100 {
            learned.note(number, id(number), amount(1.0));
        }
        assert!(learned.by_origin.len() <= ORIGINS_MAX + 1);
        check(&learned, 200.0, &[1, 99], 199.0);
    }
}
