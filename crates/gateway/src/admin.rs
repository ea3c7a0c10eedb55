//! The admin port: what the gateway says about itself, to this machine.

use std::convert::Infallible;
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use http::header::{CONTENT_TYPE, HOST};
use http::uri::Authority;
use http::{Method, Request, Response, StatusCode};
use http_body_util::Full;
use hyper::body::{Bytes, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;

use crate::gateway::{House, PAUSE};

/// Connections at the same time: some scrapers and a few people.
const MOST_CONNECTIONS: usize = 32;
/// The time for the head of a request, and between two.
const PATIENCE: Duration = Duration::from_secs(30);
/// As OpenMetrics 1.0 names its text form.
const METRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

/// Answers at the admin port for ever.
pub(crate) async fn serve(house: Rc<House>, listener: TcpListener) {
    let places = Arc::new(Semaphore::new(MOST_CONNECTIONS));
    loop {
        let Ok(place) = places.clone().acquire_owned().await else { return };
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(PAUSE).await;
            continue;
        };
        let house = house.clone();
        tokio::task::spawn_local(async move {
            let answer = service_fn(|request| {
                let answer = answer(&house, &request);
                async { Ok::<_, Infallible>(answer) }
            });
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(PATIENCE);
            // What a client does to its own connection is its business.
            let _ = http.serve_connection(TokioIo::new(stream), answer).await;
            drop(place);
        });
    }
}

fn answer(house: &House, request: &Request<Incoming>) -> Response<Full<Bytes>> {
    if !is_meant(request) {
        return reply(
            StatusCode::FORBIDDEN,
            "text/plain",
            "this port is for this machine\n".into(),
        );
    }
    match (request.method(), request.uri().path()) {
        (&Method::GET, "/status") => {
            let status = serde_json::to_string_pretty(&house.status());
            let text = status.expect("a status is plain JSON") + "\n";
            reply(StatusCode::OK, "application/json", text)
        }
        (&Method::GET, "/metrics") => reply(StatusCode::OK, METRICS, house.status().metrics()),
        (&Method::GET, _) => {
            reply(StatusCode::NOT_FOUND, "text/plain", "there are /status and /metrics\n".into())
        }
        _ => reply(StatusCode::METHOD_NOT_ALLOWED, "text/plain", "only GET\n".into()),
    }
}

/// Whether it names this machine. A page in a browser here can have any name resolve to
/// loopback, and would read the answer as its own.
fn is_meant(request: &Request<Incoming>) -> bool {
    let host = request.headers().get(HOST).and_then(|host| host.to_str().ok());
    let Some(authority) = host.and_then(|host| host.parse::<Authority>().ok()) else {
        return false;
    };
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

fn reply(status: StatusCode, kind: &'static str, text: String) -> Response<Full<Bytes>> {
    let mut response = Response::new(Full::from(text));
    *response.status_mut() = status;
    response.headers_mut().insert(CONTENT_TYPE, http::HeaderValue::from_static(kind));
    response
}
