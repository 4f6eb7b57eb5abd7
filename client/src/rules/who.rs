//! The client that a request comes from: parts of the request.
//!
//! A missing part is a value of its own: no text equals it, and it never frees the client. Bytes are compared, invalid
//! UTF-8 too. An own extractor is a closure:
//! `Part::Own(Box::new(|request| request.header("x-tenant").map(Value::from)))`.

use crate::rules::address::Address;
use crate::rules::path::Template;
pub use crate::rules::request::Request;
use crate::rules::value::Value;

/// An extractor of the application.
pub type Own = Box<dyn for<'a> Fn(&Request<'a>) -> Option<Value<'a>> + Send + Sync>;

/// A part of a request.
pub enum Part {
    /// Name of the authenticated user.
    Login,
    /// Address of the client.
    Address(Address),
    /// First line of a header, such as one with the region, or of an entry of gRPC metadata. The name is in any case.
    Header(String),
    /// First cookie of exactly this name.
    Cookie(String),
    /// Template of the path, not the path.
    Path(Vec<Template>),
    /// Method, as written.
    Method,
    /// Nothing: all clients are one.
    Everyone,
    /// An extractor of the application.
    Own(Own),
}

debug_by_name!(Part);

impl Part {
    /// Returns the value of this part of a request.
    pub fn value<'a>(&'a self, request: &Request<'a>) -> Option<Value<'a>> {
        match self {
            Self::Login => request.login.map(Value::from),
            Self::Address(address) => address.client(request),
            Self::Header(name) => request.header(name).map(Value::from),
            Self::Cookie(name) => request.cookie(name.as_bytes()).map(Value::from),
            Self::Path(templates) => {
                Template::best(templates, request.path).map(|template| Value::from(template.text()))
            }
            Self::Method => Some(Value::from(request.method)),
            Self::Everyone => None,
            Self::Own(own) => own(request),
        }
    }
}
