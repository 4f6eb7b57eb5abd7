//! The demonstration: it runs by itself, and its figures are those that the docs promise.

use doorward_tests::processes::{doorward, doorward_server, stderr, stdout};

/// Returns the first number in the summary's line with that beginning, apart from branches of the tree.
#[track_caller]
fn figure(summary: &str, name: &str) -> f64 {
    let line = summary.lines().find(|line| {
        line.trim_start_matches([' ', '│', '├', '└'])
            .starts_with(name)
    });
    let line = line.unwrap_or_else(|| panic!("no {name} in:\n{summary}"));
    line.split_whitespace()
        .find_map(|word| word.parse().ok())
        .unwrap()
}

#[test]
fn real_demand_shares_a_capacity_through_a_tree_and_never_exceeds_it() {
    let output = doorward(&["demo", "--for", "15s", "--capacity", "50", "--plain"]);
    assert!(output.status.success(), "{}", stderr(&output));
    // There is no error between the servers, neither at work nor when they stop.
    assert_eq!(stderr(&output), "");
    let text = stdout(&output);
    assert!(text.contains("10 clients at 4 leaves share 50"), "{text}");
    assert_eq!(text.matches("  http://127.0.0.1:").count(), 7, "{text}");
    let seconds = text.lines().filter(|line| line.contains(" s  wanted"));
    assert!(seconds.count() >= 5, "{text}");
    assert!(figure(&text, "most granted") <= 50.0, "{text}");
    // A step or two of each client may fall on either side of a second's edge.
    assert!(figure(&text, "most used") <= 50.0 * 1.02, "{text}");
    // The clients of the demonstration share this machine with all other tests, so they use some of their capacity.
    assert!(figure(&text, "utilisation") > 0.0, "{text}");
    // Demand reached the root, and capacity every leaf. The text below the table explains why the root has more.
    let (table, _) = text.rsplit_once("  The root owns the whole").unwrap();
    for part in [
        "root", "eu ", "us ", "eu-1", "eu-2", "us-1", "us-2", "ml-142",
    ] {
        let mut lines = table.lines().rev();
        let line = lines.find(|line| line.contains(part)).unwrap();
        let leased: f64 = line
            .split_whitespace()
            .rev()
            .nth(1)
            .unwrap()
            .parse()
            .unwrap();
        assert!(leased > 0.0, "{part} in {text}");
    }
}

#[test]
fn the_server_says_where_its_demonstration_went() {
    let output = doorward_server(&["demo", "--for", "20s", "--plain"]);
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(
        stderr(&output),
        "error: the demonstration moved: doorward demo\n"
    );
}
