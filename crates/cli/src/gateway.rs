//! `tidegate gateway`: the live request gateway.

use std::io;
use std::path::Path;

use serde::Serialize;
use tidegate_gateway::{Config, Gateway, file};
use tokio::signal::unix::{SignalKind, signal};

use crate::arguments::GatewayCheckArguments;
use crate::failure::Failure;
use crate::output::{print, print_json};

/// Names are resolved in threads, and no more than this at once: a name server that is
/// silent holds them up.
const RESOLVERS: usize = 16;

/// What a gateway would do.
#[derive(Serialize)]
struct Plan {
    rate_bps: u64,
    interface: Option<String>,
    scheduler: &'static str,
    listen: Vec<String>,
    classes: Vec<Class>,
}

#[derive(Serialize)]
struct Class {
    name: String,
    weight: u32,
    sources: Vec<String>,
}

impl Plan {
    fn of(config: &Config) -> Plan {
        let classes = config.classes.iter().map(|class| Class {
            name: class.name.clone(),
            weight: class.weight.get(),
            sources: class.sources.iter().map(ToString::to_string).collect(),
        });
        Plan {
            rate_bps: config.rate.0,
            interface: config.interface.clone(),
            scheduler: config.scheduler.name,
            listen: config.listen.iter().map(ToString::to_string).collect(),
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
        for class in &self.classes {
            let Class { name, weight, sources } = class;
            lines.push(format!("class      {name}, weight {weight}: {}", sources.join(", ")));
        }
        lines.join("\n") + "\n"
    }
}

pub(crate) fn check(arguments: &GatewayCheckArguments) -> Result<(), Failure> {
    let Some(path) = &arguments.file else {
        return print(&file::json_schema());
    };
    let config = file::read(path).map_err(Failure::input)?;
    let plan = Plan::of(&config);
    if arguments.json { print_json(&plan) } else { print(&plan.text(&config)) }
}

pub(crate) fn run(path: &Path) -> Result<(), Failure> {
    let config = file::read(path).map_err(Failure::input)?;
    tracing_subscriber::fmt().json().flatten_event(true).with_writer(io::stdout).init();
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .max_blocking_threads(RESOLVERS)
        .build();
    let failed = |reason: io::Error| Failure::Other(reason.to_string());
    let runtime = runtime.map_err(failed)?;
    let served = runtime.block_on(async {
        let mut terminated = signal(SignalKind::terminate())?;
        let gateway = Gateway::bind(config, seed()).await?;
        for address in gateway.addresses()? {
            eprintln!("tidegate: listening at {address}");
        }
        tokio::select! {
            () = gateway.serve() => {}
            interrupted = tokio::signal::ctrl_c() => interrupted?,
            _ = terminated.recv() => {}
        }
        Ok(())
    });
    // A name server that is silent is not waited for.
    runtime.shutdown_background();
    served.map_err(failed)
}

/// Nobody can foresee where the scheduler's table of users has collisions.
fn seed() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(std::process::id())
}
