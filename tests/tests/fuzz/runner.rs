//! Runner of the targets: the number of inputs, their choice, and the treatment of a failing one.
//!
//! | variable | absent | |
//! | --- | --- | --- |
//! | `DOORWARD_FUZZ_INPUTS` | 50,000 | Inputs of all targets together, beside the corpus. |
//! | `DOORWARD_FUZZ_SEED` | 1 | Seed of the inputs, which are the same on every machine, so that only a change of the code can change a result. |
//!
//! An input depends only on the seed, the target, its number and the corpus. A failing one is made smaller, and written
//! to a file that the failure names.

use std::collections::hash_map::DefaultHasher;
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};

use bolero::bolero_engine::input::Bytes;
use bolero::bolero_engine::panic;
use bolero::generator::bolero_generator::driver::Options;

use crate::chance::Chance;
use crate::mutate::{Format, mutate};

/// Number of inputs for twenty seconds on one core, in the profile of `cargo test`.
const INPUTS: u64 = 50_000;

/// Sum of the shares of all targets.
const SHARES: u64 = 100;

/// Number of bytes of an input that are shown.
const SHOWN_MAX: usize = 1_000;

/// A target, as bolero runs it without a fuzzer.
pub struct Runner {
    pub target: &'static str,
    /// Function that gets the inputs.
    pub format: Format,
    /// Share of all inputs, in hundredths.
    pub share: u64,
}

/// Runs a target: with the fuzzer of `cargo bolero`, or with the [`Runner`].
macro_rules! fuzz {
    ($target:literal, $format:expr, share: $share:literal, $run:expr) => {{
        let run = |bytes: &[u8]| $run(bytes);
        if cfg!(fuzzing) {
            bolero::check!(name = $target).for_each(run);
        } else {
            let runner = $crate::runner::Runner {
                target: $target,
                format: $format,
                share: $share,
            };
            bolero::TestTarget::new(runner).for_each(run);
        }
    }};
}
pub(crate) use fuzz;

impl<T: bolero::Test> bolero::Engine<T> for Runner {
    type Output = ();

    fn run(self, mut test: T, options: Options) {
        panic::set_hook();
        let forwarded = panic::forward_panic(false);
        let mut fails = |bytes: &[u8]| {
            let result = test.test(&mut Bytes::new(bytes, &options));
            result.err().map(|error| error.to_string())
        };
        let failed = self.try_all(&mut fails);
        panic::forward_panic(forwarded);
        if let Some(failed) = failed {
            panic!("{failed}");
        }
    }
}

impl Runner {
    /// Tries the corpus, and then mutations. Returns the text of the first failure.
    fn try_all(&self, fails: &mut dyn FnMut(&[u8]) -> Option<String>) -> Option<String> {
        let corpus = self.corpus();
        for (path, bytes) in &corpus {
            if let Some(error) = fails(bytes) {
                return Some(format!("{}: {error}", path.display()));
            }
        }
        let seeds: Vec<Vec<u8>> = corpus.into_iter().map(|(_, bytes)| bytes).collect();
        let seed = variable("DOORWARD_FUZZ_SEED").unwrap_or(1);
        let inputs = variable("DOORWARD_FUZZ_INPUTS").unwrap_or(INPUTS) * self.share / SHARES;
        for number in 0..inputs {
            let bytes = mutate(&seeds, self.format, &mut self.chance(seed, number));
            if let Some(error) = fails(&bytes) {
                return Some(self.keep(seed, number, bytes, error, fails));
            }
        }
        eprintln!(
            "{}: {} of the corpus and {inputs} inputs of seed {seed}",
            self.target,
            seeds.len(),
        );
        None
    }

    fn chance(&self, seed: u64, number: u64) -> Chance {
        let mut mixed = Chance::new(seed);
        for byte in self.target.bytes() {
            mixed = Chance::new(mixed.number() ^ u64::from(byte));
        }
        Chance::new(mixed.number() ^ number)
    }

    /// Returns the corpus in the order of names.
    fn corpus(&self) -> Vec<(PathBuf, Vec<u8>)> {
        let folder = corpus_of(self.target);
        let entries = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path());
        let mut files: Vec<PathBuf> = entries.collect();
        files.sort();
        let read = |path: PathBuf| {
            let bytes = fs::read(&path).unwrap();
            (path, bytes)
        };
        files.into_iter().map(read).collect()
    }

    /// Makes a failing input smaller, and writes it.
    fn keep(
        &self,
        seed: u64,
        number: u64,
        bytes: Vec<u8>,
        error: String,
        fails: &mut dyn FnMut(&[u8]) -> Option<String>,
    ) -> String {
        let (bytes, error) = smaller(bytes, error, fails);
        let mut hasher = DefaultHasher::new();
        bytes.hash(&mut hasher);
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .join("fuzz")
            .join(self.target);
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join(format!("{:016x}", hasher.finish()));
        fs::write(&path, &bytes).unwrap();
        let corpus = corpus_of(self.target);
        let shown = bytes.get(..SHOWN_MAX).unwrap_or(&bytes);
        format!(
            "{error}\n\nThe input, number {number} of seed {seed}, is {} bytes:\n{}\nIt is kept in {}; copy \
             it to {} with the mend.",
            bytes.len(),
            shown.escape_ascii(),
            path.display(),
            corpus.display(),
        )
    }
}

/// Leaves out one part after another as long as the rest fails.
fn smaller(
    mut bytes: Vec<u8>,
    mut error: String,
    fails: &mut dyn FnMut(&[u8]) -> Option<String>,
) -> (Vec<u8>, String) {
    let mut length = bytes.len() / 2;
    while length > 0 {
        let mut at = 0;
        while at + length <= bytes.len() {
            let shorter = [&bytes[..at], &bytes[at + length..]].concat();
            match fails(&shorter) {
                Some(now) => (bytes, error) = (shorter, now),
                None => at += length,
            }
        }
        length /= 2;
    }
    (bytes, error)
}

fn corpus_of(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fuzz/__fuzz__")
        .join(target)
        .join("corpus")
}

fn variable(name: &str) -> Option<u64> {
    let value = std::env::var(name).ok()?;
    let number = value.replace('_', "").parse();
    Some(number.unwrap_or_else(|_| panic!("{name} is {value:?}; give a whole number")))
}

/// Two targets must not share a corpus, and their shares must add up.
#[test]
fn the_corpus_is_small_and_every_part_of_it_belongs_to_a_target() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz");
    let (mut bytes, mut targets) = (0, 0);
    for target in fs::read_dir(folder.join("__fuzz__")).unwrap() {
        let target = target.unwrap().path();
        let name = target.file_name().unwrap().to_str().unwrap();
        assert!(folder.join(format!("{name}.rs")).exists(), "{name}");
        targets += 1;
        for file in fs::read_dir(target.join("corpus")).unwrap() {
            let size = file.unwrap().metadata().unwrap().len();
            assert!(size <= 16 * 1024, "a file of {name} has {size} bytes");
            bytes += size;
        }
    }
    assert!(targets >= 12 && bytes <= 1024 * 1024, "{bytes} bytes");
}
