//! `templates` on a real etcd: what is shown, written, kept, and who comes second.

use std::process::Output;
use std::time::Duration;

use doorward_tests::etcd::Etcd;
use etcd_client::{Permission, PermissionType, Txn, TxnOp};
use serde_json::Value;
use tokio::time::Instant;

use crate::fake_server::{FakeServer, Play};
use crate::{check_exit, check_failure, doorward, json, nowhere, stderr, stdout};

pub(crate) const KEY: &str = "/doorward/templates";

/// A document whose only template has this capacity.
pub(crate) fn document(capacity: u32) -> String {
    format!(
        "# Of ours.\nresources:\n- identifier_glob: db/*\n  capacity: {capacity}\n  algorithm: \
         {{kind: FAIR_SHARE, lease_length: 60, refresh_interval: 5}}\n"
    )
}

/// Runs `templates` on an etcd to its end.
pub(crate) fn templates(etcd: &Etcd, arguments: &[&str]) -> Output {
    on_stdin(etcd, arguments, "")
}

pub(crate) fn on_stdin(etcd: &Etcd, arguments: &[&str], stdin: &str) -> Output {
    let mut command = doorward();
    command.args(["templates", "--etcd-endpoints", &etcd.endpoint(0)]);
    command.args(["--server", &nowhere()]).args(arguments);
    command.write_stdin(stdin).output().unwrap()
}

/// Applies a document, which must go well.
#[track_caller]
pub(crate) fn apply(etcd: &Etcd, document: &str, flags: &[&str]) {
    let arguments = [&["apply", "-", "--yes"], flags].concat();
    check_exit(&on_stdin(etcd, &arguments, document), 0);
}

/// The key of a version.
fn version(number: u64) -> String {
    format!("{KEY}/history/{number:020}")
}

fn history(etcd: &Etcd) -> Value {
    json(&templates(etcd, &["history", "-o", "json"]))
}

#[tokio::test]
async fn a_document_goes_there_and_back_as_it_is() {
    let etcd = Etcd::start().await;
    let output = templates(&etcd, &["show"]);
    check_failure(&output, 1, "To begin, write a file");
    check_failure(&output, 1, "running servers still have the last ones");
    check_failure(&templates(&etcd, &["check"]), 1, "no templates");
    check_failure(&templates(&etcd, &["history"]), 1, "no templates");

    apply(
        &etcd,
        &document(500),
        &["--who", "ann", "--why", "to begin"],
    );
    let output = templates(&etcd, &["show"]);
    check_exit(&output, 0);
    assert_eq!(stdout(&output), document(500));
    let said = stderr(&output);
    assert!(said.contains("revision 1, apply by ann at "), "{said}");
    assert!(said.ends_with(": to begin\n"), "{said}");
    assert_eq!(etcd.get(KEY).await, Some(document(500)));

    let shown = json(&templates(&etcd, &["show", "-o", "json"]));
    assert_eq!(shown["document"], document(500));
    assert_eq!(shown["revision"], 1);
    assert_eq!(shown["who"], "ann");
    let output = templates(&etcd, &["check"]);
    check_exit(&output, 0);
    assert!(stdout(&output).contains("1 template, valid"));
}

#[tokio::test]
async fn a_difference_is_reported_by_line_and_by_template_with_the_exit_codes_of_diff() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(500), &[]);
    let diff = |document: &str| on_stdin(&etcd, &["diff", "-"], document);
    let output = diff(&document(500));
    check_exit(&output, 0);
    assert_eq!(stdout(&output), "");

    let output = diff(&document(250));
    check_exit(&output, 1);
    let said = stdout(&output);
    assert!(
        said.contains("-  capacity: 500\n+  capacity: 250\n"),
        "{said}"
    );
    assert!(said.contains("~ \"db/*\" capacity 500 → 250"), "{said}");
    assert!(said.contains("only texts are compared; "), "{said}");
    assert_eq!(stderr(&output), "");

    let output = diff(&document(500).replace("Of ours", "Ours"));
    check_exit(&output, 1);
    assert!(stdout(&output).contains("no template changes in meaning"));

    let output = diff(&document(500).replace("500", "-5"));
    check_exit(&output, 2);
    assert!(stderr(&output).contains("standard input:4:13: "));
    check_exit(&templates(&etcd, &["diff", "/none"]), 2);
}

#[tokio::test(flavor = "multi_thread")]
async fn unless_said_otherwise_the_root_in_etcd_is_asked() {
    let etcd = Etcd::start().await;
    let diff = |timeout: &str| {
        let mut command = doorward();
        command.args(["templates", "--etcd-endpoints", &etcd.endpoint(0)]);
        command.args(["--timeout", timeout, "diff", "-"]);
        stdout(&command.write_stdin(document(50)).output().unwrap())
    };
    let said = diff("5s");
    assert!(said.contains("no server of etcd://"), "{said}");
    assert!(said.contains("--server names the server to ask"), "{said}");
    let server = FakeServer::start(Play::default());
    etcd.register("root", &server.address).await;
    etcd.elect("root", &server.address).await;
    assert!(diff("5s").contains("nothing is in use at fake"));
}

#[tokio::test]
async fn nothing_is_written_without_a_yes() {
    let etcd = Etcd::start().await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(&file, document(500)).unwrap();
    let path = file.path().to_str().unwrap();
    check_failure(&templates(&etcd, &["apply", path]), 2, "Give --yes");
    check_failure(&templates(&etcd, &["apply", "-"]), 2, "give --yes");
    check_failure(&templates(&etcd, &["edit"]), 2, "Give --yes");
    check_failure(
        &templates(&etcd, &["rollback", "1"]),
        2,
        "doorward templates show --revision 1 | doorward templates diff - shows what would change",
    );
    let mut command = doorward();
    command.env_remove("EDITOR").env_remove("VISUAL");
    command.args([
        "templates",
        "--etcd-endpoints",
        &etcd.endpoint(0),
        "edit",
        "-y",
    ]);
    check_failure(&command.output().unwrap(), 2, "neither $VISUAL nor $EDITOR");
    assert_eq!(etcd.get(KEY).await, None);
    check_exit(&templates(&etcd, &["apply", path, "--yes"]), 0);
    let output = templates(&etcd, &["apply", path, "--yes"]);
    check_exit(&output, 0);
    assert!(stdout(&output).starts_with("nothing changes: this is revision 1"));
    let bad = on_stdin(
        &etcd,
        &["apply", "-", "--yes"],
        &document(1).replace("db/*", ""),
    );
    check_exit(&bad, 1);
    assert_eq!(history(&etcd)["versions_count"], 1);
}

#[tokio::test]
async fn an_earlier_version_comes_back_as_a_new_one() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(500), &[]);
    apply(&etcd, &document(250), &[]);
    let output = templates(&etcd, &["rollback", "1", "--yes", "--why", "too little"]);
    check_exit(&output, 0);
    assert!(stdout(&output).contains("capacity 250 → 500"));
    assert_eq!(etcd.get(KEY).await, Some(document(500)));
    let newest = &history(&etcd)["versions"][0];
    assert_eq!(newest["kind"], "rollback to 1");
    assert_eq!(newest["why"], "too little");
    assert_eq!(newest["in_force"], true);

    let output = templates(&etcd, &["show", "--revision", "2"]);
    assert_eq!(stdout(&output), document(250));
    for command in [
        &["rollback", "7", "--yes"][..],
        &["show", "--revision", "7"],
    ] {
        check_failure(
            &templates(&etcd, command),
            1,
            "history lists those there are",
        );
    }
    check_exit(&templates(&etcd, &["history", "-n", "1"]), 0);
    let output = templates(&etcd, &["history", "-n", "1"]);
    assert!(stdout(&output).ends_with("and 2 more; -n lists more\n"));
}

#[tokio::test]
async fn the_history_outlives_compaction() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &["--why", "the first"]);
    apply(&etcd, &document(2), &[]);
    apply(&etcd, &document(3), &[]);
    etcd.compact().await;
    assert_eq!(history(&etcd)["versions"].as_array().unwrap().len(), 3);
    check_exit(&templates(&etcd, &["rollback", "1", "--yes"]), 0);
    assert_eq!(etcd.get(KEY).await, Some(document(1)));
}

#[tokio::test]
async fn what_was_written_by_hand_becomes_a_version_before_it_is_overwritten() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &[]);
    etcd.put(KEY, document(2)).await;
    let output = templates(&etcd, &["history"]);
    assert!(stdout(&output).contains("the document at etcd:/doorward/templates is none of these"));
    assert!(stderr(&templates(&etcd, &["show"])).contains("not written by this command line"));
    apply(&etcd, &document(3), &[]);
    let listed = history(&etcd);
    assert_eq!(listed["versions_count"], 3);
    assert_eq!(listed["versions"][1]["kind"], "found");
    assert_eq!(listed["versions"][1]["who"], Value::Null);
    check_exit(&templates(&etcd, &["rollback", "2", "--yes"]), 0);
    assert_eq!(etcd.get(KEY).await, Some(document(2)));

    etcd.delete(KEY).await;
    check_failure(&templates(&etcd, &["show"]), 1, "rollback 4");
    assert!(stdout(&templates(&etcd, &["history"])).contains("the templates were removed"));
    check_exit(&templates(&etcd, &["rollback", "4", "--yes"]), 0);
    assert_eq!(history(&etcd)["in_force"], 5);
}

#[tokio::test]
async fn on_top_of_garbage_everything_works() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &[]);
    for garbage in [&b"resources: [\n"[..], b"\xff\x00\x1b[31m\n", b""] {
        etcd.put(KEY, garbage).await;
        let output = templates(&etcd, &["show"]);
        assert_eq!(output.status.code(), Some(0));
        assert_eq!(output.stdout, garbage);
        assert!(stderr(&output).contains("INVALID"));
        check_exit(&templates(&etcd, &["check"]), 1);
        let output = on_stdin(&etcd, &["diff", "-"], &document(2));
        check_exit(&output, 1);
        let said = stdout(&output);
        assert!(said.contains("the document at etcd:/doorward/templates is invalid"));
        assert!(said.contains("by template are unknown"));
        let listed = stdout(&templates(&etcd, &["history"]));
        assert!(listed.contains("servers keep the templates they had"));
        assert!(!stdout(&output).contains('\u{1b}'));
        apply(&etcd, &document(2), &[]);
        etcd.put(KEY, garbage).await;
        check_exit(&templates(&etcd, &["rollback", "1", "--yes"]), 0);
        assert_eq!(etcd.get(KEY).await, Some(document(1)));
    }
    // Garbage was kept, and is not put in force again.
    let output = templates(&etcd, &["rollback", "2", "--yes"]);
    check_exit(&output, 1);
    assert!(stderr(&output).contains("revision 2 is invalid"));
}

#[tokio::test]
async fn a_history_with_holes_and_broken_entries_is_one() {
    let etcd = Etcd::start().await;
    for capacity in 1..=4 {
        apply(&etcd, &document(capacity), &[]);
    }
    etcd.delete(&version(2)).await;
    etcd.put(&version(3), "{").await;
    etcd.put(&format!("{KEY}/history/notes"), "not ours").await;
    let output = templates(&etcd, &["history"]);
    check_exit(&output, 0);
    let said = stdout(&output);
    assert!(said.contains("3  broken"), "{said}");
    let rollback = |number: &str| templates(&etcd, &["rollback", number, "--yes"]);
    check_failure(&rollback("2"), 1, "no revision 2");
    check_failure(&rollback("3"), 1, "it cannot be read");
    check_exit(&rollback("1"), 0);

    // The newest one broken: what is in force is kept once more.
    etcd.put(&version(5), "{").await;
    apply(&etcd, &document(6), &[]);
    let listed = history(&etcd);
    assert_eq!(listed["versions"][1]["kind"], "found");
    assert_eq!(listed["in_force"], 7);
}

#[tokio::test]
async fn a_long_history_of_large_versions_is_one() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &[]);
    let first = etcd.get(&version(1)).await.unwrap();
    let large: Value = serde_json::from_str(&first).unwrap();
    let padding = format!("# {}\n", "x".repeat(500_000));
    for number in 2..=120_u64 {
        let mut large = large.clone();
        large["number"] = number.into();
        large["document"] = format!("{}{padding}", document(u32::try_from(number).unwrap())).into();
        etcd.put(&version(number), large.to_string()).await;
    }
    let listed = history(&etcd);
    assert_eq!(listed["versions_count"], 120);
    let revisions: Vec<Option<u64>> = listed["versions"]
        .as_array()
        .unwrap()
        .iter()
        .map(|version| version["revision"].as_u64())
        .collect();
    let newest: Vec<Option<u64>> = (101..=120).rev().map(Some).collect();
    assert_eq!(revisions, newest);
    check_exit(&templates(&etcd, &["history", "-n", "1000"]), 0);
    check_failure(
        &templates(&etcd, &["rollback", "200", "--yes"]),
        1,
        "no revision 200",
    );
    check_exit(&templates(&etcd, &["rollback", "2", "--yes"]), 0);
    assert_eq!(
        etcd.get(KEY).await,
        Some(format!("{}{padding}", document(2)))
    );
    // The document in force was none of the versions, so it was kept before.
    assert_eq!(history(&etcd)["in_force"], 122);
}

#[tokio::test]
async fn every_version_of_a_history_is_counted() {
    let etcd = Etcd::start().await;
    // Around what one answer holds, and far beyond.
    for (from, to) in [(1, 50), (51, 51), (52, 100), (101, 10_100)] {
        let numbers: Vec<u64> = (from..=to).collect();
        for numbers in numbers.chunks(100) {
            etcd.ask("put versions", async |client| {
                let puts = numbers.iter().map(|n| TxnOp::put(version(*n), "{", None));
                let puts: Vec<TxnOp> = puts.collect();
                client.txn(Txn::new().and_then(puts)).await
            })
            .await;
        }
        let listed = json(&templates(&etcd, &["history", "-o", "json", "-n", "1"]));
        assert_eq!(listed["versions_count"], to);
        assert_eq!(listed["versions"][0]["revision"], to);
    }
}

#[tokio::test]
async fn a_document_that_etcd_would_not_take_is_refused_with_a_size_that_it_would() {
    let etcd = Etcd::start().await;
    let padded = |bytes: usize| format!("{}# {}\n", document(1), "x".repeat(bytes));
    let two_megabytes = on_stdin(&etcd, &["apply", "-", "--yes"], &padded(2_000_000));
    check_exit(&two_megabytes, 1);
    assert!(stderr(&two_megabytes).contains("larger than the 1048576 bytes"));
    let output = on_stdin(&etcd, &["apply", "-", "--yes"], &padded(900_000));
    check_exit(&output, 1);
    let said = stderr(&output);
    assert!(said.contains("too large for etcd"), "{said}");
    assert!(said.contains("may have about 78"), "{said}");
    apply(&etcd, &padded(780_000), &[]);

    // By hand there may be more, which is kept, if not in the same transaction.
    let by_hand = padded(1_040_000);
    etcd.put(KEY, by_hand.clone()).await;
    apply(&etcd, &document(2), &[]);
    let output = templates(&etcd, &["show", "--revision", "2"]);
    assert_eq!(stdout(&output), by_hand);
    // A version is kept as JSON, in which each quotation mark takes two bytes.
    let quotes = format!("# {}\n", "\"".repeat(1_499_997));
    etcd.put(KEY, quotes).await;
    apply(&etcd, &document(3), &[]);
    let output = templates(&etcd, &["show", "--revision", "4"]);
    check_failure(&output, 1, "1500000 bytes, too large to be kept");
    assert_eq!(history(&etcd)["in_force"], 5);
}

#[tokio::test]
async fn where_no_etcd_answers_is_distinguished_from_where_it_says_no() {
    let at = |endpoints: &str| {
        let mut command = doorward();
        command.args(["templates", "--etcd-endpoints", endpoints]);
        command.arg("show").output().unwrap()
    };
    check_failure(&at(&nowhere()), 3, "Is etcd running there?");
    check_exit(&at("nonsense"), 2);
    let other = FakeServer::start(Play::default());
    check_failure(&at(&other.address), 1, "is it etcd?");
    // One of several is enough.
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &[]);
    let some = format!("{},{}", nowhere(), etcd.endpoint(0));
    for _turn in 0..4 {
        check_exit(&at(&some), 0);
    }
}

#[tokio::test]
async fn of_a_frozen_etcd_no_more_is_waited_for_than_was_said() {
    let etcd = Etcd::start().await;
    apply(&etcd, &document(1), &[]);
    let mut frozen = Etcd::start().await;
    frozen.freeze(0);
    let show = |endpoints: String| {
        let mut command = doorward();
        command.args(["templates", "--timeout", "2s", "show"]);
        let began = Instant::now();
        let output = command.env("DOORWARD_ETCD_ENDPOINTS", endpoints).output();
        assert!(began.elapsed() < Duration::from_millis(3500));
        output.unwrap()
    };
    check_failure(&show(frozen.endpoint(0)), 3, "no answer within 2");
    for _turn in 0..4 {
        let some = format!("{},{}", frozen.endpoint(0), etcd.endpoint(0));
        check_exit(&show(some), 0);
    }
}

#[test]
fn where_to_look_must_be_said() {
    let mut command = doorward();
    let output = command.args(["templates", "show"]).output().unwrap();
    check_failure(&output, 2, "give --etcd-endpoints URL");
    let mut command = doorward();
    command.args(["templates", "--at", "etcd:/x", "show"]);
    check_failure(&command.output().unwrap(), 2, "not where etcd is");
}

#[tokio::test]
async fn who_etcd_does_not_know_is_refused() {
    let etcd = Etcd::start().await;
    etcd.ask("add users", async |client| {
        client.user_add("root", "secret", None).await?;
        client.user_grant_role("root", "root").await?;
        client.user_add("reader", "open", None).await?;
        client.role_add("reading").await?;
        let keys = Permission::new(PermissionType::Read, KEY).with_prefix();
        client.role_grant_permission("reading", keys).await?;
        client.user_grant_role("reader", "reading").await?;
        client.auth_enable().await
    })
    .await;
    let password = tempfile::NamedTempFile::new().unwrap();
    let as_user = |name: &str, secret: &str, arguments: &[&str]| {
        std::fs::write(&password, secret).unwrap();
        let file = password.path().to_str().unwrap();
        let flags = ["--etcd-user", name, "--etcd-password-file", file];
        on_stdin(&etcd, &[&flags, arguments].concat(), &document(1))
    };
    check_failure(&templates(&etcd, &["show"]), 1, "refuses");
    check_failure(
        &as_user("root", "wrong", &["show"]),
        1,
        "authentication failed",
    );
    check_exit(&as_user("root", "secret", &["apply", "-", "--yes"]), 0);
    check_exit(&as_user("reader", "open", &["show"]), 0);
    let change = ["rollback", "1", "--yes"];
    check_exit(&as_user("reader", "open", &change), 0); // Nothing changes.
    std::fs::write(&password, "open").unwrap();
    let file = password.path().to_str().unwrap();
    let flags = ["--etcd-user", "reader", "--etcd-password-file", file];
    let output = on_stdin(
        &etcd,
        &[&flags[..], &["apply", "-", "--yes"]].concat(),
        &document(2),
    );
    check_exit(&output, 1);
    assert!(stderr(&output).contains("permission denied"));
}
