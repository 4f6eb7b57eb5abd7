//! Command `edit`: in an editor, until it is valid.
//!
//! The operator edits a copy. The copy is removed when its content is in force, or was never changed. In all other
//! cases it stays, and the last line names it.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::process::Command;

use doorward_etcd::documents::VersionKind;
use tempfile::NamedTempFile;

use super::change::{Changed, Changer};
use super::flags::ChangeFlags;
use super::{Document, Shown, Standing, Store, marks};
use crate::failure::{Failure, Result};
use crate::output;

pub(super) async fn run<K: Shown>(store: Store<'_>, flags: &ChangeFlags) -> Result {
    let changer = Changer::new(store, flags)?;
    changer.check_terminal("diff")?;
    let standing = changer.store.read::<K>().await?;
    let editor = editor()?;
    let noun = K::NOUN;
    let start = match &standing.document {
        Some(document) => document.text().into_owned(),
        None => {
            let message = format!("there are no {noun}s yet: this starts from examples");
            writeln!(output::stderr(), "{message}")?;
            K::EXAMPLE.to_owned()
        }
    };
    let copy = tempfile::Builder::new()
        .prefix(&format!("doorward-{noun}s-"))
        .suffix(".yaml")
        .tempfile();
    let copy = copy.map_err(|error| Failure::No(format!("cannot make a copy: {error}")))?;
    let name = copy.path().display().to_string();
    let mut session = Session {
        name: name.clone(),
        copy,
        editor,
        start,
        changer,
    };
    session.write(&session.start)?;
    // A signal may end this process: the operator knows the place of the text.
    writeln!(output::stderr(), "the copy that is edited: {name}")?;
    let edited = session.edit(standing).await;
    // A copy that is kept has text that is nowhere else.
    if edited.is_err() && session.has_news() {
        session.copy.disable_cleanup(true);
        writeln!(output::stderr(), "your text is kept in {name}")?;
    }
    edited
}

/// One text on its way through an editor.
struct Session<'a> {
    changer: Changer<'a>,
    /// The program and its arguments.
    editor: Vec<String>,
    copy: NamedTempFile,
    /// Path of the copy.
    name: String,
    /// Text that changes nothing: the one that the editor got first, or the one that another writer wrote since.
    start: String,
}

impl Session<'_> {
    async fn edit<K: Shown>(&mut self, mut seen: Standing<K>) -> Result {
        let mut text = self.start.clone();
        let document = seen.document.as_ref();
        let mut problems = document.map_or_else(Vec::new, Document::problems);
        loop {
            let edited = self.round(&text, &problems)?;
            if edited.trim().is_empty() || edited == self.start {
                writeln!(output::stdout(), "nothing changed")?;
                return Ok(());
            }
            let mut new = Document::<K>::new(&self.name, edited.clone().into_bytes());
            if !problems.is_empty() && edited == text && new.valid("").is_err() {
                let problem = "it is still invalid: nothing was written";
                return Err(Failure::No(problem.to_owned()));
            }
            problems = new.problems();
            if !problems.is_empty() {
                text = edited;
                continue;
            }
            new.name = "your text".to_owned();
            let changed = self.changer.change(&seen, &new, VersionKind::Edit, true);
            match changed.await? {
                Changed::Done => {
                    // The text is in force, or was all along.
                    self.start.clone_from(&edited);
                    return Ok(());
                }
                Changed::EditAgain => {}
                Changed::Unforced(problem) => {
                    if !self.asks("Edit it again? [y/N] ")? {
                        return Err(Failure::Usage(problem));
                    }
                }
                Changed::Refused => return Err(Failure::No("nothing was written".to_owned())),
                Changed::Overtaken(now) => {
                    let question =
                        "Go on editing your text, to be compared with what is there now? [y/N] ";
                    if !self.asks(question)? {
                        let noun = K::NOUN;
                        return Err(Failure::No(format!(
                            "nothing was written. To go on with your text: {noun}s diff, then \
                             {noun}s apply"
                        )));
                    }
                    // The first text would undo the other writer's change.
                    self.start = now.text().into_owned();
                    seen = *now;
                }
            }
            text = edited;
        }
    }

    /// Lets the operator edit the text, with what is wrong with it marked.
    fn round(&self, text: &str, problems: &[(u64, String)]) -> Result<String> {
        let shown = match problems {
            [] => text.to_owned(),
            problems => marks::marked(text, problems),
        };
        self.write(&shown)?;
        let ran = self.run_editor();
        let back = fs::read_to_string(self.copy.path()).map_err(|error| self.failure(&error))?;
        let edited = if back == shown {
            text.to_owned()
        } else {
            marks::stripped(&back)
        };
        self.write(&edited)?;
        ran?;
        Ok(edited)
    }

    fn run_editor(&self) -> Result {
        let (program, arguments) = self.editor.split_first().ok_or_else(no_editor)?;
        let status = Command::new(program)
            .args(arguments)
            .arg(self.copy.path())
            .status();
        match status {
            Ok(status) if status.success() => Ok(()),
            Ok(status) => Err(Failure::No(format!(
                "the editor {program} failed ({status}): nothing was written"
            ))),
            Err(error) => Err(Failure::Usage(format!(
                "cannot start the editor {program}: {error}. $VISUAL or $EDITOR says which to use"
            ))),
        }
    }

    fn write(&self, text: &str) -> Result {
        fs::write(self.copy.path(), text).map_err(|error| self.failure(&error))
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::No(format!("the copy {}: {error}", self.name))
    }

    /// Whether the copy has text that is nowhere else.
    fn has_news(&self) -> bool {
        match fs::read(self.copy.path()) {
            Ok(copy) => copy != self.start.as_bytes(),
            // A copy that cannot be read here may still have the text.
            Err(_) => self.copy.path().exists(),
        }
    }

    /// Whether the operator, if there is one to be asked, wants to go on.
    fn asks(&self, question: &str) -> Result<bool> {
        Ok(self.changer.asks() && matches!(&*output::reply(question)?, "y" | "yes"))
    }
}

/// The program to edit with, and its arguments.
fn editor() -> Result<Vec<String>> {
    let set = ["VISUAL", "EDITOR"].iter();
    let mut set = set.filter_map(|name| std::env::var(name).ok());
    let vi = || io::stdin().is_terminal().then(|| "vi".to_owned());
    let editor = set.find(|text| !text.trim().is_empty()).or_else(vi);
    let words = editor.and_then(|editor| shlex::split(&editor));
    let words = words.filter(|words| !words.is_empty());
    words.ok_or_else(no_editor)
}

fn no_editor() -> Failure {
    Failure::Usage("neither $VISUAL nor $EDITOR names a program".to_owned())
}
