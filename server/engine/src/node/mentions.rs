//! Which resources a request has named already: a resource that is named twice is answered once.
//!
//! Ids differ by their hashes, which a look-up needs anyway; only those of one hash are compared. Of few, which
//! most requests have, nothing is allocated.

use hashbrown::HashTable;

use crate::node::resources::IdHash;

/// As many are compared one by one.
const FEW: usize = 16;

/// What a request has named, by the position in it.
#[derive(Debug)]
pub(super) enum Mentions {
    /// Of a short request: the hash at each position.
    Few([IdHash; FEW]),
    /// Of a longer one.
    Many(HashTable<(IdHash, usize)>),
}

impl Mentions {
    /// None of so many.
    pub(super) fn of_request(asks: usize) -> Self {
        if asks <= FEW {
            Self::Few([IdHash::default(); FEW])
        } else {
            Self::Many(HashTable::with_capacity(asks))
        }
    }

    /// The next one is named, at that position. Returns whether it was named before: `is_same` says of an earlier position
    /// whether the same resource stands there.
    pub(super) fn note(
        &mut self,
        position: usize,
        hash: IdHash,
        is_same: impl Fn(usize) -> bool,
    ) -> bool {
        match self {
            Self::Few(hashes) => {
                if let Some(place) = hashes.get_mut(position) {
                    *place = hash;
                }
                let before = hashes.get(..position).unwrap_or(&[]);
                let mut same = before.iter().enumerate().filter(|(_, it)| **it == hash);
                same.any(|(at, _)| is_same(at))
            }
            Self::Many(table) => {
                let is_named = |(kept, at): &(IdHash, usize)| *kept == hash && is_same(*at);
                if table.find(hash.spread(), is_named).is_some() {
                    return true;
                }
                table.insert_unique(hash.spread(), (hash, position), |(hash, _)| hash.spread());
                false
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::ResourceId;
    use crate::node::resources::Resources;

    /// Which of so many asks, each for one of so many resources in turn, name one that was named before.
    fn again(asks: usize, resources: usize, hash: impl Fn(&ResourceId) -> IdHash) -> Vec<bool> {
        let ids = (0..asks).map(|at| ResourceId::new(&format!("r{}", at % resources)).unwrap());
        let ids: Vec<_> = ids.collect();
        let mut mentions = Mentions::of_request(asks);
        let mut note = |at: usize| {
            let is_same = |before: usize| ids[before] == ids[at];
            mentions.note(at, hash(&ids[at]), is_same)
        };
        (0..asks).map(&mut note).collect()
    }

    #[test]
    fn what_is_named_twice_is_noticed_in_short_and_long_requests_whatever_the_hash() {
        let resources = Resources::new(7);
        for asks in [1, 2, FEW, FEW + 1, 300] {
            for different in [1, asks.div_ceil(2), asks] {
                let expected: Vec<bool> = (0..asks).map(|at| at >= different).collect();
                let by_id = again(asks, different, |id| resources.hash(id));
                assert_eq!(by_id, expected, "{different} of {asks}");
                let all_alike = again(asks, different, |_| IdHash::default());
                assert_eq!(all_alike, expected, "{different} of {asks}, of one hash");
            }
        }
    }
}
