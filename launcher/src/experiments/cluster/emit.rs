//! `--emit`: what schedulers need to make the runs of a plan. A task is a turn, so that the runs of a pair are made on one host.

use crate::config::UsageError;
use crate::experiments::sweep::Scheduler;
use analysis::document::write_whole;
use analysis::experiment::SweepPlan;
use anyhow::{Context, Result};
use std::path::{Path, PathBuf};

/// What was written.
#[derive(Debug)]
pub(super) struct Emitted {
    /// The file.
    pub file: PathBuf,
    /// What to do with it, in words.
    pub next: String,
}

/// More tasks than this a Slurm array has only where its administrator allows more (`MaxArraySize`).
const SLURM_TASKS: u32 = 1_000;

/// Writes it into the plan's folder.
///
/// # Errors
/// [`UsageError`]: a path that scripts cannot hold. A folder that cannot be written.
pub(super) fn emit(plan: &SweepPlan, folder: &Path, scheduler: Scheduler) -> Result<Emitted> {
    let folder = folder.canonicalize().with_context(|| folder.display().to_string())?;
    let launcher = std::env::current_exe().context("cannot tell where this program is")?;
    let text = text(plan, &plain(&folder)?, &plain(&launcher)?, scheduler);
    let file = folder.join(file_name(scheduler));
    write_whole(&file, text.as_bytes())?;
    let (path, join) = (file.display(), format!("launcher sweep --join {}", folder.display()));
    let next = match scheduler {
        Scheduler::Slurm if plan.turns() > SLURM_TASKS => {
            format!(
                "{} tasks: more than MaxArraySize is unless it was raised; sbatch {path}, then {join}",
                plan.turns()
            )
        }
        Scheduler::Slurm => format!("sbatch {path}, then {join}"),
        Scheduler::Kubernetes => {
            format!("set image and claim, then kubectl apply -f {path}; in the end {join}")
        }
        Scheduler::Dask => format!("python3 {path} SCHEDULER makes all and gathers them"),
        Scheduler::Ray => format!("python3 {path} ADDRESS makes all and gathers them"),
    };
    Ok(Emitted { file, next })
}

const fn file_name(scheduler: Scheduler) -> &'static str {
    match scheduler {
        Scheduler::Slurm => "sweep_slurm.sh",
        Scheduler::Kubernetes => "sweep_kubernetes.yaml",
        Scheduler::Dask => "sweep_dask.py",
        Scheduler::Ray => "sweep_ray.py",
    }
}

fn text(plan: &SweepPlan, folder: &str, launcher: &str, scheduler: Scheduler) -> String {
    let template = match scheduler {
        Scheduler::Slurm => include_str!("schedulers/slurm.sh"),
        Scheduler::Kubernetes => include_str!("schedulers/kubernetes.yaml"),
        Scheduler::Dask => include_str!("schedulers/dask.py"),
        Scheduler::Ray => include_str!("schedulers/ray.py"),
    };
    let turns = plan.turns();
    [
        ("@FOLDER@", folder),
        ("@LAUNCHER@", launcher),
        ("@PLAN@", &plan.id),
        ("@SHORT@", plan.id.get(..8).unwrap_or(&plan.id)),
        ("@VERSION@", &plan.version),
        ("@TURNS@", &turns.to_string()),
        ("@LAST@", &turns.saturating_sub(1).to_string()),
    ]
    .into_iter()
    .fold(template.to_owned(), |text, (name, value)| text.replace(name, value))
}

/// A path that shells, Slurm, YAML and Python all read as it stands.
fn plain(path: &Path) -> Result<String, UsageError> {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+=,:".contains(c);
    match path.to_str().filter(|text| text.chars().all(is_plain)) {
        Some(text) => Ok(text.to_owned()),
        None => Err(UsageError(format!(
            "--emit: {}: only letters, digits and /._-+=,: go into a script as they are; use another folder",
            path.display()
        ))),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::super::tests::plan;
    use super::*;
    use std::io::Write;
    use std::process::{Command, Stdio};

    const ALL: [Scheduler; 4] = [Scheduler::Slurm, Scheduler::Kubernetes, Scheduler::Dask, Scheduler::Ray];

    /// Options of sbatch that its manual documents and a job array has use for (slurm.schedmd.com/sbatch.html).
    const SBATCH: [&str; 24] = [
        "array",
        "job-name",
        "nodes",
        "ntasks",
        "exclusive",
        "mem",
        "requeue",
        "no-requeue",
        "output",
        "error",
        "time",
        "partition",
        "account",
        "constraint",
        "cpus-per-task",
        "chdir",
        "dependency",
        "export",
        "hint",
        "nodelist",
        "exclude",
        "qos",
        "signal",
        "threads-per-core",
    ];

    fn made(scheduler: Scheduler) -> String {
        text(&plan(3), "/shared/sweep", "/opt/launcher", scheduler)
    }

    /// Whether a program takes that text on its standard input; `None`: it is not there.
    fn takes(program: &str, words: &[&str], text: &str) -> Option<bool> {
        let child = Command::new(program).args(words).stdin(Stdio::piped()).stderr(Stdio::null()).spawn();
        let Ok(mut child) = child else {
            eprintln!("SKIPPED, NOT CHECKED: {program} is not there");
            return None;
        };
        child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
        Some(child.wait().unwrap().success())
    }

    /// The options in the head of a script that sbatch does not document.
    fn unknown(script: &str) -> Vec<&str> {
        let options = script.lines().filter_map(|line| line.strip_prefix("#SBATCH --"));
        let names = options.map(|option| option.split('=').next().unwrap());
        names.filter(|name| !SBATCH.contains(name)).collect()
    }

    #[test]
    fn everything_is_filled_in() {
        for scheduler in ALL {
            let text = made(scheduler);
            assert!(!text.contains('@'), "{text}");
            // Six runs, A and B in three repeats: three turns.
            assert!(
                text.contains("TURNS = 3") || text.contains("completions: 3") || text.contains("--array=0-2"),
                "{text}"
            );
        }
    }

    #[test]
    fn the_job_array_is_a_script_with_options_that_sbatch_has() {
        let script = made(Scheduler::Slurm);
        assert_ne!(takes("bash", &["-n"], &script), Some(false));
        assert_ne!(takes("bash", &["-n"], &script.replace("set -euo pipefail", "if")), Some(true), "broken");
        assert_eq!(unknown(&script), [""; 0]);
        assert_eq!(unknown(&script.replace("--exclusive", "--exclusively")), ["exclusively"], "broken");
        // sbatch reads them only before the first command.
        let command = script.lines().position(|line| !line.is_empty() && !line.starts_with('#')).unwrap();
        assert!(script.lines().skip(command).all(|line| !line.starts_with("#SBATCH")));
    }

    #[test]
    fn the_python_scripts_are_python() {
        let compile = ["-c", "import sys; compile(sys.stdin.read(), 'made', 'exec')"];
        for scheduler in [Scheduler::Dask, Scheduler::Ray] {
            assert_ne!(takes("python3", &compile, &made(scheduler)), Some(false), "{scheduler:?}");
            assert_ne!(
                takes("python3", &compile, &made(scheduler).replace("def main():", "def main()")),
                Some(true)
            );
        }
    }

    #[test]
    fn a_path_that_a_script_would_read_otherwise_is_refused() {
        for path in ["/a b", "/a'b", "/$HOME", "/a%b", "/a\nb", "/ä"] {
            assert!(
                plain(Path::new(path)).unwrap_err().to_string().contains("use another folder"),
                "{path:?}"
            );
        }
        assert_eq!(plain(Path::new("/a-b/c_1.d")).unwrap(), "/a-b/c_1.d");
    }
}
