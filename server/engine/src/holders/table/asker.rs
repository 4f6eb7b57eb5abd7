//! The holder behind a request, and the hash of its name once a table has needed it.
//!
//! A request that names many resources looks for one holder in each of their tables, which all have the node's key: so
//! the name is hashed once. Name and hash are one value: the hash of another name would not find the holder, and the
//! table would add it twice.

use std::cell::OnceCell;

use crate::holders::table::places::NameHash;
use crate::id::HolderId;

/// See the [module](self).
#[derive(Clone, Debug)]
pub(crate) struct Asker {
    holder: HolderId,
    hash: OnceCell<u32>,
}

impl Asker {
    /// A holder whose name is not hashed yet.
    pub(crate) fn new(holder: HolderId) -> Self {
        let hash = OnceCell::new();
        Self { holder, hash }
    }

    /// The holder.
    pub(crate) fn holder(&self) -> &HolderId {
        &self.holder
    }

    /// The hash of its name by the key of a node, which is the same at each call.
    pub(super) fn hash(&self, key: NameHash) -> u32 {
        let of_name = || key.of_name(&self.holder);
        let hash = *self.hash.get_or_init(of_name);
        debug_assert_eq!(hash, of_name(), "by another key");
        hash
    }
}
