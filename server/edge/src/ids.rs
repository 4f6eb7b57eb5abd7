//! Ids of the resources behind shared rules: `shared/DOMAIN/DESCRIPTOR`, the same as those of services that use the
//! library.

use std::fmt::Write as _;

use doorward::rules::{Rule, add_encoded, is_plain};

/// Returns the resource of a descriptor.
pub fn resource(domain: &str, descriptor: &str) -> String {
    let mut id = String::from("shared/");
    encode(domain, &mut id);
    id.push('/');
    encode(descriptor, &mut id);
    id
}

/// Returns the glob of the resources of a rule.
pub fn glob(rule: &Rule) -> String {
    let mut glob = String::from("shared/");
    encode(&rule.domain, &mut glob);
    for (number, (key, value)) in rule.levels.iter().enumerate() {
        glob.push(if number == 0 { '/' } else { ',' });
        add_part(key, &mut glob);
        glob.push('=');
        if let Some(pattern) = rule.hashed_pattern(number) {
            add_part(pattern, &mut glob);
            glob.push_str("=*");
            continue;
        }
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
        if is_plain(byte) {
            id.push(char::from(byte));
        } else {
            // Writing to a text cannot fail.
            let _ = write!(id, "%{byte:02X}");
        }
    }
}

#[cfg(test)]
mod tests {
    use doorward::rules::Rules;

    use super::*;

    #[test]
    fn different_descriptors_have_different_ids_and_a_rule_has_a_glob() {
        assert_eq!(resource("api", "user=ann"), "shared/api/user=ann");
        assert_eq!(resource("a/b", "user=a b"), "shared/a%2Fb/user=a%20b");
        let limit = "rate_limit: {rate: 1/s}";
        for (fields, expected) in [
            ("key: user", "shared/api/user=*"),
            ("key: user, value: 'a*,z'", "shared/api/user=a*%252Cz"),
            (
                "key: user, value: ann, descriptors: [{key: path, rate_limit: {rate: 1/s}}]",
                "shared/api/user=ann,path=*",
            ),
            ("key: user, hash: true", "shared/api/user==*"),
            (
                "key: user, value: 'sk-*', hash: true",
                "shared/api/user=sk-%2A=*",
            ),
        ] {
            let text = format!("domain: api\ndescriptors: [{{{fields}, {limit}}}]");
            let rules = Rules::load(&[("api.yaml", &text)]).unwrap();
            assert_eq!(glob(rules.rules().last().unwrap()), expected);
        }
    }
}
