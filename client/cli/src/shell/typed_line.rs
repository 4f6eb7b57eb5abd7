//! Lines of the shell: the commands, their help, and the parser.
//!
//! Words are split as a shell splits them, so names with spaces go in quotes. An empty line and a
//! line that starts with `#` do nothing.

use crate::flags::amount;

/// Help: a line for each command, with its usage first.
pub(super) const HELP: &str = "\
get CLIENT RESOURCE WANTS [PRIORITY]  ask as CLIENT, and hold the lease; again: change the amount
release CLIENT [RESOURCE]             release a lease of this shell; without RESOURCE all of CLIENT
show                                  list the leases of this shell
status [RESOURCE]                     show the master's resources; with RESOURCE every lease of it
help                                  print this
quit                                  release everything and leave (also Ctrl-D, or the end of a script)
";

/// A command, parsed.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ShellLine {
    Get {
        client: String,
        resource: String,
        wants: f64,
        /// Absent: as before.
        priority: Option<i64>,
    },
    Release {
        client: String,
        resource: Option<String>,
    },
    Show,
    Status {
        resource: Option<String>,
    },
    Help,
    Quit,
    Nothing,
}

/// Parses a line, or says why it is invalid.
pub(super) fn parse(line: &str) -> Result<ShellLine, String> {
    if line.trim_start().starts_with('#') {
        return Ok(ShellLine::Nothing);
    }
    let Some(words) = shlex::split(line) else {
        return Err("a quote is not closed".to_owned());
    };
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let owned = |text: &str| text.to_owned();
    Ok(match words.as_slice() {
        [] => ShellLine::Nothing,
        ["get", client, resource, wants, rest @ ..] if rest.len() <= 1 => ShellLine::Get {
            client: owned(client),
            resource: owned(resource),
            wants: amount(wants)?,
            priority: rest.first().map(|text| priority(text)).transpose()?,
        },
        ["release", client, rest @ ..] if rest.len() <= 1 => ShellLine::Release {
            client: owned(client),
            resource: rest.first().map(|id| owned(id)),
        },
        ["show"] => ShellLine::Show,
        ["status", rest @ ..] if rest.len() <= 1 => ShellLine::Status {
            resource: rest.first().map(|id| owned(id)),
        },
        ["help" | "?"] => ShellLine::Help,
        ["quit" | "exit"] => ShellLine::Quit,
        [command, ..] => return Err(usage(command)),
    })
}

fn priority(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no priority; give a whole number"))
}

/// Returns the usage of a command, or the list of commands if there is none of that name.
fn usage(command: &str) -> String {
    let name = |line: &'static str| line.split(' ').next().unwrap_or_default();
    match HELP.lines().find(|line| name(line) == command) {
        Some(line) => format!("usage: {}", line.split("  ").next().unwrap_or_default()),
        None => {
            let names: Vec<&str> = HELP.lines().map(name).collect();
            format!("{command:?} is no command; there are {}", names.join(", "))
        }
    }
}

#[cfg(test)]
mod tests;
