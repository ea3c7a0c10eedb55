//! A qdisc that the kernel has, by what is pinned of it.

use std::fs;
use std::io;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use libbpf_rs::btf::Btf;
use libbpf_rs::btf::types::Struct;
use libbpf_rs::{
    ErrorKind, MapCore as _, MapFlags, MapHandle, MapMut, ObjectBuilder, OpenObject, PrintLevel,
};

use tidegate_link::Queue;

use crate::layout::{self, Statistics};
use crate::programs::Program;

/// Where the kernel keeps what outlives its process: a file system of type `bpf`.
pub const FOLDER: &str = "/sys/fs/bpf/tidegate";

/// Where that file system is mounted.
const MOUNT: &str = "/sys/fs/bpf";
/// What the kernel calls a qdisc made of BPF.
const OPERATIONS: &str = "bpf_struct_ops_Qdisc_ops";
/// Qdiscs of one discipline: more than a machine has devices.
const MOST: u32 = 9_999;
/// The longest note.
const NOTE: usize = 16_384;
/// The names of maps in a program, and of what is pinned of it.
const PARAMETERS_MAP: &str = ".data.parameters";
const CONTRACTS_MAP: &str = ".data.contracts";
const STATISTICS_MAP: &str = ".data.statistics";
const NOTE_MAP: &str = "note";
const OPERATIONS_MAP: &str = "qdisc";
const LINK: &str = "link";
const PINNED: [(&str, &str); 3] =
    [(PARAMETERS_MAP, "parameters"), (STATISTICS_MAP, "statistics"), (NOTE_MAP, "note")];

/// Why something cannot be done with a qdisc.
#[derive(Debug, thiserror::Error)]
pub enum QdiscError {
    /// The kernel does not take the program.
    #[error("the kernel does not take the program of '{discipline}': {reason}")]
    Refused {
        /// The discipline.
        discipline: &'static str,
        /// What the kernel says, the last line of it.
        reason: String,
    },
    /// A file under [`FOLDER`] cannot be made, read or removed.
    #[error("{path}: {reason}")]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        reason: io::Error,
    },
    /// What is pinned is not what this version pins.
    #[error("{path}: {reason}")]
    Pinned {
        /// Where.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// The note is too long.
    #[error("found a note of {0} bytes, expected at most {NOTE}")]
    Note(usize),
}

/// What this machine lacks for such qdiscs, with the sentence that helps; nothing if they
/// work here, for whoever may load them.
#[must_use]
pub fn missing() -> Option<String> {
    let kernel = match Btf::from_vmlinux() {
        Ok(kernel) => kernel,
        Err(_) => {
            let text = "the kernel does not describe itself (/sys/kernel/btf/vmlinux): it was \
                        built without CONFIG_DEBUG_INFO_BTF";
            return Some(text.into());
        }
    };
    if kernel.type_by_name::<Struct>(OPERATIONS).is_none() {
        let text = "the kernel has no BPF qdiscs: Linux 6.16 and later have them, if built with \
                    CONFIG_NET_SCH_BPF";
        return Some(text.into());
    }
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let is_bpf = |line: &str| {
        let mut words = line.split(' ').skip(1);
        words.next() == Some(MOUNT) && words.next() == Some("bpf")
    };
    let help = format!("nothing keeps qdiscs: 'mount -t bpf bpf {MOUNT}' helps");
    (!mounts.lines().any(is_bpf)).then_some(help)
}

/// A qdisc that the kernel has.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Qdisc {
    name: String,
}

impl Qdisc {
    /// Gives the kernel this queue as a qdisc, for a device whose frames begin with an
    /// Ethernet header or with that of IP, and a `note`, any text, under a name that is free.
    /// It is not at any device yet.
    ///
    /// # Errors
    /// When the kernel has no BPF qdiscs, when this user may not, or when the note is longer
    /// than 16384 bytes.
    pub fn load(
        program: &Program,
        queue: &Queue,
        has_ethernet: bool,
        note: &str,
    ) -> Result<Qdisc, QdiscError> {
        let note = padded(note)?;
        let told = [
            (PARAMETERS_MAP, bytes(&layout::parameters(queue, has_ethernet))),
            (CONTRACTS_MAP, bytes(&layout::contracts(queue))),
        ];
        make_folder(Path::new(FOLDER))?;
        let _quiet = Messages::collect();
        for number in 1..=MOST {
            let qdisc = Qdisc { name: format!("{}_{number}", program.discipline) };
            match fs::create_dir(qdisc.folder()) {
                Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(reason) => return Err(QdiscError::File { path: qdisc.folder(), reason }),
                Ok(()) => {}
            }
            match qdisc.attach(program, &told, &note) {
                Ok(()) => return Ok(qdisc),
                // Its name belongs to somebody else's.
                Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                    let _ = qdisc.remove();
                }
                Err(error) => {
                    let _ = qdisc.remove();
                    let reason = Messages::last().unwrap_or_else(|| error.to_string());
                    return Err(QdiscError::Refused { discipline: program.discipline, reason });
                }
            }
        }
        let reason = format!("there are {MOST} of them already");
        Err(QdiscError::Refused { discipline: program.discipline, reason })
    }

    fn attach(
        &self,
        program: &Program,
        told: &[(&str, Vec<u8>)],
        note: &[u8],
    ) -> Result<(), libbpf_rs::Error> {
        let mut open = ObjectBuilder::default().open_memory(program.object)?;
        self.set_name(&mut open);
        for mut map in open.maps_mut() {
            if let Some((_, bytes)) = told.iter().find(|(name, _)| map.name() == *name) {
                map.set_initial_value(bytes)?;
            }
        }
        let mut object = open.load()?;
        for mut map in object.maps_mut() {
            if let Some((_, file)) = PINNED.iter().find(|(name, _)| map.name() == *name) {
                map.pin(self.folder().join(file))?;
            }
            if map.name() == NOTE_MAP {
                map.update(&0_u32.to_ne_bytes(), note, MapFlags::ANY)?;
            }
        }
        // Without a link, what is pinned means nothing: it comes last.
        let operations = |map: &MapMut| map.name() == OPERATIONS_MAP;
        let operations = object.maps_mut().find(operations);
        let mut link = operations.expect("every program has one").attach_struct_ops()?;
        link.pin(self.folder().join(LINK))
    }

    /// The name is at the beginning of the operations, as `bpf/kernel.h` has it.
    fn set_name(&self, open: &mut OpenObject) {
        for mut map in open.maps_mut() {
            if map.name() == OPERATIONS_MAP
                && let Some(value) = map.initial_value_mut()
            {
                value[..16].fill(0);
                value[..self.name.len()].copy_from_slice(self.name.as_bytes());
            }
        }
    }

    /// All that the kernel has of ours, whether a device has them or not, and what was left by
    /// those who died while they added one.
    #[must_use]
    pub fn all() -> Vec<Qdisc> {
        let entries = fs::read_dir(FOLDER).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let mut all: Vec<_> = names.map(|name| Qdisc { name }).collect();
        all.sort();
        all
    }

    /// Whether it has come to be: whoever was adding it may have died before.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.folder().join(LINK).exists()
    }

    /// What `tc` calls it.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Gives it the parameters of another queue of the same discipline. Packets in the queue
    /// stay where they are, and promises as they were.
    ///
    /// # Errors
    /// When it is gone, or when this user may not.
    pub fn change(&self, queue: &Queue, has_ethernet: bool) -> Result<(), QdiscError> {
        self.write("parameters", &bytes(&layout::parameters(queue, has_ethernet)))
    }

    /// What it has counted.
    ///
    /// # Errors
    /// As [`Qdisc::change`], and when it is of a version that counts other things.
    pub fn statistics(&self) -> Result<Statistics, QdiscError> {
        let (words, rest) = {
            let bytes = self.read("statistics")?;
            let (words, rest) = bytes.as_chunks::<8>();
            (words.iter().copied().map(u64::from_ne_bytes).collect(), rest.len())
        };
        Statistics::new(words).filter(|_| rest == 0).ok_or_else(|| QdiscError::Pinned {
            path: self.folder().join("statistics"),
            reason: "found a qdisc of another version of Tidegate, expected one of this version; \
                     remove it and add it again"
                .into(),
        })
    }

    /// The note that came with it.
    ///
    /// # Errors
    /// As [`Qdisc::change`], and when the note is no text.
    pub fn note(&self) -> Result<String, QdiscError> {
        let mut bytes = self.read("note")?;
        bytes.truncate(bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len()));
        String::from_utf8(bytes).map_err(|error| QdiscError::Pinned {
            path: self.folder().join("note"),
            reason: format!("found no text, expected UTF-8: {error}"),
        })
    }

    /// Replaces the note.
    ///
    /// # Errors
    /// As [`Qdisc::change`], and when the note is longer than 16384 bytes.
    pub fn set_note(&self, note: &str) -> Result<(), QdiscError> {
        self.write("note", &padded(note)?)
    }

    /// Has the kernel forget it: as soon as no device has it, if one has.
    ///
    /// # Errors
    /// When this user may not.
    pub fn remove(&self) -> Result<(), QdiscError> {
        let folder = self.folder();
        // The link first: without it no other device can have the qdisc.
        for file in [LINK].into_iter().chain(PINNED.map(|(_, file)| file)) {
            match fs::remove_file(folder.join(file)) {
                Err(reason) if reason.kind() != io::ErrorKind::NotFound => {
                    return Err(QdiscError::File { path: folder.join(file), reason });
                }
                _ => {}
            }
        }
        match fs::remove_dir(&folder) {
            Err(reason) if reason.kind() != io::ErrorKind::NotFound => {
                Err(QdiscError::File { path: folder, reason })
            }
            _ => {
                // Others may have theirs there.
                let _ = fs::remove_dir(FOLDER);
                Ok(())
            }
        }
    }

    fn folder(&self) -> PathBuf {
        Path::new(FOLDER).join(&self.name)
    }

    fn map(&self, file: &str) -> Result<MapHandle, QdiscError> {
        let path = self.folder().join(file);
        let failed = |error: libbpf_rs::Error| QdiscError::Pinned {
            path: path.clone(),
            reason: error.to_string(),
        };
        MapHandle::from_pinned_path(&path).map_err(failed)
    }

    fn read(&self, file: &str) -> Result<Vec<u8>, QdiscError> {
        let value = self.map(file)?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY);
        let missing = || QdiscError::Pinned {
            path: self.folder().join(file),
            reason: "found nothing, expected the words of a qdisc".into(),
        };
        value.ok().flatten().ok_or_else(missing)
    }

    fn write(&self, file: &str, value: &[u8]) -> Result<(), QdiscError> {
        let written = self.map(file)?.update(&0_u32.to_ne_bytes(), value, MapFlags::ANY);
        written.map_err(|error| QdiscError::Pinned {
            path: self.folder().join(file),
            reason: error.to_string(),
        })
    }
}

fn bytes(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_ne_bytes()).collect()
}

fn padded(note: &str) -> Result<Vec<u8>, QdiscError> {
    if note.len() > NOTE {
        return Err(QdiscError::Note(note.len()));
    }
    let mut bytes = note.as_bytes().to_vec();
    bytes.resize(NOTE, 0);
    Ok(bytes)
}

/// Only root looks in: whoever can open a map can change it.
fn make_folder(path: &Path) -> Result<(), QdiscError> {
    let made = match fs::create_dir(path) {
        Err(reason) if reason.kind() == io::ErrorKind::AlreadyExists => return Ok(()),
        made => made.and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o700))),
    };
    made.map_err(|reason| QdiscError::File { path: path.into(), reason })
}

/// What libbpf says while a program is loaded; by itself it would print that.
struct Messages;

static MESSAGES: Mutex<Vec<String>> = Mutex::new(Vec::new());

impl Messages {
    fn collect() -> Messages {
        #[expect(clippy::needless_pass_by_value, reason = "libbpf's wrapper wants it so")]
        fn keep(_level: PrintLevel, text: String) {
            if let Ok(mut all) = MESSAGES.lock() {
                all.extend(text.lines().map(|line| line.trim().to_string()));
            }
        }
        if let Ok(mut all) = MESSAGES.lock() {
            all.clear();
        }
        libbpf_rs::set_print(Some((PrintLevel::Warn, keep)));
        Messages
    }

    /// What the kernel said last of a program that it refused; else, the last thing said.
    fn last() -> Option<String> {
        let all = MESSAGES.lock().ok()?;
        let said = all.iter().rev().filter(|line| !line.is_empty());
        let mut of_kernel = said.clone().skip_while(|line| !line.starts_with("processed "));
        let line = of_kernel.nth(1).or_else(|| said.clone().next())?;
        Some(line.trim_start_matches("libbpf: ").to_string())
    }
}

impl Drop for Messages {
    fn drop(&mut self) {
        libbpf_rs::set_print(None);
    }
}
