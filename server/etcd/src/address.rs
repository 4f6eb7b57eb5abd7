//! A node's servers as one text: which etcd to ask, and for which node.
//!
//! ```text
//! etcd://HOST:PORT[,HOST:PORT…]/NODE[?KEY=VALUE[&KEY=VALUE…]]
//! ```
//!
//! | key | absent | |
//! | --- | --- | --- |
//! | `prefix` | `/doorward/nodes` | What the keys of all nodes begin with. |
//! | `ca` | no TLS | CA file (PEM) to verify etcd with. |
//! | `cert`, `key` | none | Our own certificate and its key, PEM files; both or neither. |
//! | `user`, `password_file` | none | Who we are to etcd; both or neither. |
//!
//! Without hosts, `etcd:///NODE`, how etcd is reached has to be known from elsewhere, as has its
//! prefix if the text says none. The name of the node and all values are percent-decoded. A password
//! never stands in the text: it would end up in logs and process lists.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;

use doorward_session::address::ipv6_advice;
use thiserror::Error;

use crate::config::{Endpoint, EtcdConfig};
use crate::credentials::CredentialFiles;
use crate::layout::{self, NodeKeys};

/// The scheme of an address of a node in etcd.
const SCHEME: &str = "etcd://";

/// The keys that a text may have.
const KEYS: [&str; 6] = ["prefix", "ca", "cert", "key", "user", "password_file"];

/// A text that was understood. No file that it names was read yet.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeAddress {
    node: String,
    /// None: the address names none, and other settings do.
    endpoints: Vec<Endpoint>,
    /// Values of [`KEYS`]. Without a prefix, other settings or the default count.
    values: BTreeMap<&'static str, String>,
}

/// Access to etcd, and the prefix of the keys of nodes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Etcd {
    /// Endpoints, credentials and timeouts.
    pub config: Arc<EtcdConfig>,
    /// The prefix of the keys of all nodes.
    pub prefix: String,
}

/// A node, and the etcd that knows its servers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EtcdNode {
    /// The node's name.
    pub node: String,
    /// The etcd that has its keys.
    pub etcd: Etcd,
}

impl EtcdNode {
    /// The keys of the node.
    pub fn keys(&self) -> NodeKeys {
        NodeKeys::new(&self.etcd.prefix, &self.node)
    }
}

/// As an address, without what only matters for reaching etcd.
impl fmt::Display for EtcdNode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(f, &self.etcd.config.endpoints, &self.node)
    }
}

/// Why a text is no address of a node in etcd, or cannot be used as one.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{address} cannot be used: {problem}")]
pub struct AddressError {
    /// The text as given, without the part before an `@`.
    address: String,
    /// The problem, and the text to give instead.
    problem: String,
}

/// Whether a text is meant to be an address of a node in etcd.
pub fn is_meant(text: &str) -> bool {
    text.trim_start().starts_with(SCHEME)
}

/// The addresses in a list that is separated by commas, as a flag or a variable has it. One of a
/// node in etcd has commas of its own, and stands alone.
pub fn split(list: &str) -> Vec<&str> {
    if is_meant(list) {
        return vec![list.trim()];
    }
    let addresses = list.split(',').map(str::trim);
    addresses.filter(|address| !address.is_empty()).collect()
}

impl NodeAddress {
    /// Understands a text.
    ///
    /// # Errors
    ///
    /// If it is none; says what to give.
    pub fn parse(text: &str) -> Result<Self, AddressError> {
        let text = text.trim();
        Self::understand(text).map_err(|problem| AddressError {
            address: without_secrets(text),
            problem,
        })
    }

    fn understand(text: &str) -> Result<Self, String> {
        let rest = text.strip_prefix(SCHEME);
        let rest = rest.ok_or("give etcd://HOST:PORT/NODE")?;
        let (place, query) = match rest.split_once('?') {
            Some((place, query)) => (place, Some(query)),
            None => (rest, None),
        };
        let place = place.split_once('/');
        let (hosts, node) = place.ok_or("it names no node; give etcd://HOST:PORT/NODE")?;
        let mut address = Self {
            node: node_name(node)?,
            endpoints: Vec::new(),
            values: BTreeMap::new(),
        };
        for pair in query.unwrap_or_default().split('&') {
            if !pair.is_empty() {
                address.set(pair)?;
            }
        }
        address.check()?;
        address.endpoints = endpoints(hosts, address.has("ca"))?;
        if address.endpoints.is_empty() && (address.has("ca") || address.has("user")) {
            return Err(
                "it says how to reach etcd, but not where it is; give etcd://HOST:PORT/NODE, or \
                 leave both to be known from elsewhere"
                    .to_owned(),
            );
        }
        Ok(address)
    }

    fn set(&mut self, pair: &str) -> Result<(), String> {
        let (key, value) = pair
            .split_once('=')
            .ok_or_else(|| format!("{pair:?} has no value; give KEY=VALUE"))?;
        let mut value = decoded(value)?;
        if value.is_empty() {
            return Err(format!("{key} is empty; leave it out, or give a value"));
        }
        let key = match KEYS.into_iter().find(|known| *known == key) {
            Some(known) => known,
            None if key == "password" => {
                return Err("give the password as password_file=FILE".to_owned());
            }
            None => {
                let [others @ .., last] = KEYS;
                let others = others.join(", ");
                return Err(format!("{key:?} means nothing; give {others} or {last}"));
            }
        };
        if key == "prefix" {
            value.truncate(value.trim_end_matches('/').len());
            if value.is_empty() || value.contains(char::is_control) {
                return Err("prefix is no key; give one, as in /doorward/nodes".to_owned());
            }
        }
        match self.values.insert(key, value) {
            Some(_) => Err(format!("{key} is given twice; give it once")),
            None => Ok(()),
        }
    }

    fn has(&self, key: &str) -> bool {
        self.values.contains_key(key)
    }

    fn check(&self) -> Result<(), String> {
        if self.has("cert") != self.has("key") {
            Err("give cert and key both, or neither".to_owned())
        } else if self.has("cert") && !self.has("ca") {
            Err("cert and key are for TLS, which needs ca as well".to_owned())
        } else if self.has("user") != self.has("password_file") {
            Err("give user and password_file both, or neither".to_owned())
        } else {
            Ok(())
        }
    }

    /// The node's name.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// Where the node is known. Reads the files that the text names. `elsewhere`: what counts if
    /// the text does not say where etcd is, or under which prefix.
    ///
    /// # Errors
    ///
    /// If a file cannot be used, or nothing says where etcd is.
    pub fn place(&self, elsewhere: Option<&Etcd>) -> Result<EtcdNode, AddressError> {
        let config = match elsewhere {
            Some(elsewhere) if self.endpoints.is_empty() => Arc::clone(&elsewhere.config),
            _ => Arc::new(self.config()?),
        };
        let prefix = match (self.values.get("prefix"), elsewhere) {
            (Some(prefix), _) => prefix.clone(),
            // That of one etcd says nothing of another.
            (None, Some(elsewhere)) if self.endpoints.is_empty() => elsewhere.prefix.clone(),
            (None, _) => layout::DEFAULT_PREFIX.to_owned(),
        };
        Ok(EtcdNode {
            node: self.node.clone(),
            etcd: Etcd { config, prefix },
        })
    }

    fn config(&self) -> Result<EtcdConfig, AddressError> {
        let unusable = |problem: String| AddressError {
            address: self.to_string(),
            problem,
        };
        if self.endpoints.is_empty() {
            return Err(unusable(
                "it does not say where etcd is; give --etcd-endpoints URL, as in \
                 http://127.0.0.1:2379, or etcd://HOST:PORT/NODE"
                    .to_owned(),
            ));
        }
        let file = |key| self.values.get(key).map(PathBuf::from);
        let files = CredentialFiles {
            ca: file("ca"),
            cert: file("cert"),
            key: file("key"),
            user: self.values.get("user").cloned().zip(file("password_file")),
        };
        EtcdConfig::with_files(self.endpoints.clone(), files)
            .map_err(|error| unusable(error.to_string()))
    }
}

/// Without what only matters for reaching etcd.
impl fmt::Display for NodeAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write_address(f, &self.endpoints, &self.node)
    }
}

fn write_address(f: &mut fmt::Formatter<'_>, endpoints: &[Endpoint], node: &str) -> fmt::Result {
    let hosts = endpoints.iter().map(Endpoint::as_str);
    let hosts = hosts.map(|it| it.split_once("://").map_or(it, |(_, host)| host));
    write!(f, "{SCHEME}{}/", hosts.collect::<Vec<_>>().join(","))?;
    for c in node.chars() {
        match c {
            '%' | '/' | '?' | '&' | ' ' => write!(f, "%{:02X}", u32::from(c))?,
            _ => write!(f, "{c}")?,
        }
    }
    Ok(())
}

/// Returns the text for messages, without a password that was given in the wrong place.
fn without_secrets(text: &str) -> String {
    let text = match text.rsplit_once('@') {
        Some((_, rest)) => format!("{SCHEME}…@{rest}"),
        None => text.to_owned(),
    };
    match text.split_once("password=") {
        Some((before, _)) => format!("{before}password=…"),
        None => text,
    }
}

fn endpoints(hosts: &str, tls: bool) -> Result<Vec<Endpoint>, String> {
    if hosts.contains('@') {
        return Err("credentials stand elsewhere: ?user=NAME&password_file=FILE".to_owned());
    }
    if hosts.is_empty() {
        return Ok(Vec::new());
    }
    let scheme = if tls { "https" } else { "http" };
    let endpoint = |host: &str| {
        let advice = ipv6_advice(host).unwrap_or("give HOST:PORT, as in etcd-1:2379");
        let bad = |_| format!("{host:?} is no host with a port; {advice}");
        Endpoint::parse(&format!("{scheme}://{host}")).map_err(bad)
    };
    hosts.split(',').map(endpoint).collect()
}

fn node_name(text: &str) -> Result<String, String> {
    if text.contains('/') {
        return Err("one name follows the hosts; a / in it is written %2F".to_owned());
    }
    let node = decoded(text)?;
    if node.is_empty() {
        return Err("it names no node; give etcd://HOST:PORT/NODE".to_owned());
    }
    if node.contains(char::is_control) {
        return Err("the name of the node has control characters".to_owned());
    }
    Ok(node)
}

fn decoded(text: &str) -> Result<String, String> {
    let bad = || format!("{text:?} is not percent-encoded UTF-8; a % itself is written %25");
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        let (high, low) = (digit(), digit());
        let value = high.zip(low).map(|(high, low)| high * 16 + low);
        bytes.push(value.and_then(|v| u8::try_from(v).ok()).ok_or_else(bad)?);
    }
    String::from_utf8(bytes).map_err(|_| bad())
}

#[cfg(test)]
#[path = "address/tests.rs"]
mod tests;
