//! What is measured, with settings that make it as fast as it can be: no log, no cache, one
//! thread.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::Path;

use nix::sched::sched_setaffinity;
use nix::unistd::Pid;

use super::only;
use crate::host::BedError;
use crate::program::{self, Folder, Started, Usage};

/// The core of the proxy, if there are two.
const CORE: usize = 1;

/// Something that stands between clients and servers, or nothing.
#[derive(Debug)]
pub struct Program {
    /// Its name in tables.
    pub name: &'static str,
    /// What runs.
    pub summary: &'static str,
    kind: Kind,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Squid,
    Haproxy,
    Tidegate { scheduler: &'static str },
}

/// Every program, in the order of tables.
pub const PROGRAMS: [Program; 4] = [
    Program { name: "squid", summary: "Squid without a cache", kind: Kind::Squid },
    Program {
        name: "haproxy",
        summary: "HAProxy with one thread and no limit of places",
        kind: Kind::Haproxy,
    },
    Program {
        name: "fifo",
        summary: "tidegate gateway that lets every request go at once",
        kind: Kind::Tidegate { scheduler: "fifo" },
    },
    Program {
        name: "msf",
        summary: "tidegate gateway with the scheduler of requests on a link of 10 Gbit/s",
        kind: Kind::Tidegate { scheduler: "msf" },
    },
];

/// A program that runs.
pub(super) struct Running {
    pub(super) proxy: SocketAddr,
    pub(super) knows_tunnels: bool,
    program: Started,
}

impl Program {
    /// Starts it before a server, and waits until it listens.
    pub(super) fn start(&self, tidegate: &Path, server: SocketAddr) -> Result<Running, BedError> {
        let folder = Folder::new()?;
        let proxy = free_address()?;
        let command = match self.kind {
            Kind::Squid => {
                let file = squid_file(proxy, folder.path());
                program::squid(&folder.write("squid.conf", &file)?)
            }
            Kind::Haproxy => {
                program::haproxy(&folder.write("haproxy.cfg", &haproxy_file(proxy, server))?)
            }
            Kind::Tidegate { scheduler } => {
                let file = tidegate_file(proxy, scheduler);
                program::tidegate(tidegate, &folder.write("gateway.toml", &file)?)
            }
        };
        let program = Started::new(command, folder, |mut command| command.spawn())?;
        // Before it starts threads, which inherit this.
        let _ = sched_setaffinity(Pid::from_raw(program.id().cast_signed()), &only(CORE)?);
        let program = program.until_it_listens(|| program::listens(proxy))?;
        Ok(Running { proxy, knows_tunnels: self.kind != Kind::Haproxy, program })
    }
}

impl Running {
    pub(super) fn usage(&self) -> io::Result<Usage> {
        self.program.usage()
    }
}

/// An address of this machine that nobody listens at.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()
}

fn squid_file(proxy: SocketAddr, folder: &Path) -> String {
    let folder = folder.display();
    format!(
        "http_port {proxy}\nvisible_hostname bed\npid_filename none\ncache deny all\n\
         cache_mem 0\nmemory_pools off\naccess_log none\ncache_log {folder}/squid.log\n\
         coredump_dir {folder}\nmax_filedescriptors 8192\nhttp_access allow all\n"
    )
}

fn haproxy_file(proxy: SocketAddr, server: SocketAddr) -> String {
    format!(
        "global\n  nbthread 1\n\
         defaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n  \
         timeout server 60s\n  option http-keep-alive\n\
         frontend users\n  bind {proxy}\n  http-request set-dst url_ip\n  \
         http-request set-dst-port int({})\n  default_backend servers\n\
         backend servers\n  http-reuse always\n  server any 0.0.0.0:0\n",
        server.port()
    )
}

fn tidegate_file(proxy: SocketAddr, scheduler: &str) -> String {
    format!(
        "listen = [\"{proxy}\"]\nscheduler = \"{scheduler}\"\nlocal_targets = [\"127.0.0.0/8\"]\n\
         log_requests = false\n[link]\nrate = \"10 Gbit/s\"\n\
         [limits]\nconnections_per_user = 2000\nkept = 100\n\
         [[class]]\nname = \"all\"\nsources = [\"127.0.0.0/8\"]\n"
    )
}
