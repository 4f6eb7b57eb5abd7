//! Ids of the resources behind shared rules: `shared/DOMAIN/DESCRIPTOR`, the same as those of services that use the
//! library.

use std::fmt::Write as _;

use doorward_rules::add_encoded;

/// Returns the resource of a descriptor.
pub fn resource(domain: &str, descriptor: &str) -> String {
    let mut id = String::from("shared/");
    encode(domain, &mut id);
    id.push('/');
    encode(descriptor, &mut id);
    id
}

/// Returns the glob of the resources of a rule, by the keys and values that lead to it.
pub fn glob(domain: &str, levels: &[(String, Option<String>)]) -> String {
    let mut glob = String::from("shared/");
    encode(domain, &mut glob);
    for (number, (key, value)) in levels.iter().enumerate() {
        glob.push(if number == 0 { '/' } else { ',' });
        add_part(key, &mut glob);
        glob.push('=');
        for (number, piece) in value.as_deref().unwrap_or("*").split('*').enumerate() {
            if number > 0 {
                glob.push('*');
            }
            add_part(piece, &mut glob);
        }
    }
    glob
}

fn add_part(part: &str, id: &mut String) {
    let mut text = String::new();
    add_encoded(part.as_bytes(), &mut text);
    encode(&text, id);
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn different_descriptors_have_different_ids_and_a_rule_has_a_glob() {
        assert_eq!(resource("api", "user=ann"), "shared/api/user=ann");
        assert_eq!(resource("a/b", "user=a b"), "shared/a%2Fb/user=a%20b");
        let level = |key: &str, value: Option<&str>| (key.to_owned(), value.map(str::to_owned));
        for (levels, expected) in [
            (vec![level("user", None)], "shared/api/user=*"),
            (
                vec![level("user", Some("a*,z"))],
                "shared/api/user=a*%252Cz",
            ),
            (
                vec![level("user", Some("ann")), level("path", None)],
                "shared/api/user=ann,path=*",
            ),
        ] {
            assert_eq!(glob("api", &levels), expected);
        }
    }
}
