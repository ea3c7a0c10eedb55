//! The ways of sharing the link that a case tries, and the programs behind them.
//!
//! Each runs on the router of a case with its usual settings; where there is a choice, it is
//! the one that the simulator makes for its counterpart. Programs that are not installed
//! make a way missing, not the case.

use std::fmt::Write as _;
use std::io;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tidegate_sim::requests::{Setup, Through, Way, Weights};

use super::Entrance;
use super::network::{ACCESS, Network, ROUTER, USERS, clients_of};
use crate::host::{BedError, Missing, on_ethernet};
use crate::program::{self, Folder, Started};

/// Where proxies listen.
const PROXY: u16 = 3128;
const INTERCEPT: u16 = 3130;
/// Requests that HAProxy lets go to servers at a time.
const HAPROXY_PLACES: u32 = 8;

/// A way of sharing the link.
#[derive(Debug)]
pub struct LiveWay {
    /// Its name on the command line and in tables.
    pub name: &'static str,
    /// What runs.
    pub summary: &'static str,
    program: Program,
    /// The name of its counterpart in the simulator, with settings.
    counterpart: Option<(&'static str, &'static [(&'static str, &'static str)])>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Program {
    Nothing,
    Squid { pools: bool },
    Haproxy,
    Htb { leaf: u32 },
    Tidegate,
}

/// Every way, in the order of tables.
pub const WAYS: [LiveWay; 10] = [
    LiveWay {
        name: "none",
        summary: "nothing between clients and servers",
        program: Program::Nothing,
        counterpart: Some(("direct", &[])),
    },
    LiveWay {
        name: "squid",
        summary: "Squid without a cache",
        program: Program::Squid { pools: false },
        counterpart: Some(("fifo", &[])),
    },
    LiveWay {
        name: "squid-pools",
        summary: "Squid with a delay pool for each class, 95% of the link together",
        program: Program::Squid { pools: true },
        counterpart: Some(("pools", &[("share", "0.95")])),
    },
    LiveWay {
        name: "haproxy",
        summary: "HAProxy with 8 places, given by the class's priority",
        program: Program::Haproxy,
        counterpart: None,
    },
    htb("htb-25", 25, &[("queue", "25")]),
    htb("htb-61", 61, &[("queue", "61")]),
    htb("htb-1000", 1000, &[("queue", "1000")]),
    tidegate("fifo", "tidegate gateway that lets every request go at once"),
    tidegate("msf", "tidegate gateway"),
    tidegate("paper", "tidegate gateway with MSF-RS as published"),
];

const fn htb(
    name: &'static str,
    leaf: u32,
    settings: &'static [(&'static str, &'static str)],
) -> LiveWay {
    LiveWay {
        name,
        summary: "Linux's HTB towards the users, at 95% of the link, with leaves of so many packets",
        program: Program::Htb { leaf },
        counterpart: Some(("htb", settings)),
    }
}

const fn tidegate(name: &'static str, summary: &'static str) -> LiveWay {
    LiveWay { name, summary, program: Program::Tidegate, counterpart: Some((name, &[])) }
}

/// What HTB and Squid's pools hand out of the link, in hundredths: the simulator's share.
const SHARE: u64 = 95;

/// What has been started for a way. It ends when this goes.
pub(crate) struct Running {
    /// The proxy that clients have to know of.
    pub(crate) proxy: Option<SocketAddr>,
    program: Option<Started>,
}

impl Running {
    /// The time of the processor that its program has taken, if it is one.
    pub(crate) fn cpu(&self) -> io::Result<Option<Duration>> {
        let usage = self.program.as_ref().map(Started::usage).transpose()?;
        Ok(usage.map(|usage| usage.cpu))
    }
}

impl LiveWay {
    /// The way in the simulator.
    #[must_use]
    pub fn counterpart(&self) -> Option<Way> {
        let (name, settings) = self.counterpart?;
        let way = Way::new(self.name, name, settings);
        Some(way.expect("its settings are right").expect("there is such a way"))
    }

    /// Whether its weights are those of classes as a whole, and not of each user.
    #[must_use]
    pub fn is_by_class(&self) -> bool {
        let weights = self.counterpart().map(|way| way.weights());
        weights == Some(Weights::Classes) || self.program == Program::Haproxy
    }

    /// Whether a program stands between clients and servers.
    pub(crate) fn is_proxy(&self) -> bool {
        !matches!(self.program, Program::Nothing | Program::Htb { .. })
    }

    /// Why it cannot be tried with this setup, if so.
    fn objection(&self, setup: &Setup, entrance: Entrance) -> Option<&'static str> {
        let has_tunnels = setup.classes.iter().any(|class| class.through == Through::Tunnels);
        match self.program {
            Program::Haproxy if has_tunnels => Some("HAProxy does not know CONNECT"),
            Program::Squid { .. } | Program::Haproxy if entrance == Entrance::Redirect => {
                Some("here only Tidegate is set up to take connections from clients")
            }
            _ => None,
        }
    }

    /// Starts it on the router, and waits until it works.
    ///
    /// # Errors
    /// It cannot be tried here, or does not start.
    pub(crate) fn start(
        &self,
        setup: &Setup,
        network: &Network,
        entrance: Entrance,
        tidegate: &Path,
    ) -> Result<Running, BedError> {
        if let Some(reason) = self.objection(setup, entrance) {
            return Err(Missing(reason.into()).into());
        }
        let folder = Folder::new()?;
        let command = match self.program {
            Program::Nothing => return Ok(Running { proxy: None, program: None }),
            Program::Htb { leaf } => {
                shape(setup, network, leaf)?;
                return Ok(Running { proxy: None, program: None });
            }
            Program::Squid { pools } => {
                let file = squid_file(setup, folder.path(), pools);
                program::squid(&folder.write("squid.conf", &file)?)
            }
            Program::Haproxy => {
                program::haproxy(&folder.write("haproxy.cfg", &haproxy_file(setup))?)
            }
            Program::Tidegate => {
                let file = self.tidegate_file(setup, entrance);
                let mut command =
                    program::tidegate(tidegate, &folder.write("gateway.toml", &file)?);
                if entrance == Entrance::Redirect {
                    command.arg("--rules");
                }
                command
            }
        };
        let port = if entrance == Entrance::Redirect { INTERCEPT } else { PROXY };
        let started = Started::new(command, folder, |mut command| {
            network.router.run(move || command.spawn())
        })?;
        let started = started.until_it_listens(|| {
            network.clients.run(move || program::listens((ROUTER, port).into()))
        })?;
        let proxy = (entrance == Entrance::Proxy).then(|| (ROUTER, PROXY).into());
        Ok(Running { proxy, program: Some(started) })
    }

    /// The settings of `tidegate gateway`, those of its counterpart.
    fn tidegate_file(&self, setup: &Setup, entrance: Entrance) -> String {
        let mut file = format!(
            "listen = [\"{ROUTER}:{PROXY}\"]\nscheduler = \"{}\"\n\n\
             # As the interface counts it, with Ethernet's headers.\n\
             [link]\nrate = \"{} bit/s\"\ninterface = \"{ACCESS}\"\n",
            self.name,
            on_ethernet(setup.rate.0),
        );
        if entrance == Entrance::Redirect {
            let _ = write!(file, "\n[intercept]\nlisten = \"0.0.0.0:{INTERCEPT}\"\n");
        }
        for (number, class) in setup.classes.iter().enumerate() {
            let (name, weight, sources) = (&class.name, class.weight, clients_of(number));
            let _ = write!(
                file,
                "\n[[class]]\nname = {name:?}\nweight = {weight}\nsources = [\"{sources}\"]\n"
            );
        }
        file
    }
}

/// The rate of each class when all of them ask, as `tc` counts it.
fn shares(setup: &Setup) -> Vec<u64> {
    let all = tidegate_core::Rate(setup.rate.0 * SHARE / 100);
    setup.shares_of(all).iter().map(|share| share.0).collect()
}

/// Shapes what goes to the users.
fn shape(setup: &Setup, network: &Network, leaf: u32) -> Result<(), Missing> {
    let tc = |line: String| network.router.words("tc", &line);
    let all = on_ethernet(setup.rate.0 * SHARE / 100);
    tc(format!("qdisc add dev {USERS} root handle 1: htb"))?;
    tc(format!("class add dev {USERS} parent 1: classid 1:ff htb rate {all}bit ceil {all}bit"))?;
    for (number, share) in shares(setup).into_iter().enumerate() {
        let (class, share) = (number + 1, on_ethernet(share));
        tc(format!(
            "class add dev {USERS} parent 1:ff classid 1:{class:x} htb rate {share}bit ceil {all}bit"
        ))?;
        tc(format!("qdisc add dev {USERS} parent 1:{class:x} pfifo limit {leaf}"))?;
        let clients = clients_of(number);
        tc(format!(
            "filter add dev {USERS} parent 1: protocol ip u32 match ip dst {clients} \
             flowid 1:{class:x}"
        ))?;
    }
    Ok(())
}

fn squid_file(setup: &Setup, folder: &Path, pools: bool) -> String {
    let folder = folder.display();
    let mut file = format!(
        "http_port {ROUTER}:{PROXY}\nvisible_hostname bed\npid_filename none\n\
         cache deny all\naccess_log none\ncache_log {folder}/squid.log\n\
         coredump_dir {folder}\nshutdown_lifetime 0 seconds\nmax_filedescriptors 8192\n\
         acl users src 10.77.0.0/16\nhttp_access allow users\nhttp_access deny all\n"
    );
    if let Some(patience) = setup.patience {
        let _ = writeln!(file, "read_timeout {} seconds", patience.as_seconds().ceil());
    }
    if !pools {
        return file;
    }
    let _ = writeln!(file, "delay_pools {}", setup.classes.len());
    for (number, share) in shares(setup).into_iter().enumerate() {
        let (pool, bytes, clients) = (number + 1, share / 8, clients_of(number));
        let _ = write!(
            file,
            "acl class{pool} src {clients}\ndelay_class {pool} 1\n\
             delay_access {pool} allow class{pool}\ndelay_access {pool} deny all\n\
             delay_parameters {pool} {bytes}/{bytes}\n"
        );
    }
    file
}

fn haproxy_file(setup: &Setup) -> String {
    let patience = setup.patience.map_or(60.0, |patience| patience.as_seconds().ceil());
    let mut file = format!(
        "defaults\n  mode http\n  timeout connect 10s\n  timeout client 60s\n  \
         timeout server {patience}s\n  timeout queue 60s\n  option http-keep-alive\n\
         frontend users\n  bind {ROUTER}:{PROXY}\n  http-request set-dst url_ip\n  \
         http-request set-dst-port int({})\n",
        super::talk::HTTP
    );
    for (number, class) in setup.classes.iter().enumerate() {
        // The lowest number goes first.
        let (clients, priority) = (clients_of(number), -i64::from(class.weight.get()).min(2_000));
        let _ = writeln!(
            file,
            "  http-request set-priority-class int({priority}) if {{ src {clients} }}"
        );
    }
    let _ = write!(
        file,
        "  default_backend servers\nbackend servers\n  http-reuse safe\n  \
         server any 0.0.0.0:0 maxconn {HAPROXY_PLACES}\n"
    );
    file
}
