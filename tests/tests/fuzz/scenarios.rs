//! Scenario files of the simulator: refused with a problem at its place, or read; the same text is read as the same.

use std::path::Path;

use doorward_simulator::scenario::Scenario;

use crate::mutate::Format;
use crate::runner::fuzz;

#[test]
fn scenarios() {
    fuzz!("scenarios", Format::Lines, share: 4, read);
}

fn read(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    let folder = Path::new("/nowhere");
    match Scenario::parse(&text, "fuzz.yaml", folder) {
        Err(error) => assert!(!error.to_string().is_empty()),
        Ok(scenario) => {
            let again = Scenario::parse(&text, "fuzz.yaml", folder).expect("it was read before");
            assert_eq!(format!("{again:?}"), format!("{scenario:?}"), "{text}");
        }
    }
}
