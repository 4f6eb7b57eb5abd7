//! The client that a request comes from: an identifier of parts.
//!
//! A missing part is a value of its own: no text equals it, and it never frees the client. Bytes are compared, invalid
//! UTF-8 too. An own extractor is a closure:
//! `Part::Own(Box::new(|request| request.header("x-tenant").map(Value::from)))`.

use std::net::IpAddr;

use doorward_limits::{Key, Keys};

use crate::address::Address;
use crate::path::Template;
use crate::value::{Value, add_to_key};

/// A request, as far as it identifies a client.
#[derive(Clone, Copy, Debug)]
pub struct Request<'a> {
    /// Address of the other end of the connection. `None`: a Unix socket.
    pub peer: Option<IpAddr>,
    /// Method, as written.
    pub method: &'a [u8],
    /// Path, perhaps with a query.
    pub path: &'a [u8],
    /// Header lines, or the entries of gRPC metadata, in order.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// Name of the authenticated user.
    pub login: Option<&'a str>,
}

/// An extractor of the application.
pub type Own = Box<dyn for<'a> Fn(&Request<'a>) -> Option<Value<'a>> + Send + Sync>;

/// A part of an identifier.
pub enum Part {
    /// Name of the authenticated user.
    Login,
    /// Address of the client.
    Address(Address),
    /// First line of a header, such as one with the region, or of an entry of gRPC metadata. The name is in any case.
    Header(String),
    /// First cookie of exactly this name.
    Cookie(String),
    /// Template of the path, not the path.
    Path(Vec<Template>),
    /// Method, as written.
    Method,
    /// An extractor of the application.
    Own(Own),
}

/// The parts that identify a client.
pub struct Who(pub Vec<Part>);

impl Who {
    /// Returns the value of each part.
    pub fn parts<'a>(&'a self, request: &Request<'a>) -> impl Iterator<Item = Option<Value<'a>>> {
        self.0.iter().map(|part| part.value(request))
    }

    /// Returns the client's key. Keys are equal if and only if all their parts are, but for collisions of the hash.
    pub fn key(&self, keys: &Keys, request: &Request<'_>) -> Key {
        let parts = self
            .parts(request)
            .fold(keys.key(), |key, value| add_to_key(key, value.as_deref()));
        parts.finish()
    }
}

impl Part {
    /// Returns the value of this part of a request.
    pub fn value<'a>(&'a self, request: &Request<'a>) -> Option<Value<'a>> {
        match self {
            Self::Login => request.login.map(Value::from),
            Self::Address(address) => address.client(request),
            Self::Header(name) => request.header(name).map(Value::from),
            Self::Cookie(name) => request.cookie(name.as_bytes()).map(Value::from),
            Self::Path(templates) => {
                Template::best(templates, request.path).map(|template| Value::from(template.text()))
            }
            Self::Method => Some(Value::from(request.method)),
            Self::Own(own) => own(request),
        }
    }
}

impl<'a> Request<'a> {
    /// Returns all lines of a header, in order. The name is in any case.
    pub fn lines(&self, name: &str) -> impl DoubleEndedIterator<Item = &'a [u8]> {
        let lines = self.headers.iter();
        lines
            .filter(move |(it, _)| *it == name || it.eq_ignore_ascii_case(name))
            .map(|(_, value)| *value)
    }

    /// Returns the first line of a header, without blanks at its ends.
    pub fn header(&self, name: &str) -> Option<&'a [u8]> {
        self.lines(name).next().map(trimmed)
    }

    /// Returns the first cookie of a name, through all lines. Pairs without `=` do not count.
    pub fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        let pairs = self
            .lines("cookie")
            .flat_map(|line| line.split(|byte| *byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            let (it, value) = pair.split_at(at);
            (trimmed(it) == name).then(|| trimmed(value.get(1..).unwrap_or_default()))
        });
        values.next()
    }
}

/// Returns a text without spaces and tabs at its ends.
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    let is_blank = |byte: &u8| matches!(byte, b' ' | b'\t');
    let start = text.iter().take_while(|byte| is_blank(byte)).count();
    let text = text.get(start..).unwrap_or_default();
    let end = text.iter().rev().take_while(|byte| is_blank(byte)).count();
    text.get(..text.len() - end).unwrap_or_default()
}
