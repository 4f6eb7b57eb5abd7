//! HTTP/2 frames, header blocks and gRPC messages, as bytes. No check is made, because an attacker may want errors.

use prost::Message;

/// First bytes of a client.
pub const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Kind of a frame. HTTP/2 does not know numbers above 9.
pub type Kind = u8;
/// The body of a message.
pub const DATA: Kind = 0;
/// Begins a stream, or ends it with trailers.
pub const HEADERS: Kind = 1;
/// A frame without a meaning.
pub const PRIORITY: Kind = 2;
/// Ends a stream at once.
pub const RST_STREAM: Kind = 3;
/// Settings for the peer.
pub const SETTINGS: Kind = 4;
/// A frame that needs an answer.
pub const PING: Kind = 6;
/// End of new streams.
pub const GOAWAY: Kind = 7;
/// Additional amount that may be sent.
pub const WINDOW_UPDATE: Kind = 8;
/// Continuation of a header block.
pub const CONTINUATION: Kind = 9;
/// A kind that HTTP/2 does not know, and ignores.
pub const UNKNOWN: Kind = 0xbb;

/// Flag: the sender ends the stream; in SETTINGS and PING: the frame is an answer.
pub const END_STREAM: u8 = 1;
/// Flag: the header block ends here.
pub const END_HEADERS: u8 = 4;

/// Setting of the window of every stream.
pub const INITIAL_WINDOW_SIZE: u16 = 4;

/// Largest frame that every peer must accept.
pub const FRAME_BYTES_MAX: usize = 16_384;

/// Appends a frame.
pub fn frame(out: &mut Vec<u8>, kind: Kind, flags: u8, stream: u32, payload: &[u8]) {
    let length = u32::try_from(payload.len()).unwrap_or(u32::MAX);
    out.extend(length.to_be_bytes().iter().skip(1));
    out.extend([kind, flags]);
    out.extend(stream.to_be_bytes());
    out.extend(payload);
}

/// Appends SETTINGS.
pub fn settings(out: &mut Vec<u8>, settings: &[(u16, u32)]) {
    let mut payload = Vec::with_capacity(settings.len() * 6);
    for (name, value) in settings {
        payload.extend(name.to_be_bytes());
        payload.extend(value.to_be_bytes());
    }
    frame(out, SETTINGS, 0, 0, &payload);
}

/// Appends WINDOW_UPDATE.
pub fn window_update(out: &mut Vec<u8>, stream: u32, by: u32) {
    frame(out, WINDOW_UPDATE, 0, stream, &by.to_be_bytes());
}

/// Appends RST_STREAM: the caller cancels.
pub fn reset(out: &mut Vec<u8>, stream: u32) {
    const CANCEL: u32 = 8;
    frame(out, RST_STREAM, 0, stream, &CANCEL.to_be_bytes());
}

/// Appends a header as a literal that is never indexed, the simplest form of HPACK.
pub fn header(out: &mut Vec<u8>, name: &str, value: &str) {
    out.push(0);
    text(out, name.as_bytes());
    text(out, value.as_bytes());
}

/// Appends a header as a literal that the server must store, under the next number.
pub fn remembered_header(out: &mut Vec<u8>, name: &str, value: &[u8]) {
    out.push(0x40);
    text(out, name.as_bytes());
    text(out, value);
}

/// The byte of the header that was stored last.
pub const NEWEST_REMEMBERED: u8 = 0x80 | 62;

/// Appends a text: its length in seven bits and further bytes, then its bytes unchanged.
fn text(out: &mut Vec<u8>, text: &[u8]) {
    const SEVEN_BITS: usize = 127;
    if let Ok(length @ 0..=126) = u8::try_from(text.len()) {
        out.push(length);
    } else {
        out.push(127);
        let mut rest = text.len() - SEVEN_BITS;
        while rest >= 128 {
            out.push((rest % 128) as u8 | 128);
            rest /= 128;
        }
        out.push(rest as u8);
    }
    out.extend(text);
}

/// Returns the headers of a gRPC call.
pub fn call_headers(path: &str) -> Vec<u8> {
    let mut block = Vec::new();
    header(&mut block, ":method", "POST");
    header(&mut block, ":scheme", "http");
    header(&mut block, ":path", path);
    header(&mut block, ":authority", "attacked");
    header(&mut block, "content-type", "application/grpc");
    header(&mut block, "te", "trailers");
    block
}

/// Appends HEADERS that begin a gRPC call. Its message must follow.
pub fn begin_call(out: &mut Vec<u8>, stream: u32, path: &str) {
    frame(out, HEADERS, END_HEADERS, stream, &call_headers(path));
}

/// Returns the head of a gRPC message: not compressed, and its length.
pub fn announcement(bytes: u32) -> [u8; 5] {
    let [a, b, c, d] = bytes.to_be_bytes();
    [0, a, b, c, d]
}

/// Returns a gRPC message.
pub fn message(message: &impl Message) -> Vec<u8> {
    let body = message.encode_to_vec();
    let mut out = announcement(u32::try_from(body.len()).unwrap_or(u32::MAX)).to_vec();
    out.extend(body);
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_long_text_has_its_length_in_several_bytes() {
        let mut out = Vec::new();
        text(&mut out, &[b'x'; 1337 + 127]);
        // As in RFC 7541, C.1.2, with seven bits instead of five: 1337 is 0b1010_0111001.
        assert_eq!(&out[..3], [127, 0b1011_1001, 0b0000_1010]);
        assert_eq!(out.len(), 3 + 1337 + 127);
    }
}
