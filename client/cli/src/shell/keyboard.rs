//! Lines of the shell, typed with a history or read from a script.
//!
//! Reading blocks, so it has a thread of its own, which hands over a line and waits until it was
//! played before it shows the next prompt. It ends with the process.

use std::io::{self, BufRead};
use std::path::PathBuf;

use rustyline::error::ReadlineError;
use rustyline::{Config, DefaultEditor};
use tokio::sync::mpsc;

use crate::common::user_folder;

const PROMPT: &str = "doorward> ";

const HISTORY_LINES_MAX: usize = 1_000;

/// Lines as they come, and where to report that one was played.
pub(super) type Lines = (mpsc::Receiver<String>, mpsc::Sender<()>);

/// Reads lines from the keyboard, or those of a script on standard input.
pub(super) fn read(is_typed: bool) -> Lines {
    let lines = if is_typed { edit_lines } else { read_lines };
    let (line_sender, receiver) = mpsc::channel(1);
    let (done, mut played) = mpsc::channel(1);
    std::thread::spawn(move || {
        // False: the shell has ended.
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

fn edit_lines(send: &mut dyn FnMut(String) -> bool) {
    let config = Config::builder().max_history_size(HISTORY_LINES_MAX);
    let editor = config.and_then(|it| DefaultEditor::with_config(it.build()));
    let Ok(mut editor) = editor else {
        // A terminal that cannot be edited on can still be read.
        return read_lines(send);
    };
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
    let folder = user_folder("XDG_STATE_HOME", ".local/state")?;
    std::fs::create_dir_all(&folder).ok()?;
    Some(folder.join("history"))
}
