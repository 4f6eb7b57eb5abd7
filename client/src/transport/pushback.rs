//! An overloaded server's time to come back, by gRPC's own convention (gRFC A6).

use std::time::Duration;

use doorward_session::backoff;
use tonic::{Code, Status};

/// Trailer with a number of milliseconds.
const KEY: &str = "grpc-retry-pushback-ms";

/// Returns the time to come back, if the server is overloaded and sends one.
pub(crate) fn pushback(status: &Status) -> Option<Duration> {
    if !matches!(status.code(), Code::ResourceExhausted | Code::Unavailable) {
        return None;
    }
    backoff::pushback(status.metadata().get(KEY)?.to_str().ok()?)
}

#[cfg(test)]
mod tests {
    use tonic::metadata::MetadataMap;

    use super::*;

    #[track_caller]
    fn check(code: Code, value: Option<&str>, expected: Option<u64>) {
        let mut metadata = MetadataMap::new();
        if let Some(value) = value {
            metadata.insert(KEY, value.parse().unwrap());
        }
        let status = Status::with_metadata(code, "busy", metadata);
        let expected = expected.map(Duration::from_millis);
        assert_eq!(pushback(&status), expected, "{code:?} {value:?}");
    }

    #[test]
    fn a_number_of_milliseconds_counts_and_all_else_does_not() {
        for code in [Code::ResourceExhausted, Code::Unavailable] {
            check(code, Some("1500"), Some(1500));
            check(code, Some("0"), Some(0));
            check(code, Some("99999999999999999999999"), Some(u64::MAX));
            for garbage in ["-1", "+1", "", "1.5", "soon", "1 s", "0x10"] {
                check(code, Some(garbage), None);
            }
            check(code, None, None);
        }
        check(Code::Internal, Some("1500"), None);
        check(Code::InvalidArgument, Some("1500"), None);
    }
}
