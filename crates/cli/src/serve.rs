//! `tidegate serve`: the results in a folder, in a browser on this machine.
//!
//! A page lists the results, the newest first, and follows new ones as they come. Each has
//! its report, and any of them can be set side by side. The server listens on the loopback
//! interface only, and answers no name but this machine's. It gives out the files that a
//! manifest names, and figures, and nothing else. Reports may come from somebody else: the
//! browser is told to run nothing in them and to fetch nothing for them.

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::SystemTime;

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use http_body_util::{Either, Full};
use hyper::body::{Body, Frame, Incoming};
use percent_encoding::percent_decode_str;
use tidegate_gateway::local::{self, TEXT, reply};
use tokio::net::TcpListener;
use tokio::task::LocalSet;

use crate::arguments::ServeArguments;
use crate::failure::Failure;
use crate::kept::{self, Kept};
use crate::output;
use crate::report::kept as pages;

const HTML: &str = "text/html; charset=utf-8";
const SCRIPT: &str = "text/javascript; charset=utf-8";

/// For the pages that are made here: their own style, one script, figures, and a form.
const OWN: &str = "default-src 'none'; style-src 'unsafe-inline'; script-src 'self'; \
     connect-src 'self'; img-src 'self'; form-action 'self'; base-uri 'none'; \
     frame-ancestors 'none'";
/// For what lies in folders of results: their own style, and nothing that runs.
const FOREIGN: &str = "sandbox allow-downloads; default-src 'none'; style-src 'unsafe-inline'; \
     img-src 'self' data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'";

/// How much of a file is read at once.
const PIECE: usize = 64 << 10;

/// What an answer consists of: a page, or a file that is too large for the memory.
type Content = Either<Full<Bytes>, Pieces>;

pub(crate) fn run(arguments: &ServeArguments) -> Result<(), Failure> {
    serve(&arguments.folder, arguments.port, None)
}

/// Serves the folder around the results at `path`, until interrupted.
pub(crate) fn beside(path: &Path) -> Result<(), Failure> {
    let whole = path.canonicalize().map_err(|reason| unreadable(path, &reason))?;
    let around = whole.parent().unwrap_or(&whole);
    serve(around, 0, whole.file_name().and_then(|name| name.to_str()))
}

fn unreadable(folder: &Path, reason: &io::Error) -> Failure {
    Failure::Input(format!("{}: cannot be read: {reason}", folder.display()))
}

/// Serves the results in `folder` until interrupted; a browser is shown those called `first`,
/// or the list.
fn serve(folder: &Path, port: u16, first: Option<&str>) -> Result<(), Failure> {
    let folder = folder.canonicalize().map_err(|reason| unreadable(folder, &reason))?;
    let found = kept::all(&folder, Vec::new()).map_err(|reason| unreadable(&folder, &reason))?;
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    let count = found.len();
    let results = Rc::new(Results { folder: folder.clone(), known: RefCell::new(found) });
    LocalSet::new().block_on(&runtime.map_err(failed)?, async move {
        let listener = TcpListener::bind(address).await.map_err(|reason| {
            Failure::Input(format!("--port {port}: cannot be listened at: {reason}"))
        })?;
        let home = format!("http://{}/", listener.local_addr().map_err(failed)?);
        let page = first.map_or_else(|| home.clone(), |name| home.clone() + &pages::report(name));
        output::print(&format!(
            "{} of {} at {home} (Ctrl-C ends it)\n",
            match count {
                1 => "1 result".into(),
                more => format!("{more} results"),
            },
            folder.display(),
        ))?;
        show(&page);
        let answer = move |request: Request<Incoming>| {
            let results = results.clone();
            async move { answer(&results, &request) }
        };
        tokio::select! {
            () = local::serve(listener, answer) => Ok(()),
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed),
        }
    })
}

/// Opens a page in the browser of the desktop, where somebody sits at one.
fn show(page: &str) {
    let desktop = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|it| std::env::var_os(it).is_some());
    if desktop && io::IsTerminal::is_terminal(&io::stdout()) {
        // Whoever has no browser has read the address.
        let _ = Command::new("xdg-open")
            .arg(page)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
    }
}

/// The folder, and what was last found in it.
struct Results {
    folder: PathBuf,
    known: RefCell<Vec<Kept>>,
}

fn answer(results: &Results, request: &Request<Incoming>) -> Response<Content> {
    if local::host(request).is_none() {
        let text = "these pages are asked for by address or as localhost";
        return refuse(StatusCode::FORBIDDEN, text);
    }
    if !matches!(*request.method(), Method::GET | Method::HEAD) {
        return refuse(StatusCode::METHOD_NOT_ALLOWED, "only GET");
    }
    let Results { folder, known } = results;
    let Ok(all) = kept::all(folder, known.take()) else {
        return refuse(StatusCode::INTERNAL_SERVER_ERROR, "the folder cannot be read any more");
    };
    known.replace(all);
    let all = known.borrow();
    let uri = request.uri();
    match uri.path() {
        "/" => page(pages::list(&folder.display().to_string(), &all, now())),
        "/beside" => {
            let asked: Vec<_> = uri.query().unwrap_or_default().split('&').collect();
            let chosen: Vec<_> =
                all.iter().filter(|it| asked.contains(&&*pages::chosen(&it.name))).collect();
            page(pages::beside(&chosen))
        }
        "/serve.js" => text(StatusCode::OK, SCRIPT, include_str!("serve/serve.js")),
        path => file(&all, path)
            .unwrap_or_else(|| refuse(StatusCode::NOT_FOUND, "there is nothing of this name")),
    }
}

/// The time of files, for the age of results.
#[expect(clippy::disallowed_methods, reason = "ages of files are only shown")]
fn now() -> SystemTime {
    SystemTime::now()
}

/// The file at `/runs/NAME/FILE`, if one of the results has it.
fn file(all: &[Kept], path: &str) -> Option<Response<Content>> {
    let path = percent_decode_str(path.strip_prefix(pages::RUNS)?).decode_utf8().ok()?;
    let (name, file) = path.split_once('/')?;
    let opened = all.iter().find(|it| it.name == name)?.open(file)?;
    let kind = match file.rsplit_once('.')?.1 {
        "html" => HTML,
        "svg" => "image/svg+xml",
        "json" => "application/json",
        "csv" => "text/csv; charset=utf-8",
        _ => TEXT,
    };
    Some(reply(StatusCode::OK, kind, FOREIGN, Either::Right(Pieces(opened))))
}

fn page(html: String) -> Response<Content> {
    text(StatusCode::OK, HTML, html)
}

fn refuse(status: StatusCode, words: &str) -> Response<Content> {
    text(status, TEXT, format!("{words}\n"))
}

fn text(status: StatusCode, kind: &'static str, text: impl Into<Bytes>) -> Response<Content> {
    reply(status, kind, OWN, Either::Left(Full::new(text.into())))
}

/// A file, a piece at a time.
struct Pieces(File);

impl Body for Pieces {
    type Data = Bytes;
    type Error = io::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<io::Result<Frame<Bytes>>>> {
        let mut piece = vec![0; PIECE];
        // Files of this machine do not keep a thread waiting that has nothing else to do.
        Poll::Ready(match self.0.read(&mut piece) {
            Ok(0) => None,
            Ok(length) => {
                piece.truncate(length);
                Some(Ok(Frame::data(piece.into())))
            }
            Err(error) => Some(Err(error)),
        })
    }
}
