//! Metrics in both formats, read as strictly as a scraper reads them.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};

use doorward::rules::Rules;
use doorward_edge::records::Records;
use doorward_server::metrics::Metrics;
use doorward_server::metrics::format::Format;
use doorward_server::security::{Security, SecurityConfig};
use doorward_server::status::EtcdHealth;
use doorward_tests::certificates::Authority;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::family::{Family, WORD};
use crate::mastership::candidate_config;
use crate::running::{asked, capacity, get, start};

/// A family of metrics.
#[derive(Debug)]
pub(crate) struct MetricFamily {
    pub(crate) kind: String,
    /// Labels of all its time series, without `node` and `le`.
    pub(crate) labels: BTreeSet<String>,
    series: BTreeSet<String>,
}

/// Returns the labels with their values, and the text after them.
fn labels(text: &str) -> (BTreeMap<String, String>, &str) {
    let mut found = BTreeMap::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label's value is quoted");
        assert!(is_label(name), "{name:?}");
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().expect("a value ends") {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().expect("more").1 {
                    'n' => '\n',
                    escaped @ ('"' | '\\') => escaped,
                    other => panic!("\\{other} is no escape"),
                }),
                (_, other) => value.push(other),
            }
        };
        assert_eq!(found.insert(name.to_owned(), value), None, "{name} twice");
        match after[end + 1..].split_at(1) {
            (",", more) => rest = more,
            ("}", more) => return (found, more),
            _ => panic!("after a label: {after:?}"),
        }
    }
}

fn is_label(name: &str) -> bool {
    !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c == '_')
}

/// Returns the endings that the names of a family's samples have in a format.
fn suffixes(format: Format, kind: &str) -> &'static [&'static str] {
    match (format, kind) {
        (_, "histogram") => &["_sum", "_count", "_bucket"],
        (Format::OpenMetrics, "counter") => &["_total"],
        (Format::OpenMetrics, "info") => &["_info"],
        (_, "gauge") | (Format::Plain, "counter") => &[""],
        _ => panic!("{kind} is no type of this format"),
    }
}

/// Reads a text, and panics where a strict reader would refuse it.
#[track_caller]
pub(crate) fn read(format: Format, node: &str, text: &str) -> BTreeMap<String, MetricFamily> {
    let body = match format {
        Format::OpenMetrics => text.strip_suffix("# EOF\n").expect("it is marked as whole"),
        Format::Plain => text,
    };
    assert!(body.ends_with('\n') && !body.contains("# EOF"), "{body}");
    let mut families: BTreeMap<String, MetricFamily> = BTreeMap::new();
    let (mut help, mut family) = (None, String::new());
    for line in body.lines() {
        if let Some(text) = line.strip_prefix("# HELP ") {
            let (name, text) = text.split_once(' ').expect("a text");
            assert!(help.is_none() && !text.is_empty(), "{line}");
            help = Some(name.to_owned());
        } else if let Some(text) = line.strip_prefix("# TYPE ") {
            let (name, kind) = text.split_once(' ').expect("a type");
            assert_eq!(help.take().as_deref(), Some(name), "the help comes first");
            let new = MetricFamily {
                kind: kind.to_owned(),
                labels: BTreeSet::new(),
                series: BTreeSet::new(),
            };
            assert!(
                families.insert(name.to_owned(), new).is_none(),
                "{name} twice"
            );
            family = name.to_owned();
        } else {
            assert!(!line.starts_with('#'), "no such comment: {line}");
            let known = families.get_mut(&family).expect("a family comes first");
            read_sample(format, node, &family, known, line);
        }
    }
    families
}

#[track_caller]
fn read_sample(format: Format, node: &str, name: &str, family: &mut MetricFamily, line: &str) {
    let (sample, rest) = line.split_once('{').expect("labels");
    let suffix = sample
        .strip_prefix(name)
        .expect("samples follow their family");
    assert!(suffixes(format, &family.kind).contains(&suffix), "{line}");
    let (labels, value) = labels(rest);
    assert_eq!(labels.get("node").map(String::as_str), Some(node), "{line}");
    assert_eq!(suffix == "_bucket", labels.contains_key("le"), "{line}");
    let series = line.rsplit_once(' ').expect("a value").0.to_owned();
    assert!(family.series.insert(series), "twice: {line}");
    let value: f64 = value.trim_start().parse().expect("a number");
    let counts = family.kind == "counter" || family.kind == "histogram";
    assert!(!counts || value >= 0.0, "{line}");
    let others = labels.into_keys().filter(|it| it != "node" && it != "le");
    family.labels.extend(others);
}

/// Checks the names as `promtool check metrics` does.
#[track_caller]
fn check_names(families: &BTreeMap<String, MetricFamily>) {
    for (name, family) in families {
        assert!(is_label(name) && name.starts_with("doorward_"), "{name}");
        let is_counter = family.kind == "counter";
        assert_eq!(name.ends_with("_total"), is_counter, "{name}");
        for end in ["_count", "_sum", "_bucket"] {
            assert!(!name.ends_with(end), "{name} looks like a histogram's");
        }
        // A name contains base units only, and only as its last word.
        for unit in [
            "_ms", "_millis", "_minutes", "_hours", "_kib", "_mib", "_percent",
        ] {
            assert!(!name.contains(unit), "{name}");
        }
        for unit in ["_seconds", "_bytes"] {
            let is_last = name.trim_end_matches("_total").ends_with(unit);
            assert!(is_last || !name.contains(unit), "{name}");
        }
    }
}

/// Returns the metrics of a server in a tree with an election. Every metric has a value there.
/// A certificate, always in the same file.
static CERTIFICATE: LazyLock<PathBuf> = LazyLock::new(|| {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join("metrics.pem");
    fs::write(&path, Authority::new().certificate).unwrap();
    path
});

fn in_a_tree() -> Metrics {
    let mut family = Family::new();
    family.child_asks("leaf-a", "fair/x", WORD);
    family.client_asks("c", "fair/x", 5.0);
    family.client_needs("c", "tokens/x", 5.0);
    family.child_streams(1);
    family.eu.state_directory.send_replace(Some(None));
    family.eu.etcd.send_replace(Some(EtcdHealth {
        term: std::time::Duration::from_secs(9),
        since: std::time::Duration::ZERO,
        problem: None,
    }));
    let security = SecurityConfig {
        certificates: vec![CERTIFICATE.clone()],
        ..SecurityConfig::default()
    };
    let security = Security::new(&security, &[]);
    family.eu.security.get_or_init(|| security.into());
    let election = candidate_config();
    family
        .eu
        .node()
        .input(|replica, now| replica.handle_election(election, now));
    let rules = "domain: api\ndescriptors: [{key: user, rate_limit: {rate: 1/s}}]\n";
    let rules = Rules::load(&[("api.yaml", rules)]).unwrap();
    doorward_server::edge::start(&family.eu, Records::default()).set_rules(rules);
    let metrics = Metrics::new(&Arc::clone(&family.eu));
    metrics.observe_call(
        Some(0),
        tonic::Code::Ok,
        std::time::Duration::from_millis(1),
    );
    metrics
}

/// Returns every family that a server can have, in a format.
pub(crate) fn everything(format: Format) -> BTreeMap<String, MetricFamily> {
    read(format, "eu", &in_a_tree().render(format).unwrap())
}

#[test]
fn both_formats_are_read_by_strict_readers_and_say_the_same() {
    let plain = everything(Format::Plain);
    let open_metrics = everything(Format::OpenMetrics);
    check_names(&plain);
    let series = |families: &BTreeMap<String, MetricFamily>| -> BTreeSet<String> {
        families.values().flat_map(|it| it.series.clone()).collect()
    };
    assert_eq!(series(&plain), series(&open_metrics));
    assert_eq!(plain.len(), open_metrics.len());
    assert_eq!(plain["doorward_build_info"].kind, "gauge");
    assert_eq!(open_metrics["doorward_build"].kind, "info");
    assert_eq!(plain["doorward_decisions_total"].kind, "counter");
    assert_eq!(open_metrics["doorward_decisions"].kind, "counter");
}

#[tokio::test]
async fn the_format_is_the_one_that_is_asked_for() {
    let server = start().await;
    let mut client = capacity(&server).await;
    get(&mut client, "a", vec![asked("fair/a\"b\\c", 30.0)]).await;
    let plain = (Format::Plain, "text/plain; version=0.0.4");
    let open_metrics = (
        Format::OpenMetrics,
        "application/openmetrics-text; version=1.0.0",
    );
    for (accept, (format, content_type)) in [
        ("", plain),
        ("Accept: */*\r\n", plain),
        ("Accept: text/plain\r\n", plain),
        ("Accept: application/openmetrics-text\r\n", open_metrics),
        (
            "Accept: text/plain;q=0.5\r\nAccept: application/openmetrics-text;version=1.0.0\r\n",
            open_metrics,
        ),
    ] {
        let address = server.http_address().expect("pages are on");
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!(
            "GET /metrics HTTP/1.1\r\nHost: localhost\r\n{accept}Connection: close\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        assert!(
            head.contains(&format!("content-type: {content_type}")),
            "{accept} {head}"
        );
        assert!(head.contains("vary: accept"), "{head}");
        read(format, "root", body);
    }
}
