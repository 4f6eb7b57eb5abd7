//! The rules of a server: a line for each document, and the reason of each that is refused.

use std::io::{self, Write};

use doorward_pages::terminal::Tone;
use doorward_proto::admin::v1::GetStatusResponse as Status;
use doorward_session::visible::line;

use crate::granted::span;
use crate::output::Out;

/// Documents that are listed although nothing is wrong with them.
const LISTED: usize = 20;

pub(super) fn write_lines(out: &mut Out<impl Write>, status: &Status) -> io::Result<()> {
    let refused = out.paint(Tone::Bad, "newer rules were REFUSED");
    let listed = status.rules.iter().enumerate();
    for (_, it) in listed.filter(|(place, it)| *place < LISTED || it.problem.is_some()) {
        let (rules, age) = (it.rules_count, span(it.age_ms));
        let in_force = match &it.version {
            Some(version) => format!("{rules} of version {}, for {age}", line(version)),
            None => out.paint(Tone::Bad, "NONE in force"),
        };
        writeln!(out, "rules of {}: {in_force}", line(&it.domain))?;
        for problem in it.problem.iter().flat_map(|it| it.lines()) {
            writeln!(out, "  {refused}: {}", line(problem))?;
        }
    }
    for problem in status.rules_problem.iter().flat_map(|it| it.lines()) {
        writeln!(out, "{refused}: {}", line(problem))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use doorward_proto::admin::v1::RulesStatus;

    use super::*;
    use crate::output;

    #[test]
    fn each_document_has_a_line_and_a_refused_one_its_reason() {
        let document = |domain: &str, version: Option<&str>, problem: Option<&str>| RulesStatus {
            domain: domain.to_owned(),
            version: version.map(str::to_owned),
            rules_count: version.map_or(0, |_| 2),
            age_ms: 65_000,
            problem: problem.map(str::to_owned),
            ..RulesStatus::default()
        };
        let status = Status {
            rules: vec![
                document("api", Some("v1"), None),
                document(
                    "login",
                    Some("v2"),
                    Some("login.yaml:1: one\nlogin.yaml:2: two"),
                ),
                document("web", None, Some("web.yaml:1: bad\u{1b}")),
            ],
            rules_problem: Some("the directory is gone".to_owned()),
            ..Status::default()
        };
        let mut out = output::buffer();
        write_lines(&mut out, &status).unwrap();
        assert_eq!(
            String::from_utf8(out.into_inner()).unwrap(),
            "rules of api: 2 of version v1, for 1m 5s\n\
             rules of login: 2 of version v2, for 1m 5s\n  newer rules were REFUSED: login.yaml:1: one\n  \
             newer rules were REFUSED: login.yaml:2: two\n\
             rules of web: NONE in force\n  newer rules were REFUSED: web.yaml:1: bad\\u{1b}\n\
             newer rules were REFUSED: the directory is gone\n"
        );
    }
}
