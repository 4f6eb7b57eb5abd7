//! What happened from outside, by kind.

use crate::recording::Mark;

/// Marks of one kind.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Kind<'a> {
    pub(super) name: &'a str,
    /// In order of time.
    pub(super) marks: Vec<&'a Mark>,
}

/// All kinds, in the order in which each first happened.
pub(super) fn by_kind(marks: &[Mark]) -> Vec<Kind<'_>> {
    let mut kinds: Vec<Kind<'_>> = Vec::new();
    for mark in marks {
        match kinds.iter_mut().find(|kind| kind.name == mark.kind) {
            Some(kind) => kind.marks.push(mark),
            None => kinds.push(Kind {
                name: &mark.kind,
                marks: vec![mark],
            }),
        }
    }
    kinds
}

/// Whether a kind is something that goes wrong, as against something that somebody wants: a change
/// of demand, of templates, a hand-over, or the end of a client.
pub(super) fn is_fault(kind: &str) -> bool {
    !matches!(kind, "demand" | "edit" | "elect" | "leave" | "close")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_stand_in_the_order_of_their_first_mark() {
        let mark = |kind: &str| Mark {
            kind: kind.to_owned(),
            ..Mark::default()
        };
        let marks = [mark("kill"), mark("demand"), mark("kill")];
        let kinds = by_kind(&marks);
        let counts: Vec<_> = kinds.iter().map(|k| (k.name, k.marks.len())).collect();
        assert_eq!(counts, [("kill", 2), ("demand", 1)]);
        assert!(is_fault("kill") && !is_fault("demand"));
    }
}
