//! The session of a client: its name and its version of the protocol.

use doorward_door::access::Denied;
use doorward_door::caller_id::CallerId;
use doorward_tls::identity::Identity;

use crate::asker::Asker;
use crate::resp::codec::{Reply, Version};
use crate::resp::command::Command;

/// A session.
#[derive(Clone, Debug)]
pub(super) struct Session {
    /// Number of the connection.
    id: i64,
    pub(super) version: Version,
    /// Empty: the client has not given one.
    name: String,
    address: CallerId,
    /// The caller for fair shares.
    pub(super) caller: Asker,
    identity: Option<Identity>,
    /// Whether commands are answered, or only `AUTH` and `HELLO`: the caller needs no token, or has given one.
    pub(super) is_open: bool,
}

impl Session {
    /// Creates the session of a new connection.
    pub(super) fn new(
        id: u64,
        address: CallerId,
        proved: Result<Option<Identity>, Denied>,
    ) -> Self {
        let mut session = Self {
            id: i64::try_from(id).unwrap_or(i64::MAX),
            version: Version::default(),
            name: String::new(),
            address,
            caller: Asker::new(None, None, Some(&address)),
            identity: None,
            is_open: false,
        };
        if let Ok(identity) = proved {
            session.identify(identity);
        }
        session
    }

    /// Notes the identity that the caller has proved. None: it needs none.
    pub(super) fn identify(&mut self, identity: Option<Identity>) {
        self.is_open = true;
        self.identity = identity;
        self.rename();
    }

    fn rename(&mut self) {
        let (name, identity) = (Some(self.name.as_str()), self.identity.as_ref());
        self.caller = Asker::new(name, identity, Some(&self.address));
    }

    /// Notes what a command changes.
    pub(super) fn note(&mut self, command: &Command<'_>) {
        if let Command::Hello { version, .. } = command {
            self.version = version.unwrap_or(self.version);
        }
        if let Command::SetName(name)
        | Command::Hello {
            name: Some(name), ..
        } = command
        {
            (*name).clone_into(&mut self.name);
            self.rename();
        }
    }

    /// Returns the reply to a command other than `THROTTLE`.
    pub(super) fn reply<'a>(&'a self, command: Command<'a>) -> Reply<'a> {
        match command {
            Command::Answered(reply) => reply,
            Command::Hello { .. } => self.introduction(),
            Command::GetName if self.name.is_empty() => Reply::Null,
            Command::GetName => Reply::Bulk(self.name.as_bytes()),
            Command::Id => Reply::Integer(self.id),
            Command::Auth(_) | Command::SetName(_) | Command::Quit => Reply::OK,
            Command::Throttle(_) => Reply::Empty,
        }
    }

    fn introduction(&self) -> Reply<'static> {
        let text = |text: &'static str| Reply::Bulk(text.as_bytes());
        let version = match self.version {
            Version::Resp2 => 2,
            Version::Resp3 => 3,
        };
        Reply::Map(vec![
            ("server", text("doorward")),
            ("version", text(env!("CARGO_PKG_VERSION"))),
            ("proto", Reply::Integer(version)),
            ("id", Reply::Integer(self.id)),
            ("mode", text("standalone")),
            ("role", text("master")),
            ("modules", Reply::Empty),
        ])
    }
}
