//! Versions of rule documents.

use std::hash::Hasher;

use siphasher::sip::SipHasher13;

/// Returns the version of a rule document: a hash of its text, the same on every machine and in every release.
pub fn version_of(text: &[u8]) -> String {
    let mut hasher = SipHasher13::new();
    hasher.write(text);
    format!("{:016x}", hasher.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_stays_the_same_in_all_releases() {
        assert_eq!(version_of(b""), "d1fba762150c532c");
        assert_ne!(version_of(b"domain: a\n"), version_of(b"domain: b\n"));
    }
}
