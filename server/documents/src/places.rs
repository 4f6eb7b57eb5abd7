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
    /// Place of the list of them.
    pub(crate) list: Position,
    /// Place of each of them, in order, and of its fields by their paths.
    pub(crate) fields: Vec<(Position, BTreeMap<String, Position>)>,
    /// Fields without a value.
    pub(crate) blanks: Vec<Problem>,
}

impl Located {
    /// Returns a remark on a field, with its place. `index` counts templates from 0.
    pub fn remark(&self, index: usize, field: Field, message: impl Into<String>) -> Problem {
        let field = field.to_string();
        let place = self.place(index, &field);
        let template = self.templates.iter().nth(index);
        Problem {
            template: Some((index + 1, template.map(|it| it.identifier_glob.clone()))),
            field: Some(field),
            ..Problem::of_document(place, message)
        }
    }

    /// Warnings about fields without a value. They count as absent, which may not be what the author meant.
    pub fn blanks(&self) -> &[Problem] {
        &self.blanks
    }

    /// Returns a remark on all templates together, with the place of their list.
    pub fn remark_on_all(&self, message: impl Into<String>) -> Problem {
        Problem {
            field: Some("resources".to_owned()),
            ..Problem::of_document(self.list, message)
        }
    }

    /// Returns the place of a field; for an absent one, that of the nearest part around it.
    pub(crate) fn place(&self, index: usize, field: &str) -> Position {
        let Some((start, places)) = self.fields.get(index) else {
            return Position::default();
        };
        let around = field.split('.').next().unwrap_or_default();
        let place = places.get(field).or_else(|| places.get(around));
        place.copied().unwrap_or(*start)
    }
}
