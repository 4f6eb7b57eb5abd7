//! What clients want: a number, or one of the kinds of curves, by name.

use std::time::Duration;

use doorward_documents::tree::Value;
use doorward_engine::amount::Amount;

use crate::scenario::demand::{Demand, Diurnal, Trace};
use crate::scenario::read::Reader;
use crate::scenario::read::form::{At, Map, STEP_MIN};
use crate::trace::scan;

const KINDS: [&str; 10] = [
    "constant",
    "step",
    "ramp",
    "sine",
    "diurnal",
    "spike",
    "walk",
    "on_off",
    "flash_crowd",
    "trace",
];

/// The period of a day, if nothing else is said.
const DAY: Duration = Duration::from_secs(24 * 3600);

impl Reader<'_> {
    /// `duration` is how long is played: what begins later is a slip.
    pub(super) fn demand(&mut self, at: &At<'_>, duration: Duration) -> Option<Demand> {
        let Value::Map(_) = at.node.value else {
            if at.node.value.as_number().is_none() {
                let expected = "a number, or how it changes, as in {walk: {start: 15}}";
                self.problems.refuse(at, expected);
                return None;
            }
            return at.amount(&mut self.problems).map(Demand::Constant);
        };
        let map = at.map("{walk: {start: 15}}", &mut self.problems)?;
        let kind = map.only_one(&KINDS, &mut self.problems)?;
        map.check_keys(&KINDS, &mut self.problems);
        let at = map.need(kind, "how it changes", &mut self.problems)?;
        match kind {
            "constant" => at.amount(&mut self.problems).map(Demand::Constant),
            "trace" => self.trace(&at),
            _ => {
                let map = at.map("{walk: {start: 15}}", &mut self.problems)?;
                let mut curve = Curve {
                    reader: self,
                    map,
                    duration,
                };
                curve.read(kind)
            }
        }
    }

    /// The name of a file, or this and how it is played.
    fn trace(&mut self, at: &At<'_>) -> Option<Demand> {
        let (mut speed, mut scale, mut repeat) = (Some(1.0), Some((1.0, None)), Some(1));
        let file = match &at.node.value {
            Value::Text(_) => at.clone(),
            Value::Map(_) => {
                let map = at.map("{file: …}", &mut self.problems)?;
                let keys = ["file", "speed", "scale", "repeat"];
                map.check_keys(&keys, &mut self.problems);
                if let Some(at) = map.get("speed") {
                    speed = at.number(1e-6, 1e6, &mut self.problems);
                }
                if let Some(at) = map.get("scale") {
                    let number = at.amount(&mut self.problems);
                    scale = number.map(|number| (number, Some(at)));
                }
                if let Some(at) = map.get("repeat") {
                    repeat = at.count(1_000_000, &mut self.problems);
                }
                map.need("file", "the name of a trace", &mut self.problems)?
            }
            _ => {
                let expected = "the name of a file, or {file: …, speed: 2}";
                self.problems.refuse(at, expected);
                return None;
            }
        };
        let name = file.text(&mut self.problems)?;
        let Some(source) = self.files.source(&name) else {
            let message = format!("is {name:?}, which is not in the library");
            self.problems.wrong(&file, message);
            return None;
        };
        let scan = match scan(&source) {
            Ok(scan) => scan,
            Err(error) => {
                self.problems.wrong(&file, error.to_string());
                return None;
            }
        };
        let (scale, scale_at) = scale?;
        if scan.wants_max * scale > Amount::MAX.get() {
            let message = format!(
                "makes the largest amount of the trace {}; the largest there may be is {}",
                scan.wants_max * scale,
                Amount::MAX.get()
            );
            self.problems.wrong(&scale_at.unwrap_or(file), message);
            return None;
        }
        if repeat? > 1 && scan.length.is_zero() {
            let message = "has all its rows at the start: it takes no time, and is not repeated";
            self.problems.wrong(&file, message);
            return None;
        }
        Some(Demand::Trace(Trace {
            source,
            clients: scan.clients,
            length: scan.length,
            speed: speed?,
            scale,
            repeat: u32::try_from(repeat?).ok()?,
        }))
    }
}

/// Reads the keys of a curve.
struct Curve<'r, 'f, 'a> {
    reader: &'r mut Reader<'f>,
    map: Map<'a>,
    duration: Duration,
}

impl Curve<'_, '_, '_> {
    fn read(&mut self, kind: &str) -> Option<Demand> {
        match kind {
            "step" => self.step(),
            "ramp" => self.ramp(),
            "sine" => self.sine(),
            "diurnal" => self.diurnal(),
            "spike" => self.spike(),
            "walk" => self.walk(),
            "on_off" => self.on_off(),
            "flash_crowd" => self.flash_crowd(),
            _ => None,
        }
    }

    fn step(&mut self) -> Option<Demand> {
        self.keys(&["from", "to", "at"]);
        let (from, to, at) = (self.amount("from"), self.amount("to"), self.begins());
        Some(Demand::Step {
            from: from?,
            to: to?,
            at: at?,
        })
    }

    fn ramp(&mut self) -> Option<Demand> {
        self.keys(&["from", "to", "at", "over", "every"]);
        let (from, to, at) = (self.amount("from"), self.amount("to"), self.begins());
        let length = self.takes("over", "how long it takes");
        let every = self.every(length.map(|length| length / 20));
        Some(Demand::Ramp {
            from: from?,
            to: to?,
            at: at?,
            length: length?,
            every: every?,
        })
    }

    fn sine(&mut self) -> Option<Demand> {
        self.keys(&["mean", "amplitude", "period", "shift", "every"]);
        let (mean, amplitude) = (self.amount("mean"), self.amount("amplitude"));
        if let (Some(mean), Some(amplitude)) = (mean, amplitude)
            && amplitude > mean
        {
            let at = self.map.get("amplitude")?;
            let message = format!("is more than the mean, {mean}; nobody wants less than nothing");
            self.reader.problems.wrong(&at, message);
        }
        let period = self.takes("period", "the time from top to top");
        let shift = self.shift();
        let every = self.every(period.map(|period| period / 100));
        Some(Demand::Sine {
            mean: mean?,
            amplitude: amplitude?,
            period: period?,
            shift: shift?,
            every: every?,
        })
    }

    fn diurnal(&mut self) -> Option<Demand> {
        self.keys(&["least", "most", "peak", "period", "shift", "every"]);
        let (least, most) = (self.amount("least"), self.amount("most"));
        if let (Some(least), Some(most)) = (least, most)
            && most < least
        {
            let at = self.map.get("most")?;
            let message = format!("is less than the least, {least}");
            self.reader.problems.wrong(&at, message);
        }
        let period = match self.map.get("period") {
            Some(at) => at.step(&mut self.reader.problems),
            None => Some(DAY),
        };
        let peak = match self.map.get("peak") {
            Some(at) => self.within(&at, period),
            // 20:00.
            None => period.map(|period| period * 5 / 6),
        };
        let shift = self.shift();
        let every = self.every(period.map(|period| period / 100));
        Some(Demand::Diurnal(Diurnal {
            least: least?,
            most: most?,
            peak: peak?,
            period: period?,
            shift: shift?,
            every: every?,
        }))
    }

    /// A time of day.
    fn within(&mut self, at: &At<'_>, period: Option<Duration>) -> Option<Duration> {
        let time = at.duration(&mut self.reader.problems)?;
        let period = period?;
        if time >= period {
            let message = format!(
                "is {}, but a period is {}; give a time within it",
                humantime::format_duration(time),
                humantime::format_duration(period)
            );
            self.reader.problems.wrong(at, message);
            return None;
        }
        Some(time)
    }

    /// By what part of a period each client is ahead of the one before it.
    fn shift(&mut self) -> Option<f64> {
        let shift = self.map.get("shift");
        shift.map_or(Some(0.0), |at| at.part(&mut self.reader.problems))
    }

    fn spike(&mut self) -> Option<Demand> {
        self.keys(&["base", "peak", "at", "for"]);
        let (base, peak, at) = (self.amount("base"), self.amount("peak"), self.begins());
        let length = self.takes("for", "how long it lasts");
        Some(Demand::Spike {
            base: base?,
            peak: peak?,
            at: at?,
            length: length?,
        })
    }

    fn walk(&mut self) -> Option<Demand> {
        self.keys(&["start", "factor", "every"]);
        let start = self.amount("start");
        let factor = match self.map.get("factor") {
            Some(at) => self.factor(&at),
            None => Some((0.9, 1.1)),
        };
        let every = self.every(Some(Duration::from_secs(10)));
        Some(Demand::Walk {
            start: start?,
            factor: factor?,
            every: every?,
        })
    }

    fn factor(&mut self, at: &At<'_>) -> Option<(f64, f64)> {
        let problems = &mut self.reader.problems;
        let numbers = at.list("[0.9, 1.1]", problems)?;
        let [least, most] = numbers.as_slice() else {
            let message = format!(
                "is a list of {}; give the least and the largest, as in [0.9, 1.1]",
                numbers.len()
            );
            problems.wrong(at, message);
            return None;
        };
        let (least, most) = (
            least.number(0.0, 1e6, problems),
            most.number(0.0, 1e6, problems),
        );
        let (least, most) = (least?, most?);
        if least > most {
            problems.wrong(at, "goes backwards; give the smaller one first");
            return None;
        }
        Some((least, most))
    }

    /// Not `on` and `off`: YAML takes them for truth values.
    fn on_off(&mut self) -> Option<Demand> {
        self.keys(&["peak", "base", "on_for", "off_for"]);
        let on = self.amount("peak");
        let off = self.map.get("base");
        let off = off.map_or(Some(0.0), |at| at.amount(&mut self.reader.problems));
        let on_for = self.takes("on_for", "how long it is on, on average");
        let off_for = self.takes("off_for", "how long it is off, on average");
        Some(Demand::OnOff {
            on: on?,
            off: off?,
            on_for: on_for?,
            off_for: off_for?,
        })
    }

    fn flash_crowd(&mut self) -> Option<Demand> {
        self.keys(&["base", "peak", "at", "rise", "half_life", "every"]);
        let (base, peak, at) = (self.amount("base"), self.amount("peak"), self.begins());
        let rise = self.takes("rise", "how long it is from the base to the peak");
        let half_life = self.takes("half_life", "how long it is until half of it is gone");
        let shorter = rise.zip(half_life).map(|(rise, half)| rise.min(half));
        let every = self.every(shorter.map(|shorter| shorter / 10));
        Some(Demand::FlashCrowd {
            base: base?,
            peak: peak?,
            at: at?,
            rise: rise?,
            half_life: half_life?,
            every: every?,
        })
    }

    fn keys(&mut self, known: &[&str]) {
        self.map.check_keys(known, &mut self.reader.problems);
    }

    fn amount(&mut self, key: &str) -> Option<f64> {
        let problems = &mut self.reader.problems;
        let at = self.map.need(key, "how much is wanted", problems)?;
        at.amount(problems)
    }

    /// When something begins, while it is played.
    fn begins(&mut self) -> Option<Duration> {
        let problems = &mut self.reader.problems;
        let at = self.map.need("at", "when it happens", problems)?;
        at.time_before(self.duration, problems)
    }

    /// A length that must be there.
    fn takes(&mut self, key: &str, what: &str) -> Option<Duration> {
        let problems = &mut self.reader.problems;
        self.map.need(key, what, problems)?.step(problems)
    }

    /// How often a curve steps. `default` is there unless what it is made of is not.
    fn every(&mut self, default: Option<Duration>) -> Option<Duration> {
        match self.map.get("every") {
            Some(at) => at.step(&mut self.reader.problems),
            None => default.map(|every| every.max(STEP_MIN)),
        }
    }
}
