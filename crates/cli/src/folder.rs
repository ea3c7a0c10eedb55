//! The folder that receives the results.
//!
//! Each run writes its rows into files of its own, which are joined in the
//! order of the runs at the end: memory does not grow with the number of runs,
//! and the result does not depend on the number of threads. Earlier results are
//! overwritten only on request.

use std::fs::{self, File};
use std::io::ErrorKind::NotFound;
use std::io::{self, BufReader, BufWriter, Write};
use std::path::{Path, PathBuf};

use tidegate_study::manifest;

use crate::failure::Failure;
use crate::interrupt;
use crate::rows::Table;

/// The file of means and intervals.
pub(crate) const CSV: &str = "summary.csv";
/// The same with the points of plots; `--json` prints it.
pub(crate) const JSON: &str = "summary.json";
/// What a sweep has in its place.
pub(crate) const SWEEP: &str = "sweep.json";
/// The place of the rows of unfinished runs.
const PARTS: &str = ".parts";

/// A folder for results, ready to be written to.
#[derive(Debug)]
pub(crate) struct ResultFolder {
    path: PathBuf,
}

impl ResultFolder {
    /// The folder `asked` for, or one named after `stem`.
    ///
    /// # Errors
    /// When it cannot be written to, or has something in it already.
    pub(crate) fn prepare(
        asked: Option<&Path>,
        force: bool,
        stem: &str,
    ) -> Result<ResultFolder, Failure> {
        let path = match asked {
            Some(path) => path.to_path_buf(),
            None => first_free(stem),
        };
        let earlier = path.join(manifest::NAME).exists();
        let occupied = fs::read_dir(&path).is_ok_and(|mut entries| entries.next().is_some());
        if occupied && !force {
            let what = if earlier { "earlier results" } else { "other files" };
            let name = path.display();
            return Err(Failure::Input(format!(
                "{name}: contains {what}; choose another --out, or add --force to replace results"
            )));
        }
        let folder = ResultFolder { path };
        folder.make_parts().map_err(|reason| {
            Failure::Input(format!("{}: cannot be written to: {reason}", folder.path.display()))
        })?;
        Ok(folder)
    }

    fn make_parts(&self) -> io::Result<()> {
        let parts = self.path.join(PARTS);
        if parts.exists() {
            fs::remove_dir_all(&parts)?;
        }
        fs::create_dir_all(&parts)?;
        interrupt::set_scratch(Some(&parts));
        // Without the old manifest, nobody mistakes half-written results for complete ones.
        match fs::remove_file(self.path.join(manifest::NAME)) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
            _ => Ok(()),
        }
    }

    /// The folder itself.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    fn part(&self, table: Table, run: usize) -> PathBuf {
        self.path.join(PARTS).join(format!("{run}.{}", table.file()))
    }

    /// A file for the rows of one run.
    pub(crate) fn create_part(&self, table: Table, run: usize) -> io::Result<BufWriter<File>> {
        File::create(self.part(table, run)).map(BufWriter::new)
    }

    /// Joins the rows of `runs` in `tables`, in this order, and removes the
    /// parts. The first column names the `contender`.
    pub(crate) fn join(
        &self,
        tables: &[Table],
        contender: &str,
        runs: &[usize],
    ) -> Result<(), Failure> {
        for table in tables {
            let path = self.path.join(table.file());
            self.join_table(*table, contender, runs, &path)
                .map_err(|reason| Failure::unwritable(&path, &reason))?;
        }
        self.remove_parts();
        Ok(())
    }

    /// Removes what only unfinished runs need.
    pub(crate) fn remove_parts(&self) {
        // A file that cannot be removed does no harm.
        let _ = fs::remove_dir_all(self.path.join(PARTS));
        interrupt::set_scratch(None);
    }

    fn join_table(
        &self,
        table: Table,
        contender: &str,
        runs: &[usize],
        path: &Path,
    ) -> io::Result<()> {
        let mut file = BufWriter::new(File::create(path)?);
        writeln!(file, "{contender},{}", table.columns().join(","))?;
        for run in runs {
            match File::open(self.part(table, *run)) {
                Ok(part) => drop(io::copy(&mut BufReader::new(part), &mut file)?),
                // A run has this part from its first flow of a capture on.
                Err(error) if table == Table::Recorded && error.kind() == NotFound => {}
                Err(error) => return Err(error),
            }
        }
        file.flush()
    }

    /// Removes what only unfinished runs need, and the folder if it contains nothing else.
    pub(crate) fn discard(&self) {
        self.remove_parts();
        let _ = fs::remove_dir(&self.path);
    }

    /// Writes a whole file.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<(), Failure> {
        let path = self.path.join(name);
        fs::write(&path, content).map_err(|reason| Failure::unwritable(&path, &reason))
    }
}

fn first_free(stem: &str) -> PathBuf {
    let numbered = (2..).map(|number| format!("tidegate-{stem}-{number}"));
    std::iter::once(format!("tidegate-{stem}"))
        .chain(numbered)
        .map(PathBuf::from)
        .find(|path| !path.exists())
        .expect("numbers do not end")
}
