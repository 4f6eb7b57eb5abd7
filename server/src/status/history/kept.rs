//! Histories in a file, for the next process.

use std::collections::VecDeque;
use std::io::ErrorKind;
use std::path::PathBuf;

use doorward_engine::id::ResourceId;
use doorward_files::{Replacement, read_regular};
use prost::Message;
use tracing::warn;

use super::{FIGURES, History, MARKS_MAX, Mark, RESOURCES_MAX, Rings, SERIES, Sample};
use crate::clock;

/// Largest file, in bytes.
const BYTES_MAX: usize = 128 * 1024 * 1024;

#[derive(Clone, PartialEq, Message)]
struct Kept {
    #[prost(message, repeated, tag = "1")]
    resources: Vec<KeptResource>,
    #[prost(message, repeated, tag = "2")]
    marks: Vec<Mark>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptResource {
    #[prost(string, tag = "1")]
    id: String,
    /// Of the last ten minutes, and of the last day.
    #[prost(message, repeated, tag = "2")]
    rings: Vec<KeptRing>,
}

#[derive(Clone, PartialEq, Message)]
struct KeptRing {
    #[prost(uint32, repeated, tag = "1")]
    at: Vec<u32>,
    /// All figures of the first sample, then those of the next.
    #[prost(float, repeated, tag = "2")]
    figures: Vec<f32>,
}

impl KeptRing {
    fn of(ring: &VecDeque<Sample>) -> Self {
        Self {
            at: ring.iter().map(|(at, _)| *at).collect(),
            figures: ring.iter().flat_map(|(_, figures)| *figures).collect(),
        }
    }
}

impl History {
    /// Reads the histories of the process before, and keeps those of this one in the same file.
    pub fn open(&self, file: PathBuf) {
        let read = read_regular(&file, BYTES_MAX);
        match read.and_then(|bytes| Ok(Kept::decode(bytes.as_slice())?)) {
            Ok(kept) => self.take(kept),
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => {
                warn!(file = %file.display(), %error, "histories of charts cannot be read")
            }
        }
        let _first = self.file.set(file);
    }

    fn take(&self, kept: Kept) {
        let now = u32::try_from(clock::wall().as_secs()).unwrap_or(u32::MAX);
        let old = kept.marks.len().saturating_sub(MARKS_MAX);
        self.marks.lock().extend(kept.marks.into_iter().skip(old));
        let mut samples = self.samples.lock();
        for resource in kept.resources.into_iter().take(RESOURCES_MAX) {
            let Ok(id) = ResourceId::new(&resource.id) else {
                continue;
            };
            let mut rings = Rings::default();
            for ((ring, (_, samples_max)), kept) in rings.iter_mut().zip(SERIES).zip(resource.rings)
            {
                let (figures, _) = kept.figures.as_chunks::<FIGURES>();
                let all = kept.at.into_iter().zip(figures.iter().copied());
                ring.extend(all.filter(|(at, _)| *at <= now));
                ring.drain(..ring.len().saturating_sub(samples_max));
            }
            samples.insert(id, rings);
        }
    }

    /// Writes the histories, if there is a file.
    pub fn keep(&self) {
        let Some(file) = self.file.get() else {
            return;
        };
        let marks = self.marks.lock().iter().cloned().collect();
        let resources = Vec::new();
        let mut bytes = Kept { resources, marks }.encode_to_vec();
        for id in self.resources() {
            let kept = self.samples.lock().get(&id).map(|rings| KeptResource {
                id: id.to_string(),
                rings: rings.iter().map(KeptRing::of).collect(),
            });
            let (resources, marks) = (kept.into_iter().collect(), Vec::new());
            // Messages one after the other are one message with the lists of all.
            bytes.extend(Kept { resources, marks }.encode_to_vec());
        }
        if let Err(error) = Replacement::prepare(file, &bytes).and_then(Replacement::put) {
            warn!(file = %file.display(), %error, "histories of charts cannot be kept");
        }
    }
}
