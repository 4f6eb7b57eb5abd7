//! Standard output and standard error, on which everything can be seen.
//!
//! Texts of servers, etcd and other people appear in many places. So characters that steer a terminal, turn the
//! direction of a text or have no width are made visible here, on their way out: as `\u{202e}`, and in JSON as
//! `\u202e`, which means the same. Our own colours pass if there are any. Table cells and painted texts are made
//! visible before, so that columns stay where they are and no text brings a colour of its own.

use std::io::{self, Write};
use std::sync::OnceLock;

use clap::ColorChoice;
use doorward_pages::terminal::{Palette, Tone};
use doorward_session::visible;
use serde::Serialize;
use serde_json::Value;

use crate::common::{Common, Output};
use crate::failure::Result;

/// Begins each colour.
const ESCAPE: char = '\u{1b}';

/// Palettes of standard output and standard error.
static STDOUT: OnceLock<Palette> = OnceLock::new();
static STDERR: OnceLock<Palette> = OnceLock::new();

/// How the command prints.
static OUTPUT: OnceLock<Output> = OnceLock::new();

/// Says once whether there are colours, and YAML. Before that, there are none. YAML is another notation of what commands
/// print as JSON, so they know JSON alone.
pub(crate) fn set_up(common: &mut Common) {
    let palette = |suggested: Palette| match common.color {
        ColorChoice::Auto => suggested,
        ColorChoice::Always => Palette { on: true },
        ColorChoice::Never => Palette { on: false },
    };
    // The first word counts, and there is one only.
    let _ = STDOUT.set(palette(Palette::of_stdout()));
    let _ = STDERR.set(palette(Palette::of_stderr()));
    let _ = OUTPUT.set(common.output);
    if common.output == Output::Yaml {
        common.output = Output::Json;
    }
}

/// Standard output.
pub(crate) fn stdout() -> Out<io::Stdout> {
    Out::new(io::stdout(), &STDOUT)
}

/// Standard error.
pub(crate) fn stderr() -> Out<io::Stderr> {
    Out::new(io::stderr(), &STDERR)
}

/// Text for people, written later: to standard output, or beside JSON to standard error.
pub(crate) fn buffer() -> Out<Vec<u8>> {
    match OUTPUT.get() {
        Some(Output::Json | Output::Yaml) => Out::new(Vec::new(), &STDERR),
        _ => Out::new(Vec::new(), &STDOUT),
    }
}

/// Prints a value: as JSON if the flags say so, else as `text` writes it.
pub(crate) fn print(
    common: &Common,
    value: &impl Serialize,
    text: impl FnOnce(&mut Out<io::Stdout>) -> io::Result<()>,
) -> Result {
    let mut out = stdout();
    match common.output {
        Output::Json => json(&mut out, value)?,
        _ => text(&mut out)?,
    }
    Ok(())
}

/// Asks a question on standard error, and reads the answer, in lower case and trimmed.
pub(crate) fn reply(question: &str) -> io::Result<String> {
    let mut err = stderr();
    write!(err, "{question}")?;
    err.flush()?;
    let mut line = String::new();
    if io::stdin().read_line(&mut line)? == 0 {
        writeln!(err)?;
    }
    Ok(line.trim().to_lowercase())
}

/// Writes names, one a line.
pub(crate) fn names<'a>(
    out: &mut impl Write,
    mut names: impl Iterator<Item = &'a String>,
) -> io::Result<()> {
    names.try_for_each(|name| writeln!(out, "{}", visible::line(name)))
}

/// Writes a line of JSON, or a document of YAML.
pub(crate) fn json(out: &mut impl Write, value: &impl Serialize) -> io::Result<()> {
    if OUTPUT.get() == Some(&Output::Yaml) {
        let text = serde_saphyr::to_string(value).map_err(io::Error::other)?;
        return write!(out, "---\n{text}");
    }
    let text = serde_json::to_string(value)?;
    writeln!(out, "{}", visible::json(&text))
}

/// Adds fields to an object that is printed as JSON.
pub(crate) fn extend(object: &mut Value, fields: Value) {
    if let (Value::Object(object), Value::Object(fields)) = (object, fields) {
        object.extend(fields);
    }
}

/// An output on which everything can be seen, and its colours.
#[derive(Debug)]
pub(crate) struct Out<W> {
    inner: W,
    pub(crate) palette: Palette,
}

impl<W: Write> Write for Out<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_plain = |byte: &u8| matches!(byte, b' '..=b'~' | b'\n' | b'\t');
        if bytes.iter().all(is_plain) {
            return self.inner.write(bytes);
        }
        let text = String::from_utf8_lossy(bytes);
        let mut shown = String::with_capacity(text.len() + 16);
        let mut parts = text.split(ESCAPE);
        shown += &visible::lines(parts.next().unwrap_or_default());
        for part in parts {
            let colour = part.strip_prefix('[').and_then(|it| it.split_once('m'));
            let ours = colour.filter(|(codes, _)| self.palette.on && is_ours(codes));
            shown += &match ours {
                Some((codes, rest)) => format!("{ESCAPE}[{codes}m{}", visible::lines(rest)),
                None => visible::lines(&format!("{ESCAPE}{part}")).into_owned(),
            };
        }
        self.inner.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

impl<W: Write> Out<W> {
    fn new(inner: W, palette: &OnceLock<Palette>) -> Self {
        let palette = palette.get().copied().unwrap_or(Palette { on: false });
        Self { inner, palette }
    }

    pub(crate) fn paint(&self, tone: Tone, text: &str) -> String {
        self.palette.paint(tone, text)
    }

    /// Writes a line in a tone.
    pub(crate) fn say(&mut self, tone: Tone, text: &str) -> io::Result<()> {
        let text = self.paint(tone, text);
        writeln!(self, "{text}")
    }

    pub(crate) fn into_inner(self) -> W {
        self.inner
    }
}

/// Codes with which a [palette](doorward_pages::terminal::palette) and a table paint.
fn is_ours(codes: &str) -> bool {
    let indexed = codes.strip_prefix("38;5;");
    indexed.is_some_and(|index| matches!(index, "1" | "2" | "3"))
        || matches!(codes, "0" | "1" | "2" | "22" | "31" | "32" | "33" | "39")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(is_coloured: bool, text: &str, expected: &str) {
        let mut out = buffer();
        out.palette.on = is_coloured;
        write!(out, "{text}").unwrap();
        assert_eq!(String::from_utf8(out.inner).unwrap(), expected);
    }

    #[test]
    fn everything_is_visible_and_only_our_own_colours_pass() {
        let evil = "a\u{1b}[2J\u{1b}[8mb\u{1b}]0;t\u{7}\u{202e}\r\n\tä\n";
        let shown = "a\\u{1b}[2J\\u{1b}[8mb\\u{1b}]0;t\\u{7}\\u{202e}\\u{d}\n\tä\n";
        check(false, evil, shown);
        check(true, evil, shown);
        let red = Palette { on: true }.paint(Tone::Bad, "red");
        check(true, &red, &red);
        check(false, &red, "\\u{1b}[31mred\\u{1b}[0m");
    }

    #[test]
    fn json_stays_json_and_says_the_same() {
        let mut out = buffer();
        let evil = "\u{1b}[2J\u{202e}\u{7f}\u{e0001}";
        json(&mut out, &evil).unwrap();
        let text = String::from_utf8(out.inner).unwrap();
        assert!(text.is_ascii(), "{text}");
        assert_eq!(serde_json::from_str::<String>(&text).unwrap(), evil);
    }
}
