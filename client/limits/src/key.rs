//! Keys of limits, made of parts.
//!
//! A key is a hash of 128 bits with a secret seed. So a key takes the same memory however long its parts are, the map
//! keeps no text of a caller, and without the seed it is impossible to make two callers share a key. Of 2³² keys, two
//! are equal by chance with a probability of 2⁻⁶⁵.
//!
//! Parts keep their boundaries and kinds: `text("ab").text("c")` and `text("a").text("bc")` are different keys, and so
//! are the text `"7"` and the number 7.

use std::hash::Hasher;
use std::net::{IpAddr, Ipv6Addr};

use siphasher::sip128::{Hasher128, SipHasher13};
/// Maker of keys: equal parts give equal keys.
#[derive(Clone, Debug)]
pub struct Keys(SipHasher13);

/// Key of one limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Key([u64; 2]);

/// A key to which more parts may be added.
#[derive(Clone, Debug)]
#[must_use = "a key is made by `finish`"]
pub struct KeyParts(SipHasher13);

/// Bits of an IPv6 address that identify a caller: usually one subscriber has 2⁶⁴ addresses.
const IPV6_PREFIX: u32 = 64;

impl Keys {
    /// Creates a maker of keys with a secret seed, which should be random for each start of the program.
    pub fn new(seed: [u64; 2]) -> Self {
        let [one, other] = seed;
        Self(SipHasher13::new_with_keys(one, other))
    }

    /// Starts a key without parts.
    #[inline]
    pub fn key(&self) -> KeyParts {
        KeyParts(self.0)
    }
}

/// Kinds of parts, so that parts of different kinds are never equal.
mod kind {
    pub(super) const TEXT: u8 = 1;
    pub(super) const NUMBER: u8 = 2;
    pub(super) const IPV4: u8 = 3;
    pub(super) const IPV6: u8 = 4;
}

impl KeyParts {
    /// Adds a text of any bytes: a name, a header, a path.
    #[inline]
    pub fn text(self, text: impl AsRef<[u8]>) -> Self {
        self.part(kind::TEXT, text.as_ref())
    }

    /// Adds a number.
    #[inline]
    pub fn number(self, number: u64) -> Self {
        self.part(kind::NUMBER, &number.to_le_bytes())
    }

    /// Adds the caller's address: an IPv4 address, or the first 64 bits of an IPv6 address. An IPv4 address in IPv6 form
    /// (`::ffff:192.0.2.1`) counts as the IPv4 address.
    #[inline]
    pub fn address(self, address: IpAddr) -> Self {
        match address.to_canonical() {
            IpAddr::V4(address) => self.part(kind::IPV4, &address.octets()),
            IpAddr::V6(address) => {
                let prefix = address.to_bits() >> (Ipv6Addr::BITS - IPV6_PREFIX);
                self.part(kind::IPV6, &prefix.to_le_bytes())
            }
        }
    }

    /// Returns the key.
    #[inline]
    pub fn finish(self) -> Key {
        let hash = self.0.finish128();
        Key([hash.h1, hash.h2])
    }

    #[inline]
    fn part(mut self, kind: u8, bytes: &[u8]) -> Self {
        // No text has 2⁵⁶ bytes.
        self.0.write_u64(u64::from(kind) << 56 | bytes.len() as u64);
        self.0.write(bytes);
        self
    }
}

impl Key {
    /// Returns the bits for the lookup within a shard.
    #[inline]
    pub(crate) const fn low(self) -> u64 {
        self.0[0]
    }

    /// Returns other bits, evenly spread, for the choice of a shard or a lock.
    #[inline]
    pub const fn high(self) -> u64 {
        self.0[1]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys() -> Keys {
        Keys::new([7, 9])
    }

    #[test]
    fn parts_stand_for_themselves() {
        let all = [
            keys().key(),
            keys().key().text(""),
            keys().key().text("").text(""),
            keys().key().text("ab").text("c"),
            keys().key().text("a").text("bc"),
            keys().key().text("abc"),
            // The text that separates the parts internally, as text.
            keys().key().text("ab\u{1}c"),
            keys().key().text("7"),
            keys().key().number(7),
            keys().key().text("\u{7}\0\0\0\0\0\0\0"),
            keys().key().address("0.0.0.7".parse().unwrap()),
            keys().key().address("::7".parse().unwrap()),
            Keys::new([7, 8]).key().text("abc"),
        ]
        .map(KeyParts::finish);
        for (i, one) in all.iter().enumerate() {
            for other in &all[..i] {
                assert_ne!(one, other);
            }
        }
        assert_eq!(
            keys().key().text("a").finish(),
            keys().key().text("a").finish()
        );
    }

    #[test]
    fn an_address_is_as_much_of_it_as_says_who_it_is() {
        #[track_caller]
        fn check(one: &str, other: &str, same: bool) {
            let key = |address: &str| keys().key().address(address.parse().unwrap()).finish();
            assert_eq!(key(one) == key(other), same, "{one} {other}");
        }
        check("2001:db8:1:2::3", "2001:db8:1:2:ffff::", true);
        check("2001:db8:1:2::3", "2001:db8:1:3::3", false);
        check("192.0.2.1", "192.0.2.2", false);
        check("192.0.2.1", "::ffff:192.0.2.1", true);
        check("192.0.2.1", "2001:db8::1", false);
    }
}
