//! The table `[intercept]`.

use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_files::{At, Count, Mistake, Quantity};

use super::SocketAddress;
use crate::intercept::{Intercept, Mode, Quic};

/// Ports of servers whose connections are taken when the file does not say which.
const HTTP: &[u16] = &[80];
const TUNNELS: &[u16] = &[443];

/// Connections that are taken without their clients' knowledge.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct InterceptTable {
    /// The address and port at which the kernel hands them over, such as 0.0.0.0:3130, or
    /// [::]:3130 for both families.
    listen: Quantity<SocketAddress>,
    /// How it does; by default it rewrites their destination.
    #[serde(default)]
    mode: Mode,
    /// Ports of servers that speak HTTP; by default 80.
    http: Option<At<Vec<At<Count<1, 65_535>>>>>,
    /// Ports of servers whose connections are tunnels; by default 443.
    tunnels: Option<At<Vec<At<Count<1, 65_535>>>>>,
    /// What becomes of QUIC on those ports: by default it is refused, so that browsers use
    /// TCP; it may pass unscheduled, or be relayed.
    #[serde(default)]
    quic: Quic,
    /// Whether what clients receive besides, from other ports and by UDP, counts for them,
    /// with 'gateway run --rules'; by default it does not.
    count_others: Option<At<bool>>,
}

/// What the table says.
pub(super) fn intercept(
    table: &At<InterceptTable>,
    interface: Option<&At<String>>,
) -> Result<Intercept, Mistake> {
    let ports = |written: &Option<At<Vec<At<Count<1, 65_535>>>>>, default: &[u16]| match written {
        None => default.to_vec(),
        Some(list) => list.iter().map(|port| port.value.0 as u16).collect(),
    };
    let intercept = Intercept {
        listen: table.listen.value.0.0,
        mode: table.mode,
        http: ports(&table.http, HTTP),
        tunnels: ports(&table.tunnels, TUNNELS),
        quic: table.quic,
        count_others: table.count_others.as_ref().is_some_and(|count| count.value),
    };
    if let Some(count) = table.count_others.as_ref().filter(|count| count.value)
        && interface.is_none()
    {
        let expected = "also 'interface' in [link], where they are counted";
        return Err(Mistake::at(&count.place, "true", expected));
    }
    let all = || intercept.http.iter().chain(&intercept.tunnels);
    let mut sorted: Vec<_> = all().copied().collect();
    sorted.sort_unstable();
    if let Some(twice) = sorted.windows(2).find(|pair| pair[0] == pair[1]) {
        let expected = "each port once, in 'http' or in 'tunnels'";
        return Err(Mistake::at(&table.place, format!("port {} twice", twice[0]), expected));
    }
    let own = intercept.listen.port();
    match sorted.is_empty() {
        _ if own == 0 => {
            let expected = "a port that rules can name, such as 3130";
            Err(Mistake::at(&table.listen.place, "port 0", expected))
        }
        true => Err(Mistake::at(&table.place, "no ports", "a port in 'http' or in 'tunnels'")),
        false if sorted.contains(&own) => {
            let expected = "a port that is none of those taken";
            Err(Mistake::at(&table.listen.place, format!("'{}'", intercept.listen), expected))
        }
        false => Ok(intercept),
    }
}

#[cfg(test)]
mod tests {
    use crate::file::parse;
    use crate::intercept::{Mode, Quic};

    fn read(table: &str) -> Result<crate::Config, String> {
        let rest =
            "[link]\nrate = \"1 Mbit/s\"\n[[class]]\nname = \"a\"\nsources = [\"10.0.0.1\"]\n";
        parse("it", &format!("[intercept]\n{table}\n{rest}")).map_err(|error| error.to_string())
    }

    #[test]
    fn a_table_is_read_with_its_defaults() {
        let listen = "listen = \"[::]:3130\"";
        let intercept = read(listen).unwrap().intercept.unwrap();
        assert_eq!((intercept.mode, intercept.quic), (Mode::Redirect, Quic::Reject));
        assert_eq!((&intercept.http[..], &intercept.tunnels[..]), (&[80][..], &[443][..]));
        let all = "mode = \"tproxy\"\nhttp = [80, 8080]\ntunnels = []\nquic = \"pass\"";
        let intercept = read(&format!("{listen}\n{all}")).unwrap().intercept.unwrap();
        assert_eq!((intercept.mode, intercept.quic), (Mode::Tproxy, Quic::Pass));
        assert_eq!((&intercept.http[..], &intercept.tunnels[..]), (&[80, 8080][..], &[][..]));
    }

    #[test]
    fn a_table_that_makes_no_sense_is_refused_where_it_does_not() {
        for (table, message) in [
            ("", "it:1:1: "),
            ("listen = \"3130\"", "it:2:10: intercept.listen: found '3130'"),
            ("listen = \"[::]:0\"", "it:2:10: intercept.listen: found port 0"),
            ("listen = \"[::]:443\"", "it:2:10: intercept.listen: found '[::]:443'"),
            ("listen = \"[::]:1\"\nhttp = [443]", "it:1:1: intercept: found port 443 twice"),
            ("listen = \"[::]:1\"\nhttp = []\ntunnels = []", "it:1:1: intercept: found no ports"),
            ("listen = \"[::]:1\"\nmode = \"x\"", "it:3:8: intercept.mode: "),
            ("listen = \"[::]:1\"\nhttp = [0]", "it:3:9: intercept.http"),
            (
                "listen = \"[::]:1\"\ncount_others = true",
                "it:3:16: intercept.count_others: found true, expected also 'interface'",
            ),
        ] {
            let error = read(table).unwrap_err();
            assert!(error.starts_with(message), "{table}: {error}");
        }
    }
}
