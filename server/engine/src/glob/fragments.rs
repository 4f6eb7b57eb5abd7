//! Globs by a text that every text contains that they match.
//!
//! One walk over a text finds all of those that it contains, however many there are (Aho and Corasick, 1975).

use std::collections::{BTreeMap, BTreeSet};

use aho_corasick::{AhoCorasick, AhoCorasickKind};

use crate::glob::ordered::{Ordered, Search};
use crate::glob::{Glob, Token};

/// Globs that begin and end alike. See the [module](self).
#[derive(Clone, Debug)]
pub(super) struct Fragments {
    /// Finds the fragments. The number of each is its place in `by_fragment`.
    contained: AhoCorasick,
    by_fragment: Vec<Ordered>,
    /// Those that have no literal text between.
    others: Ordered,
}

impl Fragments {
    /// # Errors
    ///
    /// The globs, if they cannot be told apart by that.
    pub(super) fn of(globs: Ordered) -> Result<Self, Ordered> {
        let mut shared: BTreeMap<String, usize> = BTreeMap::new();
        for (_, glob) in &globs {
            for literal in literals(glob) {
                *shared.entry(literal).or_default() += 1;
            }
        }
        let fragment = |glob: &Glob| rarest(glob, &shared);
        let fragments: BTreeSet<String> = globs
            .iter()
            .filter_map(|(_, glob)| fragment(glob))
            .collect();
        if fragments.len() < 2 {
            return Err(globs);
        }
        let contained = AhoCorasick::builder()
            .kind(Some(AhoCorasickKind::ContiguousNFA))
            .build(&fragments);
        // There are more than it can number.
        let Ok(contained) = contained else {
            return Err(globs);
        };
        let mut by_fragment: BTreeMap<String, Ordered> = fragments
            .into_iter()
            .map(|fragment| (fragment, Ordered::new()))
            .collect();
        let mut others = Ordered::new();
        for (place, glob) in globs {
            let bucket = fragment(&glob).and_then(|it| by_fragment.get_mut(&it));
            bucket.unwrap_or(&mut others).push((place, glob));
        }
        Ok(Self {
            contained,
            by_fragment: by_fragment.into_values().collect(),
            others,
        })
    }

    /// Tries those that a text may match.
    pub(super) fn search(&self, search: &mut Search<'_>) {
        let contained = self.contained.find_overlapping_iter(search.text);
        let mut contained: Vec<usize> = contained.map(|it| it.pattern().as_usize()).collect();
        // A text may contain one many times.
        contained.sort_unstable();
        contained.dedup();
        for number in contained {
            if let Some(globs) = self.by_fragment.get(number) {
                search.try_each(globs);
            }
        }
        search.try_each(&self.others);
    }
}

/// The text that stands in a glob as it is, between how it begins and how it ends, and in the fewest others; of several,
/// the longest.
fn rarest(glob: &Glob, shared: &BTreeMap<String, usize>) -> Option<String> {
    let shared_by = |literal: &String| shared.get(literal).copied().unwrap_or_default();
    literals(glob)
        .into_iter()
        .min_by_key(|literal| (shared_by(literal), usize::MAX - literal.len()))
}

/// The texts that stand in a glob as they are, between how it begins and how it ends.
fn literals(glob: &Glob) -> BTreeSet<String> {
    let ((_, begins), (_, ends)) = (&glob.prefix, &glob.suffix);
    let behind = glob.tokens.len().saturating_sub(*ends);
    let between = glob.tokens.get(*begins..behind).unwrap_or_default();
    let texts = between.split(|token| !matches!(token, Token::Char(_)));
    let text = |tokens: &[Token]| {
        let chars = tokens.iter().filter_map(|token| match token {
            Token::Char(c) => Some(*c),
            Token::One | Token::Many | Token::Class { .. } => None,
        });
        chars.collect::<String>()
    };
    texts.map(text).filter(|text| !text.is_empty()).collect()
}
