//! Templates: in the scenario itself as template files have them, or in a file of their own.

use doorward_documents::form::At;
use doorward_documents::placed_value::Value;
use doorward_documents::{parse_bytes, parse_node};
use doorward_engine::template::{Algorithm, SafeCapacity, Shrink, Template, Templates};

use crate::scenario::Scenario;
use crate::scenario::declared::Written;
use crate::scenario::read::Reader;
use crate::scenario::shape::Shape;
use crate::scenario::write::CannotWrite;
use crate::scenario::yaml::Yaml;

/// `{resources: […]}`, or the name of a file in which this stands.
pub(super) fn templates() -> Shape<Templates> {
    Shape::new(
        "`{resources: […]}`, as in a template file, or the name of one",
        read,
    )
}

/// Those with which a scenario begins.
pub(super) fn templates_at_first() -> Shape<Templates> {
    Shape::new(templates().is, |at, r| {
        let templates = read(at, r);
        r.templates.clone_from(&templates);
        templates
    })
}

fn read(at: &At<'_>, r: &mut Reader<'_>) -> Option<Templates> {
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
                    r.problems.0.push(problem);
                }
                None
            }
        },
        Value::Text(name) => match r.files.bytes(name) {
            Ok((bytes, file)) => match parse_bytes(&bytes, &file) {
                Ok(templates) => Some(templates),
                Err(error) => {
                    // The same file may be named more than once.
                    if !r.others.contains(&error) {
                        r.others.push(error);
                    }
                    None
                }
            },
            Err(cause) => {
                let message = format!("is {name:?}, which cannot be read: {cause}");
                r.problems.wrong(at, message);
                None
            }
        },
        _ => {
            let expected = "templates, as in {resources: […]}, or the name of a template file";
            r.problems.refuse(at, expected);
            None
        }
    }
}

impl Written for Templates {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        let mut out = Yaml::map();
        let each = self.iter().map(|template| one(template));
        out.put("resources", Yaml::List(each.collect()));
        Ok(out)
    }
}

fn one(template: &Template) -> Yaml {
    let mut out = Yaml::map();
    out.put("identifier_glob", Yaml::text(&template.identifier_glob));
    out.put("capacity", Yaml::plain(template.capacity.get()));
    match template.safe_capacity {
        Some(SafeCapacity::Unlimited) => out.put("safe_capacity", Yaml::plain(-1)),
        Some(SafeCapacity::Limited(amount)) => {
            out.put("safe_capacity", Yaml::plain(amount.get()));
        }
        None => {}
    }
    if let Some(most) = template.holder_bounds.wants_max {
        out.put("wants_max", Yaml::plain(most.get()));
    }
    if let Some(most) = template.holder_bounds.subclients_max {
        out.put("subclients_max", Yaml::plain(most.get()));
    }
    if !template.description.is_empty() {
        out.put("description", Yaml::text(&template.description));
    }
    out.put("algorithm", algorithm(&template.algorithm));
    out
}

fn algorithm(algorithm: &Algorithm) -> Yaml {
    let mut out = Yaml::map();
    out.put("kind", Yaml::plain(algorithm.kind.as_str()));
    out.put("lease_length", Yaml::duration(algorithm.lease_length));
    out.put(
        "refresh_interval",
        Yaml::duration(algorithm.refresh_interval),
    );
    if algorithm.learning_mode_duration != algorithm.lease_length {
        let learning = Yaml::duration(algorithm.learning_mode_duration);
        out.put("learning_mode_duration", learning);
    }
    let mut parameters = Vec::new();
    let mut parameter = |name: String, value: String| {
        let mut one = Yaml::map();
        one.put("name", Yaml::plain(name));
        one.put("value", Yaml::plain(format!("\"{value}\"")));
        parameters.push(one);
    };
    if algorithm.decay_factor != Algorithm::default().decay_factor {
        parameter(
            "decay_factor".to_owned(),
            algorithm.decay_factor.to_string(),
        );
    }
    if algorithm.shrink == Shrink::Immediate {
        parameter("shrink".to_owned(), "immediate".to_owned());
    }
    for (priority, share) in &algorithm.min_shares {
        parameter(format!("min_share.{priority}"), share.to_string());
    }
    if !parameters.is_empty() {
        out.put("parameters", Yaml::List(parameters));
    }
    out
}
