//! The scenarios that come with the program: there wherever it runs.
//!
//! They are the files in `simulator/scenarios`, read as any other. They name no files but traces of the library.

use std::path::Path;

use crate::scenario::{Scenario, read::ScenarioError};

/// A scenario of the library, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LibraryEntry {
    /// Name, and that of its file without the ending.
    pub name: &'static str,
    /// Its file.
    pub text: &'static str,
}

macro_rules! entries {
    ($($name:literal)*) => {
        &[$(LibraryEntry {
            name: $name,
            text: include_str!(concat!("../scenarios/", $name, ".yaml")),
        }),*]
    };
}

/// All of them: the simplest first, Doorman's in its order.
pub const LIBRARY: &[LibraryEntry] = entries! {
    "minimal" "lease-length" "capacity-halved" "flash-crowd" "bad-network" "clocks" "llm-day"
    "fast-demand" "budget" "step" "comeback" "hour" "million"
    "doorman-1" "doorman-2" "doorman-3" "doorman-4" "doorman-5" "doorman-6" "doorman-7"
};

impl LibraryEntry {
    /// The scenario of that name.
    pub fn find(name: &str) -> Option<&'static Self> {
        LIBRARY.iter().find(|entry| entry.name == name)
    }

    /// Returns the name that an unknown one probably means, as the end of a message.
    pub fn hint(name: &str) -> String {
        let like = LIBRARY.iter().find(|entry| {
            name.len() > 2 && (entry.name.contains(name) || name.contains(entry.name))
        });
        let hint = like.map(|entry| format!("; did you mean {}?", entry.name));
        hint.unwrap_or_default()
    }

    /// Reads it.
    ///
    /// # Errors
    ///
    /// None: a test reads them all.
    pub fn read(&self) -> Result<Scenario, ScenarioError> {
        let file = format!("{}.yaml", self.name);
        Scenario::parse(self.text, &file, Path::new(""))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;
    use crate::scenario::demand::Demand;
    use doorward_trace::Trace;

    fn files(folder: &str, ending: &str) -> Vec<PathBuf> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join(folder);
        let entries = fs::read_dir(folder).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        paths
            .filter(|path| path.extension().is_some_and(|found| found == ending))
            .collect()
    }

    #[test]
    fn every_scenario_reads_and_says_what_it_is_for() {
        for entry in LIBRARY {
            let scenario = entry.read().unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(scenario.name, entry.name);
            assert!(scenario.description.len() > 30, "{}", entry.name);
        }
    }

    #[test]
    fn what_is_in_the_folder_is_in_the_program_and_reads_there_too() {
        let files = files("scenarios", "yaml");
        assert_eq!(files.len(), LIBRARY.len());
        for path in files {
            let name = path.file_stem().unwrap().to_str().unwrap();
            let entry = LibraryEntry::find(name).unwrap_or_else(|| panic!("{name} is not in it"));
            let from_disk = Scenario::read(&path).unwrap_or_else(|error| panic!("{error}"));
            let built_in = entry.read().unwrap();
            assert_eq!(from_disk.name, built_in.name);
            assert_eq!(from_disk.nodes, built_in.nodes);
            for (a, b) in from_disk.clients.iter().zip(&built_in.clients) {
                assert_eq!((&a.name, a.count, &a.at), (&b.name, b.count, &b.at));
                if let (Demand::Trace(a), Demand::Trace(b)) = (&a.first.demand, &b.first.demand) {
                    assert_eq!((&a.clients, &a.rows), (&b.clients, &b.rows));
                }
            }
        }
    }

    #[test]
    fn what_is_shown_reads_in_any_folder() {
        let nowhere = Path::new("/nowhere");
        for entry in LIBRARY {
            let file = format!("{}.yaml", entry.name);
            let read = Scenario::parse(entry.text, &file, nowhere);
            let read = read.unwrap_or_else(|error| panic!("{error}"));
            let here = entry.read().unwrap();
            assert!(format!("{read:?}") == format!("{here:?}"), "{file}");
        }
    }

    #[test]
    fn every_trace_reads() {
        let clients = |name: &str| match name {
            "taxi" => 1,
            "llm-services" => 2,
            "bandwidth" => 5,
            "mentions" | "bursts" => 10,
            "fast-demand" => 20,
            "llm-requests" => 41,
            "llm-tokens" => 73,
            other => panic!("{other} has no row here"),
        };
        for path in files("traces", "csv") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let trace = Trace::read(&name, fs::File::open(path), 100, 100_000)
                .unwrap_or_else(|error| panic!("{error}"));
            assert_eq!(trace.clients.len(), clients(&name), "{name}");
        }
    }
}
