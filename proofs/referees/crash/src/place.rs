//! A directory in `/dev/shm` for the files of one trial, and the names that belong to it.

use shm::sync::{AtomicU64, Ordering};
use std::path::{Path, PathBuf};

const SHM: &str = "/dev/shm";

pub struct Place(PathBuf);

impl Place {
    pub fn new() -> Self {
        static NUMBER: AtomicU64 = AtomicU64::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = PathBuf::from(format!("{SHM}/crash-table-{}-{number}", std::process::id()));
        std::fs::create_dir(&path).expect("a new directory");
        Self(path)
    }

    pub fn path(&self) -> &Path {
        &self.0
    }

    fn name(&self) -> &str {
        self.0.file_name().and_then(|name| name.to_str()).expect("a name of ours")
    }

    /// Names in `/dev/shm` with the name of the place in them, except the directory.
    fn beside(&self) -> Vec<PathBuf> {
        let entries = std::fs::read_dir(SHM).expect("it can be listed");
        let paths = entries.filter_map(|entry| Some(entry.ok()?.path())).filter(|path| *path != self.0);
        // Not of place 12 for place 1.
        let is_ours = |path: &PathBuf| {
            let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            file.split_once(self.name())
                .is_some_and(|(_, rest)| !rest.starts_with(|c: char| c.is_ascii_digit()))
        };
        paths.filter(is_ours).collect()
    }

    pub fn files(&self) -> usize {
        fn within(path: &Path) -> usize {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| if entry.path().is_dir() { within(&entry.path()) } else { 1 }).sum()
        }
        within(&self.0) + self.beside().len()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
        for path in self.beside() {
            let _ = std::fs::remove_file(&path).or_else(|_| std::fs::remove_dir_all(&path));
        }
    }
}
