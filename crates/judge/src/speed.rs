//! What a proxy costs: its processor time for each request and for each byte of a tunnel,
//! and the time that it adds to a response, beside others in the same run.
//!
//! Everything happens on a loopback interface of its own, with the congestion controller that
//! Linux has unless it is told otherwise: one that spaces segments out, as BBR does, sets a timer
//! for each of them, which on a virtual machine cost more than the rest of a tunnel.
//!
//! The proxy has a core of its own; clients and servers share another one. Requests come in two
//! ways: as fast as answers do, which shows what the proxy can do, and at a rate that does not
//! wait for answers, which shows what it adds. A response time counts from when its request was
//! due, so that a proxy that stands still is charged for all that would have come.

mod load;
mod programs;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::time::Duration;

use nix::sched::{CpuSet, sched_setaffinity};
use nix::unistd::Pid;
use serde::Serialize;
use tokio::net::TcpListener;
use tokio::runtime::Builder;
use tokio::task::LocalSet;

use self::load::Answered;
use self::programs::Running;
pub use self::programs::{PROGRAMS, Program};
use crate::host::{BedError, Host, Missing, hurry_programs};
use crate::live::servers;
use crate::program::Usage;

/// The congestion controller of everybody.
pub const CONTROLLER: &str = "cubic";
/// The core of clients and servers.
const CORE: usize = 0;
/// Connections of clients, each with a request at a time.
const CONNECTIONS: usize = 64;
/// The bytes of a response.
const RESPONSE: u64 = 1_000;
/// Tunnels that carry bytes at the same time.
const TUNNELS: usize = 4;
/// Tunnels that carry nothing.
const IDLE_TUNNELS: usize = 1_000;

/// What was measured of a program in one round.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Speed {
    /// Requests a second, as fast as they are answered.
    pub requests_per_second: f64,
    /// Requests for each second of the processor.
    pub requests_per_cpu_second: f64,
    /// Requests a second of the test that does not wait for answers.
    pub half_load: f64,
    /// Half and 99 of 100 of their responses had come after so many milliseconds.
    pub median_ms: f64,
    /// See `median_ms`.
    pub p99_ms: f64,
    /// The same without a proxy, at the same rate.
    pub direct_median_ms: f64,
    /// See `direct_median_ms`.
    pub direct_p99_ms: f64,
    /// Seconds of the processor for each gigabyte in tunnels, if it knows tunnels.
    pub tunnel_cpu_seconds_per_gigabyte: Option<f64>,
    /// Gigabytes a second in tunnels.
    pub tunnel_gigabytes_per_second: Option<f64>,
    /// Resident memory before the first connection, in megabytes.
    pub idle_megabytes: f64,
    /// Memory for each tunnel that is open and carries nothing, in kilobytes.
    pub kilobytes_per_tunnel: Option<f64>,
}

/// Measures a program for about so long in each of its parts.
///
/// # Errors
/// The machine permits no network of its own, the program is missing or does not start, or a
/// connection breaks.
pub fn measure(
    program: &'static Program,
    tidegate: &Path,
    each: Duration,
) -> Result<Speed, BedError> {
    let host = Host::new()?;
    let setting = "ipv4/tcp_congestion_control";
    host.set(setting, CONTROLLER).map_err(|reason| Missing(format!("{setting}: {reason}")))?;
    let tidegate = tidegate.to_owned();
    host.run(move || measure_here(program, &tidegate, each))
}

/// The same, on the host of the calling thread.
fn measure_here(
    program: &'static Program,
    tidegate: &Path,
    each: Duration,
) -> Result<Speed, BedError> {
    // What this thread starts from here on inherits it, but for the proxy.
    // What else the machine does should not decide; the proxy inherits this.
    hurry_programs();
    // A machine with one core measures too; its figures say less.
    let _ = sched_setaffinity(Pid::from_raw(0), &only(CORE)?);
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let local = LocalSet::new();
    runtime.block_on(local.run_until(async {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let server = listener.local_addr()?;
        tokio::task::spawn_local(servers::serve(listener, false));
        let records = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let tls = records.local_addr()?;
        tokio::task::spawn_local(servers::serve(records, true));
        Bench { running: program.start(tidegate, server)?, server, tls, each }.run().await
    }))
}

/// This core alone.
fn only(core: usize) -> io::Result<CpuSet> {
    let mut cores = CpuSet::new();
    cores.set(core)?;
    Ok(cores)
}

/// A program, and what it stands before.
struct Bench {
    running: Running,
    server: SocketAddr,
    tls: SocketAddr,
    each: Duration,
}

impl Bench {
    async fn run(&self) -> Result<Speed, BedError> {
        let idle = self.running.usage()?.resident;
        let per_tunnel = self.per_tunnel(idle).await?;
        // What is done once is not measured.
        self.saturated(self.each / 4).await?;
        let (usage, full) = self.during(self.saturated(self.each)).await?;
        let requests = full.responses as f64;
        let rate = requests / full.elapsed.as_secs_f64();
        let paced = load::paced(self.way(), rate / 2.0, self.each).await?;
        let direct = load::paced((None, self.server), rate / 2.0, self.each).await?;
        let mut speed = Speed {
            requests_per_second: rate,
            requests_per_cpu_second: requests / usage.cpu.as_secs_f64(),
            half_load: rate / 2.0,
            median_ms: paced.quantile(0.5),
            p99_ms: paced.quantile(0.99),
            direct_median_ms: direct.quantile(0.5),
            direct_p99_ms: direct.quantile(0.99),
            tunnel_cpu_seconds_per_gigabyte: None,
            tunnel_gigabytes_per_second: None,
            idle_megabytes: idle as f64 / 1e6,
            kilobytes_per_tunnel: per_tunnel,
        };
        if self.running.knows_tunnels {
            let proxy = self.running.proxy;
            let tunnels = load::tunnels(proxy, self.tls, TUNNELS, self.each);
            let (usage, carried) = self.during(tunnels).await?;
            let gigabytes = carried.bytes as f64 / 1e9;
            speed.tunnel_cpu_seconds_per_gigabyte = Some(usage.cpu.as_secs_f64() / gigabytes);
            speed.tunnel_gigabytes_per_second = Some(gigabytes / carried.elapsed.as_secs_f64());
        }
        Ok(speed)
    }

    /// Kilobytes of memory for each of many tunnels that carry nothing, if it knows tunnels.
    async fn per_tunnel(&self, before: u64) -> Result<Option<f64>, BedError> {
        if !self.running.knows_tunnels {
            return Ok(None);
        }
        let open = load::idle_tunnels(self.running.proxy, self.tls, IDLE_TUNNELS).await?;
        let more = self.running.usage()?.resident.saturating_sub(before);
        drop(open);
        Ok(Some(more as f64 / IDLE_TUNNELS as f64 / 1e3))
    }

    /// The proxy and the server behind it.
    fn way(&self) -> (Option<SocketAddr>, SocketAddr) {
        (Some(self.running.proxy), self.server)
    }

    async fn saturated(&self, time: Duration) -> io::Result<Answered> {
        load::saturated(self.way(), CONNECTIONS, RESPONSE, time).await
    }

    /// What the program takes while something is done.
    async fn during<T>(
        &self,
        work: impl Future<Output = io::Result<T>>,
    ) -> Result<(Usage, T), BedError> {
        let before = self.running.usage()?;
        let done = work.await?;
        let after = self.running.usage()?;
        Ok((Usage { cpu: after.cpu.saturating_sub(before.cpu), ..after }, done))
    }
}
