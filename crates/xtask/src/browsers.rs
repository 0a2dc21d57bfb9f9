//! The browsers of the tests: what is installed, else Playwright's own, else Debian's packages.

use std::env;
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use paceline_wasm_build::{apt_install, capture, run_limited, step};

use crate::node;

/// Where the Playwright configuration looks when the tests are started by hand.
const FOUND: &str = "target/browsers.json";

/// A download of a browser takes minutes on a slow line, never this long on one that works.
const DOWNLOAD_LIMIT: Duration = Duration::from_secs(600);

/// The browsers by path.
pub(crate) struct Browsers {
    pub(crate) chromium: PathBuf,
    pub(crate) firefox: PathBuf,
}

impl Browsers {
    /// The environment by which the Playwright configuration learns the paths.
    pub(crate) fn environment(&self) -> [(&'static str, &Path); 2] {
        [
            (CHROMIUM.variable, &self.chromium),
            (FIREFOX.variable, &self.firefox),
        ]
    }
}

struct Kind {
    /// Playwright's name for it.
    name: &'static str,
    /// The variable by which a person names a browser of their own.
    variable: &'static str,
    package: &'static str,
    programs: &'static [&'static str],
}

const CHROMIUM: Kind = Kind {
    name: "chromium",
    variable: "PACELINE_CHROMIUM",
    package: "chromium",
    programs: &[
        "chromium",
        "chromium-browser",
        "google-chrome-stable",
        "google-chrome",
        "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    ],
};

const FIREFOX: Kind = Kind {
    name: "firefox",
    variable: "PACELINE_FIREFOX",
    package: "firefox-esr",
    programs: &[
        "firefox-esr",
        "firefox",
        "/Applications/Firefox.app/Contents/MacOS/firefox",
    ],
};

/// Finds both browsers, and installs one that is missing.
pub(crate) fn find_or_install(root: &Path) -> Result<Browsers, Box<dyn Error>> {
    let browsers = Browsers {
        chromium: one(root, &CHROMIUM)?,
        firefox: one(root, &FIREFOX)?,
    };
    let json = serde_json::json!({ "chromium": browsers.chromium, "firefox": browsers.firefox });
    let file = root.join(FOUND);
    fs::create_dir_all(root.join("target"))?;
    fs::write(&file, format!("{json:#}\n"))?;
    Ok(browsers)
}

fn one(root: &Path, kind: &Kind) -> Result<PathBuf, Box<dyn Error>> {
    let path = match find(root, kind) {
        Some(path) => path,
        None => install(root, kind)?,
    };
    eprintln!("{}: {}", kind.name, path.display());
    Ok(path)
}

fn find(root: &Path, kind: &Kind) -> Option<PathBuf> {
    let named = env::var_os(kind.variable).map(PathBuf::from);
    let installed = kind.programs.iter().find_map(|program| in_path(program));
    named.or(installed).or_else(|| playwrights(root, kind))
}

fn in_path(program: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    // An absolute name replaces the directory it is joined to.
    env::split_paths(&path)
        .map(|directory| directory.join(program))
        .find(|path| path.is_file())
}

/// The browser that Playwright itself has downloaded.
fn playwrights(root: &Path, kind: &Kind) -> Option<PathBuf> {
    let script = format!(
        "console.log(require('playwright').{}.executablePath())",
        kind.name
    );
    let path = capture(Command::new("node").current_dir(root).args(["-e", &script])).ok()?;
    Some(PathBuf::from(path)).filter(|path| path.is_file())
}

fn install(root: &Path, kind: &Kind) -> Result<PathBuf, Box<dyn Error>> {
    let mut playwright = node::program(root, "playwright");
    playwright.args(["install", kind.name]);
    let download = step(&format!("playwright install {}", kind.name), || {
        run_limited(&mut playwright, DOWNLOAD_LIMIT)
    });
    if let Some(path) = find(root, kind) {
        return Ok(path);
    }
    let debian = step(&format!("Debian's {}", kind.package), || {
        apt_install(&[kind.package])
    });
    if let Some(path) = find(root, kind) {
        return Ok(path);
    }
    let answers =
        [download.err(), debian.err()].map(|e| e.map_or_else(String::new, |e| e.to_string()));
    Err(format!(
        "no {name}: {}\n  run: npx playwright install --with-deps {name}\n  or, on Debian: sudo apt-get install {package}\n  \
         or name one: {variable}=/path/to/{name}",
        answers.join("; "),
        name = kind.name,
        package = kind.package,
        variable = kind.variable,
    )
    .into())
}
