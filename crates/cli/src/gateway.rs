//! `tidegate gateway`: the live request gateway.

mod admin;
mod plan;
mod reload;
mod rules;
mod top;

use std::fmt::Write as _;
use std::io;
use std::path::Path;

use serde::Serialize;
use tidegate_core::Rate;
use tidegate_gateway::intercept::{Intercept, Mode, Quic};
use tidegate_gateway::{Config, Gateway, Status, file};
use tokio::signal::unix::{SignalKind, signal};

use self::admin::Admin;
use self::reload::{Settings, Watch};
use crate::arguments::{GatewayCheckArguments, GatewayRulesCommand, GatewayStatusArguments};
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Names are resolved in threads, and no more than this at once: a name server that is
/// silent holds them up.
const RESOLVERS: usize = 16;

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
}

impl Outline {
    fn of(config: &Config) -> Outline {
        let classes = config.classes.iter().map(|class| Class {
            name: class.name.clone(),
            weight: class.weight.get(),
            sources: class.sources.iter().map(ToString::to_string).collect(),
        });
        Outline {
            rate_bps: config.rate.0,
            interface: config.interface.clone(),
            scheduler: config.scheduler.name,
            listen: config.listen.iter().map(ToString::to_string).collect(),
            intercept: config.intercept.clone(),
            admin: config.admin.map(|admin| admin.to_string()),
            classes: classes.collect(),
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
        for class in &self.classes {
            let Class { name, weight, sources } = class;
            lines.push(format!("class      {name}, weight {weight}: {}", sources.join(", ")));
        }
        lines.join("\n") + "\n"
    }
}

fn intercept_text(intercept: &Intercept) -> String {
    let Intercept { listen, mode, http, tunnels, quic } = intercept;
    let mode = match mode {
        Mode::Redirect => "redirect",
        Mode::Tproxy => "tproxy",
    };
    let quic = match quic {
        Quic::Reject => "is refused",
        Quic::Pass => "passes",
    };
    let list = |ports: &[u16]| {
        let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
        if ports.is_empty() { "none".into() } else { ports.join(", ") }
    };
    let (http, tunnels) = (list(http), list(tunnels));
    format!("intercept  by {mode} to {listen}: HTTP at {http}, tunnels at {tunnels}; QUIC {quic}")
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
    let columns = ["weight", "users", "completed", "failed", "refused", "received MB", "waited s"];
    let _ = write!(text, "{:<20}", "class");
    for column in columns {
        let _ = write!(text, " {column:>11}");
    }
    for class in &status.classes {
        let _ = write!(
            text,
            "\n{:<20} {:>11} {:>11} {:>11} {:>11} {:>11} {:>11.1} {:>11.1}",
            class.name,
            class.weight,
            class.users,
            class.completed,
            class.failed,
            class.refused,
            class.received_bytes as f64 / 1e6,
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

pub(crate) fn run(path: &Path, with_rules: bool) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    tracing_subscriber::fmt().json().flatten_event(true).with_writer(io::stdout).init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVERS)
        .build();
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    let runtime = runtime.map_err(failed)?;
    let served: Result<(), Failure> = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate()).map_err(failed)?;
        let mut hung_up = signal(SignalKind::hangup()).map_err(failed)?;
        let mut gateway = Gateway::bind(config.clone(), seed()).await.map_err(failed)?;
        for address in gateway.addresses().map_err(failed)? {
            eprintln!("tidegate: listening at {address}");
        }
        if let Some(address) = gateway.intercept_address() {
            eprintln!("tidegate: intercepting at {address}");
        }
        if let Some(address) = gateway.admin_address() {
            eprintln!("tidegate: admin at {address}");
        }
        // Not before somebody listens.
        let rules = with_rules.then(|| rules::Rules::set(path, &config)).transpose()?;
        let mut settings = Settings::new(path, config, gateway.control(), rules);
        let mut watch = Watch::new(path);
        let mut asked = gateway.reloads().expect("nobody has asked before");
        let reload = async {
            loop {
                let answer = tokio::select! {
                    Some(()) = hung_up.recv() => None,
                    Some(answer) = asked.recv() => Some(answer),
                    () = watch.changed() => None,
                };
                watch.note();
                let outcome = settings.reload();
                // Who asked may have left.
                let _ = answer.map(|answer| answer.send(outcome));
            }
        };
        tokio::select! {
            () = gateway.serve() => {}
            () = reload => {}
            interrupted = tokio::signal::ctrl_c() => interrupted.map_err(failed)?,
            _ = terminated.recv() => {}
        }
        Ok(())
    });
    // A name server that is silent is not waited for.
    runtime.shutdown_background();
    served
}

/// Nobody can foresee where the scheduler's table of users has collisions.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
