//! Documents that are valid but hardly meant: what is said of them, and that they need force.

#![cfg(unix)]

use std::fs;

use doorward_tests::etcd::Etcd;

use crate::fake_server::{FakeServer, Play};
use crate::template_edit::Desk;
use crate::templates::document;
use crate::{check_exit, check_failure, doorward, json, nowhere, stderr, stdout};

const FORCE: &str = "give --force, which --yes does not imply";

fn with_refresh(interval: &str) -> String {
    let text = document(500).replace("lease_length: 60", "lease_length: 2h");
    text.replace(
        "refresh_interval: 5",
        &format!("refresh_interval: {interval}"),
    )
}

/// A real mistake: an hour, which all clients obeyed.
#[tokio::test]
async fn a_refresh_interval_of_an_hour_is_not_applied_unless_it_is_forced() {
    let etcd = Etcd::start().await;
    for (desk, has_history) in [(Desk::at_etcd(&etcd), true), (Desk::at_file(), false)] {
        desk.apply(&with_refresh("5"));
        let hour = with_refresh("1h");
        let said = "standard input:5:69: warning: template 1 (\"db/*\"): algorithm.refresh_interval: is \
                    1h, 720 times the 5s in force";
        let output = desk.run(&["apply", "-", "--yes"], &hour);
        check_failure(&output, 2, said);
        check_failure(&output, 2, FORCE);
        assert!(stdout(&output).contains(said), "{}", stdout(&output));
        assert_eq!(desk.show(), with_refresh("5"), "nothing was written");

        check_exit(&desk.run(&["apply", "-", "--yes", "--force"], &hour), 0);
        assert_eq!(desk.show(), hour);
        if !has_history {
            continue;
        }
        // Back at once, at three in the morning; and there again.
        check_exit(&desk.run(&["rollback", "1", "--yes"], ""), 0);
        let output = desk.run(&["rollback", "2", "--yes"], "");
        check_failure(&output, 2, "revision 2:5:69: warning: ");
        assert_eq!(desk.show(), with_refresh("5"));
        check_exit(&desk.run(&["rollback", "2", "--yes", "--force"], ""), 0);
    }
}

#[test]
fn an_emptied_document_is_not_applied_unless_it_is_forced() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    let output = desk.run(&["apply", "-", "--yes"], "resources: []\n");
    check_failure(
        &output,
        2,
        "standard input:1:12: warning: resources: there are no templates",
    );
    assert_eq!(desk.show(), document(500));
    check_exit(
        &desk.run(&["apply", "-", "--yes", "--force"], "resources: []\n"),
        0,
    );
    assert_eq!(desk.show(), "resources: []\n");
}

#[test]
fn a_warning_is_no_failure_of_a_check_which_says_that_apply_will_need_force() {
    let desk = Desk::at_file();
    let output = desk.run(&["check", "-"], &document(0));
    check_exit(&output, 0);
    assert_eq!(
        stderr(&output),
        "standard input:4:13: warning: template 1 (\"db/*\"): capacity: is 0: no client gets anything of \
         its resources\n\
         standard input: this change needs --force, which --yes does not imply\n"
    );
    let shown = json(&desk.run(&["check", "-", "--output", "json"], &document(0)));
    assert_eq!(shown["warnings"][0]["needs_force"], true);
    // The templates in force need no force.
    check_exit(
        &desk.run(&["apply", "-", "--yes", "--force"], &document(0)),
        0,
    );
    let output = desk.run(&["check"], "");
    check_exit(&output, 0);
    assert!(stderr(&output).contains("capacity: is 0"));
    assert!(!stderr(&output).contains("--force"), "{}", stderr(&output));
    // And another change of it needs none.
    let other = document(0).replace("# Of ours", "# Ours");
    let output = desk.run(&["check", "-"], &other);
    assert!(stderr(&output).ends_with("(so it is in force already)\n"));
    check_exit(&desk.run(&["apply", "-", "--yes"], &other), 0);
}

#[tokio::test]
async fn a_check_compares_with_what_is_in_force_in_etcd_if_that_answers() {
    let etcd = Etcd::start().await;
    let desk = Desk::at_etcd(&etcd);
    desk.apply(&with_refresh("5"));
    let output = desk.run(&["check", "-"], &with_refresh("1h"));
    check_exit(&output, 0);
    assert!(
        stderr(&output).contains("720 times the 5s in force"),
        "{}",
        stderr(&output)
    );

    let mut command = doorward();
    command.args([
        "--etcd-endpoints",
        &nowhere(),
        "--timeout",
        "300ms",
        "templates",
        "check",
        "-",
    ]);
    let output = command.write_stdin(with_refresh("1h")).output().unwrap();
    check_exit(&output, 0);
    let said = stderr(&output);
    assert!(
        said.starts_with("not compared with what is in force: "),
        "{said}"
    );
}

#[test]
fn how_many_clients_hold_a_resource_decides_about_its_safe_capacity() {
    let desk = Desk::at_file();
    desk.apply(&document(100));
    let safe = document(100).replace("  algorithm", "  safe_capacity: 40\n  algorithm");
    let diff = |source: &str| {
        // Three clients hold db/reads there.
        let server = FakeServer::start(Play {
            templates_source: source.to_owned(),
            ..crate::plans::planned()
        });
        let arguments = ["--server", &server.address, "diff", "-", "--output", "json"];
        let shown = desk.run(&arguments, &safe);
        check_exit(&shown, 1);
        serde_json::from_slice::<serde_json::Value>(&shown.stdout).unwrap()
    };
    let shown = diff("t.yaml");
    let warning = &shown["warnings"][0];
    assert_eq!(
        (&warning["kind"], &warning["field"], &warning["line"]),
        (&"safe_capacity".into(), &"safe_capacity".into(), &5.into())
    );
    let message = warning["message"].as_str().unwrap();
    assert!(
        message.contains("the 3 clients of db/reads may use 120 of 100"),
        "{message}"
    );
    assert_eq!(shown["needs_force"], true);
    // A server that goes by other templates says nothing about these.
    let shown = diff("other.yaml");
    assert_eq!(
        (&shown["warnings"], &shown["warning"]),
        (&serde_json::json!([]), &None::<()>.into())
    );
    assert_eq!(shown["needs_force"], true, "nobody reads the file");
}

#[test]
fn what_was_edited_and_is_not_forced_is_kept_or_edited_again() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    let output = desk.edit("sed -i s/500/0/ $1");
    check_exit(&output, 2);
    let said = stderr(&output);
    assert!(said.contains("your text:4:13: warning: "), "{said}");
    assert!(said.contains(FORCE), "{said}");
    assert!(said.contains("your text is kept in "), "{said}");
    assert_eq!(
        (desk.show(), desk.left()),
        (document(500), vec![document(0)])
    );
    fs::remove_dir_all(desk.path("copies")).unwrap();

    let script = "if grep -q 'capacity: 0' $1; then sed -i 's/capacity: 0/capacity: 70/' $1; else \
                  sed -i s/500/0/ $1; fi";
    let output = desk.edit_at_terminal(script, "y\ny\n");
    check_exit(&output, 0);
    assert!(stderr(&output).contains("Edit it again? [y/N] "));
    assert_eq!((desk.show(), desk.left()), (document(70), vec![]));
    let output = desk.edit_at_terminal("sed -i 's/capacity: 70/capacity: 0/' $1", "n\n");
    check_exit(&output, 2);
    assert_eq!(desk.show(), document(70));
}
