//! Flags of limits against the limits of the engine.

use clap::Parser;

use super::*;

#[derive(Parser)]
struct Flags {
    #[command(flatten)]
    limits: LimitFlags,
}

fn parse(arguments: &[&str]) -> Result<NodeLimits, clap::Error> {
    let all = std::iter::once(&"program").chain(arguments);
    Flags::try_parse_from(all).map(|flags| flags.limits.of_node())
}

#[test]
fn the_defaults_of_the_flags_are_those_of_the_engine() {
    let limits = parse(&["--memory-max", "1KiB"]).expect("valid");
    let expected = NodeLimits {
        memory_max: Some(1024),
        ..NodeLimits::default()
    };
    assert_eq!(limits, expected);
}

#[test]
fn no_limit_may_be_0() {
    use clap::CommandFactory;
    let command = Flags::command();
    let mut seen = 0;
    for argument in command.get_arguments() {
        let Some(long) = argument.get_long().filter(|long| long.ends_with("-max")) else {
            continue;
        };
        let refused = parse(&[&format!("--{long}"), "0"]);
        assert!(refused.is_err(), "--{long} 0");
        assert!(parse(&[&format!("--{long}"), "7"]).is_ok(), "--{long} 7");
        seen += 1;
    }
    assert!(seen > 20, "{seen}");
}

#[test]
fn every_limit_of_the_node_has_its_flag() {
    use crate::limits::ServerLimit;
    use clap::CommandFactory;
    let command = Flags::command();
    for limit in doorward_engine::limit::Limit::ALL {
        let flag = ServerLimit::of(limit).flag();
        let found = command.get_arguments().any(|it| {
            it.get_long()
                .is_some_and(|long| format!("--{long}") == flag)
        });
        assert!(found, "{flag}");
    }
}
