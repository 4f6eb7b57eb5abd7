//! Starts with a likely mistake: refused with a remedy, or a warning in the log.

use std::ffi::OsStr;
use std::fs;
use std::io;
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::process::{Command, Stdio};

use doorward_tests::etcd::Etcd;
use doorward_tests::processes::{
    Server, doorward_server, doorward_server_with, doorward_with, program, stderr, stdout,
};
use doorward_tests::template_file::TemplateFile;

const OWN: &str = "DOORWARD_SERVER_ETCD_ENDPOINTS";
const OF_COMMAND_LINE: &str = "DOORWARD_ETCD_ENDPOINTS";

const TEMPLATES: &str = "
resources:
- identifier_glob: r
  capacity: 1
  algorithm: {kind: STATIC, lease_length: 60s, refresh_interval: 5s}
";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_shell_for_the_command_line_makes_no_server_a_candidate() {
    let etcd = Etcd::start().await;
    let endpoint = etcd.endpoint(0);
    let of_command_line = [(OF_COMMAND_LINE, &*endpoint)];
    let refused = doorward_server_with(&of_command_line, &["--listen=127.0.0.1:0"]);
    let said = stderr(&refused);
    assert_eq!(refused.status.code(), Some(2), "{said}");
    assert!(said.contains(&format!("set {OWN}")), "{said}");
    let nodes = doorward_with(&of_command_line, &["nodes"]);
    assert_eq!(nodes.status.code(), Some(0), "{}", stderr(&nodes));
    assert!(!stdout(&nodes).contains("root"), "no node is there");

    let both = [(OF_COMMAND_LINE, &*endpoint), (OWN, &endpoint)];
    let file = TemplateFile::new(TEMPLATES);
    let templates = ["--templates", &file.path];
    let mut candidate = Server::start_with(&both, &templates);
    let elected = candidate.wait_for_log("this server is the master");
    assert!(elected["epoch"].is_u64(), "{elected}");
    let nodes = doorward_with(&of_command_line, &["nodes"]);
    assert!(
        stdout(&nodes).contains(&candidate.address),
        "{}",
        stdout(&nodes)
    );
}

#[test]
fn a_loopback_address_is_not_advertised_to_an_etcd_elsewhere() {
    let etcd = "--etcd-endpoints=127.0.0.1:2379,192.0.2.1:2379";
    for flags in [
        &[etcd][..],
        &[etcd, "--listen=[::1]:6970"],
        &[etcd, "--listen=0.0.0.0:6970", "--advertise=localhost:6970"],
    ] {
        let output = doorward_server(flags);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{flags:?}: {said}");
        assert!(said.contains("http://192.0.2.1:2379"), "{said}");
        assert!(said.contains("give --advertise"), "{said}");
    }
}

#[test]
fn built_in_templates_are_a_warning_with_their_list() {
    let warning = "built-in example templates are in force";
    let mut server = Server::start(&[]);
    let logged = server.wait_for_log(warning);
    assert_eq!(logged["level"], "WARN");
    let list = logged["templates"].as_str().unwrap();
    assert!(
        list.starts_with("example/fair, ") && list.ends_with(", *"),
        "{list}"
    );

    let file = TemplateFile::new(TEMPLATES);
    let mut server = Server::start(&["--templates", &file.path]);
    assert_eq!(server.logged(warning).len(), 0);
}

#[test]
fn a_node_without_a_parent_says_that_it_is_a_root_of_its_own() {
    let own = "a root of its own";
    let mut server = Server::start(&["--node", "eu"]);
    assert_eq!(server.wait_for_log(own)["node"], "eu");
    for flags in [&[][..], &["--node", "eu", "--parent", "127.0.0.1:1"]] {
        let mut server = Server::start(flags);
        assert_eq!(server.logged(own).len(), 0, "{flags:?}");
    }
}

#[test]
fn an_address_to_listen_on_that_is_none_is_refused_with_what_to_write() {
    for (flag, address, advice) in [
        ("--listen", "localhost:6970", "127.0.0.1:6970"),
        ("--listen", ":7000", "0.0.0.0:7000"),
        ("--http-listen", "localhost", "127.0.0.1:PORT"),
    ] {
        let output = doorward_server(&[flag, address]);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{address}: {said}");
        assert!(said.contains(advice), "{address}: {said}");
    }
}

#[test]
fn a_variable_that_is_not_text_is_named() {
    for name in ["doorward-server", "doorward"] {
        let mut command = Command::new(program(name));
        let value = OsStr::from_bytes(b"\xff");
        let output = command.env("DOORWARD_LOG", value).output().unwrap();
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{name}: {said}");
        assert!(said.contains("DOORWARD_LOG is not UTF-8"), "{name}: {said}");
    }
}

#[test]
fn a_limit_of_the_system_that_is_too_small_is_named_and_no_panic() {
    let rules =
        TemplateFile::new("{domain: api, descriptors: [{key: user, rate_limit: {rate: 2/s}}]}");
    let agent = format!(
        "--listen=127.0.0.1:0 --http-listen=none --rules {}",
        rules.path
    );
    let server = "--listen=127.0.0.1:0 --http-listen=none";
    // Limits of threads do not hold for root.
    let is_root = stdout(&Command::new("id").arg("-u").output().unwrap()).trim() == "0";
    let other = "exec setpriv --reuid=65534 --clear-groups";
    for (name, arguments) in [
        ("doorward-server", server),
        ("doorward-agent", &agent),
        ("doorward", "get example/fair 1"),
        ("doorward", "watch example/fair 1"),
    ] {
        let files = (4..16).map(|count| (format!("-n {count}"), "ulimit -n"));
        let threads = [
            ("-u 1".to_owned(), "ulimit -u"),
            ("-u 2".to_owned(), "ulimit -u"),
            ("-s 256".to_owned(), "ulimit -s"),
            ("-s 20".to_owned(), "ulimit -s"),
        ];
        for (limit, expected) in files.chain(threads) {
            let mut shell = Command::new("bash");
            if limit.starts_with("-s") {
                // Variables are on the stack, too.
                shell.env_clear();
            }
            let by = if is_root && limit.starts_with("-u") {
                other
            } else {
                "exec"
            };
            let script = format!("ulimit {limit} && {by} \"$0\" {arguments}");
            let output = shell
                .args(["-c", &script])
                .arg(program(name))
                .output()
                .unwrap();
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(1), "{name} {limit}: {said}");
            assert!(said.contains(expected), "{name} {limit}: {said}");
            assert_eq!(said.lines().count(), 1, "{name} {limit}: {said}");
        }
    }
    let output = Command::new("bash")
        .args(["-c", "ulimit -n 64 && exec \"$0\" demo --plain --for 1s"])
        .arg(program("doorward"))
        .output();
    let (output, said) = (output.as_ref().unwrap(), stderr(output.as_ref().unwrap()));
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("open files"), "{said}");
}

#[test]
fn output_that_cannot_be_written_is_a_failure_with_its_reason() {
    let file = TemplateFile::new(TEMPLATES);
    for (name, arguments) in [
        ("doorward", &["status", "--help"][..]),
        ("doorward", &["completions", "bash"]),
        ("doorward-server", &["--version"]),
        ("doorward-server", &["completions", "bash"]),
        ("doorward-server", &["--check", &file.path]),
        ("doorward-agent", &["--help-all"]),
        ("doorward-agent", &["completions", "zsh"]),
    ] {
        let run = |to: Stdio| {
            Command::new(program(name))
                .args(arguments)
                .stdout(to)
                .output()
        };
        let full = fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        let output = run(full.into()).unwrap();
        let said = stderr(&output);
        assert_eq!(
            output.status.code(),
            Some(1),
            "{name} {arguments:?}: {said}"
        );
        assert!(said.contains("cannot write the output"), "{name}: {said}");
        // A reader that closes the output early has seen enough.
        let (_, closed) = io::pipe().unwrap();
        let output = run(closed.into()).unwrap();
        assert_eq!(output.status.code(), Some(0), "{name}: {}", stderr(&output));
    }
}

#[test]
fn a_document_that_is_hardly_meant_is_warned_of() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("templates.yaml");
    let blank = TEMPLATES.replace("  capacity: 1", "  wants_max:\n  capacity: 1");
    for (text, warning) in [
        (
            "resources: []",
            "there are no templates: every request is refused",
        ),
        (&blank, "wants_max: is blank"),
    ] {
        fs::write(&file, text).unwrap();
        let mut server = Server::start(&["--templates", file.to_str().unwrap()]);
        let warned = server.logged("").into_iter().any(|entry| {
            let message = entry["message"].as_str().unwrap_or_default().to_owned();
            entry["level"] == "WARN" && message.contains(warning)
        });
        assert!(warned, "{warning}");
    }
}

fn make_pipe(path: &Path) {
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

#[test]
fn an_irregular_file_is_refused_as_a_template_file_at_once_and_later() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("pipe");
    make_pipe(&pipe);
    for (path, what) in [
        (&*pipe, "it is a pipe"),
        (folder.path(), "it is a directory"),
        (Path::new("/dev/zero"), "it is a device"),
    ] {
        let path = path.to_str().unwrap();
        for flag in ["--check", "--templates"] {
            let output = doorward_server(&[flag, path, "--listen=127.0.0.1:0"]);
            let said = stderr(&output);
            assert_eq!(output.status.code(), Some(2), "{flag} {path}: {said}");
            assert!(said.contains(what), "{flag} {path}: {said}");
        }
    }

    let file = TemplateFile::new(TEMPLATES);
    let templates = ["--templates", &file.path];
    let pages = ["--http-listen", "127.0.0.1:0"];
    let mut server = Server::start(&[templates, pages].concat());
    fs::rename(&pipe, &file.path).unwrap();
    let logged = server.wait_for_log("new templates refused, those in force stay");
    let message = logged["message"].as_str().unwrap();
    assert!(message.contains("it is a pipe"), "{message}");
    assert_eq!(server.status()["templates_count"], 1);
    // It is not stuck: it reads the next one.
    file.write(&TEMPLATES.replace("capacity: 1", "capacity: 2"));
    server.wait_for_log("new templates are in force");
    let (ended, _) = server.terminate();
    assert_eq!(ended.code(), Some(0));
}
