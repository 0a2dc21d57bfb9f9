//! A running server and a client that speaks HTTP/1.1 on a bare socket, so that what a fault does to a connection is seen
//! as it is.
#![allow(
    dead_code,
    reason = "each test file is a crate of its own and uses a part"
)]

use std::collections::BTreeMap;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use paceline_strict::{Bound, router};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::oneshot;

/// Most that a state is waited for before a test fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// A server of its own for one test.
pub(crate) struct Server {
    pub(crate) addr: SocketAddr,
    pub(crate) tls_addr: SocketAddr,
    pub(crate) certificate: Vec<u8>,
    _until: oneshot::Sender<()>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        let free: SocketAddr = "127.0.0.1:0".parse().expect("an address");
        let bound = Bound::bind(free, Some(free)).await.expect("free ports");
        let (end, ended) = oneshot::channel::<()>();
        let server = Self {
            addr: bound.addr().expect("an address"),
            tls_addr: bound
                .tls_addr()
                .expect("an address")
                .expect("a second address"),
            certificate: bound.certificate().expect("a certificate").to_vec(),
            _until: end,
        };
        tokio::spawn(bound.run(router(), async move { drop(ended.await) }));
        server
    }

    /// A server with one account named `a`.
    pub(crate) async fn with(scenario: Value) -> Self {
        let server = Self::start().await;
        let answer = server
            .send("PUT", "/strict/a", &[], &scenario.to_string())
            .await;
        assert_eq!(answer.status, 201, "{}", answer.body);
        server
    }

    pub(crate) async fn connect(&self) -> Client {
        Client {
            stream: TcpStream::connect(self.addr).await.expect("a connection"),
        }
    }

    /// One request on a connection of its own.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Answer {
        self.connect()
            .await
            .send(method, path, headers, body)
            .await
            .expect("an answer")
    }

    pub(crate) async fn post(&self, headers: &[(&str, &str)], body: &str) -> Answer {
        self.send("POST", "/strict/a/api/orders", headers, body)
            .await
    }

    pub(crate) async fn patch(&self, change: Value) {
        let answer = self
            .send("PATCH", "/strict/a", &[], &change.to_string())
            .await;
        assert_eq!(answer.status, 200, "{}", answer.body);
    }

    pub(crate) async fn report(&self) -> Value {
        self.send("GET", "/strict/a/report", &[], "").await.json()
    }

    /// Waits until the report says so, and gives that report.
    pub(crate) async fn report_when(&self, is_so: impl Fn(&Value) -> bool) -> Value {
        let waiting = async {
            loop {
                let report = self.report().await;
                if is_so(&report) {
                    return report;
                }
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .expect("the report to say so in time")
    }
}

/// What came back.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) headers: BTreeMap<String, String>,
    pub(crate) body: String,
    /// The connection ended before the length that was announced.
    pub(crate) is_cut: bool,
}

impl Answer {
    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).map(String::as_str)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.body).expect("JSON")
    }
}

/// One connection.
pub(crate) struct Client {
    stream: TcpStream,
}

impl Client {
    pub(crate) async fn send(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<Answer> {
        self.begin(method, path, headers, body).await?;
        self.receive().await
    }

    /// Sends a request and does not wait for its answer.
    pub(crate) async fn begin(
        &mut self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> io::Result<()> {
        let mut text = format!(
            "{method} {path} HTTP/1.1\r\nhost: strict\r\ncontent-length: {}\r\n",
            body.len()
        );
        for (name, value) in headers {
            text.push_str(&format!("{name}: {value}\r\n"));
        }
        text.push_str("\r\n");
        text.push_str(body);
        self.stream.write_all(text.as_bytes()).await
    }

    /// Sends bytes as they are.
    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await
    }

    /// Reads an answer; no byte of one before the end is `UnexpectedEof`.
    pub(crate) async fn receive(&mut self) -> io::Result<Answer> {
        tokio::time::timeout(PATIENCE, self.read_answer()).await?
    }

    async fn read_answer(&mut self) -> io::Result<Answer> {
        let mut bytes = Vec::new();
        let head_length = loop {
            if let Some(at) = bytes.windows(4).position(|four| four == b"\r\n\r\n") {
                break at + 4;
            }
            if self.stream.read_buf(&mut bytes).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        };
        let (status, headers) = head(&String::from_utf8_lossy(&bytes[..head_length]));
        let length = headers
            .get("content-length")
            .map_or(0, |length| length.parse().expect("a length"));
        while bytes.len() < head_length + length {
            if self.stream.read_buf(&mut bytes).await? == 0 {
                break;
            }
        }
        let body = String::from_utf8_lossy(&bytes[head_length..]).into_owned();
        Ok(Answer {
            status,
            headers,
            is_cut: body.len() < length,
            body,
        })
    }

    /// Tells whether nothing has come: no byte, no end.
    pub(crate) fn is_silent(&self) -> bool {
        let mut byte = [0];
        self.stream
            .try_read(&mut byte)
            .is_err_and(|error| error.kind() == io::ErrorKind::WouldBlock)
    }
}

fn head(text: &str) -> (u16, BTreeMap<String, String>) {
    let mut lines = text.split("\r\n");
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .expect("a status")
        .parse()
        .expect("a number");
    let pair = |line: &str| {
        line.split_once(": ")
            .map(|(name, value)| (name.to_lowercase(), value.to_owned()))
    };
    (status, lines.filter_map(pair).collect())
}
