//! Makes template specs of a document, and finds every problem on the way.

use std::collections::{BTreeMap, BTreeSet};

use doorward_engine::templates::{AlgorithmKind, Field, TemplateSpec, Templates};

use crate::form::{At, Map, Problems, hint};
use crate::keys::Names;
use crate::placed_value::{PlacedKey, PlacedValue, Value};
use crate::places::{Located, TemplatePlaces};
use crate::problem::{Position, Problem};

pub(crate) const TEMPLATE_KEYS: [&Names; 7] = [
    &["identifier_glob"],
    &["capacity"],
    &["safe_capacity"],
    &["wants_max"],
    &["subclients_max"],
    &["description"],
    &["algorithm"],
];
pub(crate) const ALGORITHM_KEYS: [&Names; 5] = [
    &["kind"],
    &["lease_length"],
    &["refresh_interval"],
    &["learning_mode_duration"],
    &["parameters"],
];

/// Doorman's numbers of the kinds, and ours.
pub(crate) const KIND_NUMBERS: [(i128, AlgorithmKind); 5] = [
    (0, AlgorithmKind::NoAlgorithm),
    (1, AlgorithmKind::Static),
    (2, AlgorithmKind::ProportionalShare),
    (3, AlgorithmKind::FairShare),
    (101, AlgorithmKind::PriorityBands),
];

/// Collects problems while reading.
#[derive(Default)]
pub(crate) struct TemplateReader {
    problems: Vec<Problem>,
    /// Which template is being read.
    template: Option<(usize, Option<String>)>,
    places: TemplatePlaces,
    /// The fields that were there and could not be read: that they are missing is no news.
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

    fn document(&mut self, document: Option<&PlacedValue>) -> Vec<TemplateSpec> {
        let expected = "a document starts with \"resources:\" and a list of templates";
        let Some(PlacedValue { place, value }) = document else {
            self.problem(Position::START, None, format!("is empty; {expected}"));
            return Vec::new();
        };
        let map = match value {
            Value::Map(entries) => map_at(*place, "", entries),
            Value::Null => {
                self.problem(*place, None, format!("is empty; {expected}"));
                return Vec::new();
            }
            other => {
                let message = format!("is {}; {expected}", other.described());
                self.problem(*place, None, message);
                return Vec::new();
            }
        };
        self.check_keys(&map, &[&["resources"]]);
        let Some(resources) = find(&map, "resources") else {
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

    fn spec(&mut self, index: usize, node: &PlacedValue) -> TemplateSpec {
        self.template = Some((index + 1, None));
        self.places.fields.push((node.place, BTreeMap::new()));
        let Value::Map(entries) = &node.value else {
            let message = format!("is {}; give a map of fields", node.value.described());
            self.problem(node.place, None, message);
            for field in every_field() {
                self.unreadable.insert((index, field.to_string()));
            }
            self.template = None;
            return TemplateSpec::default();
        };
        let map = map_at(node.place, "", entries);
        let glob = self.value(&map, &["identifier_glob"], At::text);
        self.template = Some((index + 1, glob.clone()));
        self.check_keys(&map, &TEMPLATE_KEYS);
        let mut spec = TemplateSpec {
            identifier_glob: glob,
            capacity: self.value(&map, &["capacity"], At::any_number),
            safe_capacity: self.value(&map, &["safe_capacity"], At::any_number),
            wants_max: self.value(&map, &["wants_max"], At::any_number),
            subclients_max: self.value(&map, &["subclients_max"], At::any_number),
            description: self.value(&map, &["description"], At::text),
            ..TemplateSpec::default()
        };
        match self.field(&map, &["algorithm"]).map(|at| at.node) {
            Some(node) => match &node.value {
                Value::Map(entries) => {
                    let map = map_at(node.place, "algorithm", entries);
                    self.algorithm(&map, &mut spec);
                }
                other => {
                    let message = format!("is {}; give a map of fields", other.described());
                    self.problem(node.place, Some("algorithm"), message);
                    self.algorithm_is_unreadable(index);
                }
            },
            None => {
                let message = "is missing; say how the capacity is shared";
                self.problem(node.place, Some("algorithm"), message);
                self.algorithm_is_unreadable(index);
            }
        }
        self.template = None;
        spec
    }

    fn algorithm(&mut self, map: &Map<'_>, spec: &mut TemplateSpec) {
        self.check_keys(map, &ALGORITHM_KEYS);
        spec.kind = self.kind(map);
        spec.lease_length = self.value(map, &["lease_length"], At::duration);
        spec.refresh_interval = self.value(map, &["refresh_interval"], At::duration);
        spec.learning_mode_duration = self.value(map, &["learning_mode_duration"], At::duration);
        let Some(At {
            node: parameters, ..
        }) = self.field(map, &["parameters"])
        else {
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

    fn parameter(&mut self, node: &PlacedValue) -> Option<(String, Option<String>)> {
        let path = "algorithm.parameters";
        let Value::Map(entries) = &node.value else {
            let message = format!(
                "one is {}; give {{name: …, value: …}}",
                node.value.described()
            );
            self.problem(node.place, Some(path), message);
            return None;
        };
        let map = map_at(node.place, path, entries);
        self.check_keys(&map, &[&["name"], &["value"]]);
        let Some(name) = find(&map, "name").and_then(|name| name.value.as_text()) else {
            self.problem(
                node.place,
                Some(path),
                "one has no name; give {name: …, value: …}",
            );
            return None;
        };
        let value = match find(&map, "value").map(|node| (node, node.value.as_text())) {
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

    fn kind(&mut self, map: &Map<'_>) -> Option<AlgorithmKind> {
        self.value(map, &["kind"], |at, problems| {
            let found = match &at.node.value {
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
                let written = at.node.value.as_text().unwrap_or_default();
                let hint = hint(&written.to_uppercase().replace('-', "_"), &names);
                problems.refuse(at, &format!("one of {}{hint}", names.join(", ")));
            }
            found
        })
    }

    /// A field that is there and can be read.
    fn value<'a, T>(
        &mut self,
        map: &Map<'a>,
        names: &Names,
        read: impl FnOnce(&At<'a>, &mut Problems) -> Option<T>,
    ) -> Option<T> {
        let at = self.field(map, names)?;
        let mut problems = Problems::default();
        let found = read(&at, &mut problems);
        if let (None, Some((number, _))) = (&found, &self.template) {
            self.unreadable.insert((number - 1, at.path));
        }
        self.problems
            .extend(problems.0.into_iter().map(|problem| Problem {
                template: self.template.clone(),
                ..problem
            }));
        found
    }

    /// A field that is there; an empty one counts as absent.
    fn field<'a>(&mut self, map: &Map<'a>, names: &Names) -> Option<At<'a>> {
        let name = names.first().copied().unwrap_or_default();
        let (path, node) = (map.path_of(name), find(map, name)?);
        self.found(&path, node.place);
        if matches!(node.value, Value::Null) {
            self.places.blanks.push(Problem {
                line: node.place.line,
                column: node.place.column,
                template: self.template.clone(),
                field: Some(path),
                message: "is blank, which counts as absent; give a value, or remove it".to_owned(),
            });
        }
        map.get(names)
    }

    fn found(&mut self, field: &str, place: Position) {
        if let Some((_, places)) = self.places.fields.last_mut() {
            places.insert(field.to_owned(), place);
        }
    }

    /// Reports keys that are unknown or repeated.
    fn check_keys(&mut self, map: &Map<'_>, known: &[&Names]) {
        let mut problems = Problems::default();
        map.check_keys(known, &mut problems);
        for problem in problems.0 {
            let template = self.template.clone();
            self.problems.push(Problem {
                template,
                ..problem
            });
        }
    }

    fn algorithm_is_unreadable(&mut self, index: usize) {
        for field in [Field::Kind, Field::LeaseLength, Field::RefreshInterval] {
            self.unreadable.insert((index, field.to_string()));
        }
    }

    fn problem(&mut self, place: Position, field: Option<&str>, message: impl Into<String>) {
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

fn map_at<'a>(place: Position, path: &str, entries: &'a [(PlacedKey, PlacedValue)]) -> Map<'a> {
    Map {
        place,
        path: path.to_owned(),
        entries,
    }
}

fn find<'a>(map: &Map<'a>, key: &str) -> Option<&'a PlacedValue> {
    let mut entries = map.entries.iter();
    entries.find(|(k, _)| k.text == key).map(|(_, node)| node)
}
