//! Makes template specs of a document, and finds every problem on the way.
//!
//! A value that cannot be read is a problem, and counts as absent after that. So one reading finds all problems. A key
//! without a value counts as absent, too.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorward_engine::templates::{AlgorithmKind, Field, TemplateSpec, Templates};
use doorward_yaml::{PlacedValue, Position, Value, shortened};

use crate::near;
use crate::places::{Located, TemplatePlaces};
use crate::problem::Problem;

pub(crate) const TEMPLATE_KEYS: [&str; 8] = [
    "identifier_glob",
    "capacity",
    "safe_capacity",
    "wants_max",
    "subclients_max",
    "share_floor",
    "description",
    "algorithm",
];
pub(crate) const ALGORITHM_KEYS: [&str; 5] = [
    "kind",
    "lease_length",
    "refresh_interval",
    "learning_mode_duration",
    "parameters",
];

/// Doorman's numbers of the kinds, and ours.
pub(crate) const KIND_NUMBERS: [(i64, AlgorithmKind); 6] = [
    (0, AlgorithmKind::NoAlgorithm),
    (1, AlgorithmKind::Static),
    (2, AlgorithmKind::ProportionalShare),
    (3, AlgorithmKind::FairShare),
    (101, AlgorithmKind::PriorityBands),
    (102, AlgorithmKind::Budget),
];

/// Path of a template's algorithm.
const ALGORITHM: &str = "algorithm";

/// Path of an algorithm's parameters.
const PARAMETERS: &str = "algorithm.parameters";

/// A map, and the keys on the way to it from its template.
#[derive(Clone, Copy)]
struct Map<'a> {
    path: &'static str,
    node: &'a PlacedValue,
}

impl Map<'_> {
    fn path_of(&self, key: &str) -> String {
        match self.path {
            "" => key.to_owned(),
            path => format!("{path}.{key}"),
        }
    }
}

/// Collects problems while reading.
#[derive(Default)]
pub(crate) struct TemplateReader {
    problems: Vec<Problem>,
    /// Which template is being read.
    template: Option<(usize, Option<String>)>,
    places: TemplatePlaces,
    /// The parts that were there and could not be read: the absence of what is in them is no news. An empty path stands
    /// for the whole template.
    unreadable: BTreeSet<(usize, String)>,
}

impl TemplateReader {
    /// Reads a whole document.
    pub(crate) fn read(mut self, document: Option<&PlacedValue>) -> Result<Located, Vec<Problem>> {
        let specs = self.document(document);
        match Templates::parse(&specs) {
            Ok(templates) if self.problems.is_empty() => {
                return Ok(Located {
                    templates,
                    places: self.places,
                });
            }
            Ok(_) => {}
            Err(problems) => {
                for problem in problems {
                    let field = problem.field.to_string();
                    let is_unreadable = |part: &str| {
                        let part = (problem.index, part.to_owned());
                        field.starts_with(&part.1) && self.unreadable.contains(&part)
                    };
                    if ["", ALGORITHM, &field].into_iter().any(is_unreadable) {
                        continue;
                    }
                    let place = self.places.of(problem.index, &field);
                    let spec = specs.get(problem.index);
                    let glob = spec.and_then(|spec| spec.identifier_glob.clone());
                    self.template = Some((problem.index + 1, glob));
                    let field = match problem.field {
                        Field::Parameter(_) => PARAMETERS,
                        _ => &field,
                    };
                    self.problem(place, Some(field), problem.message);
                }
            }
        }
        Err(self.problems)
    }

    fn document(&mut self, document: Option<&PlacedValue>) -> Vec<TemplateSpec> {
        const EXPECTED: &str = "a document starts with \"resources:\" and a list of templates";
        let place = document.map_or(Position::START, |it| it.place);
        let node = match document.filter(|it| !matches!(it.value, Value::Null)) {
            Some(node) if matches!(node.value, Value::Map(_)) => node,
            other => {
                let found = other.map_or_else(|| "empty".to_owned(), |it| it.value.described());
                self.problem(place, None, format!("is {found}; {EXPECTED}"));
                return Vec::new();
            }
        };
        self.check_keys(&Map { path: "", node }, &["resources"]);
        let Some(resources) = node.get("resources") else {
            self.problem(place, None, format!("has no \"resources\"; {EXPECTED}"));
            return Vec::new();
        };
        self.places.list = resources.place;
        match &resources.value {
            Value::List(templates) => {
                let templates = templates.iter().enumerate();
                templates.map(|(i, node)| self.spec(i, node)).collect()
            }
            other => {
                let message = format!("is {}; give a list of templates", other.described());
                self.problem(resources.place, Some("resources"), message);
                Vec::new()
            }
        }
    }

    fn spec(&mut self, index: usize, node: &PlacedValue) -> TemplateSpec {
        self.template = Some((index + 1, None));
        self.places.fields.push((node.place, BTreeMap::new()));
        let mut spec = TemplateSpec::default();
        if let Some(map) = self.map(node, "") {
            spec.identifier_glob = self.value(&map, "identifier_glob", text);
            self.template = Some((index + 1, spec.identifier_glob.clone()));
            self.check_keys(&map, &TEMPLATE_KEYS);
            spec.capacity = self.value(&map, "capacity", number);
            spec.safe_capacity = self.value(&map, "safe_capacity", number);
            spec.wants_max = self.value(&map, "wants_max", number);
            spec.subclients_max = self.value(&map, "subclients_max", number);
            spec.share_floor = self.value(&map, "share_floor", number);
            spec.description = self.value(&map, "description", text);
            match self.field(&map, ALGORITHM) {
                Some(node) => {
                    if let Some(map) = self.map(node, ALGORITHM) {
                        self.algorithm(&map, &mut spec);
                    }
                }
                None => {
                    let message = "is missing; say how the capacity is shared";
                    self.problem(node.place, Some(ALGORITHM), message);
                    self.unreadable.insert((index, ALGORITHM.to_owned()));
                }
            }
        }
        self.template = None;
        spec
    }

    fn algorithm(&mut self, map: &Map<'_>, spec: &mut TemplateSpec) {
        self.check_keys(map, &ALGORITHM_KEYS);
        spec.kind = self.value(map, "kind", kind);
        spec.lease_length = self.value(map, "lease_length", duration);
        spec.refresh_interval = self.value(map, "refresh_interval", duration);
        spec.learning_mode_duration = self.value(map, "learning_mode_duration", duration);
        let Some(parameters) = self.field(map, "parameters") else {
            return;
        };
        let Value::List(list) = &parameters.value else {
            let message = format!(
                "is {}; give a list, as in [{{name: shrink, value: immediate}}]",
                parameters.value.described()
            );
            return self.problem(parameters.place, Some(PARAMETERS), message);
        };
        for node in list {
            let index = spec.parameters.len();
            match self.parameter(node) {
                Ok(parameter) => {
                    spec.parameters.push(parameter);
                    self.found(format!("{PARAMETERS}[{index}]"), node.place);
                }
                Err((place, message)) => self.problem(place, Some(PARAMETERS), message),
            }
        }
    }

    fn parameter(
        &mut self,
        node: &PlacedValue,
    ) -> Result<(String, Option<String>), (Position, String)> {
        const EXPECTED: &str = "give {name: …, value: …}";
        let Value::Map(_) = &node.value else {
            let message = format!("one is {}; {EXPECTED}", node.value.described());
            return Err((node.place, message));
        };
        let path = PARAMETERS;
        self.check_keys(&Map { path, node }, &["name", "value"]);
        let name = node.get("name").and_then(|name| name.value.as_text());
        let name = name.ok_or_else(|| (node.place, format!("one has no name; {EXPECTED}")))?;
        let Some(value) = node.get("value") else {
            return Ok((name, None));
        };
        match value.value.as_text() {
            Some(text) => Ok((name, Some(text))),
            None => {
                let found = value.value.described();
                let message = format!("the value of {name} is {found}; give a text");
                Err((value.place, message))
            }
        }
    }

    /// Returns a map of fields, if it is one.
    fn map<'a>(&mut self, node: &'a PlacedValue, path: &'static str) -> Option<Map<'a>> {
        if let Value::Map(_) = &node.value {
            return Some(Map { path, node });
        }
        let message = format!("is {}; give a map of fields", node.value.described());
        self.problem(node.place, Some(path).filter(|it| !it.is_empty()), message);
        self.note_unreadable(path.to_owned());
        None
    }

    /// Returns the value of a field, if the field is there and can be read.
    fn value<T>(
        &mut self,
        map: &Map<'_>,
        key: &str,
        read: impl FnOnce(&Value) -> Result<T, String>,
    ) -> Option<T> {
        let node = self.field(map, key)?;
        let problem = match read(&node.value) {
            Ok(value) => return Some(value),
            Err(problem) => problem,
        };
        let path = map.path_of(key);
        self.problem(node.place, Some(&path), problem);
        self.note_unreadable(path);
        None
    }

    /// Returns a field that is there; a blank one counts as absent.
    fn field<'a>(&mut self, map: &Map<'a>, key: &str) -> Option<&'a PlacedValue> {
        let (path, node) = (map.path_of(key), map.node.get(key)?);
        self.found(path.clone(), node.place);
        if !matches!(node.value, Value::Null) {
            return Some(node);
        }
        self.places.blanks.push(Problem {
            template: self.template.clone(),
            field: Some(path),
            ..Problem::of_document(
                node.place,
                "is blank, which counts as absent; give a value, or remove it",
            )
        });
        None
    }

    fn found(&mut self, field: String, place: Position) {
        if let Some((_, places)) = self.places.fields.last_mut() {
            places.insert(field, place);
        }
    }

    /// Reports keys that are unknown or repeated.
    fn check_keys(&mut self, map: &Map<'_>, known: &[&str]) {
        let mut earlier = BTreeSet::new();
        for (key, _) in map.node.entries() {
            let message = if !known.contains(&key.text.as_str()) {
                match near(&key.text, known) {
                    Some(meant) => format!("is unknown; did you mean {meant}?"),
                    None => format!("is unknown; known are {}", known.join(", ")),
                }
            } else if earlier.insert(&key.text) {
                continue;
            } else {
                "is given twice; remove one".to_owned()
            };
            let (name, more) = shortened(&key.text);
            let path = map.path_of(&format!("{name}{more}"));
            self.problem(key.place, Some(&path), message);
        }
    }

    fn note_unreadable(&mut self, path: String) {
        if let Some((number, _)) = self.template {
            self.unreadable.insert((number - 1, path));
        }
    }

    fn problem(&mut self, place: Position, field: Option<&str>, message: impl Into<String>) {
        self.problems.push(Problem {
            template: self.template.clone(),
            field: field.map(str::to_owned),
            ..Problem::of_document(place, message)
        });
    }
}

/// A text, and nothing that YAML takes for something else: an unquoted 1.10 would be "1.1".
fn text(value: &Value) -> Result<String, String> {
    let found = value.described();
    Err(match value {
        Value::Text(text) => return Ok(text.clone()),
        Value::Bool(_) => format!("is the truth value {found}; put a text in quotes"),
        Value::Whole(_) | Value::Number(_) => {
            format!("is the number {found}; put a text in quotes")
        }
        Value::Null | Value::List(_) | Value::Map(_) => format!("is {found}; give a text"),
    })
}

fn number(value: &Value) -> Result<f64, String> {
    let number = value.as_number();
    number.ok_or_else(|| format!("is {}; give a number", value.described()))
}

fn duration(value: &Value) -> Result<Duration, String> {
    let expected = "give seconds, or a duration such as 15s or 2m";
    let duration = value.as_duration();
    duration.ok_or_else(|| format!("is {}; {expected}", value.described()))
}

fn kind(value: &Value) -> Result<AlgorithmKind, String> {
    let found = match value {
        Value::Text(text) => AlgorithmKind::ALL
            .into_iter()
            .find(|it| it.as_str() == text),
        Value::Whole(number) => {
            let mut numbers = KIND_NUMBERS.into_iter();
            numbers.find(|(n, _)| n == number).map(|(_, kind)| kind)
        }
        _ => None,
    };
    found.ok_or_else(|| {
        let names = AlgorithmKind::ALL.map(AlgorithmKind::as_str);
        let written = value.as_text().unwrap_or_default();
        let near = near(&written.to_uppercase().replace('-', "_"), &names);
        let hint = near.map_or_else(String::new, |name| format!("; did you mean {name}?"));
        let (found, names) = (value.described(), names.join(", "));
        format!("is {found}; give one of {names}{hint}")
    })
}
