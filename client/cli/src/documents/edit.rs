//! Command `edit`: in an editor, until it is valid.
//!
//! The operator edits a copy. The copy is removed when its content is in force, or was never changed. In all other
//! cases it stays, and the last line names it.

use std::fs;
use std::io::{self, Write};
use std::path::PathBuf;
use std::process::Command;

use doorward_documents::Kind;
use doorward_etcd::DocumentPlace;
use doorward_etcd::documents::VersionKind;

use crate::documents::change::{Changed, Changer, reply};
use crate::documents::document::Document;
use crate::documents::flags::ChangeFlags;
use crate::documents::store::Standing;
use crate::documents::{Shown, marks};
use crate::failure::Failure;
use crate::flags::Common;
use crate::output;

pub(crate) async fn run<K: Shown>(
    common: &Common,
    at: Option<&DocumentPlace>,
    flags: &ChangeFlags,
) -> Result<(), Failure> {
    let changer = Changer::new::<K>(common, at, flags)?;
    changer.check_terminal()?;
    let editor = editor()?;
    let standing = changer.store.read::<K>().await?;
    let noun = K::NOUN;
    let start = match &standing.document {
        Some(document) => document.text().into_owned(),
        None => {
            let message = format!("there are no {noun}s yet: this starts from examples");
            writeln!(output::stderr(), "{message}")?;
            K::EXAMPLE.to_owned()
        }
    };
    let mut session = Session {
        copy: Copy::new(&start, noun)?,
        editor,
        start,
        changer,
    };
    let path = session.copy.path.display().to_string();
    // Should all this be ended from outside, it is known where the text is.
    writeln!(output::stderr(), "the copy that is edited: {path}")?;
    let edited = session.edit(standing).await;
    // A copy that is kept has text that is nowhere else.
    match (&edited, session.copy.differs_from(&session.start)) {
        (Err(_), true) => writeln!(output::stderr(), "your text is kept in {path}")?,
        _ => session.copy.remove(),
    }
    edited
}

/// One text on its way through an editor.
struct Session<'a> {
    changer: Changer<'a>,
    /// The program and its arguments.
    editor: Vec<String>,
    copy: Copy,
    /// Text that changes nothing: the one that the editor got first, or the one that another writer wrote since.
    start: String,
}

impl Session<'_> {
    async fn edit<K: Shown>(&mut self, mut seen: Standing<K>) -> Result<(), Failure> {
        let mut text = self.start.clone();
        let invalid = self.copy.document::<K>(&text).read.err();
        let mut problems = invalid.map_or_else(Vec::new, |error| K::problems(&error));
        loop {
            let edited = self.round(&text, &problems)?;
            if edited.trim().is_empty() || edited == self.start {
                writeln!(output::stdout(), "nothing changed")?;
                return Ok(());
            }
            let new = self.copy.document::<K>(&edited);
            if let Err(error) = &new.read {
                if !problems.is_empty() && edited == text {
                    writeln!(output::stderr(), "{error}")?;
                    let problem = "it is still invalid: nothing was written";
                    return Err(Failure::No(problem.to_owned()));
                }
                problems = K::problems(error);
                text = edited;
                continue;
            }
            problems.clear();
            let new = Document {
                name: "your text".to_owned(),
                ..new
            };
            match self
                .changer
                .change(&seen, &new, VersionKind::Edit, true)
                .await?
            {
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
    fn round(&self, text: &str, problems: &[(u64, String)]) -> Result<String, Failure> {
        let shown = match problems {
            [] => text.to_owned(),
            problems => marks::marked(text, problems),
        };
        self.copy.write(&shown)?;
        let ran = self.run_editor();
        let back = self.copy.read()?;
        let edited = if back == shown {
            text.to_owned()
        } else {
            marks::stripped(&back)
        };
        self.copy.write(&edited)?;
        ran?;
        Ok(edited)
    }

    fn run_editor(&self) -> Result<(), Failure> {
        let (program, arguments) = self.editor.split_first().ok_or_else(no_editor)?;
        let status = Command::new(program)
            .args(arguments)
            .arg(&self.copy.path)
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

    /// Whether the operator, if there is one to be asked, wants to go on.
    fn asks(&self, question: &str) -> Result<bool, Failure> {
        Ok(self.changer.asks() && matches!(&*reply(question)?, "y" | "yes"))
    }
}

/// The file that is edited.
struct Copy {
    path: PathBuf,
}

impl Copy {
    fn new(text: &str, noun: &str) -> Result<Self, Failure> {
        let cannot = |error: &io::Error| Failure::No(format!("cannot make a copy: {error}"));
        let mut copy = tempfile::Builder::new()
            .prefix(&format!("doorward-{noun}s-"))
            .suffix(".yaml")
            .tempfile()
            .map_err(|error| cannot(&error))?;
        let written = copy.write_all(text.as_bytes());
        written.map_err(|error| cannot(&error))?;
        let (_, path) = copy.keep().map_err(|error| cannot(&error.error))?;
        Ok(Self { path })
    }

    fn write(&self, text: &str) -> Result<(), Failure> {
        fs::write(&self.path, text).map_err(|error| self.failure(&error))
    }

    fn read(&self) -> Result<String, Failure> {
        fs::read_to_string(&self.path).map_err(|error| self.failure(&error))
    }

    fn document<K: Kind>(&self, text: &str) -> Document<K> {
        let name = self.path.display().to_string();
        Document::new(&name, text.as_bytes().to_vec())
    }

    fn differs_from(&self, text: &str) -> bool {
        match fs::read(&self.path) {
            Ok(copy) => copy != text.as_bytes(),
            // A copy that cannot be read here may still have the text.
            Err(_) => self.path.exists(),
        }
    }

    fn remove(&self) {
        // If it stays, it has nothing new.
        let _ = fs::remove_file(&self.path);
    }

    fn failure(&self, error: &io::Error) -> Failure {
        Failure::No(format!("the copy {}: {error}", self.path.display()))
    }
}

/// The program to edit with, and its arguments.
fn editor() -> Result<Vec<String>, Failure> {
    let set = |name| {
        std::env::var(name)
            .ok()
            .filter(|text| !text.trim().is_empty())
    };
    let editor = set("VISUAL").or_else(|| set("EDITOR"));
    let editor = editor.unwrap_or_else(|| "vi".to_owned());
    shlex::split(&editor)
        .filter(|words| !words.is_empty())
        .ok_or_else(no_editor)
}

fn no_editor() -> Failure {
    Failure::Usage("$VISUAL or $EDITOR names no program".to_owned())
}
