//! A request as people write it: `POST /login user=ann ip=192.0.2.1`.

use std::net::IpAddr;
use std::str::FromStr;

use doorward::rules::{Address, Request};

/// A request, as the entries that rules may ask for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TriedRequest {
    /// As it was written.
    pub(crate) text: String,
    entries: Vec<(String, Vec<u8>)>,
}

impl TriedRequest {
    /// Returns the value of an entry.
    pub(crate) fn value(&self, key: &str) -> Option<&[u8]> {
        let mut entries = self.entries.iter();
        let found = entries.find(|(name, _)| name == key);
        found.map(|(_, value)| value.as_slice())
    }

    /// Returns the keys that were written as `KEY=VALUE`.
    pub(crate) fn written_keys(&self) -> impl Iterator<Item = &str> {
        let keys = self.entries.iter().map(|(key, _)| key.as_str());
        keys.filter(|key| !matches!(*key, "method" | "path" | "remote_address"))
    }

    fn add(&mut self, key: &str, value: Vec<u8>) -> Result<(), String> {
        if self.value(key).is_some() {
            return Err(format!("{key} is there twice; give it once"));
        }
        self.entries.push((key.to_owned(), value));
        Ok(())
    }
}

impl FromStr for TriedRequest {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let words = shlex::split(text).ok_or("a quote is left open")?;
        let mut request = Self {
            text: text.trim().to_owned(),
            entries: Vec::new(),
        };
        for word in &words {
            if word.starts_with('/') {
                let path = word.split('?').next().unwrap_or_default();
                request.add("path", path.as_bytes().to_vec())?;
                continue;
            }
            match word.split_once('=') {
                Some(("", _)) => return Err(format!("{word} has no key; write key=value")),
                Some(("ip", address)) => request.add("remote_address", client(address)?)?,
                Some((key, value)) => request.add(key, value.as_bytes().to_vec())?,
                None if request.entries.is_empty() => {
                    request.add("method", word.as_bytes().to_vec())?;
                }
                None => {
                    return Err(format!(
                        "{word} is no entry; write key=value, and a method only at the start"
                    ));
                }
            }
        }
        if request.entries.is_empty() {
            return Err("it has no entries; write one such as user=ann".to_owned());
        }
        Ok(request)
    }
}

/// Returns a client's address as rules see it.
fn client(address: &str) -> Result<Vec<u8>, String> {
    let peer: IpAddr = address
        .parse()
        .map_err(|_| format!("ip={address} is no address; write one such as ip=192.0.2.1"))?;
    let request = Request {
        peer: Some(peer),
        method: b"",
        path: b"",
        headers: &[],
        login: None,
    };
    let client = Address::peer().client(&request);
    Ok(client.map(|client| client.to_vec()).unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_the_entries_that_are_written() {
        #[track_caller]
        fn check(text: &str, expected: &[(&str, &str)]) {
            let request: TriedRequest = text.parse().unwrap();
            let entries = request.entries.iter();
            let entries: Vec<_> = entries
                .map(|(key, value)| (key.as_str(), str::from_utf8(value).unwrap()))
                .collect();
            assert_eq!(entries, expected, "{text}");
        }
        check(
            "POST /login?next=/a user=ann ip=192.0.2.1",
            &[
                ("method", "POST"),
                ("path", "/login"),
                ("user", "ann"),
                ("remote_address", "192.0.2.1"),
            ],
        );
        check(
            "user='ann lee' query=a=b",
            &[("user", "ann lee"), ("query", "a=b")],
        );
        check("/a user=", &[("path", "/a"), ("user", "")]);
        check("ip=2001:db8::17", &[("remote_address", "2001:db8::/64")]);
        check("ip=::ffff:192.0.2.1", &[("remote_address", "192.0.2.1")]);
    }

    #[test]
    fn a_mistake_in_a_request_is_told() {
        #[track_caller]
        fn check(text: &str, expected: &str) {
            assert_eq!(text.parse::<TriedRequest>(), Err(expected.to_owned()));
        }
        check("", "it has no entries; write one such as user=ann");
        check(
            "ip=here",
            "ip=here is no address; write one such as ip=192.0.2.1",
        );
        check("user=a user=b", "user is there twice; give it once");
        check(
            "GET / HTTP/1.1",
            "HTTP/1.1 is no entry; write key=value, and a method only at the start",
        );
        check("=a", "=a has no key; write key=value");
        check("user='ann", "a quote is left open");
    }
}
