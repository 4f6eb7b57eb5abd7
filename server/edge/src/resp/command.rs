//! Commands, and the answers that need no limit.
//!
//! Clients introduce themselves with `HELLO`, `CLIENT`, `COMMAND`, `SELECT` and `INFO` before their first request. The
//! answers are those of a Redis with one database. `AUTH` takes a token, if the server has tokens.

use crate::asker::NAME_BYTES_MAX;
use crate::resp::codec::{Reply, Version, Words, integer, quoted};
use crate::resp::throttle::{Numbers, Throttle};

/// Longest key, in bytes: a shared rule has a resource for each key, with a name that contains it.
const KEY_BYTES_MAX: usize = 1_024;

/// Answer to `INFO`, which some clients ask before their first request.
const INFO: &str = concat!(
    "# Server\r\nredis_mode:standalone\r\ndoorward_version:",
    env!("CARGO_PKG_VERSION"),
    "\r\nloading:0\r\n"
);

const USAGE: &str = "Usage: THROTTLE <key> <max_burst> <count per period> <period> [<quantity>]";

/// A valid command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Command<'a> {
    Throttle(Throttle<'a>),
    Hello {
        version: Option<Version>,
        name: Option<&'a str>,
        token: Option<&'a [u8]>,
    },
    /// A token, with or without a user, which has no meaning.
    Auth(&'a [u8]),
    SetName(&'a str),
    GetName,
    Id,
    Quit,
    /// One with the same reply in every session.
    Answered(Reply<'a>),
}

impl<'a> Command<'a> {
    /// Parses a command.
    ///
    /// # Errors
    ///
    /// The text of the error for the client.
    pub(super) fn parse(words: &Words<'a>) -> Result<Self, Reply<'a>> {
        let (name, arguments) = words.split_first().ok_or_else(|| wrong_number(b""))?;
        let is = |known: &str| name.eq_ignore_ascii_case(known.as_bytes());
        if is("THROTTLE") || is("CL.THROTTLE") {
            return throttle(arguments).map(Self::Throttle);
        }
        let command = match arguments {
            [] if is("PING") => Self::Answered(Reply::Simple("PONG")),
            [message] if is("PING") || is("ECHO") => Self::Answered(Reply::Bulk(message)),
            arguments if is("HELLO") => return hello(arguments),
            [token] | [_, token] if is("AUTH") => Self::Auth(token),
            [subcommand, arguments @ ..] if is("CLIENT") => return client(subcommand, arguments),
            // The list of commands is empty: clients use it for clusters and for completion.
            _ if is("COMMAND") => Self::Answered(Reply::Empty),
            _ if is("INFO") => Self::Answered(Reply::Bulk(INFO.as_bytes())),
            // The only database.
            [b"0"] if is("SELECT") => Self::Answered(Reply::OK),
            [_] if is("SELECT") => return error("DB index is out of range"),
            _ if is("QUIT") => Self::Quit,
            _ if is("PING") || is("ECHO") || is("AUTH") || is("CLIENT") || is("SELECT") => {
                return Err(wrong_number(name));
            }
            _ => {
                let name = quoted(name);
                return error(format!("unknown command '{name}'; there is THROTTLE"));
            }
        };
        Ok(command)
    }
}

fn error<T>(text: impl Into<String>) -> Result<T, Reply<'static>> {
    Err(Reply::error(text))
}

fn wrong_number(name: &[u8]) -> Reply<'static> {
    let name = quoted(name);
    Reply::error(format!("wrong number of arguments for '{name}' command"))
}

fn throttle<'a>(arguments: &[&'a [u8]]) -> Result<Throttle<'a>, Reply<'static>> {
    let (key, max_burst, count, period, quantity) = match *arguments {
        [key, max_burst, count, period] => (key, max_burst, count, period, None),
        [key, max_burst, count, period, quantity] => {
            (key, max_burst, count, period, Some(quantity))
        }
        _ => return error(USAGE),
    };
    if key.len() > KEY_BYTES_MAX {
        return error(format!("a key has at most {KEY_BYTES_MAX} bytes"));
    }
    let quantity = quantity.map(number);
    let throttle = Throttle {
        key,
        numbers: Numbers {
            max_burst: whole(max_burst, "max_burst")?,
            count: whole(count, "count per period")?,
            period: whole(period, "period")?,
        },
        quantity: quantity.transpose()?,
    };
    match throttle.numbers {
        Numbers { count: 0, .. } | Numbers { period: 0, .. } => {
            error("Zero rates are not supported")
        }
        _ => Ok(throttle),
    }
}

fn number(text: &[u8]) -> Result<i64, Reply<'static>> {
    let unread = || Reply::error(format!("Couldn't parse as integer: {}", quoted(text)));
    integer(text).ok_or_else(unread)
}

fn whole(text: &[u8], name: &str) -> Result<u64, Reply<'static>> {
    match u64::try_from(number(text)?) {
        Ok(number) => Ok(number),
        Err(_) => error(format!("{name} is negative; give at least 0")),
    }
}

fn hello<'a>(arguments: &[&'a [u8]]) -> Result<Command<'a>, Reply<'a>> {
    let (version, mut options) = match arguments {
        [] => (None, arguments),
        [b"2", options @ ..] => (Some(Version::Resp2), options),
        [b"3", options @ ..] => (Some(Version::Resp3), options),
        _ => {
            let problem = "unsupported protocol version".to_owned();
            return Err(Reply::Error("NOPROTO", problem));
        }
    };
    let (mut name, mut token) = (None, None);
    while let [option, values @ ..] = options {
        let is = |known: &str| option.eq_ignore_ascii_case(known.as_bytes());
        options = match values {
            [set, options @ ..] if is("SETNAME") => {
                name = Some(client_name(set)?);
                options
            }
            [_, given, options @ ..] if is("AUTH") => {
                token = Some(*given);
                options
            }
            _ => return error(format!("Syntax error in HELLO option '{}'", quoted(option))),
        };
    }
    Ok(Command::Hello {
        version,
        name,
        token,
    })
}

fn client<'a>(subcommand: &[u8], arguments: &[&'a [u8]]) -> Result<Command<'a>, Reply<'a>> {
    let is = |known: &str| subcommand.eq_ignore_ascii_case(known.as_bytes());
    match arguments {
        [name] if is("SETNAME") => Ok(Command::SetName(client_name(name)?)),
        [_, _] if is("SETINFO") => Ok(Command::Answered(Reply::OK)),
        [] if is("GETNAME") => Ok(Command::GetName),
        [] if is("ID") => Ok(Command::Id),
        _ => error(format!(
            "unknown subcommand or wrong number of arguments for '{}'",
            quoted(subcommand)
        )),
    }
}

fn client_name(name: &[u8]) -> Result<&str, Reply<'static>> {
    let is_plain = name.iter().all(u8::is_ascii_graphic);
    match str::from_utf8(name).ok().filter(|_| is_plain) {
        Some(name) if name.len() <= NAME_BYTES_MAX => Ok(name),
        Some(_) => error(format!("Client names have at most {NAME_BYTES_MAX} bytes")),
        None => error("Client names cannot contain spaces, newlines or special characters."),
    }
}
