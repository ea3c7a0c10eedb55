//! Rules of a router's packet filter that have the kernel hold packets in two queues.
//!
//! **What is held** is all that takes the link to the provider: what came from it, and
//! what is to leave by it. That is every IPv4 and IPv6 packet of its interface, those that
//! are routed and those of the router itself. The router's own have to wait as well,
//! because what passes the queue by would fill the one behind it, which nobody keeps
//! short; a proxy or a tunnel on the router may even be most of what the link carries.
//! Neighbour discovery of IPv6 waits too, as it does in a queue of the kernel's own.
//! Nothing between the router and its users is held, and so the router can be reached from
//! inside, whatever becomes of the queues.
//!
//! **Where**: packets up wait after routing and before the router puts its own address
//! into them; packets down wait after it has put the users' back. So each flow has
//! its user's address in both directions. What the router refuses to route is not held on
//! its way up; on its way down it is, since it took its time on the link. Rules of others
//! in the same place come first.
//!
//! **Removal** needs nothing but the name: not the interface, nor the numbers, that may
//! have changed since a crash. Of nftables there is one table, `tidegate_link_NAME`, and to
//! remove the rules is to delete it. Of iptables there are two chains of the table
//! `mangle`, `tidegate_NAME_down` and `tidegate_NAME_up`, and jumps to them, which are
//! found in what `iptables-save` lists. Both are set and removed in one transaction, and
//! setting them replaces those that there are.

use std::fmt::Write as _;

/// Most characters of a name: what iptables leaves of the 28 of a chain.
const LONGEST_NAME: usize = 28 - "tidegate__down".len();

/// Most characters of the name of an interface.
const LONGEST_INTERFACE: usize = 15;

/// What tells the rules of one link from those of others: up to 14 letters, digits and
/// underscores.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(String);

/// Rules that hold the packets of a link.
///
/// ```
/// use tidegate_link::nfqueue::rules::{Name, Rules};
///
/// let name = Name::new("wan")?;
/// let rules = Rules::new(name, "ppp0", 1, 2, true)?;
/// assert!(rules.nft().contains("iifname \"ppp0\" queue num 1 bypass\n"));
/// # Ok::<(), tidegate_link::nfqueue::rules::RulesError>(())
/// ```
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rules {
    name: Name,
    outside: String,
    down: u16,
    up: u16,
    bypass: bool,
}

/// Why there are no rules.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RulesError {
    /// A name is not one.
    #[error("found the name {0:?}, expected 1 to {LONGEST_NAME} letters, digits and underscores")]
    Name(String),
    /// An interface cannot have this name in a rule.
    #[error(
        "found the interface {0:?}, expected 1 to {LONGEST_INTERFACE} letters, digits, dots, \
         hyphens and underscores"
    )]
    Interface(String),
    /// Both directions have the same queue.
    #[error("found queue {0} for both directions, expected two queues")]
    OneQueue(u16),
}

impl Name {
    /// A name.
    ///
    /// # Errors
    /// It has other characters, none, or too many.
    pub fn new(name: &str) -> Result<Name, RulesError> {
        let is_name = consists_of(name, LONGEST_NAME, "_");
        is_name.then(|| Name(name.into())).ok_or_else(|| RulesError::Name(name.into()))
    }

    /// The table of nftables.
    fn table(&self) -> String {
        format!("inet tidegate_link_{}", self.0)
    }

    /// The chains of iptables, down and up.
    fn chains(&self) -> [String; 2] {
        ["down", "up"].map(|direction| format!("tidegate_{}_{direction}", self.0))
    }

    /// The program for `nft -f` that removes the rules, whether or not there are any.
    #[must_use]
    pub fn nft_removal(&self) -> String {
        let table = self.table();
        format!("table {table}\ndelete table {table}\n")
    }

    /// The program for `iptables-restore --noflush`, and for `ip6tables-restore`, that
    /// removes the rules that `iptables-save -t mangle` lists; `None` if it lists none.
    #[must_use]
    pub fn iptables_removal(&self, listed: &str) -> Option<String> {
        let chains = self.chains();
        let is_there = |chain: &&String| {
            let mut declared = listed.lines().filter_map(|line| line.strip_prefix(':'));
            declared.any(|line| line.split(' ').next() == Some(chain))
        };
        let there: Vec<_> = chains.iter().filter(is_there).collect();
        if there.is_empty() {
            return None;
        }
        let mut text = format!("*mangle\n{}", self.unlink(listed));
        there.iter().for_each(|chain| {
            let _ = writeln!(text, "-F {chain}\n-X {chain}");
        });
        text.push_str("COMMIT\n");
        Some(text)
    }

    /// The lines that remove all jumps to our chains.
    fn unlink(&self, listed: &str) -> String {
        let chains = self.chains();
        let targets = chains.map(|chain| format!(" -j {chain}"));
        let added = listed.lines().filter_map(|line| line.strip_prefix("-A "));
        added
            .filter(|rule| targets.iter().any(|target| rule.ends_with(target.as_str())))
            .map(|rule| format!("-D {rule}\n"))
            .collect()
    }
}

impl Rules {
    /// Rules that hold what comes from the interface `outside` in the queue `down`, and
    /// what leaves by it in `up`. With `bypass`, packets go on unheld while nobody has
    /// opened their queue; else they are dropped.
    ///
    /// # Errors
    /// The interface has a name that rules cannot have, or both queues are the same.
    pub fn new(
        name: Name,
        outside: &str,
        down: u16,
        up: u16,
        bypass: bool,
    ) -> Result<Rules, RulesError> {
        if !consists_of(outside, LONGEST_INTERFACE, ".-_") {
            return Err(RulesError::Interface(outside.into()));
        }
        if down == up {
            return Err(RulesError::OneQueue(down));
        }
        Ok(Rules { name, outside: outside.into(), down, up, bypass })
    }

    /// Their name.
    #[must_use]
    pub fn name(&self) -> &Name {
        &self.name
    }

    /// The program for `nft -f` that sets the rules, instead of those of this name.
    #[must_use]
    pub fn nft(&self) -> String {
        let Rules { name, outside, down, up, bypass } = self;
        let bypass = if *bypass { " bypass" } else { "" };
        let mut text = name.nft_removal();
        let _ = writeln!(text, "table {} {{", name.table());
        for (chain, hook, interface, queue) in [
            ("down", "forward", "iifname", down),
            ("down_own", "input", "iifname", down),
            ("up", "postrouting", "oifname", up),
        ] {
            let _ = write!(
                text,
                "    chain {chain} {{\n        type filter hook {hook} priority mangle; policy \
                 accept\n        {interface} \"{outside}\" queue num {queue}{bypass}\n    }}\n"
            );
        }
        text.push_str("}\n");
        text
    }

    /// The program for `iptables-restore --noflush`, and for `ip6tables-restore`, that sets
    /// the rules, instead of those of this name that `iptables-save -t mangle` lists.
    #[must_use]
    pub fn iptables(&self, listed: &str) -> String {
        let Rules { name, outside, down, up, bypass } = self;
        let bypass = if *bypass { " --queue-bypass" } else { "" };
        let [to_down, to_up] = name.chains();
        // A chain that is declared is empty, even if it was there.
        let declared = format!("*mangle\n:{to_down} - [0:0]\n:{to_up} - [0:0]\n");
        let mut text = declared + &name.unlink(listed);
        for (chain, interface, queue) in [(&to_down, "-i", down), (&to_up, "-o", up)] {
            let target = format!("NFQUEUE --queue-num {queue}{bypass}");
            let _ = writeln!(text, "-A {chain} {interface} {outside} -j {target}");
        }
        for (hook, chain) in [("FORWARD", &to_down), ("INPUT", &to_down), ("POSTROUTING", &to_up)] {
            let _ = writeln!(text, "-A {hook} -j {chain}");
        }
        text.push_str("COMMIT\n");
        text
    }
}

/// Whether all characters are letters of ASCII, digits, or among these.
fn consists_of(text: &str, longest: usize, others: &str) -> bool {
    let fits = |c: char| c.is_ascii_alphanumeric() || others.contains(c);
    (1..=longest).contains(&text.len()) && text.chars().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rules(bypass: bool) -> Rules {
        Rules::new(Name::new("wan").unwrap(), "eth0.7", 1, 2, bypass).unwrap()
    }

    #[test]
    fn nftables_gets_one_table_instead_of_the_one_that_is_there() {
        let expected = "\
table inet tidegate_link_wan
delete table inet tidegate_link_wan
table inet tidegate_link_wan {
    chain down {
        type filter hook forward priority mangle; policy accept
        iifname \"eth0.7\" queue num 1 bypass
    }
    chain down_own {
        type filter hook input priority mangle; policy accept
        iifname \"eth0.7\" queue num 1 bypass
    }
    chain up {
        type filter hook postrouting priority mangle; policy accept
        oifname \"eth0.7\" queue num 2 bypass
    }
}
";
        assert_eq!(rules(true).nft(), expected);
        assert_eq!(rules(false).nft(), expected.replace(" bypass", ""));
        let removal = rules(true).name().nft_removal();
        assert!(expected.starts_with(&removal), "{removal}");
    }

    const SET: &str = "\
*mangle
:tidegate_wan_down - [0:0]
:tidegate_wan_up - [0:0]
-A tidegate_wan_down -i eth0.7 -j NFQUEUE --queue-num 1 --queue-bypass
-A tidegate_wan_up -o eth0.7 -j NFQUEUE --queue-num 2 --queue-bypass
-A FORWARD -j tidegate_wan_down
-A INPUT -j tidegate_wan_down
-A POSTROUTING -j tidegate_wan_up
COMMIT
";

    #[test]
    fn iptables_gets_chains_of_its_own() {
        assert_eq!(rules(true).iptables(""), SET);
        assert_eq!(rules(false).iptables(""), SET.replace(" --queue-bypass", ""));
    }

    /// Of a machine where the rules were set twice, and that has rules of others.
    const LISTED: &str = "\
# Generated by iptables-save
*mangle
:FORWARD ACCEPT [10:840]
:tidegate_wan_down - [0:0]
:tidegate_wan_down_too - [0:0]
:tidegate_lan_down - [0:0]
-A FORWARD -p tcp -j TCPMSS --clamp-mss-to-pmtu
-A FORWARD -j tidegate_wan_down
-A FORWARD -j tidegate_wan_down
-A FORWARD -j tidegate_wan_down_too
-A FORWARD -j tidegate_lan_down
-A tidegate_wan_down -i eth9 -j NFQUEUE --queue-num 9
COMMIT
";

    #[test]
    fn removal_takes_what_is_listed_of_the_name_and_nothing_else() {
        let name = Name::new("wan").unwrap();
        let expected = "\
*mangle
-D FORWARD -j tidegate_wan_down
-D FORWARD -j tidegate_wan_down
-F tidegate_wan_down
-X tidegate_wan_down
COMMIT
";
        assert_eq!(name.iptables_removal(LISTED).as_deref(), Some(expected));
        assert_eq!(Name::new("other").unwrap().iptables_removal(LISTED), None);
        assert_eq!(name.iptables_removal(""), None);
        let replaced = rules(true).iptables(LISTED);
        assert_eq!(replaced.matches("-D FORWARD -j tidegate_wan_down\n").count(), 2, "{replaced}");
        assert_eq!(replaced.replace("-D FORWARD -j tidegate_wan_down\n", ""), SET);
    }

    #[test]
    fn names_that_would_mean_something_else_are_refused() {
        let name = || Name::new("wan").unwrap();
        for wrong in ["", "a b", "a\nb", "eth+", "\"; flush ruleset; \"", "sixteen_letters_"] {
            let error = Rules::new(name(), wrong, 1, 2, true).unwrap_err();
            assert_eq!(error, RulesError::Interface(wrong.into()));
            assert_eq!(Name::new(wrong), Err(RulesError::Name(wrong.into())));
        }
        assert_eq!(Rules::new(name(), "eth0", 3, 3, true), Err(RulesError::OneQueue(3)));
        let longest = Name::new("fourteen_chars").unwrap();
        assert!(longest.chains().iter().all(|chain| chain.len() <= 28));
    }
}
