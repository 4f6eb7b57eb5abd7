//! Remarks in a document that is edited: what is wrong, above the line it is wrong in. Pure.
//!
//! They are YAML comments, and are removed before the document goes anywhere: every line that begins like one, since an
//! editor may have changed the rest.

use std::collections::BTreeMap;

use crate::documents::counted;

/// Beginning of a remark. Operators' lines do not begin so.
const MARK: &str = "# !! ";

/// Problems that are marked at most. When these are mended, the others are shown.
const MARKS_MAX: usize = 100;

/// Returns the document with a remark above the line of each problem.
pub(crate) fn marked(text: &str, problems: &[(u64, String)]) -> String {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let mut by_line: BTreeMap<usize, Vec<&String>> = BTreeMap::new();
    for (line, problem) in problems.iter().take(MARKS_MAX) {
        let line = usize::try_from(*line).unwrap_or(usize::MAX);
        // Behind the end is at the end.
        let line = line.clamp(1, lines.len() + 1);
        by_line.entry(line).or_default().push(problem);
    }
    let (count, s) = counted(problems.len());
    let mut out = format!(
        "{MARK}invalid, {count} problem{s}; these remarks go by themselves, as does every line \
         that begins so. Save an empty file to give up\n"
    );
    let mut marks = 1;
    for number in 1..=lines.len() + 1 {
        let line = lines.get(number - 1).copied().unwrap_or_default();
        let problems = by_line.get(&number).map_or(&[][..], Vec::as_slice);
        // Where the line stands once all remarks above it do.
        let shown = number + marks + problems.len();
        let indent: String = line.chars().take_while(|c| *c == ' ').collect();
        for problem in problems {
            if !out.ends_with('\n') {
                // The last line was open: it stays so once the remark is gone.
                out.push('\n');
            }
            let problem = problem.replace(['\n', '\r'], " ");
            out += &format!("{indent}{MARK}line {shown}: {problem}\n");
            marks += 1;
        }
        out += line;
    }
    out
}

/// The document without remarks.
pub(crate) fn stripped(text: &str) -> String {
    let lines = text.split_inclusive('\n');
    lines
        .filter(|line| !line.trim_start().starts_with(MARK))
        .collect()
}

#[cfg(test)]
mod tests {
    use doorward_documents::{Kind, Located};

    use super::*;

    fn marked(text: &str) -> String {
        let error = doorward_documents::parse_yaml(text, "test").unwrap_err();
        super::marked(text, &Located::problems(&error))
    }

    #[test]
    fn every_problem_stands_above_its_line_and_says_where_that_is() {
        let text = "resources:\n- identifier_glob: db\n  capacity: -5\n  algorithm: {kind: FAIR, \
                    lease_length: 60, refresh_interval: 5}\n";
        let shown = marked(text);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), 7, "{shown}");
        assert!(lines[0].starts_with("# !! invalid, 2 problems"));
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
            "a: 1\n# mine\n#!! mine, too\n",
            "resources:\n- capacity: -1\n- capacity: -1",
            "resources: [\n",
            "a: 1\r\nb: 2\r\n",
            ": : :\n\n\n",
        ] {
            let shown = marked(text);
            assert!(shown.matches(MARK).count() > 1, "{text:?}");
            let back = stripped(&shown);
            // An editor closes the last line; so did a remark behind it.
            assert!(
                back == text || back == format!("{text}\n"),
                "{text:?} {back:?}"
            );
        }
    }

    #[test]
    fn a_remark_that_was_changed_goes_too() {
        let shown = marked("resources: 5\n");
        for edited in [
            shown.replace("# !!", "      # !!"),
            shown.replace("resources", "sources"),
            shown.replace("line 3: ", ""),
        ] {
            assert!(edited != shown, "{edited}");
            assert!(!stripped(&edited).contains('!'), "{edited}");
        }
    }
}
