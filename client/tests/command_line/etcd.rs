//! A real etcd for a test: on ports and in a folder of its own, gone when the test is.
//!
//! The program is the one in `DOORWARD_TEST_ETCD`, else the one that `tests/install-etcd` brought,
//! else the one on the path.

use std::io::{BufRead, BufReader};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use etcd_client::Client;
use tempfile::TempDir;
use tokio::runtime::Runtime;

/// Ports are found free and taken a moment later: somebody may be faster.
const ATTEMPTS: usize = 5;

/// How long one may take to serve.
const START: Duration = Duration::from_secs(20);

/// An etcd that runs.
pub(crate) struct Etcd {
    pub(crate) endpoint: String,
    process: Child,
    runtime: Runtime,
    _folder: TempDir,
}

impl Etcd {
    /// Starts one, and waits until it serves.
    pub(crate) fn start() -> Self {
        for _attempt in 0..ATTEMPTS {
            if let Some(etcd) = Self::try_start() {
                return etcd;
            }
        }
        panic!("{} does not start", program().display());
    }

    fn try_start() -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let (clients, peers) = (free_port(), free_port());
        let (endpoint, peer) = (
            format!("http://127.0.0.1:{clients}"),
            format!("http://127.0.0.1:{peers}"),
        );
        let mut process = Command::new(program())
            .arg("--data-dir")
            .arg(folder.path().join("data"))
            .args(["--name", "test"])
            .args(["--listen-client-urls", &endpoint])
            .args(["--advertise-client-urls", &endpoint])
            .args(["--listen-peer-urls", &peer])
            .args(["--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &format!("test={peer}")])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap_or_else(|error| panic!("{}: {error}", program().display()));
        let log = BufReader::new(process.stderr.take().unwrap());
        let (sender, serves) = mpsc::channel();
        // To its end: what nobody reads would hold it up.
        std::thread::spawn(move || {
            for line in log.lines().map_while(Result::ok) {
                if line.contains("ready to serve client requests") {
                    // Nobody waits for it any more if it took too long.
                    let _ = sender.send(());
                }
            }
        });
        if serves.recv_timeout(START).is_err() {
            // It has ended, or will: nobody knows it.
            let _ = process.kill();
            let _ = process.wait();
            return None;
        }
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()
            .unwrap();
        Some(Self {
            endpoint,
            process,
            runtime,
            _folder: folder,
        })
    }

    /// Does something at it by another way than the command line, as `etcdctl` would.
    pub(crate) fn with<T>(&self, act: impl AsyncFnOnce(&mut Client) -> T) -> T {
        self.runtime.block_on(async {
            let mut client = Client::connect([&self.endpoint], None).await.unwrap();
            act(&mut client).await
        })
    }

    pub(crate) fn put(&self, key: &str, value: impl Into<Vec<u8>>) {
        self.with(async |client| client.put(key, value, None).await.unwrap());
    }

    pub(crate) fn get(&self, key: &str) -> Option<Vec<u8>> {
        let answer = self.with(async |client| client.get(key, None).await.unwrap());
        answer.kvs().first().map(|kv| kv.value().to_vec())
    }
}

impl Drop for Etcd {
    fn drop(&mut self) {
        // It may have ended by itself, and its folder goes anyway.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn program() -> PathBuf {
    if let Some(given) = std::env::var_os("DOORWARD_TEST_ETCD") {
        return given.into();
    }
    // The program under test is two folders below the target folder.
    let target = Path::new(env!("CARGO_BIN_EXE_doorward")).ancestors().nth(2);
    let brought = target.map(|target| target.join("tests/etcd/etcd"));
    match brought {
        Some(brought) if brought.exists() => brought,
        _ => "etcd".into(),
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    listener.local_addr().unwrap().port()
}
