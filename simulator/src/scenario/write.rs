//! Writes scenarios as files: what `read` reads again as the same scenario, so that it plays the same
//! run, bit for bit. So a world that chance made up can be kept, whatever chance draws later.
//!
//! What a file says if it says nothing is not written, so that a small scenario is a small file.
//! What a file cannot say is refused, and named. How each field is written is declared with it
//! (`crate::scenario::declared`); here are values.

use std::error::Error;
use std::fmt;
use std::time::Duration;

use doorward_client::state::Mode;
use doorward_engine::id::ResourceId;

use crate::scenario::Scenario;
use crate::scenario::declared::Written;
use crate::scenario::fault::Span;
use crate::scenario::yaml::Yaml;

/// A scenario has something in it that a file cannot say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CannotWrite {
    /// What that is.
    pub what: String,
}

impl fmt::Display for CannotWrite {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "a scenario file cannot say {}", self.what)
    }
}

impl Error for CannotWrite {}

impl CannotWrite {
    pub(super) fn new(what: impl Into<String>) -> Self {
        Self { what: what.into() }
    }
}

impl Scenario {
    /// The text of a file that plays the same run. Without a name, the file's is the scenario's.
    ///
    /// # Errors
    ///
    /// If there is something in it that a file cannot say.
    pub fn to_yaml(&self) -> Result<String, CannotWrite> {
        Ok(self.written(self)?.document())
    }
}

/// Values that are written as they are shown.
macro_rules! plain {
    ($($Type:ty),*) => {$(
        impl Written for $Type {
            fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
                Ok(Yaml::plain(self))
            }
        }
    )*};
}

plain!(bool, f64, i64, u32, u64, usize);

words! { impl Mode {
    Safe = "safe",
    Pessimistic = "pessimistic",
    Optimistic = "optimistic",
} }

impl Written for String {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(Yaml::text(self))
    }
}

impl Written for ResourceId {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(Yaml::text(self.as_str()))
    }
}

impl Written for Duration {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(Yaml::duration(*self))
    }
}

impl Written for Span {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(Yaml::span(*self))
    }
}

impl Written for (f64, f64) {
    fn written(&self, _of: &Scenario) -> Result<Yaml, CannotWrite> {
        Ok(Yaml::List(vec![Yaml::plain(self.0), Yaml::plain(self.1)]))
    }
}

impl<T: Written> Written for Vec<T> {
    fn written(&self, of: &Scenario) -> Result<Yaml, CannotWrite> {
        let values: Result<Vec<Yaml>, CannotWrite> = self.iter().map(|it| it.written(of)).collect();
        values.map(Yaml::List)
    }
}
