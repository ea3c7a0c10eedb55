//! The scenarios, flows, gateways and measured traffic that Tidegate is shipped with.
//!
//! Every file of the folder that a program reads is here, under its path in the folder,
//! so that a scenario's references to other files (`../data/pages.har`) mean the
//! same on disk and in a program. The crate knows no format and depends on nothing.
//!
//! ```
//! let scenario = tidegate_scenarios::text("links/household.toml").expect("it is shipped");
//! assert!(scenario.contains("../data/pages.har"));
//! let pages = tidegate_scenarios::beside("links/household.toml", "../data/pages.har");
//! assert!(pages.is_some_and(|har| har.starts_with(b"{")));
//! ```

/// Pairs of path and content.
macro_rules! files {
    ($($path:literal),* $(,)?) => { &[$(($path, include_bytes!($path))),*] };
}

/// Every file with its path in the folder, in the order of the paths.
pub const FILES: &[(&str, &[u8])] = files![
    "bed/connects-2.toml",
    "bed/eight-2.toml",
    "bed/far-10.toml",
    "bed/open-10.toml",
    "bed/open-2.toml",
    "bed/open-tunnels-2.toml",
    "bed/pages-10.toml",
    "bed/saturated-10.toml",
    "bed/saturated-2.toml",
    "bed/silent-10.toml",
    "bed/silent-2.toml",
    "bed/trial-10.toml",
    "bed/trial-2.toml",
    "bed/tunnels-10.toml",
    "bed/tunnels-2.toml",
    "data/big-buck-bunny.json",
    "data/call-g711.csv",
    "data/call-telegram.csv",
    "data/call-whatsapp.csv",
    "data/downloads.csv",
    "data/page-loads.csv",
    "data/pages.har",
    "data/variable.down",
    "data/variable.up",
    "data/video-highway.csv",
    "data/web-objects.csv",
    "flows/calls.toml",
    "flows/home-10mbit.toml",
    "flows/papers-be.toml",
    "gateways/downloads.toml",
    "gateways/equal-100-kb-80.toml",
    "gateways/equal-100-kb-90.toml",
    "gateways/equal-15-kb-80.toml",
    "gateways/equal-15-kb-90.toml",
    "gateways/equal-28-kb-80.toml",
    "gateways/equal-500-kb-80.toml",
    "gateways/equal-500-kb-90.toml",
    "gateways/equal.toml",
    "gateways/failing.toml",
    "gateways/hidden.toml",
    "gateways/hostile-full.toml",
    "gateways/hostile.toml",
    "gateways/lognormal.toml",
    "gateways/pareto.toml",
    "gateways/rivals.toml",
    "gateways/school-equal.toml",
    "gateways/school.toml",
    "gateways/shared-connections.toml",
    "gateways/silent.toml",
    "gateways/unfilled-1-gbit.toml",
    "gateways/unfilled-2-mbit.toml",
    "gateways/unfilled.toml",
    "gateways/viewers-and-pupils.toml",
    "gateways/viewers.toml",
    "links/calls.toml",
    "links/cellular.toml",
    "links/evening.toml",
    "links/household.toml",
    "links/marked.toml",
    "links/office.toml",
    "links/wifi-54.toml",
    "links/wifi-ac.toml",
    "links/wifi-slow.toml",
    "measured/figures.csv",
    "measured/flent-http-fq-codel-100mbit.toml",
    "measured/flent-rrul-codel-10mbit.toml",
    "measured/flent-voip-fq-codel-100mbit.toml",
    "papers/BE/access.toml",
    "papers/EFD/call.toml",
    "papers/EFD/dumbbell-long-transfers.toml",
    "papers/EFD/dumbbell-overload.toml",
    "papers/EFD/dumbbell.toml",
    "papers/LAS/ftp.toml",
    "papers/LAS/short-flows.toml",
    "papers/LAS/web.toml",
    "papers/WLAN/long-lived-today.toml",
    "papers/WLAN/long-lived.toml",
    "papers/WLAN/mixed.toml",
    "situations/cafe-wifi.toml",
    "situations/call.toml",
    "situations/dsl-uplink.toml",
    "situations/evening-cable.toml",
    "situations/evening-dsl.toml",
    "situations/evening-fibre.toml",
    "situations/gamer.toml",
    "situations/home.toml",
    "situations/idle.toml",
    "situations/lte.toml",
    "situations/office.toml",
    "situations/satellite.toml",
    "situations/school.toml",
    "situations/server.toml",
    "situations/video.toml",
    "survey/access.toml",
    "survey/attacked.toml",
    "survey/capture.toml",
];

/// The file at `path` in the folder; `None` when there is none.
#[must_use]
pub fn bytes(path: &str) -> Option<&'static [u8]> {
    let place = FILES.binary_search_by_key(&path, |(known, _)| known).ok()?;
    Some(FILES[place].1)
}

/// The same as text; `None` also when it is not UTF-8.
#[must_use]
pub fn text(path: &str) -> Option<&'static str> {
    std::str::from_utf8(bytes(path)?).ok()
}

/// The file that the one at `path` refers to as `name`, relative to its own folder;
/// `None` when there is none, or when `name` leads out of the folder.
#[must_use]
pub fn beside(path: &str, name: &str) -> Option<&'static [u8]> {
    bytes(&path_beside(path, name)?)
}

/// The path in the folder of what the file at `path` refers to as `name`, whether there is
/// such a file or not; `None` when `name` leads out of the folder.
#[must_use]
pub fn path_beside(path: &str, name: &str) -> Option<String> {
    let mut parts: Vec<&str> = path.split('/').collect();
    parts.pop();
    for part in name.split('/') {
        match part {
            "." => {}
            ".." => drop(parts.pop()?),
            _ => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use std::path::{Path, PathBuf};

    use super::*;

    /// The files in and below `folder` that a program reads.
    fn found(folder: &Path) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        let read = |path: &PathBuf| {
            let extension = path.extension().and_then(|it| it.to_str()).unwrap_or_default();
            let is_data = ["toml", "csv", "har", "json", "down", "up"].contains(&extension);
            is_data && !path.ends_with("schema.json")
        };
        let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
        folders.iter().flat_map(|it| found(it)).chain(files.into_iter().filter(read)).collect()
    }

    #[test]
    fn every_file_of_the_folder_is_listed_once_in_order() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let relative = |path: PathBuf| {
            let path = path.strip_prefix(root).unwrap();
            path.components()
                .map(|it| it.as_os_str().to_str().unwrap())
                .collect::<Vec<_>>()
                .join("/")
        };
        let mut files: Vec<_> = found(root).into_iter().map(relative).collect();
        // The package's own.
        files.retain(|path| path.contains('/'));
        files.sort();
        assert_eq!(files, FILES.iter().map(|(path, _)| *path).collect::<Vec<_>>());
    }

    #[test]
    fn references_are_relative_to_the_file_that_makes_them() {
        let flows = bytes("flows/papers-be.toml");
        assert!(flows.is_some());
        assert_eq!(beside("papers/BE/access.toml", "../../flows/papers-be.toml"), flows);
        assert_eq!(beside("flows/calls.toml", "./papers-be.toml"), flows);
        assert_eq!(beside("flows/calls.toml", "../../flows/papers-be.toml"), None);
        assert_eq!(bytes("flows"), None);
    }
}
