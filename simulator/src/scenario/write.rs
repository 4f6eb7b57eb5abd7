//! Writes scenarios as files: a file that is read again as the same scenario plays the same run, bit for bit.
//!
//! So a world that chance made can be kept, whatever chance draws later.

use serde_json::Value;

use crate::scenario::Scenario;
use crate::scenario::clients::GroupFile;
use crate::scenario::fault::Fault;
use crate::scenario::forms::As;
use crate::scenario::names::Known;
use crate::scenario::network::NetworkFile;
use crate::scenario::nodes::{NamedNodes, listed};
use crate::scenario::read::{Files, ScenarioFile};
use crate::scenario::templates;

/// A scenario has something in it that a file cannot say.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot be written as a scenario file: {0}")]
pub struct CannotWrite(String);

impl Scenario {
    /// The text of a file that plays the same run.
    ///
    /// # Errors
    ///
    /// If there is something in it that a file cannot say.
    pub fn to_yaml(&self) -> Result<String, CannotWrite> {
        let known = Known {
            files: Files::BuiltIn(&[]),
            end: self.duration,
            may_be_idle: self.idle_faults,
            templates: self.templates.clone(),
            tree: NamedNodes::written(&self.nodes),
            clients: self.clients.clone(),
        };
        let (faults, _) = known.during(|| self.faults.iter().map(Fault::to_file).collect());
        let faults: Result<_, _> = faults;
        let settled_after = self.settled_after;
        let groups = self.clients.iter().map(|it| GroupFile::of(it, self));
        let file = ScenarioFile {
            name: Some(self.name.clone()).filter(|name| !name.is_empty()),
            description: self.description.clone(),
            duration: self.duration,
            seed: self.seed,
            sample_every: Some(self.sample_every),
            heal_at: self.heal_at,
            right_at: self.right_at.iter().copied().map(As).collect(),
            idle_faults: self.idle_faults,
            templates: templates::written(&self.templates),
            tree: Some(listed(&self.nodes)),
            clients: groups.collect(),
            network: NetworkFile::of(self),
            servers: self.servers,
            client_gaps: self.client_gaps,
            faults: faults.map_err(|error| CannotWrite(error.to_string()))?,
            settled_after: Some(settled_after).filter(|it| *it != self.settled_by_default()),
            limits: self.limits,
        };
        let mut value = serde_json::to_value(&file).map_err(|it| CannotWrite(it.to_string()))?;
        tidy(&mut value);
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        let text = serde_saphyr::to_string_with_options(&value, options);
        text.map_err(|error| CannotWrite(error.to_string()))
    }
}

/// Removes keys with nothing in them.
fn tidy(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(tidy),
        Value::Object(fields) => {
            fields.values_mut().for_each(tidy);
            fields.retain(|key, value| match value {
                Value::Null => false,
                Value::Object(inner) => !inner.is_empty(),
                Value::Array(items) => !items.is_empty() || key == "resources",
                _ => true,
            });
        }
        _ => {}
    }
}
