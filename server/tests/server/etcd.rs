//! An etcd process of one's own, and what servers write there, written by hand.
//!
//! The binary is `$DOORWARD_TEST_ETCD`, else `tests/etcd/etcd` in the target directory, else `etcd`
//! on the path.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

use doorward_etcd::config::Endpoint;
use doorward_etcd::layout::{DEFAULT_PREFIX, NodeKeys};
use doorward_etcd::{Config, Connection};

/// Longer than etcd takes to start on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A cluster of one member, on free ports of loopback. Killed when dropped.
pub(crate) struct Etcd {
    process: Option<Child>,
    directory: tempfile::TempDir,
    client: String,
    peer: String,
}

impl Etcd {
    pub(crate) async fn start() -> Self {
        let (client, peer) = (free(), free());
        let mut etcd = Self {
            process: None,
            directory: tempfile::tempdir().unwrap(),
            client,
            peer,
        };
        etcd.start_again().await;
        etcd
    }

    /// The address of a node there.
    pub(crate) fn address(&self, node: &str) -> String {
        format!("etcd://{}/{node}", self.client)
    }

    /// The member, `host:port`.
    pub(crate) fn endpoint(&self) -> &str {
        &self.client
    }

    /// It is gone, with nothing lost.
    pub(crate) fn stop(&mut self) {
        if let Some(mut process) = self.process.take() {
            let _ = process.kill();
            let _ = process.wait();
        }
    }

    /// It hangs: connections are taken, and nothing is answered.
    pub(crate) fn freeze(&self) {
        let id = self.process.as_ref().unwrap().id().to_string();
        let sent = Command::new("kill").args(["-s", "STOP", &id]).status();
        assert!(sent.unwrap().success());
    }

    /// After it was stopped, with what it had.
    pub(crate) async fn start_again(&mut self) {
        let (client, peer) = (
            format!("http://{}", self.client),
            format!("http://{}", self.peer),
        );
        let process = Command::new(binary())
            .arg("--data-dir")
            .arg(self.directory.path())
            .args(["--name", "e", "--logger", "zap", "--log-level", "error"])
            .args([
                "--listen-client-urls",
                &client,
                "--advertise-client-urls",
                &client,
            ])
            .args([
                "--listen-peer-urls",
                &peer,
                "--initial-advertise-peer-urls",
                &peer,
            ])
            .args(["--initial-cluster", &format!("e={peer}")])
            .env_clear()
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        let Ok(process) = process else {
            panic!("there is no etcd binary; tests/install-etcd gets one");
        };
        self.process = Some(process);
        let ready = async {
            while self.try_put("/ready", "").await.is_err() {
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        let is_ready = tokio::time::timeout(PATIENCE, ready).await;
        assert!(is_ready.is_ok(), "etcd does not answer");
    }

    /// A server says that it is there.
    pub(crate) async fn register(&self, node: &str, address: &str) {
        let value = format!(
            r#"{{"node":"{node}","address":"{address}","server":"{address}","role":"root",
                "level":0,"version":"0.1.0"}}"#
        );
        self.put(&keys(node).server(address), &value).await;
    }

    /// A server is not there any more.
    pub(crate) async fn unregister(&self, node: &str, address: &str) {
        self.delete(&keys(node).server(address)).await;
    }

    /// A server is the master from now on.
    pub(crate) async fn elect(&self, node: &str, address: &str) {
        let value = format!(r#"{{"address":"{address}","server":"{address}"}}"#);
        self.delete(&keys(node).master()).await;
        self.put(&keys(node).master(), &value).await;
    }

    /// There is no master any more; it was that of an epoch.
    pub(crate) async fn depose(&self, node: &str, address: &str, epoch: u64) {
        let value = format!(
            r#"{{"epoch":{epoch},"address":"{address}","server":"{address}","length_ms":5000,
                "resigned":true}}"#
        );
        self.put(&keys(node).term(), &value).await;
        self.delete(&keys(node).master()).await;
    }

    async fn put(&self, key: &str, value: &str) {
        self.try_put(key, value).await.unwrap();
    }

    async fn try_put(&self, key: &str, value: &str) -> Result<(), doorward_etcd::Error> {
        let (key, value) = (key.to_owned(), value.to_owned());
        let mut connection = self.connection();
        let put = connection.call("put", async move |client| {
            client.put(key, value, None).await.map(drop)
        });
        put.await
    }

    async fn delete(&self, key: &str) {
        let key = key.to_owned();
        let mut connection = self.connection();
        let delete = connection.call("delete", async move |client| {
            client.delete(key, None).await.map(drop)
        });
        delete.await.unwrap();
    }

    fn connection(&self) -> Connection {
        let endpoint = Endpoint::parse(&self.client).unwrap();
        Connection::new(Arc::new(Config::new(vec![endpoint])))
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        self.stop();
    }
}

fn keys(node: &str) -> NodeKeys {
    NodeKeys::new(DEFAULT_PREFIX, node)
}

fn free() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().to_string()
}

fn binary() -> PathBuf {
    if let Some(path) = std::env::var_os("DOORWARD_TEST_ETCD") {
        return path.into();
    }
    // This test is at debug/deps/… in the target directory.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().nth(3).map(Path::to_owned);
    let installed = target.unwrap_or_default().join("tests/etcd/etcd");
    if installed.exists() {
        installed
    } else {
        "etcd".into()
    }
}
