//! Templates: in the scenario itself, or in a file of their own.

use doorward_documents::tree::Value;
use doorward_documents::{parse_bytes, parse_node};
use doorward_engine::template::Templates;

use crate::scenario::read::Reader;
use crate::scenario::read::form::At;

impl Reader<'_> {
    /// `{resources: […]}`, or the name of a file in which this stands.
    pub(super) fn templates(&mut self, at: &At<'_>) -> Option<Templates> {
        match &at.node.value {
            Value::Map(_) => match parse_node(at.node) {
                Ok(templates) => Some(templates),
                Err(problems) => {
                    for mut problem in problems {
                        if problem.template.is_none() {
                            let field = problem.field.as_ref();
                            let field = field.map_or_else(String::new, |field| format!(".{field}"));
                            problem.field = Some(format!("{}{field}", at.path));
                        }
                        self.problems.0.push(problem);
                    }
                    None
                }
            },
            Value::Text(name) => match self.files.bytes(name) {
                Ok((bytes, file)) => match parse_bytes(&bytes, &file) {
                    Ok(templates) => Some(templates),
                    Err(error) => {
                        // The same file may be named more than once.
                        if !self.others.contains(&error) {
                            self.others.push(error);
                        }
                        None
                    }
                },
                Err(cause) => {
                    let message = format!("is {name:?}, which cannot be read: {cause}");
                    self.problems.wrong(at, message);
                    None
                }
            },
            _ => {
                let expected = "templates, as in {resources: […]}, or the name of a template file";
                self.problems.refuse(at, expected);
                None
            }
        }
    }
}
