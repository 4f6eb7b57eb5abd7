//! Scenario files of the simulator: refused with a problem at its place, or written again unchanged.

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
    let scenario = match Scenario::parse(&text, "fuzz.yaml", folder) {
        Ok(scenario) => scenario,
        Err(error) => {
            assert!(!error.to_string().is_empty());
            return;
        }
    };
    if let Ok(written) = scenario.to_yaml() {
        let again = Scenario::parse(&written, "fuzz.yaml", folder).expect("it was written by us");
        assert_eq!(format!("{again:?}"), format!("{scenario:?}"), "{written}");
    }
}
