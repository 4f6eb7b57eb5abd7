//! What happened from outside, by kind.

use crate::recording::{Mark, MarkKind};

/// Marks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct MarksOfKind<'a> {
    pub(super) kind: MarkKind,
    /// In order of time.
    pub(super) marks: Vec<&'a Mark>,
}

/// All kinds, in the order in which each first happened.
pub(super) fn by_kind(marks: &[Mark]) -> Vec<MarksOfKind<'_>> {
    let mut kinds: Vec<MarksOfKind<'_>> = Vec::new();
    for mark in marks {
        match kinds.iter_mut().find(|kind| kind.kind == mark.kind) {
            Some(kind) => kind.marks.push(mark),
            None => kinds.push(MarksOfKind {
                kind: mark.kind,
                marks: vec![mark],
            }),
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_first_mark() {
        let mark = |kind| Mark {
            at_s: 0.0,
            until_s: None,
            kind,
            text: String::new(),
        };
        let (kill, demand) = (MarkKind::Kill, MarkKind::Demand);
        let marks = [mark(kill), mark(demand), mark(kill)];
        let kinds = by_kind(&marks);
        let counts: Vec<_> = kinds.iter().map(|k| (k.kind, k.marks.len())).collect();
        assert_eq!(counts, [(kill, 2), (demand, 1)]);
    }
}
