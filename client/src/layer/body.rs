//! The body of a response that may be a refusal.

use std::fmt;
use std::pin::Pin;
use std::task::{Context, Poll};

use bytes::Bytes;
use http_body::{Body, Frame, SizeHint};
use pin_project_lite::pin_project;

pin_project! {
    /// Body of a response: of the service, or the text of a refusal.
    pub struct RefusableBody<B> {
        #[pin]
        of: Of<B>,
    }
}

pin_project! {
    #[project = OfProjection]
    enum Of<B> {
        Refusal { text: Bytes },
        Service { #[pin] body: B },
    }
}

impl<B> RefusableBody<B> {
    pub(super) fn refusal(text: Bytes) -> Self {
        Self {
            of: Of::Refusal { text },
        }
    }

    pub(super) fn service(body: B) -> Self {
        Self {
            of: Of::Service { body },
        }
    }

    /// Returns the body of the service. None: the request was refused.
    pub fn into_inner(self) -> Option<B> {
        match self.of {
            Of::Refusal { .. } => None,
            Of::Service { body } => Some(body),
        }
    }
}

impl<B: Body<Data = Bytes>> Body for RefusableBody<B> {
    type Data = Bytes;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, B::Error>>> {
        match self.project().of.project() {
            OfProjection::Refusal { text } => {
                let text = Some(std::mem::take(text)).filter(|text| !text.is_empty());
                Poll::Ready(text.map(|text| Ok(Frame::data(text))))
            }
            OfProjection::Service { body } => body.poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        match &self.of {
            Of::Refusal { text } => text.is_empty(),
            Of::Service { body } => body.is_end_stream(),
        }
    }

    fn size_hint(&self) -> SizeHint {
        match &self.of {
            Of::Refusal { text } => SizeHint::with_exact(text.len() as u64),
            Of::Service { body } => body.size_hint(),
        }
    }
}

impl<B> fmt::Debug for RefusableBody<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RefusableBody").finish_non_exhaustive()
    }
}
