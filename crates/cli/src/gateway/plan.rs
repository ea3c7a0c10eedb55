//! `tidegate gateway plan`: what `gateway run` would do on this machine, and for whom,
//! before it does it.
//!
//! `check` says what is in a file, wherever it is read. The plan adds what each user gets
//! of the link, what stays as it is, and whether this machine has what it takes.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::Rate;
use tidegate_gateway::intercept::Quic;
use tidegate_gateway::machine::{self, Finding};
use tidegate_gateway::{Config, file, rules};

use super::Outline;
use crate::arguments::GatewayPlanArguments;
use crate::failure::Failure;
use crate::findings;
use crate::output::{print, print_json, wrapped};

#[derive(Serialize)]
struct Plan {
    settings: Outline,
    /// Nothing under a scheduler that knows no shares.
    shares: Vec<Shares>,
    /// What is taken from clients that know of no proxy, and what is not managed.
    sentences: Vec<String>,
    /// The program for nft that `run --rules` would set.
    rules: Option<String>,
    findings: Vec<Finding>,
}

/// What is whose while so many users of each class want as much as they can get.
#[derive(Serialize)]
struct Shares {
    users_of_each_class: u32,
    classes: Vec<Share>,
}

#[derive(Serialize)]
struct Share {
    name: String,
    class_bps: u64,
    user_bps: u64,
}

impl Plan {
    fn of(config: &Config, arguments: &GatewayPlanArguments) -> Plan {
        let mut numbers = vec![1, arguments.users];
        numbers.dedup();
        let rules = rules::ruleset(config, true).filter(|_| arguments.rules);
        Plan {
            settings: Outline::of(config),
            shares: numbers.into_iter().filter_map(|users| shares(config, users)).collect(),
            sentences: sentences(config, arguments.rules),
            rules,
            findings: machine::findings(config, arguments.rules),
        }
    }

    fn text(&self, config: &Config) -> String {
        let mut text = self.settings.text(config);
        for Shares { users_of_each_class, classes } in &self.shares {
            let users = match users_of_each_class {
                1 => "one user".into(),
                many => format!("{many} users"),
            };
            let _ = writeln!(text, "\nWhile {users} of each class want as much as they can get:");
            for Share { name, class_bps, user_bps } in classes {
                let (class, user) = (Rate(*class_bps), Rate(*user_bps));
                let _ = writeln!(text, "  {name:<20} {class} together, {user} each");
            }
        }
        text.push('\n');
        for sentence in &self.sentences {
            text.push_str(&wrapped(sentence, ""));
        }
        if let Some(rules) = &self.rules {
            let _ = write!(text, "\nRules of nftables, until the gateway ends:\n\n{rules}");
        }
        text.push_str(&findings::text(&self.findings));
        text
    }
}

fn shares(config: &Config, users: u32) -> Option<Shares> {
    let all = config.shares(&vec![users; config.classes.len()])?;
    let shares = config.classes.iter().zip(all).map(|(class, share)| Share {
        name: class.name.clone(),
        class_bps: share as u64,
        user_bps: (share / f64::from(users)) as u64,
    });
    Some(Shares { users_of_each_class: users, classes: shares.collect() })
}

fn list(ports: &[u16]) -> String {
    let ports: Vec<_> = ports.iter().map(ToString::to_string).collect();
    ports.join(", ")
}

fn sentences(config: &Config, with_rules: bool) -> Vec<String> {
    let listen: Vec<_> = config.listen.iter().map(ToString::to_string).collect();
    let names: Vec<_> = config.classes.iter().map(|class| &*class.name).collect();
    let mut all = vec![
        format!(
            "Browsers that name {} as their proxy for HTTP and HTTPS are served if their address \
             is in a class ({}), and refused otherwise.",
            listen.join(" or "),
            names.join(", "),
        ),
        "A user who is alone gets the whole link: what one leaves is lent to the others.".into(),
    ];
    let Some(intercept) = &config.intercept else {
        all.push(
            "Whatever clients send past the proxy, QUIC and other ports among it, passes as before \
             and unscheduled."
                .into(),
        );
        return all;
    };
    let taken: Vec<_> = [("HTTP", &intercept.http), ("tunnels", &intercept.tunnels)]
        .into_iter()
        .filter(|(_, ports)| !ports.is_empty())
        .map(|(what, ports)| format!("TCP to port {} as {what}", list(ports)))
        .collect();
    let when = if with_rules { "" } else { ", once rules are set" };
    all.push(format!(
        "From the same addresses the kernel hands over {}{when}, without their knowledge.",
        taken.join(" and ")
    ));
    let ports: Vec<_> = intercept.http.iter().chain(&intercept.tunnels).copied().collect();
    let quic = match intercept.quic {
        Quic::Reject => "is refused, so that browsers use TCP",
        Quic::Pass => "passes as before and unscheduled",
        Quic::Relay => "is relayed unopened, and what comes back counts and waits as in a tunnel",
    };
    let counted = if intercept.count_others && with_rules {
        " What comes to the classes' addresses so counts for them."
    } else {
        ""
    };
    all.push(format!(
        "QUIC (UDP to port {}) {quic}. All other ports, all other addresses and the traffic of this \
         machine itself pass as before and unscheduled.{counted}",
        list(&ports)
    ));
    all
}

pub(crate) fn plan(arguments: &GatewayPlanArguments) -> Result<(), Failure> {
    let config = file::read(&arguments.file).map_err(Failure::input)?;
    let plan = Plan::of(&config, arguments);
    if arguments.json {
        print_json(&plan)?;
    } else {
        print(&plan.text(&config))?;
    }
    findings::verdict(&plan.findings, "the gateway")
}
