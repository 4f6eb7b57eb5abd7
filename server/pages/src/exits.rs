//! Exit codes of programs whose output cannot be written, such as help into a file on a full disk.

use std::io::{self, ErrorKind, Write};
use std::process;

/// Returns the exit code after a write to standard output, and says why it failed. A reader that closes the output
/// early, as `head` does, has seen enough.
pub fn exit_code(written: io::Result<()>) -> u8 {
    match written {
        Err(error) if error.kind() != ErrorKind::BrokenPipe => {
            // If even this fails, no other place for the message is left.
            let _ = writeln!(io::stderr(), "error: cannot write the output: {error}");
            1
        }
        _ => 0,
    }
}

/// Prints help, the version or a refusal of arguments, and ends the program.
pub fn end(error: &clap::Error) -> ! {
    match error.exit_code() {
        0 => process::exit(exit_code(error.print()).into()),
        _ => error.exit(),
    }
}
