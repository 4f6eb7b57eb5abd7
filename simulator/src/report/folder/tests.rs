//! Folders of reports: written, replaced, left alone.

use super::*;
use crate::report::plausible;

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn a_report_is_a_folder_of_files() {
    let folder = tempfile::tempdir().unwrap();
    let written = write_all(&plausible::small(), &folder.path().join("a/b")).unwrap();
    assert!(written.page.exists());
    let expected = [
        ".doorward-report",
        "happened.csv",
        "index.html",
        "recording.json",
        "requests.clients.csv",
        "requests.csv",
        "requests.nodes.csv",
        "requests.shortages.csv",
        "requests.waits.csv",
        "summary.txt",
    ];
    assert_eq!(names(&folder.path().join("a/b")), expected);
    assert_eq!(written.files.len(), expected.len() - 1);
}

#[test]
fn a_former_report_is_replaced_and_nothing_else() {
    let folder = tempfile::tempdir().unwrap();
    write_all(&plausible::small(), folder.path()).unwrap();
    fs::write(folder.path().join("notes.txt"), "mine").unwrap();
    write_all(&Recording::default(), folder.path()).unwrap();
    let left = names(folder.path());
    assert!(left.contains(&"notes.txt".to_owned()), "{left:?}");
    assert!(!left.contains(&"requests.csv".to_owned()), "{left:?}");
    fs::write(folder.path().join("requests.csv"), "mine").unwrap();
    let error = write_all(&plausible::small(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("requests.csv"), "{error}");
}

#[test]
fn a_folder_that_holds_something_else_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("thesis.tex"), "mine").unwrap();
    let error = write_all(&plausible::small(), folder.path()).unwrap_err();
    assert!(error.to_string().contains("there is thesis.tex"), "{error}");
    assert_eq!(names(folder.path()), ["thesis.tex"]);
}

#[test]
fn a_folder_is_claimed_before_anything_is_written_and_a_former_report_stays() {
    let folder = tempfile::tempdir().unwrap();
    let report = folder.path().join("new");
    claim(&report).unwrap();
    claim(&report).unwrap();
    assert_eq!(names(&report), [LIST]);
    let before = write_all(&plausible::small(), &report).unwrap();
    claim(&report).unwrap();
    assert!(before.files.iter().all(|file| file.exists()));
    let file = before.files.first().unwrap();
    let error = claim(file).unwrap_err().to_string();
    assert!(error.contains("is a file"), "{error}");
}

#[test]
fn a_list_cannot_remove_what_is_elsewhere() {
    let outer = tempfile::tempdir().unwrap();
    let folder = outer.path().join("report");
    fs::create_dir(&folder).unwrap();
    fs::write(outer.path().join("mine"), "").unwrap();
    fs::write(folder.join(LIST), "../mine\n").unwrap();
    write_all(&Recording::default(), &folder).unwrap();
    assert!(outer.path().join("mine").exists());
}

#[test]
fn names_of_files_are_safe_and_different() {
    let mut recording = Recording::default();
    for id in ["../etc/<passwd>", "A", "a", "a-nodes", "", "happened", "é"] {
        recording
            .resources
            .push(crate::recording::ResourceRecording {
                resource: id.to_owned(),
                ..Default::default()
            });
    }
    assert_eq!(
        slugs(&recording),
        [
            "etc--passwd",
            "a",
            "a-2",
            "a-nodes",
            "resource",
            "resource-2",
            "resource-3"
        ]
    );
}
