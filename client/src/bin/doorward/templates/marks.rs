//! Remarks in a document that is edited: what is wrong, above the line it is wrong in. Pure.
//!
//! They are remarks of YAML, and they go again before anybody else sees the document. Only lines
//! that were put there go: an operator may write remarks that look alike.

use std::collections::BTreeMap;

use doorward_documents::{DocumentError, Problem};

/// Problems that are marked at most. When these are mended, the others are told.
const MARKS_MAX: usize = 100;

/// The document with a remark above every line something is wrong in, and these remarks.
pub(crate) fn marked(text: &str, error: &DocumentError) -> (String, Vec<String>) {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut by_line: BTreeMap<usize, Vec<&Problem>> = BTreeMap::new();
    for problem in error.problems.iter().take(MARKS_MAX) {
        let line = usize::try_from(problem.line).unwrap_or(usize::MAX);
        // Behind the end is at the end.
        let line = line.clamp(1, lines.len() + 1);
        by_line.entry(line).or_default().push(problem);
    }
    let count = error.problems.len();
    let s = if count == 1 { "" } else { "s" };
    let mut marks = vec![format!(
        "# !! not in order, {count} problem{s}; these remarks go by themselves. Save nothing at all \
         to give up"
    )];
    let mut out = format!("{}\n", marks.join(""));
    for number in 1..=lines.len() + 1 {
        let line = lines.get(number - 1).copied().unwrap_or_default();
        let problems = by_line.get(&number).map_or(&[][..], Vec::as_slice);
        // Where the line stands once all remarks above it do.
        let shown = number + marks.len() + problems.len();
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        for problem in problems {
            if !out.ends_with('\n') {
                // The last line was open: it stays so once the remark is gone.
                out.push('\n');
            }
            let problem = problem.to_string().replace(['\n', '\r'], " ");
            let mark = format!("{indent}# !! line {shown}: {problem}");
            out += &mark;
            out.push('\n');
            marks.push(mark);
        }
        out += line;
    }
    (out, marks)
}

/// The document without the remarks that were put there.
pub(crate) fn stripped(text: &str, marks: &[String]) -> String {
    let is_mark = |line: &&str| {
        let line = line.trim();
        line.starts_with("# !! ") && marks.iter().any(|mark| mark.trim() == line)
    };
    let lines = text.split_inclusive('\n');
    lines.filter(|line| !is_mark(line)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn marked(text: &str) -> (String, Vec<String>) {
        let error = doorward_documents::parse_yaml(text, "test").unwrap_err();
        super::marked(text, &error)
    }

    #[test]
    fn every_problem_stands_above_its_line_and_says_where_that_is() {
        let text = "resources:\n- identifier_glob: db\n  capacity: -5\n  algorithm: {kind: FAIR, \
                    lease_length: 60, refresh_interval: 5}\n";
        let (shown, _) = marked(text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 7, "{shown}");
        assert!(lines[0].starts_with("# !! not in order, 2 problems"));
        assert!(
            lines[3].starts_with("  # !! line 5: template 1 (\"db\"): capacity: is -5"),
            "{shown}"
        );
        assert_eq!(lines[4], "  capacity: -5");
        assert!(lines[5].starts_with("  # !! line 7: "), "{shown}");
    }

    #[test]
    fn what_was_put_there_goes_and_nothing_else() {
        for text in [
            "",
            "resources: 5",
            "a: 1\n# !! line 1: mine\n",
            "resources:\n- capacity: -1\n- capacity: -1",
            "resources: [\n",
            "a: 1\r\nb: 2\r\n",
            ": : :\n\n\n",
        ] {
            let (shown, marks) = marked(text);
            assert!(marks.len() > 1, "{text:?}");
            let back = stripped(&shown, &marks);
            // An editor closes the last line; so did a remark behind it.
            assert!(
                back == text || back == format!("{text}\n"),
                "{text:?} {back:?}"
            );
        }
    }

    #[test]
    fn a_remark_that_was_indented_anew_goes_too() {
        let (_, marks) = marked("resources: 5\n");
        let edited = format!("      {}\nresources: []\n", marks[1]);
        assert_eq!(stripped(&edited, &marks), "resources: []\n");
    }
}
