//! Remarks on valid documents.

use doorward_engine::templates::Field;

use crate::locate_bytes;

#[test]
fn a_remark_on_a_valid_document_has_its_place() {
    let text = "
resources:
- {identifier_glob: a, capacity: 1, algorithm: {kind: STATIC, lease_length: 60, refresh_interval: 5}}
- identifier_glob: db/*
  capacity: 100
  algorithm: {kind: FAIR_SHARE, lease_length: 1m,
    refresh_interval: 5}
";
    let located = locate_bytes(text.as_bytes(), "t.yaml").unwrap();
    for (field, line, column) in [
        (Field::Capacity, 5, 13),
        (Field::RefreshInterval, 7, 23),
        // Absent: where the algorithm stands.
        (Field::LearningModeDuration, 6, 14),
        // Absent: where the template stands.
        (Field::SafeCapacity, 4, 3),
    ] {
        let remark = located.remark(1, field, "is odd");
        assert_eq!((remark.line, remark.column), (line, column), "{field}");
        let said = format!("template 2 (\"db/*\"): {field}: is odd");
        assert_eq!(remark.to_string(), said);
    }
    let remark = located.remark_on_all("are odd");
    assert_eq!(remark.to_string(), "resources: are odd");
    assert_eq!(remark.line, 3);
}
