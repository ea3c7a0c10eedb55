//! `tidegate gateway`: the live request gateway.

mod admin;
mod descriptors;
mod log;
mod plan;
mod reload;
mod rules;
mod top;

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::path::Path;

use rustix::thread::CapabilitySet;
use serde::Serialize;
use tidegate_core::Rate;
use tidegate_gateway::class::{self, Users};
use tidegate_gateway::intercept::{Intercept, Mode, Quic};
use tidegate_gateway::{Config, Control, Gateway, Status, file};
use tokio::signal::unix::{SignalKind, signal};

use self::admin::Admin;
use self::reload::{Settings, Watch};
use crate::arguments::{GatewayCheckArguments, GatewayRulesCommand, GatewayStatusArguments};
use crate::failure::Failure;
use crate::output::{print, print_json};
use crate::{rights, service};

/// Names are resolved in threads, and no more than this at once: a name server that is
/// silent holds them up.
const RESOLVERS: usize = 64;

/// What a file says.
#[derive(Serialize)]
struct Outline {
    rate_bps: u64,
    interface: Option<String>,
    scheduler: &'static str,
    listen: Vec<String>,
    intercept: Option<Intercept>,
    admin: Option<String>,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    name: String,
    weight: u32,
    sources: Vec<String>,
    /// Nothing where it takes clients of any name, servers at any port or of any name.
    names: Option<Vec<String>>,
    ports: Option<Vec<u16>>,
    hosts: Option<Vec<String>>,
    users: Users,
}

impl Class {
    fn of(class: &class::Class) -> Class {
        fn all<T: ToString>(list: &[T]) -> Vec<String> {
            list.iter().map(ToString::to_string).collect()
        }
        Class {
            name: class.name.clone(),
            weight: class.weight.get(),
            sources: all(&class.sources),
            names: class.names.as_ref().map(|names| all(&names.list())),
            ports: Some(class.ports.clone()).filter(|ports| !ports.is_empty()),
            hosts: Some(all(&class.hosts)).filter(|hosts| !hosts.is_empty()),
            users: class.users,
        }
    }

    fn text(&self) -> String {
        let Class { name, weight, sources, names, ports, hosts, users } = self;
        let mut text = format!("class      {name}, weight {weight}: {}", sources.join(", "));
        if let Some(names) = names {
            let names = if *names == ["*"] { "all".into() } else { names.join(", ") };
            let user = if *users == Users::Name { "" } else { ", each device a user of its own" };
            text += &format!("; who logs in: {names}{user}");
        }
        if let Some(ports) = ports {
            text += &format!("; to port {}", list(ports));
        }
        if let Some(hosts) = hosts {
            text += &format!("; to {}", hosts.join(", "));
        }
        text
    }
}

impl Outline {
    fn of(config: &Config) -> Outline {
        Outline {
            rate_bps: config.rate.0,
            interface: config.interface.clone(),
            scheduler: config.scheduler.name,
            listen: config.listen.iter().map(ToString::to_string).collect(),
            intercept: config.intercept.clone(),
            admin: config.admin.map(|admin| admin.to_string()),
            classes: config.classes.iter().map(Class::of).collect(),
        }
    }

    fn text(&self, config: &Config) -> String {
        let interface = self.interface.as_ref().map(|name| format!(", at {name}"));
        let mut lines = vec![
            format!("link       {}{}", config.rate, interface.unwrap_or_default()),
            format!("scheduler  {}: {}", self.scheduler, config.scheduler.summary),
            format!("listen     {}", self.listen.join(", ")),
        ];
        lines.extend(self.intercept.as_ref().map(intercept_text));
        lines.extend(self.admin.as_ref().map(|admin| format!("admin      {admin}")));
        lines.extend(self.classes.iter().map(Class::text));
        lines.join("\n") + "\n"
    }
}

fn intercept_text(intercept: &Intercept) -> String {
    let Intercept { listen, mode, http, tunnels, quic, count_others } = intercept;
    let mode = match mode {
        Mode::Redirect => "redirect",
        Mode::Tproxy => "tproxy",
    };
    let quic = match quic {
        Quic::Reject => "is refused",
        Quic::Pass => "passes",
        Quic::Relay => "is relayed",
    };
    let others = if *count_others { "; the rest counts too" } else { "" };
    let (http, tunnels) = (list(http), list(tunnels));
    format!(
        "intercept  by {mode} to {listen}: HTTP at {http}, tunnels at {tunnels}; QUIC {quic}{others}"
    )
}

fn list(ports: &[u16]) -> String {
    let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
    if ports.is_empty() { "none".into() } else { ports.join(", ") }
}

pub(crate) fn rules(what: &GatewayRulesCommand) -> Result<(), Failure> {
    match what {
        GatewayRulesCommand::Print { file } => rules::print(file),
        GatewayRulesCommand::Apply { file } => rules::apply(file),
        GatewayRulesCommand::Remove { file } => rules::remove(file),
    }
}

pub(crate) fn check(arguments: &GatewayCheckArguments) -> Result<(), Failure> {
    let Some(path) = &arguments.file else {
        return print(&file::json_schema());
    };
    let config = file::read(path).map_err(Failure::input)?;
    let outline = Outline::of(&config);
    if arguments.json { print_json(&outline) } else { print(&outline.text(&config)) }
}

pub(crate) use plan::plan;
pub(crate) use reload::reload;
pub(crate) use top::top;

pub(crate) fn status(arguments: &GatewayStatusArguments) -> Result<(), Failure> {
    let status = Admin::of(&arguments.file)?.status()?;
    if arguments.json { print_json(&status) } else { print(&status_text(&status)) }
}

fn status_text(status: &Status) -> String {
    let window = status.window.map(|window| format!(" of {window:.1}")).unwrap_or_default();
    let mut text = format!(
        "{} on {} for {} s: {} in line, {} outstanding, {} hold a place{window}, {} tunnels\n\n",
        status.scheduler,
        Rate(status.rate_bps),
        status.uptime_s.round(),
        status.waiting,
        status.outstanding,
        status.held,
        status.tunnels,
    );
    let columns = [
        "weight",
        "users",
        "completed",
        "failed",
        "refused",
        "received MB",
        "besides MB",
        "waited s",
    ];
    let _ = write!(text, "{:<20}", "class");
    for column in columns {
        let _ = write!(text, " {column:>11}");
    }
    for class in &status.classes {
        let _ = write!(
            text,
            "\n{:<20} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11.1} {:>11.1} {:>11.1}",
            class.name,
            class.weight,
            class.users,
            class.completed,
            class.failed,
            class.refused,
            class.received_bytes as f64 / 1e6,
            class.besides_bytes as f64 / 1e6,
            class.waited_s,
        );
    }
    if !status.top_users.is_empty() {
        text.push_str("\n\nreceived the most\n");
    }
    for user in &status.top_users {
        let megabytes = user.received_bytes as f64 / 1e6;
        let _ = writeln!(text, "{:<43} {:<20} {megabytes:>11.1} MB", user.user, user.class);
    }
    text.trim_end().to_owned() + "\n"
}

/// Tells whoever started it. If nobody hears it, the gateway serves all the same.
fn say(text: &str) {
    let _ = writeln!(io::stderr(), "tidegate: {text}");
}

pub(crate) fn run(path: &Path, with_rules: bool, user: Option<&str>) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    let user = user.map(rights::user).transpose()?;
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    // Without the buffer of the standard library, which would keep what a full disk refused.
    let out = io::stdout().as_fd().try_clone_to_owned().map_err(failed)?;
    let (log, writer) = log::Log::to(File::from(out));
    let lines = log.clone();
    tracing_subscriber::fmt()
        .json()
        .flatten_event(true)
        .log_internal_errors(false)
        .with_writer(move || lines.clone())
        .init();
    let too_few = descriptors::take(&config);
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVERS)
        .build();
    let runtime = runtime.map_err(failed)?;
    let served: Result<(), Failure> = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hung_up = signal(SignalKind::hangup()).map_err(failed)?;
        let mut gateway = Gateway::bind(config.clone(), seed()).await.map_err(failed)?;
        for address in gateway.addresses().map_err(failed)? {
            say(&format!("listening at {address}"));
        }
        if let Some(address) = gateway.intercept_address() {
            say(&format!("intercepting at {address}"));
        }
        if let Some(address) = gateway.admin_address() {
            say(&format!("admin at {address}"));
        }
        rights::give_up(user.as_ref(), needed(&config, with_rules))?;
        writer.start().map_err(failed)?;
        too_few.iter().for_each(|text| say(text));
        if let Some(user) = &user
            && let Err(error) = file::read(path)
        {
            say(&format!("SIGHUP will change nothing: to '{}', {error}", user.name));
        }
        // Not before somebody listens.
        let rules = with_rules.then(|| rules::Rules::set(path, &config)).transpose()?;
        let control = gateway.control();
        let counts = config.intercept.as_ref().is_some_and(|intercept| intercept.count_others);
        if counts && !with_rules {
            say("'count_others' counts nothing without --rules");
        }
        let counting = async {
            match counts && with_rules {
                true => rules::count_others(&control).await,
                false => std::future::pending().await,
            }
        };
        let mut settings = Settings::new(path, &config, gateway.control(), rules);
        let mut watch = Watch::new(path, settings.files());
        let mut asked = gateway.reloads().expect("nobody has asked before");
        let reload = async {
            loop {
                let answer = tokio::select! {
                    Some(()) = hung_up.recv() => None,
                    Some(answer) = asked.recv() => Some(answer),
                    () = watch.changed() => None,
                };
                service::reloading();
                watch.note();
                let outcome = settings.reload().await;
                watch.follow(settings.files());
                service::ready(&said(&control));
                // Who asked may have left.
                let _ = answer.map(|answer| answer.send(outcome));
            }
        };
        // Only while the scheduler hears what the link carries.
        let works = || control.reports();
        let watched = service::watch(|| said(&control), works);
        say("serving");
        service::ready(&said(&control));
        tokio::select! {
            () = gateway.serve() => {}
            () = reload => {}
            () = counting => {}
            () = watched => {}
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed)?,
            _ = terminated.recv() => {}
        }
        service::stopping();
        Ok(())
    });
    // A name server that is silent is not waited for.
    runtime.shutdown_background();
    log.finish();
    served
}

/// What a service manager is told.
fn said(control: &Control) -> String {
    let status = control.status();
    format!(
        "{} on {}: {} connections, {} in line, {} outstanding, {} tunnels",
        status.scheduler,
        Rate(status.rate_bps),
        status.connections,
        status.waiting,
        status.outstanding,
        status.tunnels
    )
}

/// What a gateway cannot do without while it serves.
fn needed(config: &Config, has_rules: bool) -> CapabilitySet {
    let mut needed = CapabilitySet::empty();
    needed.set(CapabilitySet::NET_ADMIN, has_rules);
    if config.intercept.as_ref().is_some_and(|intercept| intercept.quic == Quic::Relay) {
        // It answers with the addresses and ports of servers.
        needed |= CapabilitySet::NET_ADMIN | CapabilitySet::NET_BIND_SERVICE;
    }
    needed
}

/// Nobody can foresee where the scheduler's table of users has collisions.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
