//! A document as it is written. Scalars are text with their place, so that a message can name both.
//!
//! Unknown fields are found by the schema (`schema.json`), so that all of them are told at once.

use serde::Deserialize;
use serde_saphyr::Spanned;

/// A scalar, as written. Most of a descriptor are absent, so they are small then.
pub(crate) type Scalar = Option<Box<Placed<String>>>;

/// A value and its place. It is smaller than [`Spanned`], and a document has many.
#[derive(Debug, Deserialize)]
#[serde(from = "Spanned<T>", bound(deserialize = "T: Deserialize<'de>"))]
pub(crate) struct Placed<T> {
    pub(crate) value: T,
    /// Line at which it is used.
    pub(crate) line: u64,
    /// Byte at which it is written; an alias is used elsewhere.
    pub(crate) defined: usize,
}

impl<T> From<Spanned<T>> for Placed<T> {
    fn from(spanned: Spanned<T>) -> Self {
        let byte = spanned.defined.span().byte_offset();
        Self {
            value: spanned.value,
            line: spanned.referenced.line(),
            defined: byte
                .and_then(|byte| byte.try_into().ok())
                .unwrap_or(usize::MAX),
        }
    }
}

/// A document: the rules of one domain.
#[derive(Debug, Deserialize)]
pub(crate) struct DocumentForm {
    /// Name of the domain. Required, and in one document only.
    pub(crate) domain: Scalar,
    /// First level of descriptors.
    #[serde(default)]
    pub(crate) descriptors: Option<Vec<Placed<DescriptorForm>>>,
    /// Answer to a request without a rule: `allow` (default) or `reject`.
    pub(crate) unmatched: Scalar,
    /// Requests that are counted: those `allowed` (default), or all `attempts`, as in envoyproxy/ratelimit.
    pub(crate) count: Scalar,
    /// Whether the domain has no rule on purpose: `true` or `false` (default).
    pub(crate) empty: Scalar,
    /// Names of the headers of answers: `draft-11` of the IETF's (default), `next`, or `legacy` (X-RateLimit).
    pub(crate) headers: Scalar,
}

/// A descriptor: a key, perhaps with a value, its limit and the levels below.
#[derive(Debug, Deserialize)]
pub(crate) struct DescriptorForm {
    /// Key of the request's entry. Required.
    pub(crate) key: Scalar,
    /// Value of the request's entry; `*` stands for any characters. Without it, each value has a quota of its own.
    pub(crate) value: Scalar,
    /// Whether the values of requests are hashed in names of resources, and so in the status and metrics: `true` or
    /// `false`.
    pub(crate) hash: Scalar,
    /// The limit. Without it, requests that end here are free.
    #[serde(default, deserialize_with = "present")]
    pub(crate) rate_limit: Option<Box<Placed<Option<LimitForm>>>>,
    /// Next level.
    #[serde(default)]
    pub(crate) descriptors: Option<Vec<Placed<DescriptorForm>>>,
    /// Whether the rule counts and never refuses: `true` or `false`.
    pub(crate) shadow_mode: Scalar,
    /// A field of envoyproxy/ratelimit without effect: `true` or `false`.
    pub(crate) detailed_metric: Scalar,
    /// Long refusal of a caller that keeps exceeding the limit.
    #[serde(default, deserialize_with = "present")]
    pub(crate) ban: Option<Box<Placed<Option<BanForm>>>>,
    /// Answer above the limit: `reject` (default), `wait`, `drop`, `degrade`, `redirect`.
    pub(crate) action: Scalar,
    /// Longest wait of `action: wait` and of a leaky queue, such as `5ms` (default). At most `1min`. A leaky queue with
    /// longer turns needs it.
    pub(crate) max_wait: Scalar,
    /// `local` (default) or `shared`.
    pub(crate) scope: Scalar,
    /// `open` (default of local rules), `closed` or `safe` (default of shared rules).
    pub(crate) on_failure: Scalar,
    /// Number of processes that share the limit, from 1 (default) to 10000. With `on_failure: safe`, each admits such a part
    /// of it until its first lease.
    pub(crate) processes: Scalar,
    /// Units that a request takes if it does not say. Default: 1.
    pub(crate) cost: Scalar,
    /// Priority of callers in a lease of the rule; higher is first. Default: 0.
    pub(crate) priority: Scalar,
    /// Number of callers that each caller counts as in a lease of the rule, from 1 (default) to 100.
    pub(crate) weight: Scalar,
    /// Callers with another priority or weight; the first name that matches counts.
    #[serde(default)]
    pub(crate) callers: Option<Vec<Placed<CallerForm>>>,
}

/// A caller with a priority or a weight of its own.
#[derive(Debug, Deserialize)]
pub(crate) struct CallerForm {
    /// Name of the caller; `*` stands for any characters. Required.
    pub(crate) name: Scalar,
    /// Priority. Default: that of the rule.
    pub(crate) priority: Scalar,
    /// Weight. Default: that of the rule.
    pub(crate) weight: Scalar,
}

/// A limit: `unit` and `requests_per_unit`, or `rate`, or `unlimited`.
#[derive(Debug, Deserialize)]
pub(crate) struct LimitForm {
    /// `second`, `minute`, `hour`, `day`, `week`, `month` or `year`, in any case.
    pub(crate) unit: Scalar,
    /// Amount in each unit, from 0 to 4294967295.
    pub(crate) requests_per_unit: Scalar,
    /// Amount and window, such as `2000/20min`.
    pub(crate) rate: Scalar,
    /// `fixed_window` (default), `token_bucket` (also `gcra`, `leaky_bucket`), `leaky_queue`, `sliding_log` or
    /// `sliding_counter`.
    pub(crate) algorithm: Scalar,
    /// Largest amount at once, for `token_bucket` and `leaky_queue`. Default: the amount of one second, rounded up.
    pub(crate) burst: Scalar,
    /// Amount in use beyond which answers warn. Below the limit.
    pub(crate) soft_limit: Scalar,
    /// Whether everything passes: `true` or `false`.
    pub(crate) unlimited: Scalar,
    /// Name by which other rules replace this one.
    pub(crate) name: Scalar,
    /// Rules that this one replaces in a request.
    pub(crate) replaces: Option<Vec<ReplacesForm>>,
}

/// A ban: more than `threshold` attempts within an `interval` lead to a refusal, which ends `length` after it.
#[derive(Debug, Deserialize)]
pub(crate) struct BanForm {
    /// Number of attempts that lead to no ban yet. Required.
    pub(crate) threshold: Scalar,
    /// Time in which attempts are counted, from the first one, such as `1min`. Required.
    pub(crate) interval: Scalar,
    /// Length of a ban, from the end of the interval, such as `10min`. Required.
    pub(crate) length: Scalar,
    /// Whether each further ban is twice as long: `false` (default), `true` (up to a day), or the longest length.
    pub(crate) growing: Scalar,
}

/// A rule that is replaced.
#[derive(Debug, Deserialize)]
pub(crate) struct ReplacesForm {
    /// Its name.
    pub(crate) name: Scalar,
}

/// Reads a field that is there. An empty one is `Some` without content, and a missing one is `None`.
fn present<'de, D, T>(deserializer: D) -> Result<Option<T>, D::Error>
where
    D: serde::Deserializer<'de>,
    T: Deserialize<'de>,
{
    T::deserialize(deserializer).map(Some)
}
