//! The text of a story: remarks, and blocks of commands, `----`, and their results.
//!
//! An empty line separates blocks. A block with a line `----` has commands above it, one a line, and their results
//! below it. Any other block is a remark. A command is a verb, words, and words with a name, such as `wants=30`. Every
//! mistake is an error: a name that the verb does not know, or a remark that begins like a command.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorward_engine::amount::Amount;

/// Result of a command, or its problem.
pub type CommandResult<T> = Result<T, String>;

/// Problem of a story, and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct BadLine {
    pub line: usize,
    pub problem: String,
}

/// A part of a story.
pub enum Block {
    Remark(String),
    /// Text of the commands, and the parsed commands.
    Commands(String, Vec<Command>),
}

/// One line of a block; for `templates` also the lines after it.
#[derive(Debug, Default)]
pub struct Command {
    pub line: usize,
    pub verb: String,
    words: Vec<String>,
    named: BTreeMap<String, String>,
    /// Lines after it.
    pub rest: Vec<String>,
    /// Names that the verb has read.
    known: RefCell<BTreeSet<String>>,
    /// Places of words that the verb has read.
    taken: RefCell<BTreeSet<usize>>,
}

/// Parses a story into its parts.
pub fn parse(story: &str, verbs: &[&str]) -> Result<Vec<Block>, BadLine> {
    let mut blocks = Vec::new();
    let mut line = 1;
    for block in story.trim_end().split("\n\n") {
        let lines = block.split('\n').count();
        match block.split_once("\n----") {
            Some((commands, _)) => {
                let parsed = parse_commands(commands, line);
                blocks.push(Block::Commands(commands.to_owned(), parsed));
            }
            None => {
                let first = block.split_whitespace().next().unwrap_or_default();
                if verbs.contains(&first) {
                    let problem = format!("a block that begins with {first:?} and has no ----");
                    return Err(BadLine { line, problem });
                }
                blocks.push(Block::Remark(block.to_owned()));
            }
        }
        line += lines + 1;
    }
    Ok(blocks)
}

/// Parses commands, one a line. The first is in line `first`.
pub fn parse_commands(text: &str, first: usize) -> Vec<Command> {
    let mut commands: Vec<Command> = Vec::new();
    for (line, words) in (first..).zip(text.lines()) {
        match commands.last_mut() {
            Some(last) if last.verb == "templates" => last.rest.push(words.to_owned()),
            _ => commands.push(Command::parse(words, line)),
        }
    }
    commands
}

impl Command {
    fn parse(text: &str, line: usize) -> Self {
        let mut words = text.split_whitespace();
        let verb = words.next().unwrap_or_default().to_owned();
        if verb == "template" {
            // This is one of the lines after `templates`.
            let rest = vec![words.collect::<Vec<_>>().join(" ")];
            return Self {
                line,
                verb,
                rest,
                ..Self::default()
            };
        }
        let mut command = Self {
            line,
            verb,
            ..Self::default()
        };
        for word in words {
            match word.split_once('=') {
                Some((name, value)) => {
                    command.named.insert(name.to_owned(), value.to_owned());
                }
                None => command.words.push(word.to_owned()),
            }
        }
        command
    }

    /// Returns the word in that place, counted from 0.
    pub fn word(&self, place: usize) -> Option<&str> {
        self.taken.borrow_mut().insert(place);
        self.words.get(place).map(String::as_str)
    }

    /// Returns the same, or an error that says what is missing.
    pub fn the(&self, place: usize, what: &str) -> CommandResult<&str> {
        let word = self.word(place);
        word.ok_or_else(|| format!("{}: which {what}?", self.verb))
    }

    /// Returns all words.
    pub fn all_words(&self) -> Vec<&str> {
        self.taken.borrow_mut().extend(0..self.words.len());
        self.words.iter().map(String::as_str).collect()
    }

    /// Whether that word is present.
    pub fn says(&self, word: &str) -> bool {
        let place = self.words.iter().position(|it| it == word);
        self.taken.borrow_mut().extend(place);
        place.is_some()
    }

    /// Returns the word of that name.
    pub fn text(&self, name: &str) -> Option<&str> {
        self.known.borrow_mut().insert(name.to_owned());
        self.named.get(name).map(String::as_str)
    }

    /// Returns the same, or an error.
    pub fn need(&self, name: &str) -> CommandResult<&str> {
        let found = self.text(name);
        found.ok_or_else(|| format!("{} needs {name}=…", self.verb))
    }

    pub fn number(&self, name: &str) -> CommandResult<Option<f64>> {
        self.parsed(name, "a number")
    }

    pub fn whole(&self, name: &str) -> CommandResult<Option<i64>> {
        self.parsed(name, "a whole number")
    }

    pub fn count(&self, name: &str) -> CommandResult<Option<u64>> {
        self.parsed(name, "a whole number, not below 0")
    }

    pub fn amount(&self, name: &str) -> CommandResult<Option<Amount>> {
        let number = self.number(name)?;
        let amount = number.map(|number| Amount::new(number).map_err(|it| format!("{name}= {it}")));
        amount.transpose()
    }

    pub fn span(&self, name: &str) -> CommandResult<Option<Duration>> {
        self.text(name).map(span).transpose()
    }

    fn parsed<T: std::str::FromStr>(&self, name: &str, what: &str) -> CommandResult<Option<T>> {
        let Some(text) = self.text(name) else {
            return Ok(None);
        };
        let parsed = text.parse();
        parsed
            .map(Some)
            .map_err(|_| format!("{name}={text} is not {what}"))
    }

    /// Returns an error if the verb did not read everything.
    pub fn check_used(&self) -> CommandResult<()> {
        let known = self.known.borrow();
        if let Some(name) = self.named.keys().find(|name| !known.contains(*name)) {
            return Err(format!("{} knows no {name}=", self.verb));
        }
        let taken = self.taken.borrow();
        let mut words = self.words.iter().enumerate();
        match words.find(|(place, _)| !taken.contains(place)) {
            Some((_, word)) => Err(format!("what is {word:?} to {}?", self.verb)),
            None => Ok(()),
        }
    }
}

/// Parses a time: `5s`, `0.5s`, `50ms`.
pub fn span(text: &str) -> CommandResult<Duration> {
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s').unwrap_or(""), 1.0),
    };
    let seconds = number.parse::<f64>().ok();
    let span = seconds.and_then(|it| Duration::try_from_secs_f64(it * unit).ok());
    span.ok_or_else(|| format!("{text:?} is no span of time; say 5s or 50ms"))
}
