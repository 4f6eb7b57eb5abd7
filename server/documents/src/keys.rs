//! Keys of maps: unknown and repeated ones, and the words that were meant.

use std::collections::BTreeSet;

use crate::placed_value::{PlacedKey, PlacedValue};
use crate::problem::{Position, shortened};

/// How a key may be written: its name, and the names that it had before.
pub type Names = [&'static str];

/// Returns the keys of a map that are unknown or repeated: for each, its place, its name and a
/// message. A key may have older names, which stand behind its name.
pub fn key_problems(
    map: &[(PlacedKey, PlacedValue)],
    known: &[&Names],
) -> Vec<(Position, String, String)> {
    let names: Vec<&str> = known.iter().filter_map(|it| it.first().copied()).collect();
    let mut earlier = BTreeSet::new();
    let mut problems = Vec::new();
    for (key, _) in map {
        let found = known.iter().find(|it| it.contains(&key.text.as_str()));
        let message = match found.and_then(|it| it.first()) {
            None => match near(&key.text, &names) {
                Some(meant) => format!("is unknown; did you mean {meant}?"),
                None => format!("is unknown; known are {}", names.join(", ")),
            },
            Some(name) if earlier.insert(*name) => continue,
            Some(_) => "is given twice; remove one".to_owned(),
        };
        let (name, more) = shortened(&key.text);
        problems.push((key.place, format!("{name}{more}"), message));
    }
    problems
}

/// The known word that is meant by a misspelt one, if one is near.
pub fn near<'a>(written: &str, known: &[&'a str]) -> Option<&'a str> {
    let nearest = known
        .iter()
        .map(|word| (distance(written, word), *word))
        .min()?;
    (nearest.0 <= 1 + nearest.1.len() / 5).then_some(nearest.1)
}

/// Levenshtein distance: the number of characters to insert, remove or replace to turn one
/// word into the other.
pub fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut next = vec![i + 1];
        for (y, (diagonal, above)) in b.iter().zip(row.iter().zip(row.iter().skip(1))) {
            let left = next.last().copied().unwrap_or(0);
            next.push(
                (above + 1)
                    .min(left + 1)
                    .min(diagonal + usize::from(x != *y)),
            );
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
