//! The pictures of the guide are what the example draws.

#[path = "../../examples/side_by_side.rs"]
#[allow(dead_code, reason = "an example's main")]
mod side_by_side;

/// `cargo run -p doorward-limits --example side_by_side > client/limits/src/side_by_side.txt`, and with `-- --svg` to
/// `docs/limits.svg`.
#[test]
fn the_pictures_are_what_the_example_draws() {
    let text = include_str!("../../src/side_by_side.txt");
    assert_eq!(side_by_side::text().unwrap(), text);
    let svg = include_str!("../../../../docs/limits.svg");
    assert!(
        side_by_side::svg().unwrap() == svg,
        "draw docs/limits.svg again"
    );
}
