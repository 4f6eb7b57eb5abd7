//! Which resources take another template because templates came, went or moved.
//!
//! A search with examples tells whether two globs can match the same id: it makes up ids from both globs, and looks
//! them up among the old and the new templates. So every example is true, but the search may miss some.

use std::collections::BTreeSet;

use doorward_engine::id::ResourceId;
use doorward_engine::templates::Templates;
use doorward_engine::templates::glob::Glob;

use crate::documents::ChangeLine;
use crate::templates::sample::{LOOKS_MAX, filled};

/// Lines that are shown at most.
const LINES_MAX: usize = 20;

/// Returns the ids that take another template than before because of these globs.
pub(super) fn lines(
    old: &Templates,
    new: &Templates,
    unsettled: &BTreeSet<&str>,
) -> Vec<ChangeLine> {
    let mut listed: BTreeSet<(&str, Option<&str>)> = BTreeSet::new();
    let mut lines = Vec::new();
    let mut looks: usize = 0;
    let all: BTreeSet<&str> = old
        .iter()
        .chain(new.iter())
        .map(|template| template.identifier_glob.as_str())
        .collect();
    for one in unsettled {
        for other in &all {
            if looks > LOOKS_MAX || lines.len() == LINES_MAX {
                let more = "there may be more ids that take another template".to_owned();
                lines.push(ChangeLine::new('>', more));
                return lines;
            }
            looks += 10;
            let Some((id, resource)) = common_id(one, other)
                .and_then(|id| ResourceId::new(&id).ok().map(|resource| (id, resource)))
            else {
                continue;
            };
            looks += old.len() + new.len();
            let Some(before) = old.find(&resource) else {
                // It was refused before, and is not now: whatever came was shown.
                continue;
            };
            let before = before.identifier_glob.as_str();
            let after = new.find(&resource).map(|now| now.identifier_glob.as_str());
            if after != Some(before) && listed.insert((before, after)) {
                let after = match after {
                    Some(after) => format!("{after:?}"),
                    None => "no template any more".to_owned(),
                };
                lines.push(ChangeLine::new(
                    '>',
                    format!("ids such as {id}: {before:?} → {after}"),
                ));
            }
        }
    }
    lines
}

/// An id that both globs match, if one can be made up.
fn common_id(one: &str, other: &str) -> Option<String> {
    let (ones, others) = (one.split('/'), other.split('/'));
    if ones.clone().count() != others.clone().count() {
        // No star matches a slash.
        return None;
    }
    let parts: Option<Vec<String>> = ones
        .zip(others)
        .map(|(one, other)| common_part(one, other))
        .collect();
    parts.map(|parts| parts.join("/"))
}

fn common_part(one: &str, other: &str) -> Option<String> {
    if one.is_empty() && other.is_empty() {
        return Some(String::new());
    }
    let (ones, others) = (Glob::parse(one).ok()?, Glob::parse(other).ok()?);
    [
        filled(one, "x"),
        filled(other, "x"),
        filled(one, ""),
        filled(other, ""),
        filled(one, &filled(other, "")),
        filled(other, &filled(one, "")),
        filled(one, &filled(other, "x")),
        filled(other, &filled(one, "x")),
    ]
    .into_iter()
    .find(|part| ones.matches(part) && others.matches(part))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_two_globs_match_is_made_up() {
        for (one, other, id) in [
            ("db/*", "db/*", Some("db/x")),
            ("db/*", "db/orders", Some("db/orders")),
            ("a*", "*b", Some("ab")),
            ("*/eu", "db/*", Some("db/eu")),
            ("a*b", "*c*", Some("acb")),
            ("[a-z]1", "?1", Some("a1")),
            ("[^a]", "*", Some("_")),
            ("a/*", "*", None),
            ("a*", "b*", None),
            ("\\*", "*", Some("*")),
        ] {
            assert_eq!(common_id(one, other).as_deref(), id, "{one} {other}");
            assert_eq!(
                common_id(other, one).is_some(),
                id.is_some(),
                "{one} {other}"
            );
        }
    }
}
