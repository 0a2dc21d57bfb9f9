//! A socket that can be told to close with a reset instead of an orderly end.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;

/// Tells a [`Wire`] to close with a reset.
#[derive(Debug, Clone)]
pub(crate) struct ResetSwitch(Arc<AtomicBool>);

impl ResetSwitch {
    pub(crate) fn arm(&self) {
        self.0.store(true, Ordering::Release);
    }
}

/// A TCP connection.
#[derive(Debug)]
pub(crate) struct Wire {
    stream: TcpStream,
    reset: ResetSwitch,
}

impl Wire {
    pub(crate) fn new(stream: TcpStream) -> (Self, ResetSwitch) {
        let reset = ResetSwitch(Arc::new(AtomicBool::new(false)));
        (
            Self {
                stream,
                reset: reset.clone(),
            },
            reset,
        )
    }

    fn is_armed(&self) -> bool {
        self.reset.0.load(Ordering::Acquire)
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        if self.is_armed() {
            let _ = self.stream.set_zero_linger();
        }
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(cx, into)
    }
}

impl AsyncWrite for Wire {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        from: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, from)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    /// An armed wire is not shut down in order: its reset is to be the first that the client hears.
    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.is_armed() {
            return Poll::Ready(Ok(()));
        }
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
