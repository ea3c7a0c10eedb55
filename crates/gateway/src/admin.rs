//! The admin port: what the gateway says about itself, and what it can be told.
//!
//! - `/` is a page that shows what happens; it takes its figures from the others.
//! - `/status`, `/history` and `/metrics` are the state now, the last ten minutes, and
//!   what Prometheus reads.
//! - POST to `/reload` has the settings read again.
//!
//! Whoever may connect may ask, unless the settings name a token: then all but the files
//! of the page take it in `Authorization: Bearer`. A POST that a page of another origin
//! sends is refused in any case, besides what [`local`] refuses. The page loads nothing
//! from elsewhere, and its policy says so to the browser.

use std::rc::Rc;

use http::header::{self, AUTHORIZATION, HeaderValue, ORIGIN};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use serde::Serialize;
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::gateway::{House, Reloaded};
use crate::local::{self, TEXT, host};
use crate::metrics::metrics;

const JSON: &str = "application/json";
const SCRIPT: &str = "text/javascript; charset=utf-8";
const STYLE: &str = "text/css; charset=utf-8";
/// As OpenMetrics 1.0 names its text form.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// The files of the page, with their types. They hold no secret.
const FILES: &[(&str, &str, &str)] = &[
    ("/", "text/html; charset=utf-8", include_str!("admin/page.html")),
    ("/page.css", STYLE, include_str!("admin/page.css")),
    ("/page.js", SCRIPT, include_str!("admin/page.js")),
    ("/plots.js", SCRIPT, include_str!("admin/plots.js")),
    ("/uplot/uPlot.iife.min.js", SCRIPT, include_str!("admin/uplot/uPlot.iife.min.js")),
    ("/uplot/uPlot.min.css", STYLE, include_str!("admin/uplot/uPlot.min.css")),
    ("/uplot/LICENSE", TEXT, include_str!("admin/uplot/LICENSE")),
];

/// Only what comes from here, and nobody frames it.
const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'";

/// Answers at the admin port for ever.
pub(crate) async fn serve(house: Rc<House>, listener: TcpListener) {
    local::serve(listener, move |request| {
        let house = house.clone();
        async move { answer(&house, &request).await }
    })
    .await;
}

async fn answer(house: &House, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    let path = request.uri().path();
    let Some(host) = host(request) else {
        return refuse(StatusCode::FORBIDDEN, "this port is asked for by address or as localhost");
    };
    let reads = matches!(*request.method(), Method::GET | Method::HEAD);
    if reads && let Some((_, kind, text)) = FILES.iter().find(|(name, ..)| *name == path) {
        return reply(StatusCode::OK, kind, *text);
    }
    if !is_permitted(house, request) {
        let mut response = refuse(StatusCode::UNAUTHORIZED, "the token of this gateway is missing");
        let challenge = HeaderValue::from_static("Bearer realm=\"tidegate\"");
        response.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
        return response;
    }
    match (reads, path) {
        (true, "/status") => as_json(StatusCode::OK, &house.status()),
        (true, "/history") => match since(request.uri().query()) {
            Some(since) => {
                // Without a line for each of thousands of numbers.
                let text = serde_json::to_string(&house.history(since));
                reply(StatusCode::OK, JSON, text.expect("it is plain JSON") + "\n")
            }
            None => refuse(StatusCode::BAD_REQUEST, "expected nothing or since=NUMBER"),
        },
        (true, "/metrics") => {
            reply(StatusCode::OK, METRICS, metrics(house.status(), house.times()))
        }
        (false, "/reload") if *request.method() != Method::POST => only("POST"),
        (false, "/reload") if !is_from(request, &host) => {
            refuse(StatusCode::FORBIDDEN, "a page of another origin asks for it")
        }
        (false, "/reload") => reload(house).await,
        (true, "/reload") => only("POST"),
        (false, "/status" | "/history" | "/metrics") => only("GET"),
        _ => refuse(StatusCode::NOT_FOUND, "there are /, /status, /history, /metrics and /reload"),
    }
}

/// Has the settings read again, and says what came of it.
async fn reload(house: &House) -> Response<Full<Bytes>> {
    let (asked, outcome) = oneshot::channel::<Reloaded>();
    if house.reloads.try_send(asked).is_err() {
        return refuse(StatusCode::SERVICE_UNAVAILABLE, "nobody reads the settings again");
    }
    match outcome.await {
        Ok(Ok(changes)) => as_json(StatusCode::OK, &json!({ "changes": changes })),
        Ok(Err(error)) => as_json(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "error": error })),
        Err(_) => refuse(StatusCode::SERVICE_UNAVAILABLE, "nobody reads the settings again"),
    }
}

/// Whether no page of another origin sent it: browsers name the origin of what is not a
/// mere GET (Fetch, "origin header"), and other programs name none.
fn is_from(request: &Request<Incoming>, host: &Authority) -> bool {
    let Some(origin) = request.headers().get(ORIGIN) else { return true };
    let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
    origin.is_some_and(|(_, authority)| authority == host.as_str())
}

/// Whether it has the token, if one is needed.
fn is_permitted(house: &House, request: &Request<Incoming>) -> bool {
    let config = house.config.get();
    let Some(token) = &config.admin_token else { return true };
    let given = request.headers().get(AUTHORIZATION).map(HeaderValue::as_bytes);
    let (scheme, given) = given.unwrap_or_default().split_at_checked(7).unwrap_or_default();
    scheme.eq_ignore_ascii_case(b"bearer ") && token.is(given)
}

/// The number in `since=NUMBER`, 0 where there is none.
fn since(query: Option<&str>) -> Option<u64> {
    query.map_or(Some(0), |query| query.strip_prefix("since=")?.parse().ok())
}

fn as_json(status: StatusCode, value: &impl Serialize) -> Response<Full<Bytes>> {
    let text = serde_json::to_string_pretty(value).expect("it is plain JSON");
    reply(status, JSON, text + "\n")
}

fn refuse(status: StatusCode, text: &str) -> Response<Full<Bytes>> {
    reply(status, TEXT, format!("{text}\n"))
}

fn only(method: &'static str) -> Response<Full<Bytes>> {
    let mut response = refuse(StatusCode::METHOD_NOT_ALLOWED, &format!("only {method}"));
    response.headers_mut().insert(header::ALLOW, HeaderValue::from_static(method));
    response
}

fn reply(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Full<Bytes>> {
    local::reply(status, kind, POLICY, Full::new(text.into()))
}
