//! Replays the kept inputs of every fuzz target.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use tidegate_fuzz::TARGETS;

fn corpus() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("corpus")
}

fn entries(folder: &Path) -> BTreeSet<PathBuf> {
    let listing = fs::read_dir(folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display()));
    listing.map(|entry| entry.expect("a listed file can be read").path()).collect()
}

#[test]
fn the_kept_inputs_show_no_bug() {
    for target in TARGETS {
        let inputs = entries(&corpus().join(target.name));
        assert!(!inputs.is_empty(), "corpus/{} is empty", target.name);
        for path in inputs {
            println!("{}", path.display());
            (target.fuzz_one)(&fs::read(&path).expect("a listed file can be read"));
        }
    }
}

#[test]
fn every_corpus_belongs_to_a_target() {
    let expected: BTreeSet<_> = TARGETS.iter().map(|target| corpus().join(target.name)).collect();
    assert_eq!(entries(&corpus()), expected);
}
