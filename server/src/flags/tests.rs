//! All flags of the server: help, variables, defaults, refusals.

use clap::CommandFactory;

use super::*;
use crate::limits::{DefaultBound, REMOVED, ServerLimit};

#[test]
fn the_flags_are_consistent() {
    Flags::command().debug_assert();
}

#[test]
fn every_flag_has_an_environment_variable_and_a_help_text() {
    for argument in Flags::command().get_arguments() {
        let name = argument.get_id().as_str();
        if name.starts_with("help") {
            continue;
        }
        let variable = argument
            .get_env()
            .unwrap_or_else(|| panic!("{name} has no environment variable"));
        assert!(
            variable.to_string_lossy().starts_with("DOORWARD_"),
            "{name}"
        );
        assert!(argument.get_help().is_some(), "{name}");
    }
}

#[test]
fn the_help_is_short_and_the_long_one_has_every_limit_as_the_table_says() {
    let mut command = Flags::command().term_width(100);
    let short = command.render_help().to_string();
    let lines = short.lines().count();
    assert!(lines <= 100, "{lines} lines:\n{short}");
    assert!(short.contains("--memory-max") && short.contains("--help-all"));
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let long = words(&command.render_long_help().to_string());
    for limit in ServerLimit::ALL {
        let help = match limit.default_bound() {
            DefaultBound::Fixed(value) => {
                let variable = limit.texts().flag.trim_start_matches('-').replace('-', "_");
                let variable = format!("DOORWARD_{}", variable.to_uppercase());
                format!("{} [env: {variable}] [default: {value}]", limit.help())
            }
            DefaultBound::Computed(how) => format!("{} [default: {how}]", limit.help()),
        };
        assert!(long.contains(limit.texts().flag), "{}", limit.texts().flag);
        assert!(long.contains(&words(&help)), "{help}");
    }
    for removed in REMOVED {
        assert!(!long.contains(&format!("{} ", removed.0)), "{}", removed.0);
    }
}

#[test]
fn the_variable_that_makes_a_server_a_candidate_is_its_own_and_the_others_are_shared() {
    let command = Flags::command();
    let variable = |name: &str| {
        let argument = command.get_arguments().find(|it| it.get_id() == name);
        let variable = argument.and_then(clap::Arg::get_env);
        variable.map(|variable| variable.to_string_lossy().into_owned())
    };
    assert_eq!(
        variable("endpoints").as_deref(),
        Some("DOORWARD_SERVER_ETCD_ENDPOINTS")
    );
    assert_eq!(variable("ca").as_deref(), Some("DOORWARD_ETCD_CA"));
    assert_eq!(variable("user").as_deref(), Some("DOORWARD_ETCD_USER"));
}

#[test]
fn without_flags_it_serves_on_loopback() {
    let flags = Flags::try_parse_from(["doorward-server"]).expect("no flag is needed");
    assert!(flags.serve.listen.ip().is_loopback());
    assert!(
        flags
            .serve
            .http_listen
            .0
            .and_then(|address| address.tcp())
            .is_some_and(|a| a.ip().is_loopback())
    );
}

#[test]
fn the_pages_can_be_switched_off() {
    let flags = Flags::try_parse_from(["doorward-server", "--http-listen", "none"]);
    assert_eq!(flags.expect("valid").serve.http_listen, HttpListen(None));
}

#[test]
fn an_ipv6_address_that_cannot_be_used_is_refused_with_advice() {
    for (flag, address, advice) in [
        (
            "--listen",
            "[fe80::1%lo]:6970",
            "zone of an IPv6 address by its number",
        ),
        (
            "--http-listen",
            "[fe80::1%lo]:6971",
            "zone of an IPv6 address by its number",
        ),
        (
            "--listen",
            "::1:6970",
            "127.0.0.1:6970 for this machine only",
        ),
        ("--parent", "::1:6970", "needs brackets"),
        ("--parent", "[fe80::1%lo]:6970", "zone cannot be used here"),
        (
            "--advertise",
            "[fe80::1%2]:6970",
            "zone cannot be used here",
        ),
        ("--etcd-endpoints", "http://::1:2379", "needs brackets"),
        (
            "--etcd-endpoints",
            "http://[fe80::1%lo]:2379",
            "zone cannot be used here",
        ),
    ] {
        let arguments = ["doorward-server", "--node", "eu", flag, address];
        let refused = Flags::try_parse_from(arguments).map(|_| ());
        let said = refused.expect_err("refused").to_string();
        assert!(said.contains(advice), "{flag} {address}: {said}");
    }
    let listen = ["doorward-server", "--listen", "[fe80::1%2]:6970"];
    assert!(Flags::try_parse_from(listen).is_ok(), "by its number");
}

#[test]
fn what_cannot_be_meant_is_refused() {
    for bad in [
        ["--listen", "localhost"],
        ["--http-listen", "off"],
        ["--advertise", "nowhere"],
        ["--advertise", ":6970"],
        ["--advertise", "host:0"],
        ["--node", ""],
        ["--refresh-floor", "soon"],
        ["--clock-tolerance", "0"],
        ["--clock-tolerance", "10%"],
        ["--push-round", "0s"],
        ["--push-round", "1h"],
        ["--election-ttl", "1s"],
        ["--election-ttl", "2500ms"],
        ["--etcd-endpoints", "ftp://here"],
        ["--calls-max", "0"],
        ["--connections-max", "0"],
        ["--patience", "0s"],
        ["--message-bytes-max", "much"],
        ["--templates", "etcd:"],
        // A parent, but no name to be known by.
        ["--parent", "127.0.0.1:6970"],
        ["--parent", "etcd://e:2379/eu"],
        ["--log-format", "xml"],
    ] {
        let arguments = ["doorward-server", bad[0], bad[1]];
        assert!(Flags::try_parse_from(arguments).is_err(), "{bad:?}");
    }
}
