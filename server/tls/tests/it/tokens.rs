//! Files of tokens.

use doorward_tls::tokens::{Tokens, hash};

use crate::files::Folder;

fn hex(token: &str) -> String {
    let bytes = hash(token.as_bytes()).into_iter();
    bytes.map(|byte| format!("{byte:02x}")).collect()
}

fn entry(name: &str, token: &str) -> String {
    format!("- {{name: {name}, sha256: {}}}\n", hex(token))
}

#[test]
fn a_file_that_would_lock_callers_out_or_let_others_in_changes_nothing() {
    let files = Folder::new();
    let batch = entry("batch", "s3cret");
    files.write("tokens.yaml", &format!("tokens:\n{batch}"));
    let tokens = Tokens::open(files.path("tokens.yaml")).unwrap();
    for (text, expected) in [
        ("tokens: []".to_owned(), "`empty: true`"),
        (String::new(), "it is empty: list `tokens`"),
        ("other: []".to_owned(), "tokens.yaml"),
        (
            format!("tokens:\n{}", entry("none", "")),
            "\"none\" is that of an empty token",
        ),
        (
            format!("tokens:\n{}{}", entry("none", ""), entry("line", "\n")),
            "empty token; line 3: sha256 of \"line\" is that of an empty token",
        ),
        (
            format!("tokens:\n{batch}{}", entry("other", "s3cret")),
            "\"other\" and token:batch have the same token",
        ),
    ] {
        files.write("tokens.yaml", &text);
        let refused = tokens.refresh().unwrap_err();
        assert!(refused.contains(expected), "{text}: {refused}");
        assert_eq!(tokens.problem(), Some(refused), "{text}");
        assert!(tokens.find(&hash(b"s3cret")).is_some(), "{text}");
        assert!(tokens.find(&hash(b"")).is_none(), "{text}");
    }
    files.write("tokens.yaml", "empty: true");
    assert!(tokens.refresh().unwrap());
    assert!(tokens.find(&hash(b"s3cret")).is_none());
}

#[test]
fn a_holder_is_in_force_until_its_token_or_its_roles_change() {
    let files = Folder::new();
    let batch = entry("batch", "s3cret");
    files.write("tokens.yaml", &format!("tokens:\n{batch}"));
    let tokens = Tokens::open(files.path("tokens.yaml")).unwrap();
    let holder = tokens.find(&hash(b"s3cret")).unwrap();
    for (text, is_in_force) in [
        (format!("tokens:\n{batch}{}", entry("new", "another")), true),
        (format!("tokens:\n{}", entry("batch", "another")), false),
        (
            format!("tokens:\n{}", batch.replace('}', ", roles: [operator]}")),
            false,
        ),
    ] {
        files.write("tokens.yaml", &text);
        assert!(tokens.refresh().unwrap(), "{text}");
        assert_eq!(tokens.has(&holder), is_in_force, "{text}");
    }
}
