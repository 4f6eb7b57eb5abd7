//! What holders told of in learning mode, below the root: which mastership of our node had granted
//! it to them, and so whether the parent has it in its books.
//!
//! What earlier masterships handed out was cut from what the parent had granted them. If the parent
//! says how much that is at most (`inherited`), then what we are granted above it is nobody's yet:
//! it may be handed out at once, and only what we have not heard of must be left for those who
//! have it. If the parent learned, too, when it first heard of us, it knows only of the masterships
//! that it has heard from. What others granted comes on top: holders' words of it go up, and are
//! added there.
//!
//! What the parent says runs down: it is of what lasts on at that moment. A holder whose lease was over
//! by then was no part of it, though it told of more before. So each smaller amount that the parent
//! says counts by itself, with the words that outlast that moment, beside the first one with all
//! words; the least that may be left by any of them is left.
//!
//! What a child server says of its holders is a sum of leases, of which the last ends when it says. Others may end
//! before. So of a word from before such a moment only the lease that the child has itself counts, which lasts in
//! full; of a child without one, nothing. Once it has said so again, all of it counts.
//!
//! Words only grow until learning is over: that a holder has less by now than it told of says nothing
//! of the others.

use std::collections::BTreeMap;

use crate::amount::Amount;
use crate::exact_sum::ExactSum;
use crate::id::MastershipId;
use crate::planted::{self, Bug};
use crate::request::server::HandedOut;
use crate::supply::Told;
use crate::time::Time;

/// Masterships told apart. What else holders name counts as granted by nobody that is known, which is
/// the safe side.
const ORIGINS_MAX: usize = 16;

/// Who granted something. None: the holder does not say.
pub(crate) type Origin = Option<MastershipId>;

/// What one holder told of.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Word {
    /// Who granted it.
    pub(crate) origin: Origin,
    /// All that it may be using.
    pub(crate) amount: Amount,
    /// When the last of that is over, at the earliest.
    pub(crate) until: Time,
    /// When it said so, at the latest.
    pub(crate) said: Time,
    /// What of that lasts on in full, and how long at least. None: the holder has no lease of its own.
    pub(crate) lasts: Option<(Amount, Time)>,
}

/// A word, and whether its holder is still there.
#[derive(Clone, Copy, Debug)]
struct Kept {
    word: Word,
    is_there: bool,
}

/// What holders told of, and what the parent.
#[derive(Clone, Debug, Default)]
pub(crate) struct Learned {
    /// By a hash of the holder's name.
    words: BTreeMap<u64, Kept>,
    /// Of holders that are still there, by who granted it.
    there: BTreeMap<Origin, ExactSum>,
    books: Option<Books>,
}

/// What a parent has in its books as handed out by earlier masterships of our node.
#[derive(Clone, Debug)]
struct Books {
    /// Of which masterships that is. Empty: of all.
    accounted: Vec<MastershipId>,
    /// Which mastership of the parent says so.
    told_by: Option<MastershipId>,
    first: Telling,
    /// The least since.
    least: Option<Telling>,
}

/// How much the parent said that it is.
#[derive(Clone, Copy, Debug)]
struct Telling {
    at: Time,
    /// Nothing was told before.
    is_first: bool,
    amount: Amount,
    /// What was told of that is a part of it.
    heard: ExactSum,
}

impl Learned {
    /// A holder, by a hash of its name, says what it may be using. A holder that told of it before is taken at
    /// its first word as to who granted it, and at its largest as to how much.
    pub(crate) fn note(&mut self, holder: u64, said: Word) {
        if planted::is(Bug::LearnedForgotten) {
            return;
        }
        let known = self.there.len() < ORIGINS_MAX || self.there.contains_key(&said.origin);
        let origin = if known {
            said.origin
        } else {
            Some(MastershipId::NOBODY)
        };
        let nothing = Word {
            origin,
            amount: Amount::ZERO,
            lasts: None,
            ..said
        };
        let kept = self.words.entry(holder).or_insert(Kept {
            word: nothing,
            is_there: false,
        });
        let there = self.there.entry(kept.word.origin).or_insert(ExactSum::ZERO);
        if kept.is_there {
            there.subtract(kept.word.amount);
        }
        let before = kept.word;
        kept.word.add(&said);
        kept.is_there = true;
        there.add(kept.word.amount);
        let after = kept.word;
        if let Some(books) = &mut self.books {
            books.replace(&before, &after);
        }
    }

    /// Of what a holder told of, no more than this is believed.
    pub(crate) fn lower(&mut self, holder: u64, most: Amount) {
        let Some(kept) = self.words.get_mut(&holder) else {
            return;
        };
        let before = kept.word;
        kept.word.lower(most);
        let after = kept.word;
        if let Some(there) = self.there.get_mut(&after.origin).filter(|_| kept.is_there) {
            there.replace(before.amount, after.amount);
        }
        if let Some(books) = &mut self.books {
            books.replace(&before, &after);
        }
    }

    /// When what a holder told of is over, if it was not made longer since.
    pub(crate) fn until(&self, holder: u64) -> Option<Time> {
        self.words.get(&holder).map(|kept| kept.word.until)
    }

    /// A holder is gone.
    pub(crate) fn note_gone(&mut self, holder: u64) {
        if let Some(kept) = self.words.get_mut(&holder).filter(|kept| kept.is_there) {
            kept.is_there = false;
            if let Some(there) = self.there.get_mut(&kept.word.origin) {
                there.subtract(kept.word.amount);
            }
        }
    }

    /// What a parent says. Earlier masterships hand out nothing more: what was known stays known,
    /// whatever a parent that has just begun has not heard of. Costs as much as there are words if the
    /// parent says less than before, which it does a few times.
    pub(crate) fn note_told(&mut self, told: &Told, by: Option<MastershipId>, now: Time) {
        let Some(amount) = told.inherited else {
            return;
        };
        let is_complete = told.accounted.is_empty();
        let known = self.books.take();
        let goes_on = known.as_ref().is_some_and(|known| {
            let same_books = known.told_by == by && known.accounted == told.accounted;
            same_books || known.accounted.is_empty()
        });
        let knows_more = known.as_ref().is_some_and(|known| {
            known.told_by != by && (known.accounted.is_empty() || !is_complete)
        });
        let Some(mut books) = known.filter(|_| goes_on || knows_more) else {
            let mut books = Books {
                accounted: told.accounted.clone(),
                told_by: by,
                first: Telling {
                    at: now,
                    is_first: true,
                    amount,
                    heard: ExactSum::ZERO,
                },
                least: None,
            };
            books.first.heard = self.heard(&books, &books.first);
            self.books = Some(books);
            return;
        };
        // Of parents that know all, whoever says less.
        let speaks_of_same = books.told_by == by || is_complete && books.accounted.is_empty();
        let least = books.least.map_or(books.first.amount, |least| least.amount);
        if speaks_of_same && amount < least {
            let mut least = Telling {
                at: now,
                is_first: false,
                amount,
                heard: ExactSum::ZERO,
            };
            least.heard = self.heard(&books, &least);
            books.least = Some(least);
        }
        self.books = Some(books);
    }

    /// What was told of that is a part of that.
    fn heard(&self, books: &Books, telling: &Telling) -> ExactSum {
        let mut heard = ExactSum::ZERO;
        for Kept { word, .. } in self.words.values() {
            if books.accounts_for(word.origin) {
                heard.add(telling.part_of(word));
            }
        }
        heard
    }

    /// Learning is over.
    pub(crate) fn forget(&mut self) {
        *self = Self::default();
    }

    /// Whether no holder told of anything.
    pub(crate) fn is_empty(&self) -> bool {
        self.words.is_empty()
    }

    /// Whether a parent has said how much earlier masterships handed out.
    pub(crate) fn has_books(&self) -> bool {
        self.books.is_some()
    }

    /// Of what earlier masterships handed out, as far as a parent knows, the most that was not told of
    /// yet.
    pub(crate) fn unheard(&self) -> ExactSum {
        let Some(books) = &self.books else {
            return ExactSum::ZERO;
        };
        let first = books.first.unheard();
        books
            .least
            .map_or(first, |least| first.min(least.unheard()))
    }

    /// What holders that are there told of, by who granted it.
    pub(crate) fn told_of(&self) -> Vec<HandedOut> {
        let part = |(origin, there): (&Origin, &ExactSum)| HandedOut {
            granted_by: *origin,
            capacity: there.rounded_up(),
        };
        self.there.iter().map(part).collect()
    }
}

impl Books {
    fn accounts_for(&self, origin: Origin) -> bool {
        self.accounted.is_empty() || origin.is_none_or(|origin| self.accounted.contains(&origin))
    }

    /// A holder told of more than before, or for longer.
    fn replace(&mut self, before: &Word, after: &Word) {
        if !self.accounts_for(after.origin) {
            return;
        }
        for telling in std::iter::once(&mut self.first).chain(&mut self.least) {
            let part = telling.part_of(before);
            telling.heard.subtract(part);
            telling.heard.add(telling.part_of(after));
        }
    }
}

impl Word {
    /// The same holder says so much again.
    fn add(&mut self, said: &Self) {
        // Of a smaller one nobody knows whether it is of all that the larger one was of.
        if said.amount >= self.amount {
            self.said = self.said.max(said.said);
        }
        self.amount = self.amount.max(said.amount);
        self.until = self.until.max(said.until);
        self.lasts = match (self.lasts, said.lasts) {
            (Some((amount, until)), Some((more, longer))) => {
                Some((amount.max(more), until.max(longer)))
            }
            (one, other) => one.or(other),
        };
    }

    /// No more of it is believed than this.
    fn lower(&mut self, most: Amount) {
        self.amount = self.amount.min(most);
        self.lasts = self.lasts.map(|(amount, until)| (amount.min(most), until));
    }
}

impl Telling {
    /// What of a word is a part of what lasted on at that moment.
    fn part_of(&self, word: &Word) -> Amount {
        let (amount, until) = match word.lasts {
            _ if word.said >= self.at => (word.amount, word.until),
            Some(lasts) => lasts,
            // Before that nothing is known of what ran down.
            None if self.is_first => (word.amount, word.until),
            None => (Amount::ZERO, word.until),
        };
        if until > self.at {
            amount
        } else {
            Amount::ZERO
        }
    }

    fn unheard(&self) -> ExactSum {
        ExactSum::from(self.amount).without(&self.heard)
    }
}

#[cfg(test)]
mod tests;
