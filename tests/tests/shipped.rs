//! Programs that ship have no bug that can be switched on.

use doorward_tests::processes::program;

/// What a program says that is built with the feature `planted` of a crate: `doorward_session::session_bugs::MARK` and
/// `doorward_engine::planted::MARK`, in two parts, so that they stand in no other program.
const MARKS: [[&str; 2]; 2] = [
    ["doorward-session was built with", " the feature planted"],
    ["doorward-engine was built with", " the feature planted"],
];

#[test]
fn no_program_that_ships_is_built_with_planted_bugs() {
    let marks = MARKS.map(|mark| mark.concat());
    let server = program("doorward-server");
    // Where the whole workspace is tested, it is there, too.
    let simulator = server.with_file_name(format!("doorward-sim{}", std::env::consts::EXE_SUFFIX));
    let simulator = simulator.exists().then_some(simulator);
    for program in [server, program("doorward")].into_iter().chain(simulator) {
        let bytes = std::fs::read(&program).unwrap();
        for mark in &marks {
            let mut windows = bytes.windows(mark.len());
            let is_marked = windows.any(|window| window == mark.as_bytes());
            assert!(!is_marked, "{}: {mark}", program.display());
        }
    }
}
