//! Mutations of text: of the words and lines of documents and traces.

use std::ops::Range;

use crate::chance::Chance;
use crate::mutate::nasty;

/// Replaces a word by another one.
pub fn change_word(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    let mut text = String::from_utf8_lossy(bytes).into_owned();
    let words = words(&text);
    let at = match words.len() {
        0 => 0..text.len(),
        count => words[chance.below(count)].clone(),
    };
    let other = String::from_utf8_lossy(other);
    let others = self::words(&other);
    let new = match chance.below(6) {
        0 | 1 if !others.is_empty() => other[others[chance.below(others.len())].clone()].to_owned(),
        2 => text[at.clone()].repeat(2),
        3 => format!("{}{}", &text[at.clone()], nasty::word(chance)),
        _ => nasty::word(chance),
    };
    text.replace_range(at, &new);
    *bytes = text.into_bytes();
}

/// Changes a line: a word of it, its place, its indentation, or its number of copies.
pub fn change_lines(bytes: &mut Vec<u8>, other: &[u8], chance: &mut Chance) {
    if chance.once_in(2) {
        return change_word(bytes, other, chance);
    }
    let text = String::from_utf8_lossy(bytes).into_owned();
    let mut lines: Vec<String> = text.lines().map(str::to_owned).collect();
    if lines.is_empty() {
        lines.push(String::new());
    }
    let at = chance.below(lines.len());
    let to = chance.below(lines.len());
    match chance.below(7) {
        0 => {
            lines.remove(at);
        }
        1 => lines.insert(to, lines[at].clone()),
        2 => lines.swap(at, to),
        3 => lines[at].insert_str(0, "  "),
        4 => lines[at] = lines[at].strip_prefix("  ").unwrap_or("").to_owned(),
        5 => {
            let other = String::from_utf8_lossy(other);
            let others: Vec<&str> = other.lines().collect();
            let from = chance.below(others.len());
            let end = others.len().min(from + 1 + chance.below(8));
            let more = others.get(from..end).unwrap_or_default();
            lines.splice(at..at, more.iter().map(|line| (*line).to_owned()));
        }
        _ => {
            let end = lines.len().min(at + 1 + chance.below(8));
            lines.drain(at..end);
        }
    }
    *bytes = lines.join("\n").into_bytes();
    bytes.push(b'\n');
}

/// Returns all lines but one.
pub fn without_line(bytes: &[u8], number: usize) -> Option<Vec<u8>> {
    let mut lines: Vec<&[u8]> = bytes.split_inclusive(|byte| *byte == b'\n').collect();
    (number < lines.len()).then(|| {
        lines.remove(number);
        lines.concat()
    })
}

/// Returns the places of words: letters, digits, and characters that join them.
fn words(text: &str) -> Vec<Range<usize>> {
    let is_part = |c: char| c.is_alphanumeric() || "._-+".contains(c);
    let mut words: Vec<Range<usize>> = Vec::new();
    for (at, c) in text.char_indices().filter(|(_, c)| is_part(*c)) {
        let end = at + c.len_utf8();
        match words.last_mut() {
            Some(last) if last.end == at => last.end = end,
            _ => words.push(at..end),
        }
    }
    words
}
