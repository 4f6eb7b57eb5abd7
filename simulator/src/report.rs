//! Reports of a run: a summary on a terminal, a folder with a page and all measurements, and comparisons.
//!
//! All of it comes from a [`Recording`](crate::recording::Recording) alone, so that reports can be made and runs
//! compared long after the run.

pub mod compare;
mod figures;
mod folder;
pub mod page;
pub mod summary;
mod terminal;
#[cfg(test)]
mod testing;
mod words;

pub use folder::{RECORDING, claim, write_all};

/// Returns a command of the simulator as it is typed into a shell.
pub fn command_line<'a>(words: impl IntoIterator<Item = &'a str>) -> String {
    // Arguments of a process have no zero byte, which alone cannot be quoted.
    let words = shlex::try_join(words).unwrap_or_default();
    format!("doorward-sim {words}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_is_quoted_for_the_shell() {
        let quoted = command_line(["run", "small & <simple>", "--seed", "7"]);
        assert_eq!(quoted, "doorward-sim run 'small & <simple>' --seed 7");
        let quoted = command_line(["run", "a's.yaml", "--duration", "1m"]);
        assert_eq!(quoted, "doorward-sim run \"a's.yaml\" --duration 1m");
    }
}
