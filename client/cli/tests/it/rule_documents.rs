//! `rules` as documents: the commands of templates on rules, in a file and a real etcd.

#![cfg(unix)]

use std::fs;
use std::process::Output;

use doorward_tests::etcd::Etcd;

use crate::template_edit::Desk;
use crate::{check_exit, check_failure, doorward, json, stderr, stdout};

/// A document whose rules are those lines.
fn rules(lines: &[&str]) -> String {
    let lines = lines.iter().map(|line| format!("- {line}\n"));
    format!("domain: login\ndescriptors:\n{}", lines.collect::<String>())
}

const USER: &str = "{key: user, rate_limit: {rate: 10/min}}";

fn user() -> String {
    rules(&[USER])
}

#[track_caller]
fn check_diff(desk: &Desk, document: &str, expected: &str) {
    let output = desk.run(&["diff", "-"], document);
    check_exit(&output, 1);
    let said = stdout(&output);
    let (_, by_rule) = said.split_once("\n\n").unwrap();
    assert_eq!(by_rule, expected, "{document}");
}

#[tokio::test]
async fn a_change_is_told_rule_by_rule() {
    let etcd = Etcd::start().await;
    for desk in [Desk::at_etcd(&etcd), Desk::at_file()].map(Desk::of_rules) {
        desk.apply(&rules(&[
            USER,
            "{key: tenant, value: acme, descriptors: [{key: path, rate_limit: {rate: 5/s}}]}",
            "{key: ip, value: '10.*', rate_limit: {unlimited: true}}",
        ]));
        let changed = rules(&[
            "{key: user, action: wait, rate_limit: {rate: 20/min, algorithm: token_bucket, burst: 7}}",
            "{key: tenant, value: acme, descriptors: [{key: path, scope: shared, \
             rate_limit: {rate: 5/s, soft_limit: 4}, ban: {threshold: 9, interval: 1min, length: 1h}}]}",
            "{key: ip, cost: 2, shadow_mode: true, rate_limit: {rate: 3/s, name: ip}}",
        ]);
        let changed = format!("unmatched: reject\n{changed}");
        check_diff(
            &desk,
            &changed,
            "by rule:\n  \
             ~ login unmatched allow → reject\n  \
             + login.ip added: limit 3/s, cost 2, shadow_mode true, name ip\n  \
             - login.ip_10.* removed: limit unlimited\n  \
             ~ login.tenant_acme.path soft_limit none → 4; ban none → beyond 9/min, until 1h after its interval; scope local → \
             shared; on_failure open → safe\n  \
             ~ login.user limit 10/min → 20/min token_bucket; burst none → 7; action reject → wait\n",
        );
        let remark = format!("# Ours.\n{}", desk.show());
        check_diff(&desk, &remark, "no rule changes in meaning\n");
        // A request with this value becomes free, though no limit is another one.
        let free = format!("{}- {{key: user, value: ann}}\n", desk.show());
        let said = "by rule:\n  ~ the order of rules, or descriptors without a limit\n";
        check_diff(&desk, &free, said);
    }
}

#[tokio::test]
async fn versions_of_rules_are_kept_and_come_back() {
    let etcd = Etcd::start().await;
    let desk = Desk::at_etcd(&etcd).of_rules();
    check_failure(&desk.run(&["show"], ""), 1, "doorward rules apply FILE");
    desk.apply(&user());
    desk.apply(&user().replace("10/", "20/"));
    let key = "/doorward/rules";
    assert_eq!(etcd.get(key).await, Some(user().replace("10/", "20/")));
    let output = desk.run(&["rollback", "1", "--yes", "--why", "too many"], "");
    check_exit(&output, 0);
    assert!(stdout(&output).contains("~ login.user limit 20/min → 10/min"));
    assert_eq!(etcd.get(key).await, Some(user()));
    let listed = json(&desk.run(&["history", "-o", "json"], ""));
    assert_eq!(listed["versions"][0]["kind"], "rollback to 1");
    assert_eq!(listed["versions_count"], 3);

    // Another key, by the variable.
    let mut command = doorward();
    command.args(["rules", "--etcd-endpoints", &etcd.endpoint(0), "show"]);
    command.env("DOORWARD_RULES", "etcd:/other");
    check_failure(&command.output().unwrap(), 1, "no rules at etcd:/other yet");
}

#[tokio::test]
async fn of_two_writers_of_rules_the_second_writes_nothing() {
    let etcd = Etcd::start().await;
    let desks = [Desk::at_etcd(&etcd), Desk::at_file()].map(Desk::of_rules);
    for (desk, place) in desks.iter().zip([
        format!("--etcd-endpoints {}", etcd.endpoint(0)),
        format!("--at {}", desks[1].path("t.yaml").display()),
    ]) {
        desk.apply(&user());
        fs::write(desk.path("bobs.yaml"), user().replace("10/", "30/")).unwrap();
        // While ann edits, bob writes.
        let output = desk.edit(&format!(
            "$BIN rules {place} apply $DESK/bobs.yaml --yes >/dev/null\nsed -i s,10/,20/, $1"
        ));
        check_exit(&output, 1);
        let said = stderr(&output);
        assert!(said.contains("meanwhile the rules were changed"), "{said}");
        assert!(said.contains("rules diff, then rules apply"), "{said}");
        assert_eq!(desk.show(), user().replace("10/", "30/"));
        assert_eq!(desk.left(), [user().replace("10/", "20/")]);
    }
}

#[test]
fn every_problem_is_told_with_its_line_and_marked_in_the_editor() {
    let desk = Desk::at_file().of_rules();
    let wrong = rules(&[
        "{key: user, rate_limit: {rate: fast}}",
        "{key: ip, cost: 0, rate_limit: {rate: 5/s}}",
    ]);
    let output = desk.run(&["check", "-"], &wrong);
    check_exit(&output, 1);
    assert_eq!(
        stderr(&output),
        "standard input:3: rate: fast is invalid; write a rate such as 10/min or 2000/20min\n\
         standard input:4: cost: 0 is invalid; write a whole number above 0\n\
         doorward: a file is invalid\n"
    );
    check_exit(&desk.run(&["apply", "-", "--yes"], &wrong), 1);
    fs::write(
        desk.path("t.yaml"),
        [b"domain: a\n".as_slice(), b"# \xff\n"].concat(),
    )
    .unwrap();
    let output = desk.run(&["check"], "");
    check_exit(&output, 1);
    let said = stderr(&output);
    assert!(said.contains("t.yaml:2: is not UTF-8 text"), "{said}");
    assert!(
        said.ends_with("is invalid: servers keep the rules they had\n"),
        "{said}"
    );
    fs::write(desk.path("t.yaml"), wrong).unwrap();
    let script = "cp $1 $DESK/seen; sed -i -e 's/fast/10\\/min/' -e '/cost/d' $1";
    check_exit(&desk.edit(script), 0);
    let seen = desk.read("seen");
    assert!(
        seen.contains("# !! line 5: rate: fast is invalid"),
        "{seen}"
    );
    assert_eq!(desk.show(), user());
}

#[test]
fn valid_rules_are_listed_and_the_examples_are_valid() {
    let desk = Desk::at_file().of_rules();
    let output = desk.run(&["check", "-"], &user().replace("{key", "{cost: 2, key"));
    check_exit(&output, 0);
    let expected = "standard input: 1 rule, valid\nrule        limit\nlogin.user  10/min  cost 2\n";
    assert_eq!(stdout(&output), expected);
    let shown = json(&desk.run(&["check", "-", "-o", "json"], &user()));
    assert_eq!(shown["rules"][0]["rule"], "login.user");
    assert_eq!(shown["rules"][0]["on_failure"], "open");
    assert_eq!(shown["warnings"], serde_json::json!([]));
    let secret = rules(&["{key: api_key, detailed_metric: true, rate_limit: {rate: 10/min}}"]);
    let output = desk.run(&["check", "-"], &secret);
    check_exit(&output, 0);
    assert_eq!(
        stderr(&output),
        "warning: login.api_key: detailed_metric has no effect\n\
         warning: login: api_key is named like a secret, and the status, pages and metrics may show its values; \
         write hash: true beside the key\n"
    );
    let output = desk.run(&["check", "-"], &secret.replace("detailed_metric", "hash"));
    assert_eq!(stderr(&output), "");
    assert!(stdout(&output).contains("hash true"), "{}", stdout(&output));
    check_exit(&desk.edit("sed -i s,100/,50/, $1"), 0);
    assert!(desk.show().contains("rate: 50/min"));
}

#[test]
fn a_change_after_which_no_rule_stays_needs_force() {
    let desk = Desk::at_file().of_rules();
    desk.apply(&user());
    let other = user().replace("login", "search");
    let output = desk.run(&["apply", "-", "--yes"], &other);
    check_failure(
        &output,
        2,
        "standard input: warning: no rule of those in force stays",
    );
    check_failure(&output, 2, "give --force");
    assert_eq!(desk.show(), user());
    let output = desk.run(&["apply", "-", "--yes", "--force"], &other);
    check_exit(&output, 0);
    assert!(!stdout(&output).contains("needs --force"));
}

fn run(at: &str, arguments: &[&str]) -> Output {
    let mut command = doorward();
    command.args(["rules", "--at", at]).args(arguments);
    command.output().unwrap()
}

#[test]
fn files_of_a_directory_that_have_the_same_domain_are_told() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let write = |name: &str, text: &str| fs::write(path(name), text).unwrap();
    let at = folder.path().to_str().unwrap();
    write("b.yml", &user());
    write("a.yaml", &user().replace("login", "search"));
    write(".c.yaml", "not ours");
    write("notes.txt", "not ours");
    let (file, other) = (path("d.yaml"), path("b.yml"));
    write("d.yaml", &user());
    let output = run(&file, &["check", &path("a.yaml"), &file, &other]);
    let told = format!("{other}: domain: login is in {file} too; keep one of them\n");
    check_exit(&output, 1);
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    let shown = json(&run(&file, &["check", &other, "-o", "json"]));
    let told =
        format!("warning: domain: login is in {other} too: servers refuse a directory with both");
    assert_eq!(shown["warnings"], serde_json::json!([told]));
    check_exit(&run(&file, &["apply", &other, "--yes"]), 0);
    let output = run(&file, &["try", "--request", "user=ann"]);
    assert!(stdout(&output).contains("allowed      login.user (10/min)"));
    // A document is one file.
    let told = format!("Is a directory (os error 21); give its files, as in {at}/*.yaml");
    let output = run(&file, &["check", at]);
    check_exit(&output, 2);
    assert!(stderr(&output).contains(&told), "{}", stderr(&output));
    check_failure(&run(&file, &["apply", at, "--yes"]), 2, &told);
    let told = "it is a directory; give a regular file";
    check_failure(&run(at, &["check"]), 2, told);
    check_failure(&run(at, &["edit", "--yes"]), 2, told);
    check_failure(&run(&file, &["history"]), 2, "only etcd keeps a history");
}
