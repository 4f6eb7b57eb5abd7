//! Amounts of memory in flags: `512MiB`, `2 GiB`, `1000000`.

use std::num::NonZeroU64;
use std::str::FromStr;

use bytesize::ByteSize;

/// Number of bytes, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Bytes(pub(super) NonZeroU64);

impl FromStr for Bytes {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let malformed = "give a number of bytes, or one with a unit: 512MiB, 2GiB (KiB, MiB, GiB, TiB; kB, MB, GB, TB)";
        let ByteSize(bytes) = text.trim().parse().map_err(|_| malformed)?;
        // Every larger number gives this result.
        if bytes == u64::MAX {
            return Err("is too large");
        }
        let bytes = NonZeroU64::new(bytes);
        bytes.map(Self).ok_or("must be at least 1 byte")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_bytes_has_a_unit_or_none_and_is_not_0() {
        for (text, expected) in [
            ("1", 1),
            ("1000000", 1_000_000),
            ("512MiB", 512 << 20),
            ("512 mib", 512 << 20),
            ("1.5GiB", 3 << 29),
            ("3GB", 3_000_000_000),
            ("7B", 7),
            ("8kB", 8_000),
            ("2TiB", 2 << 40),
            ("+1", 1),
            ("1000 ", 1000),
            ("1.9B", 1),
        ] {
            let bytes = text.parse().map(|Bytes(bytes)| bytes.get());
            assert_eq!(bytes, Ok(expected), "{text}");
        }
        for text in ["", "MiB", "-1", "1 2", "2GiBs", "0x10", "١", "0", "0GiB"] {
            assert!(text.parse::<Bytes>().is_err(), "{text}");
        }
        assert_eq!("99999999999TiB".parse::<Bytes>(), Err("is too large"));
    }
}
