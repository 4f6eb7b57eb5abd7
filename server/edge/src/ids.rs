//! Ids of the resources behind shared rules: `shared/DOMAIN/DESCRIPTOR`, the same as those of services that use the
//! library.

use std::fmt::Write as _;

/// Returns the resource of a descriptor.
pub fn resource(domain: &str, descriptor: &str) -> String {
    let mut id = String::from("shared/");
    encode(domain, &mut id);
    id.push('/');
    encode(descriptor, &mut id);
    id
}

/// Adds a text. Bytes other than ASCII letters, digits and `-._~=,:@+` are percent-encoded.
pub(crate) fn encode(text: &str, id: &mut String) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~=,:@+".contains(&byte) {
            id.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(id, "%{byte:02X}");
        }
    }
}
