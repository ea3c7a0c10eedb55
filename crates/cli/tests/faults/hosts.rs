//! A user and a provider with the kernel's TCP, and where the link stands between them.

use tidegate_judge::host::{Host, Missing};

use crate::network::{Network, skip};

/// Where the link stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Form {
    /// In place of a cable.
    Between,
    /// On a router.
    Router,
}

impl Form {
    /// The interfaces and these arguments of `run`.
    pub(crate) fn words<'a>(self, more: &[&'a str]) -> Vec<&'a str> {
        let interfaces: &[&str] = match self {
            Form::Between => &["lan0", "wan0"],
            Form::Router => &["wan0"],
        };
        [interfaces, more].concat()
    }
}

/// The address of the user, and of the provider in both forms.
pub(crate) const USER: [u8; 4] = [192, 0, 2, 1];

/// The address of an interface: of the user 1, of the provider 2, and of what stands opposite
/// to them 6 and 7.
fn mac(number: u8) -> String {
    format!("02:00:00:00:00:{number:02x}")
}

/// Both hosts, with the network of the link between them.
pub(crate) struct Bed {
    pub(crate) network: Network,
    pub(crate) user: Host,
    pub(crate) provider: Host,
    pub(crate) form: Form,
}

impl Bed {
    /// Nothing where this machine does not permit it, which is said.
    pub(crate) fn new(name: &str, form: Form) -> Option<Bed> {
        let network = Network::new(name)?;
        let hosts = || Ok((Host::new()?, Host::new()?));
        let (user, provider) = hosts().inspect_err(|missing: &Missing| skip(name, missing)).ok()?;
        for host in [&user, &provider] {
            // Where there is no IPv6, nothing has to be said.
            let _ = host.set("ipv6/conf/default/disable_ipv6", "1");
        }
        let bed = Bed { network, user, provider, form };
        bed.connect();
        if form == Form::Router {
            bed.network.says("sh", &["-c", "echo 1 > /proc/sys/net/ipv4/ip_forward"]);
        }
        // Only a link tells whether packets can be held here.
        match bed.network.run(&bed.words(&["--down", "1 Gbit/s", "--up", "1 Gbit/s"])) {
            Ok(link) => link.stop(&bed.network),
            Err(said) if form == Form::Router && said.contains("found no ") => {
                skip(name, &said);
                return None;
            }
            Err(said) => panic!("{said}"),
        }
        Some(bed)
    }

    /// Makes the interfaces, and gives the hosts their addresses.
    pub(crate) fn connect(&self) {
        let ends = [(&self.user, "lan0", USER, 1), (&self.provider, "wan0", self.address(), 2)];
        for (host, name, address, number) in ends {
            let [a, b, c, d] = address;
            let (network, peer) = (&self.network, host.thread());
            let [ours, theirs] = [5, 0].map(|more| mac(number + more));
            network.ip(&format!(
                "link add {name} address {ours} type veth peer name eth address {theirs} netns {peer}"
            ));
            network.ip(&format!("link set dev {name} addrgenmode none up"));
            let mut words = vec![
                "link set eth addrgenmode none up".into(),
                format!("address add {a}.{b}.{c}.{d}/24 dev eth"),
            ];
            // Nobody asks for an address while packets are counted.
            if self.form == Form::Router {
                let address = format!("{a}.{b}.{c}.254");
                network.ip(&format!("address add {address}/24 dev {name}"));
                network.ip(&format!("neigh replace {a}.{b}.{c}.{d} lladdr {theirs} dev {name}"));
                words.push(format!("neigh replace {address} lladdr {ours} dev eth"));
                words.push(format!("route add default via {address}"));
            } else {
                let other = format!("{a}.{b}.{c}.{}", 3 - d);
                words.push(format!("neigh replace {other} lladdr {} dev eth", mac(3 - number)));
            }
            words.iter().for_each(|words| host.words("ip", words).unwrap());
        }
    }

    /// The address of the provider.
    pub(crate) fn address(&self) -> [u8; 4] {
        match self.form {
            Form::Between => [192, 0, 2, 2],
            Form::Router => [198, 51, 100, 1],
        }
    }

    /// The arguments of `run`.
    pub(crate) fn words<'a>(&self, more: &[&'a str]) -> Vec<&'a str> {
        self.form.words(more)
    }
}
