//! Stories: what a node does, as text that reads like prose.
//!
//! A story is a file in `testdata/stories`: remarks, and blocks of a command, `----`, and what came
//! of it. `UPDATE_STORIES=1 cargo test -p doorward-engine --test stories` writes what comes of them
//! now; read the difference before you commit it.
//!
//! | command | does |
//! | --- | --- |
//! | `templates` | takes the templates in the lines that follow: `GLOB KIND CAPACITY [key=value …]` with keys `lease`, `refresh`, `learning`, `safe`, `wants_max`, and named parameters |
//! | `win-mastership epoch=N`, `lose-mastership [to=ADDRESS]` | |
//! | `get-capacity client=… resource=… wants=… [has=…] [priority=…] [process=…] [sequence=…] [from=CALLER]` | |
//! | `release client=… resource=… [process=…] [sequence=…] [from=CALLER]` | |
//! | `advance 5s` | time passes, and the timer is served |
//! | `inspect` | every resource and every lease |

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "a test"
)]
#![allow(missing_docs, reason = "a test")]

use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs;
use std::path::Path;
use std::time::Duration;

use doorward_engine::amount::Amount;
use doorward_engine::id::{Caller, HolderName, Incarnation, ResourceId};
use doorward_engine::node::mastership::{Mastership, Outcome};
use doorward_engine::node::{Config, Node};
use doorward_engine::request::{
    Ask, GetCapacity, Has, LimitedBy, RefusalReason, ReleaseCapacity, Released,
};
use doorward_engine::template::{AlgorithmKind, TemplateSpec, Templates};
use doorward_engine::time::Time;

#[test]
fn every_story_comes_out_as_it_is_told() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/stories");
    let mut files: Vec<_> = fs::read_dir(&folder)
        .unwrap()
        .map(|f| f.unwrap().path())
        .collect();
    files.sort();
    assert!(files.len() >= AlgorithmKind::ALL.len());
    for file in files {
        let told = fs::read_to_string(&file).unwrap();
        let came = retell(&told);
        if std::env::var_os("UPDATE_STORIES").is_some() {
            fs::write(&file, came).unwrap();
        } else {
            assert_eq!(came, told, "in {}", file.display());
        }
    }
}

#[test]
fn every_algorithm_has_a_story() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/stories");
    for kind in AlgorithmKind::ALL {
        let file = folder.join(format!("{}.txt", kind.as_str().to_lowercase()));
        assert!(file.exists(), "{} is missing", file.display());
    }
}

/// The story with what comes of its commands now.
fn retell(story: &str) -> String {
    let mut teller = Teller::new();
    let mut retold = Vec::new();
    for block in story.trim_end().split("\n\n") {
        match block.split_once("\n----") {
            Some((command, _)) => {
                let came = teller.act(command);
                retold.push(
                    format!("{command}\n----\n{}", came.trim_end())
                        .trim_end()
                        .to_owned(),
                );
            }
            None => retold.push(block.to_owned()),
        }
    }
    retold.join("\n\n") + "\n"
}

struct Teller {
    node: Node,
    now: Time,
}

impl Teller {
    fn new() -> Self {
        let node = Node::new(Config::default(), Templates::default());
        Self {
            node,
            now: Time::ZERO,
        }
    }

    fn act(&mut self, command: &str) -> String {
        let (line, rest) = command.split_once('\n').unwrap_or((command, ""));
        let (verb, arguments) = line.split_once(' ').unwrap_or((line, ""));
        let named: BTreeMap<&str, &str> = arguments
            .split_whitespace()
            .filter_map(|word| word.split_once('='))
            .collect();
        let number = |name: &str| named.get(name).map(|text| text.parse::<f64>().unwrap());
        let whole = |name: &str| named.get(name).map(|text| text.parse::<i64>().unwrap());
        let sequence = whole("sequence").map(|n| u64::try_from(n).unwrap());
        let resource = || ResourceId::new(named["resource"]).unwrap();
        let client = || HolderName::new(named["client"]).unwrap();
        let process = || whole("process").and_then(|n| Incarnation::new(u64::try_from(n).unwrap()));
        let caller = || whole("from").map(|n| Caller::new(u128::try_from(n).unwrap()));
        match verb {
            "templates" => {
                match Templates::parse(&rest.lines().map(template).collect::<Vec<_>>()) {
                    Ok(templates) => {
                        self.node.handle_templates(templates, self.now);
                        self.events()
                    }
                    Err(problems) => problems
                        .iter()
                        .map(|problem| format!("{problem}\n"))
                        .collect(),
                }
            }
            "win-mastership" => {
                let epoch = u64::try_from(whole("epoch").unwrap()).unwrap();
                self.node
                    .handle_mastership(Mastership::Master { epoch: Some(epoch) }, self.now);
                self.events()
            }
            "lose-mastership" => {
                let elsewhere = |address: &&str| Mastership::Follower {
                    master_address: (*address).to_owned(),
                    epoch: None,
                };
                let mastership = named.get("to").map_or(Mastership::Unknown, elsewhere);
                self.node.handle_mastership(mastership, self.now);
                self.events()
            }
            "get-capacity" => {
                let has = number("has").map(|has| Has {
                    granted_by: None,
                    capacity: Amount::new(has).unwrap(),
                    expires_in: None,
                });
                let request = GetCapacity {
                    caller: caller(),
                    incarnation: process(),
                    client: client(),
                    sequence,
                    asks: vec![Ask {
                        resource: resource(),
                        priority: whole("priority").unwrap_or(0),
                        wants: Amount::new(number("wants").unwrap()).unwrap(),
                        has,
                    }],
                };
                let mut told = String::new();
                match self.node.handle_get_capacity(&request, self.now) {
                    Outcome::Served(reply) => {
                        for lease in reply.leases {
                            let (expires, refresh) = (lease.expires_in, lease.refresh_in);
                            write!(
                                told,
                                "gets {} for {expires:?}, refresh in {}",
                                lease.capacity,
                                roughly(refresh)
                            )
                            .unwrap();
                            if lease.limited_by != LimitedBy::Wants {
                                write!(told, ", limited by {:?}", lease.limited_by).unwrap();
                            }
                            if let Some(remaining) = lease.learning_for {
                                write!(told, ", learning for {remaining:?}").unwrap();
                            }
                            if !lease.decided {
                                write!(told, ", not decided").unwrap();
                            }
                            writeln!(told).unwrap();
                        }
                        for refusal in reply.refused {
                            writeln!(told, "refused: {refusal}").unwrap();
                            if let RefusalReason::AnotherProcess(retry_in) = refusal.reason {
                                writeln!(told, "asks again in {}", roughly(retry_in)).unwrap();
                            }
                        }
                    }
                    Outcome::NotMaster(mastership) => {
                        writeln!(told, "not the master: {mastership:?}").unwrap();
                    }
                }
                told + &self.events()
            }
            "release" => {
                let request = ReleaseCapacity {
                    caller: caller(),
                    incarnation: process(),
                    client: client(),
                    sequence,
                    resources: vec![resource()],
                };
                match self.node.handle_release_capacity(&request, self.now) {
                    Outcome::Served(results) => {
                        let told = match results.as_slice() {
                            [Released::OutOfOrder] => "out of order\n".to_owned(),
                            [Released::NotThere] => "it holds nothing\n".to_owned(),
                            [Released::UnlessHeard(after)] => {
                                format!("free in {}, unless it is heard before\n", roughly(*after))
                            }
                            _ => String::new(),
                        };
                        told + &self.events()
                    }
                    Outcome::NotMaster(mastership) => format!("not the master: {mastership:?}"),
                }
            }
            "advance" => {
                let seconds: f64 = arguments.trim_end_matches('s').parse().unwrap();
                let end = self.now + Duration::from_secs_f64(seconds);
                while let Some(timeout) = self.node.poll_timeout().filter(|t| t.at <= end) {
                    self.now = self.now.max(timeout.at);
                    self.node.handle_timeout(self.now);
                }
                self.now = end;
                let events = self.events();
                format!("it is {}\n{events}", self.now)
            }
            "inspect" => self.inspect(),
            other => panic!("{other:?} is no command"),
        }
    }

    fn events(&mut self) -> String {
        let mut told = String::new();
        while let Some(event) = self.node.poll_event() {
            writeln!(told, "event: {event:?}").unwrap();
        }
        self.node.assert_consistent();
        told
    }

    fn inspect(&self) -> String {
        let mut told = String::new();
        for resource in self.node.snapshot(self.now).resources {
            write!(
                told,
                "{}: capacity {} wants {} granted {} reserved {}",
                resource.resource,
                resource.capacity,
                resource.wants,
                resource.granted,
                resource.reserved
            )
            .unwrap();
            match resource.learning_remaining {
                Some(remaining) => writeln!(told, ", learning for {remaining:?}").unwrap(),
                None => writeln!(told).unwrap(),
            }
            for lease in self.node.lease_snapshots(&resource.resource, 100, self.now) {
                writeln!(
                    told,
                    "  {}: wants {} share {} granted {} reserved {} until {}\n    {}",
                    lease.holder.name,
                    lease.wants,
                    lease.share,
                    lease.granted,
                    lease.reserved,
                    lease.expires_at,
                    lease.why
                )
                .unwrap();
            }
        }
        if told.is_empty() {
            "nobody holds anything\n".to_owned()
        } else {
            told
        }
    }
}

/// Early refreshes are spread by chance: what matters is that they are early.
fn roughly(span: Duration) -> String {
    if span.subsec_millis() == 0 {
        format!("{span:?}")
    } else {
        format!("about {:.1}s", span.as_secs_f64())
    }
}

fn template(line: &str) -> TemplateSpec {
    let words: Vec<&str> = line.split_whitespace().collect();
    let seconds = |text: &str| Duration::from_secs_f64(text.trim_end_matches('s').parse().unwrap());
    let mut spec = TemplateSpec {
        identifier_glob: Some(words[0].to_owned()),
        kind: AlgorithmKind::ALL
            .into_iter()
            .find(|kind| kind.as_str() == words[1]),
        capacity: Some(words[2].parse().unwrap()),
        lease_length: Some(Duration::from_secs(60)),
        refresh_interval: Some(Duration::from_secs(5)),
        learning_mode_duration: Some(Duration::ZERO),
        ..TemplateSpec::default()
    };
    for word in &words[3..] {
        let (key, value) = word.split_once('=').unwrap();
        match key {
            "lease" => spec.lease_length = Some(seconds(value)),
            "refresh" => spec.refresh_interval = Some(seconds(value)),
            "learning" => spec.learning_mode_duration = Some(seconds(value)),
            "safe" => spec.safe_capacity = Some(value.parse().unwrap()),
            "wants_max" => spec.wants_max = Some(value.parse().unwrap()),
            _ => spec
                .parameters
                .push((key.to_owned(), Some(value.to_owned()))),
        }
    }
    spec
}
