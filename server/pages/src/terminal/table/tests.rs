//! Columns, with colour and without.

use super::*;

fn written(table: Table) -> String {
    let mut out = Vec::new();
    table.write(&mut out).unwrap();
    String::from_utf8(out).unwrap()
}

#[test]
fn numbers_stand_to_the_right_and_lines_end_with_text() {
    let mut table = Table::new(["name", "wants", "why"], 1..2, Palette { on: false });
    table.add(["a", "5", "enough"]);
    table.add(["longer", "1000", ""]);
    assert_eq!(
        written(table),
        "name    wants  why\na           5  enough\nlonger   1000\n"
    );
}

#[test]
fn a_table_without_a_header_has_only_rows() {
    let mut table = Table::headless(1..2, Palette { on: false });
    table.add(["a", "5"]);
    table.add(["longer", "1000"]);
    let rows = "  a          5\n  longer  1000\n";
    assert_eq!(written(table.in_lines(2)), rows);
}

#[test]
fn colour_does_not_move_columns() {
    let palette = Palette { on: true };
    let mut table = Table::headless(1..2, palette);
    table.add([Cell::new("a"), palette.cell(Tone::Bad, "5")]);
    table.add([Cell::new("b"), Cell::new("10")]);
    let plain: String = written(table)
        .split('\u{1b}')
        .map(|part| match part.split_once('m') {
            Some((code, text)) if code.starts_with('[') => text,
            _ => part,
        })
        .collect();
    assert_eq!(plain, "a   5\nb  10\n");
}
