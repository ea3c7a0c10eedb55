//! The tables `[[class]]`, and the passwords of those whom they name.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::path::Path;

use ipnet::IpNet;
use schemars::JsonSchema;
use serde::Deserialize;
use tidegate_files::{At, Count, FileError, InText, Mistake, Quantity, expectation};

use super::Network;
use crate::class::{Class, Hosts, Names, Users};
use crate::passwords::Passwords;

/// All who have a password.
const ALL: &str = "*";

/// A group of users.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct Group {
    /// Its name, in logs and figures.
    name: At<String>,
    /// What each of its users gets beside one of weight 1; by default 1.
    weight: Option<Count<1, 65_535>>,
    /// The networks of its users. Of the classes that state no more than that, the longest
    /// prefix that fits decides; the others go before them, in the order of the file.
    sources: At<Vec<Quantity<Network>>>,
    /// Its users by name, from the file of 'passwords', or "*" for all of these: they have
    /// to log in.
    names: Option<At<Vec<At<String>>>>,
    /// The ports of the servers that it is about; by default all.
    ports: Option<At<Vec<At<Count<1, 65_535>>>>>,
    /// The names of the servers that it is about, such as example.com, or *.example.com for
    /// all below; by default all.
    hosts: Option<At<Vec<Quantity<Hosts>>>>,
    /// Whom it takes for one user: by default each name in a class with names, and each
    /// address elsewhere.
    users: Option<At<Users>>,
}

impl InText for Hosts {
    const EXPECTED: &'static str =
        "the name of a server, such as 'example.com', or '*.example.com' for all below";
    const PATTERN: &'static str = r"^(\*\.)?[0-9A-Za-z_-]+(\.[0-9A-Za-z_-]+)*\.?$";

    fn read(text: &str) -> Option<Hosts> {
        text.parse().ok()
    }
}

/// Reads the file of passwords that the file `name` with this text names, relative to the
/// folder of that.
pub(super) fn passwords(
    name: &str,
    text: &str,
    written: &At<String>,
) -> Result<Passwords, FileError> {
    let folder = Path::new(name).parent().unwrap_or(Path::new(""));
    let path = folder.join(&written.value);
    let file = path.display().to_string();
    match std::fs::read_to_string(&path) {
        Ok(lines) => Passwords::parse(&lines).map_err(|mistake| mistake.in_file(&file, &lines)),
        Err(reason) => {
            let found = format!("'{}', which cannot be read: {reason}", file.escape_debug());
            let expected = "a file of names and hashes, as 'htpasswd -B' writes it";
            Err(Mistake::at(&written.place, found, expected).in_file(name, text))
        }
    }
}

/// What the tables say; `passwords` if there is a file of them.
pub(super) fn classes(
    written: &At<Vec<At<Group>>>,
    passwords: Option<&Passwords>,
) -> Result<Vec<Class>, Mistake> {
    let mut classes: Vec<Class> = Vec::new();
    let mut taken: BTreeMap<IpNet, &str> = BTreeMap::new();
    for group in &written.value {
        let name = group.name.trim();
        let is_own = classes.iter().all(|class| class.name != name);
        if name.is_empty() || name.chars().any(char::is_control) || !is_own {
            let found = format!("'{}'", name.escape_debug());
            return Err(Mistake::at(&group.name.place, found, "a name of its own, on one line"));
        }
        let class = class(name, group, passwords)?;
        for source in group.sources.iter().filter(|_| class.is_plain()) {
            if let Some(other) = taken.insert(source.value.0.0, name) {
                let found = format!("'{}' again, which is in class '{other}'", source.value.0.0);
                return Err(Mistake::at(&source.place, found, "each network once"));
            }
        }
        classes.push(class);
    }
    if classes.is_empty() {
        return Err(Mistake::at(&written.place, "no class", "at least one [[class]]"));
    }
    Ok(classes)
}

fn class(name: &str, group: &Group, passwords: Option<&Passwords>) -> Result<Class, Mistake> {
    if group.sources.is_empty() {
        return Err(Mistake::at(&group.sources.place, "an empty list", "at least one network"));
    }
    let names = group.names.as_ref().map(|names| named(names, passwords)).transpose()?;
    let usual = if names.is_some() { Users::Name } else { Users::Address };
    if let (Some(users), None) = (&group.users, &names)
        && users.value == Users::Name
    {
        let expected = "'address', or names = [\"*\"] so that users log in";
        return Err(Mistake::at(&users.place, "'name'", expected));
    }
    let ports = group.ports.as_ref().map(|ports| filled(ports, "at least one port")).transpose()?;
    let hosts = group.hosts.as_ref().map(|hosts| filled(hosts, "at least one host")).transpose()?;
    Ok(Class {
        name: name.into(),
        weight: NonZeroU32::new(group.weight.map_or(1, |weight| weight.0))
            .expect("weights are read from 1 on"),
        sources: group.sources.iter().map(|source| source.value.0.0).collect(),
        names,
        ports: ports.into_iter().flatten().map(|port| port.value.0 as u16).collect(),
        hosts: hosts.into_iter().flatten().map(|hosts| hosts.value.0.clone()).collect(),
        users: group.users.as_ref().map_or(usual, |users| users.value),
    })
}

/// A list that is not empty: one that is would be no different from none.
fn filled<'a, T>(list: &'a At<Vec<T>>, expected: &str) -> Result<&'a [T], Mistake> {
    match list.is_empty() {
        true => Err(Mistake::at(&list.place, "an empty list", expected)),
        false => Ok(list),
    }
}

/// The users of a class by name.
fn named(names: &At<Vec<At<String>>>, passwords: Option<&Passwords>) -> Result<Names, Mistake> {
    let Some(passwords) = passwords else {
        let expected = "at the top of the file also passwords = \"users\", which has them";
        return Err(Mistake::at(&names.place, "names that have no passwords", expected));
    };
    let all = filled(names, "at least one name, or \"*\" for all")?;
    if all.iter().any(|name| name.value == ALL) {
        return Ok(Names::All);
    }
    for name in all {
        if !passwords.names().any(|known| known == name.value) {
            let found = format!("'{}', who has no password", name.escape_debug());
            return Err(Mistake::at(&name.place, found, expectation(name, passwords.names())));
        }
    }
    Ok(Names::Only(all.iter().map(|name| name.value.clone()).collect()))
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use crate::class::{Names, Users};
    use crate::file::{parse, read};

    /// A folder with a file of passwords, and a file of a gateway with this class.
    struct Folder(PathBuf);

    impl Folder {
        fn new(name: &str) -> Folder {
            let folder = std::env::temp_dir().join(format!("{name}-{}", std::process::id()));
            fs::create_dir_all(&folder).unwrap();
            let hash = bcrypt::hash("sesame", 4).unwrap();
            fs::write(folder.join("users"), format!("anna:{hash}\nbert:{hash}\n")).unwrap();
            Folder(folder)
        }

        fn read(&self, passwords: &str, class: &str) -> Result<crate::Config, String> {
            let path = self.0.join("g.toml");
            let rest = "link.rate = '1 Mbit/s'\n[[class]]\nname = 'a'\nsources = ['10.0.0.0/8']";
            fs::write(&path, format!("{passwords}\n{rest}\n{class}")).unwrap();
            let folder = format!("{}/", self.0.display());
            read(&path).map_err(|error| error.to_string().replace(&folder, ""))
        }
    }

    impl Drop for Folder {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.0);
        }
    }

    #[test]
    fn what_a_class_states_is_what_holds() {
        let folder = Folder::new("tidegate-states");
        let known = "passwords = 'users'";
        let read = |class: &str| folder.read(known, class).unwrap().classes.remove(0);
        let class = read("names = ['bert']\nports = [80, 443]\nhosts = ['*.A.example', 'b']");
        assert_eq!(class.names, Some(Names::Only(["bert".to_owned()].into())));
        assert_eq!((class.ports, class.users), (vec![80, 443], Users::Name));
        let hosts: Vec<_> = class.hosts.iter().map(ToString::to_string).collect();
        assert_eq!(hosts, ["*.a.example", "b"]);
        let class = read("names = ['*']\nusers = 'address'");
        assert_eq!((class.names, class.users), (Some(Names::All), Users::Address));
        assert_eq!(read("").users, Users::Address);
    }

    #[test]
    fn a_network_may_be_in_several_classes_that_state_more() {
        let two = "[[class]]\nname = 'b'\nsources = ['10.0.0.0/8']\nhosts = ['x.example']\n\
                   [[class]]\nname = 'c'\nsources = ['10.0.0.0/8']\nports = [22]";
        let folder = Folder::new("tidegate-several");
        assert_eq!(folder.read("", two).unwrap().classes.len(), 3);
    }

    #[test]
    fn mistakes_are_told_with_their_place() {
        let folder = Folder::new("tidegate-mistakes");
        let known = "passwords = 'users'";
        fs::write(folder.0.join("plain"), "anna:sesame").unwrap();
        for (passwords, class, expected) in [
            ("", "names = ['anna']", "g.toml:6:9: class.names: found names that have no passwords"),
            (known, "names = []", "g.toml:6:9: class.names: found an empty list"),
            (
                known,
                "names = ['Anna']",
                "g.toml:6:10: class.names: found 'Anna', who has no password, expected 'anna'",
            ),
            ("", "users = 'name'", "g.toml:6:9: class.users: found 'name', expected 'address', or"),
            ("", "users = 'mac'", "g.toml:6:9: class.users: "),
            ("", "ports = []", "g.toml:6:9: class.ports: found an empty list, expected at least"),
            ("", "ports = [0]", "g.toml:6:10: class.ports: found 0, expected a whole number"),
            ("", "hosts = []", "g.toml:6:9: class.hosts: found an empty list"),
            ("", "hosts = ['*']", "g.toml:6:10: class.hosts: found '*', expected the name of a"),
            (
                "passwords = 'none'",
                "",
                "g.toml:1:13: passwords: found 'none', which cannot be read",
            ),
            (
                "passwords = 'plain'",
                "",
                "plain:1:1: found something else behind the name, expected",
            ),
        ] {
            let found = folder.read(passwords, class).unwrap_err();
            assert!(found.starts_with(expected), "{found}\n{expected}");
            assert!(!found.contains("sesame"), "{found}");
        }
        assert!(parse("g.toml", "passwords = 'no/such/file'\nlink.rate = '1 Mbit/s'").is_err());
    }
}
