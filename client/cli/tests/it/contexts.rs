//! `context`: flags that a file keeps, and what wins over them.

use std::fs;

use crate::fake_server::FakeServer;
use crate::{check_exit, check_failure, doorward, nowhere, stderr, stdout};

#[test]
fn a_context_gives_the_flags_that_the_command_line_and_variables_leave_out() {
    let server = FakeServer::with(|_| {});
    let folder = tempfile::tempdir().unwrap();
    let run = |arguments: &[&str]| {
        let mut command = doorward();
        command.env("XDG_CONFIG_HOME", folder.path());
        command.args(arguments).output().unwrap()
    };
    let keep = [
        "context",
        "set",
        "here",
        "--server",
        &server.address,
        "--output",
        "json",
    ];
    check_exit(&run(&keep), 0);
    check_exit(
        &run(&["context", "set", "there", "--server", &nowhere()]),
        0,
    );
    assert_eq!(stdout(&run(&["context", "-o", "name"])), "here\nthere\n");
    check_exit(&run(&["context", "use", "here"]), 0);
    let listed = stdout(&run(&["context"]));
    let kept = format!("* here: --output json --server {}\n", server.address);
    assert!(listed.starts_with(&kept), "{listed}");

    assert!(stdout(&run(&["status"])).starts_with("{\"schema_version\":1,"));
    // A flag wins, and so does another context.
    assert!(stdout(&run(&["status", "-o", "table"])).starts_with("fake 1.2.3"));
    check_exit(&run(&["status", "--context", "there"]), 3);
    let mut command = doorward();
    command.env("XDG_CONFIG_HOME", folder.path());
    command.env("DOORWARD_SERVER", nowhere());
    check_exit(&command.arg("status").output().unwrap(), 3);

    check_exit(&run(&["context", "delete", "here"]), 0);
    assert!(stdout(&run(&["context"])).starts_with("  there: "));
    check_failure(&run(&["context", "use", "here"]), 2, "no context \"here\"");
    check_failure(
        &run(&["status", "--context", "here"]),
        2,
        "no context \"here\"",
    );
    check_failure(
        &run(&["context", "set", "here"]),
        2,
        "give the flags to keep",
    );

    let file = folder.path().join("doorward/contexts.yaml");
    fs::write(&file, "current: a\ncontexts: {a: {colour: red}}\n").unwrap();
    check_failure(&run(&["status"]), 2, "--colour, which is no shared flag");
    for name in ["", "a\nb"] {
        let output = run(&["context", "set", name, "-o", "json"]);
        check_failure(&output, 2, "needs a name");
    }
    fs::write(&file, "contexts: [").unwrap();
    let output = run(&["status"]);
    check_exit(&output, 1);
    assert!(stderr(&output).contains("correct it, or remove it"));
}
