//! Waiting for two futures, without a crate for it.

use std::future::poll_fn;
use std::pin::{Pin, pin};
use std::task::{Context, Poll};

/// Waits for both futures, polling the first one first.
pub async fn both<A: Future, B: Future>(first: A, second: B) -> (A::Output, B::Output) {
    let (mut first, mut second) = (pin!(first), pin!(second));
    let (mut first_out, mut second_out) = (None, None);
    poll_fn(|context| {
        poll_into(first.as_mut(), &mut first_out, context);
        poll_into(second.as_mut(), &mut second_out, context);
        match (first_out.take(), second_out.take()) {
            (Some(first), Some(second)) => Poll::Ready((first, second)),
            (first, second) => {
                (first_out, second_out) = (first, second);
                Poll::Pending
            }
        }
    })
    .await
}

fn poll_into<F: Future>(
    future: Pin<&mut F>,
    out: &mut Option<F::Output>,
    context: &mut Context<'_>,
) {
    if out.is_none()
        && let Poll::Ready(output) = future.poll(context)
    {
        *out = Some(output);
    }
}
