//! Lines of the shell, good and bad.

use super::*;

#[test]
fn lines_are_commands() {
    let get = |client: &str, resource: &str, wants, priority| ShellLine::Get {
        client: client.to_owned(),
        resource: resource.to_owned(),
        wants,
        priority,
    };
    let release = |client: &str, resource: Option<&str>| ShellLine::Release {
        client: client.to_owned(),
        resource: resource.map(str::to_owned),
    };
    let status = |resource: Option<&str>| ShellLine::Status {
        resource: resource.map(str::to_owned),
    };
    for (line, expected) in [
        ("get a r 10", get("a", "r", 10.0, None)),
        ("  get 'a b' r 2.5 -3 ", get("a b", "r", 2.5, Some(-3))),
        ("release a", release("a", None)),
        ("release a \"r s\"", release("a", Some("r s"))),
        ("show", ShellLine::Show),
        ("status", status(None)),
        ("status r", status(Some("r"))),
        ("quit", ShellLine::Quit),
        ("exit", ShellLine::Quit),
        ("", ShellLine::Nothing),
        ("# a remark, isn't it", ShellLine::Nothing),
    ] {
        assert_eq!(parse(line), Ok(expected), "{line:?}");
    }
}

#[test]
fn a_bad_line_says_what_is_wrong() {
    for (line, expected) in [
        ("got a", "\"got\" is no command; there are get, release"),
        ("get a", "usage: get CLIENT RESOURCE WANTS [PRIORITY]"),
        (
            "get a r 1 2 3",
            "usage: get CLIENT RESOURCE WANTS [PRIORITY]",
        ),
        ("show all", "usage: show"),
        ("get a r lots", "\"lots\" is no amount"),
        ("get a r 1 high", "\"high\" is no priority"),
        ("get 'a", "a quote is not closed"),
        ("help got", "usage: help"),
    ] {
        let problem = parse(line).unwrap_err();
        assert!(problem.starts_with(expected), "{line:?}: {problem}");
    }
}
