//! Plain sentences: comments and documents name their subject.
//!
//! A sentence fails if a clause stands for its subject ("What is not refused …", "How many …"), or if a person
//! without a name acts in it ("whoever", "nobody"). Questions are exempt. The check is a hint for writers: one
//! failing sentence in a hundred is allowed.

use std::fs;

use super::named_files;

/// Folders and files that are held to plain sentences.
const PLACES: [&str; 7] = [
    "simulator/",
    "client/",
    "server/",
    "tests/",
    "docs/",
    "proto/",
    "README.md",
];

/// Share of the sentences of a place that may fail, in percent.
const FAILING_PERCENT_MAX: usize = 1;

/// First words of a clause that stands for a subject.
const CLAUSES: &str = "what|who|whom|whose|whoever|whatever|those|how many|how much|how long|how far|how often|\
    so many|so much|so long|as many|as much|that which|until when|since when|by what|by when|from when|of what|\
    for what|to whom|with what|in what|none is|none of|nothing is|all that";

/// Persons without a name.
const UNNAMED: [&str; 5] = ["whoever", "nobody", "somebody", "everybody", "anybody"];

/// Paragraphs that people read: comments of source, and documents without their code blocks and headings.
fn paragraphs(name: &str, text: &str) -> Vec<String> {
    let is_document = name.ends_with(".md");
    let mut paragraphs = vec![String::new()];
    let mut in_code = false;
    for line in text.lines().map(str::trim) {
        let comment = line
            .strip_prefix("//")
            .map(|it| it.trim_start_matches(['/', '!']).trim());
        let line = if is_document {
            line
        } else {
            comment.unwrap_or_default()
        };
        let is_fence = line.starts_with("```");
        in_code ^= is_fence;
        let (item, is_item) = match line.strip_prefix("- ") {
            Some(item) => (item, true),
            None => (line, false),
        };
        let cells = item.trim_matches('|').split('|').map(str::trim);
        for (index, cell) in cells.enumerate() {
            if index > 0 || is_item || line.is_empty() || line.starts_with(['|', '#']) || is_fence {
                paragraphs.push(String::new());
            }
            let is_prose = !in_code && !is_fence && !line.starts_with('#');
            if let Some(paragraph) = paragraphs.last_mut().filter(|_| is_prose) {
                *paragraph += cell;
                *paragraph += " ";
            }
        }
    }
    paragraphs
}

/// Sentences of a paragraph, each with its final mark.
fn sentences(paragraph: &str) -> impl Iterator<Item = &str> {
    let mut rest = paragraph;
    std::iter::from_fn(move || {
        let is_end = |(at, mark): &(usize, &str)| {
            let next = rest[at + mark.len()..].chars().next();
            next.is_some_and(|it| it.is_uppercase() || "`[*".contains(it))
        };
        let marks = [". ", "! ", "? ", ": ", "; "];
        let ends = marks.iter().flat_map(|mark| rest.match_indices(mark));
        let end = ends.filter(is_end).map(|(at, mark)| at + mark.len()).min();
        let (sentence, after) = rest.split_at(end.unwrap_or(rest.len()));
        rest = after;
        Some(sentence.trim()).filter(|it| !it.is_empty())
    })
}

/// Tells whether a reader has to look for the subject of a sentence.
fn lacks_subject(sentence: &str) -> bool {
    let sentence = sentence.to_lowercase();
    let begins_with = |clause: &str| {
        let rest = sentence.strip_prefix(clause);
        rest.is_some_and(|rest| !rest.starts_with(char::is_alphanumeric))
    };
    let is_word = |word: &str| UNNAMED.contains(&word.trim_matches(|c: char| !c.is_alphabetic()));
    !sentence.ends_with('?')
        && (CLAUSES.split('|').any(begins_with) || sentence.split_whitespace().any(is_word))
}

#[test]
fn sentences_name_their_subject() {
    for place in PLACES {
        let (mut all, mut failing) = (0, Vec::new());
        for (name, path) in [".rs", ".md", ".proto"].into_iter().flat_map(named_files) {
            if !name.starts_with(place) {
                continue;
            }
            let text = fs::read_to_string(path).unwrap();
            for paragraph in paragraphs(&name, &text) {
                let found: Vec<&str> = sentences(&paragraph).collect();
                all += found.len();
                let found = found.into_iter().filter(|it| lacks_subject(it));
                failing.extend(found.map(|sentence| format!("{name}: {sentence}")));
            }
        }
        let count = failing.len();
        assert!(
            count * 100 <= all * FAILING_PERCENT_MAX,
            "{place}: {count} of {all} sentences have no subject:\n{}",
            failing.join("\n")
        );
    }
}

#[test]
fn a_clause_or_an_unnamed_person_is_no_subject() {
    for (sentence, expected) in [
        ("What is not refused is counted.", true),
        ("How many former processes are remembered", true),
        ("A lease that nobody holds.", true),
        ("Whatever happens, it is over.", true),
        ("What is a lease?", false),
        ("Whole numbers only.", false),
        ("The server counts every accepted request.", false),
    ] {
        assert_eq!(lacks_subject(sentence), expected, "{sentence}");
    }
    let text = "/// First. Second\n/// goes on: `x`.\nlet it = 1; // not read\n//! | a | b |\n";
    let paragraphs = paragraphs("a.rs", text);
    let found: Vec<&str> = paragraphs.iter().flat_map(|it| sentences(it)).collect();
    assert_eq!(found, ["First.", "Second goes on:", "`x`.", "a", "b"]);
}
