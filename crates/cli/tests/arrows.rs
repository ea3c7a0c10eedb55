//! No arrow points back: crates and their modules use only what the pictures in
//! `docs/architecture.md` draw below them.
//!
//! The pictures are the one list of layers. A module that stands in none of them is
//! an error, as is a name there that the code does not have. What counts is the code
//! that ships: dependencies other than development dependencies, and paths that
//! begin with `crate` or `super` outside of tests. What a crate's `lib.rs` re-exports
//! counts as a use of the module that it comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Names with their height: the line and the place on it. Names that a `+` joins
/// share a place.
type Layers = BTreeMap<String, (usize, usize)>;

/// Who uses whom, with where that is.
type Arrows = BTreeMap<(String, String), String>;

/// What the name of a layer ends with that holds all modules inside another.
const INSIDE: &str = "::*";

#[test]
fn no_crate_uses_one_that_stands_above_it() {
    let folders = crate_folders();
    let mut arrows = Arrows::new();
    for (name, folder) in &folders {
        let path = folder.join("Cargo.toml");
        for used in dependencies(&read(&path)) {
            arrows.insert((name.clone(), used), path.display().to_string());
        }
    }
    let names = folders.into_keys().collect();
    let faults = faults(&pictures()["crates"], &names, &arrows);
    assert!(faults.is_empty(), "crates:\n{}", faults.join("\n"));
}

#[test]
fn no_module_uses_one_that_stands_above_it() {
    let mut found = Vec::new();
    for (name, layers) in pictures() {
        if name == "crates" {
            continue;
        }
        let source = crate_folders()[&name].join("src");
        let (modules, arrows) = arrows_of(&source, &layers);
        assert!(!arrows.is_empty() || layers.len() < 2, "{name}: no arrows found");
        found.extend(
            faults(&layers, &modules, &arrows).iter().map(|fault| format!("{name}: {fault}")),
        );
    }
    assert!(found.is_empty(), "{}", found.join("\n"));
}

#[test]
fn an_arrow_back_is_found() {
    let layers = layers("top\na + b  c\nbottom\n");
    let names: BTreeSet<_> = ["top", "a", "b", "c", "bottom"].map(String::from).into();
    let found = |from: &str, to: &str| {
        let arrow = (from.to_owned(), to.to_owned());
        !faults(&layers, &names, &Arrows::from([(arrow, "here".to_owned())])).is_empty()
    };
    for (from, to) in [("top", "a"), ("top", "bottom"), ("c", "bottom"), ("a", "b"), ("b", "a")] {
        assert!(!found(from, to), "{from} may use {to}");
    }
    for (from, to) in [("bottom", "top"), ("a", "top"), ("a", "c"), ("c", "b")] {
        assert!(found(from, to), "{from} may not use {to}");
    }
    let more = names.iter().cloned().chain(["new".to_owned()]).collect();
    assert_eq!(faults(&layers, &more, &Arrows::new()).len(), 1, "a name that nobody drew");
    let fewer = names.into_iter().skip(1).collect();
    assert_eq!(faults(&layers, &fewer, &Arrows::new()).len(), 1, "a name that is no more");
}

#[test]
fn paths_are_found_in_every_form() {
    let source = "
        use crate::a::{self, B, c::{D, E as F}};
        use super::{g, h::*}; // use crate::not::me;
        use std::fmt;
        mod kept;
        #[cfg(test)]
        mod trial;
        fn f() -> crate::i::J { super::super::k::l() }
        #[cfg(test)]
        mod tests { use crate::m; fn g() {} }
        fn g() { crate::n() }
    ";
    let (code, without) = without_tests(source);
    assert_eq!(without, ["trial", "tests"]);
    let expected = [
        "crate::a",
        "crate::a::B",
        "crate::a::c::D",
        "crate::a::c::E",
        "super::g",
        "super::h::*",
        "crate::i::J",
        "super::super::k::l",
        "crate::n",
    ];
    assert_eq!(paths(&code), expected);
}

#[test]
fn a_dependency_of_tests_is_no_arrow() {
    let manifest = "[package]\nname = \"x\"\n[dependencies]\ntidegate-core.workspace = true\n\
        libm = \"1\"\n[dev-dependencies]\ntidegate-twins.workspace = true\n";
    assert_eq!(dependencies(manifest), ["core"]);
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The members of the workspace, by the name under which the others know them.
fn crate_folders() -> BTreeMap<String, PathBuf> {
    let manifest = read(&root().join("Cargo.toml"));
    let members = manifest.split("members = [").nth(1).and_then(|rest| rest.split(']').next());
    let members = members.expect("a list of members").split('"').skip(1).step_by(2);
    members
        .map(|member| {
            let name = Path::new(member).file_name().expect("a folder").to_string_lossy();
            (name.into_owned(), root().join(member))
        })
        .collect()
}

/// The pictures of layers in `docs/architecture.md`, by their first line.
fn pictures() -> BTreeMap<String, Layers> {
    let page = read(&root().join("docs/architecture.md"));
    let blocks = page.split("```layers\n").skip(1);
    let blocks = blocks.map(|rest| rest.split("```").next().expect("the block's text"));
    blocks
        .map(|block| {
            let (name, rest) = block.split_once('\n').expect("a name and lines below it");
            (name.to_owned(), layers(rest))
        })
        .collect()
}

fn layers(text: &str) -> Layers {
    let mut layers = Layers::new();
    for (height, line) in text.lines().rev().enumerate() {
        let mut place = 0;
        let mut joined = true;
        for word in line.split_whitespace() {
            if word == "+" {
                joined = true;
                continue;
            }
            place += usize::from(!joined);
            joined = false;
            let known = layers.insert(word.to_owned(), (height, place));
            assert!(known.is_none(), "{word} stands in two places");
        }
    }
    layers
}

/// What is wrong with `arrows` between `names`, or with the picture.
fn faults(layers: &Layers, names: &BTreeSet<String>, arrows: &Arrows) -> Vec<String> {
    let drawn: BTreeSet<_> = layers.keys().cloned().collect();
    let missing = names.difference(&drawn).map(|name| format!("{name} stands in no layer"));
    let gone = drawn.difference(names).map(|name| format!("{name} is drawn but not there"));
    let back = arrows.iter().filter_map(|((from, to), place)| {
        let ((above, left), (below, right)) = (*layers.get(from)?, *layers.get(to)?);
        let down = below < above || (below == above && left == right);
        (!down).then(|| format!("{from} may not use {to}: {place}"))
    });
    missing.chain(gone).chain(back).collect()
}

/// The crates of the workspace that a manifest depends on outside of tests.
fn dependencies(manifest: &str) -> Vec<String> {
    let mut counts = false;
    let mut found = Vec::new();
    for line in manifest.lines() {
        if line.starts_with('[') {
            counts = line.ends_with("dependencies]") && !line.contains("dev-dependencies");
        } else if let (true, Some(rest)) = (counts, line.strip_prefix("tidegate-")) {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '-').unwrap_or(rest.len());
            found.push(rest[..end].to_owned());
        }
    }
    found
}

/// The layers that a crate's modules belong to, and the arrows between them.
fn arrows_of(source: &Path, layers: &Layers) -> (BTreeSet<String>, Arrows) {
    let mut files = BTreeMap::new();
    let mut of_tests = Vec::new();
    gather(source, &[], &mut files, &mut of_tests);
    files.retain(|module, _| !of_tests.iter().any(|test| module.starts_with(test)));

    let root = files.get(&Vec::new()).cloned().unwrap_or_default();
    let mut names = BTreeSet::new();
    let mut arrows = Arrows::new();
    for (module, code) in files.iter().filter(|(module, _)| !module.is_empty()) {
        let from = layer(module, layers);
        names.insert(from.clone());
        for path in paths(code) {
            let mut target: Vec<_> = path.split("::").map(str::to_owned).collect();
            if target[0] == "crate" {
                target.remove(0);
            } else {
                let up = target.iter().take_while(|part| *part == "super").count();
                let base = &module[..module.len().saturating_sub(up)];
                target = base.iter().chain(&target[up..]).cloned().collect();
            }
            let Some(first) = target.first() else { continue };
            if !files.keys().any(|module| module.first() == Some(first)) {
                // The root has the name, as its own or from a module.
                let Some(origin) = reexport(&root, first) else { continue };
                target = origin;
            }
            let to = layer(&target, layers);
            if from != to {
                arrows.insert((from.clone(), to), format!("{path} in {}", module.join("::")));
            }
        }
    }
    (names, arrows)
}

/// Reads all code in a folder, by module. What `#[cfg(test)]` excludes goes to `of_tests`.
fn gather(
    folder: &Path,
    inside: &[String],
    files: &mut BTreeMap<Vec<String>, String>,
    of_tests: &mut Vec<Vec<String>>,
) {
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry of the folder").path();
        let stem = path.file_stem().expect("a name").to_string_lossy().into_owned();
        let mut module = inside.to_vec();
        if !["lib", "main", "mod"].contains(&&*stem) {
            module.push(stem);
        }
        if path.is_dir() {
            gather(&path, &module, files, of_tests);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let (code, without) = without_tests(&read(&path));
            of_tests.extend(without.into_iter().map(|name| [&module[..], &[name]].concat()));
            files.insert(module, code);
        }
    }
}

/// The layer of a path: the longest name in the picture that it begins with.
fn layer(path: &[String], layers: &Layers) -> String {
    for length in (1..=path.len()).rev() {
        let name = path[..length].join("::");
        if layers.contains_key(&name) {
            let inside = format!("{name}{INSIDE}");
            let is_module =
                path.get(length).is_some_and(|next| next.starts_with(char::is_lowercase));
            return if is_module && layers.contains_key(&inside) { inside } else { name };
        }
    }
    path[0].clone()
}

/// Where `name` comes from, if the root of a crate re-exports it.
fn reexport(root: &str, name: &str) -> Option<Vec<String>> {
    let uses = root.split("pub use ").skip(1).filter_map(|rest| rest.split(';').next());
    let all = uses.flat_map(|tree| leaves("", tree));
    let found = all.map(|path| path.split("::").map(str::to_owned).collect::<Vec<_>>());
    found.into_iter().find(|path| path.last().is_some_and(|last| last == name))
}

/// The code without comments and without what is for tests alone, and the modules
/// that are left out with it.
fn without_tests(source: &str) -> (String, Vec<String>) {
    let lines = source.lines().map(|line| line.split("//").next().unwrap_or_default());
    let mut rest = &*lines.collect::<Vec<_>>().join("\n");
    let mut code = String::new();
    let mut modules = Vec::new();
    while let Some((before, after)) = rest.split_once("#[cfg(test)]") {
        code.push_str(before);
        let start = after.find(['{', ';']).unwrap_or(after.len());
        if let Some((_, name)) = after[..start].split_once("mod ") {
            modules.push(name.trim().to_owned());
        }
        rest = &after[start..][item_length(&after[start..])..];
    }
    code.push_str(rest);
    (code, modules)
}

/// How long the rest of an item is: to its semicolon, or to the end of its block.
fn item_length(text: &str) -> usize {
    let mut depth = 0_i32;
    for (at, c) in text.char_indices() {
        depth += i32::from(c == '{') - i32::from(c == '}');
        if depth <= 0 {
            return at + 1;
        }
    }
    text.len()
}

/// The paths in `code` that begin with `crate` or `super`, with `use` trees taken apart.
fn paths(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(at) = ["crate::", "super::"].iter().filter_map(|start| rest.find(start)).min() {
        let begins = !rest[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_' || c == '$');
        let part = |c: char| c.is_alphanumeric() || c == '_' || c == ':';
        let mut end = at + rest[at..].find(|c| !part(c)).unwrap_or(rest.len() - at);
        if rest[end..].starts_with('{') {
            end += item_length(&rest[end..]);
        } else if rest[end..].starts_with('*') {
            end += 1;
        }
        if begins {
            found.extend(leaves("", &rest[at..end]));
        }
        rest = &rest[end..];
    }
    found
}

/// The paths of a `use` tree.
fn leaves(before: &str, tree: &str) -> Vec<String> {
    let tree = tree.trim();
    let Some((start, inner)) = tree.split_once('{') else {
        let path = tree.split(" as ").next().unwrap_or_default();
        let path = if path == "self" { "" } else { path };
        return vec![format!("{before}{path}").trim_end_matches("::").to_owned()];
    };
    let before = format!("{before}{}", start.trim());
    let inner = inner.strip_suffix('}').unwrap_or(inner);
    let mut found = Vec::new();
    let mut depth = 0_i32;
    let branches = inner.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        c == ',' && depth == 0
    });
    for branch in branches.filter(|branch| !branch.trim().is_empty()) {
        found.extend(leaves(&before, branch));
    }
    found
}
