//! The session of a client: its name and its version of the protocol.

use crate::resp::codec::{Reply, Version};
use crate::resp::command::Command;

/// Answer to `INFO`.
const INFO: &str = concat!(
    "# Server\r\nredis_mode:standalone\r\ndoorward_version:",
    env!("CARGO_PKG_VERSION"),
    "\r\nloading:0\r\n"
);

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Number of the connection.
    id: i64,
    version: Version,
    /// Empty: the client has not given one.
    name: String,
    address: String,
}

impl Session {
    /// Creates the session of a new connection.
    pub(super) fn new(id: u64, address: String) -> Self {
        Self {
            id: i64::try_from(id).unwrap_or(i64::MAX),
            version: Version::default(),
            name: String::new(),
            address,
        }
    }

    /// Returns the version of the protocol.
    pub(super) const fn version(&self) -> Version {
        self.version
    }

    /// Returns the name of the caller for fair shares: that of the client, or else its address.
    pub(super) fn caller(&self) -> &str {
        match self.name.as_str() {
            "" => &self.address,
            name => name,
        }
    }

    /// Appends the answer to a command other than `THROTTLE`.
    pub(super) fn answer(&mut self, command: &Command<'_>, answers: &mut Vec<u8>) {
        if let Command::Hello { version, .. } = command {
            self.version = version.unwrap_or(self.version);
        }
        if let Command::SetName(name)
        | Command::Hello {
            name: Some(name), ..
        } = command
        {
            (*name).clone_into(&mut self.name);
        }
        let reply = match command {
            Command::Ping(None) => Reply::Simple("PONG"),
            Command::Ping(Some(message)) | Command::Echo(message) => Reply::Bulk(message),
            Command::Hello { .. } => return self.introduce(answers),
            Command::GetName if self.name.is_empty() => Reply::Null,
            Command::GetName => Reply::Bulk(self.name.as_bytes()),
            Command::Id => Reply::Integer(self.id),
            Command::Info => Reply::Bulk(INFO.as_bytes()),
            Command::SetName(_) | Command::SetInfo | Command::Select | Command::Quit => {
                Reply::Simple("OK")
            }
            Command::Commands | Command::Throttle(_) => Reply::Array(&[]),
        };
        reply.write(self.version, answers);
    }

    fn introduce(&self, answers: &mut Vec<u8>) {
        let text = |text: &'static str| Reply::Bulk(text.as_bytes());
        let version = match self.version {
            Version::Resp2 => 2,
            Version::Resp3 => 3,
        };
        let introduction = [
            (text("server"), text("doorward")),
            (text("version"), text(env!("CARGO_PKG_VERSION"))),
            (text("proto"), Reply::Integer(version)),
            (text("id"), Reply::Integer(self.id)),
            (text("mode"), text("standalone")),
            (text("role"), text("master")),
            (text("modules"), Reply::Array(&[])),
        ];
        let introduction: Vec<_> = introduction.into_iter().flat_map(<[_; 2]>::from).collect();
        Reply::Map(&introduction).write(self.version, answers);
    }
}
