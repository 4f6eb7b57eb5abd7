//! Wrong flags: a server that cannot use its flags explains the problem and ends. A server that cannot reach etcd
//! stays, is not ready, and explains why, because that may be repaired without it.

use std::fs;

use serde_json::Value;

use doorward_tests::candidates::until;
use doorward_tests::etcd::{Etcd, PASSWORD, Setup};
use doorward_tests::probe::Probe;
use doorward_tests::processes::{Server, doorward_server, stderr};

#[test]
fn flags_that_cannot_be_meant_are_refused_and_why() {
    let etcd = "--etcd-endpoints=127.0.0.1:2379";
    for (flags, why) in [
        (
            &["--etcd-endpoints=https://127.0.0.1:2379"][..],
            "give --etcd-ca",
        ),
        (&["--templates=etcd:/t"], "see --etcd-endpoints"),
        (&["--templates=etcd://there/t", etcd], "give the key alone"),
        (&[etcd, "--listen=0.0.0.0:6970"], "give --advertise"),
        (&[etcd, "--listen=[::]:6970"], "give --advertise"),
        (&[etcd, "--etcd-user=root"], "both, or neither"),
        (&["--etcd-endpoints=ftp://here"], "give host:port"),
        (&[etcd, "--election-ttl=1s"], "from 2s"),
        (&[etcd, "--election-prefix=/"], "give a key"),
    ] {
        let output = doorward_server(flags);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains(why), "{flags:?}: {said}");
    }
}

/// Starts a server with that endpoint of etcd, where there is none.
fn lost(endpoint: &str, flags: &[&str]) -> Server {
    // The templates do not come from etcd; their content does not matter here.
    let templates = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../server/documents/src/built_in.yaml"
    );
    let set_up = [
        "--http-listen",
        "127.0.0.1:0",
        "--election-ttl=2s",
        "--templates",
        templates,
    ];
    Server::start(&[&set_up[..], &["--etcd-endpoints", endpoint], flags].concat())
}

/// Checks that it serves no client, is not ready, and explains why.
async fn assert_says(server: &mut Server, why: &[&str]) {
    let said = server.wait_for_log("etcd cannot be asked; trying on");
    let discovered = Probe::to(&server.address).discover().await.unwrap();
    assert!(
        !discovered.is_master && discovered.master.is_none(),
        "{discovered:?}"
    );
    let health = server.get("/healthz");
    assert!(health.starts_with("HTTP/1.0 200"), "{health}");
    for why in why {
        let problem = said["problem"].as_str().unwrap();
        assert!(problem.contains(why), "{problem}");
        until("its readiness says why", async || {
            let ready = server.get("/readyz");
            assert!(ready.starts_with("HTTP/1.0 503"), "{ready}");
            ready.contains(why)
        })
        .await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_without_etcd_names_its_endpoints_and_finds_it_later() {
    let mut etcd = Etcd::start().await;
    etcd.kill(0);
    let mut server = lost(&etcd.endpoint(0), &[]);
    assert_says(&mut server, &[etcd.address(0), "refused"]).await;
    let said = server.logged("etcd cannot be asked; trying on");
    assert_eq!(said.len(), 1, "once is enough: {said:?}");
    etcd.restart_all().await;
    server.wait_for_log("this server is the master");
    until("it is ready", async || {
        server.get("/readyz").starts_with("HTTP/1.0 200")
    })
    .await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_server_that_etcd_refuses_says_so_and_connects_once_repaired() {
    let etcd = Setup::new(1).with_users().with_tls().start().await;
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, content: &str| {
        let path = folder.path().join(name);
        fs::write(&path, content).unwrap();
        path.display().to_string()
    };
    let ca = file("ca.pem", &etcd.authority.certificate);
    let password = file("password", "a secret");
    let user = ["--etcd-ca", &ca, "--etcd-password-file", &password];

    let mut stranger = lost(
        &etcd.endpoint(0),
        &[&user[..], &["--etcd-user=ann"]].concat(),
    );
    assert_says(&mut stranger, &["authentication failed"]).await;
    // A user without rights can connect, and do nothing.
    etcd.add_user("ann", "a secret").await;
    until("it says what it may not", async || {
        stranger.get("/readyz").contains("permission denied")
    })
    .await;
    etcd.ask("grant", async |client| {
        client.user_grant_role("ann", "root").await
    })
    .await;
    stranger.wait_for_log("this server is the master");

    // It knows no authority that signed that etcd's certificate.
    let other = Setup::new(1).with_tls().start().await;
    let mut server = lost(&other.endpoint(0), &["--etcd-ca", &ca]);
    assert_says(&mut server, &[other.address(0), "certificate"]).await;

    fs::write(&password, PASSWORD).unwrap();
    let mut server = lost(
        &etcd.endpoint(0),
        &[&user[..], &["--etcd-user=root"]].concat(),
    );
    let known = server.wait_for_log("another server is the master");
    assert_eq!(
        known["master_address"],
        Value::from(stranger.address.clone())
    );
}
