//! Where the shell's lines come from: typed, with history and completion, or read from a script.
//!
//! Reading blocks, so it has a thread of its own, which hands over a line and waits until it was
//! played before it shows the next prompt. It ends with the process.

use std::borrow::Cow;
use std::collections::BTreeSet;
use std::io::{self, BufRead};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use rustyline::completion::Completer;
use rustyline::config::{CompletionType, Config};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::history::FileHistory;
use rustyline::{Editor, Helper, Hinter, Validator};
use tokio::sync::mpsc;

use super::typed_line::commands;
use doorward_pages::terminal::palette::{Palette, Tone};

const PROMPT: &str = "doorward> ";

/// Lines that the history keeps.
const HISTORY_LINES_MAX: usize = 1000;

/// Names that were used, for completion.
#[derive(Clone, Debug, Default)]
pub(super) struct CompletedNames(Arc<Mutex<Used>>);

#[derive(Debug, Default)]
struct Used {
    clients: BTreeSet<String>,
    resources: BTreeSet<String>,
}

impl CompletedNames {
    pub(super) fn learn(&self, client: &str, resource: &str) {
        let mut used = self.used();
        used.clients.insert(client.to_owned());
        used.resources.insert(resource.to_owned());
    }

    /// Nothing panics while holding it; should something, what is in it is still right.
    fn used(&self) -> MutexGuard<'_, Used> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where the last word of what is written begins, and what it may become.
    fn complete(&self, written: &str) -> (usize, Vec<String>) {
        let start = written.rfind(' ').map_or(0, |space| space + 1);
        let before: Vec<&str> = written
            .get(..start)
            .unwrap_or_default()
            .split_whitespace()
            .collect();
        let used = self.used();
        let candidates: Vec<&str> = match before.as_slice() {
            [] | ["help"] => commands().collect(),
            ["get" | "release"] => used.clients.iter().map(String::as_str).collect(),
            ["get" | "release", _] | ["status"] => {
                used.resources.iter().map(String::as_str).collect()
            }
            _ => Vec::new(),
        };
        let word = written.get(start..).unwrap_or_default();
        let fitting = candidates
            .into_iter()
            .filter_map(|candidate| shlex::try_quote(candidate).ok())
            .filter(|candidate| candidate.starts_with(word))
            .map(|candidate| format!("{candidate} "))
            .collect();
        (start, fitting)
    }
}

/// Lines as they come, and where to report that one was played.
pub(super) type Lines = (mpsc::Receiver<String>, mpsc::Sender<()>);

/// Lines of a script on standard input.
pub(super) fn read_script() -> Lines {
    read(read_lines)
}

/// Lines that somebody types.
pub(super) fn read_typed(palette: Palette, names: CompletedNames) -> Lines {
    read(move |send| edit_lines(palette, names, send))
}

fn read(lines: impl FnOnce(&mut dyn FnMut(String) -> bool) + Send + 'static) -> Lines {
    let (line_sender, receiver) = mpsc::channel(1);
    let (done, mut played) = mpsc::channel(1);
    std::thread::spawn(move || {
        // False: nobody plays any more.
        lines(&mut |line| {
            line_sender.blocking_send(line).is_ok() && played.blocking_recv().is_some()
        });
    });
    (receiver, done)
}

fn read_lines(send: &mut dyn FnMut(String) -> bool) {
    for line in io::stdin().lock().lines().map_while(Result::ok) {
        if !send(line) {
            return;
        }
    }
}

fn edit_lines(palette: Palette, names: CompletedNames, send: &mut dyn FnMut(String) -> bool) {
    let config = Config::builder()
        .completion_type(CompletionType::List)
        .max_history_size(HISTORY_LINES_MAX)
        .and_then(|config| config.history_ignore_dups(true))
        .map(|config| config.build())
        .unwrap_or_default();
    let Ok(mut editor) = Editor::<Typist, FileHistory>::with_config(config) else {
        // A terminal that cannot be edited on can still be read.
        return read_lines(send);
    };
    editor.set_helper(Some(Typist { palette, names }));
    let history = history_file();
    if let Some(file) = &history {
        // A first shell has no history.
        let _ = editor.load_history(file);
    }
    loop {
        match editor.readline(PROMPT) {
            Ok(line) => {
                // Lines that cannot be remembered are played all the same.
                let _ = editor.add_history_entry(&line);
                if let Some(file) = &history {
                    let _ = editor.append_history(file);
                }
                if !send(line) {
                    return;
                }
            }
            // Ctrl-C gives the line up.
            Err(ReadlineError::Interrupted) => {}
            Err(_) => return,
        }
    }
}

/// Where the history is kept; its folder is made if need be.
fn history_file() -> Option<PathBuf> {
    let state = std::env::var_os("XDG_STATE_HOME").map(PathBuf::from);
    let home = || Some(PathBuf::from(std::env::var_os("HOME")?).join(".local/state"));
    let folder = state
        .filter(|folder| folder.is_absolute())
        .or_else(home)?
        .join("doorward");
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}

/// Helps whoever types.
#[derive(Helper, Hinter, Validator)]
struct Typist {
    palette: Palette,
    names: CompletedNames,
}

impl Completer for Typist {
    type Candidate = String;

    fn complete(
        &self,
        line: &str,
        position: usize,
        _: &rustyline::Context<'_>,
    ) -> rustyline::Result<(usize, Vec<String>)> {
        Ok(self
            .names
            .complete(line.get(..position).unwrap_or_default()))
    }
}

impl Highlighter for Typist {
    fn highlight_prompt<'b, 's: 'b, 'p: 'b>(
        &'s self,
        prompt: &'p str,
        _default: bool,
    ) -> Cow<'b, str> {
        Cow::Owned(self.palette.paint(Tone::Strong, prompt))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_word_is_completed_by_what_fits_there() {
        let names = CompletedNames::default();
        names.learn("alice", "db/reads");
        names.learn("al bert", "db/writes");
        let check = |written: &str, expected: &[&str]| {
            let (_, found) = names.complete(written);
            assert_eq!(found, expected, "{written:?}");
        };
        check("st", &["status "]);
        check("help re", &["release "]);
        check("get ali", &["alice "]);
        check("get ", &["'al bert' ", "alice "]);
        check("release alice db/", &["db/reads ", "db/writes "]);
        check("status db/r", &["db/reads "]);
        check("get alice db/reads 1", &[]);
        check("nonsense a", &[]);
        assert_eq!(names.complete("get ali").0, 4);
    }
}
