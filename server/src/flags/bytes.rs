//! Amounts of memory as people write them: `512MiB`, `2GiB`, `1000000`.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;

use thiserror::Error;

/// A number of bytes, at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Bytes(pub NonZeroU64);

/// Why a text is no number of bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BytesError {
    /// Nothing that is a number, with a unit that is known.
    #[error(
        "give a whole number of bytes, or with a unit: 512MiB, 2GiB (KiB, MiB, GiB, TiB; kB, MB, GB, TB)"
    )]
    Malformed,
    /// 0 of anything.
    #[error("must be at least 1 byte")]
    Zero,
    /// More than there can be.
    #[error("is too large")]
    TooLarge,
}

const UNITS: [(&str, u64); 10] = [
    ("", 1),
    ("B", 1),
    ("KiB", 1 << 10),
    ("MiB", 1 << 20),
    ("GiB", 1 << 30),
    ("TiB", 1 << 40),
    ("kB", 1_000),
    ("MB", 1_000_000),
    ("GB", 1_000_000_000),
    ("TB", 1_000_000_000_000),
];

impl FromStr for Bytes {
    type Err = BytesError;

    fn from_str(text: &str) -> Result<Self, BytesError> {
        let digits = text.trim_end_matches(|c: char| !c.is_ascii_digit());
        let unit = text.strip_prefix(digits).unwrap_or_default().trim_start();
        let of_unit = |(name, _): &&(&str, u64)| name.eq_ignore_ascii_case(unit);
        let (_, each) = UNITS.iter().find(of_unit).ok_or(BytesError::Malformed)?;
        if digits.is_empty() || !digits.bytes().all(|digit| digit.is_ascii_digit()) {
            return Err(BytesError::Malformed);
        }
        let count: u64 = digits.parse().map_err(|_| BytesError::TooLarge)?;
        let bytes = count.checked_mul(*each).ok_or(BytesError::TooLarge)?;
        NonZeroU64::new(bytes).map(Self).ok_or(BytesError::Zero)
    }
}

/// In the largest unit that tells it exactly.
impl fmt::Display for Bytes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let bytes = self.0.get();
        let binary = UNITS.iter().skip(2).take(4).rev();
        match binary
            .into_iter()
            .find(|(_, each)| bytes.is_multiple_of(*each))
        {
            Some((name, each)) => write!(f, "{}{name}", bytes / each),
            None => write!(f, "{bytes}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: Result<u64, BytesError>) {
        let parsed = text.parse::<Bytes>().map(|bytes| bytes.0.get());
        assert_eq!(parsed, expected, "{text:?}");
    }

    #[test]
    fn bytes_are_read_as_people_write_them() {
        check("1", Ok(1));
        check("1000000", Ok(1_000_000));
        check("512MiB", Ok(512 << 20));
        check("512 mib", Ok(512 << 20));
        check("2GiB", Ok(2 << 30));
        check("3GB", Ok(3_000_000_000));
        check("7B", Ok(7));
    }

    #[test]
    fn what_is_no_number_of_bytes_is_refused() {
        for text in ["", "MiB", "-1", "1.5GiB", "1 2", "2GiBs", "0x10", "+1", "١"] {
            check(text, Err(BytesError::Malformed));
        }
        check("0", Err(BytesError::Zero));
        check("0GiB", Err(BytesError::Zero));
        check("99999999999TiB", Err(BytesError::TooLarge));
        check("99999999999999999999", Err(BytesError::TooLarge));
    }

    #[test]
    fn bytes_are_shown_in_the_largest_unit_that_fits() {
        for text in ["512MiB", "3GiB", "1025", "1KiB"] {
            assert_eq!(
                text.parse::<Bytes>().map(|it| it.to_string()),
                Ok(text.to_owned())
            );
        }
    }
}
