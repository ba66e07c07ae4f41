//! Pages in a real browser: headless Chromium, if installed.

use super::dom::{having, plots, text};
use super::fixtures::{page, tailed};
use super::run_page::check_figures;
use crate::common::evaluated;
use std::io::Write;
use std::path::Path;
use std::process::Command;

/// What the browser loaded and logged for a page.
pub struct RenderedPage {
    pub dom: String,
    pub printed: String,
    pub network: String,
    pub picture: Vec<u8>,
}

/// Returns the browser; without one, `None` and a message on stderr.
fn chromium() -> Option<&'static str> {
    let found = ["chromium", "chromium-browser", "google-chrome"].into_iter().find(|name| {
        Command::new(name).arg("--version").output().is_ok_and(|output| output.status.success())
    });
    if found.is_none() {
        // Not `eprintln!`, which a passing test swallows.
        let words =
            "SKIPPED: no chromium here, report.html was not tried in a browser (apt-get install chromium)";
        let _ = writeln!(std::io::stderr(), "{words}");
    }
    found
}

/// Opens a file twice: for its DOM and for its screenshot.
pub fn open(file: &Path, dark: bool) -> Option<RenderedPage> {
    let browser = chromium()?;
    let own = tempfile::tempdir().unwrap();
    let (log, picture) = (own.path().join("network.json"), own.path().join("picture.png"));
    let start = |flags: &[String]| {
        // A browser that hangs fails the test instead of blocking it.
        let mut command = Command::new("timeout");
        command.args(["120", browser]);
        command.args(["--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run"]);
        command.args(["--disable-background-networking", "--disable-component-update", "--disable-sync"]);
        command.args(["--disable-dev-shm-usage", "--hide-scrollbars", "--window-size=1200,3000"]);
        command.args(["--enable-logging=stderr", "--v=0"]);
        // No request of the browser itself leaves the machine.
        command.args(["--no-proxy-server", "--host-resolver-rules=MAP * ~NOTFOUND"]);
        command.arg(format!("--user-data-dir={}", own.path().join("profile").display()));
        if dark {
            command.args(["--force-dark-mode", "--blink-settings=preferredColorScheme=0"]);
        }
        let output = command.args(flags).arg(format!("file://{}", file.display())).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(output.status.success(), "{}", text(&output.stderr));
        (text(&output.stdout), text(&output.stderr))
    };
    let (dom, mut printed) = start(&[
        "--dump-dom".into(),
        "--virtual-time-budget=10000".into(),
        format!("--log-net-log={}", log.display()),
    ]);
    printed += &start(&[format!("--screenshot={}", picture.display())]).1;
    let network = std::fs::read_to_string(log).unwrap();
    Some(RenderedPage { dom, printed, network, picture: std::fs::read(picture).unwrap() })
}

/// Checks that console and network log are empty.
pub fn check_quiet(rendered: &RenderedPage) {
    let complaints: Vec<&str> = rendered.printed.lines().filter(|line| line.contains("CONSOLE")).collect();
    assert!(complaints.is_empty(), "{complaints:?}");
    // Every request is in the log with its initiator, one per line; the browser's own have no
    // origin.
    let asked: Vec<&str> = rendered
        .network
        .lines()
        .filter(|line| line.contains("\"initiator\":") && !line.contains("\"initiator\":\"not an origin\""))
        .collect();
    assert!(asked.is_empty(), "{asked:?}");
}

#[test]
fn browser_shows_figures_without_network_requests() {
    let (folder, summary) = evaluated(&tailed(20_000));
    let file = folder.path().join("report.html");
    let Some(light) = open(&file, false) else { return };
    let Some(dark) = open(&file, true) else { return };
    for rendered in [&light, &dark] {
        check_quiet(rendered);
        check_figures(&rendered.dom, &summary);
        assert_eq!(plots(&rendered.dom), plots(&page(&folder)));
        // The policy let the script run, and it drew every plot, with a legend.
        for part in ["<canvas", "class=\"u-legend"] {
            assert_eq!(rendered.dom.matches(part).count(), plots(&rendered.dom).len(), "{part}");
        }
        assert!(text(&rendered.dom).contains(&summary.run));
    }
    assert!(light.picture.starts_with(b"\x89PNG") && light.picture.len() > 50_000, "{}", light.picture.len());
    assert_ne!(light.picture, dark.picture, "both schemes are drawn");
}

/// A copy of a page in which a script of the test's own may run, after that of the plots.
fn scripted(html: &str, script: &str) -> String {
    let (before, rest) = html.split_once("<meta http-equiv=\"Content-Security-Policy\"").unwrap();
    let (_, after) = rest.split_once('>').unwrap();
    format!("{before}{}<script>{script}</script>", after.replace("</body></html>", ""))
}

/// Moves, drags and double-clicks in the plot of latency by percentile, and notes after each what
/// the legend shows.
const POINTER: &str = "
const over = document.querySelector('#percentiles .u-over');
const box = over.getBoundingClientRect();
const send = (type, share) => {
  const place = { clientX: box.left + share * box.width, clientY: box.top + box.height / 2 };
  over.dispatchEvent(new MouseEvent(type, { bubbles: true, button: 0, movementX: 1, ...place }));
};
const note = (name) => {
  const shown = [...document.querySelectorAll('#percentiles .u-legend tr')].map((row) => row.textContent);
  const step = document.body.appendChild(document.createElement('p'));
  step.dataset.step = name;
  step.dataset.shown = shown.join('; ');
};
send('mouseenter', 0.5);
send('mousemove', 0.5);
note('hover');
send('mousedown', 0.5);
send('mousemove', 0.7);
send('mouseup', 0.7);
setTimeout(() => {
  send('mousemove', 0.5);
  note('zoomed');
  send('dblclick', 0.5);
  setTimeout(() => { send('mousemove', 0.5); note('whole'); });
});
";

#[test]
fn pointer_shows_values_and_zooms() {
    let (folder, _) = evaluated(&tailed(2_000));
    let file = folder.path().join("scripted.html");
    std::fs::write(&file, scripted(&page(&folder), POINTER)).unwrap();
    let Some(rendered) = open(&file, false) else { return };
    check_quiet(&rendered);
    let steps = having(&rendered.dom, "data-step");
    let shown: Vec<&str> = steps.iter().map(|step| step.get("data-shown").unwrap()).collect();
    let [hover, zoomed, whole] = shown[..] else { panic!("{shown:?}") };
    // Half of the axis from 1 to 2,000 is 1/(1 − q) = 44.7; of its part from a half to 0.7, 95.6.
    assert!(hover.contains("at97.8%") && zoomed.contains("at99.0%"), "{hover} {zoomed}");
    assert!(hover.contains("rt_venue") && hover.contains(" ns"), "{hover}");
    assert_eq!(whole, hover);
}

#[test]
fn changed_script_is_refused_by_the_policy() {
    let (folder, _) = evaluated(&tailed(200));
    let file = folder.path().join("changed.html");
    std::fs::write(&file, page(&folder).replace("\"use strict\";\n", "\"use strict\"; \n")).unwrap();
    let Some(rendered) = open(&file, false) else { return };
    assert!(
        !rendered.dom.contains("<canvas") && rendered.printed.contains("Content Security Policy"),
        "{}",
        rendered.printed
    );
    assert!(std::panic::catch_unwind(|| check_quiet(&rendered)).is_err());
}

#[test]
fn network_requests_are_detected() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bad.html");
    std::fs::write(
        &file,
        "<!doctype html><img src='http://127.0.0.1:9/x.png'><script>undefined_name()</script>",
    )
    .unwrap();
    let Some(rendered) = open(&file, false) else { return };
    assert!(std::panic::catch_unwind(|| check_quiet(&rendered)).is_err());
    assert!(rendered.printed.contains("CONSOLE") && rendered.network.contains("127.0.0.1:9/x.png"));
}
