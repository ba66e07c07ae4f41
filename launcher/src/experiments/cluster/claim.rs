//! Who makes a run: claimed by moving a folder to its place, finished by moving another.
//!
//! A claim is a folder with a file that its holder has locked. The kernel lets go of the lock when the holder dies, also, by the file
//! server, when its host does; whoever finds the claim of a dead one takes it away and claims anew. Where locks do not reach from host to
//! host a living holder looks dead. Then two make the same run, and still only one counts: each works below a name of its own within
//! its claim, and what is finished is moved to a place where nothing may be yet.

use super::places;
use anyhow::{Context, Result, bail};
use std::ffi::OsString;
use std::fs::{self, File, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::SystemTime;
use system::folder::NotRegular;

/// The file in a claim that says whose it is.
pub(super) const HOLDER: &str = "holder";
/// So much is read of it, in bytes.
pub(super) const MAX_HOLDER_BYTES: u64 = 4 << 10;
/// A claim that vanishes as often while it is looked at is not there for long.
const TRIES: usize = 100;

/// A run is this process's to make.
pub(super) struct Claim {
    place: PathBuf,
    own: PathBuf,
    file: File,
}

/// What came of asking for a run.
pub(super) enum Claimed {
    /// It is ours.
    Ours(Claim),
    /// A living launcher makes it: which one, in words.
    Held(String),
}

impl Claim {
    /// Claims a run. `lost` hears of the claim of a dead one that was in the way, in words.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub(super) fn take(folder: &Path, index: u32, host: &str, mut lost: impl FnMut(&str)) -> Result<Claimed> {
        let place = places::claim(folder, index);
        let claims = folder.join(places::CLAIMS);
        fs::create_dir_all(&claims)
            .with_context(|| format!("cannot make the folder {}", claims.display()))?;
        let (pid, now) = (std::process::id(), SystemTime::now());
        let nanos = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default().as_nanos();
        // No other process of any host has that name.
        let plain: String = host.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '-' }).collect();
        let unique = format!("{plain}-{pid}-{nanos}");
        let said = format!("{host}, process {pid}, since {}\n", humantime::format_rfc3339_seconds(now));
        for _ in 0..TRIES {
            let draft = claims.join(format!(".new-{unique}"));
            let file =
                begin(&draft, &unique, &said).with_context(|| format!("cannot write {}", draft.display()))?;
            match fs::rename(&draft, &place) {
                Ok(()) => return Ok(Claimed::Ours(Self { own: place.join(&unique), place, file })),
                Err(error) => {
                    let _ = fs::remove_dir_all(&draft);
                    if !is_there(&error) {
                        return Err(error).with_context(|| format!("cannot claim {}", place.display()));
                    }
                }
            }
            match look(&place)? {
                Found::Gone => {}
                Found::Held(by) => return Ok(Claimed::Held(by)),
                Found::Dead(by, _locked) => {
                    // The lock on a dead one's file is ours, so nobody else takes the same claim away; see `look`.
                    let away = claims.join(format!(".lost-{unique}"));
                    if fs::rename(&place, &away).is_ok() {
                        let _ = fs::remove_dir_all(&away);
                        lost(&by);
                    }
                }
            }
        }
        bail!("{}: claim is repeatedly taken and released", place.display())
    }

    /// Where the run is to be made.
    pub(super) fn folder(&self) -> &Path {
        &self.own
    }

    /// As a process that is killed leaves it: its lock is gone, its folder is not.
    #[cfg(test)]
    pub(super) fn die(mut self) {
        // Another file's place in its own: what is dropped then finds that the claim is not its.
        self.file = File::open("/dev/null").expect("a file");
    }

    /// Moves a finished run of this claim to its place. `false`: another one is there already, or the claim has been taken away; then what
    /// was made counts for nothing and is gone with the claim.
    ///
    /// # Errors
    /// A folder that cannot be written.
    pub(super) fn finish(&self, run: &Path, place: &Path) -> io::Result<bool> {
        fs::create_dir_all(place.parent().unwrap_or(place))?;
        match fs::rename(run, place) {
            Ok(()) => Ok(true),
            Err(error) if is_there(&error) || error.kind() == ErrorKind::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        // Not where it is another's by now.
        if !is_of(&self.file, &self.place.join(HOLDER)) {
            return;
        }
        // Moved first: a claim has its file for as long as it is in its place.
        let mut away = OsString::from(".done-");
        away.push(self.own.file_name().unwrap_or_default());
        let away = self.place.with_file_name(away);
        if fs::rename(&self.place, &away).is_ok() {
            let _ = fs::remove_dir_all(&away);
        }
    }
}

/// A claim that is nobody's yet, with its file locked.
fn begin(draft: &Path, unique: &str, said: &str) -> io::Result<File> {
    fs::create_dir_all(draft.join(unique))?;
    let mut file = File::create_new(draft.join(HOLDER))?;
    file.write_all(said.as_bytes())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::Error(error)) if error.kind() == ErrorKind::Unsupported => Ok(file),
        Err(error) => Err(error.into()),
    }
}

/// What a claim turned out to be.
enum Found {
    /// It is not there any more.
    Gone,
    /// Whose it is.
    Held(String),
    /// Whose it was, and its file, locked by us.
    Dead(String, Option<File>),
}

fn look(place: &Path) -> Result<Found> {
    let path = place.join(HOLDER);
    let mut options = File::options();
    options.read(true).write(true).custom_flags(nix::libc::O_NOFOLLOW | nix::libc::O_NONBLOCK);
    let mut file = match options.open(&path) {
        Ok(file) if file.metadata()?.is_file() => file,
        Ok(_) => bail!("{}: {}: remove that folder", path.display(), NotRegular::Kind),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            // A claim comes to its place with its file: without one it is damaged.
            return Ok(if place.exists() && !path.exists() {
                Found::Dead("nobody".into(), None)
            } else {
                Found::Gone
            });
        }
        Err(error) => return Err(error).with_context(|| path.display().to_string()),
    };
    let mut by = String::new();
    // A holder that cannot be read is one without a name.
    let _ = (&mut file).take(MAX_HOLDER_BYTES).read_to_string(&mut by);
    let by = by.trim().to_owned();
    match file.try_lock() {
        Err(TryLockError::WouldBlock) => Ok(Found::Held(by)),
        // Locked now, but is it still the one in that place? Somebody else may have taken it away before.
        Ok(()) if !is_of(&file, &path) => Ok(Found::Gone),
        // Where there are no locks nobody can tell who lives; see above.
        Ok(()) | Err(TryLockError::Error(_)) => Ok(Found::Dead(by, Some(file))),
    }
}

/// Whether an open file is the one in that place.
fn is_of(file: &File, path: &Path) -> bool {
    let key = |facts: io::Result<fs::Metadata>| facts.ok().map(|facts| (facts.dev(), facts.ino()));
    key(file.metadata()).is_some_and(|own| key(fs::metadata(path)) == Some(own))
}

/// Whether a folder could not be moved because there is another in that place.
fn is_there(error: &io::Error) -> bool {
    matches!(error.kind(), ErrorKind::AlreadyExists | ErrorKind::DirectoryNotEmpty)
}
