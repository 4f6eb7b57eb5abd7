//! Commands that need no server: help, completions, template files.

use std::fs;

use crate::{check_exit, doorward, json, stderr, stdout};

const GOOD: &str = "resources: [{identifier_glob: 'db/*', capacity: 5, algorithm: {kind: FAIR_SHARE, \
                    lease_length: 60, refresh_interval: 5}}]";

#[test]
fn the_help_names_every_command_and_exit_code_and_options_every_variable() {
    #[track_caller]
    fn check(argument: &str, texts: &[&str]) {
        let output = doorward().arg(argument).output().unwrap();
        check_exit(&output, 0);
        let help = stdout(&output);
        for text in texts {
            assert!(help.contains(text), "{text} not in {help}");
        }
    }
    let commands_and_codes = [
        "get",
        "watch",
        "release",
        "status",
        "templates",
        "completions",
        "demo",
        "Examples:",
        "Exit codes: 0 done; 1 the answer is no",
        "2 wrong usage; 3 no server",
        "doorward options",
    ];
    check("--help", &commands_and_codes);
    let variables = [
        "DOORWARD_SERVER",
        "DOORWARD_OUTPUT",
        "DOORWARD_TIMEOUT",
        "DOORWARD_ETCD_ENDPOINTS",
        "NO_COLOR",
    ];
    check("options", &variables);
}

#[test]
fn every_shell_can_complete() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let output = doorward().args(["completions", shell]).output().unwrap();
        check_exit(&output, 0);
        assert!(stdout(&output).contains("templates"), "{shell}");
    }
}

#[test]
fn a_file_in_order_is_listed() {
    let output = doorward()
        .args(["templates", "check", "-"])
        .write_stdin(GOOD)
        .output()
        .unwrap();
    check_exit(&output, 0);
    assert_eq!(
        stdout(&output),
        "standard input: 1 template, valid\n\
         glob  algorithm   capacity     safe  lease  refresh  learning\n\
         db/*  FAIR_SHARE         5  dynamic     1m       5s        1m\n"
    );
    let output = doorward()
        .args(["templates", "check", "-", "--output", "json"])
        .write_stdin(GOOD)
        .output()
        .unwrap();
    let expected = serde_json::json!({"file": "standard input", "templates": [{
        "identifier_glob": "db/*", "capacity": 5.0, "safe_capacity": null, "wants_max": null,
        "subclients_max": null, "share_floor": null, "description": "",
        "kind": "FAIR_SHARE", "lease_length_s": 60.0, "refresh_interval_s": 5.0,
        "learning_mode_duration_s": 60.0,
    }], "warnings": []});
    assert_eq!(json(&output), expected);
}

#[test]
fn every_file_is_checked_and_every_problem_reported() {
    let folder = tempfile::tempdir().unwrap();
    let write = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let good = write("good.yaml", GOOD);
    let bad = GOOD
        .replace("5,", "-5,")
        .replace("FAIR_SHARE", "FARE_SHARE");
    let bad = write("bad.yaml", &bad);
    let missing = folder.path().join("missing.yaml");
    let missing = missing.to_str().unwrap();
    let check = |files: &[&str]| {
        let mut command = doorward();
        command.args(["templates", "check"]).args(files);
        command.output().unwrap()
    };

    let output = check(&[missing, &bad, &good]);
    check_exit(&output, 1);
    assert!(stdout(&output).contains("good.yaml: 1 template, valid"));
    let said = stderr(&output);
    assert!(said.contains("missing.yaml: cannot be read"), "{said}");
    assert!(said.contains("capacity: is -5"), "{said}");
    assert!(said.contains("did you mean FAIR_SHARE?"), "{said}");
    assert!(said.ends_with("doorward: a file is invalid\n"), "{said}");

    check_exit(&check(&[missing]), 2);
    check_exit(&check(&[&good]), 0);
    let nothing = doorward().args(["templates", "check"]).output().unwrap();
    check_exit(&nothing, 2);
}

#[test]
fn init_writes_valid_documents_with_their_schemas_and_replaces_none() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path().join("new");
    let init = || doorward().arg("init").arg(&folder).output().unwrap();
    check_exit(&init(), 0);
    for name in ["templates", "rules"] {
        let file = folder.join(format!("{name}.yaml"));
        let text = fs::read_to_string(&file).unwrap();
        let first = text.lines().next().unwrap();
        assert!(
            first.starts_with("# yaml-language-server: $schema=https://"),
            "{first}"
        );
        let schema = first.rsplit_once("/main/").unwrap().1;
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../..");
        assert!(std::path::Path::new(root).join(schema).exists(), "{schema}");
        let output = doorward()
            .args([name, "check"])
            .arg(&file)
            .output()
            .unwrap();
        check_exit(&output, 0);
    }
    fs::write(folder.join("rules.yaml"), "mine").unwrap();
    fs::remove_file(folder.join("templates.yaml")).unwrap();
    let output = init();
    check_exit(&output, 1);
    assert!(
        stderr(&output).contains("rules.yaml exists"),
        "{}",
        stderr(&output)
    );
    assert_eq!(
        fs::read_to_string(folder.join("rules.yaml")).unwrap(),
        "mine"
    );
    assert!(!folder.join("templates.yaml").exists());
}

#[test]
fn man_writes_a_page_for_each_program_and_command() {
    let folder = tempfile::tempdir().unwrap();
    let output = doorward().arg("man").arg(folder.path()).output().unwrap();
    check_exit(&output, 0);
    for page in [
        "doorward",
        "doorward-templates-apply",
        "doorward-server",
        "doorward-agent",
    ] {
        let page = fs::read_to_string(folder.path().join(format!("{page}.1"))).unwrap();
        assert!(page.contains(".SH OPTIONS"), "{page}");
    }
}
