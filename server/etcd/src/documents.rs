//! Documents in etcd, with every version that was written through the command line.
//!
//! The document stands under its key exactly as the operator wrote it. A write is one transaction
//! that puts the document and a [`Version`] of it, and goes through only if the document has not changed
//! since the operator looked. A document that another program (`etcdctl`) wrote becomes a version of its
//! own before it is overwritten. So no write through the command line loses what was in
//! force, whatever etcd compacts. Two other writes in a row, without one of the command line between
//! them, leave only the second.
//!
//! Numbers of versions count from 1; a new one is one more than the largest that is there. So a
//! number is used again only after the newest versions were deleted by another way. Keys below the
//! history whose name is no number are not looked at.

mod version;

use std::time::{Duration, SystemTime};

use etcd_client::{Compare, CompareOp, GetOptions, Txn, TxnOp, TxnOpResponse};
use thiserror::Error;
use tokio::time::Instant;

use crate::connection::EtcdConnection;
use crate::error::Error;
use crate::layout::{DocumentKeys, VERSION_MAX};
pub use version::{Recorded, Version, VersionKind};

/// Largest request that etcd accepts by default: 1.5 MiB.
const REQUEST_BYTES_MAX: usize = 3 * 512 * 1024;

/// Of that, what is left for all that is neither key nor value.
const REQUEST_BYTES_SPARE: usize = 4 * 1024;

/// Versions of which one answer tells the keys. etcd reads the versions themselves for that, which
/// may be large, and if it was to sort them, it would read all there are for every answer.
const LISTED_AT_ONCE: i64 = 50;

/// A document under its key, and what is known of its history.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct StoredDocument {
    /// The document. None: there is none.
    pub document: Option<Vec<u8>>,
    /// The revision at which etcd last saw it written; 0: there is no document.
    pub mod_revision: i64,
    /// The versions there are, the newest first.
    pub numbers: Vec<u64>,
    /// The newest of them.
    pub newest: Option<Recorded>,
}

impl StoredDocument {
    /// Returns whether the document is the newest version, so no other program has written it.
    pub fn is_recorded(&self) -> bool {
        let newest = self.newest.as_ref().map(|recorded| &recorded.version);
        match (&self.document, newest) {
            (None, None) => true,
            (Some(document), Some(Ok(newest))) => newest.is_of(document),
            _ => false,
        }
    }

    /// The versions that a write adds: what was found if it is not recorded, and the change.
    ///
    /// # Errors
    ///
    /// If there are no numbers left for them.
    pub fn versions_for(&self, change: &DocumentEdit<'_>) -> Result<Vec<Version>, WriteError> {
        let newest = self.numbers.first().copied().unwrap_or(0);
        // At most two are added.
        if newest > VERSION_MAX - 2 {
            return Err(WriteError::NoNumber { newest });
        }
        let mut number = newest + 1;
        let mut versions = Vec::new();
        if let Some(document) = &self.document
            && !self.is_recorded()
        {
            versions.push(Version::found(number, document, change.when));
            number += 1;
        }
        versions.push(Version::of(number, change));
        Ok(versions)
    }
}

/// A change that an operator writes.
#[derive(Clone, Debug)]
pub struct DocumentEdit<'a> {
    /// The whole document.
    pub document: &'a str,
    /// By which command.
    pub kind: VersionKind,
    /// Name of the author.
    pub who: &'a str,
    /// Reason for the change.
    pub why: Option<&'a str>,
    /// When, by the operator's clock.
    pub when: SystemTime,
}

/// Why nothing was written, or why that is not known.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WriteError {
    /// The document has changed since the operator looked.
    #[error("the document has changed meanwhile")]
    Changed,
    /// A document stands in the transaction twice: as itself, and as a version.
    #[error(
        "the document is too large for etcd: written together with its version in the history it \
         makes {request_bytes} bytes, and etcd takes {REQUEST_BYTES_MAX}. This one may have about \
         {document_bytes_max} bytes and has {document_bytes}"
    )]
    TooLarge {
        /// How large it is.
        document_bytes: usize,
        /// Size of the whole transaction.
        request_bytes: usize,
        /// How large a document like this may be, about.
        document_bytes_max: usize,
    },
    /// Another program gave a version a number that leaves none.
    #[error(
        "the newest version has the number {newest}, and none is larger than {VERSION_MAX}: remove \
         that version from the history first"
    )]
    NoNumber {
        /// Of the newest version.
        newest: u64,
    },
    /// etcd did not answer when it was to write, and not when it was asked whether it had.
    #[error("{0}; whether the document was written is not known: look at the history")]
    Unknown(Error),
    /// etcd did not do it.
    #[error(transparent)]
    Etcd(#[from] Error),
}

/// Reads the document and what is known of its history.
///
/// # Errors
///
/// If no endpoint answers, or etcd says no.
pub async fn read(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
) -> Result<StoredDocument, Error> {
    let mut standing = StoredDocument::default();
    let mut from = keys.history().into_bytes();
    loop {
        // The document each time: it is as the last versions tell.
        let answer = again(connection, async |connection| {
            let listing = GetOptions::new()
                .with_range(keys.history_end())
                .with_keys_only()
                .with_limit(LISTED_AT_ONCE);
            let reads = Txn::new().and_then([
                TxnOp::get(keys.document(), None),
                TxnOp::get(from.clone(), Some(listing)),
            ]);
            connection.txn("read the document", reads).await
        })
        .await?;
        let mut responses = answer.op_responses().into_iter();
        if let Some(TxnOpResponse::Get(document)) = responses.next() {
            let kv = document.kvs().first();
            standing.document = kv.map(|kv| kv.value().to_vec());
            standing.mod_revision = kv.map_or(0, |kv| kv.mod_revision());
        }
        let Some(TxnOpResponse::Get(listing)) = responses.next() else {
            break;
        };
        let listed = listing.kvs();
        let numbers = listed.iter().filter_map(|kv| keys.number(kv.key()));
        standing.numbers.extend(numbers);
        let Some(last) = listed.last().filter(|_| listing.more()) else {
            break;
        };
        // The key right after it.
        from = last.key().to_vec();
        from.push(0);
    }
    standing.numbers.reverse();
    if let Some(newest) = standing.numbers.first() {
        standing.newest = version(connection, keys, *newest).await?;
    }
    Ok(standing)
}

/// Reads a version. None: there is none of that number.
///
/// # Errors
///
/// If no endpoint answers, or etcd says no.
pub async fn version(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    number: u64,
) -> Result<Option<Recorded>, Error> {
    let answer = again(connection, async |connection| {
        let key = keys.version(number);
        connection.get("read a version", key, None).await
    })
    .await?;
    let kv = answer.kvs().first();
    Ok(kv.map(|kv| Recorded::parse(number, kv.value())))
}

/// Reads the version that comes after a number. None: there is none.
///
/// # Errors
///
/// If no endpoint answers, or etcd says no.
pub async fn next_version(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    after: u64,
) -> Result<Option<Recorded>, Error> {
    let mut from = keys.version(after).into_bytes();
    loop {
        // The key right after it.
        from.push(0);
        let one = GetOptions::new().with_range(keys.history_end());
        let read = connection.get("read a version", from.clone(), Some(one.with_limit(1)));
        let answer = read.await?;
        let Some(kv) = answer.kvs().first() else {
            return Ok(None);
        };
        if let Some(number) = keys.number(kv.key()) {
            return Ok(Some(Recorded::parse(number, kv.value())));
        }
        // It is no version.
        from = kv.key().to_vec();
    }
}

/// Writes a document and its version, unless another writer was faster since `seen` was read.
/// Returns the version.
///
/// # Errors
///
/// If another writer was faster, the document is too large, no endpoint answers, or etcd refuses.
pub async fn write(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    seen: &StoredDocument,
    change: &DocumentEdit<'_>,
) -> Result<Version, WriteError> {
    let mut versions = seen.versions_for(change)?;
    if let [found, _] = &mut versions[..]
        && request_bytes(keys, None, std::slice::from_ref(found)) > REQUEST_BYTES_MAX
    {
        found.leave_out_document();
    }
    let Some(own) = versions.last().cloned() else {
        return Err(WriteError::Changed);
    };
    let alone = request_bytes(keys, Some(change.document), std::slice::from_ref(&own));
    if alone > REQUEST_BYTES_MAX {
        let document_bytes = change.document.len();
        return Err(WriteError::TooLarge {
            document_bytes,
            request_bytes: alone,
            document_bytes_max: document_bytes * REQUEST_BYTES_MAX / alone / 1000 * 1000,
        });
    }
    if let [found, _] = &versions[..]
        && request_bytes(keys, Some(change.document), &versions) > REQUEST_BYTES_MAX
    {
        // Both do not fit into one request. The document that was found may stand in the history
        // alone: it is in force until it is overwritten.
        commit(connection, keys, seen, None, std::slice::from_ref(found)).await?;
        versions.remove(0);
    }
    commit(connection, keys, seen, Some(change.document), &versions).await?;
    Ok(own)
}

/// Puts everything or nothing.
async fn commit(
    connection: &mut EtcdConnection,
    keys: &DocumentKeys,
    seen: &StoredDocument,
    document: Option<&str>,
    versions: &[Version],
) -> Result<(), WriteError> {
    let is_seen = Compare::mod_revision(keys.document(), CompareOp::Equal, seen.mod_revision);
    let mut guards = vec![is_seen];
    let mut puts = Vec::new();
    for version in versions {
        let key = keys.version(version.number);
        guards.push(Compare::create_revision(key.clone(), CompareOp::Equal, 0));
        puts.push(TxnOp::put(key, version.to_json(), None));
    }
    puts.extend(document.map(|document| TxnOp::put(keys.document(), document, None)));
    let txn = Txn::new().when(guards).and_then(puts);
    // Done twice it is done once: the guards see to that.
    let written = again(connection, async |connection| {
        connection.txn("write the document", txn.clone()).await
    })
    .await;
    let refused = match written {
        Ok(answer) if answer.succeeded() => return Ok(()),
        Ok(_) => WriteError::Changed,
        Err(error @ Error::Unreachable { .. }) => WriteError::Unknown(error),
        Err(error) => return Err(error.into()),
    };
    // An attempt that had no answer may have been done all the same.
    let Some(last) = versions.last() else {
        return Err(refused);
    };
    match (version(connection, keys, last.number).await, refused) {
        (Ok(Some(there)), _) if there.version.as_ref() == Ok(last) => Ok(()),
        // It was not, and may yet be: the answer only came from elsewhere.
        (_, refused) => Err(refused),
    }
}

/// Asks one endpoint after the other, and the first one once more: its connection may have been
/// idle for so long that it is dead. All of that takes no longer than a call may: the
/// time that is left is shared by the endpoints that have not been asked.
async fn again<T>(
    connection: &mut EtcdConnection,
    ask: impl AsyncFn(&mut EtcdConnection) -> Result<T, Error>,
) -> Result<T, Error> {
    let whole = connection.call_timeout();
    let began = Instant::now();
    let mut others = connection.endpoints();
    loop {
        let left = whole.saturating_sub(began.elapsed());
        let share = left / u32::try_from(others.max(1)).unwrap_or(u32::MAX);
        // In full milliseconds, for people.
        let share = u64::try_from(share.as_micros().div_ceil(1000)).unwrap_or(u64::MAX);
        connection.set_call_timeout(Duration::from_millis(share.max(1)));
        let answer = ask(connection).await;
        connection.set_call_timeout(whole);
        let is_over = others == 0 || began.elapsed() >= whole;
        match answer {
            Err(Error::Unreachable { .. }) if !is_over => others -= 1,
            answer => return answer,
        }
    }
}

/// Returns the approximate size of a transaction, in bytes.
fn request_bytes(keys: &DocumentKeys, document: Option<&str>, versions: &[Version]) -> usize {
    let key_bytes = keys.version(0).len();
    let versions = versions.iter().map(|version| version.to_json().len());
    let versions: usize = versions.map(|bytes| bytes + 2 * key_bytes).sum();
    versions + 2 * key_bytes + document.map_or(0, str::len) + REQUEST_BYTES_SPARE
}

#[cfg(test)]
mod tests;
