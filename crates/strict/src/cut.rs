//! Answers that do not come, or not whole.
//!
//! A handler marks its response; [`crate::serve`], which owns the connection, does what the mark says. Over HTTP/2 a
//! connection carries many requests, so there only the request's own stream is ended.

use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderValue, Response, header};
use bytes::Bytes;
use hyper::body::{Body as _, Frame, SizeHint};
use tokio::time::{Sleep, sleep};

/// How an answer is withheld.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Cut {
    /// The connection is closed without a byte of answer.
    #[error("closed by a fault")]
    Close,
    /// The connection is reset.
    #[error("reset by a fault")]
    Reset,
    /// Nothing happens until the client goes away.
    #[error("hanging by a fault")]
    Hang,
}

/// Keeps a response's length and sends half of its body, then after a pause (for what was sent to leave) breaks off.
pub(crate) fn half(response: Response<Body>, pause: Duration) -> Response<Body> {
    let (mut parts, body) = response.into_parts();
    let length = body.size_hint().exact().unwrap_or(0);
    parts
        .headers
        .insert(header::CONTENT_LENGTH, HeaderValue::from(length));
    let half = Half {
        body,
        left: length / 2,
        length,
        pause: Box::pin(sleep(pause)),
        waiting: pause,
    };
    Response::from_parts(parts, Body::new(half))
}

struct Half {
    body: Body,
    left: u64,
    length: u64,
    pause: Pin<Box<Sleep>>,
    waiting: Duration,
}

impl hyper::body::Body for Half {
    type Data = Bytes;
    type Error = std::io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        if self.left > 0
            && let Poll::Ready(Some(Ok(frame))) = Pin::new(&mut self.body).poll_frame(cx)
            && let Ok(mut data) = frame.into_data()
        {
            data.truncate(usize::try_from(self.left).unwrap_or(usize::MAX));
            self.left -= data.len() as u64;
            let waiting = self.waiting;
            self.pause
                .as_mut()
                .reset(tokio::time::Instant::now() + waiting);
            return Poll::Ready(Some(Ok(Frame::data(data))));
        }
        ready!(self.pause.as_mut().poll(cx));
        Poll::Ready(Some(Err(std::io::Error::other("cut off by a fault"))))
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.length)
    }
}
