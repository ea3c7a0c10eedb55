//! How a running link is asked and told by HTTP.
//!
//! - `/status`, `/history` and `/metrics` are the state now, the last ten minutes, and what
//!   Prometheus reads.
//! - PUT or POST to `/settings` changes rates, buffers, framing and parameters.
//! - POST to `/stop` ends the link.
//!
//! All of it is for who may open the Unix socket, which is its owner's alone; no browser
//! can. The page has an address of its own, where nothing can be told.

use std::cell::RefCell;
use std::rc::Rc;

use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::{Body, Bytes, Incoming};
use serde_json::json;
use tidegate_gateway::local::{self, Door};
use tidegate_gateway::page::{
    File, HTML, OPEN_METRICS, SCRIPT, as_dense_json, as_json, file, only, refuse, reply, since,
};
use tidegate_link::{Change, Direction, Queue, Running, Second, Status};
use tokio::sync::Notify;

use super::changes::{self, Changes, Difference};
use super::metrics::metrics;
use super::state::State;
use crate::arguments::Fail;

/// The most that settings are read of.
const MOST_BYTES: usize = 64 << 10;

/// The files of the page.
const FILES: &[File] = &[
    ("/", HTML, include_str!("page/page.html")),
    ("/page.js", SCRIPT, include_str!("page/page.js")),
];

/// What is controlled: a link that runs.
pub(super) trait Live {
    /// Its state.
    fn status(&self) -> Status;
    /// What happened in each second from this one on, as far as it is known.
    fn history(&self, since_s: u64) -> Vec<(Direction, Vec<Second>)>;
    /// Changes what it has been tried on with success.
    fn change(&self, direction: Direction, change: &Change) -> Result<(), String>;
}

impl Live for Running {
    fn status(&self) -> Status {
        self.status()
    }

    fn history(&self, since_s: u64) -> Vec<(Direction, Vec<Second>)> {
        self.history(since_s)
    }

    fn change(&self, direction: Direction, change: &Change) -> Result<(), String> {
        self.change(direction, change).map_err(|reason| reason.to_string())
    }
}

/// A link with what it was told.
#[derive(Debug)]
pub(super) struct Control<Link> {
    pub(super) name: String,
    pub(super) fail: Fail,
    pub(super) link: Link,
    /// As they are now.
    pub(super) queues: RefCell<[(Direction, Queue); 2]>,
    /// Somebody wants it to end.
    pub(super) stop: Notify,
}

/// Who asks, and so what is permitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum From {
    /// Who may open the Unix socket.
    Owner,
    /// Whoever reaches the address of the page.
    Anybody,
}

/// Answers at `door` for ever.
pub(super) async fn serve<Link: Live + 'static>(
    control: Rc<Control<Link>>,
    door: impl Door,
    from: From,
) {
    local::serve(door, move |request: Request<Incoming>| {
        let control = control.clone();
        async move { control.answer(request, from).await }
    })
    .await;
}

impl<Link: Live> Control<Link> {
    /// The state, with the name.
    pub(super) fn state(&self) -> State {
        State { name: self.name.clone(), fail: self.fail, status: self.link.status() }
    }

    async fn answer<Content>(&self, request: Request<Content>, from: From) -> Response<Full<Bytes>>
    where
        Content: Body,
        Content::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        // No page in a browser can open a Unix socket.
        if from == From::Anybody && local::host(&request).is_none() {
            let text = "this page is asked for by address or as localhost";
            return refuse(StatusCode::FORBIDDEN, text);
        }
        let reads = matches!(*request.method(), Method::GET | Method::HEAD);
        let path = request.uri().path();
        if reads
            && from == From::Anybody
            && let Some(file) = file(FILES, path)
        {
            return file;
        }
        match (reads, path) {
            (true, "/status") => as_json(StatusCode::OK, &self.state()),
            (true, "/history") => match since(request.uri().query()) {
                Some(since) => as_dense_json(&self.history(since)),
                None => refuse(StatusCode::BAD_REQUEST, "expected nothing or since=SECOND"),
            },
            (true, "/metrics") => reply(StatusCode::OK, OPEN_METRICS, metrics(self.state())),
            (false, "/status" | "/history" | "/metrics") => only("GET"),
            (_, "/settings" | "/stop") if from == From::Anybody => {
                refuse(StatusCode::FORBIDDEN, "a link is controlled by its Unix socket alone")
            }
            (false, "/settings") if matches!(*request.method(), Method::PUT | Method::POST) => {
                self.set(request).await
            }
            (_, "/settings") => only("PUT, POST"),
            (false, "/stop") if *request.method() == Method::POST => {
                self.stop.notify_one();
                as_json(StatusCode::OK, &json!({ "stops": self.name }))
            }
            (_, "/stop") => only("POST"),
            _ if from == From::Anybody => {
                refuse(StatusCode::NOT_FOUND, "there are /, /status, /history and /metrics")
            }
            _ => refuse(
                StatusCode::NOT_FOUND,
                "there are /status, /history, /metrics, /settings and /stop",
            ),
        }
    }

    fn history(&self, since: u64) -> serde_json::Value {
        let queues = self.link.history(since).into_iter();
        let queues: Vec<_> = queues
            .map(|(direction, seconds)| json!({ "direction": direction, "seconds": seconds }))
            .collect();
        json!({ "queues": queues })
    }

    async fn set<Content>(&self, request: Request<Content>) -> Response<Full<Bytes>>
    where
        Content: Body,
        Content::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let Ok(body) = Limited::new(request.into_body(), MOST_BYTES).collect().await else {
            return refuse(
                StatusCode::PAYLOAD_TOO_LARGE,
                "the settings are not all here, or too long",
            );
        };
        let outcome = changes::read(&body.to_bytes()).and_then(|changes| self.change(&changes));
        match outcome {
            Ok(differences) => as_json(StatusCode::OK, &json!({ "changes": differences })),
            Err(error) => as_json(StatusCode::UNPROCESSABLE_ENTITY, &json!({ "error": error })),
        }
    }

    /// Makes all of the changes, or none.
    fn change(&self, changes: &Changes) -> Result<Vec<Difference>, String> {
        let mut queues = self.queues.borrow_mut();
        let mut after = queues.clone();
        for (direction, change) in changes {
            let of_it = after.iter_mut().find(|(known, _)| known == direction);
            let (_, queue) = of_it.expect("a link has both directions");
            *queue = changes::changed(*direction, queue, change)?;
        }
        for (direction, change) in changes {
            self.link.change(*direction, change)?;
        }
        let pairs = queues.iter().zip(&after);
        let differences = pairs.flat_map(|((direction, before), (_, after))| {
            changes::differences(*direction, before, after)
        });
        let differences = differences.collect();
        *queues = after;
        Ok(differences)
    }
}
