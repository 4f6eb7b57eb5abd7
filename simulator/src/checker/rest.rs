//! Whether everybody has what is right at a time at which all must: some time after the last fault, or
//! after the last change of demand where nothing goes wrong.

use doorward_engine::time::Time;

use crate::checker::Watched;

impl Watched {
    /// By now everybody must have what is right.
    pub(crate) fn note_rest(&mut self, now: Time) {
        let ideal = self.ideal();
        let shares = self.standings.iter().map(|it| ideal.share(it.wish));
        let usable: f64 = shares.sum();
        let distance = self.distance(&ideal);
        // Of nothing, all is right, unless somebody has something.
        let part = if usable > 0.0 {
            distance / usable
        } else if distance > 0.0 {
            1.0
        } else {
            0.0
        };
        if part > self.rest.0 {
            self.rest = (part, now);
        }
    }
}
