//! The ways in which users can share an access link, and their one list.
//!
//! Beside the gateways with a request scheduler there are the rivals that users
//! know. All of them see the same demand over the same link: a client's
//! requests and their servers come from random streams from which no way draws.

use std::sync::Arc;

use tidegate_core::discipline::cake;
use tidegate_core::registry::{self, DISCIPLINES};
use tidegate_core::request::catalogue::{self, SCHEDULERS};
use tidegate_core::request::{ClassOrder, Config};
use tidegate_core::setting::{Kind as Of, Parameter, SettingError, Settings};
use tidegate_core::units::Amount;
use tidegate_core::{Buffer, Rate};

use super::setup::{SchedulerChoice, Setup};
use crate::scenario::{DisciplineChoice, QueueSpec, Shaper, Sharing};

/// A way of sharing the link without a request scheduler.
#[derive(Debug)]
pub struct Rival {
    /// Name in files and on the command line.
    pub name: &'static str,
    /// What it does, in one line.
    pub summary: &'static str,
    /// Where it is specified.
    pub source: &'static str,
    /// What can be set.
    pub parameters: &'static [Parameter],
}

/// Every rival except the packet disciplines, which are shapers whose name is
/// that of [`SHAPED`] and their own.
pub const RIVALS: &[Rival] = &[DIRECT, HTB, POOLS];

/// A packet discipline as a way: the name stands before that of the discipline, and what can be
/// set beside the discipline's own parameters.
pub const SHAPED: Rival = Rival {
    name: "shaped-",
    summary: "a shaper just below the link's rate that serves packets by a queue discipline",
    source: "HTB",
    parameters: &[SHARE, QUEUE],
};

const DIRECT: Rival = Rival {
    name: "direct",
    summary: "no gateway: TCP between clients and servers",
    source: "MSF section 1",
    parameters: &[],
};

const HTB: Rival = Rival {
    name: "htb",
    summary: "a shaper just below the link's rate, with a share for each class, lent when idle",
    source: "HTB",
    parameters: &[SHARE, LEAF, QUEUE],
};

const POOLS: Rival = Rival {
    name: "pools",
    summary: "a gateway that reads no class's responses faster than its share, lent to nobody",
    source: "Squid",
    parameters: &[SHARE],
};

const SHARE: Parameter = Parameter {
    name: "share",
    help: "what it hands out, as a share of the link's rate",
    kind: Of::Number { least: 0.01, most: 1.0 },
    default: "0.95",
};

const LEAF: Parameter = Parameter {
    name: "leaf",
    help: "the discipline of each class's queue",
    kind: Of::Choice(&["fifo", FQ_CODEL]),
    // As in Linux (tc-htb(8)).
    default: "fifo",
};

const FQ_CODEL: &str = "fq-codel";

/// The default of Linux for a queue on Ethernet.
const QUEUE: Parameter = Parameter {
    name: "queue",
    help: "how many packets each queue of the shaper holds",
    kind: Of::Count { least: 1, most: 1_000_000 },
    default: "1000",
};

/// Every name with its meaning: the request schedulers, the rivals, and the
/// packet disciplines as shapers.
pub fn names() -> impl Iterator<Item = (String, &'static str)> {
    let schedulers = SCHEDULERS.iter().map(|entry| (entry.name.into(), entry.summary));
    let rivals = RIVALS.iter().map(|rival| (rival.name.into(), rival.summary));
    let shaped =
        DISCIPLINES.iter().map(|entry| (format!("{}{}", SHAPED.name, entry.name), entry.summary));
    schedulers.chain(rivals).chain(shaped)
}

/// One way of sharing the link, with its settings.
#[derive(Clone, Debug)]
pub struct Way {
    /// Its name in results.
    pub label: String,
    kind: Kind,
}

/// The owners of the weights that a way applies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Weights {
    /// Each active user of a class.
    Users,
    /// The whole class, however many users it has.
    Classes,
    /// Nobody: the way has no weights.
    Nobody,
}

#[derive(Clone, Debug)]
enum Kind {
    Gateway(SchedulerChoice),
    Direct,
    Htb { share: f64, leaf: DisciplineChoice, queue: Buffer },
    Shaped { share: f64, queue: Buffer, discipline: DisciplineChoice },
    Pools { share: f64 },
}

impl From<SchedulerChoice> for Way {
    fn from(choice: SchedulerChoice) -> Way {
        Way { label: choice.label.clone(), kind: Kind::Gateway(choice) }
    }
}

impl From<&SchedulerChoice> for Way {
    fn from(choice: &SchedulerChoice) -> Way {
        choice.clone().into()
    }
}

impl Way {
    /// The way called `name` with these settings; others have their default. `None`
    /// when there is none of this name: neither a request scheduler, nor one of
    /// [`RIVALS`], nor a packet discipline after [`SHAPED`].
    ///
    /// # Errors
    /// A setting that it does not take.
    pub fn new(
        label: &str,
        name: &str,
        given: &[(&str, &str)],
    ) -> Result<Option<Way>, SettingError> {
        if let Some(choice) = SchedulerChoice::new(label, name, given)? {
            return Ok(Some(choice.into()));
        }
        let kind = if let Some(rival) = RIVALS.iter().find(|rival| rival.name == name) {
            let settings = Settings::read(rival.name, rival.parameters, given)?;
            let share = || settings.number(SHARE.name);
            match rival.name {
                "htb" => Kind::Htb {
                    share: share(),
                    leaf: settings
                        .choice(LEAF.name)
                        .parse()
                        .expect("leaves are disciplines with defaults"),
                    queue: Buffer::packets(settings.count(QUEUE.name)),
                },
                "pools" => Kind::Pools { share: share() },
                "direct" => Kind::Direct,
                other => unreachable!("'{other}' is listed and not built"),
            }
        } else {
            let found = name.strip_prefix(SHAPED.name).and_then(registry::find);
            let Some(discipline) = found else { return Ok(None) };
            let of_shaper =
                |(name, _): &(&str, &str)| SHAPED.parameters.iter().any(|it| it.name == *name);
            let (outer, inner): (Vec<_>, Vec<_>) = given.iter().copied().partition(of_shaper);
            let outer = Settings::read("shaped", SHAPED.parameters, &outer)?;
            Kind::Shaped {
                share: outer.number(SHARE.name),
                queue: Buffer::packets(outer.count(QUEUE.name)),
                discipline: DisciplineChoice {
                    label: discipline.name.into(),
                    entry: discipline,
                    settings: discipline.settings(&inner)?,
                },
            }
        };
        Ok(Some(Way { label: label.into(), kind }))
    }

    /// No gateway at all.
    #[must_use]
    pub fn direct() -> Way {
        Way { label: DIRECT.name.into(), kind: Kind::Direct }
    }

    /// Its name in files, one of [`names`].
    #[must_use]
    pub fn name(&self) -> String {
        match &self.kind {
            Kind::Gateway(choice) => choice.entry.name.into(),
            Kind::Direct => DIRECT.name.into(),
            Kind::Htb { .. } => HTB.name.into(),
            Kind::Shaped { discipline, .. } => format!("{}{}", SHAPED.name, discipline.entry.name),
            Kind::Pools { .. } => POOLS.name.into(),
        }
    }

    /// All its settings as they would be written in a file.
    #[must_use]
    pub fn parameters(&self) -> Vec<(&'static str, String)> {
        let share = |share: &f64| (SHARE.name, share.to_string());
        let queue = |queue: &Buffer| match queue.amount() {
            Amount::Packets(count) => (QUEUE.name, count.to_string()),
            Amount::Bytes(_) => unreachable!("queues of shapers hold packets"),
        };
        match &self.kind {
            Kind::Gateway(choice) => {
                let names = choice.entry.parameters.iter().map(|parameter| parameter.name);
                names.map(|name| (name, format!("{:#}", choice.settings.value(name)))).collect()
            }
            Kind::Direct => Vec::new(),
            Kind::Htb { share: of, leaf, queue: holds } => {
                vec![share(of), (LEAF.name, leaf.entry.name.into()), queue(holds)]
            }
            Kind::Shaped { share: of, queue: holds, discipline } => {
                [share(of), queue(holds)].into_iter().chain(discipline.parameters()).collect()
            }
            Kind::Pools { share: of } => vec![share(of)],
        }
    }

    /// The owners of its weights.
    #[must_use]
    pub fn weights(&self) -> Weights {
        match &self.kind {
            Kind::Gateway(_) => match self.config().class_order {
                ClassOrder::LeastService { per_user: true } => Weights::Users,
                ClassOrder::LeastService { per_user: false } | ClassOrder::Turns { .. } => {
                    Weights::Classes
                }
                ClassOrder::Arrival => Weights::Nobody,
            },
            Kind::Htb { .. } | Kind::Pools { .. } => Weights::Classes,
            Kind::Direct | Kind::Shaped { .. } => Weights::Nobody,
        }
    }

    /// Whether nothing at all stands between clients and the provider's queue.
    #[must_use]
    pub fn is_direct(&self) -> bool {
        matches!(self.kind, Kind::Direct)
    }

    /// How much of a link of this rate it hands out.
    pub(crate) fn hands_out(&self, rate: Rate) -> Rate {
        match self.kind {
            Kind::Htb { share, .. } | Kind::Shaped { share, .. } | Kind::Pools { share } => {
                Rate((rate.0 as f64 * share) as u64)
            }
            Kind::Gateway(_) | Kind::Direct => rate,
        }
    }

    /// Its request scheduler; without one, requests leave as they arrive.
    pub(crate) fn config(&self) -> Config {
        match &self.kind {
            Kind::Gateway(choice) => (choice.entry.config)(&choice.settings),
            _ => {
                let fifo = catalogue::find("fifo").expect("it is in the catalogue");
                (fifo.config)(&fifo.settings(&[]).expect("defaults are within range"))
            }
        }
    }

    /// Whether TCP connects clients directly with servers.
    pub(crate) fn is_end_to_end(&self) -> bool {
        matches!(self.kind, Kind::Direct | Kind::Htb { .. } | Kind::Shaped { .. })
    }

    /// Whether a shaper stands behind the provider's queue.
    pub(crate) fn is_shaped(&self) -> bool {
        matches!(self.kind, Kind::Htb { .. } | Kind::Shaped { .. })
    }

    /// The queue of that shaper, which distinguishes classes by the numbers of their hosts.
    pub(crate) fn shaper_queue(&self, setup: &Setup, classes: Arc<[u16]>) -> QueueSpec {
        let queue = match &self.kind {
            Kind::Htb { queue, .. } | Kind::Shaped { queue, .. } => *queue,
            _ => return QueueSpec::Unbounded,
        };
        let rate = self.hands_out(setup.rate);
        let sharing = match &self.kind {
            Kind::Shaped { discipline, .. } => Sharing::One(told(discipline, rate)),
            Kind::Htb { leaf, .. } => Sharing::Leaves(setup.shares_of(rate), leaf.clone()),
            _ => unreachable!("other ways have no shaper"),
        };
        QueueSpec::Shaped(Shaper { rate, sharing, queue, classes })
    }

    /// The rate at which the gateway reads each class, if that is limited.
    pub(crate) fn caps(&self, setup: &Setup) -> Option<Vec<Rate>> {
        let Kind::Pools { .. } = self.kind else { return None };
        Some(setup.shares_of(self.hands_out(setup.rate)))
    }
}

/// The discipline of a shaper for `rate`. One that is a shaper itself is told the rate, as
/// with `tc qdisc replace ... cake bandwidth`, unless it was given another one.
fn told(discipline: &DisciplineChoice, rate: Rate) -> DisciplineChoice {
    let DisciplineChoice { label, entry, settings } = discipline.clone();
    let bandwidth = cake::BANDWIDTH.name;
    let is_shaper = entry.parameters.iter().any(|parameter| parameter.name == bandwidth);
    let settings = if is_shaper && settings.bandwidth(bandwidth).is_none() {
        let rate = format!("{} bit/s", rate.0);
        let told = entry.change(&settings, &[(bandwidth, &rate)]);
        told.expect("links are faster than the least bandwidth")
    } else {
        settings
    };
    DisciplineChoice { label, entry, settings }
}
