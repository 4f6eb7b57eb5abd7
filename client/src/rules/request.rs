//! A request, as far as it identifies a client.

use std::net::IpAddr;

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
        self.lines(name).next().map(<[u8]>::trim_ascii)
    }

    /// Returns the first cookie of a name, through all lines. Pairs without `=` do not count.
    pub fn cookie(&self, name: &[u8]) -> Option<&'a [u8]> {
        let pairs = self
            .lines("cookie")
            .flat_map(|line| line.split(|byte| *byte == b';'));
        let mut values = pairs.filter_map(|pair| {
            let at = pair.iter().position(|byte| *byte == b'=')?;
            let (it, value) = pair.split_at(at);
            (it.trim_ascii() == name).then(|| value.get(1..).unwrap_or_default().trim_ascii())
        });
        values.next()
    }
}
