//! Two addresses, one application: plain HTTP/1.1, and HTTP/2 over TLS with a certificate made at start.
//!
//! Owns sockets, since faults close and reset them. A connection that fails costs only itself.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tower::ServiceExt;

use crate::cut::Cut;
use crate::tls;
use crate::wire::{ResetSwitch, Wire};

/// How long open requests may take after the end was asked for.
const GRACE: Duration = Duration::from_secs(2);
/// How long a TLS handshake may take.
const HANDSHAKE: Duration = Duration::from_secs(10);
/// Requests that one HTTP/2 connection may have open.
const STREAMS: u32 = 1_000;

/// Addresses that are taken and not yet served.
#[derive(Debug)]
pub struct Bound {
    http: TcpListener,
    https: Option<(TcpListener, tls::Identity)>,
}

impl Bound {
    /// Takes the addresses; port 0 takes a free one.
    ///
    /// # Errors
    /// When an address cannot be taken or no certificate can be made.
    pub async fn bind(addr: SocketAddr, tls_addr: Option<SocketAddr>) -> io::Result<Self> {
        let http = TcpListener::bind(addr).await?;
        let https = match tls_addr {
            Some(addr) => Some((TcpListener::bind(addr).await?, tls::Identity::new()?)),
            None => None,
        };
        Ok(Self { http, https })
    }

    /// Gives the address without TLS.
    ///
    /// # Errors
    /// When the system does not tell it.
    pub fn addr(&self) -> io::Result<SocketAddr> {
        self.http.local_addr()
    }

    /// Gives the address with TLS, if there is one.
    ///
    /// # Errors
    /// When the system does not tell it.
    pub fn tls_addr(&self) -> io::Result<Option<SocketAddr>> {
        self.https
            .as_ref()
            .map(|(listener, _)| listener.local_addr())
            .transpose()
    }

    /// Gives the certificate in DER, for a client that is to trust it.
    #[must_use]
    pub fn certificate(&self) -> Option<&[u8]> {
        self.https
            .as_ref()
            .map(|(_, identity)| identity.certificate())
    }

    /// Serves until `until` is ready, then lets open requests finish for two seconds.
    pub async fn run(self, app: Router, until: impl Future<Output = ()>) {
        let graceful = Arc::new(GracefulShutdown::new());
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(self.http, None, app.clone(), Arc::clone(&graceful)));
        if let Some((listener, identity)) = self.https {
            accepting.spawn(accept(
                listener,
                Some(identity.acceptor()),
                app,
                Arc::clone(&graceful),
            ));
        }
        until.await;
        accepting.shutdown().await;
        if let Some(graceful) = Arc::into_inner(graceful) {
            let _ = tokio::time::timeout(GRACE, graceful.shutdown()).await;
        }
    }
}

async fn accept(
    listener: TcpListener,
    tls: Option<TlsAcceptor>,
    app: Router,
    graceful: Arc<GracefulShutdown>,
) {
    loop {
        let Ok((stream, _)) = listener.accept().await else {
            // Out of file handles: others have to close first.
            tokio::time::sleep(Duration::from_millis(20)).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        tokio::spawn(connection(
            stream,
            tls.clone(),
            app.clone(),
            graceful.watcher(),
        ));
    }
}

async fn connection(
    stream: TcpStream,
    tls: Option<TlsAcceptor>,
    app: Router,
    watcher: hyper_util::server::graceful::Watcher,
) {
    let (wire, switch) = Wire::new(stream);
    let Some(tls) = tls else {
        return speak(wire, switch, app, watcher).await;
    };
    if let Ok(Ok(wire)) = tokio::time::timeout(HANDSHAKE, tls.accept(wire)).await {
        speak(wire, switch, app, watcher).await;
    }
}

async fn speak<S>(
    wire: S,
    switch: ResetSwitch,
    app: Router,
    watcher: hyper_util::server::graceful::Watcher,
) where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let service = service_fn(move |request| answer(app.clone(), switch.clone(), request));
    let mut builder = Builder::new(TokioExecutor::new());
    builder.http1().timer(TokioTimer::new());
    builder
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS);
    let connection = builder
        .serve_connection(TokioIo::new(wire), service)
        .into_owned();
    // A connection that ends with an error is a client that went away or a fault that was asked for.
    let _ = watcher.watch(connection).await;
}

async fn answer(
    app: Router,
    switch: ResetSwitch,
    request: Request<Incoming>,
) -> Result<Response<Body>, Cut> {
    let shared = request.version() == Version::HTTP_2;
    let response: Result<Response<Body>, Infallible> = app.oneshot(request.map(Body::new)).await;
    let Ok(response) = response;
    match response.extensions().get::<Cut>() {
        None => Ok(response),
        Some(cut) => {
            if *cut == Cut::Reset && !shared {
                switch.arm();
            }
            Err(*cut)
        }
    }
}
