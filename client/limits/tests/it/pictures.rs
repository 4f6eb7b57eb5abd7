//! The guide's pictures equal the example's output.

#[path = "../../examples/side_by_side.rs"]
#[allow(dead_code, reason = "an example's main")]
mod side_by_side;

/// Compares the output of `cargo run -p doorward-limits --example side_by_side` with
/// `client/limits/src/side_by_side.txt`, and with `-- --svg` with `docs/limits.svg`.
#[test]
fn the_pictures_equal_the_examples_output() {
    let text = include_str!("../../src/side_by_side.txt");
    assert_eq!(side_by_side::text().unwrap(), text);
    let svg = include_str!("../../../../docs/limits.svg");
    assert!(
        side_by_side::svg().unwrap() == svg,
        "draw docs/limits.svg again"
    );
}
