//! What users receive besides what passes the gateway.
//!
//! The machine routes more than the gateway takes: other ports, UDP, QUIC that is let
//! pass. With [`rules`](crate::rules) that count it, the kernel adds it up for each
//! address, and this reads the sums, as `nft -j list` writes them. What is new of them
//! counts for the address's class and user, so that nobody gets more of the link by
//! going around the gateway.

use std::collections::BTreeMap;
use std::net::IpAddr;

use serde::Deserialize;
use tidegate_core::Bytes;

use crate::rules::OTHERS;

/// The sums that were read last.
#[derive(Clone, Debug, Default)]
pub struct Others {
    sums: BTreeMap<IpAddr, u64>,
}

/// Text is not what `nft` writes.
#[derive(Debug, thiserror::Error)]
#[error("nft's list of counters: {0}")]
pub struct NoSums(#[from] serde_json::Error);

#[derive(Deserialize)]
struct Listing {
    nftables: Vec<Item>,
}

#[derive(Deserialize)]
struct Item {
    set: Option<Set>,
}

#[derive(Deserialize)]
struct Set {
    name: String,
    #[serde(default)]
    elem: Vec<serde_json::Value>,
}

/// An element of a set that counts; those of others have other forms.
#[derive(Deserialize)]
struct Element {
    elem: Sum,
}

#[derive(Deserialize)]
struct Sum {
    val: IpAddr,
    counter: Counter,
}

#[derive(Deserialize)]
struct Counter {
    bytes: u64,
}

impl Others {
    /// What is new in a list of the table, for each address (of IPv6, the first of its 64
    /// bits).
    ///
    /// # Errors
    /// The text is no such list. Nothing is lost with it.
    pub fn read(&mut self, listing: &str) -> Result<Vec<(IpAddr, Bytes)>, NoSums> {
        let listing: Listing = serde_json::from_str(listing)?;
        let sets = listing.nftables.into_iter().filter_map(|item| item.set);
        let elements = sets.filter(|set| OTHERS.contains(&set.name.as_str()));
        let read = elements.flat_map(|set| set.elem);
        let sums: BTreeMap<_, _> = read
            .filter_map(|element| serde_json::from_value::<Element>(element).ok())
            .map(|Element { elem }| (elem.val, elem.counter.bytes))
            .collect();
        let before = std::mem::replace(&mut self.sums, sums);
        let new = self.sums.iter().map(|(address, sum)| {
            // A smaller sum began anew: the address was silent for long, or rules were set again.
            let earlier = before.get(address).filter(|earlier| *earlier <= sum);
            (*address, Bytes(sum - earlier.unwrap_or(&0)))
        });
        Ok(new.filter(|(_, size)| *size > Bytes::ZERO).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As nft 1.0.6 writes it.
    fn listing(elements4: &str, elements6: &str) -> String {
        format!(
            r#"{{"nftables": [{{"metainfo": {{"version": "1.0.6", "json_schema_version": 1}}}},
            {{"table": {{"family": "inet", "name": "tidegate", "handle": 1}}}},
            {{"set": {{"family": "inet", "name": "users4", "table": "tidegate", "type": "ipv4_addr",
              "handle": 2, "flags": ["interval"], "elem": [{{"prefix": {{"addr": "127.0.0.0", "len": 8}}}}]}}}},
            {{"set": {{"name": "others4", "timeout": 600{elements4}, "stmt": [{{"counter": null}}]}}}},
            {{"set": {{"name": "others6", "timeout": 600{elements6}, "stmt": [{{"counter": null}}]}}}},
            {{"chain": {{"family": "inet", "table": "tidegate", "name": "others"}}}}]}}"#
        )
    }

    fn elements(sums: &[(&str, u64)]) -> String {
        let element = |(address, bytes): &(&str, u64)| {
            let counter = format!(r#"{{"packets": 3, "bytes": {bytes}}}"#);
            format!(r#"{{"elem": {{"val": "{address}", "expires": 599, "counter": {counter}}}}}"#)
        };
        let all: Vec<_> = sums.iter().map(element).collect();
        format!(r#", "elem": [{}]"#, all.join(", "))
    }

    #[test]
    fn what_is_new_counts_once() {
        let mut others = Others::default();
        let mut read = |text: &str| {
            let new = others.read(text).expect("it is a list");
            new.into_iter().map(|(address, size)| (address.to_string(), size.0)).collect::<Vec<_>>()
        };
        assert_eq!(read(&listing("", "")), []);
        let one = |size| vec![("10.0.0.1".to_owned(), size)];
        assert_eq!(read(&listing(&elements(&[("10.0.0.1", 90)]), "")), one(90));
        let more = listing(&elements(&[("10.0.0.1", 90)]), &elements(&[("2001:db8::", 444)]));
        assert_eq!(read(&more), [("2001:db8::".to_owned(), 444)]);
        assert_eq!(read(&listing(&elements(&[("10.0.0.1", 100)]), "")), one(10));
        assert_eq!(read(&listing(&elements(&[("10.0.0.1", 7)]), "")), one(7));
    }

    #[test]
    fn what_is_no_list_changes_nothing() {
        let mut others = Others::default();
        let text = listing(&elements(&[("10.0.0.1", 90)]), "");
        assert_eq!(others.read(&text).map(|new| new.len()).ok(), Some(1));
        for wrong in ["", "Error: No such file", "{}", &text[..200]] {
            assert!(others.read(wrong).is_err(), "{wrong}");
        }
        assert_eq!(others.read(&text).map(|new| new.len()).ok(), Some(0));
    }
}
