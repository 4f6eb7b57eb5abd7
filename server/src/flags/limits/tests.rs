//! Flags of limits against the limits of the engine.

use clap::{CommandFactory, Parser};

use super::*;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    limits: LimitFlags,
}

fn parse(arguments: &[&str]) -> Result<LimitFlags, clap::Error> {
    let all = std::iter::once(&"program").chain(arguments);
    Flags::try_parse_from(all).map(|flags| flags.limits)
}

#[test]
fn the_defaults_of_the_flags_are_those_of_the_engine() {
    let limits = parse(&["--memory-max", "1GiB"]).expect("valid").of_node();
    let expected = NodeLimits {
        memory_max: 1 << 30,
        memory_per_caller_max: 1 << 28,
        memory_per_template_max: 1 << 30,
        ..NodeLimits::default()
    };
    assert_eq!(limits, expected);
    let limits = parse(&["--memory-max", "100GiB"]).expect("valid").of_node();
    let default = NodeLimits::default().memory_per_caller_max;
    assert_eq!(limits.memory_per_caller_max, default);
    let given = [
        "--memory-per-address-max=7",
        "--memory-per-template-max=8",
        "--newcomers-per-second-per-address-max=9",
    ];
    let limits = parse(&given).expect("valid").of_node();
    assert_eq!(
        (limits.memory_per_caller_max, limits.memory_per_template_max),
        (7, 8)
    );
    assert_eq!(limits.newcomers_per_caller.per_second.get(), 9);
}

#[test]
fn no_limit_may_be_0() {
    for limit in ServerLimit::ALL {
        let flag = limit.texts().flag;
        let valid = if limit.unit() == Unit::Millis {
            "200ms"
        } else {
            "7"
        };
        assert!(parse(&[flag, "0"]).is_err(), "{flag} 0");
        assert!(parse(&[flag, "0s"]).is_err(), "{flag} 0s");
        assert!(parse(&[flag, valid]).is_ok(), "{flag} {valid}");
    }
}

#[test]
fn a_removed_flag_is_accepted_and_names_one_that_exists() {
    let command = Flags::command();
    let is_there = |flag: &str| {
        command
            .get_arguments()
            .any(|it| it.get_long() == Some(flag))
    };
    for removed in REMOVED {
        let limits = parse(&[removed.0, "whatever"]).expect("accepted");
        assert_eq!(limits.removed, [removed]);
        assert_eq!(limits.of_node(), parse(&[]).expect("valid").of_node());
        assert!(is_there(id(removed.1)), "{}", removed.1);
    }
    assert_eq!(parse(&[]).expect("valid").removed, []);
}
