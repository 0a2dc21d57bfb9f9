//! The second address: TLS, HTTP/2, and faults that end one stream of many.

mod kit;

use std::sync::Arc;

use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper::client::conn::http2::{SendRequest, handshake};
use hyper_util::rt::{TokioExecutor, TokioIo};
use kit::Server;
use serde_json::{Value, json};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::ring::default_provider;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

type Sender = SendRequest<Full<Bytes>>;

async fn connect(server: &Server) -> Sender {
    let mut roots = RootCertStore::empty();
    roots
        .add(CertificateDer::from(server.certificate.clone()))
        .expect("a certificate");
    let mut config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
        .with_safe_default_protocol_versions()
        .expect("versions")
        .with_root_certificates(roots)
        .with_no_client_auth();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let name = ServerName::try_from("127.0.0.1").expect("a name");
    let tcp = TcpStream::connect(server.tls_addr)
        .await
        .expect("a connection");
    let tls = TlsConnector::from(Arc::new(config))
        .connect(name, tcp)
        .await
        .expect("a handshake");
    assert_eq!(tls.get_ref().1.alpn_protocol(), Some(b"h2".as_slice()));
    let (sender, connection) = handshake(TokioExecutor::new(), TokioIo::new(tls))
        .await
        .expect("HTTP/2");
    tokio::spawn(connection);
    sender
}

async fn post(sender: &mut Sender, n: usize) -> Result<u16, hyper::Error> {
    let request = hyper::Request::post("https://127.0.0.1/strict/a/api/orders")
        .body(Full::from(n.to_string()))
        .expect("a request");
    let response = sender.send_request(request).await?;
    let status = response.status().as_u16();
    response.into_body().collect().await?;
    Ok(status)
}

/// Sends many requests at once on one connection.
async fn at_once(sender: &Sender, count: usize) -> Vec<Result<u16, hyper::Error>> {
    let tasks: Vec<_> = (0..count)
        .map(|n| {
            let mut sender = sender.clone();
            tokio::spawn(async move { post(&mut sender, n).await })
        })
        .collect();
    let mut results = Vec::new();
    for task in tasks {
        results.push(task.await.expect("a request"));
    }
    results
}

#[tokio::test(flavor = "multi_thread")]
async fn one_connection_carries_many_at_once_and_both_addresses_share_the_account() {
    let server = Server::with(json!({ "limits": [{ "limit": 100, "window_ms": 600_000 }] })).await;
    let sender = connect(&server).await;

    let results = at_once(&sender, 300).await;

    assert_eq!(
        results
            .iter()
            .filter(|result| matches!(result, Ok(200)))
            .count(),
        100
    );
    assert_eq!(
        results
            .iter()
            .filter(|result| matches!(result, Ok(429)))
            .count(),
        200
    );
    assert_eq!(server.report().await["rejected"], 200);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_cut_ends_its_own_stream_and_no_other() {
    for kind in ["drop-before-apply", "drop-after-apply", "reset", "truncate"] {
        let server = Server::with(json!({ "faults": [{ "nth": 7, "kind": kind }] })).await;
        let sender = connect(&server).await;

        let results = at_once(&sender, 20).await;

        let served = results
            .iter()
            .filter(|result| matches!(result, Ok(200)))
            .count();
        assert_eq!((served, results.len() - served), (19, 1), "{kind}");
        let report: Value = server.report().await;
        assert_eq!(report["faults"][kind], 1);
    }
}
