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

#[cfg(test)]
mod tests {
    use std::path::PathBuf;
    use std::sync::mpsc;

    use serde_json::Value;
    use tidegate_core::Rate;
    use tidegate_core::framing::Framing;
    use tidegate_core::registry;
    use tidegate_link::QueueStatus;
    use tokio::net::{TcpListener, UnixListener};
    use tokio::task::LocalSet;

    use super::*;
    use crate::asked::{self, Answer};
    use crate::link::socket;

    /// A link that carries nothing, and notes what it is told.
    struct Fake(mpsc::Sender<(Direction, Change)>);

    impl Live for Fake {
        fn status(&self) -> Status {
            let queue =
                |direction| QueueStatus { direction: Some(direction), ..QueueStatus::default() };
            Status { queues: Direction::BOTH.map(queue).into(), ..Status::default() }
        }

        fn history(&self, since_s: u64) -> Vec<(Direction, Vec<Second>)> {
            vec![(Direction::Up, vec![Second { at_s: since_s, ..Second::default() }])]
        }

        fn change(&self, direction: Direction, change: &Change) -> Result<(), String> {
            self.0.send((direction, change.clone())).map_err(|reason| reason.to_string())
        }
    }

    /// Runs `test` beside a fake link, with its folder, the address of its page, and what it
    /// is told.
    fn beside(
        name: &str,
        test: impl FnOnce(&PathBuf, std::net::SocketAddr, &mpsc::Receiver<(Direction, Change)>)
        + Send
        + 'static,
    ) {
        let folder = std::env::temp_dir().join(format!("tidegate-{name}-{}", std::process::id()));
        let held = socket::take(&folder, "fake").unwrap();
        let (told, heard) = mpsc::channel();
        let entry = registry::find("efd").unwrap();
        let settings = entry.settings(&[]).unwrap();
        let limit = "100 ms".parse().unwrap();
        let queue = Queue { entry, settings, limit, rate: Rate(1_000_000), framing: Framing::RAW };
        let queues = Direction::BOTH.map(|direction| (direction, queue.clone())).into();
        let control = Control {
            name: "fake".into(),
            fail: Fail::Open,
            link: Fake(told),
            queues,
            stop: Notify::new(),
        };
        let control = Rc::new(control);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        LocalSet::new().block_on(&runtime, async {
            let page = TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = page.local_addr().unwrap();
            let owner = UnixListener::from_std(held.listener.try_clone().unwrap()).unwrap();
            let inside = folder.clone();
            let tested = tokio::task::spawn_blocking(move || test(&inside, address, &heard));
            tokio::select! {
                () = serve(control.clone(), owner, From::Owner) => {}
                () = serve(control.clone(), page, From::Anybody) => {}
                tested = tested => tested.unwrap(),
            }
        });
        drop(held);
        std::fs::remove_dir(&folder).unwrap();
    }

    fn ask(folder: &std::path::Path, line: &str, body: &str) -> (u16, Value) {
        let mut stream = socket::connect(folder, "fake").unwrap();
        let Answer { status, body } =
            asked::ask(&mut stream, line, "Host: localhost\r\n", body).unwrap();
        (status, serde_json::from_str(&body).unwrap_or(Value::String(body)))
    }

    #[test]
    fn the_owner_reads_and_sets_all_or_nothing() {
        beside("control-set", |folder, _, heard| {
            let (status, state) = ask(folder, "GET /status", "");
            assert_eq!(
                (status, &state["name"], &state["fail"]),
                (200, &"fake".into(), &"open".into())
            );
            assert_eq!(state["queues"][1]["direction"], "up");
            let (_, history) = ask(folder, "GET /history?since=7", "");
            assert_eq!(history["queues"][0]["seconds"][0]["at_s"], 7);
            assert_eq!(ask(folder, "GET /history?before=7", "").0, 400);
            let (status, metrics) = ask(folder, "GET /metrics", "");
            assert!(status == 200 && metrics.as_str().unwrap().ends_with("# EOF\n"));

            let wrong =
                r#"{"down": {"rate": "2 Mbit/s"}, "up": {"parameters": {"threshold": "x"}}}"#;
            let (status, answer) = ask(folder, "PUT /settings", wrong);
            let error = answer["error"].as_str().unwrap();
            assert!(status == 422 && error.starts_with("up.parameters: threshold of 'efd': 'x'"));
            assert!(heard.try_recv().is_err(), "nothing holds of it");

            let right =
                r#"{"down": {"rate": "2 Mbit/s"}, "up": {"parameters": {"threshold": "9 kB"}}}"#;
            for line in ["PUT /settings", "POST /settings"] {
                let (status, answer) = ask(folder, line, right);
                let changes = answer["changes"].as_array().unwrap();
                assert_eq!(
                    (status, changes.len()),
                    (200, if line.starts_with("PUT") { 2 } else { 0 })
                );
                let (direction, change) = heard.recv().unwrap();
                assert_eq!((direction, change.rate), (Direction::Down, Some(Rate(2_000_000))));
                let (direction, change) = heard.recv().unwrap();
                let threshold = ("threshold".to_string(), "9 kB".to_string());
                assert_eq!((direction, change.parameters), (Direction::Up, vec![threshold]));
            }
            let long = format!("\"{}\"", "x".repeat(MOST_BYTES));
            assert_eq!(ask(folder, "PUT /settings", &long).0, 413);
        });
    }

    #[test]
    fn methods_and_paths_that_are_not_there_are_refused() {
        beside("control-paths", |folder, _, _| {
            for (line, expected) in [
                ("GET /stop", 405),
                ("DELETE /settings", 405),
                ("POST /status", 405),
                ("GET /", 404),
                ("POST /stop", 200),
            ] {
                assert_eq!(ask(folder, line, "").0, expected, "{line}");
            }
        });
    }

    #[test]
    fn the_page_shows_all_and_changes_nothing() {
        beside("control-page", |_, address, heard| {
            let ask = |line: &str, host: &str| {
                let mut stream = std::net::TcpStream::connect(address).unwrap();
                let fields = format!("Host: {host}\r\n");
                asked::ask(&mut stream, line, &fields, "{}").unwrap()
            };
            let page = ask("GET /", "localhost");
            assert_eq!(page.status, 200);
            // All that it loads is there, and nothing of it is elsewhere.
            let loads = page.body.split(['"']).filter(|it| it.starts_with('/'));
            let mut count = 0;
            for path in loads {
                assert_eq!(ask(&format!("GET {path}"), "127.0.0.1").status, 200, "{path}");
                count += 1;
            }
            assert!(count >= 8 && !page.body.contains("http"), "{count}");
            for line in ["POST /stop", "PUT /settings", "POST /settings"] {
                assert_eq!(ask(line, "localhost").status, 403, "{line}");
            }
            assert_eq!(ask("GET /status", "example.org").status, 403);
            assert!(heard.try_recv().is_err());
        });
    }
}
