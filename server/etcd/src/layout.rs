//! The keys of everything in etcd.
//!
//! ```text
//! {prefix}/{node}/master              who is the master; goes with its lease
//! {prefix}/{node}/term                the last mastership; stays
//! {prefix}/{node}/outstanding         leases may be valid; goes with a lease that outlasts them
//! {prefix}/{node}/step-down           an operator's request to the master; goes with its lease
//! {prefix}/{node}/servers/{address}   a server that is there; goes with its lease
//! {prefix}-marks/{node}/head          facts about all marks of the node; stays
//! {prefix}-marks/{node}/of/{xx}/{id}  the mark of a resource; stays
//! {key}                               a document: templates, or rules
//! {key}/good                          the last templates that were in force
//! {key}/history/{number}              every version that was written through the command line
//! ```
//!
//! Values are JSON, but for documents, which stand there as operators write them.

/// Where nodes stand, unless the operator says otherwise.
pub const DEFAULT_PREFIX: &str = "/doorward/nodes";

/// The largest number of a version, far beyond all that are ever written.
pub const VERSION_MAX: u64 = 1_000_000_000_000;

/// Parses a key, or a prefix of keys.
///
/// # Errors
///
/// If it is no key. The message gives an example.
pub fn key(text: &str) -> Result<String, String> {
    let trimmed = text.trim_end_matches('/');
    if trimmed.is_empty() || trimmed.contains(char::is_control) {
        Err("give a key, as in /doorward/nodes".to_owned())
    } else {
        Ok(trimmed.to_owned())
    }
}

/// The keys of one node.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NodeKeys {
    root: String,
    /// Candidates follow all keys below `root`, and marks change often. So these are elsewhere.
    marks: String,
}

impl NodeKeys {
    /// The keys of a node under a prefix.
    pub fn new(prefix: &str, node: &str) -> Self {
        // A name may contain the separator of names.
        let node = node.replace('%', "%25").replace('/', "%2F");
        let prefix = prefix.trim_end_matches('/');
        Self {
            root: format!("{prefix}/{node}/"),
            marks: format!("{prefix}-marks/{node}/"),
        }
    }

    /// The prefix of all keys of the node.
    pub fn prefix(&self) -> &str {
        &self.root
    }

    /// The key of the master.
    pub fn master(&self) -> String {
        format!("{}master", self.root)
    }

    /// The key of the last mastership.
    pub fn term(&self) -> String {
        format!("{}term", self.root)
    }

    /// The key that exists as long as leases of the last mastership may be valid.
    pub fn lease_span(&self) -> String {
        format!("{}outstanding", self.root)
    }

    /// The key of an operator's request that the master steps down.
    pub fn step_down(&self) -> String {
        format!("{}step-down", self.root)
    }

    /// The key of the facts about all marks.
    pub fn marks_head(&self) -> String {
        format!("{}head", self.marks)
    }

    /// The prefix of all marks, or of those of a part of the resources: all whose hash begins with these digits.
    pub fn marks_of(&self, digits: &str) -> String {
        format!("{}of/{digits}", self.marks)
    }

    /// The key of the mark of a resource. Two digits of a hash of the id come first, so that many marks can be read in
    /// parts of about the same size.
    pub fn mark(&self, resource: &str) -> String {
        let sum = resource
            .bytes()
            .fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
                (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
            });
        let bits = (sum ^ sum >> 32) & 0xff;
        self.marks_of(&format!("{bits:02x}/{resource}"))
    }

    /// Returns the resource of the mark under a key. None: it is no mark of this node.
    pub fn marked<'a>(&self, key: &'a str) -> Option<&'a str> {
        let (digits, resource) = key.strip_prefix(&self.marks_of(""))?.split_once('/')?;
        (digits.len() == 2).then_some(resource)
    }

    /// The prefix of the keys of all servers.
    pub fn servers(&self) -> String {
        format!("{}servers/", self.root)
    }

    /// The key of a registered server.
    pub fn server(&self, address: &str) -> String {
        format!("{}servers/{address}", self.root)
    }
}

/// The keys of a document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DocumentKeys(String);

impl DocumentKeys {
    /// The keys that belong to the document under a key.
    pub fn new(key: &str) -> Self {
        Self(key.trim_end_matches('/').to_owned())
    }

    /// The document.
    pub fn document(&self) -> &str {
        &self.0
    }

    /// The last document that was in force.
    pub fn good(&self) -> String {
        format!("{}/good", self.0)
    }

    /// The prefix of the keys of all versions.
    pub fn history(&self) -> String {
        format!("{}/history/", self.0)
    }

    /// The first key after those of all versions.
    pub fn history_end(&self) -> String {
        // `0` is the character after `/`.
        format!("{}/history0", self.0)
    }

    /// A version. Numbers sort as their keys do.
    pub fn version(&self, number: u64) -> String {
        format!("{}/history/{number:020}", self.0)
    }

    /// The number of a version by its key. None: it is no version.
    pub fn number(&self, key: &[u8]) -> Option<u64> {
        let name = key.strip_prefix(self.history().as_bytes())?;
        let number = std::str::from_utf8(name).ok()?.parse().ok()?;
        let is_version =
            (1..=VERSION_MAX).contains(&number) && key == self.version(number).as_bytes();
        is_version.then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_node_has_keys_of_another() {
        let keys = |node| NodeKeys::new("/p/", node);
        assert_eq!(keys("eu").master(), "/p/eu/master");
        assert_eq!(keys("eu").server("h:1"), "/p/eu/servers/h:1");
        for (a, b) in [
            ("a", "a/servers"),
            ("a", "ab"),
            ("a/b", "a%2Fb"),
            ("a", "a/"),
        ] {
            let (a, b) = (keys(a), keys(b));
            assert!(!a.prefix().starts_with(b.prefix()), "{a:?} {b:?}");
            assert!(!b.prefix().starts_with(a.prefix()), "{a:?} {b:?}");
        }
    }

    #[test]
    fn a_mark_names_its_resource_and_is_below_no_node() {
        let keys = NodeKeys::new("/p", "eu");
        for resource in ["db", "a/b/c", "", "ä"] {
            let key = keys.mark(resource);
            assert!(key.starts_with("/p-marks/eu/of/"), "{key}");
            assert!(!key.starts_with("/p/"), "{key}");
            assert_eq!(keys.marked(&key), Some(resource));
        }
        assert_eq!(keys.marked(&keys.marks_head()), None);
        assert_eq!(NodeKeys::new("/p", "us").marked(&keys.mark("db")), None);
    }

    #[test]
    fn versions_sort_by_their_number() {
        let keys = DocumentKeys::new("/t");
        assert!(keys.version(9) < keys.version(10));
        assert!(keys.version(u64::MAX).starts_with(&keys.history()));
        assert!(keys.version(u64::MAX) < keys.history_end());
        assert!(*"/t/history/\u{10ffff}" < *keys.history_end());
        assert_eq!(keys.number(keys.version(10).as_bytes()), Some(10));
        for other in ["/t", "/t/history/10", "/t/history/x", "/u/history/1"] {
            assert_eq!(keys.number(other.as_bytes()), None, "{other}");
        }
        assert_eq!(keys.number(keys.version(u64::MAX).as_bytes()), None);
    }
}
