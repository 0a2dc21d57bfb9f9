//! Starting, changing and asking accounts.

use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::{DefaultBodyLimit, Path, Request, State};
use axum::http::{HeaderValue, Method, Response, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{Html, IntoResponse};
use axum::routing::{any, get};
use serde_json::{Value, json};

use crate::accounts::Accounts;
use crate::api::{self, read_body};
use crate::cors::Asker;
use crate::problem::Problem;
use crate::report::{Part, Report};
use crate::scenario::Scenario;

/// The largest scenario.
const MAX_SCENARIO: usize = 1 << 20;
/// The longest account name.
const MAX_NAME: usize = 128;

/// Makes a server without accounts: `/strict/...` and `/blank`.
///
/// Faults that cut a connection need it to be run by [`crate::Bound::run`]; under any other server such a request is
/// answered in full. Clones share their accounts.
pub fn router() -> Router {
    let control = Router::new()
        .route(
            "/strict/{account}",
            get(scenario).put(start).patch(change).delete(end),
        )
        .route("/strict/{account}/report", get(report))
        .route("/blank", get(blank))
        .layer(middleware::from_fn(cross_origin));
    let mock = Router::new()
        .route("/strict/{account}/api", any(api::handle))
        .route("/strict/{account}/api/", any(api::handle))
        .route("/strict/{account}/api/{*path}", any(api::handle));
    control
        .merge(mock)
        .layer(DefaultBodyLimit::disable())
        .with_state(Arc::new(Accounts::default()))
}

/// Lets any origin use the control routes, so that a test's page may.
async fn cross_origin(request: Request, next: Next) -> Response<Body> {
    let (parts, body) = request.into_parts();
    let asker = Asker::of(&parts);
    if parts.method == Method::OPTIONS {
        return asker.preflight();
    }
    let mut response = next.run(Request::from_parts(parts, body)).await;
    asker.admit(response.headers_mut());
    response
        .headers_mut()
        .insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    response
}

async fn blank() -> Html<&'static str> {
    Html(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><title>blank</title><body></body></html>",
    )
}

async fn start(
    State(accounts): State<Arc<Accounts>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response<Body>, Refused> {
    if name.len() > MAX_NAME {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad account",
            "a name has at most 128 bytes",
        )
        .into());
    }
    let scenario = parse(&Scenario::default(), request).await?;
    let shown = json!(scenario);
    let status = if accounts.start(&name, scenario) {
        StatusCode::CREATED
    } else {
        StatusCode::OK
    };
    Ok(answer(status, &shown))
}

async fn change(
    State(accounts): State<Arc<Accounts>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response<Body>, Refused> {
    let account = accounts
        .find(&name)
        .ok_or_else(|| Problem::no_account(&name))?;
    let body = read_json(request).await?;
    let (now_us, mut judge) = account.now();
    let next = judge
        .scenario
        .patched(&body)
        .map_err(|bad| Problem::bad_field(&bad))?;
    judge.patch(now_us, next);
    Ok(answer(StatusCode::OK, &json!(judge.scenario)))
}

async fn scenario(
    State(accounts): State<Arc<Accounts>>,
    Path(name): Path<String>,
) -> Result<Response<Body>, Refused> {
    let account = accounts
        .find(&name)
        .ok_or_else(|| Problem::no_account(&name))?;
    let (_, judge) = account.now();
    Ok(answer(StatusCode::OK, &json!(judge.scenario)))
}

async fn end(
    State(accounts): State<Arc<Accounts>>,
    Path(name): Path<String>,
) -> Result<StatusCode, Refused> {
    if accounts.end(&name) {
        Ok(StatusCode::NO_CONTENT)
    } else {
        Err(Problem::no_account(&name).into())
    }
}

async fn report(
    State(accounts): State<Arc<Accounts>>,
    Path(name): Path<String>,
    request: Request,
) -> Result<Response<Body>, Refused> {
    let account = accounts
        .find(&name)
        .ok_or_else(|| Problem::no_account(&name))?;
    let part = part(request.uri().query().unwrap_or_default())?;
    let report = {
        let (now_us, mut judge) = account.now();
        Report::of(&mut judge, now_us, part)
    };
    let written = tokio::task::spawn_blocking(move || serde_json::to_vec(&report).ok()).await;
    let text = written.ok().flatten().ok_or_else(|| {
        Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "report failed",
            "the report cannot be written as JSON",
        )
    })?;
    Ok(([(header::CONTENT_TYPE, "application/json")], text).into_response())
}

/// Reads `since=N` and `summary=1`.
fn part(query: &str) -> Result<Part, Problem> {
    let mut part = Part::Since(0);
    for pair in query.split('&').filter(|pair| !pair.is_empty()) {
        part = match pair.split_once('=').unwrap_or((pair, "")) {
            ("summary", "1" | "true") => return Ok(Part::Summary),
            ("since", index) => Part::Since(index.parse().map_err(|_| bad_query(pair))?),
            _ => return Err(bad_query(pair)),
        };
    }
    Ok(part)
}

fn bad_query(pair: &str) -> Problem {
    let detail = format!("expected since=N or summary=1, got {pair:?}");
    Problem::new(StatusCode::BAD_REQUEST, "bad query", &detail)
}

async fn parse(base: &Scenario, request: Request) -> Result<Scenario, Problem> {
    let body = read_json(request).await?;
    base.patched(&body).map_err(|bad| Problem::bad_field(&bad))
}

async fn read_json(request: Request) -> Result<Value, Problem> {
    let body = read_body(request.into_body(), MAX_SCENARIO).await?;
    serde_json::from_slice(&body).map_err(|error| {
        let detail = format!("expected a scenario as JSON: {error}");
        Problem::new(StatusCode::BAD_REQUEST, "bad scenario", &detail)
            .with("field", json!("(the whole scenario)"))
    })
}

fn answer(status: StatusCode, body: &Value) -> Response<Body> {
    (
        status,
        [(header::CONTENT_TYPE, "application/json")],
        body.to_string(),
    )
        .into_response()
}

/// A problem as a handler's error, boxed to keep results small.
struct Refused(Box<Problem>);

impl From<Problem> for Refused {
    fn from(problem: Problem) -> Self {
        Self(Box::new(problem))
    }
}

impl IntoResponse for Refused {
    fn into_response(self) -> Response<Body> {
        self.0.response()
    }
}
