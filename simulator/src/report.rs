//! What comes out of a simulation: a summary on a terminal, and a folder with a page, charts and
//! everything that was measured. All of it is made of a [`Recording`] and of nothing else, so that a
//! report can be made again, and two compared, long after the run.

mod chart;
mod charts;
pub mod compare;
pub mod csv;
mod figures;
mod folder;
mod html;
pub mod json;
mod mark_kinds;
#[cfg(test)]
pub(crate) mod plausible;
mod shortage_rows;
pub mod summary;
mod text;
mod verdicts;
mod wait_rows;

use crate::recording::Recording;

pub use folder::{ReportError, WrittenReport, claim, write_all};
pub use text::{WIDTH, wrapped};

/// The command that makes the recording again.
pub fn command(recording: &Recording) -> String {
    if !recording.command.is_empty() {
        return recording.command.clone();
    }
    let seed = recording.seed.to_string();
    command_line(["run", &recording.scenario, "--seed", &seed])
}

/// A command of the simulator, as it is typed into a shell.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:,@%+=".contains(c);
    let mut line = "doorward-sim".to_owned();
    for word in words {
        line.push(' ');
        if !word.is_empty() && word.chars().all(plain) {
            line.push_str(word);
        } else {
            line.push('\'');
            line.push_str(&word.replace('\'', r"'\''"));
            line.push('\'');
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_typed_as_it_stands() {
        let mut recording = plausible::small();
        assert_eq!(
            command(&recording),
            "doorward-sim run 'small & <simple>' --seed 7"
        );
        recording.command = command_line(["run", "a's.yaml", "--duration", "1m"]);
        assert_eq!(
            command(&recording),
            r"doorward-sim run 'a'\''s.yaml' --duration 1m"
        );
    }
}
