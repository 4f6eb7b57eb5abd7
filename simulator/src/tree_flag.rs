//! Value of `--tree`: a shape such as `3x3`, or a scenario file.
//!
//! A shape has one number for each level below the root: the children of each node above it. `3x3` is a root with three
//! regions of three leaves each, as a scenario file would name them. Levels between regions and leaves are called
//! `site`.

use std::fs;
use std::sync::Arc;

use doorward_simulator::scenario::{Node, Scenario};
use serde_json::{Value, json};

/// Reads the nodes of a tree, the root first.
pub(crate) fn tree(text: &str) -> Result<Arc<[Node]>, String> {
    let is_shape = text.chars().all(|c| c.is_ascii_digit() || c == 'x');
    let file = match is_shape {
        true => shaped(text)?,
        false => fs::read_to_string(text).map_err(|cause| {
            format!("is neither a shape such as 3x3 nor a readable file: {cause}")
        })?,
    };
    let nodes = Scenario::parse_tree(&file, text);
    nodes.map(Arc::from).map_err(|error| error.to_string())
}

/// Returns the scenario file of a shape.
fn shaped(text: &str) -> Result<String, String> {
    let counts = text.split('x').map(str::parse);
    let counts: Result<Vec<u32>, _> = counts.collect();
    let counts = counts.map_err(|_| "give a number for each level, as in 3x3".to_owned())?;
    let mut children = Value::Null;
    for (level, count) in counts.iter().enumerate().rev() {
        let key = match level {
            level if level + 1 == counts.len() => "leaf",
            0 => "region",
            _ => "site",
        };
        children = json!({key: {"count": count, "children": children}});
    }
    Ok(json!({"tree": {"root": {"children": children}}}).to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shape_has_a_number_for_each_level() {
        let nodes = tree("2x2").unwrap();
        let names: Vec<&str> = nodes.iter().map(|node| node.name.as_str()).collect();
        let expected = [
            "root",
            "region-1",
            "region-1.leaf-1",
            "region-1.leaf-2",
            "region-2",
            "region-2.leaf-1",
            "region-2.leaf-2",
        ];
        assert_eq!(names, expected);
        assert_eq!(nodes[6].parent, Some(4));
    }

    #[test]
    fn too_large_a_shape_and_a_missing_file_are_refused() {
        for wrong in [
            "",
            "0",
            "3x",
            "x",
            "3x0",
            "101x100",
            "99999999999999999999",
            "tree.yaml",
        ] {
            assert!(tree(wrong).is_err(), "{wrong}");
        }
    }
}
