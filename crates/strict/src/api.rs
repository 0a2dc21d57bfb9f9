//! The mock API of an account: one request from its last byte read to its answer.
//!
//! Once a request has been read it is carried out to its end, also when its client goes away meanwhile, as a real server
//! would; what a client cannot know, the report does.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::{Path, Request, State};
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Method, Response, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt, Collected, LengthLimitError, Limited};
use hyper::body::Body as _;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::accounts::{Account, Accounts, wall_us};
use crate::cors::Asker;
use crate::cut::{Cut, half};
use crate::dialect::{self, Moment, http_date};
use crate::judge::{Answer, Judge, Verdict};
use crate::problem::Problem;
use crate::record::Call;
use crate::scenario::{Dialect, FaultKind, Scenario};

/// The largest request body.
pub(crate) const MAX_BODY: usize = 32 << 20;
/// The longest idempotency key.
const MAX_KEY: usize = 255;
const IDEMPOTENCY_KEY: HeaderName = HeaderName::from_static("idempotency-key");

/// Answers anything below `/strict/{account}/api`.
pub(crate) async fn handle(
    State(accounts): State<Arc<Accounts>>,
    Path(path): Path<Vec<(String, String)>>,
    request: Request,
) -> Response<Body> {
    let name = path
        .first()
        .map(|(_, name)| name.as_str())
        .unwrap_or_default();
    let (parts, body) = request.into_parts();
    let asker = Asker::of(&parts);
    let Some(account) = accounts.find(name) else {
        return readable(&asker, Problem::no_account(name).response());
    };
    if parts.method == Method::OPTIONS {
        return preflight(&account, &asker);
    }
    match read(&parts, body).await {
        Ok(call) => carry_out(account, call, asker).await,
        Err(problem) => readable(&asker, problem.response()),
    }
}

fn readable(asker: &Asker, mut response: Response<Body>) -> Response<Body> {
    asker.admit(response.headers_mut());
    response
}

fn preflight(account: &Account, asker: &Asker) -> Response<Body> {
    let (now_us, mut judge) = account.now();
    let Some(refusal) = judge.preflight(now_us) else {
        return asker.preflight();
    };
    let response = dialect::refusal(judge.scenario.dialect, &refusal).response();
    readable(asker, response)
}

async fn read(parts: &Parts, body: Body) -> Result<Call, Problem> {
    let key = parts
        .headers
        .get(IDEMPOTENCY_KEY)
        .map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    if key
        .as_ref()
        .is_some_and(|key| key.is_empty() || key.len() > MAX_KEY)
    {
        let detail = format!("an idempotency key has 1 to {MAX_KEY} characters");
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "bad idempotency key",
            &detail,
        ));
    }
    let authorization = parts.headers.get(header::AUTHORIZATION);
    let authorization =
        authorization.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    let body = read_body(body, MAX_BODY).await?;
    Ok(Call {
        method: parts.method.to_string(),
        path: below_api(parts),
        key,
        authorization,
        body,
    })
}

/// Reads a body up to a bound; one that announces more is not read at all.
pub(crate) async fn read_body(body: Body, most: usize) -> Result<Bytes, Problem> {
    if usize::try_from(body.size_hint().lower()).is_ok_and(|announced| announced <= most) {
        let read = Limited::new(body, most).collect().await;
        read.map(Collected::to_bytes).map_err(|error| {
            if error.is::<LengthLimitError>() {
                too_large(most)
            } else {
                broken_off()
            }
        })
    } else {
        Err(too_large(most))
    }
}

fn too_large(most: usize) -> Problem {
    let detail = format!("a body has at most {most} bytes");
    Problem::new(StatusCode::PAYLOAD_TOO_LARGE, "body too large", &detail)
}

fn broken_off() -> Problem {
    let detail = "the body did not come to its end";
    Problem::new(StatusCode::BAD_REQUEST, "body broken off", detail)
}

/// The part of a path that follows `/strict/{account}/api`, with its query.
fn below_api(parts: &Parts) -> String {
    let whole = parts.uri.path_and_query().map_or("/", |path| path.as_str());
    let below = whole.splitn(5, '/').nth(4).unwrap_or_default();
    format!("/{}", below)
}

/// A place among the requests in flight, given back when it is dropped.
struct Seat {
    account: Arc<Account>,
    holds: bool,
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.account.now().1.gone(self.holds);
    }
}

async fn carry_out(account: Arc<Account>, call: Call, asker: Asker) -> Response<Body> {
    let work = tokio::spawn(work(account, call, asker));
    let Ok((response, seat)) = work.await else {
        return Problem::new(
            StatusCode::INTERNAL_SERVER_ERROR,
            "judge failed",
            "see the server's log",
        )
        .response();
    };
    if response.extensions().get::<Cut>() == Some(&Cut::Hang) {
        std::future::pending::<()>().await;
    }
    drop(seat);
    response
}

async fn work(account: Arc<Account>, call: Call, asker: Asker) -> (Response<Body>, Seat) {
    let arrival = {
        let (now_us, mut judge) = account.now();
        judge.arrive(now_us)
    };
    let mut seat = Seat {
        account: Arc::clone(&account),
        holds: arrival.holds(),
    };
    wait(&account, arrival.arrived_us, arrival.decide_after_us).await;
    let mut verdict = {
        let (now_us, mut judge) = account.now();
        judge.decide(now_us, &arrival, &call)
    };
    seat.holds = verdict.holds();
    wait(&account, arrival.arrived_us, arrival.answer_after_us).await;
    let (now_us, mut judge) = account.now();
    judge.leave(now_us, &mut verdict);
    let response = respond(&judge, &verdict, &asker, arrival.number);
    drop(judge);
    (response, seat)
}

async fn wait(account: &Account, from_us: u64, after_us: u64) {
    if after_us > 0 {
        sleep_until(Instant::from_std(account.instant(from_us + after_us))).await;
    }
}

fn respond(judge: &Judge, verdict: &Verdict, asker: &Asker, number: u64) -> Response<Body> {
    let scenario = &judge.scenario;
    let mut response = plain(scenario, verdict);
    let fields = fields(judge, verdict, number);
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::from_str(&value) {
            response
                .headers_mut()
                .insert(HeaderName::from_static(name), value);
        }
    }
    let fault = verdict.fault.as_ref().map(|fault| fault.kind);
    let is_refusal = matches!(verdict.answer, Answer::Refused(_));
    let is_hidden = is_refusal && !scenario.cors_on_refusals;
    if fault != Some(FaultKind::NoCors) && !is_hidden {
        asker.admit(response.headers_mut());
        if scenario.expose_headers {
            asker.expose(response.headers_mut());
        }
    }
    cut(response, fault)
}

/// Status, type and body.
fn plain(scenario: &Scenario, verdict: &Verdict) -> Response<Body> {
    match &verdict.answer {
        Answer::Served { status, body, .. } => {
            let body = dialect::served(scenario.dialect, &verdict.views, body.clone());
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = StatusCode::from_u16(*status).unwrap_or(StatusCode::OK);
            response.headers_mut().insert(
                header::CONTENT_TYPE,
                HeaderValue::from_static("application/json"),
            );
            response
        }
        Answer::Refused(refusal) => dialect::refusal(scenario.dialect, refusal).response(),
        Answer::KeyInFlight => key_problem(
            scenario,
            409,
            "the first request with this key is still at work",
        ),
        Answer::KeyReused => key_problem(
            scenario,
            422,
            "this key belongs to a request with another body",
        ),
        Answer::Faulted { status, .. } => {
            let status = StatusCode::from_u16(*status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
            Problem::new(status, "fault", "the scenario asked for this answer").response()
        }
    }
}

fn key_problem(scenario: &Scenario, status: u16, detail: &str) -> Response<Body> {
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::CONFLICT);
    let problem = Problem::new(status, "idempotency key", detail);
    match scenario.dialect {
        Dialect::Stripe => problem.with(
            "error",
            json!({ "type": "idempotency_error", "message": detail }),
        ),
        Dialect::Ietf
        | Dialect::IetfTriple
        | Dialect::Github
        | Dialect::Hubspot
        | Dialect::Shopify
        | Dialect::Body
        | Dialect::None => problem,
    }
    .response()
}

fn fields(judge: &Judge, verdict: &Verdict, number: u64) -> dialect::Fields {
    let scenario = &judge.scenario;
    let clock_us = judge.clock_us(wall_us());
    let refusal = match &verdict.answer {
        Answer::Refused(refusal) => Some(refusal),
        Answer::Served { .. }
        | Answer::KeyInFlight
        | Answer::KeyReused
        | Answer::Faulted { .. } => None,
    };
    let moment = Moment {
        views: &verdict.views,
        places: judge.places(),
        clock_us,
        refusal,
    };
    let mut fields = dialect::budget(scenario.dialect, &moment);
    fields.push(("date", http_date(clock_us / 1_000_000)));
    let asked = dialect::retry_after(scenario.retry_after(), scenario.dialect, &moment);
    let faulted = match &verdict.answer {
        Answer::Faulted { retry_after_s, .. } => retry_after_s.map(|seconds| seconds.to_string()),
        Answer::Served { .. } | Answer::Refused(_) | Answer::KeyInFlight | Answer::KeyReused => {
            None
        }
    };
    fields.extend(asked.or(faulted).map(|value| ("retry-after", value)));
    if matches!(verdict.answer, Answer::Served { replayed: true, .. }) {
        fields.push(("idempotent-replayed", "true".to_owned()));
    }
    if scenario.dialect == Dialect::Stripe {
        fields.push(("request-id", format!("req_{number}")));
        if verdict.answer == Answer::KeyInFlight {
            fields.push(("stripe-should-retry", "true".to_owned()));
        }
    }
    fields
}

fn cut(mut response: Response<Body>, fault: Option<FaultKind>) -> Response<Body> {
    let cut = match fault {
        None | Some(FaultKind::Status | FaultKind::NoCors) => return response,
        Some(FaultKind::Truncate) => return half(response, Duration::from_millis(20)),
        Some(FaultKind::DropBeforeApply | FaultKind::DropAfterApply) => Cut::Close,
        Some(FaultKind::Reset) => Cut::Reset,
        Some(FaultKind::Hang) => Cut::Hang,
    };
    response.extensions_mut().insert(cut);
    response
}
