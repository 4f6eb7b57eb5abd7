//! Places of the templates of a document, for remarks on a valid one.

use std::collections::BTreeMap;

use doorward_engine::templates::{Field, Templates};
use doorward_yaml::Position;

use crate::problem::Problem;

/// Templates, and where they stand.
#[derive(Clone, Debug, Default)]
pub struct Located {
    /// The templates.
    pub templates: Templates,
    /// Their places.
    pub places: TemplatePlaces,
}

/// Where the templates of a document stand.
#[derive(Clone, Debug)]
pub struct TemplatePlaces {
    /// The list of them.
    pub(crate) list: Position,
    /// Each of them, in order, and its fields by their paths.
    pub(crate) fields: Vec<(Position, BTreeMap<String, Position>)>,
    /// Fields without a value.
    pub(crate) blanks: Vec<Problem>,
}

impl Default for TemplatePlaces {
    fn default() -> Self {
        Self {
            list: Position::START,
            fields: Vec::new(),
            blanks: Vec::new(),
        }
    }
}

impl Located {
    /// Returns a remark on a field, with its place. `index` counts templates from 0.
    pub fn remark(&self, index: usize, field: Field, message: impl Into<String>) -> Problem {
        let field = field.to_string();
        let place = self.places.of(index, &field);
        let template = self.templates.iter().nth(index);
        Problem {
            template: Some((index + 1, template.map(|it| it.identifier_glob.clone()))),
            field: Some(field),
            ..Problem::of_document(place, message)
        }
    }

    /// Warnings about fields without a value. They count as absent, which may not be what the author meant.
    pub fn blanks(&self) -> &[Problem] {
        &self.places.blanks
    }

    /// Returns a remark on all templates together, with the place of their list.
    pub fn remark_on_all(&self, message: impl Into<String>) -> Problem {
        Problem {
            field: Some("resources".to_owned()),
            ..Problem::of_document(self.places.list, message)
        }
    }
}

impl TemplatePlaces {
    /// Returns the place of a field; for an absent one, that of the nearest part around it.
    pub(crate) fn of(&self, index: usize, field: &str) -> Position {
        let Some((start, places)) = self.fields.get(index) else {
            return Position::START;
        };
        let around = field.split('.').next().unwrap_or_default();
        let place = places.get(field).or_else(|| places.get(around));
        place.copied().unwrap_or(*start)
    }
}
