//! Flags and `--help`, and where a flag may stand.

use super::*;

#[test]
fn the_flags_are_consistent_and_the_help_names_every_exit_code() {
    command().debug_assert();
    let help = command().render_long_help().to_string();
    for code in [
        "0 done",
        "1 the answer is no",
        "2 wrong usage",
        "3 no server",
    ] {
        assert!(help.contains(code), "{code}");
    }
}

#[test]
fn a_help_shows_the_flags_of_its_command_and_says_where_the_others_are() {
    let mut command = command();
    command.build();
    for name in ["get", "watch", "status", "nodes"] {
        let help = command.find_subcommand_mut(name).unwrap();
        let help = help.render_long_help().to_string();
        assert!(help.contains("doorward options"), "{help}");
        for shared in ["--server <", "--color <", "--etcd-ca <"] {
            assert!(!help.contains(shared), "{shared} in {help}");
        }
    }
    let shared = shared_help();
    for flag in [
        "--server <",
        "--output <",
        "--timeout <",
        "--color <",
        "--etcd-ca <",
    ] {
        assert!(shared.contains(flag), "{flag} not in {shared}");
    }
}

#[test]
fn a_shared_flag_counts_before_a_command_and_after_it() {
    for arguments in [
        ["doorward", "--timeout", "30", "status"],
        ["doorward", "status", "--timeout", "30s"],
    ] {
        let flags = Flags::try_parse_from(arguments).unwrap();
        assert_eq!(flags.common.timeout, Duration::from_secs(30));
    }
}

#[test]
fn a_negative_amount_is_refused_as_one_and_is_no_unknown_flag() {
    for command in ["get", "watch"] {
        let refused = Flags::try_parse_from(["doorward", command, "example/fair", "-5"]);
        let refused = refused.unwrap_err().to_string();
        assert!(
            refused.contains("\"-5\" is no amount; give a number from 0"),
            "{refused}"
        );
    }
}

#[test]
fn amounts_are_numbers_that_a_server_takes() {
    assert_eq!(amount("2.5"), Ok(2.5));
    for bad in ["", "x", "-1", "NaN", "inf", "1e16"] {
        assert!(amount(bad).is_err(), "{bad}");
    }
}
