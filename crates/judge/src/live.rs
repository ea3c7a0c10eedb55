//! The live bed: a gateway and its rivals on networks of this machine, beside what the
//! simulator says of the same load.
//!
//! A case is a scenario of a gateway, as `tidegate requests compare` runs it. The bed builds
//! its network from namespaces, lets real programs share the link, and asks what the
//! simulator's clients would ask: sizes, pauses, servers and their distances are drawn from
//! the same seeds. What comes out is an [`Outcome`], the same as of a simulated run, and so
//! the same [figures] are taken from both.
//!
//! This takes root's rights, `/dev/net/tun`, `ip` and `tc`. Traffic stays within the
//! namespaces.

pub mod browser;
mod clients;
pub mod figures;
mod network;
pub(crate) mod servers;
mod table;
pub(crate) mod talk;
mod ways;

use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use nix::sys::resource::{Resource, getrlimit, setrlimit};
use tidegate_core::{Rate, Time};
use tidegate_sim::metrics::Discard;
use tidegate_sim::requests::{
    Class, ClassOutcome, Loop, Outcome, SMALL, Sample, ServerFailures, Setup, Through, Way, run_way,
};
use tidegate_sim::scenario::Protocol;
use tidegate_sim::scenario::file::gateway::{self, Comparison};
use tidegate_study::shipped::Beside;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::oneshot;
use tokio::task::LocalSet;

use self::clients::{Asked, Ending, Order, Seen};
use self::network::{Counted, MOST_HOSTS, Network, Watched};
pub use self::table::text;
pub use self::ways::{LiveWay, WAYS};
use crate::host::{BedError, Host};

/// Where the shipped cases are among the shipped files.
const FOLDER: &str = "bed/";
/// Between the bed's start and the first pause: whatever has to be made is made by then.
const LEAD: Duration = Duration::from_millis(300);
/// Links of servers that are this many times as fast as the access link delay nothing.
const FAST: u64 = 10;

/// How clients reach a proxy.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Entrance {
    /// They know it.
    #[default]
    Proxy,
    /// They do not, and the kernel of the router redirects their connections.
    Redirect,
}

/// What was found in a run, live or simulated.
#[derive(Clone, Debug)]
pub struct Found {
    /// The results.
    pub outcome: Outcome,
    /// The share of packets that the provider lost.
    pub lost: f64,
    /// The part of its time that a processor spent on the program; nothing has one in the
    /// simulator.
    pub cpu: Option<f64>,
}

/// The names of the cases that are shipped.
pub fn cases() -> impl Iterator<Item = &'static str> {
    tidegate_scenarios::FILES
        .iter()
        .filter_map(|(path, _)| path.strip_prefix(FOLDER)?.strip_suffix(".toml"))
}

/// The case called `name`, or the scenario in the file of that name.
///
/// # Errors
/// There is none, it makes no sense, or the bed cannot be it; the message says which.
pub fn case(name: &str) -> Result<Comparison, String> {
    let shipped = tidegate_scenarios::FILES.iter().find(|(path, _)| {
        path.strip_prefix(FOLDER).and_then(|file| file.strip_suffix(".toml")) == Some(name)
    });
    let comparison = match shipped {
        Some((path, _)) => {
            let text = tidegate_scenarios::text(path).expect("scenarios are text");
            gateway::parse(path, text, &Beside(path))
        }
        None if Path::new(name).exists() => gateway::read(Path::new(name)),
        None => {
            let known: Vec<_> = cases().collect();
            return Err(format!(
                "'{name}' is no file and no case, expected one of {}",
                known.join(", ")
            ));
        }
    };
    let comparison = comparison.map_err(|error| error.to_string())?;
    match objection(&comparison.setup) {
        Some(reason) => Err(format!("{name}: the bed has no {reason}")),
        None => Ok(comparison),
    }
}

/// What the bed lacks for a setup.
fn objection(setup: &Setup) -> Option<&'static str> {
    let class = |lacks: &dyn Fn(&Class) -> bool| setup.classes.iter().any(lacks);
    let servers: usize = setup.servers.iter().map(|group| group.count as usize).sum();
    let slow = |rate: Rate| rate.0 < setup.rate.0.saturating_mul(FAST);
    let is_once = setup.http.protocol == Protocol::Http10;
    let objections = [
        (setup.wifi.is_some(), "wireless cell"),
        (setup.provider.entry.name != "fifo", "discipline at the provider other than fifo"),
        (setup.uplink.queue.is_some() || setup.uplink.uploads > 0, "queue of the uplink"),
        (!setup.passing.is_empty(), "traffic that nobody asked for"),
        (setup.failures != ServerFailures::NONE, "servers that fail"),
        (class(&|it| it.failures.is_some()), "servers that fail"),
        (class(&|it| it.presence.is_some()), "users who come and go"),
        (class(&|it| it.part_of.is_some()), "parts of classes"),
        (class(&|it| it.through == Through::WebSocket), "WebSockets"),
        (class(&|it| it.clients as usize > MOST_HOSTS), "more than 250 clients of a class"),
        (setup.classes.len() > MOST_HOSTS || servers > MOST_HOSTS, "more than 250 of anything"),
        (setup.http.protocol == Protocol::Http2, "HTTP/2"),
        (
            is_once && class(&|it| it.through == Through::Requests),
            "HTTP/1.0 outside of tunnels: gateways would keep connections",
        ),
        (Loop::all(&Arc::new(setup.clone()), 0).is_none(), "pages whose objects wait"),
        (
            setup.servers.iter().any(|group| slow(group.rate.0))
                || slow(setup.client_rate)
                || class(&|it| it.client_rate.is_some_and(slow)),
            "links of clients or servers that are less than ten times as fast as the access link",
        ),
    ];
    objections.into_iter().find_map(|(holds, what)| holds.then_some(what))
}

/// Runs a setup in the simulator.
#[must_use]
pub fn predict(setup: &Setup, way: &Way, seed: u64) -> Found {
    let outcome = run_way(setup, way, seed, &mut Discard, &AtomicBool::new(false));
    let counters = &outcome.downlink;
    let lost = counters.lost() as f64 / counters.offered.max(1) as f64;
    Found { outcome, lost, cpu: None }
}

/// Lets this process and what it starts have as many connections as the machine permits: a
/// case has hundreds, at each end.
fn permit_connections() {
    // Without it a case may still fit.
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// Runs a setup on this machine. `tidegate` is the program of that name.
///
/// # Errors
/// The way cannot be tried here, or something fails.
pub fn measure(
    setup: &Arc<Setup>,
    way: &LiveWay,
    seed: u64,
    entrance: Entrance,
    tidegate: &Path,
) -> Result<Found, BedError> {
    permit_connections();
    let network = Network::new(setup, seed)?;
    let serving = serve(&network.servers, &[(talk::HTTP, false), (talk::TLS, true)])?;
    let running = way.start(setup, &network, entrance, tidegate)?;
    let order = Order::new(setup, &network, way, running.proxy, Instant::now() + LEAD);
    let cpu_before = running.cpu()?;
    let mut found = observe(&network, order, seed, |_| true)?;
    let cpu = running.cpu()?.zip(cpu_before).map(|(after, before)| after.saturating_sub(before));
    drop((running, serving));
    found.cpu = cpu.map(|cpu| cpu.as_secs_f64() / setup.duration.as_seconds());
    Ok(found)
}

/// Has those clients ask that `asks` picks, until the end.
fn observe(
    network: &Network,
    order: Order,
    seed: u64,
    asks: impl Fn(&Loop) -> bool + Send + 'static,
) -> Result<Found, BedError> {
    let setup = order.setup.clone();
    let warm_up = Duration::from_nanos(setup.warm_up.0);
    let watched = network.watch(order.begun, order.samples.clone(), warm_up);
    let seen = network.clients.run(move || {
        // Streams are drawn from where they are used: they are not to be sent.
        let mut loops = Loop::all(&order.setup, seed).expect("it was checked");
        loops.retain(asks);
        runtime().map(|runtime| LocalSet::new().block_on(&runtime, clients::ask(order, loops)))
    })?;
    let watched = watched.recv().map_err(io::Error::other)??;
    Ok(found(&setup, &seen, &watched))
}

impl Order {
    fn new(
        setup: &Arc<Setup>,
        network: &Network,
        way: &LiveWay,
        proxy: Option<SocketAddr>,
        begun: Instant,
    ) -> Order {
        Order {
            setup: setup.clone(),
            servers: network.server_addresses.clone(),
            proxy,
            is_end_to_end: !way.is_proxy(),
            begun,
            samples: sample_times(setup),
        }
    }
}

/// Servers that serve until this goes.
struct Serving {
    _until: oneshot::Sender<()>,
}

/// Serves on these ports, in records or as it is.
fn serve(host: &Host, ports: &[(u16, bool)]) -> io::Result<Serving> {
    let ports = ports.to_vec();
    let (until, over) = oneshot::channel::<()>();
    let (ready, listening) = mpsc::channel();
    host.begin(move || {
        let serving = runtime().and_then(|runtime| {
            let guard = runtime.enter();
            let listeners = ports
                .into_iter()
                .map(|(port, in_records)| Ok((servers::listen(port)?, in_records)))
                .collect::<io::Result<Vec<_>>>()?;
            drop(guard);
            Ok((runtime, listeners))
        });
        let (runtime, listeners) = match serving {
            Ok(serving) => serving,
            Err(error) => return drop(ready.send(Err(error))),
        };
        // Whoever started it waits for this.
        let _ = ready.send(Ok(()));
        LocalSet::new().block_on(&runtime, async {
            for (listener, in_records) in listeners {
                tokio::task::spawn_local(servers::serve(listener, in_records));
            }
            // An error is that the other end is gone.
            let _ = over.await;
        });
    });
    listening.recv().map_err(io::Error::other)??;
    Ok(Serving { _until: until })
}

/// Everything on this thread, and so in its network.
fn runtime() -> io::Result<Runtime> {
    Builder::new_current_thread().enable_all().build()
}

/// The start, the end, and what lies between at the scenario's steps.
fn sample_times(setup: &Setup) -> Vec<Duration> {
    let (step, end) = (setup.sample_every.0, setup.duration.0);
    let before_end = (0..end.div_ceil(step)).map(|number| number * step);
    before_end.chain([end]).map(Duration::from_nanos).collect()
}

/// What was seen live, as the simulator would put it.
fn found(setup: &Setup, seen: &Seen, watched: &Watched) -> Found {
    let times = sample_times(setup).into_iter().map(|at| Time(at.as_nanos() as u64));
    let samples: Vec<Sample> = times
        .zip(&watched.carried)
        .zip(&seen.received)
        .map(|((at, carried), received)| Sample {
            at,
            window: 0.0,
            held: 0,
            outstanding: 0,
            waiting: 0,
            queued: 0,
            received: received.clone(),
            carried: *carried,
        })
        .collect();
    let warm_up = Time::ZERO + setup.warm_up;
    let warm = samples.iter().find(|sample| sample.at >= warm_up);
    let measured = setup.duration - setup.warm_up;
    let mut outcome = Outcome {
        classes: vec![ClassOutcome::default(); setup.classes.len()],
        measured,
        reached: Time::ZERO + setup.duration,
        ..Outcome::default()
    };
    if let (Some(from), Some(to)) = (warm, samples.last()) {
        let bits = (to.carried - from.carried).0 as f64 * 8.0;
        outcome.utilisation = bits / to.at.since(from.at).as_seconds() / setup.rate.0 as f64;
        for (number, class) in outcome.classes.iter_mut().enumerate() {
            class.received = to.received[number] - from.received[number];
        }
    }
    for asked in seen.asked.iter().filter(|asked| asked.at >= warm_up) {
        count(&mut outcome.classes[asked.class], asked);
    }
    outcome.samples = samples;
    let Counted { offered, lost } = watched.counted;
    let lost = lost as f64 / offered.max(1) as f64;
    Found { outcome, lost, cpu: None }
}

fn count(class: &mut ClassOutcome, asked: &Asked) {
    class.asked += 1;
    match asked.over {
        None => class.unfinished.outstanding += 1,
        Some((at, Ending::Completed)) => {
            let took = at.since(asked.at);
            class.completed += 1;
            class.response.record(took);
            if asked.size < SMALL {
                class.small.record(took);
            }
        }
        Some((_, Ending::Refused)) => class.failures.refused += 1,
        Some((_, Ending::Stalled)) => class.failures.stalled += 1,
        Some((_, Ending::Broken)) => class.failures.broken += 1,
    }
}
