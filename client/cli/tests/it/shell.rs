//! `shell` from a script: several clients at once.

use std::process::Output;

use serde_json::Value;

use crate::fake_server::{Asked, FakeServer, Play};
use crate::{check_exit, doorward, nowhere, stderr, stdout};

fn play(server: &str, more: &[&str], script: &str) -> Output {
    let mut command = doorward();
    command.args(["--server", server, "shell"]).args(more);
    command.write_stdin(script).output().unwrap()
}

#[test]
fn clients_hold_what_they_got_until_the_script_ends() {
    let server = FakeServer::start(Play::default());
    let script = "# two clients\nget a r 5\nget 'b c' r 30 2\n\nshow\n";
    let output = play(&server.address, &[], script);
    check_exit(&output, 0);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("a  r  5 of 5, expires in "), "{text}");
    assert!(
        lines[1].starts_with("b c  r  20 of 30, expires in "),
        "{text}"
    );
    assert!(lines[1].ends_with(", priority 2"), "{text}");
    assert!(
        lines[2].starts_with("a    r    5 of 5  expires in "),
        "{text}"
    );
    assert!(
        lines[3].starts_with("b c  r  20 of 30  expires in "),
        "{text}"
    );
    assert_eq!(lines.len(), 4, "{text}");
    let mut released: Vec<String> = server.releases().into_iter().map(|r| r.client_id).collect();
    released.sort();
    assert_eq!(released, ["a", "b c"]);
}

#[test]
fn who_asks_again_says_what_it_has() {
    let server = FakeServer::start(Play::default());
    check_exit(&play(&server.address, &[], "get a r 30\nget a r 10\n"), 0);
    let gets = server.gets();
    let again = gets.last().unwrap();
    assert_eq!(again.resource[0].wants, 10.0);
    assert_eq!(again.resource[0].has.as_ref().unwrap().capacity, 20.0);
    assert!(again.sequence > gets[0].sequence);
}

#[test]
fn a_release_is_answered_before_the_next_command() {
    let server = FakeServer::start(Play::default());
    let script = "get a r 5\nget a s 5\nrelease a r\nget b r 5\nrelease a\nrelease b\n";
    let output = play(&server.address, &[], script);
    check_exit(&output, 0);
    let kinds: Vec<String> = server
        .asked()
        .into_iter()
        .map(|asked| match asked {
            Asked::Get(get) => format!("{} gets {}", get.client_id, get.resource[0].resource_id),
            Asked::Release(release) => {
                format!("{} releases {}", release.client_id, release.resource_id[0])
            }
            Asked::Status(_) => "status".to_owned(),
        })
        .collect();
    let expected = [
        "a gets r",
        "a gets s",
        "a releases r",
        "b gets r",
        "a releases s",
        "b releases r",
    ];
    assert_eq!(kinds, expected);
}

#[test]
fn another_priority_is_another_claim_and_none_is_the_one_before() {
    let server = FakeServer::start(Play::default());
    let script = "get a r 5 1\nget a r 6\nget a r 7 2\n";
    check_exit(&play(&server.address, &[], script), 0);
    let priorities: Vec<i64> = server
        .gets()
        .iter()
        .map(|get| get.resource[0].priority)
        .collect();
    assert_eq!(priorities, [1, 1, 2]);
    assert_eq!(server.releases().len(), 2);
}

#[test]
fn a_script_goes_on_after_a_failure_and_ends_with_its_exit_code() {
    let server = FakeServer::start(Play::default());
    let script = "got a\nget a r lots\nrelease a\nget a r 5\n";
    let output = play(&server.address, &[], script);
    check_exit(&output, 1);
    assert!(stdout(&output).starts_with("a  r  5 of 5"));
    let said = stderr(&output);
    let problems: Vec<&str> = said.lines().collect();
    assert!(
        problems[0].starts_with("line 1: \"got\" is no command"),
        "{said}"
    );
    assert!(
        problems[1].starts_with("line 2: \"lots\" is no amount"),
        "{said}"
    );
    assert_eq!(problems[2], "line 3: a has nothing here; see show");
    assert_eq!(problems[3], "doorward: 3 of the script's commands failed");
    check_exit(&play(&server.address, &[], "show\ngot a\n"), 2);
    let gone = play(&nowhere(), &["--timeout", "300ms"], "get a r 5\n");
    check_exit(&gone, 3);
}

#[test]
fn nothing_after_quit_is_played() {
    let server = FakeServer::start(Play::default());
    check_exit(&play(&server.address, &[], "quit\ngot\n"), 0);
}

#[test]
fn help_lists_all_commands() {
    let server = FakeServer::start(Play::default());
    let output = play(&server.address, &[], "help\n");
    check_exit(&output, 0);
    let text = stdout(&output);
    for command in ["get CLIENT", "release CLIENT", "show", "status", "quit"] {
        assert!(text.lines().any(|line| line.starts_with(command)), "{text}");
    }
}

#[test]
fn programs_can_read_what_a_script_says() {
    let server = FakeServer::start(Play::default());
    let script = "get a r 30 1\nshow\nstatus\nrelease a\n";
    let output = play(&server.address, &["--output", "json"], script);
    check_exit(&output, 0);
    let text = stdout(&output);
    let said: Vec<Value> = text
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect();
    assert_eq!(
        (&said[0]["client"], &said[0]["resource"]),
        (&"a".into(), &"r".into())
    );
    assert_eq!(
        (&said[0]["wants"], &said[0]["capacity"]),
        (&30.0.into(), &20.0.into())
    );
    assert_eq!(
        (&said[0]["priority"], &said[0]["source"]),
        (&1.into(), &"lease".into())
    );
    assert_eq!(said[1]["client"], "a");
    assert_eq!(said[2]["node"], "fake");
    assert_eq!(
        said[3],
        serde_json::json!({"client": "a", "released": ["r"]})
    );
}
