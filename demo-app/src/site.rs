//! The demo's pages under `/` and Paceline's own files under `/paceline/`.
//!
//! Nothing is cached without asking: every answer has an entity tag, so that a reload after a rebuild never mixes files of
//! two builds.

use std::borrow::Cow;
use std::collections::hash_map::DefaultHasher;
use std::hash::{Hash, Hasher};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, HeaderValue, Response, StatusCode, Uri, header};
use axum::routing::get;

use crate::args::Args;
use crate::assets::{Source, is_worker_file, missing_worker};

/// The longest delay that a file can be asked to have.
const MAX_DELAY_MS: u64 = 10_000;
/// Own files and wasm; requests also to this machine's other addresses, where the strict server is another origin.
const CONTENT_SECURITY_POLICY: &str = "default-src 'self'; script-src 'self' 'wasm-unsafe-eval'; \
    worker-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data: blob:; \
    connect-src 'self' http://127.0.0.1:* https://127.0.0.1:* http://localhost:* https://localhost:*; \
    object-src 'none'; base-uri 'none'; frame-ancestors 'self'";

#[derive(Debug)]
struct Site {
    web: Source,
    modules: Source,
    worker: Source,
    worker_folder: Option<PathBuf>,
}

/// How long an answer is to be held back, for tests of slow networks.
#[derive(Debug, serde::Deserialize)]
struct Delay {
    delay_ms: Option<u64>,
}

/// Makes the routes of the pages and of `/paceline/`.
pub(crate) fn router(args: &Args) -> Router {
    let site = Site {
        web: Source::web(args.web.as_deref()),
        modules: Source::modules(args.sw.as_deref()),
        worker: Source::worker(args.pkg.as_deref()),
        worker_folder: args.pkg.clone(),
    };
    Router::new()
        .route("/paceline/{*name}", get(paceline))
        .fallback(get(page))
        .with_state(Arc::new(site))
}

async fn page(State(site): State<Arc<Site>>, uri: Uri, headers: HeaderMap) -> Response<Body> {
    let name = uri.path().trim_start_matches('/');
    let name = if name.is_empty() { "index.html" } else { name };
    match site.web.read(name).await {
        Some(bytes) => file(name, bytes, &headers),
        None => text(
            StatusCode::NOT_FOUND,
            &format!("there is no {}", uri.path()),
        ),
    }
}

async fn paceline(
    State(site): State<Arc<Site>>,
    Path(name): Path<String>,
    Query(delay): Query<Delay>,
    headers: HeaderMap,
) -> Response<Body> {
    if let Some(delay_ms) = delay.delay_ms {
        tokio::time::sleep(Duration::from_millis(delay_ms.min(MAX_DELAY_MS))).await;
    }
    let source = if is_worker_file(&name) {
        &site.worker
    } else {
        &site.modules
    };
    let mut response = match source.read(&name).await {
        Some(bytes) => file(&name, bytes, &headers),
        None => absent(&site, &name),
    };
    response
        .headers_mut()
        .insert("service-worker-allowed", HeaderValue::from_static("/"));
    response
}

fn absent(site: &Site, name: &str) -> Response<Body> {
    let reason = missing_worker(site.worker_folder.as_deref()).filter(|_| is_worker_file(name));
    match reason {
        Some(reason) => {
            let message = format!("the worker's wasm is missing: {reason}");
            text(StatusCode::SERVICE_UNAVAILABLE, &message)
        }
        None => text(
            StatusCode::NOT_FOUND,
            &format!("there is no /paceline/{name}"),
        ),
    }
}

fn file(name: &str, bytes: Cow<'static, [u8]>, asked: &HeaderMap) -> Response<Body> {
    let tag = tag(&bytes);
    let is_known = asked
        .get(header::IF_NONE_MATCH)
        .is_some_and(|known| knows(known, &tag));
    let mut response = Response::new(if is_known { Body::empty() } else { body(bytes) });
    if is_known {
        *response.status_mut() = StatusCode::NOT_MODIFIED;
    }
    let headers = response.headers_mut();
    headers.insert(
        header::CONTENT_TYPE,
        HeaderValue::from_static(content_type(name)),
    );
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    headers.insert(
        header::X_CONTENT_TYPE_OPTIONS,
        HeaderValue::from_static("nosniff"),
    );
    if let Ok(tag) = HeaderValue::from_str(&tag) {
        headers.insert(header::ETAG, tag);
    }
    if name.ends_with(".html") {
        let policy = HeaderValue::from_static(CONTENT_SECURITY_POLICY);
        headers.insert(header::CONTENT_SECURITY_POLICY, policy);
    }
    response
}

fn body(bytes: Cow<'static, [u8]>) -> Body {
    match bytes {
        Cow::Borrowed(bytes) => Body::from(bytes),
        Cow::Owned(bytes) => Body::from(bytes),
    }
}

fn tag(bytes: &[u8]) -> String {
    let mut hasher = DefaultHasher::new();
    bytes.hash(&mut hasher);
    format!("\"{:016x}\"", hasher.finish())
}

fn knows(known: &HeaderValue, tag: &str) -> bool {
    known.to_str().is_ok_and(|known| {
        known
            .split(',')
            .any(|one| one.trim().trim_start_matches("W/") == tag)
    })
}

fn content_type(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "wasm" => "application/wasm",
        "json" | "map" => "application/json",
        "webmanifest" => "application/manifest+json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "txt" | "md" => "text/plain; charset=utf-8",
        _ => "application/octet-stream",
    }
}

fn text(status: StatusCode, message: &str) -> Response<Body> {
    let mut response = Response::new(Body::from(format!("{message}\n")));
    *response.status_mut() = status;
    let content_type = HeaderValue::from_static("text/plain; charset=utf-8");
    response
        .headers_mut()
        .insert(header::CONTENT_TYPE, content_type);
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(worker_folder: Option<PathBuf>) -> State<Arc<Site>> {
        State(Arc::new(Site {
            web: Source::web(None),
            modules: Source::modules(None),
            worker: Source::worker(worker_folder.as_deref()),
            worker_folder,
        }))
    }

    async fn get_page(path: &'static str, headers: HeaderMap) -> Response<Body> {
        page(site(None), Uri::from_static(path), headers).await
    }

    fn header_of<'a>(response: &'a Response<Body>, name: &str) -> &'a str {
        response
            .headers()
            .get(name)
            .and_then(|value| value.to_str().ok())
            .unwrap_or_default()
    }

    #[tokio::test]
    async fn the_page_may_run_wasm_and_its_own_scripts_only() {
        let response = get_page("/", HeaderMap::new()).await;

        assert_eq!(response.status(), StatusCode::OK);
        assert!(
            header_of(&response, "content-security-policy")
                .contains("script-src 'self' 'wasm-unsafe-eval';")
        );
        assert_eq!(header_of(&response, "cache-control"), "no-cache");
    }

    #[tokio::test]
    async fn a_known_file_is_not_sent_again() {
        let first = get_page("/", HeaderMap::new()).await;
        let mut headers = HeaderMap::new();
        headers.insert(header::IF_NONE_MATCH, first.headers()[header::ETAG].clone());

        let second = get_page("/", headers).await;

        assert_eq!(second.status(), StatusCode::NOT_MODIFIED);
    }

    #[tokio::test]
    async fn no_path_leads_out_of_a_folder() {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
        let source = Source::web(Some(&root.join("demo-app/web")));

        assert!(source.read("index.html").await.is_some());
        for name in ["../src/main.rs", "js/../../src/main.rs", "/etc/passwd", ""] {
            assert!(source.read(name).await.is_none(), "{name}");
        }
    }

    #[tokio::test]
    async fn a_missing_worker_is_told_with_its_reason() {
        let empty = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("demo-app/web");
        let name = Path("paceline_sw_bg.wasm".to_owned());

        let response = paceline(
            site(Some(empty)),
            name,
            Query(Delay { delay_ms: None }),
            HeaderMap::new(),
        )
        .await;

        assert_eq!(response.status(), StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(header_of(&response, "service-worker-allowed"), "/");
    }

    #[test]
    fn modules_and_wasm_have_the_types_that_browsers_insist_on() {
        assert_eq!(content_type("client.js"), "text/javascript; charset=utf-8");
        assert_eq!(content_type("paceline_sw_bg.wasm"), "application/wasm");
    }
}
