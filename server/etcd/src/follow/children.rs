//! Keys right below a prefix, without what is below them.
//!
//! The history of a document is below its key, and may be large. etcd has no filter for that, so each key is read on
//! its own, and a key that has something below it costs a second read.

use etcd_client::{GetOptions, ResponseHeader};

use crate::connection::EtcdConnection;
use crate::error::Error;
use crate::follow::RangeView;

/// Returns whether a key is right below a prefix, which ends with a slash.
pub(crate) fn is_child(prefix: &str, key: &str) -> bool {
    let name = key.strip_prefix(prefix);
    name.is_some_and(|name| !name.is_empty() && !name.contains('/'))
}

/// Reads the keys right below a prefix, all at one revision.
///
/// # Errors
///
/// If no endpoint answers, or etcd refuses.
pub(crate) async fn read(
    connection: &mut EtcdConnection,
    prefix: &str,
) -> Result<RangeView, Error> {
    let mut view = RangeView::default();
    let end = after_all_below(prefix.trim_end_matches('/'));
    let mut from = prefix.to_owned();
    loop {
        let one = GetOptions::new().with_range(end.clone()).with_limit(1);
        let one = one.with_revision(view.revision);
        let answer = connection.get("get", from.clone(), Some(one)).await?;
        if view.revision == 0 {
            view.revision = answer.header().map_or(0, ResponseHeader::revision);
        }
        let found = RangeView::of_answer(&answer).entries.into_iter().next();
        let Some((key, entry)) = found else {
            return Ok(view);
        };
        if is_child(prefix, &key) {
            from = format!("{key}\0");
            view.entries.insert(key, entry);
        } else if key == prefix {
            from = format!("{key}\0");
        } else {
            let name = key.strip_prefix(prefix).unwrap_or(&key);
            let name = name.split('/').next().unwrap_or(name);
            from = after_all_below(&format!("{prefix}{name}"));
        }
    }
}

/// Returns the first key after all keys below a key.
fn after_all_below(key: &str) -> String {
    // The character after a slash.
    format!("{key}0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_keys_right_below_are_children() {
        for (key, expected) in [
            ("/r/login", true),
            ("/r/login-2", true),
            ("/r/", false),
            ("/r", false),
            ("/r/login/history/1", false),
            ("/rules/login", false),
        ] {
            assert_eq!(is_child("/r/", key), expected, "{key}");
        }
    }
}
