//! The lines that put a discipline in front of a real link: for `tc` of Linux and for SQM of
//! OpenWrt, or where neither has it for Tidegate's own live forms.
//!
//! A queue can only be scheduled where it is. That is at the slowest link, and whoever
//! owns a router owns neither the modem behind it nor the provider's end of the line. So
//! the lines hold traffic back to a little less than the link carries, and the queue
//! builds up in the router: upwards in front of the port to the provider, downwards on a
//! device that stands for what that port receives. The discipline and its Linux name come
//! from the registry; the rates from the scenario.

use std::fmt::Write as _;

use serde::Serialize;
use tidegate_core::units::Amount;
use tidegate_core::{Buffer, Rate};
use tidegate_qdisc::programs;
use tidegate_sim::scenario::{Capacity, DisciplineChoice, LinkSpec, QueueSpec, Scenario};

use crate::output;

/// The router's port to the provider, as OpenWrt's documentation calls it.
const PORT: &str = "eth1";
/// What stands for that port's incoming traffic.
const INCOMING: &str = "ifb4eth1";
const RESTART_SQM: &str = "uci commit sqm && service sqm restart";
/// How much of the link's rate is used, in per cent. SQM's guide begins with 80 to 95; the
/// link of a scenario carries what it says, so that little is given away.
const PERCENT: u64 = 95;

/// What to know where the rate is not always the same.
const OF_THE_MEAN: &str = "The link's rate varies, and these are of its mean: where calls matter \
                           most, take what it always carries, or a script that follows the rate \
                           (cake-autorate).";

/// How a discipline is put in front of a link.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub(crate) struct LiveForm {
    /// The discipline's label in the comparison.
    pub(crate) label: String,
    /// What to know before typing.
    pub(crate) notes: Vec<String>,
    /// For a shell of Linux, as root; empty if nothing is to be typed.
    pub(crate) tc: Vec<String>,
    /// Whether these lines need Tidegate on the router.
    pub(crate) takes_tidegate: bool,
    /// What undoes that.
    pub(crate) undo: Vec<String>,
    /// For a shell of OpenWrt; empty if its SQM does not have the discipline.
    pub(crate) sqm: Vec<String>,
    /// What undoes that.
    pub(crate) sqm_undo: Vec<String>,
}

/// Of equals, the one that takes the fewest lines: of those that the kernel has, and of those
/// that take Tidegate.
pub(crate) fn simplest(forms: &[LiveForm]) -> impl Iterator<Item = &LiveForm> {
    [false, true].into_iter().filter_map(|takes_tidegate| {
        let of_it = forms.iter().filter(|form| form.takes_tidegate == takes_tidegate);
        of_it.min_by_key(|form| form.tc.len())
    })
}

impl LiveForm {
    /// The lines of `tc` for a terminal, what is around them in lines of at most `width`
    /// columns. Those of SQM are in the report.
    pub(crate) fn text(&self, width: usize) -> String {
        let notes = self.notes.join(" ");
        if self.tc.is_empty() {
            return output::filled("", &format!("To run {}: {notes}", self.label), width);
        }
        let mut text = format!("To run {} on Linux:\n", self.label);
        for line in &self.tc {
            text.push_str(&typed(line, width));
        }
        let more = if self.takes_tidegate {
            "The report has what undoes this line."
        } else if self.sqm.is_empty() {
            "The report has what undoes these lines."
        } else {
            "The report has the lines for OpenWrt's SQM, and what undoes these."
        };
        text + &output::filled("", &format!("{notes} {more}"), width)
    }
}

/// A line to type, within `width` columns if its options permit it: a shell goes on behind
/// a backslash.
fn typed(line: &str, width: usize) -> String {
    const BREAK: &str = " \\";
    let mut parts = line.split(" --");
    let mut text = format!("  {}", parts.next().unwrap_or_default());
    let mut column = text.chars().count();
    let mut parts = parts.peekable();
    while let Some(part) = parts.next() {
        let size = " --".len() + part.chars().count();
        let behind = if parts.peek().is_some() { BREAK.len() } else { 0 };
        if column + size + behind > width {
            text += BREAK;
            text += "\n   ";
            column = "   ".len();
        }
        text += " --";
        text += part;
        column += size;
    }
    text + "\n"
}

/// Which way a link leads, as seen from the router.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Way {
    Up,
    Down,
}

/// The form of a discipline on the tested links of `scenario`; `None` if there is none.
pub(crate) fn of(choice: &DisciplineChoice, scenario: &Scenario) -> Option<LiveForm> {
    let Some(kind) = choice.entry.linux else { return ours(choice, scenario) };
    let tested = || scenario.links.iter().filter(|link| matches!(link.queue, QueueSpec::Tested(_)));
    let mut form = LiveForm {
        label: choice.label.clone(),
        notes: Vec::new(),
        tc: Vec::new(),
        takes_tidegate: false,
        undo: Vec::new(),
        sqm: Vec::new(),
        sqm_undo: Vec::new(),
    };
    let has_cell = tested().any(in_the_air);
    let tested = || tested().filter(|link| !in_the_air(link));
    if has_cell && tested().next().is_none() {
        form.notes.push(at_an_access_point(kind).into());
        return Some(form);
    }
    if has_cell {
        form.notes.push(beside_a_cell(kind));
    }
    if kind == "dualpi2" {
        form.notes.push("Linux has dualpi2 from 6.17 on, and tc has to know it too.".into());
    }
    // Several links one way are one port each; the first stands for all.
    let first = |way| tested().find(|link| way_of(link) == way);
    let rates = [Way::Up, Way::Down].map(|way| first(way).and_then(|link| link.capacity.rate()));
    let [up, down] = rates.map(|rate| rate.map(shaped));
    if let (Some(_), None) = (up, down) {
        form.notes.push(format!(
            "{PORT} is the slow port itself, with its queue in this machine. Behind a modem, a \
             shaper has to hold the traffic back first."
        ));
        form.tc = vec![format!("tc qdisc replace dev {PORT} root {}", leaf(kind))];
        form.undo = vec![format!("tc qdisc del dev {PORT} root")];
        return Some(form);
    }
    form.notes.push(format!(
        "{PORT} is the port towards the slow link; {PERCENT}% of the link's rate keeps the queue \
         on this side."
    ));
    if tested().any(|link| matches!(link.capacity, Capacity::Trace(_))) {
        form.notes.push(OF_THE_MEAN.into());
    }
    let (options, others) = options(choice);
    if !others.is_empty() {
        form.notes.push(format!(
            "It was compared with {}: add that in the words of 'man tc-{kind}'.",
            others.join(", ")
        ));
    }
    let kind = format!("{kind}{options}");
    if let Some(rate) = up {
        form.tc.extend(queue(PORT, &kind, rate, Way::Up));
        form.undo.push(format!("tc qdisc del dev {PORT} root"));
    }
    if let Some(rate) = down {
        form.tc.extend([
            format!("ip link add name {INCOMING} type ifb"),
            format!("ip link set dev {INCOMING} up"),
            format!("tc qdisc add dev {PORT} ingress"),
            format!(
                "tc filter add dev {PORT} ingress matchall action mirred egress redirect dev \
                 {INCOMING}"
            ),
        ]);
        form.tc.extend(queue(INCOMING, &kind, rate, Way::Down));
        form.undo.push(format!("tc qdisc del dev {PORT} ingress"));
        form.undo.push(format!("ip link del {INCOMING}"));
    }
    form.sqm = sqm(&kind, up, down);
    if !form.sqm.is_empty() {
        form.sqm_undo = vec![set_sqm("enabled", "0"), RESTART_SQM.into()];
    }
    Some(form)
}

/// A discipline that no kernel brings along: as a queue of the kernel where it has a program,
/// else as a link in user space, which takes the rates of both directions.
fn ours(choice: &DisciplineChoice, scenario: &Scenario) -> Option<LiveForm> {
    let tested = |way| {
        let mut links = scenario.links.iter().filter(move |link| way_of(link) == way);
        links.find_map(|link| match (&link.queue, in_the_air(link)) {
            (QueueSpec::Tested(buffer), false) => Some((link.capacity.rate()?, *buffer)),
            _ => None,
        })
    };
    let (up, down) = (tested(Way::Up), tested(Way::Down));
    let is_slow_port = down.is_none();
    let rate = |found: Option<(Rate, _)>| {
        found.map(|(rate, _)| kbit(if is_slow_port { rate } else { shaped(rate) }))
    };
    let is_program = programs::find(choice.entry.name).is_some()
        && programs::unsupported(choice.entry.name, &choice.settings).is_none();
    let command = if is_program { "qdisc add" } else { "link run" };
    let mut line = format!("tidegate {command} {PORT}");
    match (rate(down), rate(up)) {
        (None, None) => return None,
        (None, Some(_)) | (Some(_), None) if !is_program => return None,
        (down, up) => {
            for (way, rate) in [("down", down), ("up", up)] {
                let _ = rate.map(|rate| write!(line, " --{way} {rate}kbit"));
            }
        }
    }
    let usual = DisciplineChoice::with_defaults(choice.entry).parameters();
    let set = choice.parameters().into_iter().filter(|it| !usual.contains(it));
    let set: String = set.map(|(name, text)| format!(":{name}={text}")).collect();
    // Promises are in a file, which has a name that nobody knows here.
    if choice.contracts().is_some() || set.contains('\'') {
        return None;
    }
    let quote = if set.is_empty() { "" } else { "'" };
    let _ = write!(line, " --discipline {quote}{}{set}{quote}", choice.entry.name);
    let mut notes = vec![if is_slow_port {
        format!("{PORT} is the slow port itself, with its queue in this machine.")
    } else {
        format!(
            "{PORT} is the port towards the slow link; {PERCENT}% of the link's rate keeps the \
             queue on this side."
        )
    }];
    let is_cell = |link: &LinkSpec| matches!(link.queue, QueueSpec::Tested(_)) && in_the_air(link);
    if scenario.links.iter().any(is_cell) {
        notes.push(beside_a_cell(choice.entry.name));
    }
    if scenario.links.iter().any(|link| matches!(link.capacity, Capacity::Trace(_))) {
        notes.push(OF_THE_MEAN.into());
    }
    match [up, down].map(|found| found.map(|(rate, buffer)| in_time(buffer, rate))) {
        [Some(up), Some(down)] if up != down => notes.push(format!(
            "Both buffers are of 100 ms; it was compared with {up} upwards and {down} downwards."
        )),
        [up, down] => {
            let _ = down.or(up).map(|buffer| write!(line, " --buffer '{buffer}'"));
        }
    }
    notes.push(if is_program {
        "This takes Tidegate on the router and a kernel with BPF qdiscs, which 'tidegate doctor' \
         looks for; 'tidegate link run' does the same on any."
            .into()
    } else {
        "This takes Tidegate on the router, and lasts until it is stopped.".to_string()
    });
    let undo = if is_program { "qdisc del" } else { "link stop" };
    Some(LiveForm {
        label: choice.label.clone(),
        notes,
        tc: vec![line],
        takes_tidegate: true,
        undo: vec![format!("tidegate {undo} {PORT}")],
        sqm: Vec::new(),
        sqm_undo: Vec::new(),
    })
}

/// A buffer as the time in which the link sends it, where that is a whole number of
/// milliseconds: so that it is the same for links of other rates.
fn in_time(buffer: Buffer, rate: Rate) -> String {
    match buffer.amount() {
        Amount::Bytes(bytes) if rate.0 > 0 && bytes.0 * 8_000 % rate.0 == 0 => {
            format!("{} ms", bytes.0 * 8_000 / rate.0)
        }
        _ => buffer.to_string(),
    }
}

/// Whether a link is a cell's.
fn in_the_air(link: &LinkSpec) -> bool {
    matches!(link.capacity, Capacity::Downlink(_))
}

/// What the lines are for, if a cell is tested as well.
fn beside_a_cell(kind: &str) -> String {
    format!(
        "These lines are for the link to the provider. For the Wi-Fi behind it: {}",
        at_an_access_point(kind)
    )
}

/// What Linux has on its own on an access point.
fn at_an_access_point(kind: &str) -> &'static str {
    if kind == "fq_codel" {
        "Linux's Wi-Fi stack has FQ-CoDel for each station built in and on, with drivers that use \
         its queues (ath9k, ath10k, mt76, iwlwifi): there is nothing to type."
    } else {
        "Linux's Wi-Fi stack has FQ-CoDel for each station built in, and its queues cannot be \
         replaced by tc."
    }
}

/// The names of links say which way they lead: those of `[access]` do.
fn way_of(link: &LinkSpec) -> Way {
    if link.name.to_lowercase().contains("down") { Way::Down } else { Way::Up }
}

fn shaped(rate: Rate) -> Rate {
    Rate(rate.0 / 100 * PERCENT)
}

/// In the words of `tc`, in kbit/s.
fn kbit(rate: Rate) -> u64 {
    (rate.0 / 1_000).max(1)
}

/// The parameters that differ from the defaults: those that `tc` calls the same as its
/// options, the others in words.
fn options(choice: &DisciplineChoice) -> (String, Vec<String>) {
    const THE_SAME: [&str; 3] = ["rtt", "target", "interval"];
    let usual = DisciplineChoice::with_defaults(choice.entry).parameters();
    let set = choice.parameters().into_iter().filter(|it| !usual.contains(it));
    let (mut options, mut others) = (String::new(), Vec::new());
    for (name, text) in set {
        if THE_SAME.contains(&name) {
            let _ = write!(options, " {name} {}us", choice.settings.span(name).0 / 1_000);
        } else {
            others.push(format!("{} {text}", name.replace('_', " ")));
        }
    }
    (options, others)
}

/// A queue of this kind on `device`, held back to `rate`.
fn queue(device: &str, kind: &str, rate: Rate, way: Way) -> Vec<String> {
    let rate = kbit(rate);
    if let Some(options) = kind.strip_prefix("cake") {
        // It holds traffic back by itself. 'nat' tells the hosts behind a router apart, and
        // 'ingress' counts what it drops, since that has crossed the link already.
        let way = if way == Way::Down { " ingress" } else { "" };
        return vec![format!(
            "tc qdisc replace dev {device} root cake bandwidth {rate}kbit nat{way}{options}"
        )];
    }
    let leaf = leaf(kind);
    vec![
        format!("tc qdisc replace dev {device} root handle 1: htb default 1"),
        format!("tc class replace dev {device} parent 1: classid 1:1 htb rate {rate}kbit"),
        format!("tc qdisc replace dev {device} parent 1:1 {leaf}"),
    ]
}

/// A queue with its defaults; RED is the only one that has no limit of its own.
fn leaf(kind: &str) -> &str {
    if kind == "red" { "red limit 400000 avpkt 1000" } else { kind }
}

/// The line that sets an option of SQM. Its file has one queue from the start.
fn set_sqm(option: &str, value: &str) -> String {
    format!("uci set sqm.@queue[0].{option}='{value}'")
}

/// The same for SQM, which has scripts for two of them.
fn sqm(kind: &str, up: Option<Rate>, down: Option<Rate>) -> Vec<String> {
    let (kind, options) = kind.split_once(' ').unwrap_or((kind, ""));
    let script = match kind {
        "cake" => "layer_cake.qos",
        // 'simple.qos' would sort packets into three classes first, which was not compared.
        "fq_codel" => "simplest.qos",
        _ => return Vec::new(),
    };
    // Zero is what SQM takes for a direction that is left alone.
    let [up, down] = [up, down].map(|rate| rate.map_or(0, kbit));
    let mut lines = vec![
        "apk add --update-cache sqm-scripts || { opkg update && opkg install sqm-scripts; }".into(),
        set_sqm("interface", PORT),
        set_sqm("enabled", "1"),
        set_sqm("download", &down.to_string()),
        set_sqm("upload", &up.to_string()),
        set_sqm("qdisc", kind),
        set_sqm("script", script),
    ];
    if !options.is_empty() {
        // Both take the words of 'tc'; the switches have OpenWrt's pages show them.
        lines.extend(["qdisc_advanced", "qdisc_really_really_advanced"].map(|it| set_sqm(it, "1")));
        lines.extend(["eqdisc_opts", "iqdisc_opts"].map(|it| set_sqm(it, options)));
    }
    lines.push(RESTART_SQM.into());
    lines
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::io::{self, Write as _};

    use tidegate_core::registry;

    use tidegate_sim::scenario::file;

    use super::*;
    use clap::Parser as _;

    use crate::arguments::{Arguments, LinkArguments, Preset};
    use crate::home;
    use tidegate_study::builtin::{self, SCENARIOS};

    fn form(scenario: &str, discipline: &str) -> Option<LiveForm> {
        let scenario = builtin::find(SCENARIOS, scenario).unwrap().scenario();
        of(&discipline.parse().unwrap(), &scenario)
    }

    #[test]
    fn both_directions_of_a_household_are_held_back_a_little() {
        let cake = form("household", "cake").unwrap();
        assert_eq!(
            cake.tc,
            [
                "tc qdisc replace dev eth1 root cake bandwidth 4750kbit nat",
                "ip link add name ifb4eth1 type ifb",
                "ip link set dev ifb4eth1 up",
                "tc qdisc add dev eth1 ingress",
                "tc filter add dev eth1 ingress matchall action mirred egress redirect dev ifb4eth1",
                "tc qdisc replace dev ifb4eth1 root cake bandwidth 19000kbit nat ingress",
            ]
        );
        assert!(cake.sqm.contains(&"uci set sqm.@queue[0].download='19000'".into()));
        assert_eq!(cake.notes.len(), 1);
        let fq_codel = form("household", "fq-codel").unwrap();
        assert_eq!(
            fq_codel.tc[1],
            "tc class replace dev eth1 parent 1: classid 1:1 htb rate 4750kbit"
        );
        assert_eq!(fq_codel.tc[2], "tc qdisc replace dev eth1 parent 1:1 fq_codel");
        assert!(fq_codel.sqm.contains(&"uci set sqm.@queue[0].script='simplest.qos'".into()));
    }

    #[test]
    fn a_port_whose_queue_is_here_needs_no_shaper() {
        let form = form("dumbbell", "fq-codel").unwrap();
        assert_eq!(form.tc, ["tc qdisc replace dev eth1 root fq_codel"]);
        assert!(form.sqm.is_empty() && form.text(80).contains("the slow port itself"));
    }

    #[test]
    fn a_line_to_type_is_one_for_a_shell_however_narrow_the_terminal_is() {
        let line = "tidegate qdisc add eth1 --up 4000kbit --discipline 'efd:threshold=10 packets'";
        assert_eq!(typed(line, 100), format!("  {line}\n"));
        let narrow = typed(line, 60);
        let lines: Vec<_> = narrow.lines().collect();
        assert_eq!(lines[0], r"  tidegate qdisc add eth1 --up 4000kbit \");
        assert!(lines[1].starts_with("    --discipline") && lines.len() == 2);
        assert_eq!(narrow.replace(" \\\n   ", ""), format!("  {line}\n"));
    }

    #[test]
    fn every_queue_of_linux_has_its_lines_and_the_others_those_of_tidegate() {
        for entry in registry::DISCIPLINES {
            let form = form("household", entry.name);
            // What was promised is in a file.
            assert_eq!(form.is_none(), entry.name == "deadlines", "{}", entry.name);
            if let Some(form) = form {
                assert_eq!(form.takes_tidegate, entry.linux.is_none(), "{}", entry.name);
                assert!(!form.tc.is_empty() && !form.undo.is_empty());
            }
        }
        for scenario in ["household", "dumbbell"] {
            let young = form(scenario, "dualpi2").unwrap();
            assert!(young.notes[0].contains("6.17"), "{:?}", young.notes);
        }
        let efd = form("household", "efd:threshold=30 kB").unwrap();
        assert_eq!(
            efd.tc,
            ["tidegate qdisc add eth1 --down 19000kbit --up 4750kbit \
              --discipline 'efd:threshold=30 kB'"]
        );
        assert!(efd.notes.iter().any(|note| note.contains("compared with")), "{:?}", efd.notes);
        assert_eq!(efd.undo, ["tidegate qdisc del eth1"]);
        let las = form("household", "efd:low=las").unwrap();
        assert!(las.tc[0].starts_with("tidegate link run eth1 --down 19000kbit --up 4750kbit"));
        let slow = form("dumbbell", "las").unwrap();
        assert!(slow.tc[0].starts_with("tidegate qdisc add eth1 --up "), "{:?}", slow.tc);
        assert!(slow.tc[0].ends_with(" --discipline las --buffer '300 packets'"));
        for line in [&efd, &las, &slow].map(|form| &form.tc[0]) {
            // What is quoted is one word, at every other place.
            let parts = line.split('\'').enumerate();
            let words = parts.flat_map(|(place, part)| match place % 2 {
                0 => part.split_whitespace().collect::<Vec<_>>(),
                _ => vec![part],
            });
            assert!(Arguments::try_parse_from(words).is_ok(), "{line}");
        }
        assert!(form("dumbbell", "efd:low=las").is_none());
        let kernel = form("household", "cake").unwrap();
        assert!(form("wifi-ac", "efd").is_none());
        let forms = [efd, las, kernel];
        assert_eq!(simplest(&forms).collect::<Vec<_>>(), [&forms[2], &forms[0]]);
    }

    /// In a network of its own: a port, the lines, what is there then, what undoes them.
    fn trial(form: &LiveForm) -> String {
        let show = "echo; tc qdisc show; tc class show dev eth1; ip -br link show type ifb";
        let port = "ip link add eth1 type veth peer name far; ip link set eth1 up";
        let (lines, undo) = (form.tc.join("\n"), form.undo.join("\n"));
        // The shell of busybox has an ip and a tc of its own.
        let own = "ip() { /sbin/ip \"$@\"; }; tc() { /sbin/tc \"$@\"; }";
        format!("{own}\n{port}\n{show}\n{lines}\n{show}\n{undo}\n{show}\n")
    }

    /// `tools/check-lines.sh` runs this in a guest whose kernel has every queue.
    #[test]
    fn the_kernel_takes_every_line_and_nothing_is_left_of_them() {
        // What a machine may lack, in the words of its programs; all else is a mistake.
        const LACKS: [&str; 7] = [
            "qdisc kind is unknown",
            "TC classifier not found",
            "Unknown device type",
            "Operation not permitted",
            "/sbin/ip: not found",
            "/sbin/tc: not found",
            "there is no unshare",
        ];
        let of_linux = registry::DISCIPLINES.iter().filter_map(|it| Some((it.name, it.linux?)));
        let (mut taken, mut skipped) = (Vec::new(), BTreeMap::<String, Vec<String>>::new());
        for (name, kind) in of_linux {
            let set = if name == "cake" { "cake:rtt=30ms" } else { name };
            for (scenario, discipline) in [("household", set), ("dumbbell", name)] {
                let form = form(scenario, discipline).unwrap();
                let what = format!("{name} in {scenario}");
                let shell = ["-n", "sh", "-e", "-c", &trial(&form)];
                let output = std::process::Command::new("unshare").args(shell).output();
                let said = match &output {
                    Ok(output) => String::from_utf8_lossy(&output.stderr).into_owned(),
                    Err(_) => "there is no unshare".into(),
                };
                let lacks = |line: &&str| LACKS.iter().any(|text| line.contains(text));
                if let Some(reason) = said.lines().find(lacks) {
                    skipped.entry(reason.into()).or_default().push(what);
                    continue;
                }
                let output = output.unwrap();
                let shown = String::from_utf8(output.stdout).unwrap();
                assert!(output.status.success(), "{what}: {said}\n{shown}");
                let states: Vec<_> = shown.split("\n\n").map(str::trim).collect();
                let [before, then, after] = states[..] else { panic!("{what}: {shown}") };
                assert_eq!(before, after, "{what}: something is left");
                let queue = format!("qdisc {kind} ");
                let queues = then.lines().filter(|line| line.starts_with(&queue)).count();
                let is_shaped = scenario == "household";
                assert_eq!(queues, if is_shaped { 2 } else { 1 }, "{what}:\n{then}");
                assert_eq!(then.contains("4750Kbit"), is_shaped, "{what}:\n{then}");
                let is_set = discipline.contains("30ms");
                assert_eq!(then.contains("rtt 30ms"), is_set, "{what}:\n{then}");
                taken.push(what);
            }
        }
        let mut out = io::stderr();
        if !taken.is_empty() {
            writeln!(out, "the kernel takes the lines for {}", taken.join(", ")).unwrap();
        }
        for (reason, names) in skipped {
            writeln!(out, "SKIP the lines for {}: {reason}", names.join(", ")).unwrap();
        }
    }

    #[test]
    fn other_settings_a_varying_rate_and_a_cell_are_noted() {
        let set = form("household", "cake:rtt=30ms:tins=besteffort").unwrap();
        assert!(set.notes[1].contains("tins besteffort"), "{:?}", set.notes);
        assert!(set.tc[0].ends_with("4750kbit nat rtt 30000us"), "{:?}", set.tc);
        assert!(set.sqm.contains(&"uci set sqm.@queue[0].iqdisc_opts='rtt 30000us'".into()));
        let varying = form("cellular", "cake").unwrap();
        assert!(varying.notes[1].contains("varies"), "{:?}", varying.notes);
        let cell = form("wifi-ac", "fq-codel").unwrap();
        assert!(cell.tc.is_empty() && cell.notes[0].contains("nothing to type"));
    }

    #[test]
    fn a_cell_behind_a_link_has_the_lines_of_the_link_and_the_note_of_the_cell() {
        let arguments = LinkArguments {
            wifi: Some("54 Mbit/s".parse().unwrap()),
            preset: Some(Preset::Dsl),
            ..LinkArguments::default()
        };
        let input = home::input(&arguments).unwrap().unwrap();
        let (scenario, _) = input.read(|data| file::parse(&input.name, &input.text, data)).unwrap();
        let form = of(&"cake".parse().unwrap(), &scenario).unwrap();
        assert!(form.notes[0].contains("cannot be replaced by tc"), "{:?}", form.notes);
        assert!(form.tc[0].contains("950kbit") && form.tc.len() == 6, "{:?}", form.tc);
    }
}
