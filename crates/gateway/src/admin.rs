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
use serde_json::json;
use tokio::net::TcpListener;
use tokio::sync::oneshot;

use crate::gateway::{House, Reloaded};
use crate::local::{self, host};
use crate::metrics::metrics;
use crate::page::{
    self, File, HTML, OPEN_METRICS, SCRIPT, as_dense_json, as_json, only, refuse, reply, since,
};

/// The files of the page itself. They hold no secret.
const FILES: &[File] = &[
    ("/", HTML, include_str!("admin/page.html")),
    ("/page.js", SCRIPT, include_str!("admin/page.js")),
];

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
    if reads && let Some(file) = page::file(FILES, path) {
        return file;
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
            Some(since) => as_dense_json(&house.history(since)),
            None => refuse(StatusCode::BAD_REQUEST, "expected nothing or since=NUMBER"),
        },
        (true, "/metrics") => {
            reply(StatusCode::OK, OPEN_METRICS, metrics(house.status(), house.times()))
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
