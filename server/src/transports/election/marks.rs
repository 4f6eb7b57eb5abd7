//! All marks of a node, as a candidate reads them that has won.
//!
//! A million marks are too many for one answer of etcd, and reading them may take longer than the candidate's lease in
//! etcd may go without a renewal. So they are read in parts, reading stops in time, and it continues from there at the
//! next request. No server writes marks meanwhile: the last master has lost its key, and this one has not begun.

use std::sync::Arc;

use doorward_clock::Instant;
use doorward_engine::amount::Amount;
use doorward_engine::id::ResourceId;
use doorward_engine::node::marks::StoredMark;
use doorward_etcd::layout::NodeKeys;
use doorward_etcd::{Error, EtcdConnection};
use doorward_session::candidate::store::{LeaseId, MarkRecord, StoredMarks};
use etcd_client::{Client, GetOptions, KeyValue};

use super::values::renew;

/// Marks in one answer, about: far below the size of an answer.
const PART: i64 = 4_000;

/// Reads marks step by step.
#[derive(Debug, Default)]
pub(super) struct MarksReader(Option<Progress>);

#[derive(Debug)]
struct Progress {
    /// The mastership for which they are read, by the revision of its key.
    won: u64,
    found: StoredMarks,
    /// Beginnings of the parts that are left.
    left: Vec<String>,
}

impl MarksReader {
    /// Renews a lease, and reads the marks. None: reading takes beyond `until`; ask again.
    pub(super) async fn read(
        &mut self,
        (won, lease): (u64, LeaseId),
        keys: &NodeKeys,
        connection: &mut EtcdConnection,
        until: Instant,
    ) -> Result<Option<Arc<StoredMarks>>, Error> {
        let known = self.0.take().filter(|it| it.won == won);
        let begun = match known {
            None => begin(won, lease, keys, connection).await?,
            Some(known) => {
                let renewal = async |client: &mut Client| renew(client.clone(), Some(lease)).await;
                connection.call("renew a lease", renewal).await?;
                known
            }
        };
        let progress = self.0.insert(begun);
        while let Some(digits) = progress.left.last() {
            if Instant::now() >= until {
                return Ok(None);
            }
            let (prefix, all) = (keys.marks_of(digits), GetOptions::new().with_prefix());
            let answer = connection.get("read marks", prefix, Some(all)).await?;
            progress.add(keys, answer.kvs());
            progress.left.pop();
        }
        let read = self.0.take().map(|progress| progress.found);
        Ok(Some(Arc::new(read.unwrap_or_default())))
    }
}

impl Progress {
    fn add(&mut self, keys: &NodeKeys, entries: &[KeyValue]) {
        let entries = entries.iter();
        let entries = entries.filter_map(|entry| mark(keys, entry.key_str().ok()?, entry.value()));
        for (resource, mark) in entries {
            match mark {
                Some(mark) => self.found.marks.insert(resource, mark),
                None => self.found.has_unreadable = true,
            }
        }
    }
}

/// Renews the lease, and reads the head and, if they are few, all marks: in the time of one request.
async fn begin(
    won: u64,
    lease: LeaseId,
    keys: &NodeKeys,
    connection: &mut EtcdConnection,
) -> Result<Progress, Error> {
    let (head, all) = (keys.marks_head(), keys.marks_of(""));
    let (head, all, ()) = connection
        .call("read marks", async move |client: &mut Client| {
            let few = GetOptions::new().with_prefix().with_limit(PART);
            let (mut heads, mut marks) = (client.clone(), client.clone());
            tokio::try_join!(
                heads.get(head, None),
                marks.get(all, Some(few)),
                renew(client.clone(), Some(lease)),
            )
        })
        .await?;
    let entry = head.kvs().first();
    let found = StoredMarks {
        head: entry.and_then(|it| serde_json::from_slice(it.value()).ok()),
        head_modified: entry.map_or(0, |it| u64::try_from(it.mod_revision()).unwrap_or(0)),
        ..StoredMarks::default()
    };
    let left = match all.count() {
        ..=PART => Vec::new(),
        count if count <= 16 * PART => (0..16).map(|part| format!("{part:x}")).collect(),
        _ => (0..256).map(|part| format!("{part:02x}/")).collect(),
    };
    let mut progress = Progress { won, found, left };
    if progress.left.is_empty() {
        progress.add(keys, all.kvs());
    }
    Ok(progress)
}

/// Returns the resource of an entry and its mark, if that is valid. None: it is no mark.
fn mark<'a>(keys: &NodeKeys, key: &'a str, value: &[u8]) -> Option<(&'a str, Option<StoredMark>)> {
    let resource = keys.marked(key)?;
    let mark = || {
        let MarkRecord { amount, longest } = serde_json::from_slice(value).ok()?;
        amount.map(Amount::new).transpose().ok()?;
        ResourceId::new(resource).ok()?;
        Some((amount, longest))
    };
    Some((resource, mark()))
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn only_valid_marks_of_the_node_are_read() {
        let keys = NodeKeys::new("/doorward", "root");
        let read = |resource: &str, value: &str| {
            let key = keys.mark(resource);
            let read = mark(&keys, &key, value.as_bytes());
            read.map(|(resource, mark)| (resource.to_owned(), mark))
        };
        let length = Duration::from_secs(60);
        for (value, expected) in [
            (
                r#"{"amount": 0.3, "longest_ms": 60000}"#,
                Some((Some(0.3), length)),
            ),
            (r#"{"longest_ms": 60000}"#, Some((None, length))),
            (r#"{"amount": -1, "longest_ms": 60000}"#, None),
            (r#"{"amount": 1}"#, None),
            ("by hand", None),
        ] {
            let expected = Some(("a/b".to_owned(), expected));
            assert_eq!(read("a/b", value), expected, "{value}");
        }
        let nameless = read("", r#"{"longest_ms": 60000}"#);
        assert_eq!(nameless, Some((String::new(), None)));
        assert_eq!(mark(&keys, &keys.marks_head(), b"{}"), None);
    }
}
