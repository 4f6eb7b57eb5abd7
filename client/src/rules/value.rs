//! The value of a part of a request: any bytes, mostly borrowed from the request.

use std::ops::Deref;

use doorward_limits::KeyParts;
use smallvec::SmallVec;

/// Bytes for which an owned value allocates nothing: an address, or most names.
pub(crate) const INLINE: usize = 64;

/// A value.
#[derive(Clone, Debug)]
pub enum Value<'a> {
    /// Bytes of the request.
    Borrowed(&'a [u8]),
    /// Bytes of its own.
    Owned(SmallVec<[u8; INLINE]>),
}

impl Value<'_> {
    /// Returns the same value without the borrow.
    pub fn into_owned<'b>(self) -> Value<'b> {
        Value::Owned(match self {
            Self::Borrowed(bytes) => SmallVec::from_slice(bytes),
            Self::Owned(bytes) => bytes,
        })
    }
}

impl Deref for Value<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Borrowed(bytes) => bytes,
            Self::Owned(bytes) => bytes,
        }
    }
}

impl PartialEq for Value<'_> {
    fn eq(&self, other: &Self) -> bool {
        **self == **other
    }
}

impl Eq for Value<'_> {}

impl<'a> From<&'a [u8]> for Value<'a> {
    fn from(bytes: &'a [u8]) -> Self {
        Self::Borrowed(bytes)
    }
}

impl<'a> From<&'a str> for Value<'a> {
    fn from(text: &'a str) -> Self {
        Self::Borrowed(text.as_bytes())
    }
}

impl From<String> for Value<'_> {
    fn from(text: String) -> Self {
        Self::Owned(SmallVec::from_vec(text.into_bytes()))
    }
}

/// Adds a value to the key of a local limit. A missing value equals no other.
pub(crate) fn add_to_key(key: KeyParts, value: Option<&[u8]>) -> KeyParts {
    match value {
        Some(value) => key.text(value),
        None => key.number(0),
    }
}
