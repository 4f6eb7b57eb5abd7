//! Durations, as people write them in documents and flags.

use std::time::Duration;

use doorward_session::time::tolerance::Tolerance;
use doorward_yaml::{Format as Yaml, PlacedValue, Position, Value};

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn spans() {
    fuzz!("spans", Format::Word, share: 4, read);
}

fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    if let Ok(tolerance) = text.parse::<Tolerance>() {
        assert!(tolerance >= Tolerance::LEAST && tolerance <= Tolerance::MOST);
    }
    let written = PlacedValue {
        place: Position::START,
        source: 0..0,
        value: Value::Text(text.to_string()),
    };
    let same = |node: &PlacedValue| (node.value.as_text(), node.value.as_duration());
    if let Some(span) = written.value.as_duration() {
        // The printed form parses to the same duration.
        let shown = humantime(span);
        assert_eq!(shown.value.as_duration(), Some(span), "{shown:?}");
    }
    let format = Yaml {
        bytes_max: 1 << 20,
        if_larger: "",
        if_several: "",
    };
    if let Ok(Some(node)) = format.read(bytes) {
        let _ = (node.value.described(), node.value.as_number(), same(&node));
    }
}

fn humantime(span: Duration) -> PlacedValue {
    let value = format!("{}s {}ns", span.as_secs(), span.subsec_nanos());
    PlacedValue {
        place: Position::START,
        source: 0..0,
        value: Value::Text(value),
    }
}
