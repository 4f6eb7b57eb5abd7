//! Templates of paths: `/users/{id}`, `/static/{*rest}`.
//!
//! A path is compared by segment, undecoded, without its query. `{x}` is one segment and `{*x}` the rest; neither is
//! empty. Of the templates that match, the most specific one in the first segment where they differ wins.

/// A template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    text: String,
    segments: Vec<Segment>,
}

/// A segment. The order is from more to less specific.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Segment {
    Text(String),
    One,
    Rest,
}

impl Template {
    /// Creates a template. `{*x}` before the last segment matches nothing.
    pub fn new(text: &str) -> Self {
        let segment = |segment: &str| match segment
            .strip_prefix('{')
            .and_then(|rest| rest.strip_suffix('}'))
        {
            Some(name) if name.starts_with('*') => Segment::Rest,
            Some(_) => Segment::One,
            None => Segment::Text(segment.to_owned()),
        };
        Self {
            text: text.to_owned(),
            segments: text.split('/').map(segment).collect(),
        }
    }

    /// Returns the template as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Returns the most specific template that matches a path.
    pub fn best<'a>(templates: &'a [Self], path: &[u8]) -> Option<&'a Self> {
        let path = path.split(|byte| *byte == b'?').next().unwrap_or_default();
        let matching = templates.iter().filter(|template| template.matches(path));
        matching.min_by(|one, other| one.segments.cmp(&other.segments))
    }

    fn matches(&self, path: &[u8]) -> bool {
        let mut parts = path.split(|byte| *byte == b'/');
        let mut segments = self.segments.iter();
        while let Some(segment) = segments.next() {
            let Some(part) = parts.next() else {
                return false;
            };
            match segment {
                Segment::Text(text) if text.as_bytes() == part => {}
                Segment::One if !part.is_empty() => {}
                Segment::Rest if segments.len() == 0 => {
                    return !part.is_empty() || parts.next().is_some();
                }
                _ => return false,
            }
        }
        parts.next().is_none()
    }
}
