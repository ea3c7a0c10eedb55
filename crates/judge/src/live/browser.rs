//! A browser in a case: Debian's Chromium, headless, loads a page of many objects again and
//! again, while the other classes do what they do.
//!
//! The browser takes the place of the first class, which has one client: its address is the
//! first one of the clients' interface, and so the one that the kernel gives to programs that
//! ask for none. Each load has a profile of its own, so nothing is known from the one before:
//! no object, no connection, no session of TLS. The browser itself is warm: it shows an empty
//! page for a while, and then goes to the one that counts.
//!
//! nginx is the servers: the page and a third of the objects come from the first one, the
//! others from two more. All of it is HTTP/1.1 over TLS. Objects are pictures of sizes that
//! are the same in every load. When everything has come, the page tells its server how long
//! that took by the browser's own clock, from the start of the navigation to the end of
//! `load` (W3C Navigation Timing, `loadEventEnd`), and how many pictures were broken.
//!
//! Loads begin at fixed times. One that has not told anything when the next begins is given
//! up, and counts as longer than all others, as does one with a broken picture.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use tidegate_core::Span;
use tidegate_sim::requests::Setup;

use super::network::Network;
use super::{Entrance, Found, LEAD, Order, WAYS, observe, permit_connections, serve, talk};
use crate::host::{BedError, Missing, hurry_programs};
use crate::program::{Folder, Started, listens};

/// The class of the browser.
const READER: usize = 0;
/// Servers of the page, and pictures on it.
const SERVERS: usize = 3;
const PICTURES: usize = 30;
/// The sizes of the smallest picture and of the largest.
const SMALLEST: f64 = 2_000.0;
const LARGEST: f64 = 60_000.0;
/// From the start of a load to the start of the next, on a busy link and on an idle one.
const EVERY: Span = Span::seconds(30);
const EVERY_IDLE: Span = Span::seconds(6);
/// How long the browser shows an empty page.
const WARM_MS: u32 = 1_500;
/// How often is looked whether a page has told how long it took.
const LOOK: Duration = Duration::from_millis(50);

/// How the link is shared while pages are loaded.
#[derive(Debug)]
pub struct PageWay {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// What runs.
    pub summary: &'static str,
    /// The name of the way of the bed.
    of: &'static str,
    entrance: Entrance,
    /// Whether the other classes ask for nothing.
    is_idle: bool,
}

/// Every way, in the order of tables.
pub const PAGE_WAYS: [PageWay; 7] = [
    PageWay {
        name: "idle",
        summary: "nothing, and nobody else asks",
        of: "none",
        entrance: Entrance::Proxy,
        is_idle: true,
    },
    PageWay {
        name: "idle-msf",
        summary: "tidegate gateway as proxy, and nobody else asks",
        of: "msf",
        entrance: Entrance::Proxy,
        is_idle: true,
    },
    beside("none", "nothing between clients and servers", "none", Entrance::Proxy),
    beside("htb-61", "Linux's HTB, leaves of 61 packets", "htb-61", Entrance::Proxy),
    beside("squid", "Squid without a cache as proxy", "squid", Entrance::Proxy),
    beside("msf", "tidegate gateway as proxy", "msf", Entrance::Proxy),
    beside("msf-redirect", "tidegate gateway that nobody knows of", "msf", Entrance::Redirect),
];

const fn beside(
    name: &'static str,
    summary: &'static str,
    of: &'static str,
    entrance: Entrance,
) -> PageWay {
    PageWay { name, summary, of, entrance, is_idle: false }
}

impl PageWay {
    /// From the start of a load to the start of the next.
    #[must_use]
    pub fn every(&self) -> Span {
        if self.is_idle { EVERY_IDLE } else { EVERY }
    }
}

/// What was found in a run.
#[derive(Debug)]
pub struct Loads {
    /// How long each load took; `None` if it was given up, or not whole.
    pub times: Vec<Option<Duration>>,
    /// What became of the link, and of the other classes.
    pub beside: Found,
}

/// What a load told: its number, its time, and how many pictures were broken.
type Told = (usize, Duration, u32);

/// The version of the browser.
///
/// # Errors
/// There is none.
pub fn version() -> Result<String, Missing> {
    let output = Command::new("chromium").arg("--version").stderr(Stdio::null()).output();
    let output = output.map_err(|_| Missing("there is no program 'chromium'".into()))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// What a page is, in words.
#[must_use]
pub fn page_in_words() -> String {
    let bytes: usize = (0..PICTURES).map(size).sum();
    format!("{PICTURES} pictures of together {} kB from {SERVERS} servers", bytes / 1_000)
}

/// Why a page cannot be loaded in this setup, if so.
#[must_use]
pub fn objection(setup: &Setup) -> Option<String> {
    let servers: usize = setup.servers.iter().map(|group| group.count as usize).sum();
    let clients = setup.classes.first().map_or(0, |reader| reader.clients);
    if clients != 1 {
        return Some(format!("first class: found {clients} clients, expected 1, the browser"));
    }
    (servers < SERVERS).then(|| format!("servers: found {servers}, expected at least {SERVERS}"))
}

/// Loads a page so many times while the rest of the setup runs. The setup's time is replaced.
///
/// # Errors
/// The way cannot be tried here, or something fails.
pub fn load_pages(
    setup: &Setup,
    way: &PageWay,
    seed: u64,
    loads: u32,
    tidegate: &Path,
) -> Result<Loads, BedError> {
    permit_connections();
    let mut setup = setup.clone();
    setup.duration = setup.warm_up + way.every() * u64::from(loads);
    let setup = Arc::new(setup);
    let of = WAYS.iter().find(|it| it.name == way.of).expect("it is in the list");
    let network = Network::new(&setup, seed)?;
    // It blocks the host of the servers: nginx comes first.
    let site = Site::start(&network)?;
    let serving = serve(&network.servers, &[(talk::HTTP, false)])?;
    let running = of.start(&setup, &network, way.entrance, tidegate)?;
    let begun = Instant::now() + LEAD;
    let order = Order::new(&setup, &network, of, running.proxy, begun);
    let browser = Browser {
        page: format!("https://{}/", network.server_addresses[0]),
        proxy: running.proxy,
        folder: site.folder.clone(),
        begun: begun + Duration::from_nanos(setup.warm_up.0),
        every: Duration::from_nanos(way.every().0),
        loads: loads as usize,
    };
    // A thread of its own in the network of the clients, and ordinary in the eyes of the
    // kernel: the browser is to be no faster than browsers are.
    let browsing = network.clients.run(move || thread::spawn(move || browser.run()));
    let is_idle = way.is_idle;
    let beside = observe(&network, order, seed, move |it| !is_idle && it.class() != READER)?;
    let told = browsing.join().expect("the browser's thread does not panic")?;
    drop((running, serving, site));
    let mut times = vec![None; loads as usize];
    for (number, time, _) in told.into_iter().filter(|(.., broken)| *broken == 0) {
        times[number] = Some(time);
    }
    Ok(Loads { times, beside })
}

/// Whoever loads the pages.
struct Browser {
    page: String,
    proxy: Option<SocketAddr>,
    /// Where the site is, and profiles may be.
    folder: PathBuf,
    /// The start of the first load.
    begun: Instant,
    every: Duration,
    loads: usize,
}

impl Browser {
    fn run(&self) -> Result<Vec<Told>, BedError> {
        let mut at = self.begun;
        for number in 0..self.loads {
            thread::sleep(at.saturating_duration_since(Instant::now()));
            at += self.every;
            let command = self.command(number);
            let mut started = Started::new(command, Folder::new()?, |mut it| it.spawn())?;
            while Instant::now() + LOOK < at && self.told(number)?.is_none() {
                if started.has_ended() {
                    return Err(started.failed("has ended"));
                }
                thread::sleep(LOOK);
            }
        }
        let told: Result<Vec<_>, _> = (0..self.loads).map(|number| self.told(number)).collect();
        Ok(told?.into_iter().flatten().collect())
    }

    /// What a load told, if it has.
    fn told(&self, number: usize) -> Result<Option<Told>, BedError> {
        let path = self.folder.join(LOG);
        let log = fs::read_to_string(&path)
            .map_err(|error| BedError::Failed(format!("{}: {error}", path.display())))?;
        Ok(log.lines().filter_map(told).find(|told| told.0 == number))
    }

    /// Chromium on its way to the page; it asks nobody else for anything.
    fn command(&self, number: usize) -> Command {
        let mut command = Command::new("chromium");
        command.args([
            "--headless",
            // Root has no other way, and nothing here is from strangers.
            "--no-sandbox",
            "--ignore-certificate-errors",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-default-apps",
            "--disable-extensions",
            "--disable-gpu",
            "--disable-sync",
        ]);
        let profile = self.folder.join(format!("profile-{number}"));
        command.arg(format!("--user-data-dir={}", profile.display()));
        // It leaves files there when it is stopped.
        command.env("TMPDIR", &self.folder);
        match self.proxy {
            Some(proxy) => command.arg(format!("--proxy-server=http://{proxy}")),
            None => command.arg("--no-proxy-server"),
        };
        let page = &self.page;
        command.arg(format!(
            "data:text/html,<script>setTimeout(()=>location='{page}?{number}',{WARM_MS})</script>"
        ));
        command
    }
}

/// A line of the log of what pages tell.
fn told(line: &str) -> Option<Told> {
    let mut words = line.split_whitespace();
    let number = words.next()?.parse().ok()?;
    let milliseconds: f64 = words.next()?.parse().ok()?;
    let broken = words.next()?.parse().ok()?;
    Some((number, Duration::try_from_secs_f64(milliseconds / 1e3).ok()?, broken))
}

/// Where nginx writes what pages tell, in the folder of the site.
const LOG: &str = "told";

/// The page, served while this lives.
struct Site {
    folder: PathBuf,
    _nginx: Started,
}

impl Site {
    /// Serves the page from the first servers of a network.
    fn start(network: &Network) -> Result<Site, BedError> {
        let servers = &network.server_addresses[..SERVERS];
        let folder = Folder::new()?;
        certify(folder.path())?;
        folder.write("index.html", &page(servers))?;
        folder.write(LOG, "")?;
        for number in 0..PICTURES {
            folder.write(&format!("{number}.svg"), &picture(size(number)))?;
        }
        let path = folder.path().to_path_buf();
        let mut nginx = Command::new("nginx");
        nginx.arg("-e").arg(path.join("errors")).arg("-c");
        nginx.arg(folder.write("nginx.conf", &nginx_file(&path, servers))?);
        let started = Started::new(nginx, folder, |mut nginx| {
            // The servers' own thread is hurried in another way, which programs do not inherit.
            let spawn = move || {
                hurry_programs();
                nginx.spawn()
            };
            let spawned = network.servers.run(move || thread::spawn(spawn).join());
            spawned.expect("the thread does not panic")
        })?;
        let address = SocketAddr::from((servers[0], talk::TLS));
        let nginx = started.until_it_listens(|| network.servers.run(move || listens(address)))?;
        Ok(Site { folder: path, _nginx: nginx })
    }
}

/// A certificate that nobody has to trust.
fn certify(folder: &Path) -> Result<(), BedError> {
    let mut command = Command::new("openssl");
    command.args(["req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]);
    command.args(["-nodes", "-days", "2", "-subj", "/CN=bed", "-keyout"]);
    command.arg(folder.join("key.pem")).arg("-out").arg(folder.join("certificate.pem"));
    let output = match command.stdin(Stdio::null()).output() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(Missing("there is no program 'openssl'".into()).into());
        }
        output => output?,
    };
    if output.status.success() {
        return Ok(());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(BedError::Failed(format!("openssl makes no certificate: {}", said.trim())))
}

fn nginx_file(folder: &Path, servers: &[Ipv4Addr]) -> String {
    let path = folder.display();
    let mut file = format!(
        "daemon off;\nmaster_process off;\npid {path}/nginx.pid;\nevents {{ }}\nhttp {{\n\
         access_log off;\n\
         log_format told '$arg_load $arg_ms $arg_broken';\n\
         types {{ text/html html; image/svg+xml svg; }}\n\
         server {{\nroot {path};\nssl_certificate {path}/certificate.pem;\n\
         ssl_certificate_key {path}/key.pem;\n"
    );
    for server in servers {
        let _ = writeln!(file, "listen {server}:{} ssl;", talk::TLS);
    }
    let _ = write!(
        file,
        "location = /loaded {{ access_log {path}/{LOG} told; return 204; }}\n}}\n}}\n"
    );
    file
}

/// All pictures at once, from the servers in turn.
fn page(servers: &[Ipv4Addr]) -> String {
    let mut text = String::from(
        "<!doctype html>\n<meta charset=utf-8>\n<title>Pictures</title>\n<link rel=icon href=data:,>\n<script>\n\
         let broken = 0\n\
         addEventListener('error', () => broken++, true)\n\
         // The time is known when the handler is over.\n\
         addEventListener('load', () => setTimeout(() => {\n\
         \x20 const ms = performance.getEntriesByType('navigation')[0].loadEventEnd\n\
         \x20 fetch(`/loaded?load=${location.search.slice(1)}&ms=${ms}&broken=${broken}`)\n\
         }))\n</script>\n",
    );
    for (number, server) in (0..PICTURES).zip(servers.iter().cycle()) {
        let _ = writeln!(text, "<img src=\"https://{server}/{number}.svg\">");
    }
    text
}

/// The size of a picture: from the smallest to the largest by equal factors, since most
/// objects of pages are small. Neighbours are far apart, so that every server has all sizes.
fn size(number: usize) -> usize {
    // It has no factor in common with the number of pictures.
    const STRIDE: usize = 7;
    let step = (number * STRIDE % PICTURES) as f64 / (PICTURES - 1) as f64;
    libm::round(SMALLEST * libm::pow(LARGEST / SMALLEST, step)) as usize
}

/// A picture of so many bytes: a circle and a remark.
fn picture(bytes: usize) -> String {
    let (head, tail) = (
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"9\" height=\"9\">\
         <circle cx=\"4\" cy=\"4\" r=\"4\"/><!-- ",
        " --></svg>",
    );
    format!("{head}{}{tail}", ".".repeat(bytes.saturating_sub(head.len() + tail.len())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_page_has_every_picture_once_and_every_server_has_small_and_large_ones() {
        let servers = [1, 2, 3].map(|last| Ipv4Addr::new(198, 18, 0, last));
        let text = page(&servers);
        let mut all = Vec::new();
        for (place, server) in servers.iter().enumerate() {
            let sizes: Vec<_> = (place..PICTURES).step_by(SERVERS).map(size).collect();
            for number in (place..PICTURES).step_by(SERVERS) {
                assert_eq!(text.matches(&format!("https://{server}/{number}.svg")).count(), 1);
            }
            assert!(sizes.iter().any(|size| *size < 5_000), "{sizes:?}");
            assert!(sizes.iter().any(|size| *size > 30_000), "{sizes:?}");
            all.extend(sizes);
        }
        all.sort_unstable();
        assert_eq!((all[0], all[PICTURES - 1], all.len()), (2_000, 60_000, PICTURES));
        assert!(all.windows(2).all(|pair| pair[0] < pair[1]), "{all:?}");
        assert!(all.iter().all(|size| picture(*size).len() == *size));
    }

    #[test]
    fn what_a_page_tells_is_read_and_nothing_else() {
        let time = Duration::from_micros(1_234_500);
        assert_eq!(told("3 1234.5 0"), Some((3, time, 0)));
        for line in ["", "3 - 0", "3 -1 0", "- 1234.5 0", "3 1234.5", "3 NaN 0"] {
            assert_eq!(told(line), None, "{line}");
        }
    }
}
