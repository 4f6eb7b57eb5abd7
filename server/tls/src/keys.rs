//! Kinds of keys. ring signs and verifies with few of them; a refusal names the kind that was given.

use std::mem;

/// Kinds that a program's own key may have.
pub(crate) const OWN: &str =
    "RSA of 2048, 3072 or 4096 bits with the exponent 65537, ECDSA P-256 or P-384, and Ed25519";

/// Kinds that the keys of others may have, whose signatures are verified.
pub(crate) const OTHERS: &str = "RSA of 2048 to 8192 bits, ECDSA P-256 or P-384, and Ed25519";

/// Object identifiers in DER, or their beginnings, and the kinds of key that they name. The first one that is found
/// counts.
const KINDS: [(&[u8], &str); 15] = [
    (b"\x2a\x86\x48\xce\x3d\x03\x01\x07", "ECDSA P-256"),
    (b"\x06\x05\x2b\x81\x04\x00\x22", "ECDSA P-384"),
    (b"\x06\x05\x2b\x81\x04\x00\x23", "ECDSA P-521"),
    (b"\x06\x05\x2b\x81\x04\x00\x21", "ECDSA P-224"),
    (b"\x06\x05\x2b\x81\x04\x00\x0a", "ECDSA secp256k1"),
    (b"\x06\x05\x2b\x81\x04\x00", "ECDSA of another SECG curve"),
    (b"\x2b\x24\x03\x03\x02\x08\x01\x01", "ECDSA brainpool"),
    (
        b"\x2a\x86\x48\xce\x3d\x01",
        "ECDSA with a curve without a name",
    ),
    (b"\x2a\x86\x48\xce\x3d\x03", "ECDSA of another X9.62 curve"),
    (b"\x06\x03\x2b\x65\x70", "Ed25519"),
    (b"\x06\x03\x2b\x65\x71", "Ed448"),
    (b"\x06\x03\x2b\x65\x6e", "X25519, which signs nothing"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSA for PSS only"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x03\x01", "Diffie-Hellman"),
    (b"\x2a\x86\x48\xce\x38\x04\x01", "DSA"),
];

/// Bytes in which the identifier begins: that of a SEC1 key is behind its number.
const HEAD: usize = 100;

/// Exponent of most RSA keys, and the least one of a program's own key.
const EXPONENT: u64 = 65_537;

/// Kind of a key.
#[derive(Debug)]
pub(crate) struct Kind {
    /// Its name.
    pub(crate) name: String,
    /// Whether a program's own key may have it.
    pub(crate) is_own: bool,
    /// Whether signatures by such a key can be verified.
    pub(crate) is_verified: bool,
}

/// Returns the kind of a private key, or of a public one as certificates have it.
pub(crate) fn kind(der: &[u8]) -> Kind {
    let head = der.get(..HEAD).unwrap_or(der);
    let has = |id: &[u8]| head.windows(id.len()).any(|part| part == id);
    if let Some((_, name)) = KINDS.into_iter().find(|(id, _)| has(id)) {
        let is_own = ["ECDSA P-256", "ECDSA P-384", "Ed25519"].contains(&name);
        return Kind {
            name: name.to_owned(),
            is_own,
            is_verified: is_own,
        };
    }
    if let Some((bits, exponent)) = rsa(der) {
        let with = match exponent {
            EXPONENT => String::new(),
            exponent => format!(" with the exponent {exponent}"),
        };
        return Kind {
            name: format!("RSA of {bits} bits{with}"),
            is_own: [2_048, 3_072, 4_096].contains(&bits) && exponent >= EXPONENT,
            is_verified: (2_048..=8_192).contains(&bits),
        };
    }
    // The identifier of an algorithm is the first part of a list, which is one of the first parts itself.
    let id = head
        .windows(4)
        .enumerate()
        .find_map(|(at, part)| match *part {
            [0x30, _, 0x06, length] => head.get(at + 4..)?.get(..usize::from(length)),
            _ => None,
        });
    Kind {
        name: id.map_or_else(
            || "of another kind, or cut".to_owned(),
            |id| format!("of the kind {}", dotted(id)),
        ),
        is_own: false,
        is_verified: false,
    }
}

/// Returns the bits and the exponent of an RSA key.
fn rsa(der: &[u8]) -> Option<(usize, u64)> {
    let head = der.get(..HEAD).unwrap_or(der);
    // The modulus is the first long number. Its first byte is 0, since its first bit is set.
    let modulus = |(at, part): (usize, &[u8])| match *part {
        [0x02, 0x82, high, low, 0] => Some((at + 4, usize::from(high) << 8 | usize::from(low))),
        [0x02, 0x81, low, 0, _] => Some((at + 3, low.into())),
        [0x02, low @ 0x20..=0x7f, 0, _, _] => Some((at + 2, low.into())),
        _ => None,
    };
    let (at, bytes) = head.windows(5).enumerate().find_map(modulus)?;
    let exponent = match der.get(at + bytes..)? {
        [0x02, length @ 1..=8, rest @ ..] => rest.get(..usize::from(*length))?,
        _ => return None,
    };
    let exponent = exponent.iter().fold(0, |all, it| all << 8 | u64::from(*it));
    Some((8 * bytes.saturating_sub(1), exponent))
}

/// Returns an object identifier as people write it.
pub(crate) fn dotted(id: &[u8]) -> String {
    let (mut numbers, mut number) = (Vec::new(), 0_u64);
    for byte in id {
        number = number << 7 | u64::from(byte & 0x7f);
        if byte & 0x80 == 0 {
            numbers.push(mem::take(&mut number));
        }
    }
    // DER has the first two numbers as one.
    let first = numbers.first().map_or(0, |it| (it / 40).min(2));
    if let Some(second) = numbers.first_mut() {
        *second -= 40 * first;
    }
    let rest = numbers.iter().map(|it| format!(".{it}"));
    format!("{first}{}", rest.collect::<String>())
}
