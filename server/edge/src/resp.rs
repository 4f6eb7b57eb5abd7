//! The door for clients of Redis: `THROTTLE key max_burst count_per_period period [quantity]` with the answer of
//! [redis-cell](https://github.com/brandur/redis-cell), also under its name `CL.THROTTLE`. See [`throttle`].
//!
//! If a rule of the domain `redis` matches the descriptor `key: KEY`, it decides, and the answer has its numbers.
//! Otherwise the numbers in the command count, in this process, and the domain's `unmatched: reject` refuses. `CLIENT
//! SETNAME` names the caller among whom shared limits are divided; without it, the caller is an address.
//!
//! The commands of one read are answered by one write, in their order. A command has [`COMMAND_BYTES_MAX`] bytes at
//! most, or the bound of the door. A half-sent command has to be complete within the patience of the door. An idle
//! connection stays until the door needs its place.

mod codec;
mod command;
mod session;
mod throttle;

use std::io;
use std::pin::pin;
use std::sync::Arc;

use doorward::rules::{Descriptor, Entry, Settled};
use doorward_door::Door;
use doorward_door::listener::Listener;
use doorward_door::raw::{self, Conversation};
use doorward_limits::Moment;
use tokio_util::sync::CancellationToken;
use tracing::debug;

use crate::asker::Asker;
use crate::clock;
use crate::edge::{Asked, Edge, REDIS_DOMAIN};
use crate::resp::codec::{Malformed, Reply, Words};
use crate::resp::command::Command;
use crate::resp::session::Session;
use crate::resp::throttle::{Answer, Buckets, Throttle};
use crate::rls::NOT_LOADED;

/// Key of the entry of a descriptor.
pub const ENTRY: &str = "key";

/// Largest command, in bytes.
pub const COMMAND_BYTES_MAX: usize = 64 * 1024;

/// Largest number of keys that no rule matches. Beyond it, new keys are refused.
pub const KEYS_MAX: usize = 1_000_000;

/// Memory for each of these keys.
const BYTES_OF_KEY: usize = 128;

/// Bytes of answers after which they are written, even if more commands are there.
const ANSWERS_BYTES_MAX: usize = 64 * 1024;

/// Bytes of a buffer that an idle connection keeps.
const KEPT_BYTES_MAX: usize = 512;

/// Serves clients of Redis until `stop`, then finishes the commands in progress.
pub async fn serve(
    listener: impl Into<Listener>,
    edge: Arc<Edge>,
    door: Arc<Door>,
    stop: CancellationToken,
) {
    let keys_max = KEYS_MAX.min(edge.room.bytes_max() / BYTES_OF_KEY);
    let buckets = Buckets::new(keys_max, clock::seed());
    let server = Arc::new(Server { edge, buckets });
    let stopping = stop.clone();
    raw::serve(listener, door, stop, move |client| {
        let (server, stop) = (Arc::clone(&server), stopping.clone());
        async move {
            if let Err(error) = server.converse(client, stop).await {
                debug!(%error, "a connection ended");
            }
        }
    })
    .await;
}

/// State of all connections.
struct Server {
    edge: Arc<Edge>,
    buckets: Buckets,
}

/// State of the conversation after a command.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    Continue,
    Close,
}

impl Server {
    async fn converse(&self, mut client: Conversation, stop: CancellationToken) -> io::Result<()> {
        let mut session = Session::new(client.id(), client.caller(), client.identity());
        let (mut held, mut answers) = (Vec::new(), Vec::new());
        let mut stopped = pin!(stop.cancelled());
        loop {
            let is_open = tokio::select! {
                biased;
                is_open = client.read(&mut held) => is_open?,
                () = stopped.as_mut() => return Ok(()),
            };
            if !is_open {
                return Ok(());
            }
            let mut rest = held.as_slice();
            let answering = self.answer_all(&mut client, &mut session, &mut rest, &mut answers);
            // In a box, so that an idle connection has no room for a decision.
            let next = Box::pin(answering).await?;
            let (left, done) = (rest.len(), held.len() - rest.len());
            held.drain(..done);
            if !answers.is_empty() {
                client.write(&answers).await?;
                answers.clear();
            }
            if next == Next::Close {
                return Ok(());
            }
            if !client.end(left, done > 0) {
                let full = Reply::error("too many bytes in incomplete commands");
                full.write(session.version, &mut answers);
                return client.write(&answers).await;
            }
            for buffer in [&mut held, &mut answers] {
                if buffer.is_empty() && buffer.capacity() > KEPT_BYTES_MAX {
                    *buffer = Vec::new();
                }
            }
        }
    }

    /// Answers the complete commands, and removes them.
    async fn answer_all(
        &self,
        client: &mut Conversation,
        session: &mut Session,
        rest: &mut &[u8],
        answers: &mut Vec<u8>,
    ) -> io::Result<Next> {
        let bytes_max = COMMAND_BYTES_MAX.min(client.request_bytes_max());
        let now = client.begin();
        loop {
            let words = match codec::next_command(rest, bytes_max) {
                Ok(Some(words)) => words,
                Ok(None) => return Ok(Next::Continue),
                Err(Malformed(problem)) => {
                    let malformed = Reply::error(format!("Protocol error: {problem}"));
                    malformed.write(session.version, answers);
                    return Ok(Next::Close);
                }
            };
            if words.is_empty() {
                continue;
            }
            if !client.takes_request(now) {
                let busy = "too many commands of this address; try again";
                Reply::error(busy).write(session.version, answers);
            } else if self.answer(client, session, &words, answers).await == Next::Close {
                return Ok(Next::Close);
            }
            if answers.len() >= ANSWERS_BYTES_MAX {
                client.write(answers).await?;
                answers.clear();
            }
        }
    }

    async fn answer(
        &self,
        client: &Conversation,
        session: &mut Session,
        words: &Words<'_>,
        answers: &mut Vec<u8>,
    ) -> Next {
        let command = Command::parse(words);
        if let Ok(
            Command::Auth(token)
            | Command::Hello {
                token: Some(token), ..
            },
        ) = command
        {
            match client.prove(token) {
                Ok(identity) => session.identify(identity),
                Err(denied) => {
                    let denied = Reply::Error("WRONGPASS", denied.to_string());
                    denied.write(session.version, answers);
                    return Next::Continue;
                }
            }
        }
        let is_last = command == Ok(Command::Quit);
        let reply = match command {
            Err(refusal) => refusal,
            Ok(_) if !session.is_open && !is_last => {
                let advice = "Authentication required: AUTH TOKEN, or a client certificate";
                Reply::Error("NOAUTH", advice.to_owned())
            }
            Ok(Command::Throttle(_)) if !self.edge.is_loaded() => Reply::error(NOT_LOADED),
            Ok(Command::Throttle(command)) => {
                Reply::Integers(self.throttle(&command, &session.caller).await)
            }
            Ok(command) => {
                session.note(&command);
                session.reply(command)
            }
        };
        reply.write(session.version, answers);
        if is_last { Next::Close } else { Next::Continue }
    }

    async fn throttle(&self, command: &Throttle<'_>, caller: &Asker) -> Answer {
        let entries = [Entry {
            key: ENTRY,
            value: Some(command.key),
        }];
        let descriptors = [Descriptor {
            entries: &entries,
            hits: None,
        }];
        let mut asked = Asked {
            domain: REDIS_DOMAIN,
            descriptors: &descriptors,
            hits: command.quantity.map(i64::unsigned_abs),
            caller,
        };
        if command.gives_back() {
            self.edge.settle(&asked, Settled::Refund).await;
            asked.hits = Some(0);
        }
        let decision = self.edge.decide(&asked).await;
        command.answer_by_rule(&decision).unwrap_or_else(|| {
            let now = self.edge.clock.now().since_origin();
            let now = Moment::ORIGIN.after(now);
            self.buckets.take(command, caller, now)
        })
    }
}

#[cfg(test)]
mod tests;
