//! Writes scenarios as files: a file that is read again as the same scenario plays the same run, bit for bit.
//!
//! So a world that chance made can be kept, whatever chance draws later.

use serde_json::Value;

use crate::scenario::Scenario;
use crate::scenario::fault::Fault;
use crate::scenario::forms::UNSAID;
use crate::scenario::source::{Read, ScenarioError, Within};
use crate::scenario::templates;

impl Scenario {
    /// The text of a file that plays the same run.
    ///
    /// # Errors
    ///
    /// If there is something in it that a file cannot say.
    pub fn to_yaml(&self) -> Result<String, ScenarioError> {
        self.written().within("cannot be written")
    }

    fn written(&self) -> Read<String> {
        let mut file = self.clone();
        file.templates_file = templates::written(&self.templates);
        let faults: Read<_> = self.faults.iter().map(Fault::to_file).collect();
        file.fault_files = faults?;
        for group in &mut file.clients {
            group.shorten();
        }
        if file.settled_after == self.settled_by_default() {
            file.settled_after = UNSAID;
        }
        let mut value = serde_json::to_value(&file)?;
        tidy(&mut value);
        let options = serde_saphyr::ser_options! { prefer_block_scalars: false };
        let text = serde_saphyr::to_string_with_options(&value, options);
        text.map_err(|error| ScenarioError::new("", error))
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
