//! The agent as a process: its HTTP and Redis doors, its start with invalid rules, its end, and a second one of its name.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::process::Command;
use std::thread;

use doorward_tests::processes::{Server, program, stderr};
use doorward_tests::template_file::TemplateFile;
use tempfile::TempDir;

const RULES: &str = "
domain: api
descriptors:
- key: user
  rate_limit: {rate: 2/day}
- key: tenant
  scope: shared
  rate_limit: {rate: 100/s, algorithm: token_bucket}
";

/// Leases end soon, so the parent soon knows both processes of a node.
const TEMPLATES: &str = "
resources:
- identifier_glob: shared/api/tenant=*
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 3s, refresh_interval: 200ms, learning_mode_duration: 200ms}
";

/// Returns a folder with these rules, and the path of their file.
fn rules(text: &str) -> (TempDir, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("limits.yaml");
    fs::write(&path, text).unwrap();
    (folder, path.display().to_string())
}

/// Starts an agent that has read its rules.
fn agent(arguments: &[&str]) -> Server {
    let http = ["--http-listen", "127.0.0.1:0"];
    let mut agent = Server::agent("127.0.0.1:0", &[&http, arguments].concat());
    while check(&mut agent, "user", "nobody") == "503" {
        thread::yield_now();
    }
    agent
}

/// Returns the status of `/v1/check` for an entry of a descriptor.
fn check(agent: &mut Server, key: &str, value: &str) -> String {
    let body = format!(r#"{{"domain": "api", "entries": {{"{key}": "{value}"}}}}"#);
    let mut connection = TcpStream::connect(agent.pages()).unwrap();
    write!(
        connection,
        "POST /v1/check HTTP/1.0\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    let mut answer = String::new();
    connection.read_to_string(&mut answer).unwrap();
    answer[9..12].to_owned()
}

#[test]
fn an_agent_passes_what_its_rules_allow_and_ends_in_order() {
    let (_folder, path) = rules(RULES);
    let mut agent = agent(&["--rules", &path]);
    let answers = ["ann", "ann", "ann", "bob"].map(|user| check(&mut agent, "user", user));
    assert_eq!(answers, ["200", "200", "429", "200"]);
    let (status, log) = agent.terminate();
    assert_eq!(status.code(), Some(0), "{log:#?}");
    assert_eq!(log.last().unwrap()["message"], "stopped", "{log:#?}");
}

#[test]
fn a_redis_client_gets_the_answers_of_throttle() {
    let (_folder, path) = rules(RULES);
    let mut agent = agent(&["--rules", &path, "--redis-listen=127.0.0.1:0"]);
    let serving = agent.logged("serving Redis clients").pop().unwrap();
    let mut client = TcpStream::connect(serving["address"].as_str().unwrap()).unwrap();
    let mut answers = BufReader::new(client.try_clone().unwrap()).lines();
    // Whether it is refused, the limit, what is left, and the seconds until a retry. The last number depends on time.
    for expected in [[0, 2, 1, -1], [0, 2, 0, -1]] {
        client.write_all(b"THROTTLE ann 1 2 86400\r\n").unwrap();
        let mut number = || answers.next().unwrap().unwrap();
        assert_eq!(number(), "*5");
        let numbers = [0; 5].map(|_| number());
        assert_eq!(numbers[..4], expected.map(|it| format!(":{it}")));
    }
    client.write_all(b"CL.THROTTLE ann 1 2 86400\r\n").unwrap();
    let refused: Vec<String> = answers.by_ref().take(2).map(Result::unwrap).collect();
    assert_eq!(refused, ["*5", ":1"]);
}

#[test]
fn an_agent_does_not_start_with_invalid_rules_and_names_their_line() {
    let (_folder, path) = rules(&RULES.replace("2/day", "much"));
    let output = Command::new(program("doorward-agent"))
        .args(["--rules", &path])
        .args(["--listen=127.0.0.1:0", "--http-listen=none"])
        .output()
        .unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    assert!(said.contains("limits.yaml:5"), "{said}");
    assert!(said.contains("much"), "{said}");
}

#[test]
fn a_second_agent_of_a_name_is_refused_and_says_so() {
    let templates = TemplateFile::new(TEMPLATES);
    let root = Server::start(&["--refresh-floor=50ms", "--templates", &templates.path]);
    let (_folder, path) = rules(RULES);
    let flags = [
        "--node=here/agent",
        "--parent",
        &root.address,
        "--rules",
        &path,
    ];
    let mut first = agent(&flags);
    assert_eq!(check(&mut first, "tenant", "acme"), "200");
    let mut second = agent(&flags);
    check(&mut second, "tenant", "acme");
    let said = second.wait_for_log("another process of this node was there first");
    assert_eq!(said["level"], "ERROR", "{said}");
    assert_eq!(check(&mut first, "tenant", "acme"), "200");
}
