//! Every limit has a flag, and stands in the docs with what the flag says.
//!
//! The table under "Limits" in `docs/configuration.md` has a row for each: flag, default, the name it has in
//! metrics, what is limited. The variable follows from the flag by a rule that the docs state.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use clap::{Arg, Command, CommandFactory};
use doorward_server::flags::Flags;
use doorward_server::limits::ServerLimit;

fn read(name: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
    fs::read_to_string(docs.join(name)).unwrap()
}

/// The rows of the table, by flag: default, name, what is limited.
fn rows() -> BTreeMap<String, Vec<String>> {
    let text = read("configuration.md");
    let section = text.split("\n### Limits\n").nth(1).expect("a section");
    let section = section.split("\n#").next().unwrap();
    let rows = section.lines().filter_map(|line| {
        let line = line.strip_prefix("| `--")?.strip_suffix(" |")?;
        let mut cells = line.split(" | ").map(|cell| cell.replace('`', ""));
        let flag = cells.next()?;
        let flag = flag.split(' ').next()?;
        Some((format!("--{flag}"), cells.collect()))
    });
    rows.collect()
}

fn flag_of(command: &Command, limit: ServerLimit) -> Option<&Arg> {
    let long = limit.flag().trim_start_matches("--");
    command
        .get_arguments()
        .find(|it| it.get_long() == Some(long))
}

/// A default as a number if it is one, whatever its unit and however its digits are grouped: `256 KiB` is
/// 262144.
fn parsed(text: &str) -> Option<f64> {
    let text = text.replace([',', '_', ' '], "").to_lowercase();
    let digits = text.find(|c: char| !c.is_ascii_digit() && c != '.');
    let (number, unit) = text.split_at(digits.unwrap_or(text.len()));
    let factor = match unit {
        "" | "/s" | "b" => 1.0,
        "kib" => 1_024.0,
        "mib" => 1_048_576.0,
        "gib" => 1_073_741_824.0,
        "ms" => 0.001,
        "s" => 1.0,
        _ => return None,
    };
    Some(number.parse::<f64>().ok()? * factor)
}

#[test]
fn every_limit_has_a_flag_with_a_variable_and_a_help_text() {
    let command = Flags::command();
    let without: Vec<&str> = ServerLimit::ALL
        .iter()
        .filter(|limit| {
            let flag = flag_of(&command, **limit);
            !flag.is_some_and(|it| it.get_env().is_some() && it.get_help().is_some())
        })
        .map(|limit| limit.flag())
        .collect();
    assert!(without.is_empty(), "doorward-server has no {without:?}");
}

#[test]
fn the_docs_have_every_limit_with_the_default_of_its_flag() {
    let command = Flags::command();
    let rows = rows();
    let mut wrong = Vec::new();
    for limit in ServerLimit::ALL {
        let Some([default, name, what]) = rows.get(limit.flag()).map(Vec::as_slice) else {
            wrong.push(format!(
                "{}: no row, or not one of four cells",
                limit.flag()
            ));
            continue;
        };
        let expected = limit.flag().trim_start_matches('-').replace('-', "_");
        let expected = format!("DOORWARD_{}", expected.to_uppercase());
        if name != limit.name() || default.is_empty() || what.is_empty() {
            wrong.push(format!(
                "{}: {} is not in its row, or a cell is empty",
                limit.flag(),
                limit.name()
            ));
        }
        let Some(flag) = flag_of(&command, *limit) else {
            continue; // Another test says so.
        };
        if let Some(given) = flag
            .get_env()
            .filter(|it| it.to_str() != Some(expected.as_str()))
        {
            wrong.push(format!("{}: the variable is {given:?}", limit.flag()));
        }
        match flag.get_default_values() {
            [] => {
                // What a server finds out when it starts, the help says.
                let help = flag
                    .get_long_help()
                    .or(flag.get_help())
                    .unwrap()
                    .to_string();
                if !help.contains("[default: ") || parsed(default).is_some() {
                    wrong.push(format!(
                        "{}: the help names no default, or the docs name a fixed one",
                        limit.flag()
                    ));
                }
            }
            values => {
                let value = values[0].to_str().unwrap();
                let is_same = match (parsed(value), parsed(default)) {
                    (Some(flag), Some(docs)) => flag == docs,
                    _ => value == default,
                };
                if !is_same {
                    wrong.push(format!("{}: the default is {value}", limit.flag()));
                }
            }
        }
    }
    let documented = rows.len();
    if documented != ServerLimit::ALL.len() {
        wrong.push(format!(
            "{documented} rows for {} limits",
            ServerLimit::ALL.len()
        ));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_said_of_security_names_every_limit() {
    let text = read("security.md");
    let missing: Vec<&str> = ServerLimit::ALL
        .iter()
        .map(|limit| limit.flag())
        .filter(|flag| !text.contains(&format!("`{flag}`")))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/security.md does not name {missing:?}"
    );
}
