//! Tells the programs which commit and which compiler built them, for the records of runs.
//!
//! Runs again when a source or the checked-out commit changes, and only then: an unedited build
//! compiles nothing.

use std::path::{Path, PathBuf};
use std::process::Command;

fn main() {
    let workspace =
        PathBuf::from(env("CARGO_MANIFEST_DIR")).ancestors().nth(2).expect("a workspace").to_owned();
    let sources = sources(&workspace);
    sources.iter().for_each(|source| rerun_if_changed(&workspace.join(source)));
    let is_own = |root: &String| Path::new(root).canonicalize().ok() == workspace.canonicalize().ok();
    // Without optional locks: a refreshed index would be a change that nobody made.
    let git = |args: &[&str]| {
        output(Command::new("git").current_dir(&workspace).arg("--no-optional-locks").args(args))
    };
    // A copy without history may lie inside of another repository.
    let commit = git(&["rev-parse", "--show-toplevel"])
        .filter(is_own)
        .and_then(|_| git(&["rev-parse", "--short=8", "HEAD"]));
    let mut is_modified = None;
    if commit.is_some() {
        // A commit moves the branch, which is a file of its own or a line of the packed ones; a
        // checkout moves HEAD.
        let branch = git(&["symbolic-ref", "--quiet", "HEAD"]);
        for name in ["HEAD".to_owned(), "packed-refs".to_owned()].into_iter().chain(branch) {
            git(&["rev-parse", "--git-path", &name])
                .iter()
                .for_each(|path| rerun_if_changed(&workspace.join(path)));
        }
        let status = ["status", "--porcelain", "--untracked-files=no", "--"];
        let status: Vec<&str> = status.into_iter().chain(sources.iter().map(String::as_str)).collect();
        is_modified = git(&status).map(|changes| !changes.is_empty());
    }
    let compiler = output(Command::new(env("RUSTC")).arg("--version"));
    println!("cargo:rustc-env=BULKHEAD_COMMIT={}", commit.unwrap_or_default());
    println!("cargo:rustc-env=BULKHEAD_MODIFIED={}", is_modified.map_or(String::new(), |is| is.to_string()));
    println!("cargo:rustc-env=BULKHEAD_COMPILER={}", compiler.unwrap_or_default());
    println!("cargo:rustc-env=BULKHEAD_PROFILE={}", env("PROFILE"));
}

/// Returns what of the workspace a build may read: sources and manifests of its top-level packages.
fn sources(workspace: &Path) -> Vec<String> {
    let folders = workspace.read_dir().into_iter().flatten().flatten();
    let names = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let packages = names.filter(|name| workspace.join(name).join("src/lib.rs").is_file());
    let files = packages.flat_map(|name| [format!("{name}/src"), format!("{name}/Cargo.toml")]);
    let mut sources: Vec<String> =
        files.chain(["Cargo.toml", "Cargo.lock", "launcher/build-info/build.rs"].map(String::from)).collect();
    sources.sort();
    sources
}

/// Names a file or folder that cargo watches. A missing one would run this program at each build.
fn rerun_if_changed(path: &Path) {
    if path.exists() {
        println!("cargo:rerun-if-changed={}", path.display());
    }
}

fn env(name: &str) -> String {
    std::env::var(name).unwrap_or_default()
}

/// Returns the first output of a program that succeeds, without the line's end.
fn output(command: &mut Command) -> Option<String> {
    let output = command.output().ok().filter(|output| output.status.success())?;
    Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}
