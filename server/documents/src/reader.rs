//! Makes template specs of a document, and finds every problem on the way.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use doorward_engine::template::{AlgorithmKind, Field, TemplateSpec, Templates};

use crate::keys::{key_problems, near};
use crate::places::{Located, Places};
use crate::problem::Problem;
use crate::tree::{Key, Node, Place, Value};

const TEMPLATE_KEYS: [&str; 7] = [
    "identifier_glob",
    "capacity",
    "safe_capacity",
    "wants_max",
    "subclients_max",
    "description",
    "algorithm",
];
const ALGORITHM_KEYS: [&str; 5] = [
    "kind",
    "lease_length",
    "refresh_interval",
    "learning_mode_duration",
    "parameters",
];

/// Doorman's numbers of the kinds, and ours.
const KIND_NUMBERS: [(i128, AlgorithmKind); 5] = [
    (0, AlgorithmKind::NoAlgorithm),
    (1, AlgorithmKind::Static),
    (2, AlgorithmKind::ProportionalShare),
    (3, AlgorithmKind::FairShare),
    (101, AlgorithmKind::PriorityBands),
];

/// Collects problems while reading.
#[derive(Default)]
pub(crate) struct Reader {
    problems: Vec<Problem>,
    /// Which template is being read.
    template: Option<(usize, Option<String>)>,
    places: Places,
    /// The fields that were there and could not be read: that they are missing is no news.
    unreadable: BTreeSet<(usize, String)>,
}

type Map = [(Key, Node)];

impl Reader {
    /// Reads a whole document.
    pub(crate) fn read(mut self, document: Option<&Node>) -> Result<Located, Vec<Problem>> {
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
                    if self.unreadable.contains(&(problem.index, field.clone())) {
                        continue;
                    }
                    let place = self.places.of(problem.index, &field);
                    let glob = specs
                        .get(problem.index)
                        .and_then(|s| s.identifier_glob.clone());
                    self.problems.push(Problem {
                        line: place.line,
                        column: place.column,
                        template: Some((problem.index + 1, glob)),
                        field: Some(match problem.field {
                            Field::Parameter(_) => "algorithm.parameters".to_owned(),
                            _ => field,
                        }),
                        message: problem.message,
                    });
                }
            }
        }
        Err(self.problems)
    }

    fn document(&mut self, document: Option<&Node>) -> Vec<TemplateSpec> {
        let expected = "a document starts with \"resources:\" and a list of templates";
        let Some(Node { place, value }) = document else {
            self.problem(Place::START, None, format!("is empty; {expected}"));
            return Vec::new();
        };
        let map = match value {
            Value::Map(map) => map,
            Value::Null => {
                self.problem(*place, None, format!("is empty; {expected}"));
                return Vec::new();
            }
            other => {
                self.problem(
                    *place,
                    None,
                    format!("is {}; {expected}", other.described()),
                );
                return Vec::new();
            }
        };
        self.check_keys(map, &["resources"], "");
        let Some(resources) = find(map, "resources") else {
            self.problem(*place, None, format!("has no \"resources\"; {expected}"));
            return Vec::new();
        };
        self.places.list = resources.place;
        match &resources.value {
            Value::List(templates) => templates
                .iter()
                .enumerate()
                .map(|(i, node)| self.spec(i, node))
                .collect(),
            other => {
                let message = format!("is {}; give a list of templates", other.described());
                self.problem(resources.place, Some("resources"), message);
                Vec::new()
            }
        }
    }

    fn spec(&mut self, index: usize, node: &Node) -> TemplateSpec {
        self.template = Some((index + 1, None));
        self.places.fields.push((node.place, BTreeMap::new()));
        let Value::Map(map) = &node.value else {
            let message = format!("is {}; give a map of fields", node.value.described());
            self.problem(node.place, None, message);
            for field in every_field() {
                self.unreadable.insert((index, field.to_string()));
            }
            self.template = None;
            return TemplateSpec::default();
        };
        let glob = self.text(map, "", "identifier_glob");
        self.template = Some((index + 1, glob.clone()));
        self.check_keys(map, &TEMPLATE_KEYS, "");
        let mut spec = TemplateSpec {
            identifier_glob: glob,
            capacity: self.number(map, "", "capacity"),
            safe_capacity: self.number(map, "", "safe_capacity"),
            wants_max: self.number(map, "", "wants_max"),
            subclients_max: self.number(map, "", "subclients_max"),
            description: self.text(map, "", "description"),
            ..TemplateSpec::default()
        };
        match self
            .field(map, "", "algorithm")
            .map(|node| (&node.value, node.place))
        {
            Some((Value::Map(map), _)) => self.algorithm(map, &mut spec),
            Some((other, place)) => {
                let message = format!("is {}; give a map of fields", other.described());
                self.problem(place, Some("algorithm"), message);
                self.algorithm_is_unreadable(index);
            }
            None => {
                let message = "is missing; say how the capacity is shared";
                self.problem(node.place, Some("algorithm"), message);
                self.algorithm_is_unreadable(index);
            }
        }
        self.template = None;
        spec
    }

    fn algorithm(&mut self, map: &Map, spec: &mut TemplateSpec) {
        let path = "algorithm.";
        self.check_keys(map, &ALGORITHM_KEYS, path);
        spec.kind = self.kind(map);
        spec.lease_length = self.duration(map, path, "lease_length");
        spec.refresh_interval = self.duration(map, path, "refresh_interval");
        spec.learning_mode_duration = self.duration(map, path, "learning_mode_duration");
        let Some(parameters) = self.field(map, path, "parameters") else {
            return;
        };
        match &parameters.value {
            Value::List(list) => {
                for node in list {
                    let index = spec.parameters.len();
                    if let Some(parameter) = self.parameter(node) {
                        spec.parameters.push(parameter);
                        self.found(&format!("algorithm.parameters[{index}]"), node.place);
                    }
                }
            }
            Value::Null => {}
            other => {
                let message = format!(
                    "is {}; give a list, as in [{{name: shrink, value: immediate}}]",
                    other.described()
                );
                self.problem(parameters.place, Some("algorithm.parameters"), message);
            }
        }
    }

    fn parameter(&mut self, node: &Node) -> Option<(String, Option<String>)> {
        let path = "algorithm.parameters";
        let Value::Map(map) = &node.value else {
            let message = format!(
                "one is {}; give {{name: …, value: …}}",
                node.value.described()
            );
            self.problem(node.place, Some(path), message);
            return None;
        };
        self.check_keys(map, &["name", "value"], "algorithm.parameters.");
        let Some(name) = find(map, "name").and_then(|name| name.value.as_text()) else {
            self.problem(
                node.place,
                Some(path),
                "one has no name; give {name: …, value: …}",
            );
            return None;
        };
        let value = match find(map, "value").map(|node| (node, node.value.as_text())) {
            Some((node, None)) => {
                let message = format!(
                    "the value of {name} is {}; give a text",
                    node.value.described()
                );
                self.problem(node.place, Some(path), message);
                return None;
            }
            Some((_, value)) => value,
            None => None,
        };
        Some((name, value))
    }

    fn kind(&mut self, map: &Map) -> Option<AlgorithmKind> {
        let node = self.field(map, "algorithm.", "kind")?;
        let found = match &node.value {
            Value::Text(text) => AlgorithmKind::ALL
                .into_iter()
                .find(|kind| kind.as_str() == text),
            Value::Whole(number) => KIND_NUMBERS
                .into_iter()
                .find(|(n, _)| n == number)
                .map(|(_, kind)| kind),
            _ => None,
        };
        if found.is_none() {
            let names = AlgorithmKind::ALL.map(AlgorithmKind::as_str);
            let written = node
                .value
                .as_text()
                .unwrap_or_default()
                .to_uppercase()
                .replace('-', "_");
            let hint = near(&written, &names)
                .map_or_else(String::new, |name| format!("; did you mean {name}?"));
            let message = format!(
                "is {}; give one of {}{hint}",
                node.value.described(),
                names.join(", ")
            );
            self.unreadable_field("algorithm.kind", node.place, message);
        }
        found
    }

    /// A text, and nothing that YAML takes for something else: an unquoted 1.10 would be "1.1".
    fn text(&mut self, map: &Map, path: &str, key: &str) -> Option<String> {
        let node = self.field(map, path, key)?;
        let described = node.value.described();
        let message = match &node.value {
            Value::Text(text) => return Some(text.clone()),
            Value::Bool(_) => format!("is the truth value {described}; put a text in quotes"),
            Value::Whole(_) | Value::Number(_) => {
                format!("is the number {described}; put a text in quotes")
            }
            Value::Null | Value::List(_) | Value::Map(_) => {
                format!("is {described}; give a text")
            }
        };
        self.unreadable_field(&format!("{path}{key}"), node.place, message);
        None
    }

    fn number(&mut self, map: &Map, path: &str, key: &str) -> Option<f64> {
        let node = self.field(map, path, key)?;
        let number = node.value.as_number();
        if number.is_none() {
            let message = format!("is {}; give a number", node.value.described());
            self.unreadable_field(&format!("{path}{key}"), node.place, message);
        }
        number
    }

    /// Seconds as a number, or a text such as `15s` or `1m 30s`.
    fn duration(&mut self, map: &Map, path: &str, key: &str) -> Option<Duration> {
        let node = self.field(map, path, key)?;
        let duration = node.value.as_duration();
        if duration.is_none() {
            let message = format!(
                "is {}; give seconds, or a duration such as 15s or 2m",
                node.value.described()
            );
            self.unreadable_field(&format!("{path}{key}"), node.place, message);
        }
        duration
    }

    /// A field that is there; an empty one counts as absent.
    fn field<'a>(&mut self, map: &'a Map, path: &str, key: &str) -> Option<&'a Node> {
        let node = find(map, key)?;
        self.found(&format!("{path}{key}"), node.place);
        (!matches!(node.value, Value::Null)).then_some(node)
    }

    fn found(&mut self, field: &str, place: Place) {
        if let Some((_, places)) = self.places.fields.last_mut() {
            places.insert(field.to_owned(), place);
        }
    }

    /// Reports keys that nobody reads, because they are unknown or the second of their name.
    fn check_keys(&mut self, map: &Map, known: &[&str], path: &str) {
        for (place, name, message) in key_problems(map, known) {
            self.problem(place, Some(&format!("{path}{name}")), message);
        }
    }

    fn unreadable_field(&mut self, field: &str, place: Place, message: String) {
        if let Some((number, _)) = self.template {
            self.unreadable.insert((number - 1, field.to_owned()));
        }
        self.problem(place, Some(field), message);
    }

    fn algorithm_is_unreadable(&mut self, index: usize) {
        for field in [Field::Kind, Field::LeaseLength, Field::RefreshInterval] {
            self.unreadable.insert((index, field.to_string()));
        }
    }

    fn problem(&mut self, place: Place, field: Option<&str>, message: impl Into<String>) {
        self.problems.push(Problem {
            line: place.line,
            column: place.column,
            template: self.template.clone(),
            field: field.map(str::to_owned),
            message: message.into(),
        });
    }
}

fn every_field() -> [Field; 5] {
    [
        Field::IdentifierGlob,
        Field::Capacity,
        Field::Kind,
        Field::LeaseLength,
        Field::RefreshInterval,
    ]
}

fn find<'a>(map: &'a Map, key: &str) -> Option<&'a Node> {
    map.iter()
        .find(|(k, _)| k.text == key)
        .map(|(_, node)| node)
}
