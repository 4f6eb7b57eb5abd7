//! Kinds of keys. ring signs and verifies with few of them; a refusal names the kind that was given.

/// Kinds that a program's own key may have.
pub(crate) const OWN: &str =
    "RSA of 2048, 3072 or 4096 bits with the exponent 65537, ECDSA P-256 or P-384, and Ed25519";

/// Kinds that the keys of others may have, whose signatures are verified.
pub(crate) const OTHERS: &str = "RSA of 2048 to 8192 bits, ECDSA P-256 or P-384, and Ed25519";

/// Object identifiers in DER, and the kinds of key that they name.
const KINDS: [(&[u8], &str); 8] = [
    (b"\x2a\x86\x48\xce\x3d\x03\x01\x07", "ECDSA P-256"),
    (b"\x06\x05\x2b\x81\x04\x00\x22", "ECDSA P-384"),
    (b"\x06\x05\x2b\x81\x04\x00\x23", "ECDSA P-521"),
    (b"\x06\x05\x2b\x81\x04\x00\x0a", "ECDSA secp256k1"),
    (b"\x06\x03\x2b\x65\x70", "Ed25519"),
    (b"\x06\x03\x2b\x65\x71", "Ed448"),
    (b"\x2a\x86\x48\x86\xf7\x0d\x01\x01\x0a", "RSA for PSS only"),
    (b"\x2a\x86\x48\xce\x38\x04\x01", "DSA"),
];

/// Bytes in which the identifier begins: that of a SEC1 key is behind its number.
const HEAD: usize = 100;

/// Returns the kind of a private key, or of a public one as certificates have it, and whether signatures by it can be
/// verified.
pub(crate) fn kind(der: &[u8]) -> (String, bool) {
    let head = der.get(..HEAD).unwrap_or(der);
    let has = |id: &[u8]| head.windows(id.len()).any(|part| part == id);
    if let Some((_, name)) = KINDS.into_iter().find(|(id, _)| has(id)) {
        let is_taken = ["ECDSA P-256", "ECDSA P-384", "Ed25519"].contains(&name);
        return (name.to_owned(), is_taken);
    }
    // The modulus of RSA is the first number of more than 127 bytes. Its first byte is 0, since its first bit is set.
    let bytes = head.windows(5).find_map(|part| match *part {
        [0x02, 0x82, high, low, 0] => Some(usize::from(high) << 8 | usize::from(low)),
        [0x02, 0x81, low, 0, _] => Some(low.into()),
        _ => None,
    });
    let bits = bytes.map_or(0, |bytes| 8 * (bytes - 1));
    match bits {
        0 => ("of another kind, or far too short".to_owned(), false),
        bits => (
            format!("RSA of {bits} bits"),
            (2_048..=8_192).contains(&bits),
        ),
    }
}
