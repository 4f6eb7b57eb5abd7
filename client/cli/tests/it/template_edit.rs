//! `templates edit` with editors that are scripts, and templates in files.

#![cfg(unix)]

use std::fs::{self, File};
use std::io::Write;
use std::path::PathBuf;
use std::process::Output;

use assert_cmd::Command;
use doorward_tests::etcd::Etcd;
use tempfile::TempDir;

use crate::templates::document;
use crate::{check_exit, check_failure, doorward, json, nowhere, stderr, stdout};

/// A folder with editors and what they leave behind.
pub(crate) struct Desk {
    folder: TempDir,
    /// Kind of the document, as a command.
    kind: &'static str,
    /// Where it is, as flags.
    at: Vec<String>,
}

impl Desk {
    pub(crate) fn at_etcd(etcd: &Etcd) -> Self {
        let at = ["--etcd-endpoints", &etcd.endpoint(0)];
        Self {
            folder: tempfile::tempdir().unwrap(),
            kind: "templates",
            at: at.map(str::to_owned).to_vec(),
        }
    }

    /// Templates in a file.
    pub(crate) fn at_file() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("t.yaml");
        Self {
            at: vec!["--at".to_owned(), file.to_str().unwrap().to_owned()],
            kind: "templates",
            folder,
        }
    }

    /// The same for rules.
    pub(crate) fn of_rules(self) -> Self {
        Self {
            kind: "rules",
            ..self
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.path(name)).unwrap()
    }

    pub(crate) fn run(&self, arguments: &[&str], stdin: &str) -> Output {
        let mut command = self.command(arguments);
        command.write_stdin(stdin).output().unwrap()
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = doorward();
        command.arg(self.kind).args(&self.at);
        command.args(["--server", &nowhere()]).args(arguments);
        command.env("TMPDIR", self.copies());
        // The editor is no program of its own: a process that forks at that moment may still have the file open.
        command.env("EDITOR", format!("sh {}", self.path("editor").display()));
        command
            .env("DESK", self.folder.path())
            .env("BIN", env!("CARGO_BIN_EXE_doorward"));
        command.env_remove("VISUAL");
        command
    }

    #[track_caller]
    pub(crate) fn apply(&self, document: &str) {
        check_exit(&self.run(&["apply", "-", "--yes"], document), 0);
    }

    /// Edits with a script whose $1 is the copy.
    pub(crate) fn edit(&self, script: &str) -> Output {
        self.set_editor(script);
        self.run(&["edit", "--yes"], "")
    }

    /// The same at a terminal, where these lines are typed.
    pub(crate) fn edit_at_terminal(&self, script: &str, typed: &str) -> Output {
        use rustix::pty::{OpenptFlags, grantpt, openpt, ptsname, unlockpt};

        self.set_editor(script);
        let keyboard = openpt(OpenptFlags::RDWR | OpenptFlags::NOCTTY).unwrap();
        grantpt(&keyboard).unwrap();
        unlockpt(&keyboard).unwrap();
        let terminal = ptsname(&keyboard, Vec::new()).unwrap();
        let terminal = File::options()
            .read(true)
            .write(true)
            .open(terminal.to_str().unwrap());
        File::from(keyboard.try_clone().unwrap())
            .write_all(typed.as_bytes())
            .unwrap();
        let asked = self.command(&["edit"]);
        let mut command = std::process::Command::new(asked.get_program());
        command.args(asked.get_args()).stdin(terminal.unwrap());
        for (variable, value) in asked.get_envs() {
            match value {
                Some(value) => command.env(variable, value),
                None => command.env_remove(variable),
            };
        }
        command.output().unwrap()
    }

    fn set_editor(&self, script: &str) {
        fs::write(self.path("editor"), format!("set -e\n{script}\n")).unwrap();
    }

    pub(crate) fn show(&self) -> String {
        stdout(&self.run(&["show"], ""))
    }

    /// Where copies are made.
    fn copies(&self) -> PathBuf {
        let copies = self.path("copies");
        fs::create_dir_all(&copies).unwrap();
        copies
    }

    /// The copies that are left.
    pub(crate) fn left(&self) -> Vec<String> {
        let copies = fs::read_dir(self.copies()).unwrap();
        copies
            .map(|copy| fs::read_to_string(copy.unwrap().path()).unwrap())
            .collect()
    }
}

#[tokio::test]
async fn what_is_not_in_order_is_opened_again_with_marks_until_it_is() {
    let etcd = Etcd::start().await;
    let desk = Desk::at_etcd(&etcd);
    desk.apply(&document(500));
    // First garbage; then, once that is marked, it is mended.
    let output = desk.edit(
        "if [ ! -e $DESK/second ]; then\n\
         sed -i -e 's/500/-5/' -e 's/FAIR_SHARE/FARE/' $1; touch $DESK/second\n\
         else cp $1 $DESK/seen; sed -i -e 's/capacity: -5/capacity: 250/' -e \
         's/kind: FARE/kind: FAIR_SHARE/' $1; fi",
    );
    check_exit(&output, 0);
    let seen = desk.read("seen");
    let lines: Vec<&str> = seen.lines().collect();
    assert!(lines[0].starts_with("# !! invalid, 2 problems"), "{seen}");
    let (mark, line) = (lines[4], lines[5]);
    assert!(mark.starts_with("  # !! line 6: "), "{seen}");
    assert!(mark.contains("capacity: is -5"), "{seen}");
    assert_eq!(line, "  capacity: -5");
    assert!(lines[6].contains("algorithm.kind: is \"FARE\""), "{seen}");
    assert_eq!(desk.show(), document(250));
    let newest = &json(&desk.run(&["history", "-o", "json"], ""))["versions"][0];
    assert_eq!(newest["kind"], "edit");
    assert_eq!(desk.left(), [""; 0]);
}

#[test]
fn remarks_that_the_editor_has_changed_are_not_written() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    let output = desk.edit(
        "if [ ! -e $DESK/second ]; then\n\
         sed -i -e 's/500/400/' -e 's/FAIR_SHARE/FAIR_SHAER/' $1; touch $DESK/second\n\
         else cp $1 $DESK/seen; sed -i s/FAIR_SHAER/FAIR_SHARE/ $1; fi",
    );
    check_exit(&output, 0);
    let seen = desk.read("seen");
    assert_eq!(seen.matches("FAIR_SHAER").count(), 2, "{seen}");
    assert_eq!(desk.show(), document(400));
    // One that stands there already goes with the next change, and is none by itself.
    let marked = format!("# !! line 1: of old\n{}", document(400));
    desk.apply(&marked);
    assert_eq!(stdout(&desk.edit("true")), "nothing changed\n");
    check_exit(&desk.edit("sed -i s/400/300/ $1"), 0);
    assert_eq!(desk.show(), document(300));
}

#[test]
fn nothing_changed_is_no_failure_and_a_failing_editor_is_one() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    for nothing in ["true", ": > $1", "echo '  ' > $1"] {
        let output = desk.edit(nothing);
        check_exit(&output, 0);
        assert_eq!(stdout(&output), "nothing changed\n", "{nothing}");
    }
    check_exit(&desk.edit("exit 3"), 1);
    assert_eq!(desk.left(), [""; 0]);
    let output = desk.edit("sed -i s/500/400/ $1; exit 3");
    check_exit(&output, 1);
    assert!(stderr(&output).contains("your text is kept in "));
    assert_eq!(desk.left(), [document(400)]);
    assert_eq!(desk.show(), document(500));
}

#[test]
fn who_leaves_it_wrong_finds_it_again() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    let output = desk.edit("sed -i s/500/-5/ $1");
    check_exit(&output, 1);
    let said = stderr(&output);
    assert!(
        said.contains(":4:13: template 1 (\"db/*\"): capacity: is -5"),
        "{said}"
    );
    assert!(said.contains("still invalid"), "{said}");
    // Without marks.
    assert_eq!(desk.left(), [document(500).replace("500", "-5")]);
}

#[tokio::test]
async fn garbage_is_opened_with_marks_at_once() {
    let etcd = Etcd::start().await;
    let desk = Desk::at_etcd(&etcd);
    etcd.put("/doorward/templates", "resources: 5\n").await;
    let output = desk.edit(&format!(
        "cp $1 $DESK/seen; printf '{}' > $1",
        document(7).replace('\n', "\\n")
    ));
    check_exit(&output, 0);
    assert!(
        desk.read("seen").contains("# !! line 3: "),
        "{}",
        desk.read("seen")
    );
    assert_eq!(desk.show(), document(7));
    let found = stdout(&desk.run(&["show", "--revision", "1"], ""));
    assert_eq!(found, "resources: 5\n");
}

#[tokio::test]
async fn of_two_operators_the_second_writes_nothing_and_loses_nothing() {
    let etcd = Etcd::start().await;
    for (desk, reason, said_of_bob) in [
        (
            Desk::at_etcd(&etcd),
            "--why faster",
            "changed: revision 2, apply by bob at ",
        ),
        (Desk::at_file(), "", "templates were changed\n"),
    ] {
        desk.apply(&document(500));
        fs::write(desk.path("bobs.yaml"), document(300)).unwrap();
        // While ann edits, bob writes.
        let bobs = format!(
            "$BIN templates {} apply $DESK/bobs.yaml --yes --who bob {reason} --server {} \
             >/dev/null\nsed -i s/500/400/ $1",
            desk.at.join(" "),
            nowhere()
        );
        let output = desk.edit(&bobs);
        check_exit(&output, 1);
        let said = stderr(&output);
        assert!(said.contains(said_of_bob), "{said}");
        assert_eq!(said.contains(": faster\n"), !reason.is_empty(), "{said}");
        assert!(
            said.contains("-  capacity: 500\n+  capacity: 300\n"),
            "{said}"
        );
        assert!(said.contains("your text is kept in "), "{said}");
        assert_eq!(desk.left(), [document(400)]);
        assert_eq!(desk.show(), document(300));
    }
}

/// An editor's script by which bob changes 500 to 300 the first time, and what is done then.
fn overtaken(desk: &Desk, first: &str, second: &str) -> String {
    fs::write(desk.path("bobs.yaml"), document(300)).unwrap();
    format!(
        "if [ ! -e $DESK/second ]; then\ntouch $DESK/second\n\
         $BIN templates {} apply $DESK/bobs.yaml --yes --who bob --server {} >/dev/null </dev/null\n\
         {first}\nelse\n{second}\nfi",
        desk.at.join(" "),
        nowhere()
    )
}

#[tokio::test]
async fn who_goes_on_after_somebody_else_is_compared_with_what_is_there_now() {
    let etcd = Etcd::start().await;
    for desk in [Desk::at_etcd(&etcd), Desk::at_file()] {
        desk.apply(&document(500));
        // The first text is a change by now.
        let script = overtaken(&desk, "sed -i s/500/400/ $1", "sed -i s/400/500/ $1");
        let output = desk.edit_at_terminal(&script, "y\ny\ny\n");
        check_exit(&output, 0);
        let said = stdout(&output);
        assert!(
            said.contains("-  capacity: 300\n+  capacity: 500\n"),
            "{said}"
        );
        assert!(said.contains(" is written"), "{said}");
        assert_eq!(desk.show(), document(500));
        assert_eq!(desk.left(), [""; 0]);
    }
}

#[test]
fn who_goes_on_and_comes_to_what_is_there_now_changes_nothing() {
    let desk = Desk::at_file();
    desk.apply(&document(500));
    let script = overtaken(&desk, "sed -i s/500/400/ $1", "sed -i s/400/300/ $1");
    let output = desk.edit_at_terminal(&script, "y\ny\n");
    check_exit(&output, 0);
    assert!(stdout(&output).ends_with("nothing changed\n"));
    assert_eq!(desk.show(), document(300));
    assert_eq!(desk.left(), [""; 0]);
}

#[tokio::test]
async fn of_many_writers_at_once_every_one_that_hears_so_has_written() {
    let etcd = Etcd::start().await;
    let desk = Desk::at_etcd(&etcd);
    let results: Vec<Output> = std::thread::scope(|scope| {
        let desk = &desk;
        let writers: Vec<_> = (1..=8)
            .map(|n| scope.spawn(move || desk.run(&["apply", "-", "--yes"], &document(n))))
            .collect();
        writers.into_iter().map(|w| w.join().unwrap()).collect()
    });
    let written = results.iter().filter(|r| r.status.success()).count();
    assert!(written >= 1);
    let listed = json(&desk.run(&["history", "-o", "json"], ""));
    assert_eq!(listed["versions_count"], written, "{listed}");
    assert_eq!(listed["in_force"], written);
    for result in results.iter().filter(|r| !r.status.success()) {
        check_exit(result, 1);
        assert!(stderr(result).contains("nothing was written"));
    }
}

#[test]
fn a_first_document_starts_from_examples() {
    let desk = Desk::at_file();
    let output = desk.edit("sed -i 's/capacity: 100/capacity: 7/' $1");
    check_exit(&output, 0);
    assert!(
        desk.show()
            .contains("identifier_glob: example/fair\n  capacity: 7\n")
    );
}

#[test]
fn a_file_has_the_same_commands_but_no_history() {
    let desk = Desk::at_file();
    check_failure(&desk.run(&["show"], ""), 1, "To begin, write a file");
    fs::write(desk.path("t.yaml"), document(1)).unwrap();
    assert_eq!(stderr(&desk.run(&["show"], "")), "");
    let output = desk.run(&["apply", "-", "--yes"], &document(2));
    check_exit(&output, 0);
    assert!(stdout(&output).ends_with("/t.yaml is written\n"));
    assert_eq!(desk.read("t.yaml"), document(2));
    check_exit(&desk.run(&["diff", "-"], &document(2)), 0);
    for command in [
        &["history"][..],
        &["rollback", "1", "--yes"],
        &["show", "--revision", "1"],
    ] {
        check_failure(&desk.run(command, ""), 2, "only etcd keeps a history");
    }
    let reason = ["apply", "-", "--yes", "--why", "more"];
    check_failure(&desk.run(&reason, &document(3)), 2, "commit message");
}
