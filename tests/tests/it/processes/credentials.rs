//! Credentials for etcd that are replaced while servers run: they are read again, and no server needs a restart.

use std::fs;
use std::path::Path;

use doorward_tests::candidates::until;
use doorward_tests::etcd::{Etcd, PASSWORD, Setup};
use doorward_tests::processes::{Server, doorward};
use serde_json::Value;
use tempfile::TempDir;

const REFUSED: &str = "files cannot be used; the last valid ones stay in force";

/// Files with credentials, as an operator keeps them.
struct Files(TempDir);

impl Files {
    fn new(etcd: &Etcd) -> Self {
        let files = Self(tempfile::tempdir().unwrap());
        fs::write(files.path("password"), PASSWORD).unwrap();
        files.write_certificates(etcd);
        files
    }

    fn write_certificates(&self, etcd: &Etcd) {
        fs::write(self.path("ca.pem"), &etcd.authority.certificate).unwrap();
        fs::write(self.path("cert.pem"), &etcd.client.certificate).unwrap();
        fs::write(self.path("key.pem"), &etcd.client.key).unwrap();
    }

    fn path(&self, name: &str) -> String {
        self.0.path().join(name).display().to_string()
    }

    fn flags(&self, etcd: &Etcd) -> Vec<String> {
        vec![
            format!("--etcd-endpoints={}", etcd.endpoint(0)),
            format!("--etcd-ca={}", self.path("ca.pem")),
            format!("--etcd-cert={}", self.path("cert.pem")),
            format!("--etcd-key={}", self.path("key.pem")),
            "--etcd-user=root".to_owned(),
            format!("--etcd-password-file={}", self.path("password")),
        ]
    }

    fn start(&self, etcd: &Etcd) -> Server {
        let templates = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("../server/documents/src/built_in.yaml")
            .display()
            .to_string();
        let flags = self.flags(etcd);
        let flags = flags.iter().map(String::as_str);
        let more = [
            "--http-listen",
            "127.0.0.1:0",
            "--election-ttl=2s",
            "--templates",
            &templates,
        ];
        Server::start(&flags.chain(more).collect::<Vec<_>>())
    }
}

/// Waits until both know a confirmed master in the etcd that they can reach now.
async fn until_both_are_ready(servers: &mut [Server; 2], when: &str) {
    for server in servers {
        until(when, async || {
            server.get("/readyz").starts_with("HTTP/1.0 200")
        })
        .await;
    }
}

/// Waits until neither knows a master.
async fn until_neither_is_ready(servers: &mut [Server; 2]) {
    for server in servers {
        until("it is not ready", async || {
            server.get("/readyz").starts_with("HTTP/1.0 503")
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn credentials_that_are_replaced_are_read_again() {
    let mut etcd = Setup::new(1).with_users().with_mutual_tls().start().await;
    let files = Files::new(&etcd);
    let mut servers = [files.start(&etcd), files.start(&etcd)];
    until_both_are_ready(&mut servers, "ready at first").await;

    etcd.renew_certificates().await;
    until_neither_is_ready(&mut servers).await;
    // While a file is half written, the last good ones count, and a warning names the file.
    fs::write(files.path("key.pem"), "-----BEGIN PRIVATE KEY-----\n").unwrap();
    for server in &mut servers {
        let warned = server.wait_for_log(REFUSED);
        let files = warned["files"].as_str().unwrap();
        assert!(files.contains("key.pem"), "{files}");
    }
    files.write_certificates(&etcd);
    until_both_are_ready(&mut servers, "ready with new certificates").await;

    // First the password, then its file.
    etcd.change_password("another one").await;
    until_neither_is_ready(&mut servers).await;
    fs::write(files.path("password"), "another one\n").unwrap();
    until_both_are_ready(&mut servers, "ready with the new password").await;

    for server in &mut servers {
        let warned = server.logged(REFUSED);
        let is_repeated = |two: &[Value]| two[0]["problem"] == two[1]["problem"];
        assert!(!warned.windows(2).any(is_repeated), "{warned:?}");
    }
    let listed = files.flags(&etcd);
    let listed: Vec<&str> = listed.iter().map(String::as_str).chain(["nodes"]).collect();
    assert!(doorward(&listed).status.success());
}
