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

/// The address of the user, and of the provider in both forms.
pub(crate) const USER: [u8; 4] = [192, 0, 2, 1];

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
        for (host, name, address) in
            [(&self.user, "lan0", USER), (&self.provider, "wan0", self.address())]
        {
            let [a, b, c, d] = address;
            let (network, peer) = (&self.network, host.thread());
            network.ip(&format!("link add {name} type veth peer name eth netns {peer}"));
            network.ip(&format!("link set dev {name} addrgenmode none up"));
            for words in [
                "link set eth addrgenmode none up".into(),
                format!("address add {a}.{b}.{c}.{d}/24 dev eth"),
            ] {
                host.words("ip", &words).unwrap();
            }
            if self.form == Form::Router {
                network.ip(&format!("address add {a}.{b}.{c}.254/24 dev {name}"));
                host.words("ip", &format!("route add default via {a}.{b}.{c}.254")).unwrap();
            }
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
        let interfaces: &[&str] = match self.form {
            Form::Between => &["lan0", "wan0"],
            Form::Router => &["wan0"],
        };
        [interfaces, more].concat()
    }
}
