//! Limit on the length of a line: a file without line ends, such as `/dev/zero`, gives an error
//! instead of filling the memory.

use std::io::{self, Read};

/// Longest line in bytes, far more than a time, a name and an amount.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Reader that fails at a line that is too long.
pub(super) struct LineBound<R> {
    inner: R,
    /// Bytes since the last line end.
    line: usize,
}

impl<R> LineBound<R> {
    pub(super) const fn new(inner: R) -> Self {
        Self { inner, line: 0 }
    }
}

impl<R: Read> Read for LineBound<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(buffer)?;
        let read = buffer.get(..count).unwrap_or_default();
        for part in read.split_inclusive(|byte| *byte == b'\n') {
            self.line += part.len();
            if self.line > LINE_BYTES_MAX {
                let problem = format!("a line has more than {LINE_BYTES_MAX} bytes");
                return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
            }
            if part.ends_with(b"\n") {
                self.line = 0;
            }
        }
        Ok(count)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_however_many_and_one_that_does_not_end_is_not() {
        let many = "0,client,1\n".repeat(100_000);
        let mut text = String::new();
        LineBound::new(many.as_bytes())
            .read_to_string(&mut text)
            .unwrap();
        assert_eq!(text, many);
        let error = io::copy(&mut LineBound::new(io::repeat(b'0')), &mut io::sink()).unwrap_err();
        assert_eq!(error.to_string(), "a line has more than 65536 bytes");
    }
}
