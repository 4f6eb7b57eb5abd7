//! What can be typed in the shell: the commands, their help, and how a line becomes one.
//!
//! Words are split as a shell splits them, so names with spaces go in quotes. An empty line and a
//! line that starts with `#` do nothing.

use crate::flags::amount;

/// A command as its help shows it.
struct Topic {
    name: &'static str,
    usage: &'static str,
    about: &'static str,
    /// What `help COMMAND` adds.
    more: &'static str,
}

const TOPICS: [Topic; 7] = [
    Topic {
        name: "get",
        usage: "get CLIENT RESOURCE WANTS [PRIORITY]",
        about: "ask as CLIENT, and hold what it gets",
        more: "The lease is refreshed in the background until it is released. Asking again changes\n  \
               what CLIENT wants, and reports to the server what it has. PRIORITY matters only to\n  \
               PRIORITY_BANDS; without it it stays as it was, 0 at first.",
    },
    Topic {
        name: "release",
        usage: "release CLIENT [RESOURCE]",
        about: "give it back; without RESOURCE everything CLIENT has",
        more: "Only what was got in this shell; `doorward release` gives back what others hold.",
    },
    Topic {
        name: "show",
        usage: "show",
        about: "what all clients here have",
        more: "Client, resource, what it may use of what it wants, and how long the lease lasts.",
    },
    Topic {
        name: "status",
        usage: "status [RESOURCE]",
        about: "what the master holds",
        more: "With RESOURCE every lease on it, those of others too, and why it is what it is.",
    },
    Topic {
        name: "master",
        usage: "master",
        about: "who the master is",
        more: "The address, and the epoch of its mastership.",
    },
    Topic {
        name: "help",
        usage: "help [COMMAND]",
        about: "this, or more about COMMAND",
        more: "Lines that start with # are remarks. Names with spaces go in quotes.",
    },
    Topic {
        name: "quit",
        usage: "quit",
        about: "release everything and leave (also Ctrl-D)",
        more: "A script ends like this by itself.",
    },
];

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
    Master,
    /// The text to print.
    Help(String),
    Quit,
    Nothing,
}

/// The names of all commands.
pub(super) fn commands() -> impl Iterator<Item = &'static str> {
    TOPICS.iter().map(|topic| topic.name)
}

/// What a line asks for, or what is wrong with it.
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
        ["release", client] => ShellLine::Release {
            client: owned(client),
            resource: None,
        },
        ["release", client, resource] => ShellLine::Release {
            client: owned(client),
            resource: Some(owned(resource)),
        },
        ["show"] => ShellLine::Show,
        ["status"] => ShellLine::Status { resource: None },
        ["status", resource] => ShellLine::Status {
            resource: Some(owned(resource)),
        },
        ["master"] => ShellLine::Master,
        ["help" | "?"] => ShellLine::Help(help()),
        ["help" | "?", command] => ShellLine::Help(help_about(command)?),
        ["quit" | "exit"] => ShellLine::Quit,
        [command, ..] => {
            let topic = topic(command)?;
            return Err(format!("usage: {}", topic.usage));
        }
    })
}

fn priority(text: &str) -> Result<i64, String> {
    text.parse()
        .map_err(|_| format!("{text:?} is no priority; give a whole number"))
}

fn topic(command: &str) -> Result<&'static Topic, String> {
    let found = TOPICS.iter().find(|topic| topic.name == command);
    found.ok_or_else(|| {
        let commands: Vec<&str> = commands().collect();
        format!(
            "{command:?} is no command; there are {}",
            commands.join(", ")
        )
    })
}

fn help() -> String {
    let width = TOPICS.iter().map(|topic| topic.usage.len()).max();
    let width = width.unwrap_or(0);
    TOPICS
        .iter()
        .map(|topic| format!("{:width$}  {}\n", topic.usage, topic.about))
        .collect()
}

fn help_about(command: &str) -> Result<String, String> {
    let Topic {
        usage, about, more, ..
    } = topic(command)?;
    Ok(format!("{usage}\n  {about}\n  {more}\n"))
}

#[cfg(test)]
mod tests;
