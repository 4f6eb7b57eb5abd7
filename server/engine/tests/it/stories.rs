//! Stories: sequences of commands to nodes with their results, as text that reads like prose.
//!
//! A story is a file in `testdata/stories`. It has remarks, and blocks of commands, `----`, and their results.
//! `UPDATE_STORIES=1 cargo test -p doorward-engine --test it stories` writes the present results; read the difference
//! before you commit it.
//!
//! **Nodes.** A story that names no node has a single root, which is not elected yet.
//!
//! | command | does |
//! | --- | --- |
//! | `node NAME [parent=NAME] [epoch=N] [standby] [via=calls] [floor=1s] [clock=1.08] [tolerance=0.1]` | adds a node, which is the master except with `standby`; it asks its parent on a stream, or with `via=calls` by calls; `parent-answers` gives the answers of a parent outside the story |
//! | `restart NODE [epoch=N] [standby] [process=N]`, `crash NODE` | starts another process of the node, which knows only the templates; ends the process |
//! | `remake NODE` | lets its process make the node again, which is no master yet |
//! | `elect NODE epoch=N [until=10s [vacant-since=5s|long] [longer-leases=40s] [marks]]`, `depose NODE [to=ADDRESS]` | starts its mastership, which ends at `until`, and with `marks` keeps marks and finds those of the last one; ends its mastership |
//! | `marks NODE [held]` | shows its marks; from now on, no write is executed with `held`, or else at once |
//! | `win-mastership epoch=N`, `lose-mastership [to=ADDRESS]` | the same for the only node |
//! | `templates` | gives the root the templates in the lines after it, `GLOB KIND CAPACITY [key=value …]`; see `story/template_line.rs` |
//! | `template GLOB KIND CAPACITY …` | the same with one template |
//! | `anew` | starts again without any node, at 0 s |
//!
//! **Clients** that follow the protocol: each reports its lease according to the last answer.
//!
//! | command | does |
//! | --- | --- |
//! | `ask CLIENT [at=NODE] [wants=N] [priority=N] [resource=ID] [has=N lasts=20s] [answer=lost]` | it asks, and is answered at once; `has` is a lease from an unknown granter |
//! | `wants CLIENT N` | changes its wants, which it reports in its next `run` |
//! | `release CLIENT`, `drop CLIENT` | it releases its lease; it ends without a release |
//! | `clients` | lists the lease and the safe capacity of each client |
//!
//! **Time and messages.** A message of a server is in flight until a command delivers it.
//!
//! | command | does |
//! | --- | --- |
//! | `advance 5s` | time passes, timers run, and servers ask; no message arrives, and no client asks |
//! | `run 5s` | time passes, messages arrive at once, and clients ask at their refresh |
//! | `freeze 5s` | time passes, and all processes are frozen |
//! | `deliver` | all messages in flight and their answers arrive |
//! | `deliver FROM TO [last]` | the oldest message arrives, or the newest |
//! | `lose FROM TO [last]`, `duplicate FROM TO [last]` | the message of a call never arrives, or arrives twice |
//! | `break NODE` | its stream to the parent breaks and it opens a new one, or it gives up its call |
//! | `cut NODE`, `mend NODE` | no message passes between it and its parent until `mend` |
//!
//! **Single messages**, as old, unusual or broken peers send them:
//!
//! | command | does |
//! | --- | --- |
//! | `get-capacity client=… wants=… [at=NODE] [resource=…] [has=… lasts=… granted-by=…] [priority=…] [process=…] [sequence=…] [from=CALLER]` | a client asks |
//! | `release client=… [resource=…] [at=NODE] [process=…] [sequence=…] [from=CALLER]` | a client releases |
//! | `child-asks CHILD wants=… [at=NODE] [clients=…] [has=…] [outstanding=…] [lasts=…] [granted-by=…] [learning] [height=…] [epoch=…] [process=…] [sequence=…] [via=calls] [old]` | a child server asks |
//! | `parent-answers NODE capacity=… [lease=…] [leases-last=…] [refresh=…] [learning=…] [reserved=…] [inherited=… inherited-for=…] [predecessor-for=…] [ancestors=…]`, `parent-answers NODE refused=…` | the parent answers the node's request |
//!
//! **Looking.** `inspect [NODE …]`: each resource with its supply, its lease from the parent, and its holders.
//! `learning NODE`: whether the node learns, and why. `learning NODE begin|end [resource=ID]`: an operator's word.

use std::fs;
use std::path::{Path, PathBuf};

use crate::asking::LEASED;
use crate::story::player::replay;

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("testdata/stories")
}

/// Returns all stories in this folder and the folders in it.
fn files(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).unwrap();
    let mut paths: Vec<_> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    let expand = |path: PathBuf| {
        if path.is_dir() {
            files(&path)
        } else {
            vec![path]
        }
    };
    paths.into_iter().flat_map(expand).collect()
}

#[test]
fn every_story_plays_as_written() {
    let files = files(&folder());
    assert!(files.len() >= LEASED.len());
    let mut wrong = Vec::new();
    for file in files {
        let expected = fs::read_to_string(&file).unwrap();
        let actual = match replay(&expected) {
            Ok(actual) => actual,
            Err(bad) => panic!("{}:{}: {}", file.display(), bad.line, bad.problem),
        };
        if std::env::var_os("UPDATE_STORIES").is_some() {
            fs::write(&file, actual).unwrap();
        } else if actual != expected {
            wrong.push(difference(&file, &expected, &actual));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Returns the first line whose result differs, and the lines around it.
fn difference(file: &Path, expected: &str, actual: &str) -> String {
    let same = expected
        .lines()
        .zip(actual.lines())
        .take_while(|(a, b)| a == b);
    let line = same.count();
    let around = |text: &str| {
        let lines = text.lines().skip(line.saturating_sub(4)).take(8);
        lines.collect::<Vec<_>>().join("\n    ")
    };
    format!(
        "{}:{}: the result differs.\n  expected:\n    {}\n  actual:\n    {}\n",
        file.display(),
        line + 1,
        around(expected),
        around(actual)
    )
}

#[test]
fn every_algorithm_has_a_story() {
    for kind in LEASED {
        let file = folder().join(format!("{}.txt", kind.as_str().to_lowercase()));
        assert!(file.exists(), "{} is missing", file.display());
    }
}
