//! Data of an etcd: its keys, their revisions, and its users.

use etcd_client::{CompactionOptions, GetOptions};

use crate::etcd::Etcd;

impl Etcd {
    /// Raises its revisions, so that those of a new cluster are lower.
    pub async fn go_far(&self) {
        for _ in 0..100 {
            self.put("/other", "something").await;
        }
    }

    /// Writes a key. Returns the revision.
    pub async fn put(&self, key: &str, value: impl AsRef<[u8]>) -> i64 {
        let answer = self
            .ask("put", async |client| {
                client.put(key, value.as_ref(), None).await
            })
            .await;
        answer.header().unwrap().revision()
    }

    /// Reads a key.
    pub async fn get(&self, key: &str) -> Option<String> {
        let answer = self
            .ask("get", async |client| client.get(key, None).await)
            .await;
        let value = answer.kvs().first().map(|kv| kv.value().to_vec());
        value.map(|value| String::from_utf8(value).unwrap())
    }

    /// Returns all keys with a prefix.
    pub async fn keys(&self, prefix: &str) -> Vec<String> {
        let options = GetOptions::new().with_prefix().with_keys_only();
        let answer = self
            .ask("get", async |client| {
                client.get(prefix, Some(options.clone())).await
            })
            .await;
        let keys = answer.kvs().iter().map(|kv| kv.key().to_vec());
        keys.map(|key| String::from_utf8(key).unwrap()).collect()
    }

    /// Deletes a key. Returns the revision.
    pub async fn delete(&self, key: &str) -> i64 {
        let answer = self
            .ask("delete", async |client| client.delete(key, None).await)
            .await;
        answer.header().unwrap().revision()
    }

    /// Returns the present revision.
    pub async fn revision(&self) -> i64 {
        let answer = self
            .ask("get", async |client| client.get("revision", None).await)
            .await;
        answer.header().unwrap().revision()
    }

    /// Compacts everything before the present revision, and returns that.
    pub async fn compact(&self) -> i64 {
        let revision = self.revision().await;
        self.ask("compact", async |client| {
            let options = CompactionOptions::new().with_physical();
            match client.compact(revision, Some(options)).await {
                // Another process may have done it, or this one did and its answer was lost.
                Err(error) if error.to_string().contains("has been compacted") => Ok(()),
                done => done.map(drop),
            }
        })
        .await;
        revision
    }

    /// Adds a user without any rights.
    pub async fn add_user(&self, name: &str, password: &str) {
        self.ask("add a user", async |client| {
            client.user_add(name, password, None).await
        })
        .await;
    }
}
