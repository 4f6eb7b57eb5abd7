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
    /// Finds the fragments. They are numbered as they are ordered.
    contained: AhoCorasick,
    by_fragment: Vec<Ordered>,
    /// Those that want nothing between.
    others: Ordered,
}

impl Fragments {
    /// # Errors
    ///
    /// The globs, if they cannot be told apart by that.
    pub(super) fn of(globs: Ordered) -> Result<Self, Ordered> {
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
        for contained in self.contained.find_overlapping_iter(search.text) {
            if let Some(globs) = self.by_fragment.get(contained.pattern().as_usize()) {
                search.try_each(globs);
            }
        }
        search.try_each(&self.others);
    }
}

/// The longest text that stands in it as it is, between how it begins and how it ends.
fn fragment(glob: &Glob) -> Option<String> {
    let ((_, begins), (_, ends)) = (&glob.prefix, &glob.suffix);
    let between = glob
        .tokens
        .get(*begins..glob.tokens.len().saturating_sub(*ends))?;
    let texts = between.split(|token| !matches!(token, Token::Char(_)));
    let longest = texts.max_by_key(|text| text.len())?;
    let chars = longest.iter().filter_map(|token| match token {
        Token::Char(c) => Some(*c),
        Token::One | Token::Many | Token::Class { .. } => None,
    });
    Some(chars.collect()).filter(|text: &String| !text.is_empty())
}
